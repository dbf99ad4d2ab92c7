// The later steps of those IPv4 destinations whose leaf stands outside its node, and of the few
// whose /24 has longer prefixes, for a whole burst: what is fetched one by one would stall all the
// others. They are looked up anew from their nodes, which are near by now, so that a node may
// change between the steps. Lane.
#pragma once

#include "fib/piece.h"

// What the first step hands to the fetches: of leaves outside (others: 0) their number, of all the
// first tail line of their node.
struct ahead {
	uint32_t number[FIB_BURST4], tail[FIB_BURST4];
};

// Fetches the leaves outside their nodes, and for each of them the first tail line of its node; and
// the tails that leaves within lead to.
static inline void fetch_later(const struct fib_view *view, const uint16_t leaf[],
	const struct ahead *ahead, struct fib_begun4 begun)
{
	for (uint64_t left = begun.outside | begun.tails; left; left &= left - 1) {
		unsigned i = __builtin_ctzll(left);

		rte_prefetch1(&view->leaf4[ahead->number[i]]);
		rte_prefetch1(tail_line_of(view, ahead->tail[i], leaf[i]));
	}
}

// Reads the leaves outside, and fetches the tails that they lead to.
static inline void take_leaves(const struct fib_view *view, const uint32_t dst[], uint16_t leaf[],
	struct fib_begun4 *begun)
{
	uint64_t tails = 0;

	for (uint64_t left = begun->outside; left; left &= left - 1) {
		unsigned i = __builtin_ctzll(left);
		const struct piece piece = piece_of(view, dst[i]);

		leaf[i] = piece_leaf(view, &piece);
		tails |= (uint64_t)(leaf[i] >> 15) << i;
	}
	begun->tails |= tails;
	for (; tails; tails &= tails - 1) {
		unsigned i = __builtin_ctzll(tails);
		const struct piece piece = piece_of(view, dst[i]);

		rte_prefetch1(tail_line_of(view, piece_tail(&piece), leaf[i]));
	}
}

// Replaces leaves that lead to tails by hops.
static inline void take_tails(const struct fib_view *view, const uint32_t dst[], uint16_t leaf[],
	uint64_t tails)
{
	for (; tails; tails &= tails - 1) {
		unsigned i = __builtin_ctzll(tails);

		leaf[i] = hop_of(view, dst[i]);
	}
}
