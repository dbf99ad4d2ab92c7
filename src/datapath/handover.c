// See handover.h. Workers; making and moving: control thread.
#include "datapath/handover.h"

#include "base/pages.h"
#include "datapath/steps.h"
#include "wire/innermost.h"

#include <errno.h>
#include <rte_atomic.h>

enum { SLOT_SHIFT = 24, PREFETCH = 4 };

// --- Control thread.

// Deals the slots to the rings in turn.
static int make_out(const struct port_worker *const io[], unsigned worker,
	struct handover_out *out[], struct handover_in *in[])
{
	struct handover_out *made = pages_alloc(sizeof(*made));

	out[worker] = made;
	if (!made)
		return -ENOMEM;
	for (unsigned i = 0; i < io[worker]->n_hands_to; i++) {
		const unsigned to = io[worker]->hands_to[i];
		struct handover_ring *ring = pages_alloc(sizeof(*ring));

		if (!in[to])
			in[to] = pages_alloc(sizeof(*in[to]));
		if (!ring || !in[to]) {
			pages_free(ring, sizeof(*ring));
			return -ENOMEM;
		}
		in[to]->ring[in[to]->n++] = ring;
		made->ring[made->n] = ring;
		made->wait[made->n++] = io[to]->wait;
	}
	for (unsigned i = 0; i < HANDOVER_SLOTS; i++)
		made->to[i] = made->wanted[i] = i % made->n;
	return 0;
}

int handover_make(unsigned n, const struct port_worker *const io[], struct handover_out *out[],
	struct handover_in *in[], struct error *error)
{
	for (unsigned i = 0; i < n; i++)
		if (io[i]->n_hands_to && make_out(io, i, out, in)) {
			handover_free(n, out, in);
			return error_set(error, -ENOMEM,
				"workers[%u]: not enough memory for the rings to other workers; "
				"hand packets to fewer (hands_to)",
				i);
		}
	return 0;
}

void handover_free(unsigned n, struct handover_out *out[], struct handover_in *in[])
{
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; out[i] && k < out[i]->n; k++)
			pages_free(out[i]->ring[k], sizeof(*out[i]->ring[k]));
		pages_free(out[i], sizeof(*out[i]));
		pages_free(in[i], sizeof(*in[i]));
		out[i] = NULL;
		in[i] = NULL;
	}
}

void handover_move(struct handover_out *out, const bool slots[HANDOVER_SLOTS], unsigned ring)
{
	for (unsigned i = 0; i < HANDOVER_SLOTS; i++)
		if (slots[i])
			__atomic_store_n(&out->wanted[i], ring, __ATOMIC_RELAXED);
	__atomic_store_n(&out->n_changes, out->n_changes + 1, __ATOMIC_RELEASE);
}

bool handover_has_moved(const struct handover_out *out)
{
	return __atomic_load_n(&out->n_followed, __ATOMIC_ACQUIRE) == out->n_changes &&
	       !__atomic_load_n(&out->is_moving, __ATOMIC_ACQUIRE);
}

// --- Receive worker.

static uint64_t done_of(const struct handover_ring *ring)
{
	return __atomic_load_n(&ring->done, __ATOMIC_ACQUIRE);
}

static uint64_t put_of(const struct handover_ring *ring)
{
	return __atomic_load_n(&ring->put, __ATOMIC_ACQUIRE);
}

uint16_t handover_ring_put(struct handover_ring *ring, struct port_wait *wait,
	struct rte_mbuf *mbuf[], uint16_t n)
{
	if (HANDOVER_RING - (ring->put - ring->seen_done) < n)
		ring->seen_done = done_of(ring);
	n = MIN_OF(n, HANDOVER_RING - (ring->put - ring->seen_done));
	if (!n)
		return 0;
	for (uint16_t i = 0; i < n; i++)
		ring->packet[(ring->put + i) % HANDOVER_RING] = mbuf[i];
	__atomic_store_n(&ring->put, ring->put + n, __ATOMIC_RELEASE);
	port_wake(wait);
	return n;
}

