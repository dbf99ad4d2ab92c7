// IPv4 in bulk, for any CPU: node, for some a leaf outside it, and for a few a tail. Lane.
#include "fib/lookup.h"

#include "fib/tails.h"

// How many, and whether the table is too large for a core's own caches.
struct pass {
	unsigned n;
	bool is_far;
};

static inline __attribute__((always_inline)) void pass_nodes(const struct fib_view *view,
	const uint32_t dst[], struct leaves4 *found, struct pass pass)
{
	const struct fib_node4 *const nodes = view->node4;

	for (unsigned i = 0; pass.is_far && i < pass.n; i++)
		rte_prefetch0(&nodes[dst[i] >> 13]);
	for (unsigned i = 0; i < pass.n; i++) {
		word16 word = word16_load(&nodes[dst[i] >> 13]);
		struct fib_node4 node;
		uint16_t half[8];
		memcpy(&node, &word, sizeof(node));
		memcpy(half, &word, sizeof(half));
		// A shift by (31 - slot), of which the CPU looks at the lowest five bits, leaves
		// the bits up to and with the slot.
		uint32_t run = __builtin_popcount(node.runs << (~(dst[i] >> 8) & 31));
		bool is_outside = node.runs & 1;
		found->leaf[i] =
			is_outside ? 0 : half[(offsetof(struct fib_node4, leaf) / 2 + run) % 8];
		found->outside[found->n_outside] = i;
		found->number[found->n_outside] = node.base + run;
		found->n_outside += is_outside;
		found->tail[i] = node.tail;
	}
}

static inline __attribute__((always_inline)) void lookup_burst(const struct fib_view *view,
	const uint32_t dst[], uint16_t hop[], struct pass pass)
{
	struct leaves4 found;

	found.n_outside = 0;
	memset(found.leaf, 0, sizeof(found.leaf));
	pass_nodes(view, dst, &found, pass);
	take_leaves(view, &found, pass.n);
	take_tails(view, dst, &found);
	memcpy(hop, found.leaf, pass.n * sizeof(*hop));
}

static inline __attribute__((always_inline)) void lookup(const struct fib_view *view,
	const uint32_t dst[], uint16_t hop[], struct pass pass)
{
	for (unsigned left = pass.n; left; left -= pass.n, dst += pass.n, hop += pass.n) {
		pass.n = MIN_OF(left, TAILS_BURST);
		lookup_burst(view, dst, hop, pass);
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
