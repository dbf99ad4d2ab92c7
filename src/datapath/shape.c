// Hands the packets of subscribers with a profile that shapes to the shapers that have their
// queues. Worker; making: control thread.
#include "datapath/shape.h"

#include "base/pages.h"
#include "datapath/steps.h"
#include "datapath/vxlan.h"

#include <errno.h>
#include <rte_atomic.h>
#include <rte_mbuf_dyn.h>

enum { VLAN_AT = 12, ECN_MASK = 3, PRIORITY_SHIFT = 5, ROOM = BURST_MAX };

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

static int make_rings(struct shape_worker *out[], unsigned n, unsigned shaper, unsigned owner,
	struct port_wait *const wait[])
{
	for (unsigned i = 0; i < n; i++) {
		if (i == owner)
			continue;
		out[i]->to[shaper] = pages_alloc(sizeof(struct handover_ring));
		if (!out[i]->to[shaper])
			return -ENOMEM;
		out[i]->wait[shaper] = wait[owner];
		out[owner]->from[out[owner]->n_from++] = out[i]->to[shaper];
	}
	return 0;
}

static int make_all(struct shape_worker *out[], unsigned n, struct port_wait *const wait[],
	const struct qos_shapers *all)
{
	int err = 0;

	for (unsigned i = 0; i < qos_n_shapers(all) && !err; i++) {
		struct qos_shaper *shaper = qos_shaper(all, i);

		out[qos_shaper_owner(shaper)]->own = shaper;
		err = make_rings(out, n, i, qos_shaper_owner(shaper), wait);
	}
	return err;
}

int shape_workers_make(struct shape_worker *out[], unsigned n, struct port_wait *const wait[],
	const struct qos_shapers *all, struct error *error)
{
	uint8_t offset = 0;
	int err = find_offset(&offset, error);

	if (err)
		return err;
	for (unsigned i = 0; i < n && !err; i++) {
		out[i] = pages_alloc(sizeof(*out[i]));
		err = out[i] ? 0 : -ENOMEM;
		if (!err)
			*out[i] = (struct shape_worker){.all = all, .offset = offset};
	}
	if (!err && !make_all(out, n, wait, all))
		return 0;
	shape_workers_free(out, n);
	return error_set(error, -ENOMEM, "not enough memory for the rings to shapers");
}

void shape_workers_free(struct shape_worker *out[], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; out[i] && k < QOS_MOST_SHAPERS; k++)
			pages_free(out[i]->to[k], sizeof(*out[i]->to[k]));
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

void shape_drop(struct worker *w, struct rte_mbuf *m, enum verdict verdict)
{
	if (w->n_dropped >= ROOM)
		burst_free_dropped(w);
	worker_drop(w, m, verdict);
}

void shape_note_held(struct worker *w)
{
	stats_set(&w->stat->held_packets, qos_shaper_totals(w->shape->own)->held);
}

