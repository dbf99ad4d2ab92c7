// Flows: actions and counters by exact match of VRF, addresses, protocol and ports. One thread (the
// control thread) writes; workers read through flow_fast.h under QSBR, and count.
//
// Times are cycles of the TSC, so that tests can pass any.
#pragma once

#include "base/error.h"
#include "flow/flow_fast.h"
#include "wire/addr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flow_table;
struct rcu;

enum {
	FLOW_MAX = (1 << 26) - 1, // flows of both families together
	FLOW_ACTIONS = 1 << 22,   // numbers of actions are 1 to FLOW_ACTIONS - 1
	FLOW_TIMEOUTS = 8,
	FLOW_VRFS = 4096,
	FLOW_MAX_CARRIES = 1 << 18, // counters, by flow and worker, of 2^39 packets or more
	FLOW_MAX_LASTS_MS = 4 * 86400 * 1000, // longest timeout, and latest end
	FLOW_RECORD_BYTES = 64,               // of a file
	FLOW_NO_VRF = UINT16_MAX,
};
static const uint64_t FLOW_MAX_PACKETS = UINT64_MAX >> 2; // that a flow may start with

// When a flow ends by itself: never; when it has been idle for timeout 1 to FLOW_TIMEOUTS (the life
// is the number of the timeout); or at a fixed time, whatever packets there are.
enum flow_life { FLOW_ENDLESS = 0, FLOW_FIXED_END = FLOW_TIMEOUTS + 1, FLOW_LIVES };

// A key as users see it. Ports in host order: 0 if the protocol has none; for ICMP and ICMPv6,
// src_port is the identifier and dst_port 0.
struct flow_tuple {
	struct wire_addr src, dst; // of the same family
	uint16_t src_port, dst_port, vrf;
	uint8_t proto;
};

struct flow_key {
	uint8_t family; // 4 or 6
	union {
		struct flow_key4 four;
		struct flow_key6 six;
	};
};

// 0, or -EINVAL with `error` set: families differ, an IPv4-mapped IPv6 address, a VRF above 4095,
// ports that the protocol does not have, an extension header of IPv6 as protocol, ICMP of the other
// family, all zeros. Any thread.
int flow_key_set(struct flow_key *key, const struct flow_tuple *tuple, struct error *error);
void flow_key_tuple(const struct flow_key *key, struct flow_tuple *tuple);

enum flow_reason { FLOW_ALIVE, FLOW_DELETED, FLOW_IDLE, FLOW_REACHED_END };

// A flow with its counters, summed over the workers.
struct flow_info {
	struct flow_key key;
	uint32_t number, action;
	enum flow_life life;
	enum flow_reason reason; // why it ended
	uint64_t idle_ms;        // since its last packet; if there was none, since it was added
	uint64_t left_ms;        // until its end; only for FLOW_FIXED_END
	uint64_t packets, bytes;
};

// Told once for each flow that has ended, after a grace period, when no worker counts any more of
// its packets: the counters are final. Its action is still in use. It must not call functions of
// the table, except flow_action_of(). Control thread.
typedef void flow_ended_fn(void *ctx, const struct flow_info *info);
// Told of an action that nobody uses any more, when no worker can find it any more. It must not
// call functions of the table. Control thread.
typedef void flow_action_freed_fn(void *ctx, const struct flow_action *action);

// Told when a change has replaced a flow that was learnt: it is not a learnt one any more. It must
// not call functions of the table. Control thread.
typedef void flow_replaced_fn(void *ctx, uint32_t number, const struct flow_key *key);

struct flow_settings {
	uint32_t max4, max6;   // flows of each family; together at most FLOW_MAX
	unsigned n_workers;    // at most FLOW_MAX_WORKERS
	uint64_t hz;           // of the TSC
	uint64_t beside_bytes; // that the caller takes for flows; flow_check() adds them
	uint32_t timeout_ms[FLOW_TIMEOUTS];
	flow_ended_fn *ended;               // NULL: not wanted
	flow_action_freed_fn *action_freed; // NULL: not wanted
	flow_replaced_fn *replaced;         // NULL: not wanted
	void *ctx;
};

// How many bytes a table takes when it is full, without actions, which take 40 to 56 each. Lines,
// half of it, are taken at once, the rest as flows are added. Any thread.
uint64_t flow_bytes(const struct flow_settings *settings);
// Whether flow_create would accept the settings: -EINVAL, -ENOMEM with `error` set. Any thread.
int flow_check(const struct flow_settings *settings, struct error *error);
// NULL with `error` set if the settings are invalid or there is not enough memory: neither address
// space, nor available memory as Linux reports it. Control thread; owner: caller. `now`: of the
// TSC.
struct flow_table *flow_create(const struct flow_settings *settings, uint64_t now,
	struct error *error);
// Requires that no rcu is attached and that saves are closed. Actions in use are not told.
void flow_destroy(struct flow_table *table);
// The workers' view; valid as long as the table.
const struct flow_view *flow_view(const struct flow_table *table);
// From here on workers may use the view. / Waits until none does, and all ended flows were told.
void flow_attach(struct flow_table *table, struct rcu *rcu);
void flow_detach(struct flow_table *table);

