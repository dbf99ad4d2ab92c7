// Frames of a port of a bridge of Linux: workers forward those between addresses that Linux knows
// behind ports that they serve, and flood those of the kinds that Linux leaves to them (netlink's
// guard keeps it from flooding them, too). All others are Linux's. Worker.
#include "datapath/bridge_inside.h"
#include "datapath/bridge_vlans.h"

#include "wire/headers.h"

#include <string.h>

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

// NULL: the member is gone, or does not filter.
static const struct mac_vlans *member_vlans(const struct frames *f, uint32_t member)
{
	return member < f->view->n_members ? f->view->port[member].vlans : NULL;
}

static bool lets_out(const struct worker *w, const struct frames *f, uint16_t i)
{
	const uint32_t to = frames_member(w, &f->to[i]);
	const uint16_t mtu = to < MAC_PORTS ? port_mtu(&w->states[to]) : UINT16_MAX;

	return bridge_vlans_out(f->from->vlans, member_vlans(f, to), f->vid[i], f->mbuf[i], mtu);
}

static void set_tags(const struct worker *w, const struct frames *f, uint64_t mask)
{
	for (; mask; mask &= mask - 1) {
		const unsigned i = __builtin_ctzll(mask);

		bridge_vlans_tag(member_vlans(f, frames_member(w, &f->to[i])), f->vid[i],
			f->mbuf[i]);
	}
}

// Whether Linux need not see frame i for its sender's sake: that is known where it came in, unless
// the port does not learn.
static bool is_settled(const struct worker *w, const struct frames *f, uint16_t i,
	const struct mac_found *source)
{
	const bool is_known = frames_know_sender(w, f, i, source);

	return !is_no_source(f->src[i]) && (is_known || !(f->from->flags & MAC_LEARNS));
}

// The same for a frame to a remote end, which only a device other than its own sends.
static bool is_ours_remote(const struct worker *w, const struct frames *f, uint16_t i)
{
	const uint32_t member = frames_member(w, &f->to[i]);
	const struct mac_vlans *vlans = member_vlans(f, member);
	const unsigned more = vlans ? bridge_vlans_more(vlans, f->vid[i], f->mbuf[i]) : 0;

	return member != f->in && !frames_is_cut(w, f, i) &&
	       frames_judge_remote(w, f->mbuf[i], f->to[i].port, more) == VERDICT_FORWARD;
}

// Whether workers do with frame i of a settled sender what Linux would: its receiver is known
// behind a port that can send it. All else is Linux's: so it learns and floods, and no frame is
// forwarded by both.
static bool is_ours(const struct worker *w, const struct frames *f, uint16_t i)
{
	const struct port_state *out;

	if (!f->to[i].slot || f->to[i].flags & MAC_ELSEWHERE)
		return false;
	if (f->from->vlans && !lets_out(w, f, i))
		return false;
	if (f->to[i].flags & MAC_REMOTE)
		return is_ours_remote(w, f, i);
	out = &w->states[f->to[i].port];
	return port_is_up(out) && frames_judge(out, f->mbuf[i]) == VERDICT_FORWARD &&
	       !frames_is_cut(w, f, i) && !frames_judged(w, ACL_OUT, f->to[i].port);
}

// ARP, RARP, IGMP, PIM, and IPv6 packets with options for each hop, as MLD has, or of ICMP: Linux
// learns from them, answers, and floods them. Its guard lets the same frames pass, by the same
// bytes (netlink/guard.c).
static bool is_control(const struct frames *f, const struct rte_mbuf *m)
{
	enum { PROTOCOL = 9, NEXT_HEADER = 6 };
	struct frame_packet packet;

	frames_packet(f, m, &packet);
	if (packet.type == WIRE_ETHERTYPE_ARP || packet.type == WIRE_ETHERTYPE_RARP)
		return true;
	if (packet.type == WIRE_ETHERTYPE_IP4)
		return packet.n > PROTOCOL && (packet.bytes[PROTOCOL] == WIRE_PROTO_IGMP ||
						      packet.bytes[PROTOCOL] == WIRE_PROTO_PIM);
	return packet.type == WIRE_ETHERTYPE_IP6 && packet.n > NEXT_HEADER &&
	       (packet.bytes[NEXT_HEADER] == WIRE_PROTO_HOP_BY_HOP ||
		       packet.bytes[NEXT_HEADER] == WIRE_PROTO_ICMP6);
}

// Whether frame i is to the bridge itself, in a VLAN of its own interface.
static bool is_own(const struct frames *f, uint16_t i)
{
	const struct mac_port *from = f->from;

	if (!from->own || (f->dst[i] ^ from->own) & ADDRESS)
		return false;
	return !from->vlans || mac_vlans_has(from->own_vlans->has, f->vid[i]);
}

// The kind as which workers flood frame i; MAC_STORMS: they do not.
static enum mac_storm flooded_as(const struct worker *w, struct frames *f, uint16_t i)
{
	const enum mac_storm kind = frames_kind(f->dst[i]);
	const struct rte_mbuf *m = f->mbuf[i];

	if (f->to[i].slot || f->from->linuxs >> kind & 1 || m->data_len < WIRE_ETHER_BYTES)
		return MAC_STORMS;
	if (kind == MAC_UNKNOWN &&
		(is_own(f, i) || __atomic_load_n(&w->macs->is_partial, __ATOMIC_RELAXED)))
		return MAC_STORMS;
	if (is_no_source(f->src[i]) || is_reserved(f->dst[i]) || (f->from->vlans && !f->vid[i]) ||
		frames_is_cut(w, f, i))
		return MAC_STORMS;
	if (is_control(f, m) || (kind == MAC_MULTICAST && !frames_snoop(f, i)))
		return MAC_STORMS;
	// Linux floods it to all: its guard lets such frames pass.
	if (unlikely(f->view->n_members > MAC_FIRST_TUNNEL) && kind == MAC_UNKNOWN &&
		!frames_are_remote(f) && frames_need_linux(w, f, i))
		return MAC_STORMS;
	return kind;
}

