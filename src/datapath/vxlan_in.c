// Takes frames out of VXLAN (RFC 7348): finds the device by family, VRF, UDP port and VNI, and has
// the frame bridged as received on it. What is punted is punted as it was received, with its outer
// headers, so that Linux's device takes it out itself. Worker.
#include "datapath/bridge_inside.h"
#include "datapath/parse.h"
#include "datapath/vxlan.h"
#include "wire/checksum.h"

#include <rte_cycles.h>
#include <rte_ip.h>

enum { HEADER = 8, FLAGS_VNI = 0x08000000, RESERVED_OF_VNI = 0xff };

// Where the headers of an outer packet are.
struct outer {
	struct rte_mbuf *m;
	const uint8_t *ip;
	struct wire_udp *udp;
	uint32_t contiguous, bytes; // from the UDP header on
	bool is_ip6;
	uint8_t tos;
};

// False: it is no UDP, or there are extension headers.
static bool read_outer(const struct tunnelled *in, unsigned i, struct outer *out)
{
	struct rte_mbuf *m = in->mbuf[i];
	uint8_t *ip = in->frame[i] + WIRE_ETHER_BYTES;
	const struct wire_ip4 *ip4 = (const void *)ip;
	const struct wire_ip6 *ip6 = (const void *)ip;
	const bool is_ip6 = in->is_ip6[i];
	const uint32_t header_bytes = is_ip6 ? WIRE_IP6_BYTES : WIRE_IP4_BYTES;
	const uint32_t bytes = is_ip6 ? be16toh(ip6->payload_length_be)
	                              : be16toh(ip4->total_length_be) - header_bytes;

	*out = (struct outer){.m = m,
		.ip = ip,
		.udp = (void *)(ip + header_bytes),
		.is_ip6 = is_ip6,
		.tos = is_ip6 ? be32toh(ip6->version_class_flow_be) >> 20 : ip4->dscp_ecn};
	out->contiguous = m->data_len -
	                  (uint32_t)((const uint8_t *)out->udp - rte_pktmbuf_mtod(m, uint8_t *));
	out->contiguous = MIN_OF(out->contiguous, bytes);
	out->bytes = bytes;
	return (is_ip6 ? ip6->next_header : ip4->protocol) == WIRE_PROTO_UDP;
}

static enum verdict check_udp(const struct outer *o, const struct fib_vxlan *vxlan)
{
	const uint16_t bytes = be16toh(o->udp->length_be);
	uint16_t sum = 0;

	if (!o->udp->checksum_be)
		return o->is_ip6 && !(vxlan->flags & IFACE_TUNNEL_ZERO_CHECKSUM)
		               ? VERDICT_TUNNEL_CHECKSUM
		               : VERDICT_FORWARD;
	rte_raw_cksum_mbuf(o->m, (const uint8_t *)o->udp - rte_pktmbuf_mtod(o->m, uint8_t *), bytes,
		&sum);
	const uint64_t pseudo =
		o->is_ip6 ? wire_sum_pseudo6((const void *)o->ip, WIRE_PROTO_UDP, bytes)
			  : wire_sum_pseudo4((const void *)o->ip, WIRE_PROTO_UDP, bytes);
	return wire_sum_finish_be(pseudo + sum) ? VERDICT_TUNNEL_CHECKSUM : VERDICT_FORWARD;
}

static bool is_bound_elsewhere(const struct outer *o, const struct fib_vxlan *vxlan)
{
	const unsigned n = o->is_ip6 ? 16 : 4;
	const unsigned dst_at =
		o->is_ip6 ? offsetof(struct wire_ip6, dst) : offsetof(struct wire_ip4, dst);
	const unsigned src_at =
		o->is_ip6 ? offsetof(struct wire_ip6, src) : offsetof(struct wire_ip4, src);

	return vxlan->flags & IFACE_TUNNEL_ONLY_LOCAL &&
	       memcmp(o->ip + dst_at, vxlan->bytes + src_at, n) != 0;
}

// Of packets without tags only. Linux writes what it takes for the ECN of others into their tag,
// which is a fault that workers do not have.
static enum verdict take_ecn(const struct vxlan_taken *in)
{
	const uint16_t type = load16_be(in->frame + 12);
	const bool is_ip6 = type == WIRE_ETHERTYPE_IP6;
	const uint32_t least = WIRE_ETHER_BYTES + (is_ip6 ? WIRE_IP6_BYTES : WIRE_IP4_BYTES);

