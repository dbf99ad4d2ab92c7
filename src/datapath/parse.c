// Reads headers: is the frame addressed to us, is it valid, and what is its destination. The common
// case (plain IPv4 or IPv6) is recognised by a few comparisons here; all other frames go to
// parse_slow. The two agree: whatever wire_check accepts is forwarded, whichever of them handles
// it. Worker.
#include "datapath/parse.h"
#include "datapath/mpls.h"
#include "datapath/tunnel.h"
#include "datapath/variant.h"

static inline bool is_source4_sound(uint32_t src)
{
	return src - 0x01000000 < 0xdf000000 && src >> 24 != 127 && src >> 16 != 0xa9fe;
}

// Checks the header checksum of 20 bytes: trusted where the device reports it good, otherwise
// computed (RFC 1071). A header that the device reports as bad is left to wire_check.
static inline bool is_sum4_good(const struct rte_mbuf *m, const uint8_t *frame)
{
	uint64_t marks = m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK, sum;

	if (marks == RTE_MBUF_F_RX_IP_CKSUM_GOOD)
		return true;
	sum = load64(frame + 14) % UINT32_MAX + load64(frame + 22) % UINT32_MAX +
	      load32(frame + 30);
	return marks != RTE_MBUF_F_RX_IP_CKSUM_BAD && sum % 0xffff == 0;
}

// A packet that ends `end` bytes into its frame is all there, in one segment, and nothing follows
// it except padding to the minimum length.
static inline bool is_whole(const struct rte_mbuf *m, unsigned end)
{
	unsigned n = m->pkt_len;

	return m->data_len == n && n == MAX_OF(end, MIN_OF(n, (unsigned)PADDED_BYTES));
}

static inline bool is_plain4(const struct parse *p, const struct rte_mbuf *m, const uint8_t *frame)
{
	int length = load16_be(frame + 16);

	return load64(frame) << 16 == p->mac && (load32(frame + 12) & 0xffffff) == 0x450008 &&
	       length >= 20 && is_whole(m, length + 14) && is_sum4_good(m, frame) &&
	       is_source4_sound(source4(frame));
}

static inline bool is_plain6(const struct parse *p, const struct rte_mbuf *m, const uint8_t *frame)
{
	uint64_t src = rte_be_to_cpu_64(load64(frame + 22));

	return load64(frame) << 16 == p->mac && (load32(frame + 12) & 0xf0ffff) == 0x60dd86 &&
	       is_whole(m, load16_be(frame + 18) + 54) && frame[20] != 0 && src != 0 &&
	       src >> 54 != 0xfe80 >> 6 && src >> 56 != 0xff;
}

void parse_one(struct parse *p, struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	if (likely(is_plain4(p, m, frame)))
		take4(&p->w->poll->ip4, m, frame, m->pkt_len);
	else if (is_plain6(p, m, frame))
		take6(&p->w->poll->ip6, m, frame, m->pkt_len);
	else
		parse_slow(p, m);
}

void parse_scalar(struct parse *p)
{
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < p->n; i++) {
		if (i + FRAMES_AHEAD < p->n)
			rte_prefetch0((uint8_t *)p->mbuf[i + FRAMES_AHEAD]->buf_addr +
				      RTE_PKTMBUF_HEADROOM);
		bytes += p->mbuf[i]->pkt_len;
		parse_one(p, p->mbuf[i]);
	}
	fib_prefetch4(p->view, p->w->poll->ip4.dst4, p->w->poll->ip4.n);
	stats_add(p->rx_bytes, bytes);
}

// Drops the frames of a port that is down in Linux.
static void drop_all(struct parse *p)
{
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < p->n; i++) {
		bytes += p->mbuf[i]->pkt_len;
		worker_drop(p->w, p->mbuf[i], VERDICT_PORT_DISABLED);
	}
	stats_add(p->rx_bytes, bytes);
}

// A burst without packets, whose values and flags are those of the input interface.
static inline void begin(const struct parse *p, struct burst *b, bool is_ip6)
{
	const struct burst_flags flags = burst_flags(p, p->iface, is_ip6);

	if (unlikely(p->w->poisons))
		burst_poison(b);
	b->n = 0;
	b->has = BURST_PACKETS | (flags.may_redirect ? BURST_REDIRECTS : 0) |
	         (flags.has_discovery ? BURST_DISCOVERY : 0) |
	         (flags.is_strict || flags.is_loose ? BURST_RPF : 0) |
	         (p->has_offloads ? BURST_OFFLOADS : 0);
	b->in_port = p->in_port;
	b->is_ip6 = is_ip6;
	b->has_one_iif = b->has_one_vrf = true;
	b->has_one_hop = b->has_one_port = false;
	b->view = p->view;
	b->sources = p->view->sources;
	b->own_source_mask = 0;
	b->linux_mask = -(uint64_t)flags.for_linux;
	b->redirect_mask = -(uint64_t)flags.may_redirect;
	b->discovery_mask = -(uint64_t)flags.has_discovery;
	b->strict_mask = -(uint64_t)flags.is_strict;
	b->loose_mask = -(uint64_t)flags.is_loose;
	b->fragment_mask = 0;
	b->template_mask = 0;
	b->flow_mask = b->flow_hop_mask = 0;
	b->mark_mask = b->mirror_mask = b->priority_mask = b->tag_mask = 0;
	b->iif[0] = p->in_iface;
	b->vrf[0] = p->iface.vrf;
}

