// Producers write frames into their rings, and the capture thread reads them. Worker; tap thread;
// capture thread.
#include "capture/session.h"

#include "base/pages.h"

#include <errno.h>
#include <rte_cycles.h>
#include <string.h>

enum { SCRATCH_BYTES = CAPTURE_SNAP_MOST };

int capture_ring_make(struct capture_producer *producer, uint64_t bytes)
{
	producer->ring = pages_alloc(bytes + SCRATCH_BYTES);
	producer->ring_bytes = bytes;
	producer->scratch = producer->ring + bytes;
	producer->in_port = CAPTURE_PORT_UNKNOWN;
	return producer->ring ? 0 : -ENOMEM;
}

void capture_ring_touch(struct capture_producer *producer, uint64_t at, uint64_t n)
{
	const uint64_t most = producer->ring_bytes + SCRATCH_BYTES;

	if (at < most)
		memset(producer->ring + at, 0, MIN_OF(n, most - at));
}

void capture_ring_free(struct capture_producer *producer)
{
	if (producer->ring)
		pages_free(producer->ring, producer->ring_bytes + SCRATCH_BYTES);
	producer->ring = NULL;
}

static struct capture_record *record_at(const struct capture_producer *producer, uint64_t position)
{
	return (void *)(producer->ring + (position & (producer->ring_bytes - 1)));
}

static bool has_space(struct capture_producer *producer, uint64_t end)
{
	if (end - producer->tail_seen <= producer->ring_bytes)
		return true;
	producer->tail_seen = __atomic_load_n(&producer->tail, __ATOMIC_ACQUIRE);
	return end - producer->tail_seen <= producer->ring_bytes;
}

// Where a record of this size can be, from `head` on; UINT64_MAX: there is no space.
static uint64_t find_space(struct capture_producer *producer, uint64_t head, uint32_t size)
{
	const uint64_t left = producer->ring_bytes - (head & (producer->ring_bytes - 1));
	const uint64_t at = left < size ? head + left : head;

	if (!has_space(producer, at + size))
		return UINT64_MAX;
	if (at != head)
		record_at(producer, head)->size = left | CAPTURE_PADDING;
	return at;
}

static bool matches(const struct capture_session *session, const uint8_t *frame, uint32_t length,
	uint32_t contiguous)
{
	return !session->settings.program ||
	       bpf_filter(session->settings.program, frame, length, contiguous);
}

// The bytes of a frame, in one piece.
static const uint8_t *bytes_of(const struct capture_producer *producer, const struct rte_mbuf *mbuf,
	uint32_t n)
{
	return rte_pktmbuf_read(mbuf, 0, n, producer->scratch);
}

// Writes a record without its event. Returns where it ends, or 0 if there is no space.
static uint64_t write_record(struct capture_producer *producer, uint64_t *at, const uint8_t *frame,
	uint32_t length, uint64_t cycles)
{
	const uint32_t captured = MIN_OF(length, producer->session->settings.snap);
	const uint32_t size = round_up(sizeof(struct capture_record) + captured, 8);

	*at = find_space(producer, *at, size);
	if (*at == UINT64_MAX)
		return 0;
	struct capture_record *record = record_at(producer, *at);

	record->size = size;
	record->length = length;
	record->captured = captured;
	record->cycles = cycles;
	memcpy(record->bytes, frame, captured);
	return *at + size;
}

// How many frames to skip before the next sample: 0 to 2 * mean - 2, each as likely.
static uint32_t draw_skip(struct capture_producer *producer, uint32_t mean)
{
	uint64_t x = producer->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	producer->random = x;
	return (x >> 32) * (2ull * mean - 1) >> 32;
}

// Those of n frames that are samples.
static uint64_t choose_samples(struct capture_producer *producer, enum capture_sampled sampled,
	unsigned n)
{
	const uint32_t mean = producer->session->settings.sample[sampled];
	uint32_t at = producer->skip[sampled];
	uint64_t chosen = 0;

	if (mean <= 1)
		return n == CAPTURE_BURST ? UINT64_MAX : (1ull << n) - 1;
	for (; at < n; at += 1 + draw_skip(producer, mean))
		chosen |= 1ull << at;
	producer->skip[sampled] = at - n;
	return chosen;
}

