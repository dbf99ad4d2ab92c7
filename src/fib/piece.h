// What a node of IPv4 says of one destination; and the whole way of one, which all bulk lookups go
// for those few that are not done within their nodes. Lane.
#pragma once

#include "fib/layout.h"

// A node as two words, and the number of the run that the destination is in.
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

static inline uint32_t piece_tail(const struct piece *piece)
{
	return piece->half[1] >> 32;
}

// Of a leaf outside.
static inline uint32_t piece_number(const struct piece *piece)
{
	return (piece->half[0] >> 33) + piece->run;
}

static inline uint32_t piece_is_narrow(const struct piece *piece)
{
	return piece->half[0] & piece->half[0] >> 32 & 1;
}

static inline uint32_t piece_is_outside(const struct piece *piece)
{
	return piece->half[0] & ~(piece->half[0] >> 32) & 1;
}

// The leaf of a node that holds its leaves, as bytes or as they are. Arithmetic, for no CPU can
// guess which it is.
static inline uint16_t piece_leaf_inside(const struct piece *piece)
{
	uint32_t narrow = piece_is_narrow(piece);
	uint32_t place = offsetof(struct fib_node4, leaf) + (piece->run << (1 - narrow));
	uint32_t leaf = piece->half[place >> 3 & 1] >> 8 * (place & 7) & 0xffff >> 8 * narrow;

	return leaf + FIB_NARROW_AFTER * (narrow & (leaf != 0));
}

static inline uint16_t piece_leaf(const struct fib_view *view, const struct piece *piece)
{
	return piece_is_outside(piece) ? view->leaf4[piece_number(piece)]
	                               : piece_leaf_inside(piece);
}

// The line that a leaf leads to, of the lines of its node, which begin with `first`. Both are to be
// of one moment: of one load of the node.
static inline const union tail_line *tail_line_of(const struct fib_view *view, uint32_t first,
	uint16_t leaf)
{
	const union tail_line *tail = view->tail4;

	return &tail[first + (leaf & LEAF_LINE)];
}

static inline uint16_t hop_of(const struct fib_view *view, uint32_t dst)
{
	const struct piece piece = piece_of(view, dst);
	uint16_t leaf = piece_leaf(view, &piece);

	if (!(leaf & LEAF_TAIL))
		return leaf;
	return tail_hop(tail_line_of(view, piece_tail(&piece), leaf), leaf & LEAF_FLAT, dst & 255);
}
