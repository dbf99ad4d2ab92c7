// Slow path of parse, for frames that the fast path does not recognise: malformed frames, VLAN
// tags, further MAC addresses, interfaces that Linux forwards for. Worker.
#include "datapath/acl_judge.h"
#include "datapath/bridge_vlans.h"
#include "datapath/mpls.h"
#include "datapath/parse.h"
#include "datapath/trace.h"

#include "wire/check.h"
#include "wire/headers.h"

static const uint8_t verdict_of_fault[N_WIRE_FAULTS] = {
	[WIRE_OK] = VERDICT_FORWARD,
	[WIRE_RUNT] = VERDICT_RUNT,
	[WIRE_MULTI_SEGMENT] = VERDICT_MULTI_SEGMENT,
	[WIRE_ARP] = VERDICT_ARP,
	[WIRE_VLAN] = VERDICT_VLAN_UNKNOWN,
	[WIRE_ETHERTYPE] = VERDICT_ETHERTYPE_UNKNOWN,
	[WIRE_IP4_VERSION] = VERDICT_IP4_VERSION,
	[WIRE_IP4_HEADER_LENGTH] = VERDICT_IP4_HEADER_LENGTH,
	[WIRE_IP4_LENGTH] = VERDICT_IP4_LENGTH,
	[WIRE_IP4_CHECKSUM] = VERDICT_IP4_CHECKSUM,
	[WIRE_IP4_OPTIONS] = VERDICT_IP4_OPTIONS,
	[WIRE_IP6_VERSION] = VERDICT_IP6_VERSION,
	[WIRE_IP6_LENGTH] = VERDICT_IP6_LENGTH,
	[WIRE_IP6_HOP_BY_HOP] = VERDICT_IP6_HOP_BY_HOP,
	[WIRE_MARTIAN_SOURCE] = VERDICT_MARTIAN_SOURCE,
	[WIRE_LINK_LOCAL_SOURCE] = VERDICT_LINK_LOCAL_SOURCE,
};

enum verdict parse_verdict(enum wire_fault fault)
{
	return verdict_of_fault[fault];
}

// A frame and the interface that it arrived on.
struct arrival {
	struct rte_mbuf *mbuf;
	uint8_t *start;        // of the frame as received
	uint8_t *frame;        // of the frame as it would be without its tags
	uint16_t id;           // of the interface
	struct iface_in iface; // the port's or the VLAN's
	enum wire_fault fault; // set by check_frame
};

static uint16_t tag_bytes(const struct arrival *a)
{
	return a->frame - a->start;
}

// Removes up to two tags (IEEE 802.1Q, 9.6). Tags with VID 0 carry a priority only.
static struct iface_tags read_tags(struct arrival *a)
{
	struct iface_tags tags = {{0}};
	unsigned n = 0;

	for (unsigned at = 12; at <= 16; at += WIRE_VLAN_BYTES) {
		uint16_t vid, tpid = load16_be(a->start + at);

		if (tpid != WIRE_ETHERTYPE_VLAN && tpid != WIRE_ETHERTYPE_QINQ)
			break;
		if (a->mbuf->data_len < at + 6) // the EtherType after the tag is missing
			break;
		vid = load16_be(a->start + at + 2) & 0xfff;
		a->frame += WIRE_VLAN_BYTES;
		if (!vid)
			continue;
		memcpy(tags.bytes + n, a->start + at, 2);
		tags.bytes[n + 2] = vid >> 8;
		tags.bytes[n + 3] = vid & 0xff;
		n += WIRE_VLAN_BYTES;
	}
	return tags;
}

uint16_t parse_bridge_iface(const struct fib_view *view, const struct mac_port *port, uint16_t vid)
{
	const struct mac_vlans *own = port->own_vlans;
	const struct iface_tags tags = {{own->tag >> 8, own->tag, vid >> 8, vid}};

	if (!mac_vlans_has(own->has, vid))
		return IFACE_NONE;
	return mac_vlans_has(own->untagged, vid) ? port->iface
	                                         : iface_tagged(&view->ifaces, port->iface, &tags);
}

// On a bridge that filters by VLAN: its tag says in which one the frame came in, or its port. If no
// interface has that, the frame is left as received, as one of its port.
static void find_vlan_of_bridge(const struct parse *p, struct arrival *a)
{
	const struct mac_vlans *in = p->bridge->vlans;
	const uint16_t id = parse_bridge_iface(p->view, p->bridge, bridge_vlans_in(in, a->mbuf));
	const uint16_t bridge = p->bridge->iface;

	a->id = id == IFACE_NONE ? p->in_port : id;
	a->iface = iface_in_load(&p->view->ifaces, a->id);
	a->iface.flags |= iface_in_load(&p->view->ifaces, bridge).flags & IFACE_LINUX;
	if (id != IFACE_NONE)
		a->frame += bridge_vlans_tag_bytes(in, a->mbuf);
}