void shape_drop_all(struct worker *w, struct shape_drops *drops)
{
	for (unsigned i = 0; i < drops->n; i++)
		shape_drop(w, shape_mbuf_of(w->shape, drops->drop[i].packet),
			verdict_of(drops->drop[i].reason));
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

void datapath_shape_later(struct worker *w, struct burst *b, enum qos_direction direction,
	const struct qos_packets *packets, const struct qos_verdicts *verdicts)
{
	if (!(b->has & BURST_SHAPED))
		b->shape_mask = 0;
	for (uint64_t left = verdicts->shaped; left; left &= left - 1) {
		const unsigned i = __builtin_ctzll(left);
		const struct qos_terms *terms = verdicts->terms[i];
		struct shape_packet *packet = shape_packet_of(w->shape, b->mbuf[i]);
		const struct shape_second second = {.shaped = qos_shaped(direction,
							    packets->subscriber[i]),
			.bytes = MIN_OF(verdicts->cost[i], (uint32_t)SHAPE_MOST_BYTES),
			.class = class_of(b, i, terms, packets->dscp[i])};

		packet->is_first = b->shape_mask >> i & 1;
		if (terms->is_fair)
			packet->subflow = datapath_flow_hash(b, i);
		packet->has_ecn = has_ecn(b, i);
		packet->is_marked = false;
		if (packet->is_first) {
			shape_write_second(b->mbuf[i], &second);
			continue;
		}
		packet->since = second.shaped;
		packet->bytes = second.bytes;
		packet->class = second.class;
	}
	b->shape_mask |= verdicts->shaped;
	b->has |= BURST_SHAPED;
}

// What is left of the bytes of a packet, of which `more` bytes are not in the fragment.
static uint32_t less(uint32_t bytes, uint32_t more)
{
	return bytes > more ? bytes - more : 1;
}

void datapath_shape_fragment(const struct worker *w, struct rte_mbuf *fragment,
	struct rte_mbuf *packet, uint32_t length, uint32_t whole)
{
	const struct shape_packet *from = shape_packet_of(w->shape, packet);
	struct shape_packet *to = shape_packet_of(w->shape, fragment);
	const uint32_t more = whole - MIN_OF(length, whole);

	*to = *from;
	to->bytes = less(from->bytes, more);
	if (!from->is_first)
		return;
	struct shape_second second = shape_read_second(packet);

	second.bytes = less(second.bytes, more);
	shape_write_second(fragment, &second);
}

static void enqueue(struct worker *w, struct rte_mbuf *const mbuf[], unsigned n)
{
	struct shape_packet *packet[BURST_MAX];
	struct shape_drops drops = {.n = 0};
	uint32_t shaped[BURST_MAX];

	for (unsigned i = 0; i < n; i++) {
		packet[i] = shape_packet_of(w->shape, mbuf[i]);
		shaped[i] = (uint32_t)packet[i]->since;
	}
	qos_shaper_put(w->shape->own, qos_shapers_now(w->shape->all), shaped, packet, n, &drops);
	shape_note_held(w);
	shape_drop_all(w, &drops);
}

// Packets of a subscriber who is moving go behind those that wait to be moved.
static bool add_moving(struct worker *w, unsigned to, struct rte_mbuf *const mbuf[], unsigned n)
{
	struct shape_worker *shape = w->shape;

	if (!shape->own || qos_shaper_moving_to(shape->own) != (int)to)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (!qos_shaper_add_moving(shape->own, shape_packet_of(shape, mbuf[i])))
			shape_drop(w, mbuf[i], VERDICT_WORKER_RING_FULL);
	shape_note_held(w);
	return true;
}

static void hand_over(struct worker *w, unsigned to, struct rte_mbuf *mbuf[], unsigned n)
{
	struct shape_worker *shape = w->shape;
	unsigned taken = 0;

	if (shape->is_closing) {
		for (unsigned i = 0; i < n; i++)
			shape_drop(w, mbuf[i], VERDICT_SHAPE_FLUSHED);
		return;
	}
	if (add_moving(w, to, mbuf, n))
		return;
	taken = handover_ring_put(shape->to[to], shape->wait[to], mbuf, n);
	for (unsigned i = taken; i < n; i++)
		shape_drop(w, mbuf[i], VERDICT_WORKER_RING_FULL);
}

// Finds the shapers of packets. Applies settings that those of the own one need, which may give
// some of them to others; what another one gives to this one meanwhile goes by that one.
static void find_shapers(const struct worker *w, struct rte_mbuf *const mbuf[], unsigned n,
	uint8_t of[])
{
	const struct shape_worker *shape = w->shape;
	uint32_t shaped[BURST_MAX];
	uint8_t own[BURST_MAX];
	unsigned n_own = 0;

	for (unsigned i = 0; i < n; i++) {
		const uint32_t number = (uint32_t)shape_packet_of(shape, mbuf[i])->since;

		of[i] = qos_shaper_of(shape->all, number);
		if (qos_shaper(shape->all, of[i]) != shape->own)
			continue;
		own[n_own] = i;
		shaped[n_own++] = number;
	}
	if (n_own)
		qos_shaper_expect(shape->own, qos_shapers_now(shape->all), shaped, n_own);
	for (unsigned i = 0; i < n_own; i++)
		of[own[i]] = qos_shaper_of(shape->all, shaped[i]);
}

static void put(struct worker *w, unsigned to, struct rte_mbuf *mbuf[], unsigned n)
{
	if (qos_shaper(w->shape->all, to) == w->shape->own)
		enqueue(w, mbuf, n);
	else
		hand_over(w, to, mbuf, n);
}

void shape_pass(struct worker *w, struct rte_mbuf *mbuf[], unsigned n)
{
	const struct shape_worker *shape = w->shape;
	uint8_t of[BURST_MAX];

	find_shapers(w, mbuf, n, of);
	if (qos_n_shapers(shape->all) == 1) {
		put(w, 0, mbuf, n);
		return;
	}
	while (n) {
		const uint8_t to = of[0];
		struct rte_mbuf *group[BURST_MAX];
		unsigned n_group = 0, left = 0;

		for (unsigned i = 0; i < n; i++) {
			if (of[i] == to) {
				group[n_group++] = mbuf[i];
				continue;
			}
			mbuf[left] = mbuf[i];
			of[left++] = of[i];
		}
		put(w, to, group, n_group);
		n = left;
	}
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
			port | (uint32_t)qos_shapers_life(w->shape->all, port) << SHAPE_LIFE_SHIFT;
		mbuf[n++] = b->mbuf[i];
		taken |= 1ull << i;
	}
	if (!n)
		return;
	shape_pass(w, mbuf, n);
	burst_keep(b, ~taken);
}
