// IPv4 in bulk, for any CPU: node, for some a leaf outside it, and for a few a tail. Lane.
#include "fib/lookup.h"

#include "fib/tails.h"

// How many, and whether the table is too large for a core's own caches.
struct pass {
	unsigned n;
	bool is_far;
};

// The same as leaf_inside() of a node that holds leaves as they are: with one route a quarter
// faster.
static inline uint16_t leaf_plain(const struct piece *piece)
{
	uint16_t word[8];

	memcpy(word, piece->half, sizeof(word));
	return word[(offsetof(struct fib_node4, leaf) / sizeof(word[0]) + piece->run) % 8];
}

static inline __attribute__((always_inline)) uint64_t begin(const struct fib_view *view,
	const uint32_t dst[], uint16_t leaf[], struct pass pass)
{
	struct ahead ahead;
	uint64_t outside = 0;

	memset(leaf + pass.n, 0, (FIB_BURST4 - pass.n) * sizeof(*leaf));
	for (unsigned i = 0; i < pass.n; i++) {
		const struct piece piece = piece_of(view, dst[i]);
		uint32_t out = is_outside(&piece);

		if (pass.is_far || rarely(piece.half[0] & 1))
			leaf[i] = leaf_inside(&piece) & (out - 1);
		else
			leaf[i] = leaf_plain(&piece);
		outside |= (uint64_t)out << i;
		ahead.number[i] = leaf_number(&piece) & -out;
		ahead.tail[i] = tail_base(&piece);
	}
	if (pass.is_far)
		fetch_later(view, leaf, &ahead, outside | find_tails(leaf));
	return outside;
}

uint64_t lookup4_begin_scalar(const struct fib_view *view, const uint32_t dst[], uint16_t leaf[],
	unsigned n)
{
	return begin(view, dst, leaf, (struct pass){n, true});
}

void fib_lookup4_go_on(const struct fib_view *view, const uint32_t dst[], uint16_t leaf[],
	uint64_t outside)
{
	take_leaves(view, dst, leaf, outside);
}

void fib_lookup4_end(const struct fib_view *view, const uint32_t dst[], uint16_t leaf[])
{
	take_tails(view, dst, leaf);
}

static inline __attribute__((always_inline)) void lookup(const struct fib_view *view,
	const uint32_t dst[], uint16_t hop[], struct pass pass)
{
	uint16_t leaf[FIB_BURST4];

	for (unsigned left = pass.n; left; left -= pass.n, dst += pass.n, hop += pass.n) {
		pass.n = MIN_OF(left, FIB_BURST4);
		for (unsigned i = 0; pass.is_far && i < pass.n; i++)
			rte_prefetch1(&view->node4[dst[i] >> 13]);
		take_leaves(view, dst, leaf, begin(view, dst, leaf, pass));
		take_tails(view, dst, leaf);
		memcpy(hop, leaf, pass.n * sizeof(*hop));
	}
}

void lookup4_near_scalar(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
	unsigned n)
{
	lookup(view, dst, hop, (struct pass){n, false});
}

void lookup4_far_scalar(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
	unsigned n)
{
	lookup(view, dst, hop, (struct pass){n, true});
}
