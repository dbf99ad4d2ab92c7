// What the steps of the walk hand each other: one burst of packets of one family, all still alive.
// Lane.
#pragma once

#include "base/bits.h"
#include "fib/fib_fast.h"
#include "port/port_fast.h"
#include "stat/stat.h"

#include <rte_mbuf.h>

enum { BURST_MAX = 64 };

// Arrays of fields, dense: place i of each belongs to packet i. A step that drops packets closes
// the gaps. Written by parse: mbuf, frame, dst, length, ttl; by lookup: hop; by check: port,
// has_one_hop, has_one_port.
struct burst {
	uint16_t n;
	bool has_segments; // some mbuf has more than one segment
	bool has_one_hop;  // all packets have hop[0]
	bool has_one_port; // all packets have port[0]
	struct rte_mbuf *mbuf[BURST_MAX] LINE_ALIGNED;
	uint8_t *frame[BURST_MAX] LINE_ALIGNED; // first byte of the Ethernet header
	union {
		uint32_t dst4[BURST_MAX]; // host order
		struct fib_key6 dst6[BURST_MAX];
	} LINE_ALIGNED;
	uint16_t length[BURST_MAX] LINE_ALIGNED; // of the frame without FCS; 65535: that or more
	uint16_t hop[BURST_MAX] LINE_ALIGNED;
	uint8_t ttl[BURST_MAX] LINE_ALIGNED;  // or hop limit
	uint8_t port[BURST_MAX] LINE_ALIGNED; // output port
};

struct parse;
struct path_variant;

// What one poll of one queue returned.
struct received {
	const struct port_queue *from;
	struct rte_mbuf **mbuf;
	uint16_t n;
};

// Everything one lane owns; one writer, its own cache lines.
struct worker {
	const struct port_lane *io;
	const struct port_face *faces; // by port index
	struct fib_door_fast *door;
	struct stat_lane *stat;
	const bool *stop;                   // atomic, relaxed
	const struct path_variant *variant; // of the steps, by CPU
	struct burst ip4, ip6;
	uint16_t n_dropped;
	struct rte_mbuf *dropped[2 * BURST_MAX] LINE_ALIGNED;
} LINE_ALIGNED;

// Ends a packet's walk: counts the verdict, frees the packet with the others at the end of the
// burst.
static inline void burst_drop(struct worker *w, struct rte_mbuf *mbuf, enum verdict verdict)
{
	stat_add(&w->stat->verdict[verdict], 1);
	w->dropped[w->n_dropped++] = mbuf;
}
