// Headers of frames into VXLAN, or GRE: which hop leads to the remote end, what the outer header
// takes from the frame, the source port by its innermost flow, ECN (RFC 6040, 4.1). Worker.
#include "datapath/vxlan.h"

#include "datapath/steps.h"
#include "datapath/tunnel.h"
#include "iface/iface.h"
#include "wire/checksum.h"
#include "wire/innermost.h"

#include <rte_ip.h>
#include <rte_memcpy.h>

enum { IDS_OF_WORKER = 11, MAC_BYTES = 12, OTHER_TTL = 64, GRE_WORD = 4 };

// The outer length is of IP, so the Ethernet header is not part of it.
static enum verdict judge_length(const struct vxlan_way *way, const struct fib_view *view,
	uint32_t hop, uint32_t bytes)
{
	const uint32_t most =
		way->vxlan->is_ip6 ? way->hop.frame_max : fib_frame_max4_load(view, hop);

	return way->vxlan->n_bytes + bytes + WIRE_ETHER_BYTES > most ? VERDICT_BRIDGE_MTU
	                                                             : VERDICT_FORWARD;
}

// The hop out of a port; what leads into another tunnel or onto a bridge is Linux's.
static enum verdict find_hop(const struct fib_view *view, struct vxlan_way *way, uint32_t *hop)
{
	*hop = __atomic_load_n(&way->vtep->hop, __ATOMIC_ACQUIRE);
	if (!*hop)
		return VERDICT_TUNNEL_NO_WAY;
	way->hop = fib_hop_load(&view->hops[*hop]);
	if (way->hop.kind == FIB_HOP_GROUP) {
		*hop = datapath_ecmp_member(view, &way->hop,
			datapath_ecmp_mix(way->hash, load32(way->vtep->addr)));
		way->hop = fib_hop_load(&view->hops[*hop]);
	}
	if (way->hop.kind == FIB_HOP_PLAIN)
		return VERDICT_FORWARD;
	if (way->hop.kind == FIB_HOP_TEMPLATE) {
		memcpy(&way->template, way->hop.macs, sizeof(way->template));
		return way->template->replaced == MAC_BYTES && !way->template->tunnel
		               ? VERDICT_FORWARD
		               : VERDICT_LINUX;
	}
	return way->hop.kind == FIB_HOP_STOP && way->hop.verdict == VERDICT_NEIGHBOUR_UNRESOLVED
	               ? VERDICT_NEIGHBOUR_UNRESOLVED
	               : VERDICT_TUNNEL_NO_WAY;
}

