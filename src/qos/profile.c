// Profiles as text. Control thread.
#include "qos/inside.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	HUNDREDTHS = 100,
	USUAL_PACKETS = 10,
	MOST_DSCP = 63,
	MOST_PRIORITY = 7,
	LEAST_OVERHEAD = -32,
	MOST_OVERHEAD = 64
};

static const char *const counts_words[] = {"ip", "ethernet", "wire"};
static const char *const colour_words[POLICE_COLOURS] = {"green", "yellow", "red"};

// A profile while it is read.
struct reading {
	struct profile *profile;
	const char *burst, *excess_burst; // as given, since they may be a time of a rate
	bool is_peak;
	struct error *error;
};

static int mistake(const struct reading *reading, const char *key, const char *value,
	const char *expected)
{
	return error_set(reading->error, -EINVAL, "profile '%s': %s is \"%.60s\"; expected %s",
		reading->profile->name, key, value, expected);
}

static bool read_number(const char *text, long least, long most, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(text, &end, 10);
	return !errno && end != text && !*end && *out >= least && *out <= most;
}

static int read_rate(struct reading *reading, const char *key, const char *value, uint64_t *out)
{
	if (*out)
		return error_set(reading->error, -EINVAL, "profile '%s': %s is given twice",
			reading->profile->name, key);
	return words_rate(value, out)
	               ? mistake(reading, key, value, "8 kbit/s to 400 Gbit/s, such as 100Mbit/s")
	               : 0;
}

// Numbers with commas between them.
static int read_dscps(const struct reading *reading, const char *key, char *value, uint64_t *out)
{
	char *rest, *word = strtok_r(value, ",", &rest);
	long dscp;

	for (; word; word = strtok_r(NULL, ",", &rest)) {
		if (!read_number(word, 0, MOST_DSCP, &dscp))
			return mistake(reading, key, word, "DSCPs from 0 to 63, such as 10,12");
		*out |= 1ull << dscp;
	}
	return 0;
}

// pass, drop, dscp:N, priority:N, dscp:N,priority:N.
static int read_act(const struct reading *reading, const char *key, char *value,
	struct qos_act *act)
{
	char *rest, *word = strtok_r(value, ",", &rest);
	long number;

	*act = (struct qos_act){false, QOS_KEEP, QOS_KEEP};
	for (; word; word = strtok_r(NULL, ",", &rest)) {
		if (!strcmp(word, "drop"))
			act->drops = true;
		else if (!strncmp(word, "dscp:", 5) && read_number(word + 5, 0, MOST_DSCP, &number))
			act->dscp = number;
		else if (!strncmp(word, "priority:", 9) &&
			 read_number(word + 9, 0, MOST_PRIORITY, &number))
			act->priority = number;
		else if (strcmp(word, "pass"))
			return mistake(reading, key, word,
				"pass, drop, dscp:0 to dscp:63, priority:0 to priority:7");
	}
	return 0;
}

static int read_colour(const struct reading *reading, const char *key, char *value)
{
	for (unsigned i = 0; i < POLICE_COLOURS; i++)
		if (!strcmp(key, colour_words[i]))
			return read_act(reading, key, value, &reading->profile->terms.act[i]);
	return error_set(reading->error, -EINVAL,
		"profile '%s': unknown key \"%.60s\"; expected rate, burst, peak_rate, peak_burst, "
		"excess_rate, excess_burst, counts, overhead, yellow_dscp, red_dscp, green, yellow "
		"or red",
		reading->profile->name, key);
}

static int read_counts(const struct reading *reading, const char *value)
{
	for (unsigned i = 0; i < ARRAY_LEN(counts_words); i++)
		if (!strcmp(value, counts_words[i])) {
			reading->profile->terms.counts = i;
			return 0;
		}
	return mistake(reading, "counts", value, "ip, ethernet or wire");
}

static int read_pair(struct reading *reading, const char *key, char *value)
{
	struct profile *profile = reading->profile;
	long number;

	if (!strcmp(key, "rate"))
		return read_rate(reading, key, value, &profile->rate);
	if (!strcmp(key, "peak_rate") || !strcmp(key, "excess_rate")) {
		reading->is_peak = *key == 'p';
		return read_rate(reading, key, value, &profile->excess_rate);
	}
	if (!strcmp(key, "counts"))
		return read_counts(reading, value);
	if (!strcmp(key, "yellow_dscp"))
		return read_dscps(reading, key, value, &profile->terms.yellow);
	if (!strcmp(key, "red_dscp"))
		return read_dscps(reading, key, value, &profile->terms.red);
	if (!strcmp(key, "burst"))
		reading->burst = value;
	else if (!strcmp(key, "peak_burst") || !strcmp(key, "excess_burst"))
		reading->excess_burst = value;
	else if (strcmp(key, "overhead"))
		return read_colour(reading, key, value);
	else if (!read_number(value, LEAST_OVERHEAD, MOST_OVERHEAD, &number))
		return mistake(reading, key, value, "bytes from -32 to 64");
	else
		profile->terms.overhead = number;
	return 0;
}

// What a packet of one MTU is counted for.
static uint64_t mtu_cost(const struct qos_terms *terms)
{
	const int more = terms->counts == QOS_IP ? 0 : terms->counts == QOS_ETHERNET ? 18 : 38;

	return QOS_MTU + more + terms->overhead;
}

