// Selected offloads by device capabilities and requirements.
#include "port/offload.h"

#include "base/bits.h"

#include <rte_ethdev.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define CKSUM RTE_ETH_RX_OFFLOAD_IPV4_CKSUM
#define SCATTER RTE_ETH_RX_OFFLOAD_SCATTER
#define SEGS RTE_ETH_TX_OFFLOAD_MULTI_SEGS
#define FAST RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE

struct row {
	const char *name;
	struct offload_facts
		facts; // rx, tx, tx of a queue, longest frame, data room, one pool, chains
	uint64_t rx, tx;
};

static const struct row rows[] = {
	{"uses_nothing_where_nothing_is_offered", {0, 0, 0, 1514, 2048, true, false}, 0, 0},
	{"lets_the_device_check_ipv4_checksums", {CKSUM, 0, 0, 1514, 2048, true, false}, CKSUM, 0},
	{"leaves_vlan_tags_in_the_frame",
		{RTE_ETH_RX_OFFLOAD_VLAN_STRIP, 0, 0, 1514, 2048, true, false}, 0, 0},
	{"does_not_scatter_what_fits", {SCATTER, 0, 0, 1514, 2048, true, false}, 0, 0},
	{"scatters_what_does_not_fit", {SCATTER, SEGS | FAST, 0, 9014, 2048, true, false}, SCATTER,
		SEGS},
	{"frees_fast_with_one_pool_and_no_chains", {0, SEGS | FAST, 0, 1514, 2048, true, false}, 0,
		FAST},
	{"does_not_free_fast_with_two_pools", {0, SEGS | FAST, 0, 1514, 2048, false, false}, 0, 0},
	{"sends_chains_rather_than_freeing_fast", {0, SEGS | FAST, 0, 1514, 2048, true, true}, 0,
		SEGS},
	{"takes_what_only_queues_offer", {0, 0, FAST, 1514, 2048, true, false}, 0, FAST},
};

static void check_row(void **state)
{
	const struct row *row = *state;
	struct offload offload;

	offload_choose(&offload, &row->facts);
	assert_int_equal(offload.rx, row->rx);
	assert_int_equal(offload.tx, row->tx);
	assert_int_equal(offload.tx_multi_segment, !!(row->tx & SEGS));
}

int main(void)
{
	struct CMUnitTest tests[ARRAY_LEN(rows)];

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		tests[i] = (struct CMUnitTest){.name = rows[i].name,
			.test_func = check_row,
			.initial_state = (void *)&rows[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
