// The flows of measurements: no two are the same, each arrives once, and their frames are valid.
#include "onecore/flows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include "wire/build.h"

#include <cmocka.h>

enum { BITS = 16, N = 1 << BITS };

static void expect(struct flows_tuple flow, const char *src, const char *dst, unsigned src_port,
	unsigned dst_port)
{
	struct wire_addr from, to;

	assert_int_equal(wire_addr_parse(src, &from), 0);
	assert_int_equal(wire_addr_parse(dst, &to), 0);
	assert_int_equal(htobe32(flow.src), *(uint32_t *)from.bytes);
	assert_int_equal(htobe32(flow.dst), *(uint32_t *)to.bytes);
	assert_int_equal(flow.src_port, src_port);
	assert_int_equal(flow.dst_port, dst_port);
}

static void varies_only_the_destination_as_the_white_paper_did(void **state)
{
	expect(flows_tuple(FLOWS_WHITE_PAPER, 0), "100.10.0.1", "101.0.0.0", 11, 101);
	expect(flows_tuple(FLOWS_WHITE_PAPER, 1), "100.10.0.1", "201.0.0.0", 11, 101);
	expect(flows_tuple(FLOWS_WHITE_PAPER, 0x204), "100.10.0.1", "101.0.1.2", 11, 101);
	expect(flows_tuple(FLOWS_WHITE_PAPER, (1 << 25) - 1), "100.10.0.1", "201.255.255.255", 11,
		101);
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, 8);
}

static void makes_random_flows_all_different(void **state)
{
	static uint64_t key[N];

	for (unsigned i = 0; i < N; i++) {
		const struct flows_tuple flow = flows_tuple(FLOWS_RANDOM, i);

		assert_int_equal(flow.src >> 24, 10);
		assert_int_equal(flow.dst >> 24, 48);
		key[i] = (uint64_t)(flow.src & 0xffffff) << 40 |
		         (uint64_t)(flow.dst & 0xffffff) << 16 | flow.src_port;
	}
	qsort(key, N, sizeof(key[0]), compare);
	for (unsigned i = 1; i < N; i++)
		assert_int_not_equal(key[i - 1], key[i]);
}

static void lets_each_flow_arrive_once_in_a_round(void **state)
{
	for (unsigned bits = 1; bits <= BITS; bits++) {
		static uint8_t seen[N];

		memset(seen, 0, sizeof(seen));
		for (uint32_t i = 0; i < 1u << bits; i++) {
			const uint32_t flow = flows_order(i, bits);

			assert_in_range(flow, 0, (1u << bits) - 1);
			assert_int_equal(seen[flow]++, 0);
		}
	}
}

// Of a random order, one step in N / D is shorter than D, twice because it has two directions.
static void does_not_let_neighbours_arrive_together(void **state)
{
	unsigned n_short = 0, n_same = 0;
	int32_t before = 0;

	for (uint32_t i = 1; i < N; i++) {
		const int32_t step = flows_order(i, BITS) - flows_order(i - 1, BITS);

		n_short += abs(step) < N / 256;
		n_same += step == before;
		before = step;
	}
	assert_in_range(n_short, 0, 2 * 2 * N / 256);
	assert_in_range(n_same, 0, N / 64);
}

static void writes_records_with_the_right_checksum(void **state)
{
	struct wire_recipe recipe = wire_recipe(4);
	uint8_t frame[TABLE_FRAME_BYTES] = {0}, record[TABLE_FLOW_BYTES], out[TABLE_FRAME_BYTES];
	const struct table table = {.records = record,
		.record_bytes = TABLE_FLOW_BYTES,
		.has_flows = true};

	recipe.frame_bytes = TABLE_FRAME_BYTES;
	assert_int_equal(wire_build(&recipe, frame, sizeof(frame)), 0);
	memcpy((uint8_t *)table.frame, frame, sizeof(frame));
	for (unsigned i = 0; i < 1000; i++) {
		const struct flows_tuple flow = flows_tuple(FLOWS_RANDOM, i);
		const struct wire_ip4 *ip = (const struct wire_ip4 *)(out + WIRE_ETHER_BYTES);
		const struct wire_udp *udp = (const struct wire_udp *)(ip + 1);

		flows_record(&flow, frame, record);
		table_write(&table, i, out);
		assert_true(wire_ip4_checksum_good(ip));
		assert_int_equal(be16toh(udp->src_port_be), flow.src_port);
		assert_int_equal(be16toh(udp->dst_port_be), flow.dst_port);
		assert_memory_equal(ip->dst, &(uint32_t){htobe32(flow.dst)}, 4);
		assert_memory_equal(ip->src, &(uint32_t){htobe32(flow.src)}, 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(varies_only_the_destination_as_the_white_paper_did),
		cmocka_unit_test(makes_random_flows_all_different),
		cmocka_unit_test(lets_each_flow_arrive_once_in_a_round),
		cmocka_unit_test(does_not_let_neighbours_arrive_together),
		cmocka_unit_test(writes_records_with_the_right_checksum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
