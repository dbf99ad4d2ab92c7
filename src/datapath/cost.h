// Estimates the cost of a packet, to distinguish a loop iteration that is long because of its
// frames from a stall. Worker.
#pragma once

#include "base/bits.h"

#include <stdint.h>

enum { COST_STEPS = 4, COST_MIN_PACKETS = 8, COST_FIRST_MAX = 10000 };

// Returns the new estimate in cycles per packet after a timed burst of `n` packets took `cycles` in
// all; `cost` is the old one, 0: unknown. A burst never measures less than its packets cost, so a
// lower measurement takes effect at once, down to at most half above this burst's cost: the first
// burst, with cold caches, does not hide stalls for long. The first estimate is limited to
// COST_FIRST_MAX, because the core may have been preempted during that burst. Upwards the
// estimate moves by at most a quarter, and only for bursts of at least COST_MIN_PACKETS: neither
// preemption during one burst nor the fixed cost of a poll with a single packet hides the next
// stall. The estimate follows larger frames within some ten timed bursts.
static inline uint64_t cost_update(uint64_t cost, uint64_t cycles, unsigned n)
{
	uint64_t each = cycles / n;

	if (each < cost)
		return each + MIN_OF(cost - each, each) / 2;
	if (n < COST_MIN_PACKETS)
		return cost;
	return MIN_OF(each, cost ? cost + cost / COST_STEPS + 1 : COST_FIRST_MAX);
}
