// What workers tell the control thread of packets without a flow: a ring for each worker.
#include "flow/flow.h"

#include "base/bits.h"
#include "base/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A ring takes 512 KiB for each worker. MARKS: keys that a worker remembers. A tick is at least
// 1/16 and at most 1/8 of a second.
enum { RING = FLOW_LEARN_RING, MARKS = 1024, TICKS = 8, MOST_LEAST = 64 };

// `read` is written by the control thread, all else by the worker.
struct flow_learn_ring {
	uint32_t read LINE_ALIGNED;
	uint32_t written LINE_ALIGNED;
	uint32_t tick, n_in_tick;
	uint64_t mark[MARKS] LINE_ALIGNED; // of keys told: upper bits of their hash, and the tick
	struct flow_unknown item[RING];
};

struct flow_learn *flow_learn_open(unsigned n_workers, struct error *error)
{
	struct flow_learn *learn = calloc(1, sizeof(*learn));

	for (unsigned i = 0; learn && i < n_workers; i++) {
		learn->ring[i] = pages_alloc(sizeof(*learn->ring[i]));
		if (!learn->ring[i]) {
			flow_learn_close(learn);
			learn = NULL;
		}
	}
	if (!learn)
		error_set(error, -ENOMEM, "not enough memory to learn flows");
	return learn;
}

void flow_learn_close(struct flow_learn *learn)
{
	for (unsigned i = 0; learn && i < FLOW_MAX_WORKERS; i++)
		pages_free(learn->ring[i], sizeof(*learn->ring[i]));
	free(learn);
}

uint64_t flow_learn_bytes(unsigned n_workers)
{
	return n_workers * sizeof(struct flow_learn_ring);
}

void flow_learn_set_rate(struct flow_learn *learn, uint32_t rate)
{
	const uint32_t most = rate ? rate / TICKS + MOST_LEAST : 0;

	__atomic_store_n(&learn->most, most, __ATOMIC_RELAXED);
}

static void set_bit(uint64_t bits[], unsigned i, bool is_set)
{
	uint64_t *word = &bits[i / FLOW_LEARN_WORD];
	const uint64_t bit = 1ull << i % FLOW_LEARN_WORD;

	// Pairs with the load in flow_learn_has_bit.
	__atomic_store_n(word, is_set ? *word | bit : *word & ~bit, __ATOMIC_RELAXED);
}

void flow_learn_set_iface_full(struct flow_learn *learn, uint16_t iface, bool is_full)
{
	set_bit(learn->full_ifaces, iface, is_full);
}

void flow_learn_set_vrf_full(struct flow_learn *learn, uint16_t vrf, bool is_full)
{
	set_bit(learn->full_vrfs, vrf % FLOW_LEARN_VRFS, is_full);
}

// Space of the ring, and of what may be told in this tick. Worker.
static uint32_t space_of(const struct flow_learn *learn, const struct flow_learn_ring *ring,
	uint32_t tick)
{
	const uint32_t most = __atomic_load_n(&learn->most, __ATOMIC_RELAXED);
	const uint32_t used = ring->tick == tick ? ring->n_in_tick : 0;
	// Pairs with the store in flow_learn_take: the control thread has read what was there.
	const uint32_t read = __atomic_load_n(&ring->read, __ATOMIC_ACQUIRE);

	return used < most ? MIN_OF(most - used, RING - (ring->written - read)) : 0;
}

bool flow_learn_has_space(const struct flow_learn *learn, unsigned worker, uint32_t tick)
{
	return space_of(learn, learn->ring[worker], tick);
}

// The keyed hash of the table, so that nobody can choose keys that hide each other.
static void hash_all(const struct flow_view *view, const struct flow_unknown unknown[], unsigned n,
	uint64_t hash[])
{
	struct flow_key4 four[FLOW_BURST];
	struct flow_key6 six[FLOW_BURST];

	for (unsigned i = 0; i < n; i++)
		if (unknown[0].family == 6)
			six[i] = unknown[i].six;
		else
			four[i] = unknown[i].four;
	if (unknown[0].family == 6)
		view->hash6(view, six, hash, n);
	else
		view->hash4(view, four, hash, n);
}

unsigned flow_learn_put(const struct flow_view *view, const struct flow_learn *learn,
	const struct flow_learn_from *from, const struct flow_unknown unknown[], unsigned n)
{
	const uint64_t tick_mask = (1u << FLOW_SEEN_BITS) - 1;
	struct flow_learn_ring *ring = learn->ring[from->worker];
	uint32_t space = space_of(learn, ring, from->tick), written = ring->written;
	uint64_t hash[FLOW_BURST];
	unsigned n_lost = 0;

	if (!n)
		return 0;
	hash_all(view, unknown, n, hash);
	for (unsigned i = 0; i < n; i++) {
		const uint64_t mark = (hash[i] & ~tick_mask) | (from->tick & tick_mask);
		uint64_t *last = &ring->mark[hash[i] % MARKS];

		if (*last == mark)
			continue;
		if (!space) {
			n_lost++;
			continue;
		}
		*last = mark;
		ring->item[written++ % RING] = unknown[i];
		space--;
	}
	const uint32_t n_before = ring->tick == from->tick ? ring->n_in_tick : 0;
	ring->tick = from->tick;
	ring->n_in_tick = n_before + written - ring->written;
	// Pairs with the load in flow_learn_take.
	__atomic_store_n(&ring->written, written, __ATOMIC_RELEASE);
	return n_lost;
}

unsigned flow_learn_take(struct flow_learn *learn, unsigned worker, struct flow_unknown out[],
	unsigned n)
{
	struct flow_learn_ring *ring = learn->ring[worker];
	// Pairs with the store in flow_learn_put.
	const uint32_t n_there = __atomic_load_n(&ring->written, __ATOMIC_ACQUIRE) - ring->read;

	n = MIN_OF(n, n_there);
	for (unsigned i = 0; i < n; i++)
		out[i] = ring->item[(ring->read + i) % RING];
	// Pairs with the load in space_of: the worker may overwrite them.
	__atomic_store_n(&ring->read, ring->read + n, __ATOMIC_RELEASE);
	return n;
}
