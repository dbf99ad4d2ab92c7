// The keys of profiles that shape, and of aggregates. Control thread.
#include "qos/inside.h"

#include <errno.h>
#include <stdlib.h>

enum {
	LAST_CLASS = SHAPE_CLASSES - 1,
	USUAL_PERCENT = 50,
	USUAL_TARGET_US = 5000,
	USUAL_INTERVAL_US = 100000,
	USUAL_LIMIT_US = 200000,
	USUAL_LIMIT_BYTES = 4000000,
	MOST_TIME_US = 10000000,
	USUAL_PACKETS = 2,
	PER_SECOND = 1000, // a burst of 1 ms
	USUAL_WEIGHT = 16,
	DSCPS = 64,
	PRIORITIES = 8,
	EXPEDITED = 46, // and what controls the network: CS6, CS7
	CONTROL = 48,
	NETWORK = 56,
};

static void set_dscp(struct qos_terms *terms, unsigned dscp, uint64_t class)
{
	uint64_t *word = &terms->dscp_classes[dscp >> 5];
	const unsigned shift = 2 * (dscp & 31);

	*word = (*word & ~(3ull << shift)) | class << shift;
}

static void set_priority(struct qos_terms *terms, unsigned priority, unsigned class)
{
	const unsigned shift = 2 * priority;

	terms->priority_classes =
		(uint16_t)((terms->priority_classes & ~(3u << shift)) | class << shift);
}

// "VALUE:CLASS,..."; all others are in the last class.
static int read_classes(struct profile_reading *reading, const char *key, char *value, long most)
{
	struct qos_terms *terms = &reading->profile->terms;
	const bool is_dscp = most == DSCPS - 1;
	char *rest, *word = strtok_r(value, ",", &rest);
	long number, class;

	if (is_dscp)
		memset(terms->dscp_classes, 0xff, sizeof(terms->dscp_classes));
	terms->priority_classes = is_dscp ? terms->priority_classes : 0xffff;
	terms->by_priority |= !is_dscp;
	for (; word; word = strtok_r(NULL, ",", &rest)) {
		char *colon = strchr(word, ':');

		if (colon)
			*colon = 0;
		if (!colon || !words_number(word, 0, most, &number) ||
			!words_number(colon + 1, 0, LAST_CLASS, &class)) {
			if (colon)
				*colon = ':';
			return profile_mistake(reading, key, word,
				is_dscp ? "DSCPs from 0 to 63 with classes from 0 to 3, such as "
					  "46:0,10:1"
					: "priorities from 0 to 7 with classes from 0 to 3, such "
					  "as 5:0,3:1");
		}
		if (is_dscp)
			set_dscp(terms, (unsigned)number, (unsigned)class);
		else
			set_priority(terms, (unsigned)number, (unsigned)class);
	}
	return 0;
}

static int read_weights(struct profile_reading *reading, const char *key, char *value)
{
	uint8_t *weight = reading->profile->queues.weight;
	char *rest, *word = strtok_r(value, ",", &rest);
	unsigned n = 1;
	long number;

	for (; word; word = strtok_r(NULL, ",", &rest), n++) {
		if (n == SHAPE_CLASSES || !words_number(word, 1, SHAPE_MOST_CLASS_WEIGHT, &number))
			break;
		weight[n] = (uint8_t)number;
	}
	return word || n < SHAPE_CLASSES
	               ? profile_mistake(reading, key, word ? word : value,
				 "three weights from 1 to 64 for the classes 1 to 3, such as 4,2,1")
	               : 0;
}

static int read_time(struct profile_reading *reading, const char *key, const char *value,
	uint32_t *out)
{
	uint64_t us;

	if (words_time(value, &us) || !us || us > MOST_TIME_US)
		return profile_mistake(reading, key, value, "1us to 10s, such as 5ms");
	*out = (uint32_t)us;
	return 0;
}

static int read_limit_bytes(struct profile_reading *reading, const char *key, const char *value)
{
	uint64_t bytes;

	if (words_burst(value, 0, &bytes) || bytes < SHAPER_MTU)
		return profile_mistake(reading, key, value, "1538B to 4294967295B, such as 4MB");
	reading->profile->queues.limit_bytes = (uint32_t)bytes;
	return 0;
}

static int read_queue(struct profile_reading *reading, const char *key, const char *value)
{
	struct shape_profile *queues = &reading->profile->queues;

	queues->is_fair = !strcmp(value, "fq_codel");
	queues->is_fifo = !strcmp(value, "fifo");
	return queues->is_fair || queues->is_fifo || !strcmp(value, "codel")
	               ? 0
	               : profile_mistake(reading, key, value, "codel, fq_codel or fifo");
}

static int read_limit_packets(struct profile_reading *reading, const char *key, const char *value)
{
	long packets;

	if (!words_number(value, 1, UINT16_MAX, &packets))
		return profile_mistake(reading, key, value, "1 to 65535 packets");
	reading->profile->queues.limit_packets = (uint32_t)packets;
	return 0;
}

static int read_ecn(struct profile_reading *reading, const char *key, const char *value)
{
	reading->profile->queues.marks = !strcmp(value, "yes");
	return reading->profile->queues.marks || !strcmp(value, "no")
	               ? 0
	               : profile_mistake(reading, key, value, "yes or no");
}

static int read_strict(struct profile_reading *reading, const char *key, const char *value)
{
	long percent;

	if (!words_number(value, 1, 100, &percent))
		return profile_mistake(reading, key, value, "1 to 100, percent of the rate");
	reading->profile->queues.strict_percent = (uint8_t)percent;
	return 0;
}

