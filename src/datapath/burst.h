// What the steps of the walk hand each other: one burst of packets of one family, all still alive.
// Worker.
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

// Arrays of fields, dense: place i of each belongs to packet i. A step that drops packets closes
// the gaps. Written by parse: mbuf, frame, dst, length, ttl, suspects and the flags up to has_tags;
// by lookup: hop; by check: port, has_one_hop, has_one_port.
struct burst {
	uint16_t n;
	bool has_segments;   // some mbuf has more than one segment
	bool for_linux;      // Linux forwards them; ours are local all the same
	bool sees_redirects; // Linux wants to see packets that leave as they came
	bool sees_discovery; // Linux wants all neighbour discovery
	bool has_tags;       // some packet came with VLAN tags or leaves with some
	bool has_one_hop;    // all packets have hop[0]
	bool has_one_port;   // all packets have port[0]
	uint64_t suspects;   // IPv4: a bit for each packet whose source may be one of our addresses
	const struct fib_sources *sources; // by this filter
	struct rte_mbuf *mbuf[BURST_MAX] LINE_ALIGNED;
	// First byte of the Ethernet header; of a packet with tags: of the header as it would be
	// without them, so that the EtherType is at 12 and the packet at 14 (the MAC addresses are
	// not there before rewrite writes them).
	uint8_t *frame[BURST_MAX] LINE_ALIGNED;
	union {
		uint32_t dst4[BURST_MAX]; // host order
		struct fib_key6 dst6[BURST_MAX];
	} LINE_ALIGNED;
	uint16_t length[BURST_MAX] LINE_ALIGNED; // from frame on, no FCS; 65535: that or more
	uint16_t hop[BURST_MAX] LINE_ALIGNED;
	uint8_t ttl[BURST_MAX] LINE_ALIGNED;  // or hop limit
	uint8_t port[BURST_MAX] LINE_ALIGNED; // output port
};

struct parse;
struct datapath_variant;

// What one poll of one queue returned.
struct received {
	const struct port_queue *from;
	struct rte_mbuf **mbuf;
	uint16_t n;
};

// The packets of one poll, by family, and the table that answers for them.
struct sorted {
	struct burst ip4, ip6;
	const struct fib_view *view;
	bool has_begun;
	struct fib_begun4 begun;
};

// Polls of one queue that follow each other at the most, and those of them that are under way at
// once; see worker.c.
enum { TRAIN_POLLS = 8, UNDER_WAY = 3 };

// Packets of VLANs for which other tables or rules stand than for their burst: they walk after it.
struct aside {
	uint16_t n;
	struct rte_mbuf *mbuf[BURST_MAX];
	uint8_t *frame[BURST_MAX];
	struct fib_iface_in iface[BURST_MAX];
};

// Frames that Linux sent and the device has not taken yet, oldest first.
struct injection {
	uint16_t n;
	struct rte_mbuf *mbuf[BURST_MAX];
	uint64_t taken_at[BURST_MAX]; // stat->loops then
};

// Everything one worker owns; one writer, its own cache lines.
struct worker {
	const struct port_worker *io;
	const struct port_state *states; // by port index
	struct fib_rcu_fast *rcu;
	struct stats_worker *stat;
	const bool *stop;                       // atomic, relaxed
	const struct datapath_variant *variant; // of the steps, by CPU
	struct tap_worker *tap;                 // NULL: ports have no TAP interfaces
	uint16_t from;                          // index of the port that the burst came in on
	struct sorted *now;                     // the one that parse fills
	uint16_t n_dropped;
	struct rte_mbuf *dropped[UNDER_WAY * BURST_MAX] LINE_ALIGNED; // or injected ones
	struct aside aside;
	struct injection injection;
	uint64_t timed_from;    // bursts by then: the next one is timed
	uint64_t redirects_due; // TSC: when the redirects seen until now are paid for
	struct rte_mempool *
		pool[PORT_WORKER_QUEUES]; // by queue: of what it receives into; NULL: not looked at
	struct stats_step step;           // cycles of the burst that is timed
	uint64_t price;    // cycles that a packet costs by now (datapath/price.h); 0: not known yet
	uint64_t long_gap; // a round of so many cycles more than its frames explain is noted
	uint64_t tsc_hz;   // of the TSC
	struct idle idle;
	uint64_t noteworthy_gap; // a shorter round is neither long nor the longest
	struct sorted sorted[UNDER_WAY];
} LINE_ALIGNED;

// Ends a packet's walk. Linux gets it as it came where ports have TAP interfaces and the verdict
// has a class (steps give such verdicts before the first byte is written); else counts the verdict
// and frees the packet with the others at the end of the burst.
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

// Closes gaps after check: packet `from` takes place `to`.
static inline void burst_move(struct burst *b, uint16_t to, uint16_t from)
{
	b->mbuf[to] = b->mbuf[from];
	b->frame[to] = b->frame[from];
	b->length[to] = b->length[from];
	b->port[to] = burst_port(b, from);
	b->hop[to] = b->hop[from];
}

// Bytes of VLAN tags that the packet came with; until the tag step.
static inline uint16_t burst_tag_bytes(const struct burst *b, uint16_t i)
{
	return b->frame[i] - rte_pktmbuf_mtod(b->mbuf[i], uint8_t *);
}
