// Selected offloads and flow hash, by device capabilities and requirements.
#include "port/offload.h"

#include "base/bits.h"

#include <rte_ethdev.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define CKSUM RTE_ETH_RX_OFFLOAD_IPV4_CKSUM
#define L4_CKSUM (RTE_ETH_RX_OFFLOAD_TCP_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM)
#define SCATTER RTE_ETH_RX_OFFLOAD_SCATTER
#define SEGS RTE_ETH_TX_OFFLOAD_MULTI_SEGS
#define FAST RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE

struct row {
	const char *name;
	struct offload_facts
		facts; // rx, tx, tx of a queue, longest frame, data room, one pool, chains, guest
	uint64_t rx, tx;
};

static const struct row rows[] = {
	{"uses_nothing_where_nothing_is_offered", {0, 0, 0, 1514, 2048, true, false, false}, 0, 0},
	{"lets_the_device_check_ipv4_checksums", {CKSUM, 0, 0, 1514, 2048, true, false, false},
		CKSUM, 0},
	{"leaves_vlan_tags_in_the_frame",
		{RTE_ETH_RX_OFFLOAD_VLAN_STRIP, 0, 0, 1514, 2048, true, false, false}, 0, 0},
	{"does_not_scatter_what_fits", {SCATTER, 0, 0, 1514, 2048, true, false, false}, 0, 0},
	{"scatters_what_does_not_fit", {SCATTER, SEGS | FAST, 0, 9014, 2048, true, false, false},
		SCATTER, SEGS},
	{"frees_fast_with_one_pool_and_no_chains",
		{0, SEGS | FAST, 0, 1514, 2048, true, false, false}, 0, FAST},
	{"does_not_free_fast_with_two_pools", {0, SEGS | FAST, 0, 1514, 2048, false, false, false},
		0, 0},
	{"sends_chains_rather_than_freeing_fast",
		{0, SEGS | FAST, 0, 1514, 2048, true, true, false}, 0, SEGS},
	{"leaves_open_checksums_of_no_guest_to_the_device",
		{L4_CKSUM, 0, 0, 1514, 2048, true, false, false}, 0, 0},
	{"is_told_of_open_checksums_of_guests",
		{L4_CKSUM | CKSUM, 0, 0, 1514, 2048, true, false, true}, L4_CKSUM | CKSUM, 0},
	{"takes_what_only_queues_offer", {0, 0, FAST, 1514, 2048, true, false, false}, 0, FAST},
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

struct rss_row {
	const char *name;
	uint64_t offers;
	unsigned key_bytes, n_queues;
	bool on;
	uint64_t fields;
	unsigned key_bytes_chosen;
};

#define V4 (RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_FRAG_IPV4)
#define V4_PORTS (RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV4_UDP)
#define V6 (RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_TCP | RTE_ETH_RSS_NONFRAG_IPV6_UDP)
#define LEVELS (RTE_ETH_RSS_LEVEL_MASK)

static const struct rss_row rss_rows[] = {
	{"does_not_hash_for_one_queue", V4 | V4_PORTS, 40, 1, false, 0, 0},
	{"does_not_hash_where_the_device_cannot", 0, 40, 4, false, 0, 0},
	{"does_not_hash_over_fields_below_ip", RTE_ETH_RSS_L2_PAYLOAD | RTE_ETH_RSS_ETH, 40, 4,
		false, 0, 0},
	{"hashes_addresses_and_ports", V4 | V4_PORTS | V6, 40, 4, true, V4 | V4_PORTS | V6, 40},
	{"takes_addresses_alone_where_there_is_no_more", V4, 40, 2, true, V4, 40},
	{"leaves_out_what_is_not_ip", V4 | RTE_ETH_RSS_L2_PAYLOAD | RTE_ETH_RSS_VXLAN, 40, 2, true,
		V4, 40},
	{"goes_to_the_innermost_headers", V4 | LEVELS, 40, 2, true,
		V4 | RTE_ETH_RSS_LEVEL_INNERMOST, 40},
	{"stays_outside_where_the_device_knows_only_that", V4 | RTE_ETH_RSS_LEVEL_OUTERMOST, 40, 2,
		true, V4, 40},
	{"fills_a_key_of_52_bytes", V4, 52, 2, true, V4, 52},
	{"leaves_the_drivers_key_where_it_says_no_length", V4, 0, 2, true, V4, 0},
	{"leaves_the_drivers_key_where_it_is_longer_than_ours", V4, 200, 2, true, V4, 0},
};

static void check_rss(void **state)
{
	const struct rss_row *row = *state;
	struct rss rss;

	rss_choose(&rss, row->offers, row->key_bytes, row->n_queues);
	assert_int_equal(rss.on, row->on);
	assert_int_equal(rss.fields, row->fields);
	assert_int_equal(rss.key_bytes, row->key_bytes_chosen);
	for (unsigned i = 0; i < rss.key_bytes; i++)
		assert_int_equal(rss.key[i], i % 2 ? 0x5a : 0x6d);
}

int main(void)
{
	struct CMUnitTest tests[ARRAY_LEN(rows) + ARRAY_LEN(rss_rows)], *test = tests;

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		*test++ = (struct CMUnitTest){.name = rows[i].name,
			.test_func = check_row,
			.initial_state = (void *)&rows[i]};
	for (unsigned i = 0; i < ARRAY_LEN(rss_rows); i++)
		*test++ = (struct CMUnitTest){.name = rss_rows[i].name,
			.test_func = check_rss,
			.initial_state = (void *)&rss_rows[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
