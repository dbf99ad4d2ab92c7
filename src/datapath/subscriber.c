// Polices the packets of subscribers, or has them shaped: first that of the source, upstream, then
// that of the destination, downstream. Only packets that workers forward reach this step. Worker.
#include "datapath/steps.h"
#include "wire/headers.h"

#include <endian.h>
#include <rte_cycles.h>

enum { DSCP_SHIFT = 2 };

static inline const uint8_t *packet_of(const struct burst *b, unsigned i)
{
	return b->frame[i] + WIRE_ETHER_BYTES;
}

// Addresses as keys.
static uint64_t source_of(const struct burst *b, unsigned i)
{
	const struct wire_ip4 *ip4 = (const void *)packet_of(b, i);
	const struct wire_ip6 *ip6 = (const void *)packet_of(b, i);

	return b->is_ip6 ? be64toh(load64(ip6->src)) : (uint64_t)be32toh(load32(ip4->src)) << 32;
}

static uint64_t destination_of(const struct burst *b, unsigned i)
{
	return b->is_ip6 ? b->dst6[i].high : (uint64_t)b->dst4[i] << 32;
}

// Addresses of subscribers are those of the main VRF.
static uint64_t in_main(const struct burst *b)
{
	uint64_t found = 0;

	if (b->has_one_vrf)
		return b->vrf[0] ? 0 : burst_all(b);
	for (unsigned i = 0; i < BURST_MAX && i < b->n; i++)
		found |= (uint64_t)!b->vrf[i] << i;
	return found;
}

static uint64_t find_by_iface(const struct worker *w, const struct burst *b,
	enum qos_direction direction, uint32_t subscriber[])
{
	uint64_t found = 0;

	for (unsigned i = 0; i < b->n; i++) {
		const uint16_t iface =
			direction == QOS_UP ? burst_iif(b, i) : fib_oif_load(b->view, b->hop[i]);
		const uint32_t which = qos_of_iface(&w->qos->view, iface);

		if (which == QOS_NONE)
			continue;
		subscriber[i] = which;
		found |= 1ull << i;
	}
	return found;
}

// An interface decides before an address does.
static uint64_t find(const struct worker *w, const struct burst *b, enum qos_direction direction,
	uint32_t subscriber[])
{
	const struct qos_view *view = &w->qos->view;
	uint64_t addr[BURST_MAX], found = 0;

	if (__atomic_load_n(&view->has_ifaces, __ATOMIC_RELAXED))
		found = find_by_iface(w, b, direction, subscriber);
	const uint64_t rest = in_main(b) & ~found;

	for (uint64_t left = rest; left; left &= left - 1) {
		const unsigned i = __builtin_ctzll(left);

		addr[i] = direction == QOS_UP ? source_of(b, i) : destination_of(b, i);
	}
	return found | qos_find(view, b->is_ip6 ? QOS_IP6 : QOS_IP4, addr, rest, subscriber);
}

static uint32_t ip_bytes(const struct burst *b, unsigned i)
{
	const struct wire_ip4 *ip4 = (const void *)packet_of(b, i);
	const struct wire_ip6 *ip6 = (const void *)packet_of(b, i);

	return b->is_ip6 ? WIRE_IP6_BYTES + be16toh(ip6->payload_length_be)
	                 : be16toh(ip4->total_length_be);
}

// A long frame of a guest leaves as several, each with headers of its own.
static void count_segments(struct qos_packets *packets, const struct rte_mbuf *m, unsigned i)
{
	const uint32_t headers = m->l3_len + m->l4_len;

	if (packets->ip_bytes[i] <= headers || !m->tso_segsz)
		return;
	packets->frames[i] = (packets->ip_bytes[i] - headers + m->tso_segsz - 1) / m->tso_segsz;
	packets->ip_bytes[i] += (packets->frames[i] - 1) * headers;
}

// As it is, or as another step has marked it.
static uint8_t dscp_of(const struct burst *b, unsigned i)
{
	const struct wire_ip4 *ip4 = (const void *)packet_of(b, i);
	const struct wire_ip6 *ip6 = (const void *)packet_of(b, i);

	if (b->mark_mask >> i & 1)
		return b->dscp[i];
	if (b->is_ip6)
		return be32toh(ip6->version_class_flow_be) >> (20 + DSCP_SHIFT) & 63;
	return ip4->dscp_ecn >> DSCP_SHIFT;
}

static void describe(const struct burst *b, struct qos_packets *packets)
{
	for (uint64_t left = packets->mask; left; left &= left - 1) {
		const unsigned i = __builtin_ctzll(left);

		packets->ip_bytes[i] = ip_bytes(b, i);
		packets->frames[i] = 1;
		packets->dscp[i] = dscp_of(b, i);
		if (unlikely(b->has & BURST_OFFLOADS) && offload_is_long(b->mbuf[i]))
			count_segments(packets, b->mbuf[i], i);
	}
}

