// The limit of a rule: its rate and burst as text, and what they are without any. Any thread.
#include "acl/inside.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LEAST_BURST = 1518, USUAL_PACKETS = 10, HUNDREDTHS = 100, IN_BYTES = 1, IN_PACKETS = 2 };
#define MOST_PACKETS 4000000000ull
#define MOST_PACKET_RATE (POLICE_MOST_RATE / 8)

struct unit {
	const char *text;
	uint64_t times;
	bool is_packets;
};

// The largest first.
static const struct unit rates[] = {
	{"Gbit/s", 1000000000, false},
	{"Mbit/s", 1000000, false},
	{"kbit/s", 1000, false},
	{"bit/s", 1, false},
	{"packets/s", 1, true},
};
static const struct unit bursts[] = {
	{"GB", 1000000000, false},
	{"MB", 1000000, false},
	{"kB", 1000, false},
	{"B", 1, false},
	{"packets", 1, true},
};
_Static_assert(ARRAY_LEN(rates) == ARRAY_LEN(bursts), "N_UNITS is that of both");
enum { N_UNITS = ARRAY_LEN(rates) };

// Digits, with some after a point: as an integer and its last digit's place. NULL: none, or many.
static const char *read_digits(const char *text, uint64_t *value, uint64_t *place)
{
	enum { MOST_DIGITS = 12 };
	unsigned n = 0;
	bool has_point = false;

	*value = 0;
	*place = 1;
	for (; isdigit((unsigned char)*text) || (*text == '.' && !has_point && n); text++) {
		if (*text == '.') {
			has_point = true;
			continue;
		}
		if (++n > MOST_DIGITS)
			return NULL;
		*value = *value * 10 + (uint64_t)(*text - '0');
		*place *= has_point ? 10 : 1;
	}
	return n ? text : NULL;
}

// A number, and its unit after blanks or none. NULL: invalid, or no whole number of the smallest.
static const struct unit *read_amount(uint64_t *out, const char *text,
	const struct unit units[N_UNITS])
{
	uint64_t value, place;
	const char *rest = read_digits(text, &value, &place);

	rest += rest ? strspn(rest, " ") : 0;
	for (unsigned i = 0; rest && i < N_UNITS; i++) {
		if (strcasecmp(rest, units[i].text))
			continue;
		const unsigned __int128 all = (unsigned __int128)value * units[i].times;

		if (all % place || all / place > UINT64_MAX)
			return NULL;
		*out = all / place;
		return &units[i];
	}
	return NULL;
}

int police_read_rate(struct acl_police *police, const char *text)
{
	uint64_t rate;
	const struct unit *unit = read_amount(&rate, text, rates);

	if (!unit)
		return -EINVAL;
	const uint64_t least = unit->is_packets ? 1 : POLICE_LEAST_RATE;
	const uint64_t most = unit->is_packets ? MOST_PACKET_RATE : POLICE_MOST_RATE;

	if (rate < least || rate > most)
		return -EINVAL;
	police->rate = rate;
	police->packets = unit->is_packets;
	return 0;
}

int police_read_burst(struct acl_police *police, const char *text)
{
	uint64_t burst;
	const struct unit *unit = read_amount(&burst, text, bursts);

	if (!unit)
		return -EINVAL;
	const uint64_t least = unit->is_packets ? 1 : LEAST_BURST;
	const uint64_t most = unit->is_packets ? MOST_PACKETS : POLICE_MOST_BURST;

	if (burst < least || burst > most)
		return -EINVAL;
	police->burst = burst;
	police->burst_unit = unit->is_packets ? IN_PACKETS : IN_BYTES;
	return 0;
}

// 10 ms of the rate, at least ten packets, as far as a burst can be.
static uint64_t usual_burst(const struct acl_police *police)
{
	const uint64_t of_rate = police->rate / HUNDREDTHS / (police->packets ? 1 : 8);
	const uint64_t least = USUAL_PACKETS * (police->packets ? 1ull : LEAST_BURST);
	const uint64_t most = police->packets ? MOST_PACKETS : POLICE_MOST_BURST;

	return MIN_OF(of_rate > least ? of_rate : least, most);
}

int police_end(struct acl_rule *rule, struct error *error)
{
	struct acl_police *police = &rule->police;

	if (!police->rate) {
		if (police->burst || police->mtu || police->overhead || police->bucket[0])
			return error_set(error, -EINVAL, "police needs a rate: add police.rate");
		return 0;
	}
	if (rule->effect != ACL_PERMIT)
		return error_set(error, -EINVAL,
			"police is for packets that may pass: it needs do: permit");
	if (police->burst_unit && police->burst_unit != (police->packets ? IN_PACKETS : IN_BYTES))
		return error_set(error, -EINVAL,
			"police.rate and police.burst differ in what they count: use bytes, or "
			"packets, for both");
	if (police->packets && police->overhead)
		return error_set(error, -EINVAL,
			"police.overhead is for bytes, but police.rate counts packets");
	police->burst_unit = 0;
	if (!police->burst)
		police->burst = usual_burst(police);
	return 0;
}

static const char *print(char *text, uint64_t amount, bool is_packets,
	const struct unit units[N_UNITS])
{
	for (unsigned i = 0; i < N_UNITS; i++)
		if (units[i].is_packets == is_packets && amount % units[i].times == 0) {
			snprintf(text, POLICE_TEXT, "%" PRIu64 "%s", amount / units[i].times,
				units[i].text);
			break;
		}
	return text;
}

const char *police_print_rate(const struct acl_police *police, char *text)
{
	return print(text, police->rate, police->packets, rates);
}

const char *police_print_burst(const struct acl_police *police, char *text)
{
	return print(text, police->burst, police->packets, bursts);
}

// Two rules of one bucket.
struct sharer {
	const struct acl_rule *rule;
	const struct acl_source *list;
	size_t number;
};

static int compare_buckets(const void *a_, const void *b_)
{
	const struct sharer *a = a_, *b = b_;

	return strcmp(a->rule->police.bucket, b->rule->police.bucket);
}

static size_t find_sharers(const struct acl_set *set, struct sharer *out)
{
	size_t n = 0;

	for (size_t i = 0; i < set->n_lists; i++)
		for (size_t k = 0; k < set->list[i].n; k++) {
			if (!set->list[i].rule[k].police.bucket[0])
				continue;
			if (out)
				out[n] = (struct sharer){&set->list[i].rule[k], &set->list[i],
					k + 1};
			n++;
		}
	return n;
}

static bool differ(const struct acl_police *a, const struct acl_police *b)
{
	return a->rate != b->rate || a->burst != b->burst || a->packets != b->packets;
}

int acl_set_check_buckets(const struct acl_set *set, struct error *error)
{
	const size_t n = find_sharers(set, NULL);
	struct sharer *all = malloc((n + 1) * sizeof(*all));
	int err = 0;

	if (!all)
		return error_set(error, -ENOMEM, "not enough memory for the buckets of rules");
	find_sharers(set, all);
	qsort(all, n, sizeof(*all), compare_buckets);
	for (size_t i = 1; i < n && !err; i++)
		if (!compare_buckets(&all[i - 1], &all[i]) &&
			differ(&all[i - 1].rule->police, &all[i].rule->police))
			err = error_set(error, -EINVAL,
				"police.bucket '%s': list '%s', rule %zu and list '%s', rule %zu "
				"have "
				"different rates or bursts; give them the same",
				all[i].rule->police.bucket, all[i - 1].list->name,
				all[i - 1].number, all[i].list->name, all[i].number);
	free(all);
	return err;
}