// The number of an action, which is in use until flow_action_unuse was called as often, and nothing
// else uses it: flows that have it do. Equal actions have one number. -EINVAL: an unknown kind, a
// DSCP out of range, a next hop without FLOW_TO_HOP or FLOW_TO_HOP without one; -ENOSPC: there is
// no number left; may wait for workers then. With `error` set. Control thread.
int flow_action_use(struct flow_table *table, const struct flow_action *action, uint32_t *number,
	struct error *error);
// The number may be another action's afterwards, unless flows or others use it. Control thread.
void flow_action_unuse(struct flow_table *table, uint32_t number);
// The number of an action that is in use, 0: it is not. Control thread.
uint32_t flow_action_find(const struct flow_table *table, const struct flow_action *action);
// NULL: the number is not in use. Control thread.
const struct flow_action *flow_action_of(const struct flow_table *table, uint32_t number);
// Numbers in use are below this. Control thread.
uint32_t flow_actions_end(const struct flow_table *table);
// A learnt action is not to be followed any more: from now on, packets of its flows go by route,
// and flow_end_withdrawn() ends them. Control thread.
void flow_action_withdraw(struct flow_table *table, uint32_t number);

enum flow_op { FLOW_ADD, FLOW_REPLACE, FLOW_DELETE };

// ADD fails if the flow exists, unless it was learnt and this one is not: then, it is as REPLACE,
// since users do not know what was learnt. REPLACE adds it, or replaces its action and life: its
// counters go on, its timeout starts again. DELETE ends it.
struct flow_change {
	enum flow_op op;
	enum flow_life life;
	struct flow_key key;
	uint32_t action;
	bool is_learnt;          // only for ADD
	uint32_t lasts_ms;       // FLOW_FIXED_END: from now on
	uint32_t idle_ms;        // only for a new flow: idle for so long already
	uint64_t packets, bytes; // only for a new flow: counted already
};

// Applies changes one by one, in order; each is seen by workers at once. result[i]: 0, or -EEXIST,
// -ENOENT, -ENOSPC (full: there is neither a number nor a line for it; nothing has changed),
// -EINVAL (an action that is not in use, life or time out of range, packets above
// FLOW_MAX_PACKETS), -E2BIG (there are FLOW_MAX_CARRIES already), -ENOMEM.
// Returns how many were applied. May wait for workers for a moment if many flows have ended.
// Control thread.
size_t flow_change(struct flow_table *table, const struct flow_change change[], size_t n,
	uint64_t now, int result[]);

// Whether a flow of this family could be added without waiting for workers. Control thread.
bool flow_has_space(const struct flow_table *table, uint8_t family);
// Whether flows have this VRF; also those that have ended and are not yet told. Control thread.
bool flow_vrf_used(const struct flow_table *table, uint16_t vrf);

// Whether the flow exists; fills *info. Control thread.
bool flow_find(const struct flow_table *table, const struct flow_key *key, uint64_t now,
	struct flow_info *info);
// The first flow whose number is `from` or higher, for listing all: continue with its number + 1.
// A flow keeps its number as long as it lives, so that changes meanwhile neither hide nor repeat
// others. Control thread.
bool flow_next(const struct flow_table *table, uint32_t from, uint64_t now, struct flow_info *info);
// The same, but looks at `most` numbers only, from *from on; sets *from to where to go on, or to 0
// if there are no more. False: none found. Control thread.
bool flow_next_within(const struct flow_table *table, uint32_t *from, uint32_t most, uint64_t now,
	struct flow_info *info);

// Changes timeout `life` (1 to FLOW_TIMEOUTS), also for existing flows. Control thread.
void flow_set_timeout(struct flow_table *table, unsigned life, uint32_t timeout_ms);
// Ends flows that are due: each within a second of its time, as long as no more than about two
// million are due in a second. Takes less than a millisecond; returns whether it is behind, and
// should be called again before the thread sleeps. Call it at least ten times a second. Control
// thread.
bool flow_age(struct flow_table *table, uint64_t now);
// Whether ageing is behind its time and could go on at once: it should have more of the thread's
// time than other work on the table. Control thread.
bool flow_age_is_late(const struct flow_table *table);
// Ends flows whose action was withdrawn, as if they were deleted. Takes less than a millisecond;
// returns whether there may be more. Control thread.
bool flow_end_withdrawn(struct flow_table *table, uint64_t now);

struct flow_usage {
	uint64_t bytes; // as flow_bytes(), and actions
	struct flow_usage_family {
		uint32_t n, max, n_ending; // flows; of those not counted in `n`, not yet told
		uint32_t n_lines;
		uint64_t n_moves; // entries moved to make space for others
		uint64_t n_full;  // additions refused
	} four, six;
	uint64_t n_added, n_deleted, n_idle, n_reached_end;
	uint64_t n_actions;        // in use
	const char *lookup, *hash; // the variants in use
};
void flow_usage(const struct flow_table *table, struct flow_usage *usage);

// Files of flows. What an action means is written to the file by the caller, so that it can be
// found again after a restart, when its number means something else.

