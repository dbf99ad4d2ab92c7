// IPv4 in bulk, for any CPU: node, leaf, and for a few a tail. Lane.
#include "fib/lookup.h"

#include "fib/tails.h"

enum { BURST = 64 };

// A shift by (63 - slot), of which the CPU looks at the lowest six bits, leaves the bits up to and
// with the slot.
static inline uint32_t leaf_number(const struct fib_node *node, uint32_t dst)
{
	return node->base + __builtin_popcountll(node->runs << (~(dst >> 8) & 63));
}

static inline void lookup_near(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
	uint32_t tail[], unsigned n)
{
	const struct fib_node *const nodes = view->node4;
	const uint16_t *const leaves = view->leaf4;

	for (unsigned i = 0; i < n; i++) {
		struct fib_node node = fib_node_load(&nodes[dst[i] >> 14]);
		hop[i] = leaves[leaf_number(&node, dst[i])];
		tail[i] = node.tail;
	}
}

static inline void lookup_far(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
	uint32_t tail[], unsigned n)
{
	const struct fib_node *const nodes = view->node4;
	const uint16_t *const leaves = view->leaf4;
	uint32_t leaf[BURST];

	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(&nodes[dst[i] >> 14]);
	for (unsigned i = 0; i < n; i++) {
		struct fib_node node = fib_node_load(&nodes[dst[i] >> 14]);
		leaf[i] = leaf_number(&node, dst[i]);
		tail[i] = node.tail;
		rte_prefetch0(&leaves[leaf[i]]);
	}
	for (unsigned i = 0; i < n; i++)
		hop[i] = leaves[leaf[i]];
}

void lookup4_near_scalar(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
	unsigned n)
{
	uint32_t tail[BURST];
	uint16_t leaf[BURST] = {0};

	lookup_near(view, dst, leaf, tail, n);
	finish_tails(view, tail, dst, leaf);
	memcpy(hop, leaf, n * sizeof(*hop));
}

void lookup4_far_scalar(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
	unsigned n)
{
	uint32_t tail[BURST];
	uint16_t leaf[BURST] = {0};

	lookup_far(view, dst, leaf, tail, n);
	finish_tails(view, tail, dst, leaf);
	memcpy(hop, leaf, n * sizeof(*hop));
}
