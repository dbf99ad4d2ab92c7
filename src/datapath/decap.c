// Takes packets out of tunnels (RFC 2003, 2473, 2784, 2890, 4023, 7510): finds the tunnel by the
// outer header, verifies that, and adds what is in it to bursts that go through all steps, as
// received on the tunnel. Linux gets fragments, options that are not known here, and all that is
// punted as it was received. Worker.
#include "datapath/mpls.h"
#include "datapath/parse.h"
#include "datapath/tunnel.h"
#include "datapath/vxlan.h"
#include "wire/checksum.h"

#include <rte_ip.h>

enum { GRE_BYTES = 4, GRE_WORD = 4, OPTIONS_BYTES = 8 };
enum { GRE_CHECKSUM = 0x8000, GRE_ROUTING = 0x4000, GRE_KEY = 0x2000, GRE_SEQUENCE = 0x1000 };
enum { LABEL = 4, BOTTOM_AT = 2, BOTTOM = 1 }; // the bit of the last label of a stack
enum { GRE_VERSION = 7, ECN_MASK = 3, ECN_CE = 3, ECN_ECT1 = 1, ECN_ECT0 = 2, ECN_SHIFT6 = 4 };

// A packet whose headers are being read.
struct peeled {
	struct rte_mbuf *m;
	uint8_t *at;         // what comes next
	uint32_t bytes;      // from there to the end of the outer packet
	uint32_t contiguous; // of them
	const uint8_t *outer;
	struct fib_end_key key;
	struct tunnel_outer is;
	uint8_t protocol;
	bool has_checksum, lacks_checksum;  // of GRE; of UDP over IPv6
	bool has_labels, has_frame, is_ip6; // what is in the tunnel
};

static bool skip(struct peeled *p, uint32_t n)
{
	if (p->bytes < n || p->contiguous < n)
		return false;
	p->at += n;
	p->bytes -= n;
	p->contiguous -= n;
	return true;
}

static void read_outer4(struct peeled *p)
{
	const struct wire_ip4 *ip = (const void *)p->outer;

	p->bytes = be16toh(ip->total_length_be);
	p->protocol = ip->protocol;
	p->is.tos = ip->dscp_ecn;
	memcpy(p->key.local, ip->dst, sizeof(ip->dst));
	memcpy(p->key.remote, ip->src, sizeof(ip->src));
	skip(p, WIRE_IP4_BYTES);
}

// Of options only the encapsulation limit and padding are known (RFC 2473, 4.1.1).
static bool read_outer6(struct peeled *p)
{
	static const uint8_t limit[] = {4, 1}, padding[] = {1, 1, 0};
	const struct wire_ip6 *ip = (const void *)p->outer;

	p->bytes = WIRE_IP6_BYTES + be16toh(ip->payload_length_be);
	p->protocol = ip->next_header;
	p->is.tos = be32toh(ip->version_class_flow_be) >> 20;
	p->key.is_ip6 = true;
	memcpy(p->key.local, ip->dst, sizeof(ip->dst));
	memcpy(p->key.remote, ip->src, sizeof(ip->src));
	skip(p, WIRE_IP6_BYTES);
	if (p->protocol != WIRE_PROTO_DESTINATION)
		return true;
	const uint8_t *option = p->at;
	if (!skip(p, OPTIONS_BYTES) || option[1] || memcmp(option + 2, limit, sizeof(limit)) ||
		memcmp(option + 5, padding, sizeof(padding)))
		return false;
	p->protocol = option[0];
	return true;
}

// The sum of what comes next.
static uint64_t sum_rest(const struct peeled *p)
{
	uint16_t sum = 0;

	rte_raw_cksum_mbuf(p->m, p->at - rte_pktmbuf_mtod(p->m, uint8_t *), p->bytes, &sum);
	return sum;
}

static enum verdict peel_udp(const struct fib_ends *ends, struct peeled *p)
{
	struct wire_udp *udp = (void *)p->at;
	struct peeled whole = *p;

