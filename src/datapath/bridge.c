// Bridge: forwards frames between the ports of a bridge by their destination MAC addresses, floods
// those to groups and unknown addresses, and tells the control thread of unknown sources. All that
// happens to frames of a port in a bridge. Worker.
#include "datapath/steps.h"

#include "acl/acl_fast.h"
#include "datapath/bridge_vlans.h"
#include "wire/headers.h"

#include <rte_cycles.h>
#include <string.h>

enum { MOST_TAGS = 2 }; // that may make a frame longer than the MTU

static const uint64_t ADDRESS = (1ull << 48) - 1;

// The frames of one poll that have whole headers; bit i of a mask belongs to frame i.
struct frames {
	const struct mac_view *view;
	const struct mac_port *from;
	uint16_t in, n;
	bool has_offloads; // an open frame (offload.h)
	uint64_t now;      // TSC
	struct rte_mbuf **mbuf;
	uint64_t dst[BURST_MAX], src[BURST_MAX]; // keys
	struct mac_found to[BURST_MAX];
	uint16_t vid[BURST_MAX]; // 0: none; only if the bridge filters by VLAN
};

static bool is_group(uint64_t key)
{
	return key & 1; // of the first byte
}

static bool is_broadcast(uint64_t key)
{
	return (key & ADDRESS) == ADDRESS;
}

// 01:80:c2:00:00:00 to 0f (IEEE 802.1Q, 8.6.3), in memory order.
static bool is_reserved(uint64_t key)
{
	return (key & 0xf0ffffffffff) == 0x0000c28001;
}

// RFC 894 has no frames from groups, and nobody has the address 0.
static bool is_no_source(uint64_t key)
{
	return is_group(key) || !(key & ADDRESS);
}

// Removes frames without a whole header, cut ones, and those of impossible senders.
static void read_addresses(struct worker *w, struct frames *f, uint16_t n)
{
	const struct port_state *state = &w->states[f->in];
	const uint16_t domain = f->from->domain;
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = f->mbuf[i];
		const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

		bytes += m->pkt_len;
		if (unlikely(m->data_len < WIRE_ETHER_BYTES)) {
			worker_drop(w, m, VERDICT_RUNT);
			continue;
		}
		f->dst[f->n] = mac_key(domain, frame);
		f->src[f->n] = mac_key(domain, frame + 6);
		if (unlikely(is_no_source(f->src[f->n])))
			worker_drop(w, m, VERDICT_BRIDGE_SOURCE);
		else if (unlikely(state->cut_bytes && datapath_is_cut(state, m)))
			worker_drop(w, m, VERDICT_FRAME_CUT);
		else
			f->mbuf[f->n++] = m;
	}
	stats_add(&w->stat->port[f->in].rx_bytes, bytes);
}

static void learn(struct worker *w, const struct frames *f)
{
	const uint32_t tick = mac_tick(f->view, f->now);
	struct mac_found source[BURST_MAX];

	if (!(f->from->flags & MAC_LEARNS) || w->trace)
		return;
	mac_lookup(f->view->slots, f->src, f->n, source);
	for (uint16_t i = 0; i < f->n; i++) {
		const struct mac_found *found = &source[i];

		if (likely(found->slot && found->port == f->in))
			mac_mark(found, tick);
		else if ((!found->slot || !found->flags) &&
			 !mac_tell(w->macs, w->io->id,
				 &(struct mac_told){.key = f->src[i], .port = f->in, .tick = tick}))
			stats_add(&w->stat->mac_learn_lost, 1);
	}
}

// Whether a frame is longer than the port's MTU and what may be around a packet: the header and up
// to two tags.
static __attribute__((noinline)) bool is_long(const struct rte_mbuf *m, uint16_t mtu)
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

// Why the port cannot send a frame; VERDICT_FORWARD: it can.
static inline enum verdict judge(const struct port_state *out, const struct rte_mbuf *m)
{
	const uint16_t mtu = port_mtu(out);

	if (unlikely(m->pkt_len > mtu + (uint32_t)WIRE_ETHER_BYTES && is_long(m, mtu)))
		return VERDICT_BRIDGE_MTU;
	if (unlikely(!datapath_has_room(out, m)))
		return VERDICT_MULTI_SEGMENT;
	return VERDICT_FORWARD;
}

static void drop_all(struct worker *w, const struct frames *f, uint64_t mask, enum verdict verdict)
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
		const enum verdict verdict = judge(state, m);

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
static __attribute__((noinline)) struct rte_mbuf *lose_copy(struct worker *w, struct rte_mbuf *from,
	enum verdict verdict)
{
	stats_add(&w->stat->verdict[verdict], 1);
	if (w->capture)
		worker_capture_drop(w, from, verdict);
	return NULL;
}

// A copy that the port can send, in a buffer of the frame's pool; NULL: counted.
static struct rte_mbuf *copy(struct worker *w, const struct port_state *out, struct rte_mbuf *from)
{
	const enum verdict verdict = judge(out, from);
	struct rte_mbuf *made;

