// The nodes of the workers' copy of IPv4, wherever they are; internal to publish4.c, pages4.c and
// tail_lines.c.
// Control thread.
#pragma once

#include "fib/publish.h"

// Rebuilds a pair of nodes from a tree, and frees what they led to before. A new node is all 0.
void nodes4_publish(struct fib *fib, uint16_t tree, uint32_t pair, struct fib_node4 place[2]);
// Frees what a node leads to, once nothing leads to the node any more.
void nodes4_retire(struct fib *fib, const struct fib_node4 *node);

// A node that has one hop.
struct fib_node4 nodes4_of_hop(struct publish4 *publish, uint32_t hop);

// Rebuilds what was touched (publish->touched) of a tree in a VRF.
void pages4_publish(struct fib *fib, uint16_t tree);
// Calls for each node of a page that a VRF has for its own.
void pages4_each(struct fib *fib, void (*call)(struct fib *fib, struct fib_node4 *node));

// --- tail_lines.c

// Writes a line of one wide hop. / The lines of a /24 with longer prefixes, by its runs; returns
// what its leaf says of their form: LEAF_FLAT, LEAF_WIDE.
void tail_make_one(union tail_line *line, uint32_t hop);
uint16_t tail_make(union tail_line *lines, const struct rib_runs *runs);

// The number of lines of a tail leaf.
static inline uint32_t tail_leaf_lines(uint16_t leaf)
{
	if (!(leaf & LEAF_FLAT))
		return 1;
	return leaf & LEAF_WIDE ? TAIL_WIDE_FLAT_LINES : TAIL_FLAT_LINES;
}
