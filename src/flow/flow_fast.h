// The part of the flow table that workers read. No function here allocates, locks or makes system
// calls.
#pragma once

#include "base/bits.h"

#include <stdbool.h>
#include <stdint.h>

// The key of an IPv4 flow, in memory order as bytes 8 to 23 of an IPv4 header without options,
// followed by the ports: one 16-byte load from the packet yields it, once `kind` has been replaced.
// Ports are 0 for protocols without any; the source port is the identifier for ICMP.
struct flow_key4 {
	uint32_t kind; // flow_kind4()
	uint32_t src_be, dst_be;
	uint16_t src_port_be, dst_port_be;
} __attribute__((aligned(16)));
_Static_assert(sizeof(struct flow_key4) == 16, "one 16-byte word");

struct flow_key6 {
	uint8_t src[16], dst[16];
	uint16_t src_port_be, dst_port_be;
	uint8_t proto, zero;
	uint16_t vrf;
} __attribute__((aligned(8)));
_Static_assert(sizeof(struct flow_key6) == 40, "no padding: keys are compared as bytes");

// VRF: 12 bits. The upper 12 bits of `kind` are 0 in the keys that are looked up.
static inline uint32_t flow_kind4(uint16_t vrf, uint8_t proto)
{
	return (vrf & 0xff) | (uint32_t)proto << 8 | (uint32_t)(vrf >> 8 & 0xf) << 16;
}

static inline uint16_t flow_kind4_vrf(uint32_t kind)
{
	return (kind & 0xff) | (kind >> 16 & 0xf) << 8;
}

static inline uint8_t flow_kind4_proto(uint32_t kind)
{
	return kind >> 8;
}

// What happens to the packets of a flow: one aligned word. Many flows share an action.
enum flow_effect { FLOW_BY_ROUTE, FLOW_TO_HOP, FLOW_DROP, FLOW_PUNT, N_FLOW_EFFECTS };
enum { FLOW_KEEP_DSCP = 64, FLOW_NO_MIRROR = 0xffff };
struct flow_action {
	uint32_t held;       // FLOW_TO_HOP: the number of a held next hop (fib_hold), else 0
	uint32_t subscriber; // 0: none
	// Of FLOW_TO_HOP, if the next hop was learnt from a route: 1 + the VRF that its interface
	// had; else 0. Packets to a learnt next hop go by route while it does not forward them, and
	// once it is withdrawn (atomic, relaxed; 0 in actions that are given).
	uint16_t learnt, withdrawn;
	uint16_t mirror; // interface that gets a copy of each packet, or FLOW_NO_MIRROR
	uint8_t effect;  // enum flow_effect
	uint8_t dscp;    // to be set: 0 to 63, or FLOW_KEEP_DSCP
} __attribute__((aligned(16)));
_Static_assert(sizeof(struct flow_action) == 16, "one 16-byte word");

// The counters of a flow on one worker: packets (40 bits) above the tick of the last one (24 bits),
// and bytes. Written only by that worker; by the control thread while no worker can find the flow.
struct flow_count {
	uint64_t packets_and_seen; // 0: no packet yet
	uint64_t bytes;
} __attribute__((aligned(16)));
enum { FLOW_SEEN_BITS = 24 };

enum { FLOW_BURST = 64, FLOW_NONE = 0, FLOW_MAX_WORKERS = 128 };
enum { FLOW_FAR_BYTES = 1 << 20 }; // lines that are not expected in a core's own caches

// State of a pipelined lookup of at most FLOW_BURST keys, and its result: for each key, the number
// of its flow, FLOW_NONE if there is none, and its action (undefined if there is none). Both are
// undefined until the end.
struct flow_lookup {
	unsigned n;                     // number of keys
	const struct flow_count *count; // of this worker: prefetched for flows found; NULL: not
	uint32_t flow[FLOW_BURST] LINE_ALIGNED, action[FLOW_BURST];
	// The rest is internal. A bit for each key that was not found in its first line, and for
	// each one whose line changed while it was read.
	uint64_t missed, unsure;
	uint32_t line[2][FLOW_BURST] LINE_ALIGNED;
	uint32_t seen[FLOW_BURST] LINE_ALIGNED; // state of the first line
	uint32_t record[FLOW_BURST];            // IPv6
	uint16_t tag[FLOW_BURST];               // IPv6
};