unsigned handover_ring_space(struct handover_ring *ring)
{
	ring->seen_done = done_of(ring);
	return (unsigned)(HANDOVER_RING - (ring->put - ring->seen_done));
}

uint16_t handover_put(struct handover_out *out, unsigned ring, struct rte_mbuf *mbuf[], uint16_t n)
{
	return handover_ring_put(out->ring[ring], out->wait[ring], mbuf, n);
}

// No worker reads this packet, so its bytes are counted here.
static void refuse(struct worker *w, struct rte_mbuf *m)
{
	stats_add(&w->stat->port[m->port].rx_bytes, m->pkt_len);
	worker_drop(w, m, VERDICT_WORKER_RING_FULL);
}

static void put_staged(struct worker *w, unsigned ring)
{
	struct handover_out *out = w->handover_out;
	const uint16_t n = out->n_staged[ring];

	if (!n)
		return;
	const uint16_t taken = handover_put(out, ring, out->staged[ring], n);

	stats_add(&w->stat->handover_packets, taken);
	for (uint16_t i = taken; i < n; i++)
		refuse(w, out->staged[ring][i]);
	out->n_staged[ring] = 0;
}

static void put_all(struct worker *w)
{
	for (unsigned i = 0; i < w->handover_out->n; i++)
		put_staged(w, i);
}

static void hold(struct worker *w, struct rte_mbuf *m, uint8_t slot)
{
	struct handover_out *out = w->handover_out;

	if (out->n_held == HANDOVER_HELD) {
		refuse(w, m);
		return;
	}
	out->held_slot[out->n_held] = slot;
	out->held[out->n_held++] = m;
}

static inline uint8_t slot_of(const struct rte_mbuf *m)
{
	struct wire_innermost key;

	wire_innermost_read(&key, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
	return wire_innermost_hash(&key) >> SLOT_SHIFT;
}

static inline void stage(struct handover_out *out, struct rte_mbuf *m, uint8_t slot)
{
	const uint8_t ring = out->to[slot];

	out->staged[ring][out->n_staged[ring]++] = m;
}

void datapath_handover(struct worker *w, const struct received *r)
{
	struct handover_out *out = w->handover_out;
	const uint16_t n = r->n, port = r->from->port;

	for (uint16_t i = 0; i < MIN_OF(n, PREFETCH); i++)
		rte_prefetch0(rte_pktmbuf_mtod(r->mbuf[i], void *));
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = r->mbuf[i];

		if (i + PREFETCH < n)
			rte_prefetch0(rte_pktmbuf_mtod(r->mbuf[i + PREFETCH], void *));
		const uint8_t slot = slot_of(m);

		m->port = port;
		stats_add(&out->n_came[slot], 1);
		if (unlikely(out->is_moving) && out->moves[slot])
			hold(w, m, slot);
		else
			stage(out, m, slot);
	}
	put_all(w);
}

static void begin_move(struct handover_out *out, uint32_t n_changes)
{
	bool is_moving = false;

	memset(out->fence, 0, sizeof(out->fence));
	for (unsigned i = 0; i < HANDOVER_SLOTS; i++) {
		out->next[i] = __atomic_load_n(&out->wanted[i], __ATOMIC_RELAXED);
		out->moves[i] = out->next[i] != out->to[i];
		if (out->moves[i])
			out->fence[out->to[i]] = out->ring[out->to[i]]->put;
		is_moving |= out->moves[i];
	}
	__atomic_store_n(&out->is_moving, is_moving, __ATOMIC_RELEASE);
	__atomic_store_n(&out->n_followed, n_changes, __ATOMIC_RELEASE);
}

static bool has_drained(const struct handover_out *out)
{
	for (unsigned i = 0; i < out->n; i++)
		if (done_of(out->ring[i]) < out->fence[i])
			return false;
	return true;
}

