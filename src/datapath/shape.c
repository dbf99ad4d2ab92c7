// Hands the packets of subscribers with a profile that shapes to the shaper, which sends them
// later. Worker; making: control thread.
#include "datapath/shape.h"

#include "base/pages.h"
#include "datapath/steps.h"
#include "datapath/vxlan.h"

#include <errno.h>
#include <rte_atomic.h>
#include <rte_mbuf_dyn.h>

enum {
	VLAN_AT = 12,
	VLAN_BYTES = 4,
	ECN_MASK = 3,
	ECN_CE = 3,
	PRIORITY_SHIFT = 5,
	LIFE_SHIFT = 8,
	ROOM = BURST_MAX
};

// --- Control thread.

static int find_offset(uint8_t *offset, struct error *error)
{
	static const struct rte_mbuf_dynfield field = {.name = "dl3_shape",
		.size = sizeof(struct shape_packet),
		.align = _Alignof(struct shape_packet)};
	const int at = rte_mbuf_dynfield_register(&field);

	if (at < 0)
		return error_set(error, -ENOSPC,
			"no space in packet buffers for the queues of subscribers: a device needs "
			"it; remove qos.held_packets");
	*offset = (uint8_t)at;
	return 0;
}

static int make_rings(struct shape_worker *out[], unsigned n, unsigned owner,
	struct port_wait *const wait[])
{
	for (unsigned i = 0; i < n; i++) {
		if (i == owner)
			continue;
		out[i]->to = pages_alloc(sizeof(*out[i]->to));
		if (!out[i]->to)
			return -ENOMEM;
		out[i]->wait = wait[owner];
		out[owner]->from[out[owner]->n_from++] = out[i]->to;
	}
	return 0;
}

int shape_workers_make(struct shape_worker *out[], unsigned n, struct port_wait *const wait[],
	struct qos_shaper *shaper, struct error *error)
{
	const unsigned owner = qos_shaper_owner(shaper);
	uint8_t offset = 0;
	int err = find_offset(&offset, error);

	if (err)
		return err;
	for (unsigned i = 0; i < n && !err; i++) {
		out[i] = pages_alloc(sizeof(*out[i]));
		err = out[i] ? 0 : -ENOMEM;
		if (!err)
			*out[i] = (struct shape_worker){.shaper = shaper,
				.is_owner = i == owner,
				.offset = offset};
	}
	if (!err && !make_rings(out, n, owner, wait))
		return 0;
	shape_workers_free(out, n);
	return error_set(error, -ENOMEM, "not enough memory for the rings to the shaper");
}

void shape_workers_free(struct shape_worker *out[], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (out[i])
			pages_free(out[i]->to, sizeof(*out[i]->to));
		pages_free(out[i], sizeof(*out[i]));
		out[i] = NULL;
	}
}

// --- All workers.

static enum verdict verdict_of(enum shape_drop reason)
{
	static const enum verdict verdicts[SHAPE_DROPS] = {[SHAPE_DROP_CODEL] = VERDICT_SHAPE_CODEL,
		[SHAPE_DROP_LIMIT] = VERDICT_SHAPE_LIMIT,
		[SHAPE_DROP_POOL] = VERDICT_SHAPE_POOL,
		[SHAPE_DROP_FLUSHED] = VERDICT_SHAPE_FLUSHED,
		[SHAPE_DROP_UNKNOWN] = VERDICT_SHAPE_FLUSHED};

	return verdicts[reason];
}

static void drop(struct worker *w, struct rte_mbuf *m, enum verdict verdict)
{
	if (w->n_dropped >= ROOM)
		burst_free_dropped(w);
	worker_drop(w, m, verdict);
}

static struct rte_mbuf *mbuf_of(const struct worker *w, struct shape_packet *packet)
{
	return RTE_PTR_SUB(packet, w->shape->offset);
}

// Before what has left the queues is counted as sent or dropped: then the account is never ahead.
static void note_held(struct worker *w)
{
	stats_set(&w->stat->held_packets, qos_shaper_totals(w->shape->shaper)->held);
}

static void drop_all(struct worker *w, struct shape_drops *drops)
{
	for (unsigned i = 0; i < drops->n; i++)
		drop(w, mbuf_of(w, drops->drop[i].packet), verdict_of(drops->drop[i].reason));
	drops->n = 0;
}

