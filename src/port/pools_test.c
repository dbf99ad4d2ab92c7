// Pool sizes: enough for every ring, worker and cache; buffers with an odd number of cache lines.
#include "port/pools.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct port_table_settings settings;
static struct plan plan;
static struct pools_plan pools;
static struct pools_rings rings[PORT_MAX];

static void make_plan(unsigned n_ports, unsigned n_workers)
{
	memset(&settings, 0, sizeof(settings));
	memset(&plan, 0, sizeof(plan));
	settings.n_ports = n_ports;
	plan.n_workers = n_workers;
	for (unsigned i = 0; i < n_ports; i++) {
		plan.ports[i].n_rx = plan.ports[i].n_tx = n_workers;
		rings[i] = (struct pools_rings){2048, 2048, 0};
	}
}

static void gives_buffers_an_odd_number_of_cache_lines_at_every_mtu(void **state)
{
	for (unsigned mtu = 68; mtu <= 9600; mtu++) {
		make_plan(1, 1);
		settings.ports[0].mtu = mtu;
		pools_plan(&pools, &settings, &plan, rings);
		const struct pools_node *node = &pools.nodes[0];

		assert_int_equal(node->object_bytes % CACHE_LINE_BYTES, 0);
		assert_int_equal(node->object_bytes / CACHE_LINE_BYTES % 2, 1);
		assert_true(node->data_room >= POOLS_HEADROOM + POOLS_MIN_DATA_ROOM);
		assert_true(node->data_room >= POOLS_HEADROOM + mtu + 14 + 8);
		assert_true(node->data_room < UINT16_MAX);
	}
}

// net_af_packet needs space for a whole slot of its ring, whatever the MTU.
static void holds_a_whole_slot_of_a_packet_socket(void **state)
{
	make_plan(1, 1);
	strcpy(settings.ports[0].device, "net_af_packet0,iface=a");
	pools_plan(&pools, &settings, &plan, rings);
	assert_int_equal(pools.nodes[0].object_bytes, 2368);
	strcpy(settings.ports[0].device, "net_af_packet0,iface=a,framesz=12288,blocksz=12288");
	pools_plan(&pools, &settings, &plan, rings);
	assert_true(pools.nodes[0].data_room >= POOLS_HEADROOM + 12288 - 32);
	strcpy(settings.ports[0].device, "net_af_packet0,iface=a,framesz=9999999");
	pools_plan(&pools, &settings, &plan, rings);
	assert_true(pools.nodes[0].data_room < UINT16_MAX);
}

static void is_the_known_2368_bytes_for_an_ordinary_mtu(void **state)
{
	make_plan(2, 1);
	pools_plan(&pools, &settings, &plan, rings);
	assert_int_equal(pools.nodes[0].object_bytes, 2368);
}

static void holds_enough_for_all_rings_caches_and_bursts(void **state)
{
	make_plan(4, 3);
	pools_plan(&pools, &settings, &plan, rings);
	assert_int_equal(pools.n_nodes, 1);
	// rings of 4 ports x 3 queues in both directions; a cache may grow to 1.5 times its size
	// before it is flushed
	assert_true(pools.nodes[0].n_mbufs >=
		    4 * 3 * 2 * 2048 + 3 * (pools.nodes[0].cache * 3 / 2 + 64));
	assert_true(pools.nodes[0].cache <= RTE_MEMPOOL_CACHE_MAX_SIZE);
	assert_true(pools.nodes[0].cache * 1.5 <= pools.nodes[0].n_mbufs);
}

static void counts_what_a_device_keeps_for_itself(void **state)
{
	make_plan(1, 1);
	pools_plan(&pools, &settings, &plan, rings);
	unsigned before = pools.nodes[0].n_mbufs;

	rings[0].n_extra = 100000;
	pools_plan(&pools, &settings, &plan, rings);
	assert_true(pools.nodes[0].n_mbufs >= before + 100000 - 1024);
}

static void counts_what_workers_lend(void **state)
{
	make_plan(1, 3);
	pools_plan(&pools, &settings, &plan, rings);
	unsigned before = pools.nodes[0].n_mbufs;

	settings.n_lent_mbufs = 10000;
	pools_plan(&pools, &settings, &plan, rings);
	assert_in_range(pools.nodes[0].n_mbufs, before + 30000 - 1024, before + 30000 + 1024);
}

static void plans_memory_for_all_that_it_counts(void **state)
{
	make_plan(2, 1);
	pools_plan(&pools, &settings, &plan, rings);
	uint64_t bytes =
		(uint64_t)pools.nodes[0].n_mbufs * (pools.nodes[0].object_bytes + sizeof(void *));

	assert_true((uint64_t)pools.mib << 20 > bytes);
	assert_true((uint64_t)pools.mib << 20 < bytes + (64 << 20));
}

// Observed with DPDK 22.11: without huge pages 21503 buffers of 2368 bytes take 84 MiB, not 49.
static void plans_whole_pages_for_buffers_where_pages_are_small(void **state)
{
	make_plan(3, 2);
	pools_plan(&pools, &settings, &plan, rings);
	uint64_t bytes = (uint64_t)pools.nodes[0].n_mbufs * 4096;

	assert_true((uint64_t)pools.small_pages_mib << 20 > bytes);
	assert_true((uint64_t)pools.small_pages_mib << 20 < bytes + (64 << 20));
	assert_true(pools.mib < pools.small_pages_mib);
}

static void makes_a_pool_for_each_node_and_sizes_it_for_its_largest_mtu(void **state)
{
	make_plan(3, 2);
	plan.ports[1].numa = 1;
	settings.ports[1].mtu = 9000;
	pools_plan(&pools, &settings, &plan, rings);
	assert_int_equal(pools.n_nodes, 2);
	assert_int_equal(pools_of_port(&pools, &plan, 0), 0);
	assert_int_equal(pools_of_port(&pools, &plan, 1), 1);
	assert_int_equal(pools_of_port(&pools, &plan, 2), 0);
	assert_int_equal(pools.nodes[0].object_bytes, 2368);
	assert_true(pools.nodes[1].data_room > 9000);
	assert_true(pools.node_mib[0] > 0 && pools.node_mib[1] > 0);
	assert_int_equal(pools.node_mib[0] + pools.node_mib[1], pools.mib);
	// all frames of one node may be in transmit rings of the other
	assert_true(pools.nodes[1].n_mbufs >= 2 * 2048 + 3 * 2 * 2048);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_buffers_an_odd_number_of_cache_lines_at_every_mtu),
		cmocka_unit_test(holds_a_whole_slot_of_a_packet_socket),
		cmocka_unit_test(is_the_known_2368_bytes_for_an_ordinary_mtu),
		cmocka_unit_test(holds_enough_for_all_rings_caches_and_bursts),
		cmocka_unit_test(counts_what_a_device_keeps_for_itself),
		cmocka_unit_test(counts_what_workers_lend),
		cmocka_unit_test(plans_memory_for_all_that_it_counts),
		cmocka_unit_test(plans_whole_pages_for_buffers_where_pages_are_small),
		cmocka_unit_test(makes_a_pool_for_each_node_and_sizes_it_for_its_largest_mtu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