static void end_move(struct worker *w)
{
	struct handover_out *out = w->handover_out;

	for (unsigned i = 0; i < HANDOVER_SLOTS; i++)
		__atomic_store_n(&out->to[i], out->next[i], __ATOMIC_RELAXED);
	for (unsigned i = 0; i < out->n_held; i++) {
		stage(out, out->held[i], out->held_slot[i]);
		if (i % HANDOVER_BURST == HANDOVER_BURST - 1 || i + 1 == out->n_held) {
			put_all(w);
			burst_free_dropped(w);
		}
	}
	out->n_held = 0;
	__atomic_store_n(&out->is_moving, false, __ATOMIC_RELEASE);
}

void handover_follow(struct worker *w)
{
	struct handover_out *out = w->handover_out;

	if (out->is_moving) {
		if (has_drained(out))
			end_move(w);
		return;
	}
	const uint32_t n_changes = __atomic_load_n(&out->n_changes, __ATOMIC_ACQUIRE);

	if (unlikely(n_changes != out->n_followed))
		begin_move(out, n_changes);
}

static void set_open(struct handover_out *out, bool is_open)
{
	for (unsigned i = 0; i < out->n; i++)
		__atomic_store_n(&out->ring[i]->is_open, is_open, __ATOMIC_SEQ_CST);
}

// Whoever reads a ring asks for it after it has been told to stop: then either it sees that the
// ring is open, or this worker sees that it is to stop before it receives anything.
void handover_open(struct worker *w)
{
	if (!w->handover_out)
		return;
	set_open(w->handover_out, true);
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void handover_close(struct worker *w)
{
	if (!w->handover_out)
		return;
	while (w->handover_out->is_moving)
		handover_follow(w);
	set_open(w->handover_out, false);
}

// --- The other workers.

// What is open has a guest's word that was found true by the worker that received it.
static bool has_open(const struct worker *w, const struct received *r)
{
	if (likely(!w->states[r->from->port].has_offloads))
		return false;
	for (uint16_t i = 0; i < r->n; i++)
		if (offload_is_open(r->mbuf[i]))
			return true;
	return false;
}

uint16_t handover_take(struct worker *w, struct received *r)
{
	struct handover_ring *ring = r->ring;
	struct port_queue *from = &w->handover_in->from;
	const uint64_t waiting = put_of(ring) - ring->taken; // once: it may grow meanwhile
	const uint64_t n = MIN_OF(waiting, (uint64_t)w->io->burst);
	const bool is_first = ring->taken == ring->done;

	r->n = 0;
	for (uint64_t i = 0; i < n; i++)
		rte_prefetch0(ring->packet[(ring->taken + i) % HANDOVER_RING]);
	for (uint64_t i = 0; i < n; i++) {
		struct rte_mbuf *m = ring->packet[(ring->taken + i) % HANDOVER_RING];

		if (!i && is_first)
			from->port = m->port;
		if (m->port != from->port)
			break;
		rte_prefetch0(rte_pktmbuf_mtod(m, void *));
		r->mbuf[r->n++] = m;
	}
	if (!r->n)
		return 0;
	ring->taken += r->n;
	stats_add(&w->stat->taken_packets, r->n);
	stats_add(&w->stat->bursts, 1);
	r->has_offloads = has_open(w, r);
	if (unlikely(w->capture != NULL))
		w->capture->in_port = from->port;
	return r->n;
}

static bool is_empty(const struct handover_in *in)
{
	for (unsigned i = 0; i < in->n; i++)
		if (put_of(in->ring[i]) != in->ring[i]->taken)
			return false;
	return true;
}

bool handover_is_over(const struct handover_in *in)
{
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < in->n; i++)
		if (__atomic_load_n(&in->ring[i]->is_open, __ATOMIC_SEQ_CST))
			return false;
	return is_empty(in);
}

bool handover_is_quiet(const struct worker *w)
{
	const struct handover_out *out = w->handover_out;

	if (w->handover_in && !is_empty(w->handover_in))
		return false;
	return !out || (!out->is_moving && out->n_followed == __atomic_load_n(&out->n_changes,
								      __ATOMIC_ACQUIRE));
}