	if (p->contiguous < WIRE_UDP_BYTES || p->bytes < WIRE_UDP_BYTES)
		return VERDICT_LOCAL;
	const uint16_t bytes = be16toh(udp->length_be);
	const struct fib_udp_end *end =
		fib_udp_end_find(ends, be16toh(udp->dst_port_be), p->key.is_ip6);
	if (!end)
		return VERDICT_LOCAL;
	if (bytes < WIRE_UDP_BYTES || bytes > p->bytes)
		return VERDICT_TUNNEL_SHORT;
	p->bytes = whole.bytes = bytes;
	p->lacks_checksum = !udp->checksum_be && p->key.is_ip6;
	if (p->lacks_checksum && !(end->flags & FIB_UDP_ZERO))
		return VERDICT_TUNNEL_CHECKSUM;
	p->key.key = end->flags & FIB_UDP_BY_PORT ? end->port : 0;
	const uint64_t pseudo =
		p->key.is_ip6 ? wire_sum_pseudo6((const void *)p->outer, WIRE_PROTO_UDP, bytes)
			      : wire_sum_pseudo4((const void *)p->outer, WIRE_PROTO_UDP, bytes);
	if (udp->checksum_be && wire_sum_finish_be(pseudo + sum_rest(&whole)))
		return VERDICT_TUNNEL_CHECKSUM;
	if (!skip(p, WIRE_UDP_BYTES) || !p->contiguous)
		return VERDICT_TUNNEL_SHORT;
	p->is.udp_sum = (uint8_t *)udp + offsetof(struct wire_udp, checksum_be);
	p->protocol = end->protocol;
	if (!p->protocol)
		p->protocol = p->at[0] >> 4 == 6 ? WIRE_PROTO_IP6 : WIRE_PROTO_IP4;
	return VERDICT_FORWARD;
}

static enum verdict peel_gre(struct peeled *p)
{
	const struct peeled whole = *p;

	if (!skip(p, GRE_BYTES))
		return VERDICT_TUNNEL_SHORT;
	const uint16_t flags = load16_be(whole.at), type = load16_be(whole.at + 2);
	if (flags & GRE_VERSION) // PPTP
		return VERDICT_LOCAL;
	if (flags & GRE_ROUTING)
		return VERDICT_TUNNEL_FLAGS;
	p->has_labels = type == WIRE_ETHERTYPE_MPLS;
	p->has_frame = type == WIRE_ETHERTYPE_FRAME;
	if (type != WIRE_ETHERTYPE_IP4 && type != WIRE_ETHERTYPE_IP6 && !p->has_labels &&
		!p->has_frame)
		return VERDICT_LOCAL;
	p->is_ip6 = type == WIRE_ETHERTYPE_IP6;
	p->has_checksum = flags & GRE_CHECKSUM;
	if (p->has_checksum && !skip(p, GRE_WORD))
		return VERDICT_TUNNEL_SHORT;
	if (p->has_checksum)
		p->is.gre_sum = p->at - GRE_WORD;
	const uint8_t *key = p->at;
	if (flags & GRE_KEY && !skip(p, GRE_WORD))
		return VERDICT_TUNNEL_SHORT;
	if (flags & GRE_SEQUENCE && !skip(p, GRE_WORD))
		return VERDICT_TUNNEL_SHORT;
	if (p->has_checksum && wire_sum_finish_be(sum_rest(&whole)))
		return VERDICT_TUNNEL_CHECKSUM;
	p->key.carrier = p->has_frame ? FIB_FRAMES_IN_GRE : FIB_IP_IN_GRE;
	p->key.has_key = (flags & GRE_KEY) != 0;
	p->key.key = flags & GRE_KEY ? be32toh(load32(key)) : 0;
	return VERDICT_FORWARD;
}

static enum verdict peel(const struct fib_ends *ends, struct peeled *p)
{
	if (p->protocol == WIRE_PROTO_UDP) {
		const enum verdict verdict = peel_udp(ends, p);
		if (verdict != VERDICT_FORWARD)
			return verdict;
	}
	if (p->protocol == WIRE_PROTO_GRE)
		return peel_gre(p);
	p->has_labels = p->protocol == WIRE_PROTO_MPLS;
	if (p->protocol != WIRE_PROTO_IP4 && p->protocol != WIRE_PROTO_IP6 && !p->has_labels)
		return VERDICT_LOCAL;
	p->is_ip6 = p->protocol == WIRE_PROTO_IP6;
	p->key.carrier = p->has_labels ? FIB_MPLS_IN_IP : p->is_ip6 ? FIB_IP6_IN_IP : FIB_IP4_IN_IP;
	return VERDICT_FORWARD;
}

