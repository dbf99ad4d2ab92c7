// IPv4 in bulk, for any CPU: node, for some a leaf outside it, and for a few a tail. Lane.
#include "fib/lookup.h"

#include "fib/tails.h"

// How many, and whether the table is too large for a core's own caches.
struct pass {
	unsigned n;
	bool is_far;
};

// The same as piece_leaf_inside() of a node that holds leaves as they are: with one route a quarter
// faster.
static inline uint16_t leaf_plain(const struct piece *piece)
{
	uint16_t word[8];

	memcpy(word, piece->half, sizeof(word));
	return word[(offsetof(struct fib_node4, leaf) / sizeof(word[0]) + piece->run) % 8];
}

static uint64_t find_tails(const uint16_t leaf[], unsigned n)
{
	uint64_t found = 0;

	for (unsigned i = 0; i < n; i++)
		found |= (uint64_t)(leaf[i] >> 15) << i;
	return found;
}

static inline __attribute__((always_inline)) struct fib_begun4 begin(const struct fib_view *view,
	const uint32_t dst[], uint16_t leaf[], struct pass pass)
{
	struct fib_begun4 begun = {.outside = 0};
	struct ahead ahead;
	uint16_t any = 0;

	for (unsigned i = 0; i < pass.n; i++) {
		const struct piece piece = piece_of(view, dst[i]);
		uint32_t is_outside = piece_is_outside(&piece);

		if (pass.is_far || rarely(piece.half[0] & 1))
			leaf[i] = piece_leaf_inside(&piece) & (is_outside - 1);
		else
			leaf[i] = leaf_plain(&piece);
		any |= leaf[i];
		begun.outside |= (uint64_t)is_outside << i;
		ahead.number[i] = piece_number(&piece) & -is_outside;
		ahead.tail[i] = piece_tail(&piece);
	}
	if (any & LEAF_TAIL)
		begun.tails = find_tails(leaf, pass.n);
	if (pass.is_far)
		fetch_later(view, leaf, &ahead, begun);
	return begun;
}

struct fib_begun4 lookup4_begin_scalar(const struct fib_view *view, const uint32_t dst[],
	uint16_t leaf[], unsigned n)
{
	return begin(view, dst, leaf, (struct pass){n, true});
}

void fib_lookup4_go_on(const struct fib_view *view, const uint32_t dst[], uint16_t leaf[],
	struct fib_begun4 *begun)
{
	take_leaves(view, dst, leaf, begun);
}

void fib_lookup4_end(const struct fib_view *view, const uint32_t dst[], uint16_t leaf[],
	const struct fib_begun4 *begun)
{
	take_tails(view, dst, leaf, begun->tails);
}

static inline __attribute__((always_inline)) void lookup(const struct fib_view *view,
	const uint32_t dst[], uint16_t hop[], struct pass pass)
{
	for (unsigned left = pass.n; left; left -= pass.n, dst += pass.n, hop += pass.n) {
		pass.n = MIN_OF(left, FIB_BURST4);
		for (unsigned i = 0; pass.is_far && i < pass.n; i++)
			rte_prefetch1(&view->node4[dst[i] >> 13]);
		struct fib_begun4 begun = begin(view, dst, hop, pass);
		take_leaves(view, dst, hop, &begun);
		take_tails(view, dst, hop, begun.tails);
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
