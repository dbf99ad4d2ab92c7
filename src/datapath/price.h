// What a packet costs a worker by now, to tell a round that was long by its frames from a pause.
// Worker.
#pragma once

#include "base/bits.h"

#include <stdint.h>

enum { PRICE_STEPS = 4, PRICE_PACKETS_LEAST = 8, PRICE_FIRST_MOST = 10000 };

// The price in cycles after one more burst was timed: `n` packets, `cycles` together; 0: no price
// is known yet. Nothing makes a burst cheaper than its packets are, so down it goes at once to half
// as much again as this burst's, and on from there: the first burst, which finds the caches cold,
// does not hide pauses for long, and believed up to PRICE_FIRST_MOST it does not hide its own: the
// core may have been taken away during it. Upwards it goes by a quarter, and for bursts of
// PRICE_PACKETS_LEAST only: neither a core that was taken away during one burst nor what a poll
// costs a single packet hides the next pause, and larger frames are known after some ten timed
// bursts.
static inline uint64_t price_learn(uint64_t price, uint64_t cycles, unsigned n)
{
	uint64_t each = cycles / n;

	if (each < price)
		return each + MIN_OF(price - each, each) / 2;
	if (n < PRICE_PACKETS_LEAST)
		return price;
	return MIN_OF(each, price ? price + price / PRICE_STEPS + 1 : PRICE_FIRST_MOST);
}
