// Finds the port by which packets leave that are routed to an interface of a bridge: the one behind
// which the bridge has the MAC address of their next hop, now, in the VLAN of that interface; and
// the tag with which they leave. What has none, or cannot leave there, is Linux's, which floods it,
// or has the port. Called only for bursts with such packets, right after check. Worker.
#include "datapath/hop_limits.h"
#include "datapath/steps.h"
#include "datapath/vxlan.h"

#include "wire/headers.h"

// The packets of a burst whose bridge workers route on.
struct sought {
	uint64_t key[BURST_MAX];
	uint8_t index[BURST_MAX]; // in the burst
	const struct mac_iface *to[BURST_MAX];
	unsigned n;
	struct mac_found found[BURST_MAX];
};

// A VXLAN device that is in no bridge, and has one remote end for floods, needs no address.
static void find_only_end(const struct worker *w, const struct mac_view *view, uint64_t key,
	struct mac_found *found)
{
	const struct fib_view *table = fib_live_view(w->live);
	const uint16_t member = vxlan_flood_member(view, key);
	const struct fib_vxlan *vxlan =
		member ? fib_vxlan_load(table->overlay, member - MAC_FIRST_TUNNEL) : NULL;
	const struct mac_flood *flood = vxlan ? mac_live_flood(w->macs, member) : NULL;

	if (flood && flood->n == 1 && view->port[member].iface == vxlan->iface) {
		found->slot = (struct mac_slot *)(uintptr_t)view; // any
		found->port = flood->remote[0];
		found->flags = MAC_REMOTE;
	}
}

static void seek(const struct worker *w, const struct burst *b, const struct mac_view *view,
	struct sought *out)
{
	out->n = 0;
	for (uint64_t rest = b->bridge_mask; rest; rest &= rest - 1) {
		const uint16_t i = __builtin_ctzll(rest);
		const struct mac_iface *to = mac_iface_of(view, fib_oif_load(b->view, b->hop[i]));
		const struct fib_hop_entry entry = fib_hop_load(&b->view->hops[b->hop[i]]);

		if (!to)
			continue;
		out->to[out->n] = to;
		out->key[out->n] = mac_key(to->domain, entry.macs);
		out->index[out->n++] = i;
	}
	mac_lookup(view->slots, out->key, out->n, out->found);
	for (unsigned k = 0; k < out->n && unlikely(view->n_members > MAC_FIRST_TUNNEL); k++)
		if (!out->found[k].slot)
			find_only_end(w, view, out->key[k], &out->found[k]);
}

static bool is_judged(const struct worker *w, uint16_t port)
{
	const struct acl_view *view = w->acls ? acl_live_view(w->acls) : NULL;

	return view && acl_view_list(view, ACL_OUT, port);
}

// Whether the port, if it is still in the bridge, can send packet i, or its fragments, as Linux
// would.
static bool can_send(const struct worker *w, const struct burst *b, uint16_t i, uint16_t port)
{
	const struct port_state *out = &w->states[port];
	const uint32_t longest = b->fragment_mask >> i & 1 ? fib_frame_max4_load(b->view, b->hop[i])
	                                                   : datapath_sent_length(b, i);

	return port_is_bridged(out) && port_is_up(out) && datapath_has_room(out, b->mbuf[i]) &&
	       longest <= port_mtu(out) + (uint32_t)WIRE_ETHER_BYTES && !is_judged(w, port);
}

// Whether what leaves on the interface for a remote end, if that is still in the bridge, needs no
// tag: with one, it is Linux's.
static bool lacks_tag(const struct worker *w, const struct mac_view *view,
	const struct mac_iface *iface, uint32_t number)
{
	const uint16_t member = mac_live_remote(w->macs, number)->member;
	uint32_t tag;

	return member < view->n_members && mac_tag_of(view, iface, member, &tag) && !tag;
}

// Whether packet i can be sent to a remote end.
static bool can_send_remote(const struct worker *w, struct burst *b, uint16_t i, uint32_t number)
{
	const struct vxlan_frame frame = {b->mbuf[i], datapath_sent_length(b, i)};
	struct vxlan_way way;

	if (b->fragment_mask >> i & 1 || b->template_mask >> i & 1 ||
		vxlan_find_way(w, &frame, mac_live_remote(w->macs, number), &way) !=
			VERDICT_FORWARD ||
		is_judged(w, way.port))
		return false;
	if (!(b->has & BURST_REMOTES))
		b->remote_mask = 0;
	b->has |= BURST_REMOTES;
	b->remote_mask |= 1ull << i;
	b->remote[i] = number;
	b->port[i] = way.port;
	return true;
}

// Returns those of the packets that have a port, which is written.
static uint64_t choose_ports(const struct worker *w, struct burst *b, const struct mac_view *view,
	const struct sought *sought)
{
	uint64_t chosen = 0;
	uint32_t tag;

	for (unsigned k = 0; k < sought->n; k++) {
		const struct mac_found *found = &sought->found[k];
		const uint16_t i = sought->index[k];

		if (!found->slot || found->flags & MAC_ELSEWHERE)
			continue;
		if (unlikely(found->flags & MAC_REMOTE)) {
			if (lacks_tag(w, view, sought->to[k], found->port) &&
				can_send_remote(w, b, i, found->port))
				chosen |= 1ull << i;
			continue;
		}
		if (!can_send(w, b, i, found->port))
			continue;
		if (!mac_tag_of(view, sought->to[k], found->port, &tag))
			continue;
		b->port[i] = found->port;
		b->tag[i] = tag;
		b->tag_mask |= (uint64_t)(tag != 0) << i;
		chosen |= 1ull << i;
	}
	return chosen;
}

// Linux would route what a flow sends to a next hop by its own routes.
static void leave_to_linux(struct worker *w, const struct burst *b, uint64_t mask)
{
	for (; mask; mask &= mask - 1) {
		const uint16_t i = __builtin_ctzll(mask);
		const bool is_flows = b->flow_hop_mask >> i & 1;

		burst_drop(w, b, i, is_flows ? VERDICT_FLOW_UNRESOLVED : VERDICT_BRIDGE_UNKNOWN);
	}
}

static bool have_one_port(const struct burst *b)
{
	uint8_t differ = 0;

	for (uint16_t i = 0; i < b->n; i++)
		differ |= b->port[i] ^ b->port[0];
	return !differ;
}

void datapath_bridge_out(struct worker *w, struct burst *b)
{
	const struct mac_view *view = w->macs ? mac_live_view(w->macs) : NULL;
	struct sought sought = {.n = 0};
	uint64_t lost = b->bridge_mask;

	b->has_one_port = false;
	if (likely(view != NULL)) {
		seek(w, b, view, &sought);
		lost &= ~choose_ports(w, b, view, &sought);
	}
	b->has |= b->tag_mask ? BURST_TEMPLATES : 0;
	if (unlikely(lost)) {
		leave_to_linux(w, b, lost);
		burst_keep(b, ~lost);
	}
	b->has_one_port = have_one_port(b);
}
