// What workers read. Nothing here allocates, locks or calls the system.
#pragma once

#include "base/bits.h"
#include "fib/word16.h"

#include <rte_prefetch.h>
#include <rte_rcu_qsbr.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__AVX512F__)
#include "base/fetch_avx512.h"
#endif

// IPv4: 32 neighbouring /24s. Bit i of `runs` (i > 0) is set where /24 i differs from the one
// before it; bit 0 where the leaves do not fit in here as they are. With n = popcount(runs & (2 <<
// i) - 1) the answer of /24 i is leaf[n]; if bit 0 is set, of narrow nodes what narrow[n] stands
// for, of others leaf4[(outside >> 1) + n]. All 0: every /24 is hop 0. Read and written as one
// aligned 16-byte word.
enum { FIB_NODE4_LEAVES = 6, FIB_NODE4_NARROW = 11 };
struct fib_node4 {
	uint32_t runs;
	union {
		uint16_t leaf[FIB_NODE4_LEAVES];
		uint8_t narrow[1 + FIB_NODE4_NARROW]; // narrow[0] is 1; n begins with 1
		struct {
			uint32_t outside; // even
			uint32_t unused;
			uint32_t tail; // first line of prefixes longer than /24; so two leaves
			               // fewer fit where there are such, and no narrow ones
		};
	};
} __attribute__((aligned(16)));

// Bytes of narrow nodes: 0, or a hop id less this: the last one of the hops that each table has.
enum { FIB_NARROW_AFTER = 4 };

// IPv6: 64 neighbouring slots: bit i of `runs` (i > 0) is set where slot i differs from the one
// before it; the answer of slot i is leaf[base + popcount(runs & (2 << i) - 2)]. All 0: every slot
// is hop 0. Read and written as one aligned 16-byte word.
struct fib_node6 {
	uint64_t runs;
	uint32_t base;
	uint32_t unused;
} __attribute__((aligned(16)));

// A next hop as workers need it, 16 bytes, read and replaced as one aligned 16-byte word. Its port
// and tags never change between two reports of a worker that saw it forward.
struct fib_hop_entry {
	uint8_t macs[12];   // destination, source
	uint16_t frame_max; // longest frame without FCS and tags that may leave: MTU + 14; of
	                    // packets of IPv4 via a neighbour of IPv6: fib_frame_max4_load
	uint8_t port;
	uint8_t verdict; // VERDICT_FORWARD, why its packets do not leave so, or an enum below
} __attribute__((aligned(16)));

// A hop with this verdict is a group: its packets go to the hop bucket[first bucket + hash of the
// flow % FIB_GROUP_BUCKETS], which is no group. TAGGED: forwarded, with the VLAN tags that stand in
// tags[hop].
enum { FIB_VERDICT_GROUP = 255, FIB_VERDICT_TAGGED = 254, FIB_GROUP_BUCKETS = 1024 };

// The first hops in brief, so that a whole burst can be judged at once: the port of each one that
// forwards without tags, FIB_NOT_PLAIN of all others; and the least frame_max of those, or less.
// Each element is written by itself, a port after its entry and after a lower frame_max, and a
// higher frame_max last.
enum { FIB_PLAIN_HOPS = 512, FIB_NOT_PLAIN = 255 };
struct fib_plain_hops {
	uint8_t port[FIB_PLAIN_HOPS];
	uint16_t frame_max;
} LINE_ALIGNED;

// VLAN tags as they stand on the wire, outer one first: TPID and TCI of each. One aligned word.
struct fib_tags {
	uint8_t bytes[8];
} __attribute__((aligned(8)));

// How frames that come in are taken: one word, read once per burst (a port without tags) or per
// tagged frame, by fib_iface_in_load. Of a port that was never told: no flags, the main VRF; of a
// deleted link: FIB_IFACE_DOWN.
struct fib_iface_in {
	uint8_t flags; // enum fib_iface_flag
	uint8_t vrf;
	uint8_t n_macs; // not 0: fib_iface_has_mac knows of more than the port's own address
	uint8_t n_tags; // most tags that a link of this port has: 0: tagged frames are unknown
	                // here; of a VLAN: its own
	uint16_t iface;
	uint16_t unused;
} __attribute__((aligned(8)));

// First bucket of a group; what the entry holds in place of MACs.
static inline uint32_t fib_entry_group(const struct fib_hop_entry *entry)
{
	uint32_t first;

	memcpy(&first, entry->macs, sizeof(first));
	return first;
}

static inline struct fib_node6 fib_node6_load(const struct fib_node6 *from)
{
	word16 word = word16_load(from);
	struct fib_node6 node;

	memcpy(&node, &word, sizeof(node));
	return node;
}

