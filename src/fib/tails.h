// The later steps of those IPv4 destinations whose leaf stands outside its node, and of the few
// whose /24 has longer prefixes, for a whole burst at its end: what is fetched one by one would
// stall all the others. Lane.
#pragma once

#include "fib/layout.h"

// Bit i is set where leaf i leads to a tail: its top bit.
#if defined(__SSE2__)
static inline uint64_t find_tails(const uint16_t leaf[FIB_BURST4])
{
	uint64_t found = 0;

	for (unsigned i = 0; i < FIB_BURST4; i += 16) {
		__m128i low = _mm_loadu_si128((const __m128i *)(leaf + i));
		__m128i high = _mm_loadu_si128((const __m128i *)(leaf + i + 8));
		found |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high)) << i;
	}
	return found;
}
#else
static inline uint64_t find_tails(const uint16_t leaf[FIB_BURST4])
{
	uint64_t found = 0;

	for (unsigned i = 0; i < FIB_BURST4; i++)
		found |= (uint64_t)(leaf[i] >> 15) << i;
	return found;
}
#endif

static inline const union tail_line *tail_of(const struct fib_view *view,
	const struct fib_found4 *found, unsigned i)
{
	const union tail_line *tail = view->tail4;

	return &tail[found->tail[i] + (found->leaf[i] & LEAF_LINE)];
}

static inline void fetch_leaves(const struct fib_view *view, const struct fib_found4 *found)
{
	for (unsigned k = 0; k < found->n_outside; k++)
		rte_prefetch1(&view->leaf4[found->number[k]]);
}

// Reads the leaves outside, and fetches the tails that any leaf leads to.
static inline void take_leaves(const struct fib_view *view, struct fib_found4 *found)
{
	for (unsigned k = 0; k < found->n_outside; k++)
		found->leaf[found->outside[k]] = view->leaf4[found->number[k]];
	found->n_tails = 0;
	for (uint64_t left = find_tails(found->leaf); left; left &= left - 1) {
		unsigned i = __builtin_ctzll(left);

		rte_prefetch1(tail_of(view, found, i));
		found->with_tail[found->n_tails++] = i;
	}
}

// Replaces leaves that lead to tails by hops.
static inline void take_tails(const struct fib_view *view, const uint32_t dst[],
	struct fib_found4 *found)
{
	for (unsigned k = 0; k < found->n_tails; k++) {
		unsigned i = found->with_tail[k];
		const union tail_line *tail = tail_of(view, found, i);

		found->leaf[i] = tail_hop(tail, found->leaf[i] & LEAF_FLAT, dst[i] & 255);
	}
}