static enum verdict find_end(const struct fib_view *view, const struct fib_ends *ends,
	const struct peeled *p, const struct fib_end **end)
{
	const uint16_t wanted = p->has_labels ? IFACE_TUNNEL_MPLS
	                        : p->is_ip6   ? IFACE_TUNNEL_IP6
	                                      : IFACE_TUNNEL_IP4;

	*end = fib_end_find(ends, &p->key);
	if (!*end && p->has_frame)
		return VERDICT_LOCAL; // Linux may have a device that workers do not serve
	if (!*end || !((*end)->flags & wanted || p->has_frame))
		return VERDICT_TUNNEL_UNKNOWN;
	const uint16_t flags = iface_in_load(&view->ifaces, (*end)->iface).flags;
	if (flags & IFACE_DOWN)
		return VERDICT_TUNNEL_UNKNOWN;
	if (p->has_labels && (flags & (IFACE_MPLS | IFACE_LINUX)) != IFACE_MPLS)
		return VERDICT_LINUX;
	const bool is_strict = (*end)->flags & IFACE_TUNNEL_LINUX;
	if (p->lacks_checksum && !is_strict && !((*end)->flags & IFACE_TUNNEL_ZERO_CHECKSUM))
		return VERDICT_TUNNEL_CHECKSUM;
	if (p->key.carrier != FIB_IP_IN_GRE && !p->has_frame)
		return VERDICT_FORWARD;
	const bool wants = (*end)->flags & IFACE_TUNNEL_WANTS_CHECKSUM;
	return wants != p->has_checksum && (wants || is_strict) ? VERDICT_TUNNEL_CHECKSUM
	                                                        : VERDICT_FORWARD;
}

static enum verdict check_inner(const struct parse *p, const struct peeled *at)
{
	const struct wire_check_rules rules = {.verify_ip4_checksum = true,
		.pass_martians = __atomic_load_n(&p->port_state->pass_martians, __ATOMIC_RELAXED)};
	const uint32_t least = at->is_ip6 ? WIRE_IP6_BYTES : WIRE_IP4_BYTES;

	if (at->contiguous < least || at->bytes < least ||
		parse_reported_bytes(at->at, at->is_ip6) > at->bytes)
		return VERDICT_TUNNEL_SHORT;
	return parse_verdict(
		wire_check_packet(at->at, at->is_ip6, at->contiguous, at->bytes, &rules));
}

static void mend_sum(uint8_t *sum, uint16_t old_be, uint16_t new_be, bool is_udp)
{
	uint16_t sum_be = load16(sum);

	if (is_udp && !sum_be) // there is none
		return;
	sum_be = wire_checksum_update_be(sum_be, old_be, new_be);
	if (is_udp && !sum_be)
		sum_be = UINT16_MAX;
	memcpy(sum, &sum_be, sizeof(sum_be));
}

// The word of an IPv6 header changes the sums that cover it; an IPv4 header mends its own.
enum verdict tunnel_take_ecn(uint8_t *packet, bool is_ip6, const struct tunnel_outer *outer)
{
	struct wire_ip4 *ip4 = (void *)packet;
	const uint16_t word = load16_be(packet);
	const unsigned shift = is_ip6 ? ECN_SHIFT6 : 0;
	const uint8_t inner = word >> shift & ECN_MASK, ecn = outer->tos & ECN_MASK;
	uint8_t now = inner;

	if (ecn == ECN_CE && !inner)
		return VERDICT_TUNNEL_ECN;
	if (ecn == ECN_CE)
		now = ECN_CE;
	else if (ecn == ECN_ECT1 && inner == ECN_ECT0)
		now = ECN_ECT1;
	if (now == inner)
		return VERDICT_FORWARD;
	const uint16_t old_be = htobe16(word);
	const uint16_t new_be = htobe16((word & ~(ECN_MASK << shift)) | now << shift);
	memcpy(packet, &new_be, sizeof(new_be));
	if (!is_ip6)
		ip4->checksum_be = wire_checksum_update_be(ip4->checksum_be, old_be, new_be);
	else if (outer->gre_sum) // which makes up for it in a sum around that
		mend_sum(outer->gre_sum, old_be, new_be, false);
	else if (outer->udp_sum)
		mend_sum(outer->udp_sum, old_be, new_be, true);
	return VERDICT_FORWARD;
}

