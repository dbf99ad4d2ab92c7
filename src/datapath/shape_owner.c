// What the owner of a shaper does once per loop: sends what is due, applies settings, takes packets
// from other workers, and moves subscribers to other shapers. Worker.
#include "datapath/shape.h"

#include "datapath/steps.h"
#include "datapath/vxlan.h"

#include <rte_atomic.h>

enum { MOST_MOVES = 64 }; // of subscribers, per loop
enum { VLAN_AT = 12, VLAN_BYTES = 4, ECN_CE = 3 };

static unsigned take_ring(struct worker *w, struct handover_ring *ring)
{
	const uint64_t put = __atomic_load_n(&ring->put, __ATOMIC_ACQUIRE); // once: it may grow
	const unsigned n = (unsigned)MIN_OF(put - ring->taken, (uint64_t)BURST_MAX);
	struct rte_mbuf *mbuf[BURST_MAX];

	for (unsigned i = 0; i < n; i++) {
		mbuf[i] = ring->packet[(ring->taken + i) % HANDOVER_RING];
		rte_prefetch0(shape_packet_of(w->shape, mbuf[i]));
	}
	if (!n)
		return 0;
	ring->taken += n;
	shape_pass(w, mbuf, n);
	handover_done(ring);
	return n;
}

// A packet of IP, behind VLAN tags, that has ECN (has_ecn in shape.c).
static void mark_congestion(struct rte_mbuf *m)
{
	const struct tunnel_outer congested = {.tos = ECN_CE};
	uint8_t *at = rte_pktmbuf_mtod(m, uint8_t *) + VLAN_AT;
	uint16_t type = (uint16_t)(at[0] << 8 | at[1]);

	while (type == WIRE_ETHERTYPE_VLAN || type == WIRE_ETHERTYPE_QINQ) {
		at += VLAN_BYTES;
		type = (uint16_t)(at[0] << 8 | at[1]);
	}
	at += sizeof(type);
	if (type == WIRE_ETHERTYPE_IP4 || type == WIRE_ETHERTYPE_IP6)
		tunnel_take_ecn(at, type == WIRE_ETHERTYPE_IP6, &congested);
}

// Sends packets of one port, the first one's, in order; returns those that are left.
static unsigned send_port(struct worker *w, struct shape_packet *sent[], unsigned n)
{
	const uint32_t to = sent[0]->for_caller;
	const uint8_t port = (uint8_t)to;
	struct rte_mbuf *group[BURST_MAX];
	struct outgoing out = {.mbuf = group};
	unsigned left = 0;

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = shape_mbuf_of(w->shape, sent[i]);

		if (sent[i]->for_caller != to) {
			sent[left++] = sent[i];
			continue;
		}
		group[out.n++] = m;
		out.bytes += m->pkt_len;
		out.has_offloads |= offload_is_open(m);
		if (unlikely(sent[i]->is_marked))
			mark_congestion(m);
	}
	if (to >> SHAPE_LIFE_SHIFT == qos_shapers_life(w->shape->all, port)) {
		datapath_send_port(w, port, &out);
		return left;
	}
	for (uint16_t i = 0; i < out.n; i++)
		shape_drop(w, group[i], VERDICT_PORT_DOWN);
	return left;
}

// Takes those out that are to go through other queues now; returns the number of the others.
static unsigned pass_first(struct worker *w, struct shape_packet *sent[], unsigned n)
{
	struct rte_mbuf *again[BURST_MAX];
	unsigned n_again = 0, left = 0;

	for (unsigned i = 0; i < n; i++) {
		struct shape_packet *packet = sent[i];

		if (likely(!packet->is_first)) {
			sent[left++] = packet;
			continue;
		}
		const struct shape_second second =
			shape_read_second(shape_mbuf_of(w->shape, packet));

		packet->is_first = false;
		packet->since = second.shaped;
		packet->bytes = second.bytes;
		packet->class = second.class;
		again[n_again++] = shape_mbuf_of(w->shape, packet);
	}
	stats_add_first(&w->stat->moved_packets, n_again);
	if (n_again)
		shape_pass(w, again, n_again);
	return left;
}

static unsigned send_due(struct worker *w, uint64_t now)
{
	struct shape_packet *sent[SHAPE_BURST];
	struct shape_drops drops = {.n = 0};
	const unsigned n = qos_shaper_take(w->shape->own, now, sent, &drops);

	shape_note_held(w);
	for (unsigned left = pass_first(w, sent, n); left;) {
		left = send_port(w, sent, left);
		burst_free_dropped(w);
	}
	shape_drop_all(w, &drops);
	return n;
}

