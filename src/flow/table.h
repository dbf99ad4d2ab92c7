// The parts of a flow table. Control thread.
#pragma once

#include "base/hash_table.h"
#include "flow/actions.h"
#include "flow/flow.h"
#include "flow/layout.h"
#include "flow/lookup.h"
#include "rcu/rcu.h"

// The lines of one family, and its flow numbers: first + 1 to first + max.
struct index {
	bool is6;
	union line *lines;
	uint32_t n_lines;
	uint32_t first, max;
	uint32_t top;  // numbers up to first + top have been used
	uint32_t free; // a number that is free again, which leads to the next one (line_of)
	uint32_t n, n_ending;
	uint64_t n_moves, n_full;
};

// What waits for a grace period: flows, and actions that were replaced in a flow, which is one of
// their users until then.
enum deferred_kind { DEFERRED_FLOW, DEFERRED_ACTION };

// Ended flows that are told, and actions that are unused, at a time: about a millisecond.
enum { FREED_AT_ONCE = 2048 };

// A flow that workers cannot find any more, until a grace period has passed.
struct ending {
	struct flow_key key;
	uint32_t flow, action;
	enum flow_reason reason;
};

// By flow number: how it ends. The tick is the one at which it was added; of a fixed end, the one
// at which it ends.
enum { LIFE_TICK_BITS = 24, LIFE_TICK = (1 << LIFE_TICK_BITS) - 1 };
enum { LIFE_ALIVE = 1 << 24, LIFE_CARRIED = 1 << 25, LIFE_LEARNT = 1 << 26, LIFE_SHIFT = 28 };

// Flows are searched in blocks; a block is not searched before anything in it may be due.
enum { BLOCK_FLOWS = 512 };

// By flow number: the lower bits of the tick at which the hand looks at it, before it may be due.
enum { LOOK_BITS = 16 };

// A flow with so many packets on a worker that their number does not fit into its counter: how
// often the counter's top bit has changed. LIFE_CARRIED tells which flows have one.
enum { FIRST_CARRIES = 1 << 6 };
struct carry {
	struct hash_node node; // the hash is the flow's number
	uint16_t worker;
	bool was_set;
	uint64_t n_changes;
};

// A step of the search for space: the line that an entry of the parent's line may move to.
enum { MAX_STEPS = 1000, NO_PARENT = UINT16_MAX };
struct step {
	uint32_t line;
	uint16_t parent;
	uint8_t slot; // in the parent's line
};

struct flow_table {
	struct flow_view view;
	struct index index[2]; // IPv4, IPv6
	struct flow_settings settings;
	uint32_t end; // flow numbers are below this
	uint64_t bytes;
	const char *lookup, *hash;

	uint32_t *line_of; // by flow number: its line; of a free one, the next free one
	uint32_t *life;    // by flow number; 0: free
	uint16_t *look;    // by flow number
	uint32_t *due;     // by block: tick at which to search it, the earliest of its flows' looks
	uint32_t n_blocks, hand;
	uint32_t turn_tick;                   // at which the hand last started
	uint32_t n_unvisited, withdrawn_hand; // numbers whose flows may have withdrawn actions
	uint32_t timeout_ticks[FLOW_TIMEOUTS + 1];

	struct record6 *records6;
	struct shadow *shadow;
	uint64_t n_published, guard;

	struct actions actions;
	struct rcu_defer defer;
	struct ending *ending; // beside the flows of `defer`
	uint32_t ending_head, ending_tail;
	uint64_t now; // of the latest call that passed it
	struct hash_table carries;
	uint64_t n_added, n_ended[FLOW_REACHED_END + 1];
	uint32_t n_of_vrf[FLOW_VRFS]; // flows, also those that are not yet told
	struct step steps[MAX_STEPS];
};

// An entry of a line, outside of it.
struct entry {
	struct flow_key4 key; // IPv4
	uint32_t flow, action;
	uint16_t tag; // IPv6
};

struct place {
	uint32_t line;
	unsigned slot;
};

static inline struct index *index_of(struct flow_table *table, uint8_t family)
{
	return &table->index[family == 6];
}

// The family of a flow number.
static inline bool number_is6(const struct flow_table *table, uint32_t flow)
{
	return flow > table->view.first6;
}

static inline struct index *index_with(struct flow_table *table, uint32_t flow)
{
	return &table->index[number_is6(table, flow)];
}

