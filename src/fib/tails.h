// The later steps of those IPv4 destinations whose leaf stands outside its node, and of the few
// whose /24 has longer prefixes, for a whole burst at its end: what is fetched one by one would
// stall all the others. Lane.
#pragma once

#include "fib/layout.h"

enum { TAILS_BURST = 64 };

// What the first step found for a burst: leaves (unused ones 0); where bit i of `outside` is set
// the number of the leaf instead; and the first tail line of their nodes, which must be of the same
// moment.
struct leaves4 {
	uint64_t outside;
	uint16_t leaf[TAILS_BURST];
	uint32_t number[TAILS_BURST];
	uint32_t tail[TAILS_BURST];
};

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

static inline const union tail_line *tail_of(const struct fib_view *view,
	const struct leaves4 *found, unsigned i)
{
	const union tail_line *tail = view->tail4;

	return &tail[found->tail[i] + (found->leaf[i] & LEAF_LINE)];
}

// Reads the leaves outside. Bit i of the result is set where leaf i leads to a tail, which is being
// fetched.
static inline uint64_t take_leaves(const struct fib_view *view, struct leaves4 *found)
{
	for (uint64_t left = found->outside; left; left &= left - 1) {
		unsigned i = __builtin_ctzll(left);
		found->leaf[i] = view->leaf4[found->number[i]];
	}
	const uint64_t late = find_tails(found->leaf);

	for (uint64_t left = late; left; left &= left - 1)
		rte_prefetch0(tail_of(view, found, __builtin_ctzll(left)));
	return late;
}

// Replaces leaves that lead to tails by hops.
static inline void take_tails(const struct fib_view *view, const uint32_t dst[],
	struct leaves4 *found, uint64_t late)
{
	for (uint64_t left = late; left; left &= left - 1) {
		unsigned i = __builtin_ctzll(left);
		const union tail_line *tail = tail_of(view, found, i);
		found->leaf[i] = tail_hop(tail, found->leaf[i] & LEAF_FLAT, dst[i] & 255);
	}
}
