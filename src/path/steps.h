// The steps, in the order of the walk. Each works on a whole burst; a call per burst is free. Lane.
#pragma once

#include "path/burst.h"

// Takes what Linux sent and sends it, before anything of our own; what a device refuses is tried
// again in the next loops. Returns how many were sent or dropped. Only with twins. / At the lane's
// end: nothing stays behind.
unsigned path_inject(struct worker *w);
void path_inject_rest(struct worker *w);
// Sorts received frames into w->now; all others get their verdict. Returns the table
// (the VRF's) that answers for them. What other tables or rules stand for is put aside.
const struct fib_view *path_parse(struct worker *w, const struct fib_view *view,
	const struct received *r);
// The same with what was put aside, one table and set of rules at a time, until nothing is.
const struct fib_view *path_parse_aside(struct worker *w, const struct fib_view *view);
// Writes hop[] of all packets.
void path_lookup4(const struct fib_view *view, struct burst *b);
void path_lookup6(const struct fib_view *view, struct burst *b);
// Ends the walk of packets of IPv4 from our own addresses that would be forwarded. Called only for
// bursts with suspects.
void path_source(struct worker *w, const struct fib_view *view, struct burst *b);
// Ends the walk of neighbour discovery of IPv6, which Linux hears. Part of check; called only for
// bursts that see discovery.
void path_discovery(struct worker *w, struct burst *b);
// Drops what may not leave as it is: routes that lead nowhere, TTL, MTU. Not a byte of a packet is
// written before this.
void path_check(struct worker *w, const struct fib_view *view, struct burst *b);
// Replaces hops that are groups by a member, by flow; false: there is none in this burst. Part of
// check.
bool path_spread(const struct fib_view *view, struct burst *b);
// Lets Linux see a few of the packets that leave by the link that they came in on. Part of check.
void path_redirect(struct worker *w, const struct fib_view *view, struct burst *b);
// (rewrite follows here: variant.h)
// Takes off the VLAN tags that packets came with and puts on those of their next hop.
void path_tag(struct worker *w, const struct fib_view *view, struct burst *b);
// Groups by output port and hands over; what a device refuses is dropped by name. The burst is
// empty afterwards.
void path_send(struct worker *w, struct burst *b);
// Frames for one port, `bytes` long in all.
struct outgoing {
	struct rte_mbuf **mbuf;
	uint16_t n;
	uint64_t bytes;
};
// Hands over to a port's device and counts what it took; returns how many. The others still belong
// to the caller.
uint16_t path_transmit(struct worker *w, uint8_t port, const struct outgoing *out);
// Sends on one port; what it refuses is dropped by name. Shared by path_send and the cross-connect.
void path_send_port(struct worker *w, uint8_t port, const struct outgoing *out);
// The whole walk of a port of mode xconnect.
void path_xconnect(struct worker *w, const struct received *r);
