// Rings of short frames and the workers' operations on them. Worker; the other ends: control
// thread.
#include "gen/queue.h"

#include "gen/workers.h"
#include "wire/neighbour.h"

#include <rte_mbuf.h>
#include <string.h>

enum { LEAST_BYTES = 60 }; // minimum frame length without FCS

bool post_put(struct post_ring *ring, const uint8_t *frame, size_t n, bool is_reply)
{
	uint64_t at = ring->n_put;
	struct post_frame *slot = &ring->slot[at % POST_SLOTS];

	if (n > POST_MAX_BYTES ||
		at - __atomic_load_n(&ring->n_taken, __ATOMIC_ACQUIRE) == POST_SLOTS)
		return false;
	slot->n = n;
	slot->is_reply = is_reply;
	memcpy(slot->bytes, frame, n);
	__atomic_store_n(&ring->n_put, at + 1, __ATOMIC_RELEASE);
	return true;
}

bool post_take(struct post_ring *ring, struct post_frame *out)
{
	uint64_t at = ring->n_taken;

	if (at == __atomic_load_n(&ring->n_put, __ATOMIC_ACQUIRE))
		return false;
	*out = ring->slot[at % POST_SLOTS];
	__atomic_store_n(&ring->n_taken, at + 1, __ATOMIC_RELEASE);
	return true;
}

bool post_received(struct post *post, const uint8_t *frame, size_t n)
{
	if (!post || !wire_is_neighbour(frame, n))
		return false;
	stats_add(&post->n_received, 1);
	if (!post_put(&post->received, frame, n, false))
		stats_add(&post->n_overflow, 1);
	return true;
}

static bool transmit(const struct post *post, const struct post_frame *frame)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(post->pool);
	uint16_t n = MAX_OF(frame->n, (uint16_t)LEAST_BYTES);

	if (!m)
		return false;
	uint8_t *to = (uint8_t *)rte_pktmbuf_append(m, n);
	memset(to, 0, n);
	memcpy(to, frame->bytes, frame->n);
	if (port_tx(&post->out, &m, 1) == 1)
		return true;
	rte_pktmbuf_free(m);
	return false;
}

static bool deliver(struct post *post, struct sink_port *counters)
{
	struct post_frame frame;

	for (unsigned i = 0; i < POST_AT_ONCE; i++) {
		if (!post_take(&post->to_send, &frame))
			return true;
		bool is_sent = transmit(post, &frame);

		stats_add(&post->n_unsent, !is_sent);
		stats_add(&post->n_answered, is_sent && frame.is_reply);
		stats_add(&counters->answered, is_sent && frame.is_reply);
	}
	return false;
}

bool post_deliver(struct run *run, const struct port_worker *io)
{
	bool is_done = true;

	for (unsigned q = 0; q < io->n_queues; q++) {
		uint16_t port = io->queues[q].port;

		if (run->sink.post[port])
			is_done &= deliver(run->sink.post[port], &run->port[port].counters);
	}
	return is_done;
}
