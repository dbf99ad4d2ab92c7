// The later stages of an IPv4 lookup, for destinations whose leaf is outside its node and for the
// few whose /24 has longer prefixes. They process a whole burst, since resolving them one by one
// would stall all other destinations. Worker.
#pragma once

#include "fib/layout.h"

// The line of a leaf, among the lines of its node, which start at `first`. Both must come from the
// same load of the node.
static inline const union tail_line *tail_line_of(const struct fib_view *view, uint32_t first,
	uint32_t leaf)
{
	const union tail_line *tail = view->tail4;

	return &tail[first + (leaf & LEAF_LINE)];
}

// Prefetches the leaves outside their nodes and, for each of them, the first tail line of its node;
// and the tails of leaves inside.
static inline void fetch_later(const struct fib_view *view, const uint32_t leaf[],
	const struct fib_lookup4_state *state)
{
	for (uint64_t left = state->outside | state->tails; left; left &= left - 1) {
		unsigned i = __builtin_ctzll(left);

		rte_prefetch1(&view->leaf4[state->number[i]]);
		rte_prefetch1(tail_line_of(view, state->tail[i], leaf[i]));
	}
}

// Reads the leaves outside their nodes and prefetches the tails that they lead to.
static inline void take_leaves(const struct fib_view *view, uint32_t leaf[],
	struct fib_lookup4_state *state)
{
	uint64_t tails = 0;

	for (uint64_t left = state->outside; left; left &= left - 1) {
		unsigned i = __builtin_ctzll(left);

		leaf[i] = view->leaf4[state->number[i]];
		tails |= (uint64_t)(leaf[i] >> 15) << i;
	}
	state->tails |= tails;
	for (; tails; tails &= tails - 1) {
		unsigned i = __builtin_ctzll(tails);

		rte_prefetch1(tail_line_of(view, state->tail[i], leaf[i]));
	}
}

// Replaces leaves that lead to tails by hops.
static inline void take_tails(const struct fib_view *view, const uint32_t dst[], uint32_t leaf[],
	const struct fib_lookup4_state *state)
{
	for (uint64_t left = state->tails; left; left &= left - 1) {
		unsigned i = __builtin_ctzll(left);

		leaf[i] = tail_hop(tail_line_of(view, state->tail[i], leaf[i]), leaf[i],
			dst[i] & 255);
	}
}