// The same for the packet below the labels, if there is a sound one: otherwise nothing can tell its
// receiver of congestion.
static enum verdict take_ecn_below(const struct peeled *p)
{
	static const struct wire_check_rules rules = {.verify_ip4_checksum = true,
		.pass_martians = true};
	uint32_t at = 0;

	if (!(p->is.tos & ECN_MASK))
		return VERDICT_FORWARD;
	while (at + LABEL <= p->contiguous && !(p->at[at + BOTTOM_AT] & BOTTOM))
		at += LABEL;
	at += LABEL;
	const uint32_t left = at < p->contiguous ? p->contiguous - at : 0;
	const uint8_t version = left ? p->at[at] >> 4 : 0;
	const bool is_ip6 = version == 6;
	if ((version == 4 && left >= WIRE_IP4_BYTES) || (is_ip6 && left >= WIRE_IP6_BYTES))
		if (wire_check_packet(p->at + at, is_ip6, left, p->bytes - at, &rules) == WIRE_OK)
			return tunnel_take_ecn(p->at + at, is_ip6, &p->is);
	return (p->is.tos & ECN_MASK) == ECN_CE ? VERDICT_TUNNEL_ECN : VERDICT_FORWARD;
}

static void count(const struct parse *p, uint16_t iface, uint32_t bytes)
{
	stats_add(&p->w->stat->tunnel[iface].rx_packets, 1);
	stats_add(&p->w->stat->tunnel[iface].rx_bytes, bytes);
}

// Returns how many bytes the packet has.
static uint32_t add_to_burst(struct parse *p, struct rte_mbuf *m, uint8_t *packet, bool is_ip6,
	uint16_t id)
{
	struct burst *b = is_ip6 ? &p->w->poll->ip6 : &p->w->poll->ip4;
	const uint32_t bytes = parse_reported_bytes(packet, is_ip6);
	uint8_t *frame = packet - WIRE_ETHER_BYTES;
	const uint8_t *end_of_frame = rte_pktmbuf_mtod(m, uint8_t *) + m->pkt_len;

	if (is_ip6)
		take6(b, m, frame, WIRE_ETHER_BYTES + bytes);
	else
		take4(b, m, frame, WIRE_ETHER_BYTES + bytes);
	parse_arrive(p, b, id, iface_in_load(&p->view->ifaces, id));
	b->has |= BURST_TAGS | BURST_LABELS | (m->nb_segs > 1 ? BURST_SEGMENTS : 0) |
	          (packet + bytes < end_of_frame ? BURST_TRAILERS : 0);
	return bytes;
}

enum verdict tunnel_add_packet(struct parse *p, struct rte_mbuf *m, uint8_t *packet, bool is_ip6,
	uint16_t iface)
{
	const uint32_t before = packet - rte_pktmbuf_mtod(m, uint8_t *);
	const struct peeled at = {.m = m,
		.at = packet,
		.bytes = m->pkt_len - before,
		.contiguous = m->data_len - before,
		.is_ip6 = is_ip6};
	const enum verdict verdict = check_inner(p, &at);

	if (verdict == VERDICT_FORWARD)
		add_to_burst(p, m, packet, is_ip6, iface);
	return verdict;
}

static void add(struct parse *p, const struct peeled *at, const struct fib_end *end)
{
	count(p, end->iface, add_to_burst(p, at->m, at->at, at->is_ip6, end->iface));
}

// What begins with labels is dealt with after all others.
static enum verdict take_labelled(struct parse *p, const struct peeled *at,
	const struct fib_end *end)
{
	struct labelled *to = p->labelled;

	if (at->bytes < LABEL)
		return VERDICT_TUNNEL_SHORT;
	if (!fib_labels_load(p->view))
		return VERDICT_MPLS_UNKNOWN;
	const enum verdict verdict = take_ecn_below(at);
	if (verdict != VERDICT_FORWARD)
		return verdict;
	const uint16_t i = to->n++;
	to->mbuf[i] = at->m;
	to->stack[i] = at->at;
	to->bytes[i] = at->bytes;
	to->iif[i] = end->iface;
	count(p, end->iface, at->bytes);
	return VERDICT_FORWARD;
}

static enum verdict take_frame(const struct parse *p, const struct peeled *at,
	const struct fib_end *end, struct vxlan_inner *out)
{
	const struct vxlan_taken taken = {.m = at->m,
		.frame = at->at,
		.bytes = at->bytes,
		.contiguous = at->contiguous,
		.ip = at->outer,
		.is_ip6 = at->key.is_ip6,
		.outer = at->is};

	if (at->contiguous < WIRE_ETHER_BYTES)
		return VERDICT_TUNNEL_SHORT;
	return vxlan_take(p, &taken, end->vxlan, out);
}