static void mark(struct burst *b, const struct qos_verdicts *verdicts)
{
	for (uint64_t left = verdicts->has_dscp; left; left &= left - 1) {
		const unsigned i = __builtin_ctzll(left);

		b->dscp[i] = verdicts->dscp[i];
	}
	for (uint64_t left = verdicts->has_priority; left; left &= left - 1) {
		const unsigned i = __builtin_ctzll(left);

		b->priority[i] = verdicts->priority[i];
	}
	b->mark_mask |= verdicts->has_dscp;
	b->priority_mask |= verdicts->has_priority;
	b->has |= verdicts->has_dscp ? BURST_MARKS : 0;
}

static void drop(struct worker *w, struct burst *b, uint64_t dropped)
{
	for (uint64_t left = dropped; left; left &= left - 1)
		worker_drop(w, b->mbuf[__builtin_ctzll(left)], VERDICT_POLICE_RED);
	burst_keep(b, ~dropped);
}

static void police(struct worker *w, struct burst *b, enum qos_direction direction)
{
	const struct qos_basis basis = {w->qos, w->io->id, direction, w->trace, rte_rdtsc()};
	struct qos_packets packets;
	struct qos_verdicts verdicts;

	packets.mask = find(w, b, direction, packets.subscriber);
	if (!packets.mask)
		return;
	qos_prefetch(w->qos, w->io->id, direction, packets.subscriber, packets.mask);
	describe(b, &packets);
	qos_police(&basis, &packets, &verdicts);
	if (verdicts.has_dscp | verdicts.has_priority)
		mark(b, &verdicts);
	if (unlikely(verdicts.shaped & ~verdicts.dropped) && w->shape)
		datapath_shape_later(w, b, direction, &packets, &verdicts);
	if (verdicts.dropped)
		drop(w, b, verdicts.dropped);
}

// Whether a packet goes through queues of the one it is for, or twice through others.
static bool has_waited(const struct worker *w, const struct burst *b, unsigned i)
{
	const struct shape_packet *packet = shape_packet_of(w->shape, b->mbuf[i]);

	return b->shape_mask >> i & 1 && (packet->is_first || packet->since < QOS_MAX);
}

// What leaves by an interface with a qdisc of Linux. What has waited in queues of the one it is for
// does not wait again.
static uint64_t find_tc(const struct worker *w, const struct burst *b, uint32_t subscriber[])
{
	uint64_t left = burst_all(b), found = 0;

	for (; left; left &= left - 1) {
		const unsigned i = __builtin_ctzll(left);

		if (b->has & BURST_SHAPED && has_waited(w, b, i))
			continue;
		subscriber[i] = qos_of_tc(&w->qos->view, fib_oif_load(b->view, b->hop[i]));
		found |= (uint64_t)(subscriber[i] != QOS_NONE) << i;
	}
	return found;
}

// Linux's qdisc would count their labels.
static uint64_t find_labelled(const struct burst *b, uint64_t mask)
{
	uint64_t found = 0;

	if (!(b->has & BURST_TEMPLATES))
		return 0;
	for (uint64_t left = mask & b->template_mask; left; left &= left - 1) {
		const unsigned i = __builtin_ctzll(left);

		found |= (uint64_t) !!fib_template_load(b->view, b->hop[i])->n_labels << i;
	}
	return found;
}

static void leave_to_linux(struct worker *w, struct burst *b, uint64_t mask)
{
	for (uint64_t left = mask; left; left &= left - 1)
		worker_stop(w, b->mbuf[__builtin_ctzll(left)], b->in_port, VERDICT_LINUX);
	burst_keep(b, ~mask);
}

static __attribute__((noinline)) void queue_tc(struct worker *w, struct burst *b)
{
	const struct qos_basis basis = {w->qos, w->io->id, QOS_DOWN, w->trace, rte_rdtsc()};
	struct qos_packets packets;
	struct qos_verdicts verdicts;
	const uint64_t labelled = find_labelled(b, find_tc(w, b, packets.subscriber));

	if (unlikely(labelled))
		leave_to_linux(w, b, labelled);
	packets.mask = find_tc(w, b, packets.subscriber);
	if (!packets.mask)
		return;
	qos_prefetch(w->qos, w->io->id, QOS_DOWN, packets.subscriber, packets.mask);
	describe(b, &packets);
	qos_police(&basis, &packets, &verdicts);
	if (verdicts.shaped && w->shape)
		datapath_shape_later(w, b, QOS_DOWN, &packets, &verdicts);
}

void datapath_subscriber(struct worker *w, struct burst *b)
{
	if (!qos_is_on(&w->qos->view))
		return;
	police(w, b, QOS_UP);
	if (b->n)
		police(w, b, QOS_DOWN);
	if (unlikely(qos_has_tc(&w->qos->view)) && b->n)
		queue_tc(w, b);
}