// Hands over packets that move to another shaper, as long as its ring has space: none is lost.
// Returns whether none are left.
static bool hand_moving(struct worker *w)
{
	struct shape_worker *shape = w->shape;
	int to;

	while ((to = qos_shaper_moving_to(shape->own)) >= 0) {
		const unsigned most = MIN_OF(handover_ring_space(shape->to[to]), BURST_MAX);
		struct shape_packet *packet[BURST_MAX];
		struct rte_mbuf *mbuf[BURST_MAX];
		const unsigned n = qos_shaper_take_moving(shape->own, packet, most);

		if (!n)
			return false;
		for (unsigned i = 0; i < n; i++)
			mbuf[i] = shape_mbuf_of(w->shape, packet[i]);
		shape_note_held(w); // before the other one holds them, and in this order: stats.c
		stats_add_first(&w->stat->moved_packets, n);
		(void)handover_ring_put(shape->to[to], shape->wait[to], mbuf, n);
	}
	return true;
}

static void follow(struct worker *w, uint64_t now)
{
	struct qos_shaper *own = w->shape->own;

	for (unsigned i = 0; i < MOST_MOVES && hand_moving(w) && qos_shaper_has_news(own); i++) {
		struct shape_drops drops = {.n = 0};

		qos_shaper_follow(own, now, &drops);
		shape_note_held(w);
		shape_drop_all(w, &drops);
		if (qos_shaper_moving_to(own) < 0)
			break;
	}
}

unsigned datapath_shape_poll(struct worker *w)
{
	struct shape_worker *shape = w->shape;
	unsigned n;

	if (!shape->own)
		return 0;
	const uint64_t now = qos_shapers_now(shape->all);

	n = send_due(w, now);
	if (!shape->is_closing &&
		(qos_shaper_has_news(shape->own) || qos_shaper_moving_to(shape->own) >= 0))
		follow(w, now);
	for (unsigned i = 0; i < shape->n_from; i++)
		n += take_ring(w, shape->from[i]);
	burst_free_dropped(w);
	return n;
}

static bool has_packets(const struct shape_worker *shape)
{
	for (unsigned i = 0; i < shape->n_from; i++)
		if (__atomic_load_n(&shape->from[i]->put, __ATOMIC_ACQUIRE) !=
			shape->from[i]->taken)
			return true;
	return false;
}

bool datapath_shape_is_quiet(const struct worker *w)
{
	const struct shape_worker *shape = w->shape;

	return !shape->own || (!qos_shaper_totals(shape->own)->held && !has_packets(shape) &&
				      !qos_shaper_has_news(shape->own));
}

// Whoever reads a ring asks for it after it has been told to stop, as handover_open says.
static void set_open(struct handover_ring *ring, bool is_open)
{
	__atomic_store_n(&ring->is_open, is_open, __ATOMIC_SEQ_CST);
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void set_all_open(struct shape_worker *shape, bool is_open)
{
	shape->is_closing = !is_open;
	for (unsigned i = 0; i < qos_n_shapers(shape->all); i++)
		if (shape->to[i])
			set_open(shape->to[i], is_open);
}

void datapath_shape_open(struct worker *w)
{
	set_all_open(w->shape, true);
	if (w->shape->own)
		qos_shaper_begin(w->shape->own);
}

static bool others_are_over(const struct shape_worker *shape)
{
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < shape->n_from; i++)
		if (__atomic_load_n(&shape->from[i]->is_open, __ATOMIC_SEQ_CST))
			return false;
	return !has_packets(shape);
}

static void drop_moving(struct worker *w)
{
	struct shape_packet *packet[BURST_MAX];
	unsigned n;

	while ((n = qos_shaper_take_moving(w->shape->own, packet, BURST_MAX))) {
		shape_note_held(w);
		for (unsigned i = 0; i < n; i++)
			shape_drop(w, shape_mbuf_of(w->shape, packet[i]), VERDICT_SHAPE_FLUSHED);
	}
}

// Each closes its rings before it waits for those of others, so none waits for ever.
void datapath_shape_close(struct worker *w)
{
	struct shape_worker *shape = w->shape;
	struct shape_drops drops = {.n = 0};
	uint32_t next = 0;

	set_all_open(shape, false);
	if (!shape->own)
		return;
	drop_moving(w);
	while (!others_are_over(shape))
		datapath_shape_poll(w);
	for (bool is_done = false; !is_done;) {
		is_done = qos_shaper_flush(shape->own, &next, &drops);
		shape_note_held(w);
		shape_drop_all(w, &drops);
	}
	burst_free_dropped(w);
	qos_shaper_end(shape->own);
}
