// The part of the table that workers read. No function here allocates, locks or makes system calls.
#pragma once

#include "base/bits.h"
#include "base/word16.h"
#include "fib/ends.h"
#include "fib/vxlan_fast.h"
#include "iface/iface_fast.h"
#include "stats/verdict.h"

#include <rte_prefetch.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__AVX512F__)
#include "base/fetch_avx512.h"
#endif

// IPv4: 32 consecutive /24s. Bit i of `runs` (i > 0) is set if /24 i differs from the one before
// it; bit 0 is set if the leaves do not fit into the node as they are. With n = popcount(runs & (2
// << i) - 1), the leaf of /24 i is leaf[n] if bit 0 is clear. If it is set: in narrow nodes the
// leaf that narrow[n] encodes, in others leaf4[(outside >> 1) + n]. All 0: every /24 has hop 0.
// Read and written as one aligned 16-byte word.
enum { FIB_NODE4_LEAVES = 6, FIB_NODE4_NARROW = 11 };
struct fib_node4 {
	uint32_t runs;
	union {
		uint16_t leaf[FIB_NODE4_LEAVES];
		uint8_t narrow[1 + FIB_NODE4_NARROW]; // narrow[0] is 1; n starts at 1
		struct {
			uint32_t outside; // even
			uint32_t unused;
			uint32_t tail; // first line of prefixes longer than /24; a node with such
			               // prefixes holds two leaves fewer, and is never narrow
		};
	};
} __attribute__((aligned(16)));

// Encoding of narrow nodes: 0, or a hop id minus this: the last id of the hops that each table has.
enum { FIB_NARROW_AFTER = 4 };

// IPv6: 64 consecutive slots. Bit i of `runs` (i > 0) is set if slot i differs from the one before
// it; the leaf of slot i is leaf[base + popcount(runs & (2 << i) - 2)]. All 0: every slot has hop
// 0. Read and written as one aligned 16-byte word.
struct fib_node6 {
	uint64_t runs;
	uint32_t base;
	uint32_t unused;
} __attribute__((aligned(16)));

// What workers do with packets to a hop. The kinds of a burst are ORed, so plain is 0.
enum fib_hop_kind {
	FIB_HOP_PLAIN,    // forward them with its MACs
	FIB_HOP_TEMPLATE, // forward them with the header of its template
	FIB_HOP_GROUP,    // they go to hop bucket[fib_entry_group + hash of the flow %
	                  // FIB_GROUP_BUCKETS], which is not a group
	FIB_HOP_STOP,     // drop or punt them
	FIB_HOP_TUNNEL,   // forward them in packets of its template, by the port of that
	FIB_HOP_BRIDGE,   // forward them with its MACs, by the port of the bridge fib_oif_load
	                  // behind which the destination is
};
enum { FIB_GROUP_BUCKETS = 1024, FIB_MAX_GROUPS = 4096 };

// A next hop as workers read it: 16 bytes, read and replaced as one aligned 16-byte word. The last
// 4 bytes, its limits, may also be read alone; a worker that does so may write a header after the
// hop has stopped forwarding: so a hop that stops keeps its MACs or its template, and between two
// quiescent states of a worker that read it as forwarding, neither its port changes nor a plain hop
// gets a template or loses it.
struct fib_hop_entry {
	uint8_t macs[12]; // destination, source; or a template (fib_template_load) or group
	union {
		uint16_t frame_max; // longest frame that may be sent, without FCS and without what
		                    // a template adds: MTU + 14; for IPv4 packets via an IPv6
		                    // neighbour: fib_frame_max4_load
		uint16_t verdict;   // FIB_HOP_STOP: why
	};
	uint8_t port; // of hops that forward, except to a bridge or into a tunnel
	uint8_t kind; // enum fib_hop_kind
} __attribute__((aligned(16)));

// Families whose packets are distributed over the members of a group by a hash of layer 3 instead
// of layer 4 (fib_set_layer3_hash).
enum { FIB_LAYER3_IP4 = 1, FIB_LAYER3_IP6 = 2 };