void capture_copy(struct capture_producer *producer, struct capture_draft *draft,
	enum capture_sampled sampled, struct rte_mbuf *const mbufs[], unsigned n)
{
	uint64_t head = producer->head;
	uint64_t chosen = choose_samples(producer, sampled, n);
	const uint64_t cycles = chosen ? rte_rdtsc() : 0;

	draft->matched = draft->copied = 0;
	for (; chosen; chosen &= chosen - 1) {
		const unsigned i = __builtin_ctzll(chosen);
		const uint32_t length = MIN_OF(mbufs[i]->pkt_len, (uint32_t)CAPTURE_SNAP_MOST);
		const uint8_t *frame = bytes_of(producer, mbufs[i], length);

		if (!frame || !matches(producer->session, frame, length, length))
			continue;
		draft->matched |= 1ull << i;
		draft->at[i] = head;
		const uint64_t end = write_record(producer, &draft->at[i], frame, length, cycles);

		if (!end)
			continue;
		draft->copied |= 1ull << i;
		head = end;
	}
}

bool capture_wants(const struct capture_producer *producer, const struct capture_event *event)
{
	const struct capture_settings *settings = &producer->session->settings;

	if (settings->port >= 0 && settings->port != event->port)
		return false;
	if (event->kind == CAPTURE_IN)
		return settings->wants_received;
	if (event->kind == CAPTURE_OUT)
		return settings->wants_sent;
	return settings->wants[event->verdict];
}

unsigned capture_publish(struct capture_producer *producer, const struct capture_draft *draft,
	const struct capture_event *event, unsigned n)
{
	const uint64_t first = n == CAPTURE_BURST ? UINT64_MAX : (1ull << n) - 1;
	const unsigned missed = __builtin_popcountll(draft->matched & ~draft->copied & first);
	uint64_t head = producer->head;

	if (!capture_wants(producer, event))
		return 0;
	for (uint64_t rest = draft->copied & first; rest; rest &= rest - 1) {
		const uint64_t at = draft->at[__builtin_ctzll(rest)];
		struct capture_record *record = record_at(producer, at);

		record->event = *event;
		head = at + record->size;
	}
	__atomic_store_n(&producer->head, head, __ATOMIC_RELEASE);
	stats_add(&producer->missed, missed);
	return missed;
}

const struct capture_record *capture_ring_peek(struct capture_producer *producer)
{
	const uint64_t head = __atomic_load_n(&producer->head, __ATOMIC_ACQUIRE);
	const struct capture_record *record = record_at(producer, producer->tail);

	if (producer->tail == head)
		return NULL;
	if (!(record->size & CAPTURE_PADDING))
		return record;
	// A record follows: padding is published with it.
	__atomic_store_n(&producer->tail, producer->tail + (record->size & ~CAPTURE_PADDING),
		__ATOMIC_RELEASE);
	return record_at(producer, producer->tail);
}

void capture_ring_pop(struct capture_producer *producer, const struct capture_record *record)
{
	__atomic_store_n(&producer->tail, producer->tail + record->size, __ATOMIC_RELEASE);
}

void capture_tap_drop(struct capture_live *live, unsigned slot, const struct rte_mbuf *mbuf,
	enum verdict verdict)
{
	const struct capture_event event = {CAPTURE_DROP, verdict, mbuf->port};
	struct rte_mbuf *const only = (struct rte_mbuf *)(uintptr_t)mbuf;
	struct capture_draft draft;

	pthread_mutex_lock(&live->lock);
	struct capture_session *session = __atomic_load_n(&live->session[slot], __ATOMIC_ACQUIRE);

	if (session) {
		struct capture_producer *producer = &session->producer[session->n_producers - 1];

		if (capture_wants(producer, &event)) {
			capture_copy(producer, &draft, CAPTURE_LOSSES, &only, 1);
			capture_publish(producer, &draft, &event, 1);
		}
	}
	pthread_mutex_unlock(&live->lock);
}
