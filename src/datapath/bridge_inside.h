// Shared by the files of bridges: the frames of one poll, and how they leave. Worker.
#pragma once

#include "acl/acl_fast.h"
#include "datapath/steps.h"

#include "wire/headers.h"

static const uint64_t ADDRESS = (1ull << 48) - 1;

// The frames of one poll that have whole headers; bit i of a mask belongs to frame i.
struct frames {
	const struct mac_view *view;
	const struct mac_port *from;
	uint16_t in, n;     // in: the member by which they came in
	uint8_t end_family; // of a VXLAN device: 4 or 6, of their senders' addresses
	bool has_offloads;  // an open frame (offload.h)
	uint64_t now;       // TSC
	struct rte_mbuf **mbuf;
	uint64_t dst[BURST_MAX], src[BURST_MAX]; // keys
	struct mac_found to[BURST_MAX];
	uint16_t vid[BURST_MAX];              // 0: none; only if the bridge filters by VLAN
	const struct mac_out *out[BURST_MAX]; // of frames to groups: see frames_snoop
	uint8_t end[BURST_MAX][16];           // of a VXLAN device: addresses of the remote ends
};

// Whether the frames came in by VXLAN.
static inline bool frames_are_remote(const struct frames *f)
{
	return f->in >= MAC_FIRST_TUNNEL;
}

// The member behind which an address is.
static inline uint32_t frames_member(const struct worker *w, const struct mac_found *found)
{
	return unlikely(found->flags & MAC_REMOTE) ? mac_live_remote(w->macs, found->port)->member
	                                           : found->port;
}

// Whether the sender of frame i is known where the frame came in; of a device that learns remote
// ends: at that remote end.
bool frames_know_sender(const struct worker *w, const struct frames *f, uint16_t i,
	const struct mac_found *source);
// Tells the control thread of the sender of frame i.
void frames_tell(struct worker *w, const struct frames *f, uint16_t i);
// Whether frame i was cut by the device.
static inline bool frames_is_cut(const struct worker *w, const struct frames *f, uint16_t i)
{
	if (frames_are_remote(f))
		return false;
	const struct port_state *state = &w->states[f->in];

	return unlikely(state->cut_bytes) && datapath_is_cut(state, f->mbuf[i]);
}
// What the counters of a port count.
static inline void frames_count(struct worker *w, const struct frames *f, uint64_t bytes)
{
	if (!frames_are_remote(f))
		stats_add(&w->stat->port[f->in].rx_bytes, bytes);
}

static inline bool is_group(uint64_t key)
{
	return key & 1; // of the first byte
}

// 01:80:c2:00:00:00 to 0f (IEEE 802.1Q, 8.6.3), in memory order.
static inline bool is_reserved(uint64_t key)
{
	return (key & 0xf0ffffffffff) == 0x0000c28001;
}

// RFC 894 has no frames from groups, and nobody has the address 0.
static inline bool is_no_source(uint64_t key)
{
	return is_group(key) || !(key & ADDRESS);
}

// The kind of a frame to a group or an unknown address.
static inline enum mac_storm frames_kind(uint64_t dst)
{
	if (!is_group(dst))
		return MAC_UNKNOWN;
	return (dst & ADDRESS) == ADDRESS ? MAC_BROADCAST : MAC_MULTICAST;
}

// Whether an access list of the port judges frames, for which Linux's path has them parsed.
static inline bool frames_judged(const struct worker *w, enum acl_direction direction,
	uint16_t port)
{
	const struct acl_view *view = w->acls ? acl_live_view(w->acls) : NULL;

	return view && acl_view_list(view, direction, port);
}

// bridge_send.c. Whether a frame is longer than the port's MTU and what may be around a packet: the
// header and up to two tags.
bool frames_is_long(const struct rte_mbuf *m, uint16_t mtu);

