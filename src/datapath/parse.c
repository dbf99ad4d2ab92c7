// Reads headers: is the frame addressed to us, is it valid, and what is its destination. The common
// case (plain IPv4 or IPv6) is recognised by a few comparisons here; all other frames go to
// parse_slow. The two agree: whatever wire_check accepts is forwarded, whichever of them handles
// it. Worker.
#include "datapath/parse.h"
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
		burst_drop(p->w, p->mbuf[i], VERDICT_PORT_DISABLED);
	}
	stats_add(p->rx_bytes, bytes);
}

// Clears the bursts and sets the flags of the input interface.
static inline void begin(struct worker *w, const struct fib_view *view, struct iface_in iface)
{
	uint8_t all = iface.flags & IFACE_LINUX;

	w->poll->ip4.n = w->poll->ip6.n = 0;
	w->poll->ip4.own_source_mask = 0;
	w->poll->ip4.sources = view->sources;
	w->poll->ip4.has_segments = w->poll->ip6.has_segments = false;
	w->poll->ip4.has_tags = w->poll->ip6.has_tags = false;
	w->poll->ip4.has_trailers = w->poll->ip6.has_trailers = false;
	w->poll->ip4.for_linux = all | (iface.flags & IFACE_LINUX4);
	w->poll->ip6.for_linux = all | (iface.flags & IFACE_LINUX6);
	w->poll->ip4.may_redirect = iface.flags & IFACE_REDIRECTS4;
	w->poll->ip6.may_redirect = iface.flags & IFACE_REDIRECTS6;
	w->poll->ip6.punt_nd = iface.flags & IFACE_DISCOVERY6;
}

static inline const struct fib_view *view_of(const struct fib_view *view, uint16_t vrf)
{
	return likely(vrf == 0) ? view : &view->vrfs[vrf];
}

const struct fib_view *datapath_parse(struct worker *w, const struct fib_view *view,
	const struct received *r)
{
	struct parse p = {
		.w = w,
		.view = view,
		.port_state = &w->states[r->from->port],
		.mac = load64(w->states[r->from->port].mac) << 16,
		.rx_bytes = &w->stat->port[r->from->port].rx_bytes,
		.mbuf = r->mbuf,
		.n = r->n,
	};

	w->from = r->from->port;
	if (w->tap)
		p.iface = iface_in_load(&view->ifaces, w->from);
	begin(w, view, p.iface);
	if (unlikely(p.iface.flags & IFACE_DOWN))
		drop_all(&p);
	else
		w->variant->parse(&p);
	return view_of(view, p.iface.vrf);
}

const struct fib_view *datapath_parse_deferred(struct worker *w, const struct fib_view *view)
{
	struct deferred *a = &w->deferred;
	struct iface_in iface = a->iface[0];
	uint16_t n = a->n;

	begin(w, view, iface);
	a->n = 0;
	for (uint16_t i = 0; i < n; i++) {
		if (parse_same_rules(a->iface[i], iface))
			parse_take(w, a->mbuf[i], a->frame[i]);
		else
			parse_defer(a, a->mbuf[i], a->frame[i], a->iface[i]);
	}
	return view_of(view, iface.vrf);
}