static int read_queues(struct profile_reading *reading, const char *key, char *value)
{
	struct shape_profile *queues = &reading->profile->queues;

	if (!strcmp(key, "strict"))
		return read_strict(reading, key, value);
	if (!strcmp(key, "weights"))
		return read_weights(reading, key, value);
	if (!strcmp(key, "class_dscp"))
		return read_classes(reading, key, value, DSCPS - 1);
	if (!strcmp(key, "class_priority"))
		return read_classes(reading, key, value, PRIORITIES - 1);
	if (!strcmp(key, "queue"))
		return read_queue(reading, key, value);
	if (!strcmp(key, "target"))
		return read_time(reading, key, value, &queues->target_us);
	if (!strcmp(key, "interval"))
		return read_time(reading, key, value, &queues->interval_us);
	if (!strcmp(key, "limit"))
		return read_time(reading, key, value, &queues->limit_us);
	if (!strcmp(key, "limit_packets"))
		return read_limit_packets(reading, key, value);
	if (!strcmp(key, "ecn"))
		return read_ecn(reading, key, value);
	return strcmp(key, "limit_bytes") ? 1 : read_limit_bytes(reading, key, value);
}

static int read_weight(struct profile_reading *reading, const char *key, const char *value)
{
	long weight;

	if (!words_number(value, 1, SHAPE_MOST_WEIGHT, &weight))
		return profile_mistake(reading, key, value, "1 to 256");
	reading->profile->weight = (uint16_t)weight;
	reading->weight = key;
	return 0;
}

static int read_parent(struct profile_reading *reading, const char *value)
{
	struct profile *profile = reading->profile;
	const struct profile *parent = profile_named(reading->qos, value);

	if (!parent || !strcmp(value, profile->name))
		return error_set(reading->error, -EINVAL,
			"profile '%s': parent: there is no other profile \"%.60s\"; add it first",
			profile->name, value);
	profile->parent = parent->id;
	strcpy(profile->parent_name, parent->name);
	return 0;
}

int shape_read_pair(struct profile_reading *reading, const char *key, char *value)
{
	if (!strcmp(key, "weight"))
		return read_weight(reading, key, value);
	if (!strcmp(key, "parent")) {
		reading->only[PROFILE_JOINS] = key;
		return read_parent(reading, value);
	}
	if (!strcmp(key, "oversubscribe")) {
		reading->only[PROFILE_JOINS] = key;
		reading->profile->may_exceed = !strcmp(value, "yes");
		return reading->profile->may_exceed || !strcmp(value, "no")
		               ? 0
		               : profile_mistake(reading, key, value, "yes or no");
	}
	int err = read_queues(reading, key, value);

	if (err <= 0)
		reading->only[PROFILE_SHAPES] = key;
	return err;
}

void shape_start(struct profile *profile)
{
	struct qos_terms *terms = &profile->terms;

	profile->weight = USUAL_WEIGHT;
	profile->queues = (struct shape_profile){.strict_percent = USUAL_PERCENT,
		.weight = {1, 1, 1, 1},
		.is_fair = true,
		.target_us = USUAL_TARGET_US,
		.interval_us = USUAL_INTERVAL_US,
		.limit_us = USUAL_LIMIT_US,
		.limit_bytes = USUAL_LIMIT_BYTES};
	memset(terms->dscp_classes, 0xff, sizeof(terms->dscp_classes));
	set_dscp(terms, EXPEDITED, 0);
	set_dscp(terms, CONTROL, 0);
	set_dscp(terms, NETWORK, 0);
	terms->priority_classes = 0xffff;
}

static enum shape_level level_of(const struct profile *profile)
{
	return profile->kind == PROFILE_SHAPES ? SHAPE_SUBSCRIBER : SHAPE_AGGREGATE;
}

int shape_read_end(struct profile_reading *reading)
{
	struct profile *p = reading->profile;
	const struct qos_settings *settings = &reading->qos->settings;
	const struct shape_config config = shaper_config(settings->hz, settings->most_held);
	const uint64_t least = MAX_OF(USUAL_PACKETS * (uint64_t)SHAPER_MTU,
		(uint64_t)p->weight * SHAPE_WEIGHT_BYTES);
	struct error inner;

	if (!settings->most_held)
		return error_set(reading->error, -EINVAL,
			"profile '%s': %s needs the key qos.held_packets in the configuration "
			"file; add it and restart",
			p->name, kind_words[p->kind]);
	p->burst = MAX_OF(p->rate / 8 / PER_SECOND, least);
	if (reading->burst &&
		profile_read_burst(reading, "burst", reading->burst, p->rate, &p->burst))
		return -EINVAL;
	if (p->queues.is_fifo && p->queues.marks)
		return error_set(reading->error, -EINVAL,
			"profile '%s': ecn has no meaning with queue fifo; remove one of them",
			p->name);
	const struct shape_setting setting = {p->rate, p->burst, 0, p->weight, 0};

	if (shape_terms_of(&config, &setting, level_of(p), &p->shape_terms, &inner))
		return error_set(reading->error, -EINVAL, "profile '%s': %s", p->name, inner.text);
	p->terms.marker = POLICE_MARKERS;
	p->terms.shapes = p->kind == PROFILE_SHAPES;
	p->terms.is_fair = p->queues.is_fair;
	for (unsigned i = 0; i < POLICE_COLOURS; i++)
		p->terms.act[i].drops = false;
	return 0;
}
