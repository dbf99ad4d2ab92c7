// Numbers with units, and prefixes. Control thread.
#include "qos/inside.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

enum { MOST_DIGITS = 12, MS_PER_SECOND = 1000 };

struct unit {
	const char *text;
	uint64_t times;
};

static const struct unit rates[] = {{"Gbit/s", 1000000000}, {"Mbit/s", 1000000}, {"kbit/s", 1000},
	{"bit/s", 1}};
static const struct unit sizes[] = {{"GB", 1000000000}, {"MB", 1000000}, {"kB", 1000}, {"B", 1}};

// Digits, with some after a point, and one of the units: exactly a whole number of the smallest.
static int read_amount(const char *text, const struct unit units[], unsigned n, uint64_t *out)
{
	uint64_t value = 0, place = 1;
	unsigned n_digits = 0;
	bool has_point = false;

	for (; isdigit((unsigned char)*text) || (*text == '.' && !has_point && n_digits); text++) {
		if (*text == '.') {
			has_point = true;
			continue;
		}
		if (++n_digits > MOST_DIGITS)
			return -EINVAL;
		value = value * 10 + (uint64_t)(*text - '0');
		place *= has_point ? 10 : 1;
	}
	for (unsigned i = 0; n_digits && i < n; i++) {
		const unsigned __int128 all = (unsigned __int128)value * units[i].times;

		if (strcasecmp(text, units[i].text))
			continue;
		if (all % place || all / place > UINT64_MAX)
			return -EINVAL;
		*out = (uint64_t)(all / place);
		return 0;
	}
	return -EINVAL;
}

int words_rate(const char *text, uint64_t *bits)
{
	uint64_t rate;

	if (read_amount(text, rates, ARRAY_LEN(rates), &rate) || rate < POLICE_LEAST_RATE ||
		rate > POLICE_MOST_RATE)
		return -EINVAL;
	*bits = rate;
	return 0;
}

int words_burst(const char *text, uint64_t rate, uint64_t *bytes)
{
	static const struct unit times[] = {{"s", MS_PER_SECOND}, {"ms", 1}};
	uint64_t amount;

	if (!read_amount(text, times, ARRAY_LEN(times), &amount)) {
		if (amount > UINT32_MAX)
			return -EINVAL;
		amount = (uint64_t)((unsigned __int128)amount * rate / 8 / MS_PER_SECOND);
	} else if (read_amount(text, sizes, ARRAY_LEN(sizes), &amount)) {
		return -EINVAL;
	}
	if (amount > POLICE_MOST_BURST)
		return -EINVAL;
	*bytes = amount;
	return 0;
}

int words_time(const char *text, uint64_t *us)
{
	static const struct unit units[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}};

	return read_amount(text, units, ARRAY_LEN(units), us);
}

const char *words_print_rate(uint64_t bits, char text[32])
{
	for (unsigned i = 0; i < ARRAY_LEN(rates); i++)
		if (bits % rates[i].times == 0) {
			snprintf(text, 32, "%" PRIu64 "%s", bits / rates[i].times, rates[i].text);
			break;
		}
	return text;
}

static bool is_mapped(const uint8_t bytes[16])
{
	static const uint8_t start[12] = {[10] = 0xff, 0xff};

	return !memcmp(bytes, start, sizeof(start));
}

static int check_prefix(const struct wire_prefix *prefix, const char *text, struct error *error)
{
	const uint8_t first = prefix->addr.bytes[0];

	if (!prefix->len)
		return error_set(error, -EINVAL,
			"address %.60s: is everybody's; expected a longer prefix", text);
	if (prefix->addr.family == 6 && prefix->len > 64)
		return error_set(error, -EINVAL,
			"address %.60s: IPv6 prefixes have at most 64 bits here; give the /64",
			text);
	if (prefix->addr.family == 6 && (first == 0xff || is_mapped(prefix->addr.bytes)))
		return error_set(error, -EINVAL,
			"address %.60s: no address of a host; expected a unicast prefix", text);
	if (prefix->addr.family == 4 && first >= 224)
		return error_set(error, -EINVAL,
			"address %.60s: no address of a host; expected a unicast prefix", text);
	return 0;
}

int words_prefix(const char *text, struct prefix *out, struct error *error)
{
	struct wire_prefix prefix = {.len = 0};
	int err;

	if (strchr(text, '/')) {
		err = wire_prefix_parse(text, &prefix);
	} else {
		err = wire_addr_parse(text, &prefix.addr);
		prefix.len = prefix.addr.family == 4 ? 32 : 128;
	}
	if (err == -ERANGE)
		return error_set(error, -EINVAL,
			"address %.60s: has bits set behind the prefix; expected 0 there", text);
	if (err)
		return error_set(error, -EINVAL,
			"invalid address \"%.60s\": expected ADDRESS or ADDRESS/LENGTH", text);
	err = check_prefix(&prefix, text, error);
	if (err)
		return err;
	out->key = 0;
	for (unsigned i = 0; i < (prefix.addr.family == 4 ? 4 : 8); i++)
		out->key |= (uint64_t)prefix.addr.bytes[i] << (56 - 8 * i);
	out->family = prefix.addr.family == 4 ? QOS_IP4 : QOS_IP6;
	out->length = prefix.len;
	return 0;
}

struct wire_prefix words_of_prefix(const struct prefix *prefix)
{
	struct wire_prefix out = {.len = prefix->length};

	out.addr.family = prefix->family == QOS_IP4 ? 4 : 6;
	for (unsigned i = 0; i < 8; i++)
		out.addr.bytes[i] = (uint8_t)(prefix->key >> (56 - 8 * i));
	return out;
}