static uint32_t hash_of(struct rte_mbuf *m)
{
	struct wire_innermost flow;

	wire_innermost_read(&flow, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
	return wire_innermost_hash(&flow);
}

static const struct fib_vtep *choose_vtep(const struct fib_overlay *overlay, uint32_t number,
	uint32_t hash)
{
	const struct fib_vtep *vtep = &overlay->vtep[number];
	const struct fib_vtep_group *group = __atomic_load_n(&vtep->group, __ATOMIC_ACQUIRE);

	return likely(!group) ? vtep : &overlay->vtep[group->vtep[(uint64_t)hash * group->n >> 32]];
}

enum verdict vxlan_find_way(const struct worker *w, const struct vxlan_frame *frame,
	const struct mac_remote *remote, struct vxlan_way *way)
{
	const struct fib_view *view = fib_live_view(w->live);
	const struct fib_vxlan *vxlan =
		fib_vxlan_load(view->overlay, remote->member - MAC_FIRST_TUNNEL);
	uint32_t hop;

	if (!vxlan || iface_in_load(&view->ifaces, vxlan->iface).flags &
			      (IFACE_DOWN | IFACE_LINUX | IFACE_OUT_LINUX))
		return VERDICT_TUNNEL_NO_WAY;
	*way = (struct vxlan_way){.vxlan = vxlan,
		.hash = hash_of(frame->m),
		.vni = remote->has_vni ? remote->vni : vxlan->vni,
		.udp_port = remote->udp_port};
	way->vtep = choose_vtep(view->overlay, remote->vtep, way->hash);
	if (way->vtep->is_ip6 != vxlan->is_ip6 || way->vtep->vrf != vxlan->vrf)
		return VERDICT_TUNNEL_NO_WAY;
	enum verdict verdict = find_hop(view, way, &hop);
	if (verdict != VERDICT_FORWARD)
		return verdict;
	way->port = way->template ? way->template->port : way->hop.port;
	const struct port_state *out = &w->states[way->port];
	if (!port_is_up(out))
		return VERDICT_PORT_DOWN;
	if (offload_is_long(frame->m))
		return VERDICT_TUNNEL_REFUSED;
	if (!datapath_has_room(out, frame->m))
		return VERDICT_MULTI_SEGMENT;
	if (rte_pktmbuf_headroom(frame->m) <
		vxlan->n_bytes + WIRE_ETHER_BYTES + (way->template ? way->template->length : 0))
		return VERDICT_NO_HEADROOM;
	return judge_length(way, view, hop, frame->bytes);
}

// What the outer header takes from an IP packet, behind tags or not; as Linux has it, nothing from
// others. Tagged packets, and IPv4 ones without DF, may be fragmented outside.
struct inner {
	uint8_t tos, ttl;
	bool has_df, is_ip6;
};

static struct inner read_inner(const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t at;
	const uint16_t type = vxlan_skip_tags(frame, m->data_len, &at);
	const struct wire_ip4 *ip4 = (const void *)(frame + at);
	const struct wire_ip6 *ip6 = (const void *)ip4;
	const bool is_plain = at == WIRE_ETHER_BYTES;

	if (type == WIRE_ETHERTYPE_IP4 && m->data_len >= at + WIRE_IP4_BYTES)
		return (struct inner){ip4->dscp_ecn, ip4->ttl,
			is_plain && ip4->fragment_be & htobe16(WIRE_IP4_DONT_FRAGMENT), false};
	if (type == WIRE_ETHERTYPE_IP6 && m->data_len >= at + WIRE_IP6_BYTES)
		return (struct inner){be32toh(ip6->version_class_flow_be) >> 20, ip6->hop_limit,
			is_plain, true};
	return (struct inner){0, OTHER_TTL, false, false};
}

// Linux's GRE over IPv6 has all or nothing of the traffic class of the inner packet.
static uint8_t tos_of(const struct fib_vxlan *vxlan, uint8_t fixed, const struct inner *inner)
{
	const uint8_t dscp = (vxlan->takes_tos ? inner->tos : fixed) & 0xfc;
	const bool is_linuxs = vxlan->flags & IFACE_TUNNEL_LINUX;

	if (is_linuxs && !vxlan->n_ports && vxlan->is_ip6)
		return vxlan->takes_tos ? inner->tos : dscp;
	return dscp | tunnel_ecn(inner->tos, is_linuxs);
}

static void complete4(struct worker *w, const struct vxlan_way *way, struct wire_ip4 *ip,
	const struct inner *inner, uint16_t bytes)
{
	const struct fib_vxlan *vxlan = way->vxlan;
	const bool may_inherit = vxlan->flags & IFACE_TUNNEL_INNER_DF &&
	                         (vxlan->n_ports || !inner->is_ip6); // GRE: from IPv4 only
	const bool has_df = vxlan->flags & IFACE_TUNNEL_DF || (may_inherit && inner->has_df);

	memcpy(ip->dst, way->vtep->addr, sizeof(ip->dst));
	ip->dscp_ecn = tos_of(vxlan, ip->dscp_ecn, inner);
	ip->total_length_be = htobe16(bytes);
	ip->id_be = htobe16((uint16_t)(w->next_id++ + ((unsigned)w->io->id << IDS_OF_WORKER)));
	ip->fragment_be = htobe16(has_df ? WIRE_IP4_DONT_FRAGMENT : 0);
	if (vxlan->takes_ttl)
		ip->ttl = inner->ttl;
	ip->checksum_be =
		wire_sum_finish_be((uint64_t)vxlan->sum + load32(ip->dst) + htobe16(ip->dscp_ecn) +
				   ip->total_length_be + ip->id_be + ip->fragment_be +
				   htobe16(ip->ttl << 8 | ip->protocol));
}

static void complete6(const struct vxlan_way *way, struct wire_ip6 *ip, const struct inner *inner,
	uint16_t bytes)
{
	const uint32_t word = be32toh(ip->version_class_flow_be);
	const uint32_t tos = tos_of(way->vxlan, word >> 20, inner);
	const uint32_t label = way->vxlan->n_ports ? 0 : way->hash >> 12; // as Linux's GRE

	memcpy(ip->dst, way->vtep->addr, sizeof(ip->dst));
	ip->version_class_flow_be = htobe32(6u << 28 | tos << 20 | label);
	ip->payload_length_be = htobe16(bytes - WIRE_IP6_BYTES);
	if (way->vxlan->takes_ttl)
		ip->hop_limit = inner->ttl;
}

static void complete_udp(const struct vxlan_way *way, struct rte_mbuf *m, uint8_t *outer,
	uint16_t bytes)
{
	const struct fib_vxlan *vxlan = way->vxlan;
	struct wire_udp *udp =
		(void *)(outer + (vxlan->is_ip6 ? (int)WIRE_IP6_BYTES : (int)WIRE_IP4_BYTES));
	const uint32_t vni_be = htobe32(way->vni << 8);
	uint16_t sum16 = 0;

	memcpy((uint8_t *)udp + WIRE_UDP_BYTES + 4, &vni_be, sizeof(vni_be));
	udp->src_port_be =
		htobe16(vxlan->first_port + ((uint64_t)way->hash * vxlan->n_ports >> 32));
	if (way->udp_port)
		udp->dst_port_be = htobe16(way->udp_port);
	udp->length_be = htobe16(bytes);
	if (!(vxlan->flags & IFACE_TUNNEL_CHECKSUM))
		return;
	rte_raw_cksum_mbuf(m, (uint8_t *)udp - rte_pktmbuf_mtod(m, uint8_t *), bytes, &sum16);
	const uint64_t sum =
		sum16 +
		(vxlan->is_ip6 ? wire_sum_pseudo6((const void *)outer, WIRE_PROTO_UDP, bytes)
			       : wire_sum_pseudo4((const void *)outer, WIRE_PROTO_UDP, bytes));
	const uint16_t sum_be = wire_sum_finish_be(sum);
	udp->checksum_be = sum_be ? sum_be : UINT16_MAX;
}

// The checksum is in the second word of GRE, and covers all from the first one on.
static void complete_gre(const struct fib_vxlan *vxlan, const struct rte_mbuf *m, uint8_t *outer,
	uint16_t bytes)
{
	const unsigned gre_at = vxlan->sum_at - GRE_WORD;
	uint16_t sum = 0;

	rte_raw_cksum_mbuf(m, outer + gre_at - rte_pktmbuf_mtod(m, uint8_t *), bytes - gre_at,
		&sum);
	sum = ~sum;
	memcpy(outer + vxlan->sum_at, &sum, sizeof(sum));
}

static void write_link(const struct vxlan_way *way, uint8_t *start)
{
	const uint16_t type_be =
		htobe16(way->vxlan->is_ip6 ? WIRE_ETHERTYPE_IP6 : WIRE_ETHERTYPE_IP4);
	const uint8_t *bytes = way->template ? way->template->bytes : way->hop.macs;
	const unsigned n = way->template ? way->template->length : (unsigned)MAC_BYTES;

	memcpy(start, bytes, n);
	memcpy(start + n, &type_be, sizeof(type_be));
}

void vxlan_write(struct worker *w, const struct vxlan_way *way, struct rte_mbuf *m)
{
	const struct fib_vxlan *vxlan = way->vxlan;
	const unsigned link_bytes =
		(way->template ? way->template->length : (unsigned)MAC_BYTES) + 2;

	if (unlikely(offload_is_open(m)))
		offload_finish(m);
	const struct inner inner = read_inner(m);
	const uint32_t frame_bytes = m->pkt_len;
	uint8_t *start = (uint8_t *)rte_pktmbuf_prepend(m, link_bytes + vxlan->n_bytes);
	uint8_t *outer = start + link_bytes;
	const uint16_t bytes = vxlan->n_bytes + frame_bytes;

	write_link(way, start);
	rte_memcpy(outer, vxlan->bytes, vxlan->n_bytes);
	if (vxlan->is_ip6)
		complete6(way, (void *)outer, &inner, bytes);
	else
		complete4(w, way, (void *)outer, &inner, bytes);
	if (vxlan->n_ports)
		complete_udp(way, m, outer,
			bytes - (vxlan->is_ip6 ? (int)WIRE_IP6_BYTES : (int)WIRE_IP4_BYTES));
	else if (vxlan->sum_at)
		complete_gre(vxlan, m, outer, bytes);
	stats_add(&w->stat->tunnel[vxlan->iface].tx_packets, 1);
	stats_add(&w->stat->tunnel[vxlan->iface].tx_bytes, frame_bytes);
}

uint16_t vxlan_flood_member(const struct mac_view *view, uint64_t key)
{
	const uint64_t flood = key >> 48 << 48;
	struct mac_found found;

	if (likely(view->n_members <= MAC_FIRST_TUNNEL))
		return 0;
	mac_lookup(view->slots, &flood, 1, &found);
	return found.slot && found.flags & MAC_TUNNEL ? found.port : 0;
}
