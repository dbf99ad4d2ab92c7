// Profiles as text. Control thread.
#include "qos/inside.h"

#include <errno.h>
#include <inttypes.h>
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

const char *const counts_words[QOS_WIRE + 1] = {"ip", "ethernet", "wire"};
const char *const colour_words[POLICE_COLOURS] = {"green", "yellow", "red"};
const char *const kind_words[PROFILE_KINDS] = {"rate", "shape", "aggregate"};

int profile_mistake(const struct profile_reading *reading, const char *key, const char *value,
	const char *expected)
{
	return error_set(reading->error, -EINVAL, "profile '%s': %s is \"%.60s\"; expected %s",
		reading->profile->name, key, value, expected);
}

bool words_number(const char *text, long least, long most, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(text, &end, 10);
	return !errno && end != text && !*end && *out >= least && *out <= most;
}

static int read_rate(struct profile_reading *reading, const char *key, const char *value,
	uint64_t *out)
{
	if (*out)
		return error_set(reading->error, -EINVAL, "profile '%s': %s is given twice",
			reading->profile->name, key);
	return words_rate(value, out) ? profile_mistake(reading, key, value,
						"8 kbit/s to 400 Gbit/s, such as 100Mbit/s")
	                              : 0;
}

// Numbers with commas between them.
static int read_dscps(const struct profile_reading *reading, const char *key, char *value,
	uint64_t *out)
{
	char *rest, *word = strtok_r(value, ",", &rest);
	long dscp;

	for (; word; word = strtok_r(NULL, ",", &rest)) {
		if (!words_number(word, 0, MOST_DSCP, &dscp))
			return profile_mistake(reading, key, word,
				"DSCPs from 0 to 63, such as 10,12");
		*out |= 1ull << dscp;
	}
	return 0;
}

// pass, drop, dscp:N, priority:N, dscp:N,priority:N.
static int read_act(const struct profile_reading *reading, const char *key, char *value,
	struct qos_act *act)
{
	char *rest, *word = strtok_r(value, ",", &rest);
	long number;

	*act = (struct qos_act){false, QOS_KEEP, QOS_KEEP};
	for (; word; word = strtok_r(NULL, ",", &rest)) {
		if (!strcmp(word, "drop"))
			act->drops = true;
		else if (!strncmp(word, "dscp:", 5) &&
			 words_number(word + 5, 0, MOST_DSCP, &number))
			act->dscp = number;
		else if (!strncmp(word, "priority:", 9) &&
			 words_number(word + 9, 0, MOST_PRIORITY, &number))
			act->priority = number;
		else if (strcmp(word, "pass"))
			return profile_mistake(reading, key, word,
				"pass, drop, dscp:0 to dscp:63, priority:0 to priority:7");
	}
	return 0;
}

static int read_colour(const struct profile_reading *reading, const char *key, char *value)
{
	for (unsigned i = 0; i < POLICE_COLOURS; i++)
		if (!strcmp(key, colour_words[i]))
			return read_act(reading, key, value, &reading->profile->terms.act[i]);
	return error_set(reading->error, -EINVAL,
		"profile '%s': unknown key \"%.60s\"; expected rate, burst, peak_rate, peak_burst, "
		"excess_rate, excess_burst, counts, overhead, mpu, yellow_dscp, red_dscp, green, "
		"yellow "
		"or red, or shape or aggregate and their keys",
		reading->profile->name, key);
}

static int read_counts(const struct profile_reading *reading, const char *value)
{
	for (unsigned i = 0; i < ARRAY_LEN(counts_words); i++)
		if (!strcmp(value, counts_words[i])) {
			reading->profile->terms.counts = i;
			return 0;
		}
	return profile_mistake(reading, "counts", value, "ip, ethernet or wire");
}

static int read_mpu(const struct profile_reading *reading, const char *key, const char *value)
{
	long bytes;

	if (!words_number(value, 0, QOS_MTU, &bytes))
		return profile_mistake(reading, key, value, "bytes from 0 to 1500");
	reading->profile->terms.mpu = (uint16_t)bytes;
	return 0;
}

// One of the keys that say what kind of a profile it is.
static int read_kind(struct profile_reading *reading, enum profile_kind kind, const char *value)
{
	if (reading->profile->rate && kind != reading->profile->kind)
		return error_set(reading->error, -EINVAL,
			"profile '%s': %s and %s are given; keep one of them",
			reading->profile->name, kind_words[reading->profile->kind],
			kind_words[kind]);
	reading->profile->kind = kind;
	return read_rate(reading, kind_words[kind], value, &reading->profile->rate);
}

static int read_pair(struct profile_reading *reading, const char *key, char *value)
{
	struct profile *profile = reading->profile;
	long number;

	for (unsigned i = 0; i < PROFILE_KINDS; i++)
		if (!strcmp(key, kind_words[i]))
			return read_kind(reading, i, value);
	if (!strcmp(key, "mpu"))
		return read_mpu(reading, key, value);
	if (strcmp(key, "burst") && strcmp(key, "counts") && strcmp(key, "overhead")) {
		int err = shape_read_pair(reading, key, value);

		if (err <= 0)
			return err;
		reading->only[PROFILE_POLICES] = key;
	}
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
	else if (!words_number(value, LEAST_OVERHEAD, MOST_OVERHEAD, &number))
		return profile_mistake(reading, key, value, "bytes from -32 to 64");
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
int profile_read_burst(const struct profile_reading *reading, const char *key, const char *given,
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
		return profile_mistake(reading, key, given, expected);
	return 0;
}

// Keys that another kind of profile has.
static int check_keys(const struct profile_reading *reading)
{
	const struct profile *p = reading->profile;

	if (p->kind == PROFILE_POLICES && reading->weight)
		return error_set(reading->error, -EINVAL,
			"profile '%s': weight has no meaning with rate; remove one of them",
			p->name);
	for (unsigned i = 0; i < PROFILE_KINDS; i++)
		if (i != p->kind && reading->only[i])
			return error_set(reading->error, -EINVAL,
				"profile '%s': %s has no meaning with %s; remove one of them",
				p->name, reading->only[i], kind_words[p->kind]);
	return 0;
}

static int end(struct profile_reading *reading)
{
	struct profile *p = reading->profile;
	const char *name = p->name, *excess = reading->is_peak ? "peak_burst" : "excess_burst";
	const bool has_excess = p->excess_rate || reading->excess_burst;

	if (!p->rate)
		return error_set(reading->error, -EINVAL,
			"profile '%s': no rate; add \"rate "
			"100Mbit/s\"",
			name);
	if (check_keys(reading))
		return -EINVAL;
	if (p->kind != PROFILE_POLICES)
		return shape_read_end(reading);
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
	int err = profile_read_burst(reading, "burst", reading->burst, p->rate, &p->burst);

	if (!err && has_excess)
		err = profile_read_burst(reading, excess, reading->excess_burst,
			p->excess_rate ? p->excess_rate : p->rate, &p->excess_burst);
	return err;
}

int profile_read(const struct qos *qos, struct profile *out, char **rest, struct error *error)
{
	struct profile_reading reading = {.qos = qos, .profile = out, .error = error};
	char *key = strtok_r(NULL, " \t", rest);
	int err = 0;

	out->terms.counts = QOS_ETHERNET;
	shape_start(out);
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
