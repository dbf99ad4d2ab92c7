// What the worker does with bursts, and the functions of the step table. Each processes a whole
// burst; a call per burst costs nothing measurable. Worker.
#pragma once

#include "datapath/burst.h"

// Sends frames from Linux before any forwarded ones. Frames that a device refuses are retried in
// the next loops. Returns the number sent or dropped. Only with TAP interfaces.
unsigned datapath_inject(struct worker *w);
// Called when the worker ends: sends or drops the rest.
void datapath_inject_rest(struct worker *w);
// Sorts received frames into the bursts of w->poll, by family; all others get their verdict.
// `view`: of the main VRF.
void datapath_parse(struct worker *w, const struct fib_view *view, const struct received *r);

// Writes hop[] of all packets, each from its own table.
void datapath_lookup(struct worker *w, struct burst *b);
// The lookups of a poll in three parts, for workers that do other work while memory is prefetched.
// IPv4 lookups in tables that have no parts, and all of IPv6, are done at the end.
void datapath_lookup_begin(struct poll *p);
void datapath_lookup_continue(struct poll *p);
void datapath_lookup_end(struct worker *w, struct poll *p);
// Looks up addr[i] of the packets in `mask`, at least one, in the given table or each in its own
// one, and writes hop[i].
void datapath_lookup4_in(const struct fib_view *table, uint64_t mask, const uint32_t addr[],
	uint32_t hop[]);
void datapath_lookup4_each(const struct burst *b, uint64_t mask, const uint32_t addr[],
	uint32_t hop[]);
void datapath_lookup6_each(const struct burst *b, uint64_t mask, const struct fib_key6 addr[],
	uint32_t hop[]);

// The functions of the step table (steps.c). They are called for bursts that have packets.
//
// Punts neighbour discovery to other hosts. Only with TAP interfaces.
void datapath_discovery(struct worker *w, struct burst *b);
// Punts or drops IPv4 packets from our own addresses that would be forwarded.
void datapath_source(struct worker *w, struct burst *b);
// Reverse path filter: drops packets whose sources fail. Called only for bursts with BURST_RPF.
void datapath_rpf(struct worker *w, struct burst *b);
// Drops or punts packets that cannot be forwarded: route verdicts, TTL, MTU.
void datapath_check(struct worker *w, struct burst *b);
// ECMP: replaces hops that are groups by a member, per flow. False: no packet of this burst has a
// group. Part of check.
bool datapath_ecmp(struct burst *b);
// Punts a limited number of packets that leave by their input interface to Linux. Nothing is
// written to a packet before this step is complete. Only with TAP interfaces.
void datapath_redirect(struct worker *w, struct burst *b);
// Writes what forwarding changes in all frames (variant.h).
void datapath_rewrite(struct worker *w, struct burst *b);
// Trims frames to length[i], before untag.
void datapath_trim(struct worker *w, struct burst *b);
// Removes the VLAN tags that packets arrived with.
void datapath_untag(struct worker *w, struct burst *b);
// Whether a packet longer than frame_max may be fragmented by this worker; false: it is punted.
// Part of check.
bool datapath_may_fragment(const struct burst *b, uint16_t i, uint16_t frame_max);
// Fragments the packets in fragment_mask and sends all packets; the burst is empty afterwards.
// Called only for bursts with BURST_FRAGMENTS.
void datapath_fragment(struct worker *w, struct burst *b);
// Writes the headers of next hops with a template in front of the packets in template_mask; drops
// packets whose buffers have no space for them.
void datapath_encap(struct worker *w, struct burst *b);
// Groups packets by output port and transmits them; those that a device refuses are dropped and
// counted. The burst is empty afterwards.
void datapath_send(struct worker *w, struct burst *b);

// Writes the lists of steps that are enabled for this worker.
void datapath_enable_steps(struct worker *w);

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
