// IPv4 in bulk, for any CPU: node, leaf, and for a few a tail. Lane.
#include "fib/lookup.h"

#include "fib/tails.h"

// A shift by (63 - slot), of which the CPU looks at the lowest six bits, leaves the bits up to and
// with the slot.
static inline uint32_t leaf_number(const struct fib_node *node, uint32_t dst)
{
	return node->base + __builtin_popcountll(node->runs << (~(dst >> 8) & 63));
}

static inline void lookup_near(const struct fib_view *view, const uint32_t dst[],
	struct leaves4 *found, unsigned n)
{
	const struct fib_node *const nodes = view->node4;
	const uint16_t *const leaves = view->leaf4;

	for (unsigned i = 0; i < n; i++) {
		struct fib_node node = fib_node_load(&nodes[dst[i] >> 14]);
		found->leaf[i] = leaves[leaf_number(&node, dst[i])];
		found->tail[i] = node.tail;
	}
}

static inline void lookup_far(const struct fib_view *view, const uint32_t dst[],
	struct leaves4 *found, unsigned n)
{
	const struct fib_node *const nodes = view->node4;
	const uint16_t *const leaves = view->leaf4;
	uint32_t number[TAILS_BURST];

	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(&nodes[dst[i] >> 14]);
	for (unsigned i = 0; i < n; i++) {
		struct fib_node node = fib_node_load(&nodes[dst[i] >> 14]);
		number[i] = leaf_number(&node, dst[i]);
		found->tail[i] = node.tail;
		rte_prefetch0(&leaves[number[i]]);
	}
	for (unsigned i = 0; i < n; i++)
		found->leaf[i] = leaves[number[i]];
}

void lookup4_near_scalar(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
	unsigned n)
{
	struct leaves4 found;

	memset(found.leaf, 0, sizeof(found.leaf));
	lookup_near(view, dst, &found, n);
	finish_tails(view, dst, &found);
	memcpy(hop, found.leaf, n * sizeof(*hop));
}

void lookup4_far_scalar(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
	unsigned n)
{
	struct leaves4 found;

	memset(found.leaf, 0, sizeof(found.leaf));
	lookup_far(view, dst, &found, n);
	finish_tails(view, dst, &found);
	memcpy(hop, found.leaf, n * sizeof(*hop));
}
