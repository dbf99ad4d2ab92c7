// The second step of the few IPv4 destinations whose /24 has longer prefixes, for a whole burst at
// its end: a line fetched one by one would stall all the others. Lane.
#pragma once

#include "fib/layout.h"

enum { TAILS_BURST = 64 };

// Bit i is set where leaf i leads to a tail: its top bit.
#if defined(__SSE2__)
static inline uint64_t find_tails(const uint16_t leaf[TAILS_BURST])
{
	uint64_t found = 0;

	for (unsigned i = 0; i < TAILS_BURST; i += 16) {
		__m128i low = _mm_loadu_si128((const __m128i *)(leaf + i));
		__m128i high = _mm_loadu_si128((const __m128i *)(leaf + i + 8));
		found |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high)) << i;
	}
	return found;
}
#else
static inline uint64_t find_tails(const uint16_t leaf[TAILS_BURST])
{
	uint64_t found = 0;

	for (unsigned i = 0; i < TAILS_BURST; i++)
		found |= (uint64_t)(leaf[i] >> 15) << i;
	return found;
}
#endif

static inline const union tail_line *tail_of(const struct fib_view *view, uint32_t tail,
	uint16_t leaf)
{
	return (const union tail_line *)view->tail4 + tail + (leaf & LEAF_LINE);
}

// Replaces the leaves of a burst of 64 (unused ones are 0) that lead to tails by hops.
static inline void finish_tails(const struct fib_view *view, const uint32_t tail[],
	const uint32_t dst[], uint16_t hop[])
{
	const uint64_t late = find_tails(hop);

	for (uint64_t left = late; left; left &= left - 1) {
		unsigned i = __builtin_ctzll(left);
		rte_prefetch0(tail_of(view, tail[i], hop[i]));
	}
	for (uint64_t left = late; left; left &= left - 1) {
		unsigned i = __builtin_ctzll(left);
		hop[i] = tail_hop(tail_of(view, tail[i], hop[i]), hop[i] & LEAF_FLAT, dst[i] & 255);
	}
}