	if (unlikely(verdict != VERDICT_FORWARD))
		return lose_copy(w, from, verdict);
	made = rte_pktmbuf_copy(from, from->pool, 0, UINT32_MAX);
	if (unlikely(!made))
		return lose_copy(w, from, VERDICT_BRIDGE_COPY_FAILED);
	if (unlikely(!datapath_has_room(out, made))) {
		worker_drop(w, made, VERDICT_MULTI_SEGMENT);
		return NULL;
	}
	return made;
}

static void send_copies(struct worker *w, const struct frames *f, uint16_t to, uint64_t mask)
{
	struct rte_mbuf *made[BURST_MAX];
	struct outgoing out = {.mbuf = made, .has_offloads = f->has_offloads};

	stats_add(&w->stat->port[to].copied_packets, __builtin_popcountll(mask));
	for (; mask; mask &= mask - 1) {
		struct rte_mbuf *m = copy(w, &w->states[to], f->mbuf[__builtin_ctzll(mask)]);

		if (!m)
			continue;
		made[out.n++] = m;
		out.bytes += m->pkt_len;
	}
	if (out.n)
		datapath_send_port(w, to, &out);
	burst_free_dropped(w); // the space is for those of one burst
}

// Sends the frames in `mask` to all ports of the set that are up: copies to all but the last one.
static void flood(struct worker *w, const struct frames *f, uint64_t mask, const uint64_t set[])
{
	int last = -1;

	if (!mask)
		return;
	for (unsigned word = 0; word < MAC_PORTS / 64; word++)
		for (uint64_t rest = set[word]; rest; rest &= rest - 1) {
			const unsigned to = word * 64 + __builtin_ctzll(rest);

			if (!port_is_up(&w->states[to]))
				continue;
			if (last >= 0)
				send_copies(w, f, last, mask);
			last = to;
		}
	if (last >= 0)
		send_all(w, f, last, mask);
	else
		drop_all(w, f, mask, VERDICT_BRIDGE_NO_PORT);
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
static void send_known(struct worker *w, const struct frames *f, uint64_t left)
{
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
			drop_all(w, f, same, verdict);
	}
}

// Returns those of `mask` that storm control lets pass; the others are dropped.
static uint64_t pass_storm_control(struct worker *w, const struct frames *f, uint64_t mask,
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
	drop_all(w, f, mask & ~passed, verdicts[kind]);
	return passed;
}

// Frames that are flooded come first: if an address becomes known just now, the older ones of its
// frames were looked up when it was not.
static void forward(struct worker *w, const struct frames *f)
{
	uint64_t known = 0, reserved = 0, of[MAC_STORMS] = {0};

	for (uint16_t i = 0; i < f->n; i++) {
		const uint64_t bit = 1ull << i;

		if (likely(!is_group(f->dst[i])))
			*(f->to[i].slot ? &known : &of[MAC_UNKNOWN]) |= bit;
		else if (is_reserved(f->dst[i]))
			reserved |= bit;
		else
			of[is_broadcast(f->dst[i]) ? MAC_BROADCAST : MAC_MULTICAST] |= bit;
	}
	if (unlikely(reserved | of[MAC_UNKNOWN] | of[MAC_BROADCAST] | of[MAC_MULTICAST])) {
		drop_all(w, f, reserved, VERDICT_BRIDGE_RESERVED);
		for (unsigned kind = 0; kind < MAC_STORMS; kind++)
			of[kind] = pass_storm_control(w, f, of[kind], kind);
		flood(w, f, of[MAC_BROADCAST] | of[MAC_MULTICAST], f->from->groups);
		flood(w, f, of[MAC_UNKNOWN], f->from->unknown);
	}
	send_known(w, f, known);
}

// Whether an access list of the port judges frames, for which Linux's path has them parsed.
static bool is_judged(const struct worker *w, enum acl_direction direction, uint16_t port)
{
	const struct acl_view *view = w->acls ? acl_live_view(w->acls) : NULL;

	return view && acl_view_list(view, direction, port);
}

// Reads the addresses of all frames; those of frames without a whole header are found nowhere.
static void read_all(struct frames *f, uint16_t n)
{
	static const uint8_t broadcast[8] = {[0 ... 7] = 0xff};

	for (f->n = 0; f->n < n; f->n++) {
		const struct rte_mbuf *m = f->mbuf[f->n];
		const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
		const bool is_whole = m->data_len >= WIRE_ETHER_BYTES;

		f->dst[f->n] = mac_key(f->from->domain, is_whole ? frame : broadcast);
		f->src[f->n] = mac_key(f->from->domain, is_whole ? frame + 6 : broadcast);
	}
}

// Looks addresses up in the VLAN of each frame. Those of frames that have none remain the bridge's,
// which has none of its own.
static void read_vlans(struct frames *f)
{
	for (uint16_t i = 0; i < f->n; i++) {
		f->vid[i] = bridge_vlans_in(f->from->vlans, f->mbuf[i]);
		if (!f->vid[i])
			continue;
		const uint64_t domain = f->from->vlans->domain + f->vid[i];

		f->dst[i] = (f->dst[i] & ADDRESS) | domain << 48;
		f->src[i] = (f->src[i] & ADDRESS) | domain << 48;
	}
}

