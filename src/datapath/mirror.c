// Sends copies of packets, as they were received, to mirror ports. Called only for bursts with such
// packets, after the last step that may stop a packet before it is sent, and before the first one
// that writes to it. Worker.
#include "datapath/steps.h"

// A copy, in a buffer of the packet's pool, that the port can send; NULL: counted.
static struct rte_mbuf *copy(struct worker *w, struct rte_mbuf *from, uint16_t to)
{
	struct rte_mbuf *made = rte_pktmbuf_copy(from, from->pool, 0, UINT32_MAX);

	if (unlikely(!made)) {
		stats_add(&w->stat->verdict[VERDICT_MIRROR_FAILED], 1);
		if (w->capture)
			worker_capture_drop(w, from, VERDICT_MIRROR_FAILED);
		return NULL;
	}
	if (unlikely(!datapath_has_room(&w->states[to], made))) {
		worker_drop(w, made, VERDICT_MULTI_SEGMENT);
		return NULL;
	}
	return made;
}

// Copies that cannot be sent are only counted. The port may have vanished.
static bool can_send(struct worker *w, const struct burst *b, uint16_t to, uint64_t mask)
{
	const unsigned n = __builtin_popcountll(mask);
	const bool is_port = to < STATS_MAX_PORTS;

	stats_add(&w->stat->port[is_port ? to : b->in_port].copied_packets, n);
	if (likely(is_port && port_is_up(&w->states[to])))
		return true;
	stats_add(&w->stat->verdict[VERDICT_PORT_DOWN], n);
	if (w->capture)
		for (; mask; mask &= mask - 1)
			worker_capture_drop(w, b->mbuf[__builtin_ctzll(mask)], VERDICT_PORT_DOWN);
	return false;
}

// Copies the packets in `mask`, all of the same mirror port, in order.
static void mirror_to(struct worker *w, const struct burst *b, uint16_t to, uint64_t mask)
{
	struct rte_mbuf *made[BURST_MAX];
	struct outgoing out = {.mbuf = made, .has_offloads = b->has & BURST_OFFLOADS};

	if (!can_send(w, b, to, mask))
		return;
	for (; mask; mask &= mask - 1) {
		struct rte_mbuf *m = copy(w, b->mbuf[__builtin_ctzll(mask)], to);

		if (!m)
			continue;
		made[out.n++] = m;
		out.bytes += m->pkt_len;
	}
	if (out.n)
		datapath_send_port(w, to, &out);
}

void datapath_mirror(struct worker *w, struct burst *b)
{
	uint64_t left = b->mirror_mask & burst_all(b);

	while (left) {
		const uint16_t to = b->mirror[__builtin_ctzll(left)];
		uint64_t same = 0;

		for (uint64_t rest = left; rest; rest &= rest - 1)
			same |= (uint64_t)(b->mirror[__builtin_ctzll(rest)] == to)
			        << __builtin_ctzll(rest);
		mirror_to(w, b, to, same);
		left &= ~same;
	}
	burst_free_dropped(w); // the space is for those of one burst
}
