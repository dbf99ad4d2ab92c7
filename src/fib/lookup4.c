// IPv4 in bulk, for any CPU: node, for some a leaf outside it, and for a few a tail. Lane.
#include "fib/lookup.h"

#include "fib/tails.h"

// How many, and whether the table is too large for a core's own caches.
struct pass {
	unsigned n;
	bool is_far;
};

// Leaf number `run` of a node that holds its leaves, as bytes (is_narrow: 1) or as they are (0).
// Arithmetic, for no CPU can guess which it is.
static inline uint16_t leaf_inside(const uint64_t half[2], uint32_t run, uint32_t is_narrow)
{
	uint32_t place = offsetof(struct fib_node4, leaf) + (run << (1 - is_narrow));
	uint32_t leaf = half[place >> 3 & 1] >> 8 * (place & 7) & 0xffff >> 8 * is_narrow;

	return leaf + FIB_NARROW_AFTER * (is_narrow & (leaf != 0));
}

// The same of a node that holds them as they are: with one route a quarter faster.
static inline uint16_t leaf_plain(const uint64_t half[2], uint32_t run)
{
	uint16_t word[8];

	memcpy(word, half, sizeof(word));
	return word[(offsetof(struct fib_node4, leaf) / sizeof(word[0]) + run) % 8];
}

static inline __attribute__((always_inline)) void pass_nodes(const struct fib_view *view,
	const uint32_t dst[], struct fib_found4 *found, struct pass pass)
{
	const struct fib_node4 *const nodes = view->node4;
	unsigned n_outside = 0;

	for (unsigned i = 0; i < pass.n; i++) {
		word16 word = word16_load(&nodes[dst[i] >> 13]);
		uint64_t half[2];
		memcpy(half, &word, sizeof(half));
		uint32_t runs = half[0], outside = half[0] >> 32;
		// A shift by (31 - slot), of which the CPU looks at the lowest five bits, leaves
		// the bits up to and with the slot.
		uint32_t run = __builtin_popcount(runs << (~(dst[i] >> 8) & 31));
		uint32_t is_narrow = runs & outside & 1, is_outside = runs & ~outside & 1;
		if (pass.is_far || rarely(runs & 1))
			found->leaf[i] = leaf_inside(half, run, is_narrow) & (is_outside - 1);
		else
			found->leaf[i] = leaf_plain(half, run);
		found->outside[n_outside] = i;
		found->number[n_outside] = (outside >> 1) + run;
		n_outside += is_outside;
		found->tail[i] = half[1] >> 32;
	}
	found->n_outside = n_outside;
}

static inline __attribute__((always_inline)) void begin(const struct fib_view *view,
	const uint32_t dst[], struct fib_found4 *found, struct pass pass)
{
	memset(found->leaf, 0, sizeof(found->leaf));
	pass_nodes(view, dst, found, pass);
}

void lookup4_begin_scalar(const struct fib_view *view, const uint32_t dst[],
	struct fib_found4 *found, unsigned n)
{
	found->n = n;
	begin(view, dst, found, (struct pass){n, true});
	fetch_leaves(view, found);
}

void fib_lookup4_go_on(const struct fib_view *view, struct fib_found4 *found)
{
	take_leaves(view, found);
}

void fib_lookup4_end(const struct fib_view *view, const uint32_t dst[], struct fib_found4 *found,
	uint16_t hop[])
{
	take_tails(view, dst, found);
	memcpy(hop, found->leaf, found->n * sizeof(*hop));
}

static inline __attribute__((always_inline)) void lookup(const struct fib_view *view,
	const uint32_t dst[], uint16_t hop[], struct pass pass)
{
	struct fib_found4 found;

	for (unsigned left = pass.n; left; left -= pass.n, dst += pass.n, hop += pass.n) {
		pass.n = MIN_OF(left, FIB_BURST4);
		for (unsigned i = 0; pass.is_far && i < pass.n; i++)
			rte_prefetch1(&view->node4[dst[i] >> 13]);
		begin(view, dst, &found, pass);
		if (pass.is_far)
			fetch_leaves(view, &found);
		take_leaves(view, &found);
		take_tails(view, dst, &found);
		memcpy(hop, found.leaf, pass.n * sizeof(*hop));
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
