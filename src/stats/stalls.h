// The most recent stalls of a worker, i.e. times in which it did not poll, usually because it was
// preempted. Single writer, the worker; readable while it runs. Nothing is recorded while loop
// iterations are short enough, or if the number of frames explains the time:
// - a worker of dl3d records an iteration that took STALLS_LEAST_US longer than its frames cost
//   according to the bursts timed last (datapath/cost.h), e.g. 29 us for 64 frames of 1,181
//   cycles each;
// - a worker of dl3gen reads the clock after each burst that it sends or receives, and records the
//   time between two readings: sending a burst of frames of up to 1,518 bytes, or accounting for
//   one and receiving the next, normally takes less than STALLS_LEAST_US.
// The recorded time is the whole iteration, i.e. how long no ring was polled.
#pragma once

#include "base/bits.h"

#include <stdint.h>
#include <string.h>

enum { STALLS_SLOTS = 1024, STALLS_KNOWN = STALLS_SLOTS - 1, STALLS_LEAST_US = 20 };

struct stall {
	uint64_t end, cycles; // in TSC cycles
};

struct stalls {
	uint64_t n; // recorded so far; number i is in slot i mod STALLS_SLOTS
	struct stall slot[STALLS_SLOTS];
} LINE_ALIGNED;

// Records a stall. Worker. A reader that sees number n in a slot also sees at least n in `n`, and
// so detects which slots were overwritten while it was reading.
static inline void stalls_record(struct stalls *stalls, uint64_t end, uint64_t cycles)
{
	uint64_t n = stalls->n;
	struct stall *slot = &stalls->slot[n % STALLS_SLOTS];

	__atomic_store_n(&slot->end, end, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->cycles, cycles, __ATOMIC_RELEASE);
	__atomic_store_n(&stalls->n, n + 1, __ATOMIC_RELEASE);
}

// Copies the most recent stalls, oldest first; returns how many. *n_forgotten: number of older
// ones. Any thread.
static inline unsigned stalls_read(const struct stalls *stalls, struct stall out[STALLS_KNOWN],
	uint64_t *n_forgotten)
{
	uint64_t n = __atomic_load_n(&stalls->n, __ATOMIC_ACQUIRE);
	uint64_t from = n - MIN_OF(n, (uint64_t)STALLS_KNOWN);
	unsigned n_known = n - from;

	for (uint64_t i = from; i < n; i++) {
		const struct stall *slot = &stalls->slot[i % STALLS_SLOTS];

		out[i - from].end = __atomic_load_n(&slot->end, __ATOMIC_ACQUIRE);
		out[i - from].cycles = __atomic_load_n(&slot->cycles, __ATOMIC_ACQUIRE);
	}
	// The slot of the next number may be partially written.
	uint64_t later = __atomic_load_n(&stalls->n, __ATOMIC_ACQUIRE);
	uint64_t whole = later - MIN_OF(later, (uint64_t)STALLS_KNOWN);
	uint64_t n_lost = MIN_OF(whole - from, (uint64_t)n_known);

	memmove(out, out + n_lost, (n_known - n_lost) * sizeof(*out));
	*n_forgotten = from + n_lost;
	return n_known - n_lost;
}