struct flow_view;
typedef void flow_begin4_fn(const struct flow_view *view, const struct flow_key4 key[],
	struct flow_lookup *lookup);
typedef void flow_begin6_fn(const struct flow_view *view, const struct flow_key6 key[],
	struct flow_lookup *lookup);
typedef void flow_hash4_fn(const struct flow_view *view, const struct flow_key4 key[],
	uint64_t hash[], unsigned n);
typedef void flow_hash6_fn(const struct flow_view *view, const struct flow_key6 key[],
	uint64_t hash[], unsigned n);

// The keys of the hash: random, never shown.
enum { FLOW_HASH_ROUNDS = 4 };
struct flow_secret {
	uint8_t round[1 + FLOW_HASH_ROUNDS][16];
} LINE_ALIGNED;

// The workers' view of a table. Nothing in it changes while workers run.
struct flow_view {
	const void *lines4, *lines6;
	uint32_t n_lines4, n_lines6; // 0: the table has no flows of this family
	uint32_t first6;             // flow number of IPv6 record 0, which is not used
	unsigned tick_shift;         // see flow_tick()
	const void *records6;
	const void *shadow; // the line that is being changed
	flow_hash4_fn *hash4;
	flow_hash6_fn *hash6;
	flow_begin4_fn *begin4, *continue4, *end4;
	flow_begin6_fn *begin6, *continue6, *end6;
	const struct flow_action *actions;          // by number; each is written before it is used
	struct flow_count *count[FLOW_MAX_WORKERS]; // by worker, then by flow number
	uint32_t end;                               // above all flow numbers
	struct flow_secret secret;
} LINE_ALIGNED;

// Bulk lookups in three stages, for workers that do other work while prefetches complete: each
// stage prefetches what the next one reads. lookup->n is up to FLOW_BURST. Between the stages the
// keys must not change and the worker must not report a quiescent state. A flow number is valid
// until the worker reports a quiescent state (rcu/rcu_fast.h): until then its packets may be
// counted, also if the flow is deleted meanwhile. A flow that is in the table during the whole
// lookup is found, with an action that it had during the lookup. Worker.
static inline void flow_lookup4_begin(const struct flow_view *view, const struct flow_key4 key[],
	struct flow_lookup *lookup)
{
	view->begin4(view, key, lookup);
}

static inline void flow_lookup4_continue(const struct flow_view *view, const struct flow_key4 key[],
	struct flow_lookup *lookup)
{
	view->continue4(view, key, lookup);
}

static inline void flow_lookup4_end(const struct flow_view *view, const struct flow_key4 key[],
	struct flow_lookup *lookup)
{
	view->end4(view, key, lookup);
}

static inline void flow_lookup6_begin(const struct flow_view *view, const struct flow_key6 key[],
	struct flow_lookup *lookup)
{
	view->begin6(view, key, lookup);
}

static inline void flow_lookup6_continue(const struct flow_view *view, const struct flow_key6 key[],
	struct flow_lookup *lookup)
{
	view->continue6(view, key, lookup);
}

static inline void flow_lookup6_end(const struct flow_view *view, const struct flow_key6 key[],
	struct flow_lookup *lookup)
{
	view->end6(view, key, lookup);
}

// All stages at once. Worker.
static inline void flow_lookup4(const struct flow_view *view, const struct flow_key4 key[],
	struct flow_lookup *lookup)
{
	view->begin4(view, key, lookup);
	view->continue4(view, key, lookup);
	view->end4(view, key, lookup);
}

static inline void flow_lookup6(const struct flow_view *view, const struct flow_key6 key[],
	struct flow_lookup *lookup)
{
	view->begin6(view, key, lookup);
	view->continue6(view, key, lookup);
	view->end6(view, key, lookup);
}

