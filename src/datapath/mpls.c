// Forwards packets by their MPLS labels (RFC 3031, 3032), as Linux does (mpls_forward in
// net/mpls/af_mpls.c). They have no IP header that the steps could read, so they are sent from
// here; what is popped down to IP goes on in the bursts. Worker.
#include "datapath/mpls.h"

#include "datapath/mpls_ttl.h"
#include "datapath/parse.h"
#include "datapath/steps.h"
#include "datapath/tunnel.h"

enum {
	LABEL = 4,
	LABEL_SHIFT = 12,
	BOTTOM = 1 << 8,  // of stack
	BOTTOM_BYTE = -2, // of the label that ends at an address
	STACK_MOST = 4,   // labels that are popped one after the other; more are Linux's
	HASHED_LABELS = 4,
};

// What is left of a packet after its label, or several, were popped.
struct popped {
	uint32_t entry; // of the last label
	uint8_t *rest;  // what follows it
	uint32_t bytes, contiguous;
	uint8_t ttl; // of the last label
	bool is_bottom;
};

static uint32_t label_word(const uint8_t *at)
{
	return rte_be_to_cpu_32(load32(at));
}

// Pops one label, which is not yet known to be there. Without VERDICT_FORWARD nothing is popped.
static enum verdict pop(const uint32_t *labels, struct popped *p)
{
	if (p->bytes < LABEL)
		return VERDICT_RUNT;
	if (p->contiguous < LABEL)
		return VERDICT_MULTI_SEGMENT;
	const uint32_t word = label_word(p->rest), label = word >> LABEL_SHIFT;

	p->entry = fib_label_load(labels, label);
	p->ttl = word;
	p->is_bottom = word & BOTTOM;
	p->rest += LABEL;
	p->bytes -= LABEL;
	p->contiguous -= LABEL;
	if (fib_label_op(p->entry) == FIB_LABEL_NONE)
		return label < FIB_FREE_LABEL ? VERDICT_MPLS_RESERVED : VERDICT_MPLS_UNKNOWN;
	if (fib_label_op(p->entry) == FIB_LABEL_LINUX ||
		(p->entry & FIB_LABEL_ENDS && !p->is_bottom))
		return VERDICT_LINUX;
	return p->ttl <= 1 ? VERDICT_MPLS_TTL : VERDICT_FORWARD;
}

// Pops labels until one leads to a next hop, or the last one is popped.
static enum verdict read_stack(const uint32_t *labels, const struct labelled *in, unsigned i,
	struct popped *p)
{
	const struct rte_mbuf *m = in->mbuf[i];
	const uint32_t before = in->stack[i] - rte_pktmbuf_mtod(m, uint8_t *);

	p->rest = in->stack[i];
	p->bytes = in->bytes[i];
	p->contiguous = MIN_OF(m->data_len - before, p->bytes);
	for (unsigned depth = 0; depth < STACK_MOST; depth++) {
		const enum verdict verdict = pop(labels, p);

		if (verdict != VERDICT_FORWARD || p->is_bottom ||
			fib_label_op(p->entry) == FIB_LABEL_FORWARD)
			return verdict;
	}
	return VERDICT_MPLS_DEEP;
}

// The payload has no type: the version tells, as in Linux. False: it is neither IPv4 nor IPv6, or
// its header is not there.
static bool read_version(const struct popped *p, bool *is_ip6)
{
	const uint8_t version = p->contiguous ? p->rest[0] >> 4 : 0;

	*is_ip6 = version == 6;
	return (version == 4 && p->contiguous >= WIRE_IP4_BYTES) ||
	       (version == 6 && p->contiguous >= WIRE_IP6_BYTES);
}

// --- to be looked up

// Packet i of a burst, the last one, arrived with labels on this interface.
static void arrive(struct burst *b, uint16_t i, uint16_t iif, uint16_t vrf, bool for_linux)
{
	if (b->has_one_iif && b->iif[0] != iif)
		spread(b->iif, &b->has_one_iif);
	if (!b->has_one_iif)
		b->iif[i] = iif;
	if (b->has_one_vrf && b->vrf[0] != vrf)
		spread(b->vrf, &b->has_one_vrf);
	if (!b->has_one_vrf)
		b->vrf[i] = vrf;
	set_bit(&b->linux_mask, i, for_linux);
	set_bit(&b->redirect_mask, i, false);
	set_bit(&b->discovery_mask, i, false);
	set_bit(&b->strict_mask, i, false);
	set_bit(&b->loose_mask, i, false);
	set_bit(&b->own_source_mask, i, false);
}

