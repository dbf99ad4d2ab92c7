// Settings of the shaper on their way from the control thread to the owner. Each subscriber and
// each aggregate has a word that says what it is to be; the control thread writes it and puts the
// number into a ring, so the newest setting is always in force next. Private to the module.
#pragma once

#include "base/error.h"
#include "qos/qos_fast.h"

enum {
	SHAPER_MTU = 1538, // bytes of a packet of 1500 bytes on the wire
	SHAPER_AGGREGATES = QOS_PROFILES / 2,
	// Each number at most once per batch; the ring is empty when a batch begins.
	SHAPER_NEWS = 2 * QOS_MAX,
	SHAPER_PARENT_SHIFT = 16,
};
#define SHAPER_AGGREGATE (1u << 31) // of a number in the ring: an aggregate
// Of a subscriber's word: slot | parent << SHAPER_PARENT_SHIFT; 0: not shaped.
#define SHAPER_IS_NEW (1ull << 63) // its counters begin with 0; cleared by the owner

// By slot of a profile; never changed while the owner may read it.
struct shaper_slot {
	struct shape_terms terms; // without parent and profile
	struct shape_profile rules;
	uint32_t parent; // of an aggregate: number of its parent, 0: none
	uint8_t link;    // of an aggregate without parent: 1 to QOS_LINKS - 1
};

struct qos_shaper {
	struct shape *shape;
	struct shape_config config;
	unsigned owner;
	const uint64_t *clock; // NULL: TSC; tests have their own
	uint64_t *word;        // by index of subscriber; atomic
	uint32_t *aggregate;   // slot by number; 0: there is none; atomic
	struct shaper_slot *slot;
	uint32_t *news;
	uint64_t links[QOS_LINKS / 64]; // in use; owner
	unsigned next_link;             // owner
	uint8_t life[STATS_MAX_PORTS];  // atomic
	bool is_running;                // atomic
	uint64_t put LINE_ALIGNED;      // atomic; control thread
	uint64_t done LINE_ALIGNED;     // atomic; owner
};

struct shaper_settings {
	uint64_t hz;
	uint32_t most_held; // packets
	unsigned owner;     // id of a worker
	const uint64_t *clock;
};

// What terms are computed for. Control thread, as all below.
struct shape_config shaper_config(uint64_t hz, uint32_t most_held);
// 0, or -errno with `error` set. Owner: caller, shaper_close, when workers have ended.
int shaper_open(struct qos_shaper **out, const struct shaper_settings *settings,
	struct error *error);
void shaper_close(struct qos_shaper *shaper);
// Says what a subscriber, or an aggregate, is to be from now on.
void shaper_set(struct qos_shaper *shaper, uint32_t index, uint64_t word);
void shaper_set_aggregate(struct qos_shaper *shaper, uint32_t number, uint32_t slot);
// Waits until all settings are in force; returns at once if the owner does not run. / Whether it
// would wait.
void shaper_wait(const struct qos_shaper *shaper);
bool shaper_is_behind(const struct qos_shaper *shaper);
