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
// The same of packets in tunnels that check has kept: w->tunnelled.
void datapath_parse_tunnelled(struct worker *w, const struct fib_view *view);
// The same of frames to a bridge, of at least one.
void datapath_parse_bridge(struct worker *w, const struct fib_view *view,
	const struct received_on_bridge *r);

// The lookups of a poll in three parts, for workers that do other work while memory is prefetched:
// match and lookup. IPv4 lookups in tables that have no parts, and all of IPv6, are done at the
// end.
void datapath_lookup_begin(struct worker *w, struct poll *p);
void datapath_lookup_continue(struct worker *w, struct poll *p);
void datapath_lookup_end(struct worker *w, struct poll *p);
// The part of match, only with flows.
void datapath_match_begin(struct worker *w, struct poll *p);
void datapath_match_continue(struct worker *w, struct poll *p);
void datapath_match_end(struct worker *w, struct poll *p);
// Sets family and key of packet i, before anything is written to it. False: it has no key. Part of
// match.
bool datapath_match_key(const struct burst *b, uint16_t i, struct flow_unknown *unknown);
// Looks up the flow of the packet of a burst of one that Linux would get: before its route. /
// Counts it for its flow; returns `verdict`, or that of the flow, or of the lack of one.
void datapath_match_linuxs(struct worker *w, struct burst *one);
enum verdict datapath_flow_linuxs(const struct worker *w, const struct burst *one,
	enum verdict verdict);
// Tells the control thread of the packets in `mask`, at least one, from which flows may be learnt;
// part of learn, and of flow for packets that it drops.
void datapath_learn_from(struct worker *w, const struct burst *b, uint64_t mask);
// Looks up addr[i] of the packets in `mask`, if any, in the given table or each in its own
// one, and writes hop[i].
void datapath_lookup4_in(const struct fib_view *table, uint64_t mask, const uint32_t addr[],
	uint32_t hop[]);
void datapath_lookup4_each(const struct burst *b, uint64_t mask, const uint32_t addr[],
	uint32_t hop[]);
void datapath_lookup6_each(const struct burst *b, uint64_t mask, const struct fib_key6 addr[],
	uint32_t hop[]);

// ECMP: replaces hops that are groups by a member, per flow. False: no packet of this burst has a
// group. Part of check.
bool datapath_ecmp(struct burst *b);
// The hop of packet i, or the member that ECMP selects for it.
uint32_t datapath_ecmp_hop(const struct burst *b, uint16_t i);
// A hash of the flow of packet i: fragments are hashed by their addresses.
uint64_t datapath_flow_hash(const struct burst *b, uint16_t i);
// The member of a group for a flow with this hash.
uint32_t datapath_ecmp_member(const struct fib_view *view, const struct fib_hop_entry *group,
	uint64_t hash);
// Adds a word to the hash of a flow, which begins with 0.
static inline uint64_t datapath_ecmp_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) *
	       0x9e3779b97f4a7c15ull; // 2^64 / golden ratio; the high half is well mixed
	return hash ^ hash >> 32;
}
// Writes the header of a hop in front of a packet, whose first byte would be the one of a plain
// frame; its labels get this TTL unless they have their own. Returns the first byte; NULL: there is
// not enough headroom. Part of encap.
uint8_t *datapath_write_header(struct rte_mbuf *m, const struct fib_template *template,
	uint8_t ttl);
// Shortens a frame to its first `length` bytes, at least one. Part of trim.
void datapath_cut(struct rte_mbuf *m, uint32_t length);
// Whether a packet longer than frame_max may be fragmented by this worker; false: it is punted, as
// are long ones of guests that are to be cut first.
// Part of check.
bool datapath_may_fragment(const struct burst *b, uint16_t i, uint16_t frame_max);
// The length of packet i, or of the longest frame into which it is to be cut. Part of check and
// bridge_out.
static inline uint16_t datapath_sent_length(const struct burst *b, uint16_t i)
{
	if (!(b->has & BURST_OFFLOADS) || !offload_is_long(b->mbuf[i]))
		return b->length[i];
	return MIN_OF(offload_frame_bytes(b->mbuf[i]) - burst_tag_bytes(b, i), UINT16_MAX);
}