// Finds the VLAN by the tags. If no interface of this port has them, the frame is left as received.
static void find_vlan(const struct parse *p, struct arrival *a)
{
	if (p->bridge && p->bridge->vlans) {
		find_vlan_of_bridge(p, a);
		return;
	}
	struct iface_tags tags = read_tags(a);

	if (!load64(tags.bytes))
		return;
	uint16_t id =
		p->iface.n_tags ? iface_tagged(&p->view->ifaces, p->in_iface, &tags) : IFACE_NONE;
	if (id == IFACE_NONE) {
		a->frame = a->start;
		return;
	}
	a->id = id;
	a->iface = iface_in_load(&p->view->ifaces, id);
	a->iface.flags |= p->iface.flags & IFACE_LINUX;
}

static bool is_our_mac(const struct parse *p, const struct arrival *a)
{
	bool is_vlan = a->id != p->in_iface;

	if (p->bridge) // whose address it has
		return true;
	if (!is_vlan && load64(a->start) << 16 == p->mac)
		return true;
	return (is_vlan || a->iface.n_macs) && iface_has_mac(&p->view->ifaces, a->id, a->start);
}

// Sources that the RFCs forbid and Linux accepts: 0/8 and 240/4 except 0.0.0.0 and the limited
// broadcast address (ip_route_input_slow() in net/ipv4/route.c), and IPv4-mapped ones in IPv6.
static bool linux_takes(const uint8_t *frame)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	uint32_t src = source4(frame);

	if (frame[12] == 0x08)
		return src + 1 > 1 && (src >> 24 == 0 || src >> 28 == 0xf);
	return !memcmp(frame + 22, mapped, sizeof(mapped));
}

// Linux gets broadcasts and multicasts, also in a unicast frame to us (RFC 6085), and also without
// a source address: hosts send those to obtain an address (RFC 2131, 4.1) or to check that it is
// unique (RFC 4862, 5.4.2).
static enum verdict check_martian(const struct parse *p, const struct arrival *a)
{
	bool is_ip4 = a->frame[12] == 0x08;
	const uint8_t *dst = a->frame + (is_ip4 ? 30 : 38);

	if (p->w->tap && is_ip4 && load32(dst) == UINT32_MAX)
		return VERDICT_LOCAL;
	if (p->w->tap && (is_ip4 ? dst[0] >> 4 == 0xe : dst[0] == 0xff))
		return VERDICT_MULTICAST;
	return p->w->tap && linux_takes(a->frame) ? VERDICT_FORWARD : VERDICT_MARTIAN_SOURCE;
}

// The IP length is beyond the end of the frame. The ring of a packet socket keeps as much of a
// frame as fits a slot and does not mark it as cut, so that the length is the only evidence.
static enum verdict check_length(const struct parse *p, const struct arrival *a,
	enum wire_fault fault)
{
	return port_fills_slot(p->port_state, a->start, a->mbuf->pkt_len) ? VERDICT_FRAME_CUT
	                                                                  : verdict_of_fault[fault];
}

static enum verdict check_mac(const struct parse *p, const struct arrival *a, enum wire_fault fault)
{
	bool vlan_is_linuxs = fault == WIRE_VLAN && p->w->tap;
	bool linux_forwards = p->w->tap && a->frame[12] == 0x08; // from 169.254/16, not fe80::/10

	if (fault == WIRE_RUNT || fault == WIRE_MULTI_SEGMENT || fault == WIRE_ARP)
		return verdict_of_fault[fault];
	if (a->start[0] & 1)
		return vlan_is_linuxs ? VERDICT_VLAN_UNKNOWN : VERDICT_MAC_GROUP;
	if (!is_our_mac(p, a))
		return VERDICT_MAC_NOT_OURS;
	if (fault == WIRE_MARTIAN_SOURCE)
		return check_martian(p, a);
	if (fault == WIRE_LINK_LOCAL_SOURCE && linux_forwards)
		return VERDICT_FORWARD;
	if (fault == WIRE_IP4_LENGTH || fault == WIRE_IP6_LENGTH)
		return check_length(p, a, fault);
	return verdict_of_fault[fault];
}

static enum verdict check_frame(const struct parse *p, struct arrival *a)
{
	const struct rte_mbuf *m = a->mbuf;
	uint64_t marks = m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
	struct wire_check_rules rules = {
		.verify_ip4_checksum = marks != RTE_MBUF_F_RX_IP_CKSUM_GOOD,
		.pass_martians = __atomic_load_n(&p->port_state->pass_martians, __ATOMIC_RELAXED),
	};