static inline struct fib_hop_entry fib_hop_load(const struct fib_hop_entry *from)
{
	word16 word = word16_load(from);
	struct fib_hop_entry entry;

	memcpy(&entry, &word, sizeof(entry));
	return entry;
}

struct fib_key6 {
	uint64_t high, low; // host order
};

// The IPv4 addresses with a local route (ours and broadcast ones) in any VRF, as a filter: each has
// two bits in one word, which is written in one piece. Another address has both of its bits set by
// chance: 1 of 2000 where 4 are ours, 1 of 250 with 20, 1 of 25 with 100, 2 of 5 with 500, nearly
// all with 2000, and all while there is a local route shorter than /32. A packet from such an
// address costs a lookup more, so a filled filter is as right, and slower.
enum { FIB_SOURCE_WORDS = 32 };
static const uint32_t FIB_SOURCE_FACTOR = 0x9e3779b1; // 2^32 / golden ratio; odd
struct fib_sources {
	uint32_t word[FIB_SOURCE_WORDS];
} LINE_ALIGNED;

// Where an address (host order) has its two bits.
struct fib_source_place {
	uint8_t word, first, second;
};

static inline struct fib_source_place fib_source_place(uint32_t addr)
{
	const uint32_t hash = addr * FIB_SOURCE_FACTOR;

	return (struct fib_source_place){hash >> 27, hash >> 22 & 31, hash >> 17 & 31};
}

// False: it is none of ours. Worker.
static inline bool fib_source_may_be_ours(const struct fib_sources *sources, uint32_t addr)
{
	const struct fib_source_place place = fib_source_place(addr);
	const uint32_t word = __atomic_load_n(&sources->word[place.word], __ATOMIC_RELAXED);

	return word >> place.first & word >> place.second & 1;
}

struct fib_view;

// How far a bulk lookup of IPv4 in parts has come, of at most FIB_BURST4 destinations: a bit for
// each one whose leaf stands outside its node, or whose leaf leads to a tail; and of all what their
// nodes said, for a node may change between the parts: the number of the leaf outside (others: 0),
// and the first tail line.
enum { FIB_BURST4 = 64 };
struct fib_begun4 {
	unsigned n; // how many destinations; the rest is the lookup's own
	uint64_t outside, tails;
	uint32_t number[FIB_BURST4] LINE_ALIGNED, tail[FIB_BURST4];
};

// What workers read. The lookups are chosen by CPU, by rte_vect_get_max_simd_bitwidth (only a limit
// below 256 is a veto: 256 is EAL's default, which nobody asked for) and, for IPv4, by the size of
// the table, which may change while workers run.
struct fib_view {
	const struct fib_node4 *node4;
	const struct fib_hop_entry *hops;
	const struct fib_plain_hops *plain;
	const uint16_t *bucket; // of groups
	void (*lookup4)(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
		unsigned n);
	void (*lookup6)(const struct fib_view *view, const struct fib_key6 dst[], uint16_t hop[],
		unsigned n);
	void (*begin4)(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
		struct fib_begun4 *begun); // NULL: of further VRFs
	bool is_far4; // the table is too large for a core's own caches; atomic, relaxed
	bool waits4;  // it is much larger than they are; atomic, relaxed
	const uint16_t *leaf4;
	const void *tail4;
	const void *root4; // of further VRFs
	const void *root6;
	const void *node6;
	const void *leaf6;
	const void *line6;
	const struct fib_tags *tags;         // by hop
	const uint16_t *frame_max4;          // by hop
	const struct fib_iface_in *iface_in; // by link; the first ones are the ports
	const struct fib_view *vrfs; // by VRF, the main one included; hop 0 for all addresses
	                             // in those that are not open
	const struct fib_ifaces *ifaces;
	const struct fib_sources *sources;
} LINE_ALIGNED;

// How to take frames of a link; the tags of a tagged next hop. Worker.
static inline struct fib_iface_in fib_iface_in_load(const struct fib_view *view, uint16_t iface)
{
	const void *from = &view->iface_in[iface];
	uint64_t word = __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE);
	struct fib_iface_in in;

	memcpy(&in, &word, sizeof(in));
	return in;
}

// The longest frame of IPv4 that may leave by a hop: at least frame_max. Worker.
static inline uint16_t fib_frame_max4_load(const struct fib_view *view, uint16_t hop)
{
	return __atomic_load_n(&view->frame_max4[hop], __ATOMIC_RELAXED);
}