static enum verdict take_one(struct parse *p, const struct fib_ends *ends,
	const struct tunnelled *in, unsigned i, struct vxlan_inner *frames)
{
	struct rte_mbuf *m = in->mbuf[i];
	const struct fib_end *end;
	struct peeled at;

	memset(&at, 0, sizeof(at));
	at.m = m;
	at.outer = at.at = in->frame[i] + WIRE_ETHER_BYTES;
	at.contiguous = m->data_len - (at.at - rte_pktmbuf_mtod(m, uint8_t *));
	at.key.vrf = in->vrf[i];
	at.bytes = UINT16_MAX;
	if (!in->is_ip6[i])
		read_outer4(&at);
	else if (!read_outer6(&at))
		return VERDICT_LOCAL;
	at.contiguous = MIN_OF(at.contiguous, at.bytes);
	enum verdict verdict = peel(ends, &at);
	if (verdict == VERDICT_FORWARD)
		verdict = find_end(p->view, ends, &at, &end);
	if (verdict == VERDICT_FORWARD && at.has_labels)
		return take_labelled(p, &at, end);
	if (verdict == VERDICT_FORWARD && at.has_frame)
		return take_frame(p, &at, end, frames);
	if (verdict == VERDICT_FORWARD)
		verdict = check_inner(p, &at);
	if (verdict == VERDICT_FORWARD)
		verdict = tunnel_take_ecn(at.at, at.is_ip6, &at.is);
	if (verdict == VERDICT_FORWARD)
		add(p, &at, end);
	return verdict;
}

void tunnel_take(struct parse *p, const struct tunnelled *in)
{
	const struct fib_ends *ends = fib_ends_load(p->view);
	const bool has_vxlan = vxlan_receives(p->view);
	struct labelled labelled;
	struct vxlan_inner inner;

	inner.n = 0;
	labelled.n = 0;
	p->labelled = &labelled;
	for (unsigned i = 0; i < in->n; i++) {
		enum verdict verdict = has_vxlan ? vxlan_peel(p, in, i, &inner) : VERDICT_LOCAL;

		if (verdict == VERDICT_LOCAL && ends)
			verdict = take_one(p, ends, in, i, &inner);
		if (verdict != VERDICT_FORWARD)
			worker_stop(p->w, in->mbuf[i], p->in_port, verdict);
	}
	if (inner.n)
		vxlan_bridge(p, &inner);
	if (labelled.n)
		datapath_mpls(p->w, p->view, p->in_port, &labelled);
	p->labelled = NULL;
}

static bool is_of_tunnel(uint8_t protocol)
{
	return protocol == WIRE_PROTO_IP4 || protocol == WIRE_PROTO_IP6 ||
	       protocol == WIRE_PROTO_GRE || protocol == WIRE_PROTO_UDP ||
	       protocol == WIRE_PROTO_MPLS || protocol == WIRE_PROTO_DESTINATION;
}

bool tunnel_may_end(const struct burst *b, uint16_t i)
{
	const struct wire_ip4 *ip4 = (const void *)(b->frame[i] + WIRE_ETHER_BYTES);
	const struct wire_ip6 *ip6 = (const void *)ip4;

	if ((!fib_ends_load(b->view) && !vxlan_receives(b->view)) || offload_is_open(b->mbuf[i]) ||
		b->linux_mask >> i & 1)
		return false;
	if (b->is_ip6)
		return is_of_tunnel(ip6->next_header);
	return is_of_tunnel(ip4->protocol) &&
	       !(ip4->fragment_be & htobe16(WIRE_IP4_MORE_FRAGMENTS | WIRE_IP4_FRAGMENT_OFFSET));
}

void tunnel_keep(struct worker *w, const struct burst *b, uint16_t i)
{
	struct tunnelled *to = &w->tunnelled;
	const uint16_t k = to->n++;

	to->mbuf[k] = b->mbuf[i];
	to->frame[k] = b->frame[i];
	to->vrf[k] = burst_vrf(b, i);
	to->is_ip6[k] = b->is_ip6;
	to->in_port = b->in_port;
}
