// Sizes of mbuf pools.
#include "port/pools.h"

#include "base/bits.h"
#include "port/kind.h"

#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <string.h>

// Bytes around an IP packet of MTU bytes: Ethernet header, two VLAN tags, FCS (some devices store
// it).
enum {
	FRAME_AROUND = 14 + 8 + 4,
	BURSTS_IN_HAND = 4,
	MIB = 1 << 20,
	MBUFS_LEAST = 4096,
	SMALL_PAGE_BYTES = 4096,
};

static unsigned find_node(struct pools_plan *pools, int numa)
{
	for (unsigned i = 0; i < pools->n_nodes; i++)
		if (pools->nodes[i].numa == numa)
			return i;
	if (pools->n_nodes == PLAN_MAX_NODES)
		return 0;
	pools->nodes[pools->n_nodes].numa = numa;
	return pools->n_nodes++;
}

unsigned pools_of_port(const struct pools_plan *pools, const struct plan *plan, unsigned port)
{
	for (unsigned i = 0; i < pools->n_nodes; i++)
		if (pools->nodes[i].numa == plan->ports[port].numa)
			return i;
	return 0;
}

// Buffers with an even number of cache lines map to few cache sets (a power of two costs 14 cycles
// per packet, an odd number 3).
static void size_object(struct pools_node *node, const struct port_settings *port)
{
	unsigned frame = (port->mtu ? port->mtu : PORT_DEFAULT_MTU) + FRAME_AROUND;
	struct kind kind;

	kind_read(port->device, &kind);
	frame = MAX_OF(frame, kind.buffer_bytes);
	unsigned room = MAX_OF(frame, (unsigned)POOLS_MIN_DATA_ROOM) + POOLS_HEADROOM;
	unsigned header = round_up(sizeof(struct rte_mempool_objhdr), CACHE_LINE_BYTES) +
	                  sizeof(struct rte_mbuf);

	room = round_up(room, CACHE_LINE_BYTES);
	if ((header + room) / CACHE_LINE_BYTES % 2 == 0)
		room += CACHE_LINE_BYTES;
	if (room <= node->data_room)
		return;
	node->data_room = room;
	node->object_bytes = header + room;
}

// A frame from any pool may be in the transmit ring of any port.
static unsigned count_transmit_mbufs(const struct port_table_settings *settings,
	const struct plan *plan, const struct pools_rings rings[])
{
	unsigned n = 0;

	for (unsigned i = 0; i < settings->n_ports; i++)
		n += plan->ports[i].n_tx * rings[i].n_tx_descriptors;
	return n;
}

// The pool's ring holds a power of two minus one; a count just below that wastes nothing.
static void round_number(struct pools_node *node)
{
	node->n_mbufs = MAX_OF(node->n_mbufs, (unsigned)MBUFS_LEAST);
	node->n_mbufs = round_up(node->n_mbufs + 1, 1024) - 1;
}

// Packets between workers: in rings, and held while flows move from one worker to another.
static unsigned count_handed_mbufs(const struct plan *plan)
{
	unsigned n = 0;

	for (unsigned i = 0; i < plan->n_workers; i++)
		if (plan->workers[i].n_hands_to)
			n += (plan->workers[i].n_hands_to + 1) * PORT_HAND_SLOTS;
	return n;
}

// A pool's share of rings, caches (mempool caches may hold half as much again) and bursts being
// processed.
static void count_mbufs(struct pools_plan *pools, const struct port_table_settings *settings,
	const struct plan *plan, const struct pools_rings rings[])
{
	unsigned on_wire = count_transmit_mbufs(settings, plan, rings);
	unsigned burst = settings->burst ? settings->burst : 64;

	for (unsigned i = 0; i < settings->n_ports; i++) {
		struct pools_node *node = &pools->nodes[find_node(pools, plan->ports[i].numa)];

		size_object(node, &settings->ports[i]);
		node->n_mbufs += plan->ports[i].n_rx * rings[i].n_rx_descriptors + rings[i].n_extra;
	}
	for (unsigned i = 0; i < pools->n_nodes; i++) {
		struct pools_node *node = &pools->nodes[i];

		node->cache = RTE_MEMPOOL_CACHE_MAX_SIZE;
		node->n_mbufs += on_wire + count_handed_mbufs(plan) + settings->n_held_mbufs +
		                 plan->n_workers * (node->cache * 2 + BURSTS_IN_HAND * burst +
							   settings->n_lent_mbufs);
		round_number(node);
	}
}

// Memory in MiB with buffers in whole pages of `page_bytes`: the pool lets no buffer cross the end
// of a small page. 1: buffers as they are, plus 2 % for the gaps at the ends of huge pages.
unsigned pools_mib(const struct pools_node *node, unsigned page_bytes)
{
	uint64_t ring_slots = 1;

	while (ring_slots < node->n_mbufs + 1u)
		ring_slots *= 2;
	uint64_t bytes = (uint64_t)node->n_mbufs * round_up(node->object_bytes, page_bytes) +
	                 ring_slots * sizeof(void *);
	return (bytes + bytes / 50 + MIB - 1) / MIB;
}

void pools_plan(struct pools_plan *pools, const struct port_table_settings *settings,
	const struct plan *plan, const struct pools_rings rings[])
{
	memset(pools, 0, sizeof(*pools));
	count_mbufs(pools, settings, plan, rings);
	for (unsigned i = 0; i < pools->n_nodes; i++) {
		const struct pools_node *node = &pools->nodes[i];
		unsigned mib = pools_mib(node, 1);

		pools->mib += mib;
		pools->small_pages_mib += pools_mib(node, SMALL_PAGE_BYTES);
		pools->node_mib[node->numa < 0 || node->numa >= PLAN_MAX_NODES ? 0 : node->numa] +=
			mib;
	}
	unsigned own = POOLS_BASE_MIB + settings->n_ports * POOLS_PORT_MIB;

	pools->mib += own;
	pools->small_pages_mib += own;
	pools->node_mib[plan->n_workers ? MAX_OF(0, plan->workers[0].numa) % PLAN_MAX_NODES : 0] +=
		own;
}

// Transmit rings hold frames of all pools; together they have a frame for each of their slots.
void pools_size_added(struct pools_node *out, const struct pools_plan *pools,
	const struct port_table_settings *settings, const struct plan *plan,
	const struct pools_rings rings[], unsigned port)
{
	unsigned burst = settings->burst ? settings->burst : 64;
	const struct plan_port *p = &plan->ports[port];

	*out = pools->nodes[pools_of_port(pools, plan, port)];
	out->numa = p->numa;
	out->n_mbufs = p->n_rx * rings[port].n_rx_descriptors + rings[port].n_extra +
	               p->n_tx * rings[port].n_tx_descriptors + count_handed_mbufs(plan) +
	               plan->n_workers * (out->cache * 2 + BURSTS_IN_HAND * burst);
	round_number(out);
}