	a->fault =
		wire_check(a->frame, m->data_len - tag_bytes(a), m->pkt_len - tag_bytes(a), &rules);
	return check_mac(p, a, a->fault);
}

// Linux gets all packets of some interfaces: malformed ones and those not for us too, in their own
// class, or in CLASS_LINUX if they have none.
static enum verdict decide(const struct parse *p, struct arrival *a)
{
	enum verdict verdict = check_frame(p, a);
	bool has_class = p->w->tap && p->w->tap->class_of[verdict] != CLASS_NONE;

	if (a->iface.flags & IFACE_DOWN)
		return VERDICT_PORT_DISABLED;
	if (verdict == VERDICT_FORWARD || !(a->iface.flags & IFACE_LINUX))
		return verdict;
	return has_class && verdict != VERDICT_VLAN_UNKNOWN ? verdict : VERDICT_LINUX;
}

uint32_t parse_reported_bytes(const uint8_t *packet, bool is_ip6)
{
	const struct wire_ip4 *ip4 = (const void *)packet;
	const struct wire_ip6 *ip6 = (const void *)packet;

	if (is_ip6)
		return WIRE_IP6_BYTES + be16toh(ip6->payload_length_be);
	return be16toh(ip4->total_length_be);
}

// Length from the Ethernet header to the end of the packet, by the packet's own header.
static uint32_t reported_length(const uint8_t *frame)
{
	return WIRE_ETHER_BYTES + parse_reported_bytes(frame + WIRE_ETHER_BYTES, frame[12] != 0x08);
}

void parse_arrive(const struct parse *p, struct burst *b, uint16_t id, struct iface_in iface)
{
	const struct burst_flags flags = burst_flags(p, iface, b->is_ip6);
	const uint16_t i = b->n - 1;

	spread(b->iif, &b->has_one_iif);
	b->iif[i] = id;
	if (b->has_one_vrf && b->vrf[0] != iface.vrf)
		spread(b->vrf, &b->has_one_vrf);
	if (!b->has_one_vrf)
		b->vrf[i] = iface.vrf;
	set_bit(&b->linux_mask, i, flags.for_linux);
	set_bit(&b->redirect_mask, i, flags.may_redirect);
	set_bit(&b->discovery_mask, i, flags.has_discovery);
	set_bit(&b->strict_mask, i, flags.is_strict);
	set_bit(&b->loose_mask, i, flags.is_loose);
	b->has |= (flags.may_redirect ? BURST_REDIRECTS : 0) |
	          (flags.has_discovery ? BURST_DISCOVERY : 0) |
	          (flags.is_strict || flags.is_loose ? BURST_RPF : 0);
}

// Bytes of a packet without its tags, and without a trailer beyond the padding.
static uint32_t packet_length(const struct arrival *a)
{
	const uint32_t longest = MAX_OF(reported_length(a->frame), (uint32_t)PADDED_BYTES);

	return MIN_OF(a->mbuf->pkt_len - tag_bytes(a), longest);
}

// Appends a valid packet of any kind: it may have tags, which end at `frame` + 12, several
// segments, or a trailer.
static void take_any(struct parse *p, const struct arrival *a)
{
	const uint32_t received = a->mbuf->pkt_len - tag_bytes(a);
	const uint32_t length = packet_length(a);
	const bool is_ip4 = a->frame[12] == 0x08;
	struct burst *b = is_ip4 ? &p->w->poll->ip4 : &p->w->poll->ip6;

	b->has |= (length < received ? BURST_TRAILERS : 0) |
	          (a->mbuf->nb_segs > 1 ? BURST_SEGMENTS : 0) | (tag_bytes(a) ? BURST_TAGS : 0);
	if (is_ip4)
		take4(b, a->mbuf, a->frame, length);
	else
		take6(b, a->mbuf, a->frame, length);
	if (a->id != p->in_iface)
		parse_arrive(p, b, a->id, a->iface);
}

// Whether workers deal with a frame of another EtherType, as it has MPLS labels: those for which
// Linux is not asked first. Its tc filters see frames with their labels.
static bool takes_labels(const struct parse *p, const struct arrival *a)
{
	const struct acl_view *filters = p->w->filters ? acl_live_view(p->w->filters) : NULL;

	if (load16_be(a->frame + 12) != WIRE_ETHERTYPE_MPLS || !fib_labels_load(p->view))
		return false;
	if (p->w->tap && (a->iface.flags & (IFACE_MPLS | IFACE_LINUX)) != IFACE_MPLS)
		return false;
	return !filters || !acl_view_list(filters, ACL_IN, a->id);
}

