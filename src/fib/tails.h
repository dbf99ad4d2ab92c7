// The later steps of those IPv4 destinations whose leaf stands outside its node, and of the few
// whose /24 has longer prefixes, for a whole burst at its end: what is fetched one by one would
// stall all the others. Lane.
#pragma once

#include "fib/layout.h"

// What the first step hands to the fetches: of leaves outside (others: 0) their number, of all the
// first tail line of their node.
struct ahead {
	uint32_t number[FIB_BURST4], tail[FIB_BURST4];
};

// A node as two words, and the number of the run that a destination is in.
struct piece {
	uint64_t half[2];
	uint32_t run;
};

static inline struct piece piece_of(const struct fib_view *view, uint32_t dst)
{
	word16 word = word16_load(&view->node4[dst >> 13]);
	struct piece piece;

	memcpy(piece.half, &word, sizeof(piece.half));
	// A shift by (31 - slot), of which the CPU looks at the lowest five bits, leaves the bits
	// up to and with the slot.
	piece.run = __builtin_popcount((uint32_t)piece.half[0] << (~(dst >> 8) & 31));
	return piece;
}

static inline uint32_t tail_base(const struct piece *piece)
{
	return piece->half[1] >> 32;
}

static inline uint32_t leaf_number(const struct piece *piece)
{
	return (piece->half[0] >> 33) + piece->run;
}

static inline uint32_t is_narrow(const struct piece *piece)
{
	return piece->half[0] & piece->half[0] >> 32 & 1;
}

static inline uint32_t is_outside(const struct piece *piece)
{
	return piece->half[0] & ~(piece->half[0] >> 32) & 1;
}

// The leaf of a node that holds its leaves, as bytes or as they are. Arithmetic, for no CPU can
// guess which it is.
static inline uint16_t leaf_inside(const struct piece *piece)
{
	uint32_t narrow = is_narrow(piece);
	uint32_t place = offsetof(struct fib_node4, leaf) + (piece->run << (1 - narrow));
	uint32_t leaf = piece->half[place >> 3 & 1] >> 8 * (place & 7) & 0xffff >> 8 * narrow;

	return leaf + FIB_NARROW_AFTER * (narrow & (leaf != 0));
}

// A leaf is of the same moment as its node, from which also its tail's first line is known.
static inline uint16_t leaf_of(const struct fib_view *view, const struct piece *piece)
{
	return is_outside(piece) ? view->leaf4[leaf_number(piece)] : leaf_inside(piece);
}

static inline const union tail_line *tail_line_of(const struct fib_view *view, uint32_t base,
	uint16_t leaf)
{
	const union tail_line *tail = view->tail4;

	return &tail[base + (leaf & LEAF_LINE)];
}

static inline uint16_t hop_of(const struct fib_view *view, uint32_t dst)
{
	const struct piece piece = piece_of(view, dst);
	uint16_t leaf = leaf_of(view, &piece);

	if (!(leaf & LEAF_TAIL))
		return leaf;
	return tail_hop(tail_line_of(view, tail_base(&piece), leaf), leaf & LEAF_FLAT, dst & 255);
}

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

// Fetches the leaves outside their nodes, and for each of them the first tail line of its node; and
// the tails that leaves within lead to. Bits say which these are.
static inline void fetch_later(const struct fib_view *view, const uint16_t leaf[],
	const struct ahead *ahead, uint64_t which)
{
	for (; which; which &= which - 1) {
		unsigned i = __builtin_ctzll(which);

		rte_prefetch1(&view->leaf4[ahead->number[i]]);
		rte_prefetch1(tail_line_of(view, ahead->tail[i], leaf[i]));
	}
}

// Reads the leaves outside, and fetches the tails that they lead to.
static inline void take_leaves(const struct fib_view *view, const uint32_t dst[], uint16_t leaf[],
	uint64_t outside)
{
	uint64_t with_tail = 0;

	for (; outside; outside &= outside - 1) {
		unsigned i = __builtin_ctzll(outside);
		const struct piece piece = piece_of(view, dst[i]);

		leaf[i] = leaf_of(view, &piece);
		with_tail |= (uint64_t)(leaf[i] >> 15) << i;
	}
	for (; with_tail; with_tail &= with_tail - 1) {
		unsigned i = __builtin_ctzll(with_tail);
		const struct piece piece = piece_of(view, dst[i]);

		rte_prefetch1(tail_line_of(view, tail_base(&piece), leaf[i]));
	}
}

// Replaces leaves that lead to tails by hops.
static inline void take_tails(const struct fib_view *view, const uint32_t dst[], uint16_t leaf[])
{
	for (uint64_t left = find_tails(leaf); left; left &= left - 1) {
		unsigned i = __builtin_ctzll(left);

		leaf[i] = hop_of(view, dst[i]);
	}
}