static inline struct fib_tags fib_tags_load(const struct fib_view *view, uint16_t hop)
{
	const void *from = &view->tags[hop];
	uint64_t word = __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE);
	struct fib_tags tags;

	memcpy(&tags, &word, sizeof(tags));
	return tags;
}

// A VLAN's link by port and tags of a frame, priorities aside (0 in place of the inner one: one
// tag); FIB_NO_IFACE_IN: none. Not for every packet: it searches. Worker.
enum { FIB_NO_IFACE_IN = 0xffff };
uint16_t fib_iface_tagged(const struct fib_view *view, uint8_t port, const struct fib_tags *tags);
// Whether a MAC address is the link's own or one of its further ones. Worker.
bool fib_iface_has_mac(const struct fib_view *view, uint16_t iface, const uint8_t mac[6]);

// Whether lookups wait so long for memory that other work should lie between a prefetch and them.
// Worker.
static inline bool fib_waits4(const struct fib_view *view)
{
	return __atomic_load_n(&view->waits4, __ATOMIC_RELAXED);
}

// Fetches what the lookup of n destinations will read first, in tables that are large enough for it
// to pay. For destinations that are looked up after other work. Worker.
// All that the lookups fetch goes to the L2: an L1 has room for some 20 lines that are on their way
// and drops a quarter of 64 that are asked of it at once (AMD, Zen 4), an L2 has more and drops
// none.
static inline void fib_prefetch4(const struct fib_view *view, const uint32_t dst[], unsigned n)
{
	if (!__atomic_load_n(&view->is_far4, __ATOMIC_RELAXED))
		return;
	for (unsigned i = 0; i < n; i++)
		rte_prefetch1(&view->node4[dst[i] >> 13]);
}

#if defined(__AVX512F__)
// The same of sixteen destinations in a register.
static inline void fib_prefetch4_sixteen(const struct fib_view *view, __m512i dst)
{
	_Static_assert(sizeof(struct fib_node4) == 2 * 8, "two eights");
	if (__atomic_load_n(&view->is_far4, __ATOMIC_RELAXED))
		fetch_sixteen(view->node4, _mm512_slli_epi32(_mm512_srli_epi32(dst, 13), 1));
}
#endif

// Bulk lookups, n up to 64: hop ids of n destinations (IPv4 in host order). They
// prefetch what they need. Worker.
static inline void fib_lookup4(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
	unsigned n)
{
	__atomic_load_n(&view->lookup4, __ATOMIC_RELAXED)(view, dst, hop, n);
}

// The lookup of the main VRF's IPv4 in three parts, for workers that do other work while memory
// answers: each part fetches what the next one reads. begun->n is up to FIB_BURST4; dst stays the
// same, the worker does not report meanwhile, and hop[] is good for nothing before the end. Worker.
static inline void fib_lookup4_begin(const struct fib_view *view, const uint32_t dst[],
	uint16_t hop[], struct fib_begun4 *begun)
{
	view->begin4(view, dst, hop, begun);
}
void fib_lookup4_go_on(const struct fib_view *view, uint16_t hop[], struct fib_begun4 *begun);
void fib_lookup4_end(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
	const struct fib_begun4 *begun);

static inline void fib_lookup6(const struct fib_view *view, const struct fib_key6 dst[],
	uint16_t hop[], unsigned n)
{
	view->lookup6(view, dst, hop, n);
}

// The workers' side of the door. `live` is read once per burst or train, before the lookups; what
// it points to stays as it is until the worker reports. Never NULL while a worker runs.
struct fib_rcu_fast {
	const struct fib_view *live; // atomic, acquire
	struct rte_rcu_qsbr *qsbr;
} LINE_ALIGNED;

// Worker, once at its start and end (and around parking).
static inline void fib_reader_online(struct fib_rcu_fast *rcu, unsigned worker)
{
	rte_rcu_qsbr_thread_online(rcu->qsbr, worker);
}

static inline void fib_reader_offline(struct fib_rcu_fast *rcu, unsigned worker)
{
	rte_rcu_qsbr_thread_offline(rcu->qsbr, worker);
}

// Worker, once per loop: no pointer into the table is held here.
static inline void fib_reader_report(struct fib_rcu_fast *rcu, unsigned worker)
{
	rte_rcu_qsbr_quiescent(rcu->qsbr, worker);
}

static inline const struct fib_view *fib_reader_view(const struct fib_rcu_fast *rcu)
{
	return __atomic_load_n(&rcu->live, __ATOMIC_ACQUIRE);
}

struct fib_rcu;
// The fast side of a door; valid as long as the door.
struct fib_rcu_fast *fib_rcu_readers(struct fib_rcu *rcu);
