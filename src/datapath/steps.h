// The steps of the pipeline, in order. Each processes a whole burst; a call per burst costs nothing
// measurable. Worker.
#pragma once

#include "datapath/burst.h"

// Sends frames from Linux before any forwarded ones. Frames that a device refuses are retried in
// the next loops. Returns the number sent or dropped. Only with TAP interfaces.
unsigned datapath_inject(struct worker *w);
// Called when the worker ends: sends or drops the rest.
void datapath_inject_rest(struct worker *w);
// Sorts received frames into w->poll by family; all others get their verdict. Returns the table (of
// the main table or a VRF) to look them up in. Packets that need another table or other flags are
// deferred.
const struct fib_view *datapath_parse(struct worker *w, const struct fib_view *view,
	const struct received *r);
// Does the same for deferred packets, one table and set of flags per call, until none is left.
const struct fib_view *datapath_parse_deferred(struct worker *w, const struct fib_view *view);
// Writes hop[] of all packets: one bulk lookup per family.
static inline void datapath_lookup4(const struct fib_view *view, struct burst *b)
{
	fib_lookup4(view, b->dst4, b->hop, b->n);
}

static inline void datapath_lookup6(const struct fib_view *view, struct burst *b)
{
	fib_lookup6(view, b->dst6, b->hop, b->n);
}

// Punts or drops IPv4 packets from our own addresses that would be forwarded. Called only for
// bursts with a non-zero own_source_mask.
void datapath_source(struct worker *w, const struct fib_view *view, struct burst *b);
// Drops or punts packets that cannot be forwarded: route verdicts, TTL, MTU. Nothing is written to
// a packet before this step is complete.
void datapath_check(struct worker *w, const struct fib_view *view, struct burst *b);
// ECMP: replaces hops that are groups by a member, per flow. False: no packet of this burst has a
// group. Part of check.
bool datapath_ecmp(const struct fib_view *view, struct burst *b);
// Punts a limited number of packets that leave by their input interface to Linux. Part of check.
void datapath_redirect(struct worker *w, const struct fib_view *view, struct burst *b);
// (rewrite follows here: variant.h)
// Trims frames to length[i]. Called only for bursts with trailers, before tag.
void datapath_trim(struct burst *b);
// Removes the VLAN tags that packets arrived with and inserts those of their next hops.
void datapath_tag(struct worker *w, const struct fib_view *view, struct burst *b);
// Groups packets by output port and transmits them; those that a device refuses are dropped and
// counted. The burst is empty afterwards.
void datapath_send(struct worker *w, struct burst *b);
// Frames for one port; `bytes` is their total length.
struct outgoing {
	struct rte_mbuf **mbuf;
	uint16_t n;
	uint64_t bytes;
};
// Passes frames to the port's device and counts those that it accepted. Returns their number. The
// caller still owns the others.
uint16_t datapath_transmit(struct worker *w, uint8_t port, const struct outgoing *out);
// Transmits on one port; frames that it refuses are dropped and counted. Shared by datapath_send
// and the cross-connect.
void datapath_send_port(struct worker *w, uint8_t port, const struct outgoing *out);
// The whole pipeline of a port in xconnect mode.
void datapath_xconnect(struct worker *w, const struct received *r);

// worker.c: the main loop of one worker, which runs these steps. `arg` is a struct worker. Returns
// 0 after its `stop` flag is set and every packet that it held has been sent or dropped.
int worker_run(void *arg);
