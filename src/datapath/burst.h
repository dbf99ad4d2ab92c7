// Per-burst data passed between pipeline steps: the remaining packets of one address family, and
// the state of a worker. Worker.
#pragma once

#include "base/bits.h"
#include "base/idle.h"
#include "fib/fib_fast.h"
#include "port/port_fast.h"
#include "stats/stats.h"
#include "tap/tap_fast.h"

#include <rte_mbuf.h>

enum { BURST_MAX = 64 };
_Static_assert((int)BURST_MAX <= (int)FIB_BURST4, "a burst must fit into one lookup call");

// Structure of arrays: element i of each array belongs to packet i. A step that drops or punts
// packets compacts the arrays. Written by parse: mbuf, frame, dst, length, ttl, own_source_mask and
// the flags up to has_trailers; by lookup: hop; by check: port, has_one_hop, has_one_port.
struct burst {
	uint16_t n;
	bool has_segments; // at least one mbuf is multi-segment
	bool for_linux;    // Linux forwards these packets; local delivery is unchanged
	bool may_redirect; // some packets whose output interface is their input interface are
	                   // punted, so that Linux sends ICMP redirects (rate-limited)
	bool punt_nd;      // IPv6: all neighbour discovery is punted (proxy NDP)
	bool has_tags;     // at least one packet arrived with VLAN tags or leaves with tags
	bool has_trailers; // at least one frame has bytes after length[i]
	bool has_one_hop;  // all packets use the same next hop, hop[0]
	bool has_one_port; // all packets use the same output port, port[0]; port[1] on may be unset
	uint64_t own_source_mask; // IPv4: bit i is set if the source of packet i matched `sources`
	const struct fib_sources *sources; // Bloom filter of the router's own addresses
	struct rte_mbuf *mbuf[BURST_MAX] LINE_ALIGNED;
	// Start of the Ethernet header. For a tagged packet: where the header would start without
	// the tags, so that the EtherType is at offset 12 and the packet at 14; the MAC addresses
	// are not there until rewrite writes them.
	uint8_t *frame[BURST_MAX] LINE_ALIGNED;
	union {
		uint32_t dst4[BURST_MAX]; // host order
		struct fib_key6 dst6[BURST_MAX];
	} LINE_ALIGNED;
	uint16_t length[BURST_MAX] LINE_ALIGNED; // bytes from frame[i] on, without FCS and
	                                         // trailer; at most 65535
	uint16_t hop[BURST_MAX] LINE_ALIGNED;
	uint8_t ttl[BURST_MAX] LINE_ALIGNED;  // or hop limit
	uint8_t port[BURST_MAX] LINE_ALIGNED; // output port
};

struct parse;
struct datapath_variant;

// The frames that one poll of one queue returned.
struct received {
	const struct port_queue *from;
	struct rte_mbuf **mbuf;
	uint16_t n;
};

// The valid packets of one poll: a burst for each family, and the VRF table in which they are
// looked up.
struct poll {
	struct burst ip4, ip6;
	const struct fib_view *view;
	bool lookup_started; // `lookup` is in use: the IPv4 lookup is pipelined
	struct fib_lookup4_state lookup;
};

// A batch is a series of consecutive polls of one queue whose lookups are pipelined (worker.c).
// BATCH_POLLS: maximum number of polls in a batch. PIPELINE_DEPTH: number of polls in flight.
enum { BATCH_POLLS = 8, PIPELINE_DEPTH = 3 };

// Deferred packets: received on a VLAN whose VRF or flags differ from those of the burst. They are
// processed after it.
struct deferred {
	uint16_t n;
	struct rte_mbuf *mbuf[BURST_MAX];
	uint8_t *frame[BURST_MAX];
	struct fib_iface_in iface[BURST_MAX];
};

// Frames from Linux that the device has not accepted yet, oldest first.
struct injection {
	uint16_t n;
	struct rte_mbuf *mbuf[BURST_MAX];
	uint64_t taken_at[BURST_MAX]; // value of stat->loops when dequeued
};

// Per-worker state: single writer, cache-line aligned.
struct worker {
	const struct port_worker *io;
	const struct port_state *states; // by port index
	struct fib_rcu_fast *rcu;
	struct stats_worker *stat;
	const bool *stop;                       // atomic, relaxed
	const struct datapath_variant *variant; // of the steps, chosen for the CPU
	struct tap_worker *tap;                 // NULL if ports have no TAP interfaces
	uint16_t from;                          // index of the burst's input port
	struct poll *poll;                      // the poll being processed
	uint16_t n_dropped;
	struct rte_mbuf
		*dropped[PIPELINE_DEPTH * BURST_MAX] LINE_ALIGNED; // includes injected frames
	struct deferred deferred;
	struct injection injection;
	uint64_t timed_from;      // when stat->bursts reaches this, the next burst is timed
	uint64_t redirects_due;   // TSC: theoretical arrival time of the redirect limit (GCRA)
	struct stats_step step;   // cycles of the burst being timed
	uint64_t cost_per_packet; // current estimate in cycles (datapath/cost.h); 0: unknown
	uint64_t long_gap; // a loop iteration that takes this many cycles longer than expected
	                   // is a stall
	uint64_t tsc_hz;   // TSC frequency
	struct idle idle;
	uint64_t min_recorded_gap; // cycles; a shorter loop iteration is neither a stall nor the
	                           // longest one
	struct poll polls[PIPELINE_DEPTH];
} LINE_ALIGNED;

// Drops or punts a packet. If ports have TAP interfaces and the verdict belongs to a punt class,
// the packet is punted to Linux unmodified (such verdicts are only given before the rewrite step),
// and the tap thread counts it as punted, punt_over_limit or tap_refused; if the ring of its class
// is full, it is counted here as punt_ring_full. In all other cases its own verdict is counted.
// Dropped packets are freed at the end of the burst.
static inline void burst_drop(struct worker *w, struct rte_mbuf *mbuf, enum verdict verdict)
{
	if (!w->tap || w->tap->class_of[verdict] == CLASS_NONE)
		stats_add(&w->stat->verdict[verdict], 1);
	else if (tap_punt(w->tap, w->stat, mbuf, verdict | (unsigned)w->from << TAP_PORT_SHIFT))
		return;
	w->dropped[w->n_dropped++] = mbuf;
}

static inline void burst_free_dropped(struct worker *w)
{
	if (!w->n_dropped)
		return;
	rte_pktmbuf_free_bulk(w->dropped, w->n_dropped);
	w->n_dropped = 0;
}

static inline uint8_t burst_port(const struct burst *b, uint16_t i)
{
	return b->port[b->has_one_port ? 0 : i];
}

// Compacts the burst after check: moves entry `from` to index `to`.
static inline void burst_move(struct burst *b, uint16_t to, uint16_t from)
{
	b->mbuf[to] = b->mbuf[from];
	b->frame[to] = b->frame[from];
	b->length[to] = b->length[from];
	b->port[to] = burst_port(b, from);
	b->hop[to] = b->hop[from];
}

// Length of the VLAN tags that the packet arrived with. Valid until the tag step.
static inline uint16_t burst_tag_bytes(const struct burst *b, uint16_t i)
{
	return b->frame[i] - rte_pktmbuf_mtod(b->mbuf[i], uint8_t *);
}