// 802.1p of the outermost tag with which the packet came or will leave. False: it has none.
static bool has_priority(const struct burst *b, unsigned i, uint8_t *priority)
{
	const uint8_t *at = rte_pktmbuf_mtod(b->mbuf[i], const uint8_t *) + VLAN_AT;
	const uint16_t type = at[0] << 8 | at[1];

	if (b->priority_mask >> i & 1) {
		*priority = b->priority[i];
		return true;
	}
	if (!burst_tag_bytes(b, i) || (type != WIRE_ETHERTYPE_VLAN && type != WIRE_ETHERTYPE_QINQ))
		return false;
	*priority = at[2] >> PRIORITY_SHIFT;
	return true;
}

static unsigned class_of(const struct burst *b, unsigned i, const struct qos_terms *terms,
	uint8_t dscp)
{
	uint8_t priority;

	if (terms->by_priority && has_priority(b, i, &priority))
		return qos_class_of_priority(terms, priority);
	return qos_class_of_dscp(terms, dscp);
}

// Whether CoDel may mark it: a header of MPLS or a tunnel in front of it cannot be.
static bool has_ecn(const struct burst *b, unsigned i)
{
	const uint8_t *packet = b->frame[i] + WIRE_ETHER_BYTES;

	if (b->has & BURST_REMOTES && b->remote_mask >> i & 1)
		return false;
	if (b->has & BURST_TEMPLATES && b->template_mask >> i & 1) {
		const struct fib_template *template = fib_template_load(b->view, b->hop[i]);

		if (template->n_labels || template->tunnel)
			return false;
	}
	return (b->is_ip6 ? packet[1] >> 4 : packet[1]) & ECN_MASK;
}

void datapath_shape_later(struct worker *w, struct burst *b, const struct qos_packets *packets,
	const struct qos_verdicts *verdicts)
{
	for (uint64_t left = verdicts->shaped; left; left &= left - 1) {
		const unsigned i = __builtin_ctzll(left);
		const struct qos_terms *terms = verdicts->terms[i];
		struct shape_packet *packet = shape_packet_of(w->shape, b->mbuf[i]);

		packet->since = packets->subscriber[i];
		packet->bytes = MIN_OF(verdicts->cost[i], (uint32_t)SHAPE_MOST_BYTES);
		packet->class = class_of(b, i, terms, packets->dscp[i]);
		packet->subflow = terms->is_fair ? datapath_flow_hash(b, i) : 0;
		packet->has_ecn = has_ecn(b, i);
		packet->is_marked = false;
	}
	b->shape_mask = (b->has & BURST_SHAPED ? b->shape_mask : 0) | verdicts->shaped;
	b->has |= BURST_SHAPED;
}

void datapath_shape_fragment(const struct worker *w, struct rte_mbuf *fragment,
	struct rte_mbuf *packet, uint32_t length, uint32_t whole)
{
	const struct shape_packet *from = shape_packet_of(w->shape, packet);
	struct shape_packet *to = shape_packet_of(w->shape, fragment);
	const uint32_t more = whole - MIN_OF(length, whole);

	*to = *from;
	to->bytes = from->bytes > more ? from->bytes - more : 1;
}

static void enqueue(struct worker *w, struct rte_mbuf *const mbuf[], unsigned n)
{
	struct qos_shaper *shaper = w->shape->shaper;
	struct shape_packet *packet[BURST_MAX];
	struct shape_drops drops = {.n = 0};
	uint32_t subscriber[BURST_MAX];

	for (unsigned i = 0; i < n; i++) {
		packet[i] = shape_packet_of(w->shape, mbuf[i]);
		subscriber[i] = (uint32_t)packet[i]->since;
	}
	qos_shaper_put(shaper, qos_shaper_now(shaper), subscriber, packet, n, &drops);
	note_held(w);
	drop_all(w, &drops);
}

static void hand_over(struct worker *w, struct rte_mbuf *mbuf[], uint16_t n)
{
	const uint16_t taken = handover_ring_put(w->shape->to, w->shape->wait, mbuf, n);

	for (uint16_t i = taken; i < n; i++)
		drop(w, mbuf[i], VERDICT_WORKER_RING_FULL);
}