// Linux forwards for its interface: it gets all packets of that family.
static bool is_for_linux(const struct worker *w, const struct fib_view *view, uint16_t iif,
	bool is_ip6)
{
	if (!w->tap)
		return false;
	return iface_in_load(&view->ifaces, iif).flags &
	       (IFACE_LINUX | (is_ip6 ? IFACE_LINUX6 : IFACE_LINUX4));
}

// The TTL that is decremented later.
static uint8_t ttl_left(const struct popped *p, bool is_ip6)
{
	const uint8_t ttl = p->entry & FIB_LABEL_PIPE ? mpls_inner_ttl(p->rest, is_ip6) : p->ttl;

	return ttl - (p->entry & FIB_LABEL_LOOPS && ttl);
}

static enum verdict check_packet(const struct worker *w, uint16_t in_port, const struct popped *p,
	bool is_ip6)
{
	const struct wire_check_rules rules = {
		.verify_ip4_checksum = true,
		.pass_martians =
			__atomic_load_n(&w->states[in_port].pass_martians, __ATOMIC_RELAXED),
	};

	return parse_verdict(wire_check_packet(p->rest, is_ip6, p->contiguous, p->bytes, &rules));
}

static enum verdict take_packet(struct worker *w, const struct fib_view *view, uint16_t in_port,
	const struct labelled *in, unsigned i, const struct popped *p)
{
	bool is_ip6;

	if (!read_version(p, &is_ip6))
		return VERDICT_MPLS_PAYLOAD;
	const enum verdict verdict = check_packet(w, in_port, p, is_ip6);
	if (verdict != VERDICT_FORWARD)
		return verdict;
	struct burst *b = is_ip6 ? &w->poll->ip6 : &w->poll->ip4;
	uint8_t *frame = p->rest - WIRE_ETHER_BYTES;
	const uint32_t length = WIRE_ETHER_BYTES + parse_reported_bytes(p->rest, is_ip6);

	if (is_ip6)
		take6(b, in->mbuf[i], frame, length);
	else
		take4(b, in->mbuf[i], frame, length);
	b->ttl[b->n - 1] = ttl_left(p, is_ip6);
	arrive(b, b->n - 1, in->iif[i], p->entry & FIB_LABEL_VALUE,
		is_for_linux(w, view, in->iif[i], is_ip6));
	b->has |= BURST_TAGS | BURST_LABELS | (in->mbuf[i]->nb_segs > 1 ? BURST_SEGMENTS : 0);
	if (frame + length < rte_pktmbuf_mtod(in->mbuf[i], uint8_t *) + in->mbuf[i]->pkt_len)
		b->has |= BURST_TRAILERS;
	return VERDICT_FORWARD;
}

// --- to a next hop

// Flows as Linux has them (mpls_multipath_hash): labels, then addresses and protocol of IP.
static uint64_t hash_of(const struct labelled *in, unsigned i, const struct popped *p)
{
	const uint8_t *at = in->stack[i], *end = p->rest + p->contiguous;
	uint64_t hash = 0;
	uint32_t word = 0;

	for (unsigned k = 0; k < HASHED_LABELS && at + LABEL <= end && !(word & BOTTOM); k++) {
		word = label_word(at);
		hash = datapath_ecmp_mix(hash, word >> LABEL_SHIFT);
		at += LABEL;
	}
	if (!(word & BOTTOM))
		return hash;
	if (end - at >= WIRE_IP4_BYTES && at[0] >> 4 == 4)
		return datapath_ecmp_mix(datapath_ecmp_mix(hash, load64(at + 12)), at[9]);
	if (end - at < WIRE_IP6_BYTES || at[0] >> 4 != 6)
		return hash;
	for (unsigned k = 8; k < WIRE_IP6_BYTES; k += 8)
		hash = datapath_ecmp_mix(hash, load64(at + k));
	return datapath_ecmp_mix(hash, at[6]);
}

// What is about to be sent, and its hop.
struct onward {
	uint32_t hop;
	struct fib_hop_entry entry;
	const struct fib_template *template; // NULL: plain
	unsigned n_labels;                   // that are pushed
	uint64_t hash;                       // of the flow, into a tunnel
	uint16_t type; // of what is sent; 0: labels precede what follows the last one
};

