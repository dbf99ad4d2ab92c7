// See offload.h. Positions are those that the frame itself has: what a guest says of them is not
// used. While a capture runs, frames have checksums from the start, and none is left to a peer.
// Worker.
#include "datapath/steps.h"

#include "wire/checksum.h"
#include "wire/segment.h"

// RECEIVED: what DPDK's vhost-user library tells of a frame (vhost_dequeue_offload). SEGMENTS_MOST:
// those of a longest packet with the smallest MSS that hosts use; more would keep other ports
// waiting. BUFFERS_MOST: each of these segments in one, or those of a jumbo frame in several.
#define RECEIVED (RTE_MBUF_F_RX_L4_CKSUM_MASK | RTE_MBUF_F_RX_LRO)
enum { SEGMENTS_MOST = 256, BUFFERS_MOST = 2 * SEGMENTS_MOST };

static bool read_layout(const struct rte_mbuf *m, struct wire_layout *layout)
{
	return wire_layout_read(layout, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len,
		m->pkt_len);
}

static void set_lengths(struct rte_mbuf *m, const struct wire_layout *layout)
{
	m->l2_len = layout->l3_at;
	m->l3_len = layout->l4_at - layout->l3_at;
	m->l4_len = layout->payload_at - layout->l4_at;
}

static uint16_t *checksum_of(struct rte_mbuf *m, const struct wire_layout *layout)
{
	return rte_pktmbuf_mtod_offset(m, uint16_t *, wire_layout_checksum_at(layout));
}

// Writes the sum of the pseudo header, which a checksum begins with.
static void open_checksum(struct rte_mbuf *m, const struct wire_layout *layout)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint16_t sum = ~wire_sum_finish_be(wire_layout_pseudo_sum(layout, frame));

	memcpy(checksum_of(m, layout), &sum, sizeof(sum));
}

// Completes the checksum from the sum in its field. 0 would mean that UDP has none.
static void close_checksum(struct rte_mbuf *m, const struct wire_layout *layout)
{
	uint16_t sum;

	if (rte_raw_cksum_mbuf(m, layout->l4_at, layout->end - layout->l4_at, &sum))
		return; // not with a layout of this frame
	sum = sum == UINT16_MAX ? sum : ~sum;
	memcpy(checksum_of(m, layout), &sum, sizeof(sum));
}

static void finish(struct rte_mbuf *m, const struct wire_layout *layout)
{
	close_checksum(m, layout);
	m->ol_flags &= ~(RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IPV6);
}

void offload_finish(struct rte_mbuf *m)
{
	struct wire_layout layout;

	if (read_layout(m, &layout))
		finish(m, &layout);
}

// Whether the packet is to be cut, by its guest's word; `is_true` becomes false if that is wrong.
static bool is_to_cut(const struct rte_mbuf *m, const struct wire_layout *layout, bool *is_true)
{
	const uint32_t payload = layout->end - layout->payload_at;

	if (!(m->ol_flags & RTE_MBUF_F_RX_LRO))
		return false;
	*is_true = layout->proto == WIRE_PROTO_TCP && m->tso_segsz &&
	           payload <= (uint32_t)m->tso_segsz * SEGMENTS_MOST;
	return payload > m->tso_segsz;
}

// Notes what is open of a frame; false: what its guest says is not true.
static bool accept_frame(struct rte_mbuf *m)
{
	struct wire_layout layout;
	bool is_true = true;

	if (!read_layout(m, &layout))
		return false;
	const bool is_long = is_to_cut(m, &layout, &is_true);
	const uint16_t size = is_long ? m->tso_segsz : 0;

	m->ol_flags &= ~RECEIVED;
	m->ol_flags |= layout.is_ip6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4;
	m->ol_flags |=
		layout.proto == WIRE_PROTO_TCP ? RTE_MBUF_F_TX_TCP_CKSUM : RTE_MBUF_F_TX_UDP_CKSUM;
	m->ol_flags |= is_long ? RTE_MBUF_F_TX_TCP_SEG : 0;
	m->tx_offload = 0;
	m->tso_segsz = size;
	set_lengths(m, &layout);
	return is_true;
}

// So that captures show checksums.
static void finish_early(struct rte_mbuf *m)
{
	struct wire_layout layout;

	if (!offload_is_long(m)) {
		offload_finish(m);
	} else if (read_layout(m, &layout)) {
		open_checksum(m, &layout);
		close_checksum(m, &layout);
	}
}

static __attribute__((noinline)) void accept_all(struct worker *w, struct received *r)
{
	const uint16_t port = r->from->port, n = r->n;

	if (w->capture)
		w->capture->in_port = port;
	r->n = 0;
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = r->mbuf[i];

		if (m->ol_flags & RECEIVED && !accept_frame(m)) {
			stats_add(&w->stat->port[port].rx_bytes, m->pkt_len);
			worker_drop(w, m, VERDICT_OFFLOAD_BAD);
			continue;
		}
		if (w->capture && offload_is_open(m))
			finish_early(m);
		r->has_offloads |= offload_is_open(m);
		r->mbuf[r->n++] = m;
	}
	burst_free_dropped(w);
}

