// Buffers of ports that are added at run time. The pools of the start have the size that the ports
// of the start need, and a pool cannot grow. Control thread.
#include "port/table.h"

#include "port/facts.h"
#include "port/memory.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char HEAP[] = "added_ports";
enum { MIB = 1 << 20, HEAP_LEAST_MIB = 64 };

// With ordinary pages EAL's own heap cannot grow, so another one gets the memory.
static int add_memory(void *at, size_t bytes, size_t page_bytes)
{
	size_t n_pages = bytes / page_bytes;
	rte_iova_t *addresses = calloc(n_pages, sizeof(*addresses));

	if (!addresses)
		return -ENOMEM;
	for (size_t i = 0; i < n_pages; i++)
		addresses[i] = (uintptr_t)at + i * page_bytes; // as --no-huge implies
	int err = rte_malloc_heap_memory_add(HEAP, at, bytes, addresses, n_pages, page_bytes);

	free(addresses);
	return err ? -rte_errno : 0;
}

static int grow_heap(struct port_table *ports, unsigned mib, struct error *error)
{
	size_t bytes = (size_t)MAX_OF(mib, (unsigned)HEAP_LEAST_MIB) * MIB;
	struct facts_ram ram;

	facts_read_ram(&ram);
	int err = memory_check_ordinary(mib, &ram, error);
	if (err)
		return err;
	if (!ports->has_added_heap && rte_malloc_heap_create(HEAP) != 0)
		return error_set(error, -rte_errno, "memory: DPDK cannot create a heap: %s",
			rte_strerror(rte_errno));
	ports->has_added_heap = true;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	err = at == MAP_FAILED ? -errno : add_memory(at, bytes, sysconf(_SC_PAGESIZE));
	if (!err)
		return 0;
	if (at != MAP_FAILED)
		munmap(at, bytes);
	return error_set(error, err, "memory: cannot add %u MiB to DPDK's memory: %s", mib,
		strerror(-err));
}

static struct rte_mempool *create(struct port_table *ports, const struct pools_node *node, int numa)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "added_%u", ports->n_added);
	return rte_pktmbuf_pool_create(name, node->n_mbufs, node->cache, 0, node->data_room, numa);
}

// Huge pages are allocated by EAL when it needs them.
static struct rte_mempool *create_huge(struct port_table *ports, const struct pools_node *node,
	struct error *error)
{
	struct rte_mempool *pool =
		create(ports, node, node->numa >= 0 ? node->numa : SOCKET_ID_ANY);
	struct facts_pages pages;

	if (pool)
		return pool;
	facts_read_pages(&pages);
	error_set(error, -ENOMEM,
		"memory: the buffers of this port need %u MiB of huge pages, and %u MiB are free; "
		"free some, reserve more (sysctl vm.nr_hugepages), or set fewer descriptors",
		pools_mib(node, 1), pages.free_mib);
	return NULL;
}

static struct rte_mempool *create_ordinary(struct port_table *ports, const struct pools_node *node,
	struct error *error)
{
	unsigned mib = pools_mib(node, sysconf(_SC_PAGESIZE));
	struct rte_mempool *pool = NULL;

	if (ports->has_added_heap)
		pool = create(ports, node, rte_malloc_heap_get_socket(HEAP));
	if (pool)
		return pool;
	if (grow_heap(ports, mib, error))
		return NULL;
	pool = create(ports, node, rte_malloc_heap_get_socket(HEAP));
	if (!pool)
		error_set(error, -ENOMEM,
			"memory: cannot allocate %u buffers of %u bytes for this port: %s; set "
			"fewer descriptors",
			node->n_mbufs, node->object_bytes, rte_strerror(rte_errno));
	return pool;
}

// What a removed port has left; some of its buffers may still be on their way.
static struct added_pool *find_left(struct port_table *ports, const struct pools_node *node)
{
	for (unsigned i = 0; i < ports->n_added; i++) {
		struct added_pool *added = &ports->added[i];

		if (added->port == PORT_NONE && added->numa == node->numa &&
			added->pool->size >= node->n_mbufs)
			return added;
	}
	return NULL;
}

// Such a port and its peer have agreed on the memory that they share when they connected.
static int find_sharer(const struct port_table *ports, unsigned port)
{
	for (unsigned i = port_next(ports->settings, 0); i < ports->settings->n_ports;
		i = port_next(ports->settings, i + 1))
		if (i != port && ports->devices[i].kind.is_zero_copy)
			return i;
	return -1;
}

static int create_for(struct port_table *ports, const struct pools_node *node, unsigned port,
	struct error *error)
{
	struct added_pool *added = &ports->added[ports->n_added];
	int sharer = find_sharer(ports, port);

	if (sharer >= 0)
		return error_set(error, -EBUSY,
			"memory: port %s shares its buffers with its peer (zero-copy), so none can "
			"be allocated while it is open; restart",
			ports->settings->ports[sharer].name);
	if (ports->n_added == PORT_MAX)
		return error_set(error, -ENOMEM,
			"memory: none of the %d pools left by removed ports is large enough; set "
			"fewer descriptors",
			PORT_MAX);
	struct rte_mempool *pool = ports->memory.huge ? create_huge(ports, node, error)
	                                              : create_ordinary(ports, node, error);
	if (!pool)
		return -ENOMEM;
	*added = (struct added_pool){pool, node->numa, port};
	ports->n_added++;
	return 0;
}

int added_pools_take(struct port_table *ports, unsigned port, struct error *error)
{
	struct pools_node node;

	pools_size_added(&node, &ports->pools, ports->settings, &ports->plan, ports->rings, port);
	struct added_pool *left = find_left(ports, &node);
	if (!left)
		return create_for(ports, &node, port, error);
	left->port = port;
	return 0;
}

void added_pools_leave(struct port_table *ports, unsigned port)
{
	for (unsigned i = 0; i < ports->n_added; i++)
		if (ports->added[i].port == port)
			ports->added[i].port = PORT_NONE;
}

struct rte_mempool *added_pools_find(const struct port_table *ports, unsigned port)
{
	for (unsigned i = 0; i < ports->n_added; i++)
		if (ports->added[i].port == port)
			return ports->added[i].pool;
	return NULL;
}