// Linux's tc filters see frames with their labels, which no list can read, and its qdiscs count
// them.
static bool is_filtered(const struct worker *w, const struct fib_view *view, uint32_t hop)
{
	const struct acl_view *filters = w->filters ? acl_live_view(w->filters) : NULL;
	const bool has_filters = filters && acl_view_has(filters, ACL_OUT);
	const bool has_queues = w->qos && qos_has_tc(&w->qos->view);

	if (likely(!has_filters && !has_queues))
		return false;
	const uint16_t oif = fib_oif_load(view, hop);

	return oif != FIB_NO_OIF &&
	       ((has_filters && acl_view_list(filters, ACL_OUT, oif)) ||
		       (has_queues && qos_of_tc(&w->qos->view, oif) != QOS_NONE));
}

static enum verdict find_hop(const struct worker *w, const struct fib_view *view,
	const struct labelled *in, unsigned i, const struct popped *p, struct onward *to)
{
	to->hop = p->entry & FIB_LABEL_VALUE;
	to->entry = fib_hop_load(&view->hops[to->hop]);
	if (to->entry.kind == FIB_HOP_GROUP) {
		to->hop = datapath_ecmp_member(view, &to->entry, hash_of(in, i, p));
		to->entry = fib_hop_load(&view->hops[to->hop]);
	}
	to->template = NULL;
	if (to->entry.kind == FIB_HOP_STOP)
		return to->entry.verdict;
	if (to->entry.kind == FIB_HOP_BRIDGE || is_filtered(w, view, to->hop))
		return VERDICT_LINUX;
	if (to->entry.kind == FIB_HOP_TUNNEL)
		to->hash = hash_of(in, i, p);
	if (to->entry.kind == FIB_HOP_TEMPLATE || to->entry.kind == FIB_HOP_TUNNEL)
		memcpy(&to->template, to->entry.macs, sizeof(to->template));
	to->n_labels = to->template ? to->template->n_labels : 0;
	return p->bytes + WIRE_ETHER_BYTES > to->entry.frame_max ? VERDICT_MTU_EXCEEDED
	                                                         : VERDICT_FORWARD;
}

// Penultimate hop popping: the packet leaves as what it is.
static void end_stack(const struct popped *p, bool is_ip6)
{
	const uint8_t inner = mpls_inner_ttl(p->rest, is_ip6);

	mpls_set_ttl(p->rest, is_ip6, p->entry & FIB_LABEL_PIPE ? inner - !!inner : p->ttl - 1);
}

static enum verdict find_type(const struct popped *p, struct onward *to)
{
	bool is_ip6;

	to->type = p->is_bottom ? 0 : WIRE_ETHERTYPE_MPLS;
	if (p->is_bottom && !to->n_labels) {
		if (!read_version(p, &is_ip6))
			return VERDICT_MPLS_PAYLOAD;
		to->type = is_ip6 ? WIRE_ETHERTYPE_IP6 : WIRE_ETHERTYPE_IP4;
	}
	if (to->entry.kind == FIB_HOP_TUNNEL && to->type && !tunnel_carries(to->template, to->type))
		return VERDICT_TUNNEL_REFUSED;
	return VERDICT_FORWARD;
}

// Into a tunnel, whose outer header takes from packets with labels nothing but the TTL, and from
// others what it takes from all.
static uint8_t *write_tunnel(struct worker *w, struct rte_mbuf *m, const struct popped *p,
	struct onward *to)
{
	struct tunnel_inner inner = {.bytes = p->bytes,
		.type = to->type,
		.ttl = p->ttl - 1,
		.hash = to->hash};
	const struct wire_ip4 *ip4 = (const void *)p->rest;
	const struct wire_ip6 *ip6 = (const void *)p->rest;

	if (to->type == WIRE_ETHERTYPE_IP6) {
		inner.tos = be32toh(ip6->version_class_flow_be) >> 20;
		inner.ttl = ip6->hop_limit;
	} else if (to->type == WIRE_ETHERTYPE_IP4) {
		inner.tos = ip4->dscp_ecn;
		inner.ttl = ip4->ttl;
		inner.has_df = ip4->fragment_be & htobe16(WIRE_IP4_DONT_FRAGMENT);
	}
	return tunnel_prepend(w, m, to->template, &inner, &to->entry.port);
}

// Writes all that precedes the rest of the packet. NULL: there is no headroom.
static uint8_t *write_front(struct worker *w, struct rte_mbuf *m, const struct popped *p,
	struct onward *to)
{
	const uint16_t type_be = rte_cpu_to_be_16(to->type);

