// How frames leave a bridge by VXLAN: to the remote end of a known address, or as copies to all
// that get floods. Worker.
#include "datapath/bridge_inside.h"
#include "datapath/bridge_vlans.h"
#include "datapath/vxlan.h"

// Frames with their headers, to be sent by several ports.
struct leaving {
	struct rte_mbuf *mbuf[BURST_MAX];
	uint8_t port[BURST_MAX];
	unsigned n;
};

// Each round sends the frames to the first one's port, in order.
static void send_all(struct worker *w, struct leaving *l)
{
	uint64_t left = l->n == 64 ? UINT64_MAX : (1ull << l->n) - 1;
	struct rte_mbuf *group[BURST_MAX];

	while (left) {
		const uint8_t to = l->port[__builtin_ctzll(left)];
		struct outgoing out = {.mbuf = group};

		for (uint64_t rest = left; rest; rest &= rest - 1) {
			const unsigned i = __builtin_ctzll(rest);

			if (l->port[i] != to)
				continue;
			group[out.n++] = l->mbuf[i];
			out.bytes += l->mbuf[i]->pkt_len;
			left &= ~(1ull << i);
		}
		datapath_send_port(w, to, &out);
	}
	l->n = 0;
}

static void add(struct worker *w, struct leaving *l, const struct vxlan_way *way,
	struct rte_mbuf *m)
{
	vxlan_write(w, way, m);
	l->mbuf[l->n] = m;
	l->port[l->n++] = way->port;
}

enum verdict frames_judge_remote(const struct worker *w, struct rte_mbuf *m, uint32_t remote,
	unsigned more)
{
	const struct vxlan_frame frame = {m, m->pkt_len + more};
	struct vxlan_way way;

	return vxlan_find_way(w, &frame, mac_live_remote(w->macs, remote), &way);
}

// Why frames do not go to a device; VERDICT_FORWARD: they do.
static enum verdict refuse(const struct frames *f, uint16_t member)
{
	if (member == f->in)
		return VERDICT_BRIDGE_SAME_PORT;
	if (member >= f->view->n_members || f->view->port[member].domain != f->from->domain)
		return VERDICT_BRIDGE_NO_PORT; // it has just left the bridge
	if (f->from->flags & f->view->port[member].flags & MAC_ISOLATED)
		return VERDICT_BRIDGE_ISOLATED;
	return VERDICT_FORWARD;
}

void frames_send_remote(struct worker *w, const struct frames *f, uint64_t mask)
{
	struct leaving leaving;

	leaving.n = 0;
	for (; mask; mask &= mask - 1) {
		const unsigned i = __builtin_ctzll(mask);
		struct rte_mbuf *m = f->mbuf[i];
		const struct vxlan_frame frame = {m, m->pkt_len};
		const struct mac_remote *remote = mac_live_remote(w->macs, f->to[i].port);
		struct vxlan_way way;
		enum verdict verdict = refuse(f, remote->member);

		if (likely(verdict == VERDICT_FORWARD))
			verdict = vxlan_find_way(w, &frame, remote, &way);
		if (likely(verdict == VERDICT_FORWARD))
			add(w, &leaving, &way, m);
		else
			worker_drop(w, m, verdict);
	}
	send_all(w, &leaving);
}

static bool floods(const struct mac_port *to, enum mac_storm kind)
{
	static const uint8_t needs[MAC_STORMS] = {[MAC_UNKNOWN] = MAC_FLOODS};
	static const uint8_t forbids[MAC_STORMS] =
		{[MAC_BROADCAST] = MAC_NO_BROADCASTS, [MAC_MULTICAST] = MAC_NO_MULTICASTS};

	return (to->flags & needs[kind]) == needs[kind] && !(to->flags & forbids[kind]);
}

// The remote ends that get frame i.
struct flooded {
	const struct mac_flood *list; // NULL: none
	const struct mac_vlans *vlans;
	bool is_itself; // the frame itself is sent to the last one
};

static struct flooded find_flooded(const struct worker *w, const struct frames *f, unsigned i,
	enum mac_storm kind)
{
	const uint16_t member = vxlan_flood_member(f->view, f->dst[i]);
	struct flooded found = {.list = NULL};

	if (!member || refuse(f, member) != VERDICT_FORWARD ||
		!floods(&f->view->port[member], kind))
		return found;
	found.vlans = f->view->port[member].vlans;
	if (!f->from->vlans ||
		bridge_vlans_out(f->from->vlans, found.vlans, f->vid[i], f->mbuf[i], UINT16_MAX))
		found.list = mac_live_flood(w->macs, member);
	return found;
}

bool frames_need_linux(const struct worker *w, const struct frames *f, unsigned i)
{
	const struct mac_flood *list = find_flooded(w, f, i, MAC_UNKNOWN).list;

	for (uint32_t k = 0; list && k < list->n; k++) {
		const enum verdict verdict = frames_judge_remote(w, f->mbuf[i], list->remote[k], 0);

		if (verdict == VERDICT_NEIGHBOUR_UNRESOLVED || verdict == VERDICT_BRIDGE_MTU)
			return true;
	}
	return false;
}

// One copy, or with `is_last` the frame itself, to a remote end.
static void send_one(struct worker *w, struct leaving *l, struct rte_mbuf *m, uint32_t number,
	bool is_last)
{
	const struct vxlan_frame frame = {m, m->pkt_len};
	struct vxlan_way way;
	const enum verdict verdict =
		vxlan_find_way(w, &frame, mac_live_remote(w->macs, number), &way);

	if (verdict != VERDICT_FORWARD && is_last)
		worker_drop(w, m, verdict);
	else if (verdict != VERDICT_FORWARD)
		frames_lose_copy(w, m, verdict);
	if (verdict != VERDICT_FORWARD)
		return;
	if (!is_last) {
		m = frames_copy(w, m);
		if (!m)
			return;
	}
	add(w, l, &way, m);
	if (l->n == BURST_MAX) {
		send_all(w, l);
		burst_free_dropped(w);
	}
}

// Sends frame i to all remote ends that get floods, or a copy of it if it has another way, too.
static void flood_one(struct worker *w, const struct frames *f, unsigned i,
	const struct flooded *to, struct leaving *l)
{
	uint64_t *n_copied = &w->stat->port[f->in].copied_packets;
	struct rte_mbuf *m = f->mbuf[i];

	if (!to->is_itself) {
		stats_add(n_copied, 1);
		m = frames_copy(w, m);
		if (!m)
			return;
	}
	if (to->vlans)
		bridge_vlans_tag(to->vlans, f->vid[i], m);
	stats_add(n_copied, to->list->n - 1);
	for (uint32_t k = 0; k < to->list->n; k++)
		send_one(w, l, m, to->list->remote[k], k + 1 == to->list->n);
}

void frames_flood_remotes(struct worker *w, const struct frames *f, uint64_t mask,
	enum mac_storm kind, uint64_t *left)
{
	struct leaving leaving;

	leaving.n = 0;
	for (; mask; mask &= mask - 1) {
		const unsigned i = __builtin_ctzll(mask);
		struct flooded to = find_flooded(w, f, i, kind);

		if (!to.list)
			continue;
		to.is_itself = *left >> i & 1;
		*left &= ~(1ull << i);
		flood_one(w, f, i, &to, &leaving);
	}
	send_all(w, &leaving);
	burst_free_dropped(w);
}