static inline struct record6 *record_of(const struct flow_table *table, uint32_t flow)
{
	return &table->records6[flow - table->view.first6];
}

// place.c: where entries are.
// False: there is no such flow.
bool place_find(const struct flow_table *table, const struct flow_key *key, uint64_t hash,
	struct place *place);
// The place of a flow that is in the table.
struct place place_of(const struct flow_table *table, uint32_t flow);
struct entry place_get(const struct flow_table *table, const struct index *index,
	struct place place);
// Puts an entry in, moving others if that is necessary. -ENOSPC: there is no place; nothing has
// changed.
int place_insert(struct flow_table *table, struct index *index, const struct entry *entry,
	uint64_t hash);
void place_erase(struct flow_table *table, struct index *index, struct place place);
// Replaces an action.
void place_set_action(struct flow_table *table, struct index *index, struct place place,
	uint32_t action);

// numbers.c: flow numbers.
// Once, when the view is complete.
void numbers_open(struct flow_table *table);
// FLOW_NONE: all are used, or wait for workers. Its counters are 0.
uint32_t number_take(struct flow_table *table, struct index *index);
// Makes a number free that no worker uses any more.
void number_give(struct flow_table *table, uint32_t flow);

// So many ticks into the future a packet may have been seen: clocks of cores differ a little.
enum { EARLY_TICKS = 64 };

static inline uint32_t idle_since(uint32_t seen, uint32_t tick)
{
	const uint32_t idle = (tick - seen) & LIFE_TICK;

	return idle > LIFE_TICK - EARLY_TICKS ? 0 : idle;
}

// How many ticks before `tick` the last packet of a flow was; if there was none, how long the flow
// has been there, or 0 if it has a fixed end. *any: the bits of its counters of packets. Control
// thread; for the hand, which does this for each flow.
static inline uint32_t idle_of(const struct flow_table *table, uint32_t flow, uint32_t tick,
	uint64_t *any)
{
	const uint32_t life = table->life[flow];
	uint32_t idle = life >> LIFE_SHIFT == FLOW_FIXED_END ? LIFE_TICK : idle_since(life, tick);

	*any = 0;
	for (unsigned worker = 0; worker < table->settings.n_workers; worker++) {
		const uint64_t word =
			__atomic_load_n(&table->view.count[worker][flow].packets_and_seen,
				__ATOMIC_RELAXED);
		*any |= word;
		idle = word ? MIN_OF(idle, idle_since(word, tick)) : idle;
	}
	return idle == LIFE_TICK ? 0 : idle;
}

// count.c: counters.
// The sums over all workers.
struct count_sum {
	uint64_t packets, bytes;
};
struct count_sum count_sum(const struct flow_table *table, uint32_t flow);
// For a flow that starts with so many packets on worker 0. 0, -ENOMEM or -E2BIG.
int carry_start(struct flow_table *table, uint32_t flow, uint64_t packets);
// Notes counters of a flow whose top bit has changed; to be called at least once in an hour if it
// is LIFE_CARRIED or the top bit of a counter is set.
void carry_follow(struct flow_table *table, uint32_t flow);
void carry_forget(struct flow_table *table, uint32_t flow);

// change.c
// Takes a flow out of what workers find; it is told and its number is free after a grace period.
// Waits for workers if too many are pending.
void change_end(struct flow_table *table, struct index *index, struct place place,
	enum flow_reason reason);
// rcu_defer's callback.
void change_free(void *ctx, struct rcu_block block);

static inline uint16_t vrf_of_key(const struct flow_key *key)
{
	return key->family == 6 ? key->six.vrf : flow_kind4_vrf(key->four.kind);
}

// What is said of a flow, alive or ended. `key` and `action` are the caller's.
struct flow_info info_of(const struct flow_table *table, uint32_t flow, uint64_t now);

// age.c: when flows end.
void age_open(struct flow_table *table);
// The tick at which the flow may end at the earliest, if it has no more packets; `tick` is now. For
// an endless one, when to look at it again.
uint32_t age_due(const struct flow_table *table, uint32_t flow, uint32_t tick);
// To be called when the life of a flow was set.
void age_expect(struct flow_table *table, uint32_t flow);
// Rounded up. / Rounded down.
uint32_t age_ticks(const struct flow_table *table, uint64_t ms);
uint64_t age_ms(const struct flow_table *table, uint64_t ticks);
