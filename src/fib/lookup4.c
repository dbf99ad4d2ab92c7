// IPv4 in bulk: node, leaf, and for the few /24 with longer prefixes a line, put off to the end of the burst. Lane.
#include "fib/layout.h"
#include "fib/lookup.h"

enum { BURST = 64 };

struct late {
	uint32_t line;
	uint8_t index;
	uint8_t flat;
};

static void finish_late(const struct fib_view *view, const struct late *late, unsigned n, const uint32_t dst[], uint16_t hop[])
{
	const union tail_line *tail = view->tail4;

	for (unsigned i = 0; i < n; i++) {
		unsigned slot = dst[late[i].index] & 255;
		hop[late[i].index] = tail_hop(&tail[late[i].line], late[i].flat, slot);
	}
}

void lookup4_scalar(const struct fib_view *view, const uint32_t dst[], uint16_t hop[], unsigned n)
{
	const struct fib_node *const nodes = view->node4;
	const uint16_t *const leaves = view->leaf4;
	const union tail_line *const tail = view->tail4;
	struct late late[BURST + 1];
	unsigned n_late = 0;

	for (unsigned i = 0; i < n; i++) {
		struct fib_node node = fib_node_load(&nodes[dst[i] >> 14]);
		uint16_t leaf = leaves[node.base + node_run(node.runs, dst[i] >> 8 & 63)];
		hop[i] = leaf;
		late[n_late] = (struct late){node.tail + (leaf & LEAF_LINE), i, leaf >> 14 & 1};
		n_late += leaf >> 15;
	}
	for (unsigned i = 0; i < n_late; i++)
		rte_prefetch0(&tail[late[i].line]);
	finish_late(view, late, n_late, dst, hop);
}
