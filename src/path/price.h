// What a packet costs a lane by now, to tell a round that was long by its frames from a pause.
// Lane.
#pragma once

#include "base/bits.h"

#include <stdint.h>

enum { PRICE_STEPS = 4 };

// The price in cycles after one more burst was timed: `n` packets, `cycles` together; 0: no price
// is known yet. It moves by a quarter at most: a core that was taken away during one burst does not
// hide the next pause, and frames of another size are known after some ten timed bursts.
static inline uint64_t price_learn(uint64_t price, uint64_t cycles, unsigned n)
{
	uint64_t each = cycles / n, step = price / PRICE_STEPS + 1;

	return price ? MIN_OF(MAX_OF(each, price - MIN_OF(price, step)), price + step) : each;
}
