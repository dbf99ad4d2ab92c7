// The selected hash, by device capabilities.
#include "port/rss.h"

#include "base/bits.h"

#include <rte_ethdev.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct row {
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

static const struct row rows[] = {
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

static void check_row(void **state)
{
	const struct row *row = *state;
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
	struct CMUnitTest tests[ARRAY_LEN(rows)];

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		tests[i] = (struct CMUnitTest){.name = rows[i].name,
			.test_func = check_row,
			.initial_state = (void *)&rows[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
