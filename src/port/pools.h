// Computes how many mbufs of which size each NUMA node needs, and the memory for them. Pure.
#pragma once

#include "port/plan.h"

#include <stdint.h>

enum { POOLS_HEADROOM = 128, POOLS_MIN_DATA_ROOM = 2048, POOLS_PORT_MIB = 2, POOLS_BASE_MIB = 24 };
// A burst of guests' frames of 64 KiB, and the segments of one.
enum { POOLS_OFFLOAD_MBUFS = 64 * 33 + 256 };

struct pools_node {
	int numa;
	unsigned n_mbufs;
	unsigned data_room;    // including headroom
	unsigned cache;        // size of a worker's mempool cache
	unsigned object_bytes; // pool header, mbuf and data room: an odd number of cache lines
};

struct pools_plan {
	unsigned n_nodes;
	struct pools_node nodes[PLAN_MAX_NODES];
	unsigned mib;             // all pools, and DPDK's own memory
	unsigned small_pages_mib; // the same with 4 KiB pages; each buffer takes whole pages
	unsigned node_mib[PLAN_MAX_NODES]; // the same by NUMA node number
};

// A port's descriptors after adjustment to the device; same index as in settings.
struct pools_rings {
	uint16_t n_rx_descriptors, n_tx_descriptors;
	uint32_t n_extra; // mbufs that the device itself keeps (net_pcap's infinite_rx), or that
	                  // its longest frames take
};

// Sizes the pools so that receiving still finds mbufs when all rings are full and all workers hold
// full bursts and caches.
void pools_plan(struct pools_plan *pools, const struct port_table_settings *settings,
	const struct plan *plan, const struct pools_rings rings[]);

// Sizes the pool of a port that is added at run time: for its own queues, and what workers hold of
// it. Its buffers are as large as those of the port's node.
void pools_size_added(struct pools_node *out, const struct pools_plan *pools,
	const struct port_table_settings *settings, const struct plan *plan,
	const struct pools_rings rings[], unsigned port);
// Memory of a pool in MiB with buffers in whole pages of `page_bytes` (1: as they are).
unsigned pools_mib(const struct pools_node *node, unsigned page_bytes);

// The pool of the port's node.
unsigned pools_of_port(const struct pools_plan *pools, const struct plan *plan, unsigned port);
