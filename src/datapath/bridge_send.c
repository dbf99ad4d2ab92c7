// How frames leave a bridge: by the port of a known address, or as copies by many. Worker.
#include "datapath/bridge_inside.h"
#include "datapath/bridge_vlans.h"

#include "wire/headers.h"

enum { MOST_TAGS = 2 }; // that may make a frame longer than the MTU

bool frames_is_long(const struct rte_mbuf *m, uint16_t mtu)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t most = mtu + WIRE_ETHER_BYTES;

	for (unsigned i = 0; i < MOST_TAGS && m->data_len >= WIRE_ETHER_BYTES + i * 4; i++) {
		const uint16_t type = frame[12 + i * 4] << 8 | frame[13 + i * 4];

		if (type != WIRE_ETHERTYPE_VLAN && type != WIRE_ETHERTYPE_QINQ)
			break;
		most += WIRE_VLAN_BYTES;
	}
	return offload_frame_bytes(m) > most;
}

void frames_drop(struct worker *w, const struct frames *f, uint64_t mask, enum verdict verdict)
{
	for (; mask; mask &= mask - 1)
		worker_drop(w, f->mbuf[__builtin_ctzll(mask)], verdict);
}

// The frames in `mask`, at least one, all by one port.
static void send_all(struct worker *w, const struct frames *f, uint16_t to, uint64_t mask)
{
	const struct port_state *state = &w->states[to];
	struct rte_mbuf *group[BURST_MAX];
	struct outgoing out = {.mbuf = group, .has_offloads = f->has_offloads};

	for (; mask; mask &= mask - 1) {
		struct rte_mbuf *m = f->mbuf[__builtin_ctzll(mask)];
		const enum verdict verdict = frames_judge(state, m);

		if (unlikely(verdict != VERDICT_FORWARD)) {
			worker_drop(w, m, verdict);
			continue;
		}
		group[out.n++] = m;
		out.bytes += m->pkt_len;
	}
	if (out.n)
		datapath_send_port(w, to, &out);
}

// Counts a copy that is not made. Returns NULL.
__attribute__((noinline)) struct rte_mbuf *frames_lose_copy(struct worker *w, struct rte_mbuf *from,
	enum verdict verdict)
{
	stats_add(&w->stat->verdict[verdict], 1);
	if (w->capture)
		worker_capture_drop(w, from, verdict);
	return NULL;
}

struct rte_mbuf *frames_copy(struct worker *w, struct rte_mbuf *from)
{
	struct rte_mbuf *made = rte_pktmbuf_copy(from, from->pool, 0, UINT32_MAX);

	if (unlikely(!made))
		return frames_lose_copy(w, from, VERDICT_BRIDGE_COPY_FAILED);
	return made;
}

// A copy that the port can send, in a buffer of the frame's pool; NULL: counted.
static struct rte_mbuf *copy(struct worker *w, const struct port_state *out, struct rte_mbuf *from)
{
	const enum verdict verdict = frames_judge(out, from);
	struct rte_mbuf *made;

	if (unlikely(verdict != VERDICT_FORWARD))
		return frames_lose_copy(w, from, verdict);
	made = frames_copy(w, from);
	if (unlikely(!made))
		return NULL;
	if (unlikely(!datapath_has_room(out, made))) {
		worker_drop(w, made, VERDICT_MULTI_SEGMENT);
		return NULL;
	}
	return made;
}

static void send_copies(struct worker *w, const struct frames *f, uint16_t to, uint64_t mask)
{
	const struct mac_vlans *vlans = f->view->port[to].vlans;
	struct rte_mbuf *made[BURST_MAX];
	struct outgoing out = {.mbuf = made, .has_offloads = f->has_offloads};

	stats_add(&w->stat->port[to].copied_packets, __builtin_popcountll(mask));
	for (; mask; mask &= mask - 1) {
		const unsigned i = __builtin_ctzll(mask);
		struct rte_mbuf *m = copy(w, &w->states[to], f->mbuf[i]);

		if (!m)
			continue;
		if (vlans)
			bridge_vlans_tag(vlans, f->vid[i], m);
		made[out.n++] = m;
		out.bytes += m->pkt_len;
	}
	if (out.n)
		datapath_send_port(w, to, &out);
	burst_free_dropped(w); // the space is for those of one burst
}

// Those of `mask` that may leave by the port, as far as VLANs are concerned.
static uint64_t in_vlans(const struct worker *w, const struct frames *f, uint16_t to, uint64_t mask)
{
	const struct mac_vlans *in = f->from->vlans, *out = f->view->port[to].vlans;
	uint64_t found = 0;

	if (likely(!in))
		return mask;
	for (; mask; mask &= mask - 1) {
		const unsigned i = __builtin_ctzll(mask);

		if (bridge_vlans_out(in, out, f->vid[i], f->mbuf[i], port_mtu(&w->states[to])))
			found |= mask & -mask;
	}
	return found;
}