void offload_receive(struct worker *w, struct received *r)
{
	uint64_t flags = 0;

	for (uint16_t i = 0; i < r->n; i++)
		flags |= r->mbuf[i]->ol_flags;
	if (unlikely(flags & RECEIVED))
		accept_all(w, r);
}

// The payload of a frame, which may be in several buffers, from a position on.
struct cursor {
	const struct rte_mbuf *m;
	uint32_t at;
};

static void read_payload(struct cursor *from, uint8_t *to, uint32_t n)
{
	while (n) {
		const uint32_t piece = MIN_OF(n, from->m->data_len - from->at);

		memcpy(to, rte_pktmbuf_mtod_offset(from->m, const uint8_t *, from->at), piece);
		to += piece;
		n -= piece;
		from->at += piece;
		if (n) {
			from->m = from->m->next;
			from->at = 0;
		}
	}
}

// Where a segment is written: into buffers whose number suffices for the longest one.
struct target {
	const struct wire_layout *layout;
	struct wire_segments plan;
	unsigned n; // buffers per segment
};

// Writes segment i, and frees the buffers that it does not need. All pieces of its payload but the
// last one are of even length, as sums of them have to be.
static struct rte_mbuf *fill_segment(const struct target *target, uint32_t i, const uint8_t *frame,
	struct cursor *from, struct rte_mbuf *buffer[])
{
	const uint16_t header_bytes = target->layout->payload_at;
	uint8_t *headers = (uint8_t *)rte_pktmbuf_append(buffer[0], header_bytes);
	uint32_t left = wire_segment_bytes(&target->plan, i);
	uint64_t sum = 0;

	for (unsigned k = 0; k < target->n; k++) {
		const uint16_t bytes = MIN_OF(left, rte_pktmbuf_tailroom(buffer[k]) & ~1u);
		uint8_t *to = (uint8_t *)rte_pktmbuf_append(buffer[k], bytes);

		if (!bytes) {
			rte_pktmbuf_free(buffer[k]);
			continue;
		}
		read_payload(from, to, bytes);
		sum = wire_sum(sum, to, bytes);
		left -= bytes;
		if (k)
			rte_pktmbuf_chain(buffer[0], buffer[k]);
	}
	wire_segment_headers(target->layout, &target->plan, i, frame, headers, sum);
	return buffer[0];
}

// The segments of a long frame, in buffers of its own pool. Returns their number; 0: there are not
// enough buffers.
static unsigned make_segments(const struct rte_mbuf *m, const struct wire_layout *layout,
	struct rte_mbuf *made[BUFFERS_MOST])
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const unsigned room = (rte_pktmbuf_data_room_size(m->pool) - RTE_PKTMBUF_HEADROOM) & ~1u;
	struct target target = {.layout = layout};
	struct cursor from = {m, layout->payload_at};

	wire_segments_plan(&target.plan, layout, m->tso_segsz);
	target.n = (layout->payload_at + target.plan.each_bytes + room - 1) / room;
	const unsigned n = target.plan.n * target.n;

	if (n > BUFFERS_MOST || rte_pktmbuf_alloc_bulk(m->pool, made, n))
		return 0;
	for (unsigned i = 0; i < target.plan.n; i++) {
		made[i] = fill_segment(&target, i, frame, &from, &made[i * target.n]);
		made[i]->port = m->port;
	}
	return target.plan.n;
}

// Finished frames that gather for one port, in order.
struct gathered {
	struct worker *w;
	uint8_t port, takes;
	struct outgoing out;
	struct rte_mbuf *mbuf[BURST_MAX];
};

static void flush(struct gathered *g)
{
	if (g->out.n)
		datapath_send_port(g->w, g->port, &g->out);
	burst_free_dropped(g->w); // there is space for those of one burst
	g->out.n = 0;
	g->out.bytes = 0;
}

static void add(struct gathered *g, struct rte_mbuf *m)
{
	if (unlikely(m->nb_segs > 1 && !g->w->states[g->port].tx_multi_segment)) {
		worker_drop(g->w, m, VERDICT_MULTI_SEGMENT);
		return;
	}
	g->mbuf[g->out.n++] = m;
	g->out.bytes += m->pkt_len;
	if (g->out.n == BURST_MAX)
		flush(g);
}

// Puts the Ethernet header into a buffer of its own. DPDK's library replaces the sum of the pseudo
// header by one without a length, which is wrong for a peer that cuts the frame itself, unless the
// headers are in several buffers (rte_net_intel_cksum_prepare). NULL: no buffer.
static struct rte_mbuf *split_headers(struct rte_mbuf *m)
{
	struct rte_mbuf *head = rte_pktmbuf_alloc(m->pool);