// Whether lookups wait for memory so long that other work should be done between their stages.
// Worker.
static inline bool flow_waits(const struct flow_view *view)
{
	enum { LINE_BYTES = 64 };
	const uint64_t bytes = ((uint64_t)view->n_lines4 + view->n_lines6) * LINE_BYTES;

	return bytes >= FLOW_FAR_BYTES;
}

// The unit of "last seen": between 1/16 and 1/8 of a second. `cycles`: of the TSC. Any thread.
static inline uint32_t flow_tick(const struct flow_view *view, uint64_t cycles)
{
	return cycles >> view->tick_shift;
}

// Counts a packet of a flow, of `bytes` bytes. `count`: view->count[worker]; `tick`: flow_tick() of
// now. Worker.
static inline void flow_count_packet(struct flow_count *count, uint32_t flow, uint32_t bytes,
	uint32_t tick)
{
	const uint64_t seen_mask = (1u << FLOW_SEEN_BITS) - 1;
	struct flow_count *own = &count[flow];

	__atomic_store_n(&own->packets_and_seen,
		((own->packets_and_seen | seen_mask) + 1) | (tick & seen_mask), __ATOMIC_RELAXED);
	__atomic_store_n(&own->bytes, own->bytes + bytes, __ATOMIC_RELAXED);
}

// A packet without a flow, from which one may be learnt.
struct flow_unknown {
	union {
		struct flow_key4 four;
		struct flow_key6 six;
	};
	uint32_t hop;   // that its route gave; of a group, the member that was selected
	uint16_t iface; // on which it was received
	uint8_t family; // 4 or 6
} LINE_ALIGNED;
_Static_assert(sizeof(struct flow_unknown) == 64, "one line");

// What workers tell the control thread. `most`: keys that each worker may tell in a tick; 0: none
// are wanted. `full`: a bit for each interface, and for each VRF, of which none are wanted. All are
// atomic, relaxed.
enum { FLOW_LEARN_IFACES = 1 << 16, FLOW_LEARN_VRFS = 1 << 12, FLOW_LEARN_WORD = 64 };
struct flow_learn_ring;
struct flow_learn {
	uint32_t most;
	uint64_t full_ifaces[FLOW_LEARN_IFACES / FLOW_LEARN_WORD];
	uint64_t full_vrfs[FLOW_LEARN_VRFS / FLOW_LEARN_WORD];
	struct flow_learn_ring *ring[FLOW_MAX_WORKERS]; // by worker
};

static inline bool flow_learn_is_on(const struct flow_learn *learn)
{
	return __atomic_load_n(&learn->most, __ATOMIC_RELAXED);
}

static inline bool flow_learn_has_bit(const uint64_t bits[], unsigned i)
{
	return __atomic_load_n(&bits[i / FLOW_LEARN_WORD], __ATOMIC_RELAXED) >>
	               i % FLOW_LEARN_WORD &
	       1;
}

// Whether nothing may be learnt from packets of this interface and this VRF now. Worker.
static inline bool flow_learn_is_over(const struct flow_learn *learn, uint16_t iface, uint16_t vrf)
{
	return flow_learn_has_bit(learn->full_ifaces, iface) ||
	       flow_learn_has_bit(learn->full_vrfs, vrf % FLOW_LEARN_VRFS);
}

// Whether a worker may tell anything more now. `tick`: flow_tick() of now. Worker.
bool flow_learn_has_space(const struct flow_learn *learn, unsigned worker, uint32_t tick);

struct flow_learn_from {
	unsigned worker;
	uint32_t tick; // flow_tick() of now
};
// Tells of n packets, all of one family, at most FLOW_BURST. A key that was told in this tick is
// not told again, as long as the worker remembers it. Returns how many keys found no space. Never
// waits. Worker.
unsigned flow_learn_put(const struct flow_view *view, const struct flow_learn *learn,
	const struct flow_learn_from *from, const struct flow_unknown unknown[], unsigned n);