// Describes an action in a record of a file. Control thread.
typedef void flow_describe_fn(void *ctx, uint32_t action, uint8_t record[FLOW_RECORD_BYTES]);

// Describes a VRF, so that it can be found by its name. Control thread.
typedef void flow_describe_vrf_fn(void *ctx, uint16_t vrf, uint8_t record[FLOW_RECORD_BYTES]);

struct flow_save_settings {
	const char *path; // valid until flow_save_close
	flow_describe_fn *describe;
	flow_describe_vrf_fn *describe_vrf; // VRFs other than 0; NULL: not wanted
	void *ctx;
};

// Saving: each step saves some thousand flows, as they are then, and takes about a millisecond. A
// thread writes the file beside `path`, and renames it when it is complete. NULL with `error` set.
// Uses the actions that it has seen until flow_save_close. Control thread; owner: caller.
struct flow_save;
struct flow_save *flow_save_open(struct flow_table *table,
	const struct flow_save_settings *settings, struct error *error);
// 1: there is more to do. 0: the file is complete. -errno with `error` set: it cannot be completed.
// `wall_ms`: the time since 1970.
int flow_save_step(struct flow_save *save, uint64_t now, uint64_t wall_ms, struct error *error);
// Whether the next step can only wait for the disk.
bool flow_save_is_waiting(const struct flow_save *save);
uint64_t flow_save_n(const struct flow_save *save); // flows saved so far
// If the file is not complete, it is removed. Waits for a write that is under way.
void flow_save_close(struct flow_save *save);

// Loading: open, check until it returns 0, find out what the actions mean, apply until it returns
// 0. `fd` is closed by flow_load_close, or if opening fails; `name` is for messages. All three
// return 1 if there is more to do, or -errno with `error` set. Nothing is applied before the whole
// file is valid. Flows that exist are replaced; of several records of one flow, the last one holds.
// Control thread; owner: caller.
struct flow_load;
struct flow_load *flow_load_open(int fd, const char *name, struct error *error);
int flow_load_check(struct flow_load *load, struct error *error);
// The records of the actions, once the file has been checked; valid until flow_load_free_some.
const void *flow_load_actions(const struct flow_load *load, uint32_t *n);
// Whether it has flows of a VRF, once it has been checked.
bool flow_load_has_vrf(const struct flow_load *load, uint16_t vrf);

struct flow_load_options {
	// By number of its record: the action that flows get; 0: they are refused (-ENODEV).
	const uint32_t *action;
	// By VRF of the file: the VRF that flows get; FLOW_NO_VRF: they are refused (-ENXIO). NULL:
	// the same.
	const uint16_t *vrf;
	bool deletes;        // the flows of the file, whatever their actions are
	uint64_t wall_ms;    // since 1970, for flows that have aged since they were saved
	bool keeps_counters; // new flows start with the packets and bytes of the file
};
int flow_load_apply(struct flow_load *load, struct flow_table *table,
	const struct flow_load_options *options, uint64_t now, struct error *error);

struct flow_loaded {
	uint64_t n4, n6;      // flows in the file, once it has been checked
	uint32_t max_action;  // the highest number of an action that a flow has
	unsigned max_timeout; // the highest number of an idle timeout that a flow has
	uint64_t n_applied, n_refused;
	uint64_t first_refused;  // its number, from 1 on; 0: none
	int first_error;         // as in flow_change(), or -ENODEV, -ENXIO
	uint32_t refused_action; // of the first one refused, if that was -ENODEV
	uint16_t refused_vrf;    // the same, if that was -ENXIO
};
// Whether a file begins as a file of flows does; it may be another one or damaged.
bool flow_file_begins(int fd);
struct flow_loaded flow_load_result(const struct flow_load *load);
// Frees some of what it holds, which takes less than a millisecond; true: there is more. Only
// flow_load_result and flow_load_close may follow. / Frees all the rest.
bool flow_load_free_some(struct flow_load *load);
void flow_load_close(struct flow_load *load);

enum { FLOW_LEARN_RING = 8192 }; // keys of each worker that wait for the control thread
// Rings from workers to the control thread. NULL with `error` set. Control thread; owner: caller.
struct flow_learn *flow_learn_open(unsigned n_workers, struct error *error);
// Requires that no worker uses it.
void flow_learn_close(struct flow_learn *learn);
// How many bytes the rings of so many workers take, once something was told.
uint64_t flow_learn_bytes(unsigned n_workers);
// How many keys the control thread wants in a second; each worker tells about twice as many at
// most. 0: none. At first: none. Control thread.
void flow_learn_set_rate(struct flow_learn *learn, uint32_t rate);
// Whether no keys of an interface / of a VRF are wanted at present. Control thread.
void flow_learn_set_iface_full(struct flow_learn *learn, uint16_t iface, bool is_full);
void flow_learn_set_vrf_full(struct flow_learn *learn, uint16_t vrf, bool is_full);
// Takes at most n of what a worker has told, oldest first; returns how many. Control thread.
unsigned flow_learn_take(struct flow_learn *learn, unsigned worker, struct flow_unknown out[],
	unsigned n);