static void send_tagged(struct worker *w, const struct frames *f, uint16_t to, uint64_t mask)
{
	const struct mac_vlans *vlans = f->view->port[to].vlans;

	for (uint64_t rest = vlans ? mask : 0; rest; rest &= rest - 1) {
		const unsigned i = __builtin_ctzll(rest);

		bridge_vlans_tag(vlans, f->vid[i], f->mbuf[i]);
	}
	send_all(w, f, to, mask);
}

// The ports of a set that can be sent by, in order; returns how many.
static unsigned list_ports(const struct worker *w, const struct frames *f, const uint64_t set[],
	uint8_t port[MAC_PORTS])
{
	const bool asks = f->from->flags & MAC_OF_LINUX;
	unsigned n = 0;

	for (unsigned word = 0; word < MAC_PORTS / 64; word++)
		for (uint64_t rest = set[word]; rest; rest &= rest - 1) {
			const unsigned to = word * 64 + __builtin_ctzll(rest);

			// Linux's frames have to be judged; soon they will be left to it.
			if (port_is_up(&w->states[to]) && !(asks && frames_judged(w, ACL_OUT, to)))
				port[n++] = to;
		}
	return n;
}

// The last port of a frame is the last one that it may leave by: with VLANs, each frame has its
// own. Ports are served in order, so that no frame is changed before the last copy of it is made.
void frames_flood(struct worker *w, const struct frames *f, uint64_t mask,
	const struct flood_to *to)
{
	uint64_t out[MAC_PORTS], itself[MAC_PORTS], left = to->keeps ? 0 : mask;
	uint8_t port[MAC_PORTS];

	if (!mask)
		return;
	const unsigned n = list_ports(w, f, to->ports, port);
	for (unsigned k = n; k-- > 0;) {
		out[k] = in_vlans(w, f, port[k], mask);
		itself[k] = out[k] & left;
		left &= ~out[k];
	}
	if (unlikely(f->view->n_members > MAC_FIRST_TUNNEL) && !frames_are_remote(f) &&
		to->kind < MAC_STORMS)
		frames_flood_remotes(w, f, mask, to->kind, &left);
	for (unsigned k = 0; k < n; k++) {
		if (out[k] & ~itself[k])
			send_copies(w, f, port[k], out[k] & ~itself[k]);
		if (itself[k])
			send_tagged(w, f, port[k], itself[k]);
	}
	frames_drop(w, f, left, VERDICT_BRIDGE_NO_PORT);
	burst_free_dropped(w);
}

// Why frames to known addresses behind a port do not go there; VERDICT_FORWARD: they do.
static enum verdict refuse(const struct frames *f, uint16_t to)
{
	if (to == f->in && !(f->from->flags & MAC_HAIRPIN))
		return VERDICT_BRIDGE_SAME_PORT;
	if (f->from->flags & f->view->port[to].flags & MAC_ISOLATED)
		return VERDICT_BRIDGE_ISOLATED;
	return VERDICT_FORWARD;
}

// Each round sends the frames to the first one's port, in order.
void frames_send_known(struct worker *w, const struct frames *f, uint64_t left)
{
	uint64_t remote = 0;

	for (uint64_t rest = left; f->view->n_members > MAC_FIRST_TUNNEL && rest; rest &= rest - 1)
		if (f->to[__builtin_ctzll(rest)].flags & MAC_REMOTE)
			remote |= rest & -rest;
	if (unlikely(remote))
		frames_send_remote(w, f, remote);
	left &= ~remote;
	while (left) {
		const uint16_t to = f->to[__builtin_ctzll(left)].port;
		const enum verdict verdict = refuse(f, to);
		uint64_t same = 0;

		for (uint64_t rest = left; rest; rest &= rest - 1) {
			const unsigned i = __builtin_ctzll(rest);
			same |= (uint64_t)(f->to[i].port == to) << i;
		}
		left &= ~same;
		if (likely(verdict == VERDICT_FORWARD))
			send_all(w, f, to, same);
		else
			frames_drop(w, f, same, verdict);
	}
}

uint64_t frames_pass_storm_control(struct worker *w, const struct frames *f, uint64_t mask,
	enum mac_storm kind)
{
	static const uint8_t verdicts[MAC_STORMS] = {VERDICT_STORM_BROADCAST,
		VERDICT_STORM_MULTICAST, VERDICT_STORM_UNKNOWN};
	uint64_t passed = mask;

	if (likely(!f->from->storm_cycles[kind]))
		return mask;
	for (uint64_t rest = mask; rest; rest &= rest - 1)
		if (!mac_storm_passes(w->macs, f->view, f->in, kind, f->now))
			passed &= ~(rest & -rest);
	frames_drop(w, f, mask & ~passed, verdicts[kind]);
	return passed;
}