	if (!head)
		return NULL;
	memcpy(rte_pktmbuf_append(head, m->l2_len), rte_pktmbuf_mtod(m, void *), m->l2_len);
	head->port = m->port;
	head->ol_flags = m->ol_flags;
	head->tx_offload = m->tx_offload;
	rte_pktmbuf_adj(m, m->l2_len);
	rte_pktmbuf_chain(head, m);
	return head;
}

// Whether the peer takes a frame as it is. IPv6 extension headers are not in DPDK's pseudo header.
// Whoever cuts a packet with CWR would have to be told of it.
static bool is_taken(const struct rte_mbuf *m, const struct wire_layout *layout, uint8_t takes)
{
	const struct wire_tcp *tcp = rte_pktmbuf_mtod_offset(m, const void *, layout->l4_at);

	if (!(takes & PORT_TAKES_CHECKSUM) || layout->has_extensions)
		return false;
	return !offload_is_long(m) ||
	       (takes & (layout->is_ip6 ? PORT_TAKES_TSO6 : PORT_TAKES_TSO4) &&
		       !(tcp->flags & WIRE_TCP_CWR));
}

// Leaves a frame to the peer; false: no buffer.
static bool hand_on(struct gathered *g, struct rte_mbuf *m, const struct wire_layout *layout)
{
	set_lengths(m, layout); // it may have other tags now
	if (offload_is_long(m)) {
		open_checksum(m, layout);
		m = split_headers(m);
	}
	if (m)
		add(g, m);
	return m;
}

static void cut(struct gathered *g, struct rte_mbuf *m, const struct wire_layout *layout)
{
	struct rte_mbuf *made[BUFFERS_MOST];
	const unsigned n = make_segments(m, layout, made);

	if (!n) {
		worker_drop(g->w, m, VERDICT_SEGMENT_FAILED);
		return;
	}
	stats_add(&g->w->stat->port[g->port].copied_packets, n - 1);
	for (unsigned i = 0; i < n; i++)
		add(g, made[i]);
	g->w->dropped[g->w->n_dropped++] = m; // to be freed only: one of its segments counts
}

static void add_open(struct gathered *g, struct rte_mbuf *m)
{
	struct wire_layout layout;

	if (!read_layout(m, &layout)) {
		worker_drop(g->w, m, VERDICT_OFFLOAD_BAD);
	} else if (!is_taken(m, &layout, g->takes) || !hand_on(g, m, &layout)) {
		if (offload_is_long(m)) {
			cut(g, m, &layout);
		} else {
			finish(m, &layout);
			add(g, m);
		}
	}
}

__attribute__((noinline)) void offload_send(struct worker *w, uint8_t port,
	const struct outgoing *out)
{
	struct gathered g = {.w = w, .port = port};

	g.takes = w->capture ? 0 : port_takes(&w->states[port]);
	g.out.mbuf = g.mbuf;
	burst_free_dropped(w); // other polls of the batch may have dropped packets, too
	for (uint16_t i = 0; i < out->n; i++) {
		if (offload_is_open(out->mbuf[i]))
			add_open(&g, out->mbuf[i]);
		else
			add(&g, out->mbuf[i]);
	}
	flush(&g);
}

// Counts a packet that the caller frees.
static void count_drop(struct worker *w, struct rte_mbuf *m, enum verdict verdict)
{
	if (w->capture)
		worker_capture_drop(w, m, verdict);
	stats_add(&w->stat->verdict[verdict], 1);
}

// What the class has no space for is counted by worker_punt, and freed here.
static void punt_segments(struct worker *w, struct rte_mbuf *m, const struct wire_layout *layout,
	uint32_t verdict_and_port)
{
	struct rte_mbuf *made[BUFFERS_MOST];
	const uint16_t in_port = verdict_and_port >> TAP_PORT_SHIFT;
	const unsigned n = make_segments(m, layout, made);

	if (!n) {
		count_drop(w, m, VERDICT_SEGMENT_FAILED);
		return;
	}
	stats_add(&w->stat->port[in_port].copied_packets, n - 1);
	for (unsigned i = 0; i < n; i++)
		if (!worker_punt(w, made[i], in_port, verdict_and_port & UINT16_MAX))
			rte_pktmbuf_free(made[i]);
}

__attribute__((noinline)) bool offload_punt(struct worker *w, struct rte_mbuf *m, uint16_t in_port,
	enum verdict verdict)
{
	struct wire_layout layout;

	if (!read_layout(m, &layout)) {
		count_drop(w, m, VERDICT_OFFLOAD_BAD);
		return false;
	}
	if (offload_is_long(m)) {
		punt_segments(w, m, &layout, verdict | (uint32_t)in_port << TAP_PORT_SHIFT);
		return false; // one of its segments counts
	}
	finish(m, &layout);
	return worker_punt(w, m, in_port, verdict);
}