	if (type != WIRE_ETHERTYPE_IP4 && !is_ip6)
		return VERDICT_FORWARD;
	return in->contiguous < least
	               ? VERDICT_TUNNEL_SHORT
	               : tunnel_take_ecn(in->frame + WIRE_ETHER_BYTES, is_ip6, &in->outer);
}

// Without what follows the outer packet.
static void add(struct vxlan_inner *to, const struct vxlan_taken *in, uint16_t member)
{
	const uint16_t k = to->n++;
	const struct wire_ip4 *ip4 = (const void *)in->ip;
	const struct wire_ip6 *ip6 = (const void *)in->ip;
	const uint16_t before = in->frame - rte_pktmbuf_mtod(in->m, const uint8_t *);

	if (before + in->bytes < in->m->pkt_len)
		datapath_cut(in->m, before + in->bytes);
	to->mbuf[k] = in->m;
	to->before[k] = before;
	to->member[k] = member;
	to->is_ip6[k] = in->is_ip6;
	memset(to->end[k], 0, sizeof(to->end[k]));
	memcpy(to->end[k], in->is_ip6 ? ip6->src : ip4->src,
		in->is_ip6 ? sizeof(ip6->src) : sizeof(ip4->src));
}

enum verdict vxlan_take(const struct parse *p, const struct vxlan_taken *in, uint16_t number,
	struct vxlan_inner *out)
{
	const struct fib_vxlan *vxlan = fib_vxlan_load(p->view->overlay, number);
	const enum verdict verdict = vxlan ? take_ecn(in) : VERDICT_TUNNEL_UNKNOWN;

	if (verdict != VERDICT_FORWARD)
		return verdict;
	add(out, in, MAC_FIRST_TUNNEL + number);
	stats_add(&p->w->stat->tunnel[vxlan->iface].rx_packets, 1);
	stats_add(&p->w->stat->tunnel[vxlan->iface].rx_bytes, in->bytes);
	return VERDICT_FORWARD;
}

// The device of a packet to a UDP port of such devices; NULL: *verdict.
static const struct fib_vxlan *find_device(const struct parse *p, const struct outer *o,
	uint16_t vrf, uint16_t *number, enum verdict *verdict)
{
	const struct fib_overlay *overlay = p->view->overlay;
	const uint8_t *header = (const uint8_t *)o->udp + WIRE_UDP_BYTES;
	const uint32_t flags = be32toh(load32(header)), vni = be32toh(load32(header + 4));
	const struct fib_vxlan_ends *ends = fib_vxlan_ends_load(overlay);
	const struct fib_vxlan *vxlan;

	*verdict = VERDICT_TUNNEL_FLAGS;
	if (flags != FLAGS_VNI || vni & RESERVED_OF_VNI)
		return NULL;
	*verdict = VERDICT_TUNNEL_UNKNOWN;
	*number = fib_vxlan_find(ends,
		fib_vxlan_key(o->is_ip6, vrf, be16toh(o->udp->dst_port_be), vni >> 8));
	vxlan = *number < FIB_MAX_VXLANS ? fib_vxlan_load(overlay, *number) : NULL;
	if (!vxlan || is_bound_elsewhere(o, vxlan) ||
		iface_in_load(&p->view->ifaces, vxlan->iface).flags & IFACE_DOWN)
		return NULL;
	return vxlan;
}

enum verdict vxlan_peel(const struct parse *p, const struct tunnelled *in, unsigned i,
	struct vxlan_inner *out)
{
	struct outer o;
	uint16_t number;
	enum verdict verdict;

	if (!read_outer(in, i, &o) || o.contiguous < WIRE_UDP_BYTES ||
		!fib_vxlan_has_port(fib_vxlan_ends_load(p->view->overlay),
			be16toh(o.udp->dst_port_be)))
		return VERDICT_LOCAL;
	const uint32_t bytes = be16toh(o.udp->length_be);
	const uint32_t before = WIRE_UDP_BYTES + HEADER;
	if (bytes > o.bytes || bytes < before + WIRE_ETHER_BYTES ||
		o.contiguous < before + WIRE_ETHER_BYTES)
		return VERDICT_TUNNEL_SHORT;
	if (bytes < o.bytes)
		return VERDICT_LOCAL; // Linux cuts off what follows in the packet
	const struct fib_vxlan *vxlan = find_device(p, &o, in->vrf[i], &number, &verdict);
	if (!vxlan)
		return verdict;
	verdict = check_udp(&o, vxlan);
	if (verdict != VERDICT_FORWARD)
		return verdict;
	const struct vxlan_taken taken = {.m = o.m,
		.frame = (uint8_t *)o.udp + before,
		.bytes = bytes - before,
		.contiguous = MIN_OF(o.contiguous, bytes) - before,
		.ip = o.ip,
		.is_ip6 = o.is_ip6,
		.outer = {.udp_sum = (uint8_t *)o.udp + offsetof(struct wire_udp, checksum_be),
			.tos = o.tos}};
	return vxlan_take(p, &taken, number, out);
}