static void take_labels(struct parse *p, const struct arrival *a)
{
	struct labelled *to = p->labelled;
	const uint16_t i = to->n++;

	to->mbuf[i] = a->mbuf;
	to->stack[i] = a->frame + WIRE_ETHER_BYTES;
	to->bytes[i] = a->mbuf->pkt_len - tag_bytes(a) - WIRE_ETHER_BYTES;
	to->iif[i] = a->id;
}

// How access lists and flows judge a packet that Linux gets from here.
enum judging { NOT_JUDGED, JUDGED_BY_ROUTE, JUDGED_LOCAL };

// Whether the headers of an IP packet are there and in order: faults are found in the order of enum
// wire_fault, and a MAC address or a source that is refused hides those before it.
static bool is_sound(enum wire_fault fault)
{
	return fault == WIRE_OK || fault == WIRE_IP4_OPTIONS || fault == WIRE_IP6_HOP_BY_HOP ||
	       fault == WIRE_MARTIAN_SOURCE || fault == WIRE_LINK_LOCAL_SOURCE;
}

static enum judging judged_local(const struct acl_view *view, uint16_t iface)
{
	const struct acl_list *list = acl_view_list(view, ACL_IN, iface);

	return list && list->has_local ? JUDGED_LOCAL : NOT_JUDGED;
}

// Linux would forward packets with options, and may bridge those to other MAC addresses, which it
// gets from its own interfaces. Others it takes for itself, without a route lookup.
static enum judging judging_of(const struct worker *w, const struct arrival *a,
	enum verdict verdict)
{
	const struct acl_view *view = w->acls ? acl_live_view(w->acls) : NULL;

	if (!w->tap || !is_sound(a->fault) || (!view && !w->flows))
		return NOT_JUDGED;
	switch (verdict) {
	case VERDICT_IP4_OPTIONS:
	case VERDICT_IP6_HOP_BY_HOP:
		return JUDGED_BY_ROUTE;
	case VERDICT_LINUX:
		return view ? JUDGED_BY_ROUTE : NOT_JUDGED;
	case VERDICT_LINK_LOCAL_SOURCE:
	case VERDICT_MAC_GROUP:
	case VERDICT_LOCAL:
	case VERDICT_MULTICAST:
		return view ? judged_local(view, a->id) : NOT_JUDGED;
	default:
		return NOT_JUDGED;
	}
}

// The lists of its interfaces and its flow judge it as they do a burst of this packet alone.
static __attribute__((noinline)) void stop_judged(const struct parse *p, const struct arrival *a,
	enum verdict verdict, enum judging judging)
{
	struct burst one = {.in_port = p->in_port,
		.is_ip6 = a->frame[12] != 0x08,
		.has_one_iif = true,
		.has_one_vrf = true,
		.view = p->view,
		.sources = p->view->sources,
		.iif = {a->id},
		.vrf = {a->iface.vrf}};
	const uint32_t length = packet_length(a);

	one.has = BURST_PACKETS | (a->mbuf->nb_segs > 1 ? BURST_SEGMENTS : 0);
	if (one.is_ip6)
		take6(&one, a->mbuf, a->frame, length);
	else
		take4(&one, a->mbuf, a->frame, length);
	if (judging == JUDGED_LOCAL) {
		acl_stop_local(p->w, &one, verdict);
		return;
	}
	if (p->w->flows && verdict != VERDICT_LINUX) // no flow of ours if Linux bridges it
		datapath_match_linuxs(p->w, &one);
	datapath_lookup(p->w, &one);
	if (unlikely(p->w->trace != NULL))
		trace_packet(p->w->trace, &one);
	acl_stop_linuxs(p->w, &one, verdict);
}

__attribute__((noinline)) void parse_slow(struct parse *p, struct rte_mbuf *m)
{
	uint8_t *start = rte_pktmbuf_mtod(m, uint8_t *);
	struct arrival a = {m, start, start, p->in_iface, p->iface, WIRE_OK};

	if (m->data_len >= WIRE_ETHER_BYTES)
		find_vlan(p, &a);
	enum verdict verdict = decide(p, &a);
	if (verdict == VERDICT_FORWARD) {
		take_any(p, &a);
		return;
	}
	if (verdict == VERDICT_ETHERTYPE_UNKNOWN && takes_labels(p, &a)) {
		take_labels(p, &a);
		return;
	}
	const enum judging judging = judging_of(p->w, &a, verdict);
	if (unlikely(judging != NOT_JUDGED))
		stop_judged(p, &a, verdict, judging);
	else
		worker_stop(p->w, m, p->in_port, verdict);
}