// Without one: 10 ms of the rate, at least ten packets.
static int read_burst(const struct reading *reading, const char *key, const char *given,
	uint64_t rate, uint64_t *out)
{
	const uint64_t least = mtu_cost(&reading->profile->terms);
	char expected[64];

	snprintf(expected, sizeof(expected),
		"%" PRIu64 "B (one MTU) to 4294967295B, or a time such as 20ms", least);
	if (!given)
		*out = MIN_OF(MAX_OF(rate / 8 / HUNDREDTHS, USUAL_PACKETS * least),
			POLICE_MOST_BURST);
	else if (words_burst(given, rate, out) || *out < least)
		return mistake(reading, key, given, expected);
	return 0;
}

static int end(struct reading *reading)
{
	struct profile *p = reading->profile;
	const char *name = p->name, *excess = reading->is_peak ? "peak_burst" : "excess_burst";
	const bool has_excess = p->excess_rate || reading->excess_burst;

	if (!p->rate)
		return error_set(reading->error, -EINVAL,
			"profile '%s': no rate; add \"rate "
			"100Mbit/s\"",
			name);
	if (reading->is_peak && p->excess_rate < p->rate)
		return error_set(reading->error, -EINVAL,
			"profile '%s': rate is above peak_rate; expected at most that", name);
	p->terms.marker = !has_excess        ? POLICE_ONE_RATE
	                  : !p->excess_rate  ? POLICE_RFC2697
	                  : reading->is_peak ? POLICE_RFC2698
	                                     : POLICE_RFC4115;
	if (p->terms.yellow & p->terms.red)
		return error_set(reading->error, -EINVAL,
			"profile '%s': DSCP %d is in yellow_dscp and in red_dscp; remove one", name,
			__builtin_ctzll(p->terms.yellow & p->terms.red));
	if (p->terms.yellow && !has_excess)
		return error_set(reading->error, -EINVAL,
			"profile '%s': yellow_dscp needs a second bucket: add peak_rate, "
			"excess_rate or excess_burst",
			name);
	p->terms.is_aware = p->terms.yellow || p->terms.red;
	int err = read_burst(reading, "burst", reading->burst, p->rate, &p->burst);

	if (!err && has_excess)
		err = read_burst(reading, excess, reading->excess_burst,
			p->excess_rate ? p->excess_rate : p->rate, &p->excess_burst);
	return err;
}

int profile_read(struct profile *out, char **rest, struct error *error)
{
	struct reading reading = {.profile = out, .error = error};
	char *key = strtok_r(NULL, " \t", rest);
	int err = 0;

	out->terms.counts = QOS_ETHERNET;
	for (unsigned i = 0; i < POLICE_COLOURS; i++)
		out->terms.act[i] = (struct qos_act){i == POLICE_RED, QOS_KEEP, QOS_KEEP};
	for (; key && !err; key = strtok_r(NULL, " \t", rest)) {
		char *value = strtok_r(NULL, " \t", rest);

		err = value ? read_pair(&reading, key, value)
		            : error_set(error, -EINVAL,
				      "profile '%s': \"%.60s\" has no value; expected one after it",
				      out->name, key);
	}
	return err ? err : end(&reading);
}

struct printer {
	char *text;
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void put(struct printer *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	const int n = vsnprintf(out->text + out->n, QOS_PROFILE_TEXT - out->n, format, args);

	va_end(args);
	out->n = MIN_OF(out->n + (size_t)MAX_OF(n, 0), QOS_PROFILE_TEXT - 1ul);
}

static void put_dscps(struct printer *out, const char *key, uint64_t dscps)
{
	const char *before = key;

	for (; dscps; dscps &= dscps - 1) {
		put(out, before == key ? " %s " : "%s", before == key ? key : ",");
		put(out, "%d", __builtin_ctzll(dscps));
		before = ",";
	}
}

static void put_act(struct printer *out, unsigned colour, const struct qos_act *act)
{
	put(out, " %s %s", colour_words[colour], act->drops ? "drop" : "pass");
	if (act->dscp != QOS_KEEP)
		put(out, ",dscp:%u", act->dscp);
	if (act->priority != QOS_KEEP)
		put(out, ",priority:%u", act->priority);
}

const char *profile_print(const struct profile *p, char text[QOS_PROFILE_TEXT])
{
	const char *excess = p->terms.marker == POLICE_RFC2698 ? "peak" : "excess";
	struct printer out = {text, 0};
	char rate[32];

	put(&out, "%s rate %s burst %" PRIu64 "B", p->name, words_print_rate(p->rate, rate),
		p->burst);
	if (p->excess_rate)
		put(&out, " %s_rate %s", excess, words_print_rate(p->excess_rate, rate));
	if (p->excess_burst)
		put(&out, " %s_burst %" PRIu64 "B", excess, p->excess_burst);
	put(&out, " counts %s", counts_words[p->terms.counts]);
	if (p->terms.overhead)
		put(&out, " overhead %d", p->terms.overhead);
	put_dscps(&out, "yellow_dscp", p->terms.yellow);
	put_dscps(&out, "red_dscp", p->terms.red);
	for (unsigned i = 0; i < POLICE_COLOURS; i++)
		put_act(&out, i, &p->terms.act[i]);
	return text;
}