// Why the port cannot send a frame; VERDICT_FORWARD: it can.
static inline enum verdict frames_judge(const struct port_state *out, const struct rte_mbuf *m)
{
	const uint16_t mtu = port_mtu(out);

	if (unlikely(m->pkt_len > mtu + (uint32_t)WIRE_ETHER_BYTES && frames_is_long(m, mtu)))
		return VERDICT_BRIDGE_MTU;
	if (unlikely(!datapath_has_room(out, m)))
		return VERDICT_MULTI_SEGMENT;
	return VERDICT_FORWARD;
}

// bridge_send.c. Masks may be 0. Drops the frames, counted.
void frames_drop(struct worker *w, const struct frames *f, uint64_t mask, enum verdict verdict);
// Returns those of `mask` that storm control lets pass; the others are dropped.
uint64_t frames_pass_storm_control(struct worker *w, const struct frames *f, uint64_t mask,
	enum mac_storm kind);
// Where frames are flooded to.
struct flood_to {
	const uint64_t *ports; // a set, of which those are used that are up and in a frame's VLAN
	bool keeps;            // the caller keeps the frames
	enum mac_storm kind;   // of the frames: so that VXLAN devices get them, too; MAC_STORMS:
	                       // these do not
};
// Sends the frames in `mask` there. Copies go to all but the last one, which gets the frame itself,
// unless the caller keeps it: then all get copies.
void frames_flood(struct worker *w, const struct frames *f, uint64_t mask,
	const struct flood_to *to);
// Sends each frame in `mask` by the port of to[i], or to that remote end.
void frames_send_known(struct worker *w, const struct frames *f, uint64_t mask);

// bridge_groups.c. What is in a frame, behind at most one tag, which Linux takes off.
struct frame_packet {
	uint16_t type; // EtherType
	const uint8_t *bytes;
	uint32_t n, whole; // bytes that can be read; bytes of it, with what may follow
	uint8_t space[WIRE_ETHER_BYTES + WIRE_VLAN_BYTES + 60]; // up to the end of an IPv4 header
};
void frames_packet(const struct frames *f, const struct rte_mbuf *m, struct frame_packet *out);
// Looks up where frame i to a group goes, into out[i]; NULL: it is flooded. False: it is Linux's.
bool frames_snoop(struct frames *f, uint16_t i);
// Sends the frames in `mask` to where out[] says.
void frames_send_groups(struct worker *w, const struct frames *f, uint64_t mask);

// bridge_remote.c: why a frame cannot be sent to a remote end; `more`: bytes that it will be longer
// by. / Sends those in `mask` to the remote ends of to[]. / Sends those in `mask` to all remote
// ends of the bridge that get floods; those in `*left` leave themselves instead of their last copy,
// and are removed from it.
enum verdict frames_judge_remote(const struct worker *w, struct rte_mbuf *m, uint32_t remote,
	unsigned more);
void frames_send_remote(struct worker *w, const struct frames *f, uint64_t mask);
void frames_flood_remotes(struct worker *w, const struct frames *f, uint64_t mask,
	enum mac_storm kind, uint64_t *left);
// bridge_remote.c. Whether Linux does more than workers with frame i, to an unknown address: a
// remote end that gets it is behind a neighbour that is not resolved, so that Linux keeps the frame
// until it is, or the frame is too long, which Linux answers.
bool frames_need_linux(const struct worker *w, const struct frames *f, unsigned i);
// bridge_send.c: a copy of the frame; NULL: counted. / Counts a copy that is not made.
struct rte_mbuf *frames_copy(struct worker *w, struct rte_mbuf *from);
struct rte_mbuf *frames_lose_copy(struct worker *w, struct rte_mbuf *from, enum verdict verdict);

// bridge.c: all that happens to frames of one member, of which the view and the member are set: as
// datapath_bridge.
void frames_bridge(struct worker *w, struct frames *f, struct received *r,
	struct received_on_bridge *own);
// bridge_linux.c: frames of a port of a bridge of Linux; the view and the port are set. As
// datapath_bridge.
void frames_of_linux(struct worker *w, struct frames *f, struct received *r,
	struct received_on_bridge *own);
