// The data that pipeline steps pass on: one burst of packets of one family, without those already
// dropped or punted. Worker.
#pragma once

#include "base/bits.h"
#include "base/idle.h"
#include "fib/fib_fast.h"
#include "port/port_fast.h"
#include "stats/stats.h"
#include "tap/tap_fast.h"

#include <rte_mbuf.h>

enum { BURST_MAX = 64 };
_Static_assert((int)BURST_MAX <= (int)FIB_BURST4, "a burst is looked up in one piece");

// Structure of arrays: element i of each array belongs to packet i. A step that drops packets
// closes the gaps. Written by parse: mbuf, frame, dst, length, ttl, suspects and the flags up to
// has_tags; by lookup: hop; by check: port, has_one_hop, has_one_port.
struct burst {
	uint16_t n;
	bool has_segments;   // some mbuf has more than one segment
	bool for_linux;      // Linux forwards these packets; local delivery is unchanged
	bool sees_redirects; // packets that leave by their input interface may be punted
	bool sees_discovery; // Linux needs all neighbour discovery
	bool has_tags;       // some packet arrived with VLAN tags or leaves with some
	bool has_one_hop;    // all packets have hop[0]
	bool has_one_port;   // all packets have port[0]
	uint64_t suspects;   // IPv4: bit i is set if packet i's source may be one of our addresses
	const struct fib_sources *sources; // the filter for that
	struct rte_mbuf *mbuf[BURST_MAX] LINE_ALIGNED;
	// Start of the Ethernet header. For a tagged packet: where the header would start without
	// the tags, so that the EtherType is at offset 12 and the packet at 14; the MAC addresses
	// are not there until rewrite writes them.
	uint8_t *frame[BURST_MAX] LINE_ALIGNED;
	union {
		uint32_t dst4[BURST_MAX]; // host order
		struct fib_key6 dst6[BURST_MAX];
	} LINE_ALIGNED;
	uint16_t length[BURST_MAX] LINE_ALIGNED; // from frame on, without FCS; saturates at 65535
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

// The packets of one poll by family, and the table that they are looked up in.
struct sorted {
	struct burst ip4, ip6;
	const struct fib_view *view;
	bool has_begun;
	struct fib_lookup4_state begun;
};

// TRAIN_POLLS: maximum number of consecutive polls of one queue whose lookups are pipelined.
// UNDER_WAY: polls in the pipeline at once; see worker.c.
enum { BATCH_POLLS = 8, UNDER_WAY = 3 };

// Deferred packets: those of VLANs that use another table or other flags than the rest of their
// burst. They are forwarded after it.
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
	uint64_t taken_at[BURST_MAX]; // value of stat->loops when taken
};

// Everything that one worker owns: a single writer, cache lines of its own.
struct worker {
	const struct port_worker *io;
	const struct port_state *states; // by port index
	struct fib_rcu_fast *rcu;
	struct stats_worker *stat;
	const bool *stop;                       // atomic, relaxed
	const struct datapath_variant *variant; // of the steps, chosen for the CPU
	struct tap_worker *tap;                 // NULL if ports have no TAP interfaces
	uint16_t from;                          // index of the burst's input port
	struct sorted *now;                     // the poll being processed
	uint16_t n_dropped;
	struct rte_mbuf *dropped[UNDER_WAY * BURST_MAX] LINE_ALIGNED; // includes injected frames
	struct deferred deferred;
	struct injection injection;
	uint64_t timed_from;    // when stat->bursts reaches this, the next burst is timed
	uint64_t redirects_due; // TSC: theoretical arrival time of the redirect limit (GCRA)
	struct rte_mempool *pool[PORT_WORKER_QUEUES]; // the pool that each queue receives into;
	                                              // NULL: not checked
	struct stats_step step;                       // cycles of the burst being timed
	uint64_t price;    // cycles per packet at present (datapath/price.h); 0: unknown
	uint64_t long_gap; // a round that exceeds the cost of its frames by this many cycles is a
	                   // stall
	uint64_t tsc_hz;   // TSC frequency
	struct idle idle;
	uint64_t noteworthy_gap; // a shorter round is neither a stall nor the longest one
	struct sorted sorted[UNDER_WAY];
} LINE_ALIGNED;

// Takes a packet out of the pipeline. Where ports have TAP interfaces and the verdict has a class,
// the packet is punted to Linux unmodified (steps give such verdicts before the first byte is
// written). Otherwise counts the verdict and frees the packet with the others at the end of the
// burst.
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

// Closes gaps after check: moves packet `from` to place `to`.
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