// What encap completes in the header of a tunnel, and with what.
enum fib_tunnel_flag {
	FIB_TUNNEL = 1,           // it is a tunnel's: the rest is valid
	FIB_TUNNEL_OUTER6 = 2,    // the outer header is of IPv6, not of IPv4
	FIB_TUNNEL_IP4 = 4,       // the tunnel carries IPv4 packets
	FIB_TUNNEL_IP6 = 8,       // and IPv6 packets
	FIB_TUNNEL_GRE = 16,      // the outer header is followed by one of GRE
	FIB_TUNNEL_UDP = 32,      // or of UDP
	FIB_TUNNEL_CHECKSUM = 64, // which has a checksum
	FIB_TUNNEL_TTL = 128,     // the TTL is that of the inner packet
	FIB_TUNNEL_TOS = 256,     // and so is the DSCP
	FIB_TUNNEL_DF = 512,      // DF is set; otherwise as in the inner packet
	FIB_TUNNEL_FLOW =
		1024, // the source port (UDP) or the flow label (IPv6) is a hash of the flow
	FIB_TUNNEL_MPLS = 2048,   // the tunnel carries packets with labels
	FIB_TUNNEL_OPAQUE = 4096, // DSCP, ECN and DF are not those of the inner packet
	FIB_TUNNEL_NO_ECN = 8192, // ECN is 0
	FIB_TUNNEL_NO_CE = 16384, // ECN is ECT(0) if that of the inner packet is CE
};

// What precedes packets to a hop: MACs, and headers up to the EtherType of the packet, which stays
// where it is. If `replaced` is 14, the header takes its place, too. Immutable: a hop gets another
// one instead, and this one is valid until the worker reports a quiescent state. fib/template.h
// says how one is made.
// A tunnel's has the outer header without lengths, id, checksums and what else is in `tunnel`; they
// are 0. If its remote end is reached by several next hops, it has a template for each: the bytes
// are FIB_WAYS pointers, one of which a flow uses.
enum { FIB_TEMPLATE_MAX = 128, FIB_TEMPLATE_SMALL = 40, FIB_WAYS = 16 };
struct fib_template {
	uint8_t length;    // bytes of the header
	uint8_t replaced;  // bytes of a plain frame that it replaces: 12, or 14
	uint8_t mtu_bytes; // how many count against the MTU of the interface (not for workers)
	uint8_t port;      // output port; of a tunnel, as is what follows the labels
	// MPLS labels at its end, the last one with the bottom of stack bit. Without a label_ttl,
	// each gets the TTL of the packet that is sent. Of a tunnel's several ways, only the
	// number.
	uint8_t n_labels, label_ttl;
	uint16_t tunnel;     // enum fib_tunnel_flag; 0: it is no tunnel's
	uint16_t iface;      // of the tunnel
	uint16_t under;      // interface by which the outer packets leave
	uint16_t mtu;        // longest inner packet, as far as that interface is concerned
	uint8_t outer_at;    // where the outer header begins
	uint8_t protocol_at; // where it says what is in the packet
	uint8_t inner_at;    // where the header of GRE or UDP begins, if there is one
	uint8_t n_ways;      // FIB_WAYS: pointers; 0: a header
	uint32_t sum;        // IPv4: of the words of the outer header that encap does not write
	uint8_t bytes[FIB_TEMPLATE_MAX] __attribute__((aligned(8))); // only `length` are readable
} LINE_ALIGNED;

// Summary table of the first hops, with which check can process a whole burst at once: the port of
// each hop of kind FIB_HOP_PLAIN, and FIB_NOT_PLAIN for all others and for those on a port with
// that number; and the least frame_max of the former, or less. Each element is written separately:
// a port after its entry and after a lower frame_max, and a higher frame_max last. If `limit` is
// the same before and after the ports are read, none of them has a lower frame_max.
enum { FIB_PLAIN_HOPS = 512, FIB_NOT_PLAIN = 255 };
struct fib_plain_hops {
	uint8_t port[FIB_PLAIN_HOPS];
	union {
		struct {
			uint16_t frame_max;
			uint16_t n_changes; // of frame_max
		};
		uint32_t limit; // both, in one access
	};
} LINE_ALIGNED;

// First bucket of a group, and whether the group is resilient; the entry holds them in place of
// MACs.
enum { FIB_ENTRY_RESILIENT = 4 };
static inline uint32_t fib_entry_group(const struct fib_hop_entry *entry)
{
	uint32_t first;

	memcpy(&first, entry->macs, sizeof(first));
	return first;
}

// What is done with a received MPLS label: an entry of 32 bits. FIB_LABEL_NONE is 0.
enum fib_label_op {
	FIB_LABEL_NONE,    // unknown
	FIB_LABEL_FORWARD, // it is popped, and the rest goes to hop FIB_LABEL_VALUE, or a group
	FIB_LABEL_LOOKUP,  // it is popped, and the packet looked up in VRF FIB_LABEL_VALUE
	FIB_LABEL_LINUX,   // left to Linux
};
enum {
	FIB_LABEL_VALUE = (1 << 20) - 1, // bits of the hop or the VRF
	FIB_LABEL_OP = 20,               // the first bit of the operation, of two
	FIB_LABEL_PIPE = 1 << 22,        // struct fib_label says what these mean
	FIB_LABEL_LOOPS = 1 << 23,
	FIB_LABEL_ENDS = 1 << 24,
};