static bool lets_out(const struct worker *w, const struct frames *f, uint16_t i)
{
	const uint16_t to = f->to[i].port;

	return bridge_vlans_out(f->from->vlans, f->view->port[to].vlans, f->vid[i], f->mbuf[i],
		port_mtu(&w->states[to]));
}

static void set_tags(const struct frames *f, uint64_t mask)
{
	for (; mask; mask &= mask - 1) {
		const unsigned i = __builtin_ctzll(mask);

		bridge_vlans_tag(f->view->port[f->to[i].port].vlans, f->vid[i], f->mbuf[i]);
	}
}

// Whether Linux need not see frame i for its sender's sake: that is known where it came in, unless
// the port does not learn.
static bool is_settled(const struct frames *f, uint16_t i, const struct mac_found *source)
{
	const bool is_known = source->slot && source->port == f->in;

	return !is_no_source(f->src[i]) && (is_known || !(f->from->flags & MAC_LEARNS));
}

// Whether workers do with frame i of a settled sender what Linux would: its receiver is known
// behind a port that can send it. All else is Linux's: so it learns and floods, and no frame is
// forwarded by both.
static bool is_ours(const struct worker *w, const struct frames *f, uint16_t i)
{
	const struct port_state *in = &w->states[f->in], *out;

	if (!f->to[i].slot)
		return false;
	if (f->from->vlans && !lets_out(w, f, i))
		return false;
	out = &w->states[f->to[i].port];
	return port_is_up(out) && judge(out, f->mbuf[i]) == VERDICT_FORWARD &&
	       !(in->cut_bytes && datapath_is_cut(in, f->mbuf[i])) &&
	       !is_judged(w, ACL_OUT, f->to[i].port);
}

// Leaves those frames in r that are neither in `ours` nor in `routed`, in order, and those in
// `routed` behind them.
static void keep_rest(struct worker *w, const struct frames *f, struct received *r, uint64_t ours,
	uint64_t routed)
{
	uint16_t n = 0;
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < f->n; i++)
		if (ours >> i & 1)
			bytes += f->mbuf[i]->pkt_len;
		else if (!(routed >> i & 1))
			r->mbuf[n++] = f->mbuf[i];
	r->n = n;
	for (; routed; routed &= routed - 1)
		r->mbuf[n++] = f->mbuf[__builtin_ctzll(routed)];
	stats_add(&w->stat->port[f->in].rx_bytes, bytes);
}

// Frames to the bridge itself, which are the last n of r.
static void take_own(const struct frames *f, const struct received *r, uint16_t n,
	struct received_on_bridge *own)
{
	own->frames = (struct received){r->from, r->mbuf + r->n, n, r->has_offloads, r->ring};
	own->iface = f->from->iface;
	own->own = f->from->own;
}

// A port of a bridge of Linux.
static void bridge_known(struct worker *w, struct frames *f, struct received *r,
	struct received_on_bridge *own)
{
	struct rte_mbuf *mbuf[BURST_MAX];
	struct mac_found source[BURST_MAX];
	const uint32_t tick = mac_tick(f->view, f->now);
	const bool marks = f->from->flags & MAC_LEARNS && !w->trace;
	uint64_t ours = 0, routed = 0;

	if (is_judged(w, ACL_IN, f->in))
		return;
	memcpy(mbuf, r->mbuf, r->n * sizeof(mbuf[0]));
	f->mbuf = mbuf;
	read_all(f, r->n);
	if (f->from->vlans)
		read_vlans(f);
	mac_lookup(f->view->slots, f->dst, f->n, f->to);
	mac_lookup(f->view->slots, f->src, f->n, source);
	for (uint16_t i = 0; i < f->n; i++) {
		if (!is_settled(f, i, &source[i]))
			continue;
		if (f->dst[i] == f->from->own)
			routed |= 1ull << i;
		else if (is_ours(w, f, i))
			ours |= 1ull << i;
		else
			continue;
		if (marks)
			mac_mark(&source[i], tick);
	}
	keep_rest(w, f, r, ours, routed);
	take_own(f, r, __builtin_popcountll(routed), own);
	if (f->from->vlans)
		set_tags(f, ours);
	send_known(w, f, ours);
}

// A port that has just left its bridge has no domain, though it may still be taken for one: what
// comes in by it is Linux's, if that had the bridge.
void datapath_bridge(struct worker *w, struct received *r, struct received_on_bridge *own)
{
	const struct mac_view *view = mac_live_view(w->macs);
	struct frames f;

	f.view = view;
	f.in = r->from->port;
	f.from = &view->port[f.in];
	f.n = 0;
	f.has_offloads = r->has_offloads;
	f.now = rte_rdtsc();
	f.mbuf = r->mbuf;
	own->frames.n = 0;
	if (unlikely(!f.from->domain && w->tap))
		return;
	if (f.from->flags & MAC_OF_LINUX) {
		bridge_known(w, &f, r, own);
		return;
	}
	read_addresses(w, &f, r->n);
	r->n = 0;
	mac_lookup(view->slots, f.dst, f.n, f.to);
	learn(w, &f);
	forward(w, &f);
}
