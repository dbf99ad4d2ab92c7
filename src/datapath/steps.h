// The steps, in the order of the walk. Each works on a whole burst; a call per burst is free.
// Worker.
#pragma once

#include "datapath/burst.h"

// Takes what Linux sent and sends it, before anything of our own; what a device refuses is tried
// again in the next loops. Returns how many were sent or dropped. Only with TAP interfaces. / At
// the worker's end: nothing stays behind.
unsigned datapath_inject(struct worker *w);
void datapath_inject_rest(struct worker *w);
// Sorts received frames into w->now; all others get their verdict. Returns the table
// (the VRF's) that answers for them. What other tables or rules stand for is put aside.
const struct fib_view *datapath_parse(struct worker *w, const struct fib_view *view,
	const struct received *r);
// The same with what was put aside, one table and set of rules at a time, until nothing is.
const struct fib_view *datapath_parse_aside(struct worker *w, const struct fib_view *view);
// Writes hop[] of all packets.
void datapath_lookup4(const struct fib_view *view, struct burst *b);
void datapath_lookup6(const struct fib_view *view, struct burst *b);
// Ends the walk of packets of IPv4 from our own addresses that would be forwarded. Called only for
// bursts with suspects.
void datapath_source(struct worker *w, const struct fib_view *view, struct burst *b);
// Ends the walk of neighbour discovery of IPv6, which Linux hears. Part of check; called only for
// bursts that see discovery.
void datapath_discovery(struct worker *w, struct burst *b);
// Drops what may not leave as it is: routes that lead nowhere, TTL, MTU. Not a byte of a packet is
// written before this.
void datapath_check(struct worker *w, const struct fib_view *view, struct burst *b);
// Replaces hops that are groups by a member, by flow; false: there is none in this burst. Part of
// check.
bool datapath_spread(const struct fib_view *view, struct burst *b);
// Lets Linux see a few of the packets that leave by the link that they came in on. Part of check.
void datapath_redirect(struct worker *w, const struct fib_view *view, struct burst *b);
// (rewrite follows here: variant.h)
// Takes off the VLAN tags that packets came with and puts on those of their next hop.
void datapath_tag(struct worker *w, const struct fib_view *view, struct burst *b);
// Groups by output port and hands over; what a device refuses is dropped by name. The burst is
// empty afterwards.
void datapath_send(struct worker *w, struct burst *b);
// Frames for one port, `bytes` long in all.
struct outgoing {
	struct rte_mbuf **mbuf;
	uint16_t n;
	uint64_t bytes;
};
// Hands over to a port's device and counts what it took; returns how many. The others still belong
// to the caller.
uint16_t datapath_transmit(struct worker *w, uint8_t port, const struct outgoing *out);
// Sends on one port; what it refuses is dropped by name. Shared by datapath_send and the
// cross-connect.
void datapath_send_port(struct worker *w, uint8_t port, const struct outgoing *out);
// The whole walk of a port of mode xconnect.
void datapath_xconnect(struct worker *w, const struct received *r);