void datapath_shape(struct worker *w, struct burst *b)
{
	struct rte_mbuf *mbuf[BURST_MAX];
	uint64_t taken = 0;
	uint16_t n = 0;

	for (uint64_t left = b->shape_mask & burst_all(b); left; left &= left - 1) {
		const unsigned i = __builtin_ctzll(left);
		const uint8_t port = burst_port(b, i);

		if (!datapath_has_room(&w->states[port], b->mbuf[i]))
			continue; // send drops it
		shape_packet_of(w->shape, b->mbuf[i])->for_caller =
			port | (uint32_t)qos_shaper_life(w->shape->shaper, port) << LIFE_SHIFT;
		mbuf[n++] = b->mbuf[i];
		taken |= 1ull << i;
	}
	if (!n)
		return;
	if (w->shape->is_owner)
		enqueue(w, mbuf, n);
	else
		hand_over(w, mbuf, n);
	burst_keep(b, ~taken);
}

// --- Owner.

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
	enqueue(w, mbuf, n);
	handover_done(ring);
	return n;
}

// A packet of IP, behind VLAN tags, that has ECN (has_ecn).
static void mark_congestion(struct rte_mbuf *m)
{
	uint8_t *at = rte_pktmbuf_mtod(m, uint8_t *) + VLAN_AT;
	uint16_t type = (uint16_t)(at[0] << 8 | at[1]);

	while (type == WIRE_ETHERTYPE_VLAN || type == WIRE_ETHERTYPE_QINQ) {
		at += VLAN_BYTES;
		type = (uint16_t)(at[0] << 8 | at[1]);
	}
	at += sizeof(type);
	if (type == WIRE_ETHERTYPE_IP4 || type == WIRE_ETHERTYPE_IP6)
		tunnel_take_ecn(at, type == WIRE_ETHERTYPE_IP6, ECN_CE);
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
		struct rte_mbuf *m = mbuf_of(w, sent[i]);

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
	if (to >> LIFE_SHIFT == qos_shaper_life(w->shape->shaper, port)) {
		datapath_send_port(w, port, &out);
		return left;
	}
	for (uint16_t i = 0; i < out.n; i++)
		drop(w, group[i], VERDICT_PORT_DOWN);
	return left;
}

static unsigned send_due(struct worker *w, uint64_t now)
{
	struct shape_packet *sent[SHAPE_BURST];
	struct shape_drops drops = {.n = 0};
	const unsigned n = qos_shaper_take(w->shape->shaper, now, sent, &drops);

	note_held(w);
	for (unsigned left = n; left;) {
		left = send_port(w, sent, left);
		burst_free_dropped(w);
	}
	drop_all(w, &drops);
	return n;
}

unsigned datapath_shape_poll(struct worker *w)
{
	struct shape_worker *shape = w->shape;
	const uint64_t now = qos_shaper_now(shape->shaper);
	unsigned n;

	if (!shape->is_owner)
		return 0;
	n = send_due(w, now);
	if (qos_shaper_has_news(shape->shaper)) {
		struct shape_drops drops = {.n = 0};

		qos_shaper_follow(shape->shaper, now, &drops);
		note_held(w);
		drop_all(w, &drops);
	}
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

	return !shape->is_owner ||
	       (!qos_shaper_totals(shape->shaper)->held && !has_packets(shape) &&
		       !qos_shaper_has_news(shape->shaper));
}

// Whoever reads a ring asks for it after it has been told to stop, as handover_open says.
static void set_open(struct handover_ring *ring, bool is_open)
{
	__atomic_store_n(&ring->is_open, is_open, __ATOMIC_SEQ_CST);
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void datapath_shape_open(struct worker *w)
{
	if (w->shape->is_owner)
		qos_shaper_begin(w->shape->shaper);
	else
		set_open(w->shape->to, true);
}

static bool others_are_over(const struct shape_worker *shape)
{
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < shape->n_from; i++)
		if (__atomic_load_n(&shape->from[i]->is_open, __ATOMIC_SEQ_CST))
			return false;
	return !has_packets(shape);
}

void datapath_shape_close(struct worker *w)
{
	struct shape_worker *shape = w->shape;
	struct shape_drops drops = {.n = 0};
	uint32_t next = 0;

	if (!shape->is_owner) {
		set_open(shape->to, false);
		return;
	}
	while (!others_are_over(shape))
		datapath_shape_poll(w);
	for (bool is_done = false; !is_done;) {
		is_done = qos_shaper_flush(shape->shaper, &next, &drops);
		note_held(w);
		drop_all(w, &drops);
	}
	burst_free_dropped(w);
	qos_shaper_end(shape->shaper);
}