static bool are_equal(const uint16_t values[], unsigned n)
{
	uint16_t differ = 0;

	for (unsigned i = 0; i < n; i++)
		differ |= values[i] ^ values[0];
	return !differ;
}

// Some packet came in on a VLAN: all may have come in on the same one.
static __attribute__((noinline)) void unite(struct burst *b)
{
	b->has_one_iif = are_equal(b->iif, b->n);
	b->has_one_vrf = b->has_one_vrf || are_equal(b->vrf, b->n);
	b->linux_mask &= burst_all(b);
}

static __attribute__((noinline)) void keep_own_sources(const struct parse *p, struct burst *b)
{
	bool passes = __atomic_load_n(&p->port_state->pass_martians, __ATOMIC_RELAXED);

	b->own_source_mask &= passes ? 0 : ~b->linux_mask;
	b->has |= b->own_source_mask ? BURST_OWN_SOURCES : 0;
}

static inline void end(const struct parse *p, struct burst *b)
{
	if (!b->n)
		burst_clear(b);
	if (unlikely(!b->has_one_iif))
		unite(b);
	if (unlikely(b->own_source_mask))
		keep_own_sources(p, b);
}

static inline __attribute__((always_inline)) void parse_all(struct parse *p)
{
	struct poll *poll = p->w->poll;
	struct labelled labelled;

	labelled.n = 0;
	p->labelled = &labelled;
	begin(p, &poll->ip4, false);
	begin(p, &poll->ip6, true);
	if (unlikely(p->iface.flags & IFACE_DOWN) && !p->bridge)
		drop_all(p);
	else
		p->w->variant->parse(p);
	if (unlikely(labelled.n))
		datapath_mpls(p->w, p->view, p->in_port, &labelled);
	end(p, &poll->ip4);
	end(p, &poll->ip6);
}

void datapath_parse(struct worker *w, const struct fib_view *view, const struct received *r)
{
	struct parse p = {
		.w = w,
		.view = view,
		.port_state = &w->states[r->from->port],
		.in_port = r->from->port,
		.in_iface = r->from->port,
		.mac = load64(w->states[r->from->port].mac) << 16,
		.rx_bytes = &w->stat->port[r->from->port].rx_bytes,
		.mbuf = r->mbuf,
		.n = r->n,
		.has_offloads = r->has_offloads,
	};

	if (w->tap)
		p.iface = iface_in_load(&view->ifaces, p.in_port);
	parse_all(&p);
}

// They did not come in on an interface that these bursts begin with: each has that of its tunnel.
void datapath_parse_tunnelled(struct worker *w, const struct fib_view *view)
{
	const uint16_t port = w->tunnelled.in_port;
	struct poll *poll = w->poll;
	struct parse p = {
		.w = w,
		.view = view,
		.port_state = &w->states[port],
		.in_port = port,
		.in_iface = IFACE_NONE,
	};

	begin(&p, &poll->ip4, false);
	begin(&p, &poll->ip6, true);
	tunnel_take(&p, &w->tunnelled);
	end(&p, &poll->ip4);
	end(&p, &poll->ip6);
}

// Frames without a tag came in in one VLAN of a bridge that filters by VLAN: those of others are
// not plain.
static void begin_in_vlan(struct parse *p)
{
	const uint16_t iface = parse_bridge_iface(p->view, p->bridge, p->bridge->vlans->pvid);

	p->in_iface = iface == IFACE_NONE ? p->in_port : iface;
	p->iface = iface_in_load(&p->view->ifaces, p->in_iface);
	p->iface.flags |= iface_in_load(&p->view->ifaces, p->bridge->iface).flags & IFACE_LINUX;
}

void datapath_parse_bridge(struct worker *w, const struct fib_view *view,
	const struct received_on_bridge *r)
{
	const uint16_t port = r->frames.from->port;
	struct rte_mbuf *mbuf[BURST_MAX]; // variants read up to 16 from the first one of a step
	struct parse p = {
		.w = w,
		.view = view,
		.port_state = &w->states[port],
		.in_port = port,
		.bridge = r->port,
		.in_iface = r->port->iface,
		.iface = iface_in_load(&view->ifaces, r->port->iface),
		.mac = r->port->own << 16,
		.rx_bytes = &w->stat->port[port].rx_bytes,
		.mbuf = mbuf,
		.n = r->frames.n,
		.has_offloads = r->frames.has_offloads,
	};

	memcpy(mbuf, r->frames.mbuf, r->frames.n * sizeof(*mbuf));
	if (r->port->vlans)
		begin_in_vlan(&p);
	if (p.iface.flags & IFACE_DOWN)
		p.mac = 0; // no frame is plain: parse_slow asks the interface of each
	parse_all(&p);
}
