// The steps, in the order of the walk. Each works on a whole burst; a call per burst is free. Lane.
#pragma once

#include "path/burst.h"

// Sorts received frames into w->ip4 and w->ip6; all others get their verdict.
void path_parse(struct worker *w, const struct received *r);
// Writes hop[] of all packets.
void path_lookup4(const struct fib_view *view, struct burst *b);
void path_lookup6(const struct fib_view *view, struct burst *b);
// Drops what may not leave as it is: routes that lead nowhere, TTL, MTU. Not a byte of a packet is
// written before this.
void path_check(struct worker *w, const struct fib_view *view, struct burst *b);
// Replaces hops that are groups by a member, by flow; false: there is none in this burst. Part of
// check.
bool path_spread(const struct fib_view *view, struct burst *b);
// (rewrite follows here: variant.h)
// Groups by output port and hands over; what a device refuses is dropped by name. The burst is
// empty afterwards.
void path_send(struct worker *w, struct burst *b);
// Frames for one port, `bytes` long in all.
struct outgoing {
	struct rte_mbuf **mbuf;
	uint16_t n;
	uint64_t bytes;
};
// Sends on one port; what it refuses is dropped by name. Shared by path_send and the cross-connect.
void path_send_port(struct worker *w, uint8_t port, const struct outgoing *out);
// The whole walk of a port of mode xconnect.
void path_xconnect(struct worker *w, const struct received *r);
