// The nodes of the workers' copy of IPv4, wherever they are; internal to publish4.c and pages4.c.
// Control thread.
#pragma once

#include "fib/publish.h"

// Rebuilds a pair of nodes from a tree, and frees what they led to before. A new node is all 0.
void nodes4_publish(struct fib *fib, uint16_t tree, uint32_t pair, struct fib_node4 place[2]);
// Frees what a node leads to, once nothing leads to the node any more.
void nodes4_retire(struct fib *fib, const struct fib_node4 *node);

// Rebuilds what was touched (publish->touched) of a tree in a VRF.
void pages4_publish(struct fib *fib, uint16_t tree);
// Calls for each node of a page that a VRF has for its own.
void pages4_each(struct fib *fib, void (*call)(struct fib *fib, struct fib_node4 *node));