// How many bytes precede a frame is kept in its mbuf while it is bridged.
static void take_off(struct rte_mbuf *m, uint16_t before)
{
	m->outer_l3_len = before;
	rte_pktmbuf_adj(m, before);
}

static uint16_t put_back(struct rte_mbuf *m)
{
	rte_pktmbuf_prepend(m, m->outer_l3_len);
	return m->outer_l3_len;
}

// Frames of a bridge of Linux that are not bridged here.
static void leave_to_linux(struct parse *p, const struct received *r)
{
	for (uint16_t i = 0; i < r->n; i++) {
		put_back(r->mbuf[i]);
		worker_stop(p->w, r->mbuf[i], p->in_port, VERDICT_LOCAL);
	}
}

// The interface on which frames without a tag to the bridge itself come in. False: Linux has that.
static bool find_own(const struct fib_view *view, const struct mac_port *from, uint16_t *iface)
{
	*iface = from->vlans ? parse_bridge_iface(view, from, from->vlans->pvid) : from->iface;
	if (*iface == IFACE_NONE)
		return false;
	return !(iface_in_load(&view->ifaces, *iface).flags & IFACE_DOWN) &&
	       !(iface_in_load(&view->ifaces, from->iface).flags & IFACE_LINUX);
}

// Frames to the bridge itself: packets without a tag are routed as received on its interface.
static void route_own(struct parse *p, const struct received_on_bridge *own)
{
	uint16_t iface;

	for (uint16_t i = 0; i < own->frames.n; i++) {
		struct rte_mbuf *m = own->frames.mbuf[i];
		uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
		const uint16_t type = load16_be(frame + 12);
		enum verdict verdict = VERDICT_LOCAL;

		put_back(m);
		if ((type == WIRE_ETHERTYPE_IP4 || type == WIRE_ETHERTYPE_IP6) &&
			find_own(p->view, own->port, &iface))
			verdict = tunnel_add_packet(p, m, frame + WIRE_ETHER_BYTES,
				type == WIRE_ETHERTYPE_IP6, iface);
		if (verdict != VERDICT_FORWARD)
			worker_stop(p->w, m, p->in_port, verdict);
	}
}

static void bridge(struct parse *p, const struct vxlan_inner *in, uint64_t mask, uint16_t member)
{
	struct worker *w = p->w;
	const struct mac_view *view = w->macs ? mac_live_view(w->macs) : NULL;
	struct rte_mbuf *mbuf[BURST_MAX];
	struct received r = {.mbuf = mbuf};
	struct received_on_bridge own;
	struct frames f;

	own.frames.n = 0;
	for (; mask; mask &= mask - 1) {
		const unsigned i = __builtin_ctzll(mask);

		take_off(in->mbuf[i], in->before[i]);
		memcpy(f.end[r.n], in->end[i], sizeof(f.end[0]));
		f.end_family = in->is_ip6[i] ? 6 : 4;
		mbuf[r.n++] = in->mbuf[i];
	}
	if (!view || member >= view->n_members || !view->port[member].domain) {
		leave_to_linux(p, &r);
		return;
	}
	f.view = view;
	f.in = member;
	f.from = &view->port[member];
	f.n = 0;
	f.has_offloads = false;
	f.now = rte_rdtsc();
	f.mbuf = mbuf;
	frames_bridge(w, &f, &r, &own);
	leave_to_linux(p, &r);
	route_own(p, &own);
}

void vxlan_bridge(struct parse *p, const struct vxlan_inner *in)
{
	uint64_t left = in->n == 64 ? UINT64_MAX : (1ull << in->n) - 1;

	while (left) {
		const uint16_t member = in->member[__builtin_ctzll(left)];
		uint64_t same = 0;

		for (uint64_t rest = left; rest; rest &= rest - 1) {
			const unsigned i = __builtin_ctzll(rest);

			same |= (uint64_t)(in->member[i] == member) << i;
		}
		left &= ~same;
		bridge(p, in, same, member);
	}
}
