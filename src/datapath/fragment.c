// Fragments IPv4 packets that are longer than the MTU of their next hop (RFC 791; RFC 1812, 5.2.6),
// as Linux does. Called after the packets are rewritten, and only for bursts with such packets; the
// fragments are encapsulated and sent in the packet's place, in order, and the burst is empty
// afterwards. Worker.
#include "wire/fragment.h"
#include "datapath/steps.h"

enum { FRAGMENTS_MAX = BURST_MAX }; // packets of more fragments are left to Linux

// The longest frame that a buffer holds; what encap adds has space before it.
static uint16_t room_of(const struct rte_mempool *pool)
{
	return rte_pktmbuf_data_room_size((struct rte_mempool *)(uintptr_t)pool) -
	       RTE_PKTMBUF_HEADROOM;
}

bool datapath_may_fragment(const struct burst *b, uint16_t i, uint16_t frame_max)
{
	const struct wire_ip4 *ip = (const void *)(b->frame[i] + WIRE_ETHER_BYTES);
	struct wire_fragments plan;

	if (offload_is_long(b->mbuf[i]))
		return false;
	return wire_fragment_plan(&plan, ip, frame_max - WIRE_ETHER_BYTES) &&
	       plan.n <= FRAGMENTS_MAX && frame_max <= room_of(b->mbuf[i]->pool);
}

// Copies n bytes of a frame, which may be in several segments.
static void copy(const struct rte_mbuf *from, uint32_t at, uint32_t n, uint8_t *to)
{
	const void *bytes = rte_pktmbuf_read(from, at, n, to);

	if (bytes != to)
		memcpy(to, bytes, n);
}

static void write_fragment(const struct burst *b, uint16_t i, const struct wire_fragments *plan,
	unsigned number, struct rte_mbuf *to)
{
	const uint16_t bytes = wire_fragment_bytes(plan, number);
	const uint16_t headers = WIRE_ETHER_BYTES + plan->header_bytes;
	const struct wire_ip4 *ip = (const void *)(b->frame[i] + WIRE_ETHER_BYTES);
	uint8_t *frame = (uint8_t *)rte_pktmbuf_append(to, headers + bytes);

	memcpy(frame, b->frame[i], WIRE_ETHER_BYTES);
	wire_fragment_header(plan, number, ip, (void *)(frame + WIRE_ETHER_BYTES));
	copy(b->mbuf[i], headers + wire_fragment_start(plan, number), bytes, frame + headers);
}

// Sends what was gathered; `out` keeps what its packets may have.
static void flush(struct worker *w, struct burst *out)
{
	const uint32_t has = out->has;

	if (out->template_mask | out->tag_mask)
		datapath_encap(w, out);
	if (has & BURST_REMOTES)
		datapath_vxlan(w, out);
	if (has & BURST_SHAPED)
		datapath_shape(w, out);
	datapath_send(w, out);
	out->has = has;
	out->template_mask = out->tag_mask = out->shape_mask = out->remote_mask = 0;
	burst_free_dropped(w); // there is space for those of one burst
}

static bool is_shaped(const struct burst *b, uint16_t i)
{
	return b->has & BURST_SHAPED && b->shape_mask >> i & 1;
}

// Packet i of `b`, or a fragment of it.
static void add(struct worker *w, struct burst *out, struct rte_mbuf *mbuf, const struct burst *b,
	uint16_t i)
{
	const uint16_t to = out->n++;

	out->mbuf[to] = mbuf;
	out->frame[to] = rte_pktmbuf_mtod(mbuf, uint8_t *);
	out->length[to] = MIN_OF(mbuf->pkt_len, UINT16_MAX);
	out->hop[to] = b->hop[i];
	out->ttl[to] = b->ttl[i];
	out->port[to] = burst_port(b, i);
	out->template_mask |= (b->template_mask >> i & 1) << to;
	out->tag_mask |= (b->tag_mask >> i & 1) << to;
	out->tag[to] = b->tag_mask >> i & 1 ? b->tag[i] : 0;
	out->shape_mask |= (uint64_t)is_shaped(b, i) << to;
	if (b->has & BURST_REMOTES && b->remote_mask >> i & 1) {
		out->remote_mask |= 1ull << to;
		out->remote[to] = b->remote[i];
	}
	if (out->n == BURST_MAX)
		flush(w, out);
}

static void shape_fragments(const struct worker *w, const struct burst *b, uint16_t i,
	struct rte_mbuf *made[], unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		datapath_shape_fragment(w, made[k], b->mbuf[i], made[k]->pkt_len, b->length[i]);
}

// The MTU may have changed since the packet was checked: the plan is made again, for fragments that
// fit into a buffer. All fragments get a buffer, or the packet is dropped.
static void fragment(struct worker *w, const struct burst *b, uint16_t i, struct burst *out)
{
	const uint16_t frame_max = fib_frame_max4_load(b->view, b->hop[i]);
	const uint16_t mtu = MIN_OF(frame_max, room_of(b->mbuf[i]->pool)) - WIRE_ETHER_BYTES;
	const struct wire_ip4 *ip = (const void *)(b->frame[i] + WIRE_ETHER_BYTES);
	struct rte_mbuf *made[FRAGMENTS_MAX];
	struct wire_fragments plan;

	if (be16toh(ip->total_length_be) + WIRE_ETHER_BYTES <= frame_max) {
		add(w, out, b->mbuf[i], b, i);
		return;
	}
	if (!wire_fragment_plan(&plan, ip, mtu) || plan.n > FRAGMENTS_MAX ||
		rte_pktmbuf_alloc_bulk(b->mbuf[i]->pool, made, plan.n)) {
		worker_drop(w, b->mbuf[i], VERDICT_FRAGMENT_FAILED);
		return;
	}
	if (offload_is_open(b->mbuf[i]))
		offload_finish(b->mbuf[i]);
	for (unsigned k = 0; k < plan.n; k++)
		write_fragment(b, i, &plan, k, made[k]);
	if (is_shaped(b, i))
		shape_fragments(w, b, i, made, plan.n);
	stats_add(&w->stat->port[burst_port(b, i)].copied_packets, plan.n - 1);
	w->dropped[w->n_dropped++] = b->mbuf[i]; // to be freed only: one of its fragments counts
	for (unsigned k = 0; k < plan.n; k++)
		add(w, out, made[k], b, i);
}

// Sends the whole burst. Other polls of the batch may have dropped packets, too.
void datapath_fragment(struct worker *w, struct burst *b)
{
	struct burst out = {
		.has = b->has & ~BURST_FRAGMENTS,
		.in_port = b->in_port,
		.has_one_iif = true,
		.has_one_vrf = true,
		.view = b->view,
	};

	burst_free_dropped(w);
	for (uint16_t i = 0; i < b->n; i++) {
		if (b->fragment_mask >> i & 1)
			fragment(w, b, i, &out);
		else
			add(w, &out, b->mbuf[i], b, i);
	}
	flush(w, &out);
	burst_keep(b, 0);
}