	if (to->type == WIRE_ETHERTYPE_IP4 || to->type == WIRE_ETHERTYPE_IP6)
		end_stack(p, to->type == WIRE_ETHERTYPE_IP6);
	rte_pktmbuf_adj(m, p->rest - WIRE_ETHER_BYTES - rte_pktmbuf_mtod(m, uint8_t *));
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	if (p->bytes + WIRE_ETHER_BYTES < m->pkt_len)
		datapath_cut(m, p->bytes + WIRE_ETHER_BYTES);
	memcpy(frame + WIRE_ETHER_BYTES - sizeof(type_be), &type_be, sizeof(type_be));
	if (!to->template)
		return memcpy(frame, to->entry.macs, sizeof(to->entry.macs));
	if (to->entry.kind == FIB_HOP_TUNNEL)
		return write_tunnel(w, m, p, to);
	uint8_t *start = datapath_write_header(m, to->template, p->ttl - 1);
	if (start && to->n_labels && !p->is_bottom)
		p->rest[BOTTOM_BYTE] &= ~(BOTTOM >> 8);
	return start;
}

static enum verdict send_on(struct worker *w, const struct fib_view *view,
	const struct labelled *in, unsigned i, const struct popped *p, struct burst *out)
{
	struct rte_mbuf *m = in->mbuf[i];
	struct onward to;
	enum verdict verdict = find_hop(w, view, in, i, p, &to);

	// Each way of a tunnel has a port of its own: send asks that one.
	if (verdict == VERDICT_FORWARD && to.entry.kind != FIB_HOP_TUNNEL &&
		!datapath_has_room(&w->states[to.entry.port], m))
		verdict = VERDICT_MULTI_SEGMENT;
	if (verdict == VERDICT_FORWARD)
		verdict = find_type(p, &to);
	if (verdict != VERDICT_FORWARD)
		return verdict;
	uint8_t *frame = write_front(w, m, p, &to);
	if (unlikely(!frame)) {
		worker_drop(w, m, VERDICT_NO_HEADROOM);
		return VERDICT_FORWARD;
	}
	stats_add(&w->stat->hop[to.hop], 1);
	out->has |= m->nb_segs > 1 ? BURST_SEGMENTS : 0;
	out->mbuf[out->n] = m;
	out->length[out->n] = MIN_OF(m->pkt_len, UINT16_MAX);
	out->port[out->n++] = to.entry.port;
	return VERDICT_FORWARD;
}

static void fetch_label(const uint32_t *labels, const struct labelled *in, unsigned i)
{
	const struct rte_mbuf *m = in->mbuf[i];
	const uint8_t *end = rte_pktmbuf_mtod(m, const uint8_t *) + m->data_len;

	if (in->stack[i] + LABEL <= end)
		rte_prefetch0(&labels[label_word(in->stack[i]) >> LABEL_SHIFT]);
}

// What a burst that is only sent has.
static void begin(struct burst *out, const struct fib_view *view, uint16_t in_port)
{
	out->n = 0;
	out->has = BURST_PACKETS;
	out->in_port = in_port;
	out->has_one_port = false;
	out->view = view;
	// Of those that send drops, others take the places (burst_keep).
	out->is_ip6 = false;
	out->has_one_iif = out->has_one_vrf = true;
	out->flow_mask = out->mark_mask = out->mirror_mask = 0;
	out->priority_mask = out->tag_mask = 0;
}

void datapath_mpls(struct worker *w, const struct fib_view *view, uint16_t in_port,
	const struct labelled *in)
{
	const uint32_t *labels = fib_labels_load(view);
	struct burst out;

	begin(&out, view, in_port);
	for (unsigned i = 0; labels && i < in->n; i++)
		fetch_label(labels, in, i);
	for (unsigned i = 0; i < in->n; i++) {
		struct popped p;
		enum verdict verdict =
			labels ? read_stack(labels, in, i, &p) : VERDICT_ETHERTYPE_UNKNOWN;

		if (verdict == VERDICT_FORWARD && fib_label_op(p.entry) == FIB_LABEL_LOOKUP)
			verdict = take_packet(w, view, in_port, in, i, &p);
		else if (verdict == VERDICT_FORWARD)
			verdict = send_on(w, view, in, i, &p, &out);
		if (verdict != VERDICT_FORWARD)
			worker_stop(w, in->mbuf[i], in_port, verdict);
	}
	if (out.n)
		datapath_send(w, &out);
}