// What becomes of the frames of one poll; the others are Linux's alone.
struct plan {
	uint64_t ours;   // between known addresses
	uint64_t routed; // to the bridge itself
	uint64_t floods[MAC_STORMS];
};

// Whether the VXLAN device of Linux drops frames of the sender that come from there.
static bool is_dropped(const struct frames *f, const struct mac_found *source, bool is_known)
{
	return source->slot && unlikely(source->flags & MAC_PINNED) && frames_are_remote(f) &&
	       !is_known;
}

static void plan_frames(struct worker *w, struct frames *f, const struct mac_found source[],
	struct plan *plan)
{
	const uint32_t tick = mac_tick(f->view, f->now);
	const bool marks = f->from->flags & MAC_LEARNS && !w->trace;

	for (uint16_t i = 0; i < f->n; i++) {
		const bool is_known = frames_know_sender(w, f, i, &source[i]);
		const uint64_t bit = 1ull << i;
		enum mac_storm kind = MAC_STORMS;

		if (is_dropped(f, &source[i], is_known))
			kind = MAC_STORMS; // by Linux
		else if (!is_settled(w, f, i, &source[i]))
			kind = flooded_as(w, f, i);
		else if (is_own(f, i))
			plan->routed |= bit;
		else if (is_ours(w, f, i))
			plan->ours |= bit;
		else
			kind = flooded_as(w, f, i);
		if (kind < MAC_STORMS)
			plan->floods[kind] |= bit;
		if (marks && is_known && (kind < MAC_STORMS || (plan->ours | plan->routed) & bit))
			mac_mark(&source[i], tick);
		else if (marks && kind < MAC_STORMS)
			frames_tell(w, f, i); // so that it tells Linux
	}
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
	frames_count(w, f, bytes);
}

// Frames to the bridge itself, which are the last n of r.
static void take_own(const struct frames *f, const struct received *r, uint16_t n,
	struct received_on_bridge *own)
{
	own->frames = (struct received){r->from, r->mbuf + r->n, n, r->has_offloads, r->ring};
	own->port = f->from;
}

// Those of `mask` that go where their group says.
static uint64_t snooped(const struct frames *f, uint64_t mask)
{
	uint64_t found = 0;

	for (; mask; mask &= mask - 1)
		if (f->out[__builtin_ctzll(mask)])
			found |= mask & -mask;
	return found;
}

// Those of which Linux gets the frame itself.
static uint64_t linuxs_too(const struct frames *f, uint64_t mask, enum mac_storm kind)
{
	uint64_t grouped = kind == MAC_MULTICAST ? snooped(f, mask) : 0;
	uint64_t found = f->from->linux_too >> kind & 1 ? mask & ~grouped : 0;

	for (; grouped; grouped &= grouped - 1)
		if (f->out[__builtin_ctzll(grouped)]->linux_too)
			found |= grouped & -grouped;
	return found;
}

// Returns those that go nowhere else: all that are flooded, except those of which Linux gets the
// frame itself, and those that storm control has dropped.
static uint64_t limit_floods(struct worker *w, const struct frames *f, struct plan *plan)
{
	uint64_t gone = 0;

	for (unsigned kind = 0; kind < MAC_STORMS; kind++) {
		const uint64_t all = plan->floods[kind];

		if (!all)
			continue;
		plan->floods[kind] = frames_pass_storm_control(w, f, all, kind);
		gone |= all & ~linuxs_too(f, plan->floods[kind], kind);
	}
	return gone;
}

static void flood(struct worker *w, const struct frames *f, const struct plan *plan)
{
	const uint64_t grouped = snooped(f, plan->floods[MAC_MULTICAST]);

	for (unsigned kind = 0; kind < MAC_STORMS; kind++) {
		const uint64_t mask = plan->floods[kind];

		frames_flood(w, f, kind == MAC_MULTICAST ? mask & ~grouped : mask,
			&(struct flood_to){.ports = f->from->copies[kind],
				.keeps = f->from->linux_too >> kind & 1,
				.kind = kind});
	}
	frames_send_groups(w, f, grouped);
}

void frames_of_linux(struct worker *w, struct frames *f, struct received *r,
	struct received_on_bridge *own)
{
	struct rte_mbuf *mbuf[BURST_MAX];
	struct mac_found source[BURST_MAX];
	struct plan plan = {0};

	if (!frames_are_remote(f) && frames_judged(w, ACL_IN, f->in))
		return;
	memcpy(mbuf, r->mbuf, r->n * sizeof(mbuf[0]));
	f->mbuf = mbuf;
	read_all(f, r->n);
	if (f->from->vlans)
		read_vlans(f);
	mac_lookup(f->view->slots, f->dst, f->n, f->to);
	mac_lookup(f->view->slots, f->src, f->n, source);
	plan_frames(w, f, source, &plan);
	keep_rest(w, f, r, plan.ours | limit_floods(w, f, &plan), plan.routed);
	take_own(f, r, __builtin_popcountll(plan.routed), own);
	flood(w, f, &plan);
	if (f->from->vlans)
		set_tags(w, f, plan.ours);
	frames_send_known(w, f, plan.ours);
}
