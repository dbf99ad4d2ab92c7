// Settings of the shapers on their way from the control thread to the owners. Each shaped number
// and each aggregate has a word that says what it is to be; the control thread writes it and puts
// the number into the ring of the shaper that has it, so the newest setting is always in force
// next. Private to the module.
#pragma once

#include "base/error.h"
#include "qos/qos_fast.h"

enum {
	SHAPER_MTU = 1538, // bytes of a packet of 1500 bytes on the wire
	SHAPER_AGGREGATES = QOS_PROFILES / 2,
	// An aggregate has its id as number, or this one more: see hierarchy_number.
	SHAPER_OTHER_NUMBER = SHAPER_AGGREGATES,
	// Each number at most once per batch; the ring is empty when a batch begins.
	SHAPER_NEWS = 2 * QOS_SHAPED,
	SHAPER_PARENT_SHIFT = 16,
	SHAPER_OWNER_SHIFT = 32,
};
#define SHAPER_AGGREGATE (1u << 31) // of a number in the ring: an aggregate
// Of a shaped number's word: slot | parent << SHAPER_PARENT_SHIFT | shaper << SHAPER_OWNER_SHIFT;
// 0: not shaped.
#define SHAPER_IS_NEW (1ull << 63) // its counters begin with 0; cleared by the owner

// By slot of a profile; never changed while an owner may read it.
struct shaper_slot {
	struct shape_terms terms; // without parent and profile
	struct shape_profile rules;
	uint32_t parent; // of an aggregate: number of its parent, 0: none
	uint8_t link;    // of an aggregate without parent: 1 to QOS_LINKS - 1
	bool is_moved;   // of an aggregate: it was one of another shaper
};

// What all of them use.
struct qos_shapers {
	unsigned n;
	struct qos_shaper *one[QOS_MOST_SHAPERS];
	struct shape_config config;
	const uint64_t *clock; // NULL: TSC; tests have their own
	uint64_t *word;        // by shaped number; atomic
	uint8_t *has;          // index of the shaper that has it; atomic
	uint32_t *aggregate;   // slot by number; 0: there is none; atomic
	struct shaper_slot *slot;
	uint8_t life[STATS_MAX_PORTS]; // atomic
};

struct qos_shaper {
	struct qos_shapers *all;
	unsigned index;
	unsigned owner; // id of a worker
	struct shape *shape;
	uint32_t *news;
	uint64_t links[(QOS_LINKS + QOS_MOST_SHAPERS) / 64]; // in use; owner
	unsigned next_link;                                  // owner
	struct {
		struct shape_packet *first, *last;
		uint8_t to;
		uint32_t n_added;   // since there were none: packets that came meanwhile
		bool is_full;       // more are dropped until there are none
	} moving;                   // owner
	bool is_running;            // atomic
	uint64_t put LINE_ALIGNED;  // atomic; control thread
	uint64_t done LINE_ALIGNED; // atomic; owner
};

struct shapers_settings {
	uint64_t hz;
	uint32_t most_held; // packets, of which each shaper may hold its share
	unsigned n;
	uint8_t owner[QOS_MOST_SHAPERS]; // ids of workers
	const uint64_t *clock;
};

// What terms are computed for. Control thread, as all below.
struct shape_config shaper_config(uint64_t hz, uint32_t most_held);
// 0, or -errno with `error` set. Owner: caller, shapers_close, when workers have ended.
int shapers_open(struct qos_shapers **out, const struct shapers_settings *settings,
	struct error *error);
void shapers_close(struct qos_shapers *all);
// Which shaper has what is below a link; 0: no link: the shaped number decides.
unsigned shapers_of_link(const struct qos_shapers *all, uint8_t link, uint32_t shaped);
// Says what a shaped number, or an aggregate of a shaper, is to be from now on.
void shapers_set(struct qos_shapers *all, uint32_t shaped, uint64_t word);
void shapers_set_aggregate(struct qos_shapers *all, unsigned shaper, uint32_t number,
	uint32_t slot);
// Waits until all settings are in force; returns at once if no owner runs. / Whether it would wait.
void shapers_wait(const struct qos_shapers *all);
bool shapers_are_behind(const struct qos_shapers *all);
