// When a worker did not do its work: its newest pauses. One writer, the worker; readable while it
// runs. Nothing is written while the worker comes round in time, nor for a round that its frames
// explain:
// - a worker of dl3d notes a round that took PAUSES_LEAST_US more than its frames cost at the price
//   of the bursts that were timed last (datapath/price.h), 64 frames of 1,181 cycles each 29 us,
//   say;
// - a worker of dl3gen looks at the clock behind each burst that it sends or receives, and notes
// what
//   lies between two looks: to send a burst of frames up to 1,518 bytes, or to account for one and
//   to receive the next, is as a rule less than PAUSES_LEAST_US of work.
// What is noted is the whole time, so how long no ring was emptied.
#pragma once

#include "base/bits.h"

#include <stdint.h>

enum { PAUSES_SLOTS = 1024, PAUSES_KNOWN = PAUSES_SLOTS - 1, PAUSES_LEAST_US = 20 };

struct pause {
	uint64_t end, cycles; // by the TSC
};

struct pauses {
	uint64_t n; // noted so far; number i lies in slot i mod PAUSES_SLOTS
	struct pause slot[PAUSES_SLOTS];
} LINE_ALIGNED;

// The worker's way. A reader that sees a slot of number n sees at least n in `n`, so that it knows
// what was written over while it read.
static inline void pauses_note(struct pauses *pauses, uint64_t end, uint64_t cycles)
{
	uint64_t n = pauses->n;
	struct pause *slot = &pauses->slot[n % PAUSES_SLOTS];

	__atomic_store_n(&slot->end, end, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->cycles, cycles, __ATOMIC_RELEASE);
	__atomic_store_n(&pauses->n, n + 1, __ATOMIC_RELEASE);
}

// The newest ones, oldest first; returns how many. *n_forgotten: older ones. Any thread.
unsigned pauses_read(const struct pauses *pauses, struct pause out[PAUSES_KNOWN],
	uint64_t *n_forgotten);