// The step table, in order: name, phase, families, what a burst must have for the step to run (one
// of these bits of enum burst_has), and what must be configured (NULL: nothing). The step NAME is
// datapath_NAME() in NAME.c, which says what it does; it is called for bursts that have packets.
// PHASE: what the worker itself does in a phase.
#define DATAPATH_STEPS(PHASE, STEP)                                                                \
	PHASE(rx, PHASE_RX)                                                                        \
	PHASE(handover, PHASE_HANDOVER)                                                            \
	PHASE(xconnect, PHASE_XCONNECT)                                                            \
	PHASE(bridge, PHASE_BRIDGE)                                                                \
	PHASE(parse, PHASE_PARSE)                                                                  \
	STEP(discovery, PHASE_BEFORE, IP6, BURST_DISCOVERY, has_taps)                              \
	STEP(match, PHASE_LOOKUP, BOTH, BURST_PACKETS, has_flows)                                  \
	STEP(lookup, PHASE_LOOKUP, BOTH, BURST_PACKETS, NULL)                                      \
	STEP(acl_in, PHASE_AFTER, BOTH, BURST_PACKETS, has_acls)                                   \
	STEP(flow, PHASE_AFTER, BOTH, BURST_FLOWS, has_flows)                                      \
	STEP(source, PHASE_AFTER, IP4, BURST_OWN_SOURCES, NULL)                                    \
	STEP(rpf, PHASE_AFTER, BOTH, BURST_RPF, NULL)                                              \
	STEP(check, PHASE_AFTER, BOTH, BURST_PACKETS, NULL)                                        \
	STEP(bridge_out, PHASE_AFTER, BOTH, BURST_BRIDGES, NULL)                                   \
	STEP(acl_out, PHASE_AFTER, BOTH, BURST_PACKETS, has_acls)                                  \
	STEP(subscriber, PHASE_AFTER, BOTH, BURST_PACKETS, has_subscribers)                        \
	STEP(redirect, PHASE_AFTER, BOTH, BURST_REDIRECTS, has_taps)                               \
	STEP(learn, PHASE_AFTER, BOTH, BURST_UNKNOWN, can_learn)                                   \
	STEP(mirror, PHASE_AFTER, BOTH, BURST_MIRRORS, NULL)                                       \
	STEP(unlabel, PHASE_AFTER, BOTH, BURST_LABELS, NULL)                                       \
	STEP(mark, PHASE_AFTER, BOTH, BURST_MARKS, NULL)                                           \
	STEP(rewrite, PHASE_AFTER, BOTH, BURST_PACKETS, NULL)                                      \
	STEP(trim, PHASE_AFTER, BOTH, BURST_TRAILERS, NULL)                                        \
	STEP(untag, PHASE_AFTER, BOTH, BURST_TAGS, NULL)                                           \
	STEP(fragment, PHASE_AFTER, IP4, BURST_FRAGMENTS, NULL)                                    \
	STEP(encap, PHASE_AFTER, BOTH, BURST_TEMPLATES, NULL)                                      \
	STEP(vxlan, PHASE_AFTER, BOTH, BURST_REMOTES, NULL)                                        \
	STEP(shape, PHASE_AFTER, BOTH, BURST_SHAPED, has_shaper)                                   \
	STEP(send, PHASE_AFTER, BOTH, BURST_PACKETS, NULL)                                         \
	PHASE(decap, PHASE_DECAP)                                                                  \
	PHASE(free, PHASE_FREE)

#define DATAPATH_NOTHING(name, phase)
#define DATAPATH_DECLARE(name, phase, families, has, is_enabled)                                   \
	void datapath_##name(struct worker *w, struct burst *b);
DATAPATH_STEPS(DATAPATH_NOTHING, DATAPATH_DECLARE)
#undef DATAPATH_DECLARE
#undef DATAPATH_NOTHING

// Writes the lists of steps that are enabled for this worker.
void datapath_enable_steps(struct worker *w);

// Frames for one port; `bytes` is their total length.
struct outgoing {
	struct rte_mbuf **mbuf;
	uint16_t n;
	uint64_t bytes;
	bool has_offloads; // an open frame (offload.h)
};
// Whether a port can send a frame as far as its buffers are concerned. What a frame is cut into has
// buffers of its own.
static inline bool datapath_has_room(const struct port_state *out, const struct rte_mbuf *m)
{
	return likely(m->nb_segs == 1) || out->tx_multi_segment || offload_is_long(m);
}
// Passes frames to the port's device and counts those that it accepted. Returns their number. The
// caller still owns the others.
uint16_t datapath_transmit(struct worker *w, uint8_t port, const struct outgoing *out);
// Transmits on one port; frames that it refuses are dropped and counted, and open ones finished or
// left to its peer. Shared by all that send.
void datapath_send_port(struct worker *w, uint8_t port, const struct outgoing *out);
// The whole pipeline of a port in xconnect mode.
void datapath_xconnect(struct worker *w, const struct received *r);
// The same of a port in a bridge. If it is one of Linux, r->n frames remain, which are Linux's, and
// own->frames are to be routed; they are in r->mbuf, too.
void datapath_bridge(struct worker *w, struct received *r, struct received_on_bridge *own);
// Whether a frame is as long as a slot of its device, with an IP length beyond it.
bool datapath_is_cut(const struct port_state *from, const struct rte_mbuf *m);

// worker.c: processes frames of one queue, once, as the main loop does; r->mbuf has space for
// BURST_MAX. For traced packets.
void worker_process(struct worker *w, struct received *r);
// worker.c: the main loop of one worker, which runs these steps. `arg` is a struct worker. Returns
// 0 after its `stop` flag is set and every packet that it held has been sent or dropped.
int worker_run(void *arg);
