// Estimates the cost of a packet, to distinguish a round that is long because of its frames from a
// stall. Worker.
#pragma once

#include "base/bits.h"

#include <stdint.h>

enum { PRICE_STEPS = 4, PRICE_PACKETS_LEAST = 8, PRICE_FIRST_MOST = 10000 };

// Returns the new estimate in cycles per packet after a timed burst of `n` packets took `cycles` in
// all; `price` is the old one, 0: unknown. A burst never measures less than its packets cost, so a
// lower measurement takes effect at once, down to at most half above this burst's cost: the first
// burst, with cold caches, does not hide stalls for long. The first estimate is limited to
// PRICE_FIRST_MOST, because the core may have been preempted during that burst. Upwards the
// estimate moves by at most a quarter, and only for bursts of at least PRICE_PACKETS_LEAST: neither
// preemption during one burst nor the fixed cost of a poll with a single packet hides the next
// stall. The estimate follows larger frames within some ten timed bursts.
static inline uint64_t price_learn(uint64_t price, uint64_t cycles, unsigned n)
{
	uint64_t each = cycles / n;

	if (each < price)
		return each + MIN_OF(price - each, each) / 2;
	if (n < PRICE_PACKETS_LEAST)
		return price;
	return MIN_OF(each, price ? price + price / PRICE_STEPS + 1 : PRICE_FIRST_MOST);
}