// The interfaces to which the members of a group lead, each once, in any order; unused elements are
// FIB_NO_OIF. If there are more, the last element is FIB_MANY_OIFS. Read and written as one aligned
// 16-byte word.
enum { FIB_NO_OIF = 0xffff, FIB_MANY_OIFS = 0xfffe, FIB_GROUP_OIFS = 8 };
struct fib_group_oifs {
	uint16_t oif[FIB_GROUP_OIFS];
} __attribute__((aligned(16)));

// Why packets to a hop are stopped; VERDICT_FORWARD: they are not. Those of a group follow its
// members.
static inline uint8_t fib_entry_verdict(const struct fib_hop_entry *entry)
{
	return entry->kind == FIB_HOP_STOP ? entry->verdict : VERDICT_FORWARD;
}

static inline bool fib_entry_is_resilient(const struct fib_hop_entry *entry)
{
	return entry->macs[FIB_ENTRY_RESILIENT];
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

// A filter of the IPv4 addresses with a local route (ours and broadcast ones) in any VRF: each sets
// two bits in one word, which is written atomically. False positives: 1 of 2000 addresses with 4
// local ones, 1 of 250 with 20, 1 of 25 with 100, 2 of 5 with 500, nearly all with 2000, and all
// while there is a local route shorter than /32. A false positive costs an additional lookup, so a
// full filter is correct, but slower.
enum { FIB_SOURCE_WORDS = 32 };
static const uint32_t FIB_SOURCE_FACTOR = 0x9e3779b1; // 2^32 / golden ratio; odd
struct fib_sources {
	uint32_t word[FIB_SOURCE_WORDS];
} LINE_ALIGNED;

// The position of an address's (host order) two bits.
struct fib_source_place {
	uint8_t word, first, second;
};

static inline struct fib_source_place fib_source_place(uint32_t addr)
{
	const uint32_t hash = addr * FIB_SOURCE_FACTOR;

	return (struct fib_source_place){hash >> 27, hash >> 22 & 31, hash >> 17 & 31};
}

// False: not one of our addresses. Worker.
static inline bool fib_source_may_be_ours(const struct fib_sources *sources, uint32_t addr)
{
	const struct fib_source_place place = fib_source_place(addr);
	const uint32_t word = __atomic_load_n(&sources->word[place.word], __ATOMIC_RELAXED);

	return word >> place.first & word >> place.second & 1;
}

struct fib_view;

// State of a pipelined IPv4 bulk lookup of at most FIB_BURST4 destinations: a bit for each one
// whose leaf is outside its node or leads to a tail. A node may change between the stages, so what
// they need of it is saved here for each destination: the number of the outside leaf (if none: 0)
// and the first tail line.
enum { FIB_BURST4 = 64 };
struct fib_lookup4_state {
	unsigned n; // number of destinations; the rest is internal
	uint64_t outside, tails;
	uint32_t number[FIB_BURST4] LINE_ALIGNED, tail[FIB_BURST4];
};

// The workers' view of a table. The lookups are selected by CPU, by rte_vect_get_max_simd_bitwidth
// (only a limit below 256 excludes AVX-512, since 256 is EAL's default) and, for IPv4, by the
// table's size, which may change while workers run.
struct fib_view {
	const struct fib_node4 *node4;
	const struct fib_hop_entry *hops;
	const struct fib_plain_hops *plain;
	const uint32_t *bucket; // of groups
	uint32_t *used;         // by bucket, of resilient groups: see fib_bucket_use
	const uint32_t *epoch;  // atomic, relaxed
	void (*lookup4)(const struct fib_view *view, const uint32_t dst[], uint32_t hop[],
		unsigned n);
	void (*lookup6)(const struct fib_view *view, const struct fib_key6 dst[], uint32_t hop[],
		unsigned n);
	void (*begin4)(const struct fib_view *view, const uint32_t dst[], uint32_t hop[],
		struct fib_lookup4_state *state);
	bool is_far4; // the table is too large for a core's own caches; atomic, relaxed
	bool waits4;  // it is much larger than them; atomic, relaxed
	const uint16_t *leaf4;
	const void *tail4;
	const uint32_t *root4; // by the first 11 bits: number of the first of 256 nodes
	const uint32_t *root6; // by the first 16 bits; other VRFs' roots follow those of the main
	                       // one
	const void *node6;
	const void *leaf6;
	const void *line6;
	const uint16_t *frame_max4;        // by hop
	const uint16_t *oif;               // by hop: see fib_oif_load
	const struct fib_group_oifs *oifs; // by group
	const uint32_t *held;              // by number of a held hop: see fib_held_load
	const struct fib_view *vrfs; // by VRF, including the main one; those that were opened once;
	                             // a closed one has hop 0 for all addresses
	void (*mixed4)(const struct fib_view *view, const uint16_t vrf[], const uint32_t dst[],
		uint32_t hop[], unsigned n);
	void (*mixed6)(const struct fib_view *view, const uint16_t vrf[],
		const struct fib_key6 dst[], uint32_t hop[], unsigned n);
	struct iface_view ifaces;
	const struct fib_sources *sources;
	struct fib_ends *const *ends; // see fib_ends_load
	const uint8_t *layer3_hash;   // FIB_LAYER3_*; atomic, relaxed
	const uint32_t *labels;       // of the main one: see fib_labels_load
	const struct fib_overlay *overlay;
} LINE_ALIGNED;

// The hop of a bucket of a resilient group, which is marked as used now: one store per bucket and
// epoch (100 ms). The use is noted after the hop was read; the control thread clears it before it
// writes another hop, so that no use of the new hop is lost. Worker.
static inline uint32_t fib_bucket_use(const struct fib_view *view, uint32_t bucket)
{
	const uint32_t hop = __atomic_load_n(&view->bucket[bucket], __ATOMIC_ACQUIRE);
	const uint32_t epoch = __atomic_load_n(view->epoch, __ATOMIC_RELAXED);

	if (__atomic_load_n(&view->used[bucket], __ATOMIC_RELAXED) != epoch)
		__atomic_store_n(&view->used[bucket], epoch, __ATOMIC_RELAXED);
	return hop;
}

// The longest IPv4 frame that may be sent to a hop: at least frame_max. Worker.
static inline uint16_t fib_frame_max4_load(const struct fib_view *view, uint32_t hop)
{
	return __atomic_load_n(&view->frame_max4[hop], __ATOMIC_RELAXED);
}

// The verdict of a hop: see fib_entry_verdict. Worker.
static inline uint8_t fib_verdict_load(const struct fib_view *view, uint32_t hop)
{
	const struct fib_hop_entry entry = fib_hop_load(&view->hops[hop]);

	return fib_entry_verdict(&entry);
}

// The interface to which a hop leads, resolved or not; FIB_NO_OIF: to none, or it is a group.
// Worker.
static inline uint16_t fib_oif_load(const struct fib_view *view, uint32_t hop)
{
	return __atomic_load_n(&view->oif[hop], __ATOMIC_RELAXED);
}

// The hop id of a held next hop (fib_hold), valid until the worker reports a quiescent state; it is
// not a group. Worker.
static inline uint32_t fib_held_load(const struct fib_view *view, uint32_t held)
{
	return __atomic_load_n(&view->held[held], __ATOMIC_RELAXED);
}

// Whether a member of a group leads to an interface. *is_known is false if the group's members lead
// to more interfaces than workers know. Worker.
bool fib_group_leads_to(const struct fib_view *view, const struct fib_hop_entry *group,
	uint16_t iface, bool *is_known);

// The template of a hop that was read as FIB_HOP_TEMPLATE or FIB_HOP_TUNNEL since the last
// quiescent state. Worker.
static inline const struct fib_template *fib_template_load(const struct fib_view *view,
	uint32_t hop)
{
	const struct fib_hop_entry entry = fib_hop_load(&view->hops[hop]);
	const struct fib_template *template;

	memcpy(&template, entry.macs, sizeof(template));
	return template;
}

// The entries of all MPLS labels; NULL: none is known, so MPLS is off. Valid as long as the view.
// Worker.
static inline const uint32_t *fib_labels_load(const struct fib_view *view)
{
	return __atomic_load_n(&view->labels, __ATOMIC_ACQUIRE);
}

// The entry of a label: read it once, its hop is valid until the worker reports a quiescent state.
// Worker.
static inline uint32_t fib_label_load(const uint32_t *labels, uint32_t label)
{
	return __atomic_load_n(&labels[label], __ATOMIC_ACQUIRE);
}

static inline enum fib_label_op fib_label_op(uint32_t entry)
{
	return entry >> FIB_LABEL_OP & 3;
}

// Whether lookups wait for memory so long that other work should be done between a prefetch and the
// lookup. Worker.
static inline bool fib_waits4(const struct fib_view *view)
{
	return __atomic_load_n(&view->waits4, __ATOMIC_RELAXED);
}

// Prefetches what the lookup of n destinations reads first, for tables that are large enough for
// this to pay. For destinations that are looked up after other work. Lookups prefetch everything
// into the L2: an L1 tracks about 20 outstanding lines and drops a quarter of 64 prefetches issued
// at once (AMD, Zen 4); an L2 tracks more and drops none. Worker.
static inline void fib_prefetch4(const struct fib_view *view, const uint32_t dst[], unsigned n)
{
	if (!__atomic_load_n(&view->is_far4, __ATOMIC_RELAXED))
		return;
	for (unsigned i = 0; i < n; i++)
		rte_prefetch1(&view->node4[dst[i] >> 13]);
}

#if defined(__AVX512F__)
// The same for sixteen destinations in a register.
static inline void fib_prefetch4_sixteen(const struct fib_view *view, __m512i dst)
{
	_Static_assert(sizeof(struct fib_node4) == 2 * 8, "two eights");
	if (__atomic_load_n(&view->is_far4, __ATOMIC_RELAXED))
		fetch_sixteen(view->node4, _mm512_slli_epi32(_mm512_srli_epi32(dst, 13), 1));
}
#endif

// Bulk lookups, n up to 64: hop ids of n destinations (IPv4 in host order). They prefetch what they
// need. Worker.
static inline void fib_lookup4(const struct fib_view *view, const uint32_t dst[], uint32_t hop[],
	unsigned n)
{
	__atomic_load_n(&view->lookup4, __ATOMIC_RELAXED)(view, dst, hop, n);
}

// The IPv4 lookup in three stages, for workers that do other work while prefetches
// complete: each stage prefetches what the next one reads. state->n is up to FIB_BURST4. Between
// the stages, dst must not change and the worker must not report a quiescent state; hop[] is
// undefined until the end. Worker.
static inline void fib_lookup4_begin(const struct fib_view *view, const uint32_t dst[],
	uint32_t hop[], struct fib_lookup4_state *state)
{
	view->begin4(view, dst, hop, state);
}
void fib_lookup4_continue(const struct fib_view *view, uint32_t hop[],
	struct fib_lookup4_state *state);
void fib_lookup4_end(const struct fib_view *view, const uint32_t dst[], uint32_t hop[],
	const struct fib_lookup4_state *state);

static inline void fib_lookup6(const struct fib_view *view, const struct fib_key6 dst[],
	uint32_t hop[], unsigned n)
{
	view->lookup6(view, dst, hop, n);
}

// Bulk lookups of destinations in several VRFs, which have been open before, n up to 64; `view` is
// the main one. As fast as in one further VRF. Worker.
static inline void fib_lookup4_mixed(const struct fib_view *view, const uint16_t vrf[],
	const uint32_t dst[], uint32_t hop[], unsigned n)
{
	view->mixed4(view, vrf, dst, hop, n);
}

static inline void fib_lookup6_mixed(const struct fib_view *view, const uint16_t vrf[],
	const struct fib_key6 dst[], uint32_t hop[], unsigned n)
{
	view->mixed6(view, vrf, dst, hop, n);
}

// NULL: no tunnel ends here. Valid until the worker reports a quiescent state. Worker.
static inline const struct fib_ends *fib_ends_load(const struct fib_view *view)
{
	return view->ends ? __atomic_load_n(view->ends, __ATOMIC_ACQUIRE) : NULL;
}

// NULL: there is none. Worker.
const struct fib_end *fib_end_find(const struct fib_ends *ends, const struct fib_end_key *key);
const struct fib_udp_end *fib_udp_end_find(const struct fib_ends *ends, uint16_t port, bool is_ip6);

// The tables in use. `view` is read once per burst or pipelined batch, before the lookups; what it
// points to remains valid until the worker reports a quiescent state (rcu/rcu_fast.h). Never NULL
// while a worker runs. The rest is the control thread's.
struct fib_live {
	const struct fib_view *view; // atomic, acquire
	struct fib *fib;
	struct rcu *rcu; // set by the owner
} LINE_ALIGNED;

static inline const struct fib_view *fib_live_view(const struct fib_live *live)
{
	return __atomic_load_n(&live->view, __ATOMIC_ACQUIRE);
}
