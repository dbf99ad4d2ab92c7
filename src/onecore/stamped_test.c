// Stamped frames are valid: lengths, both checksums, and the stamp itself.
#include "onecore/stamped.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include "wire/build.h"

#include <cmocka.h>

enum { N_RECORDS = 8 };

static uint8_t records[N_RECORDS][TABLE_RECORD4_BYTES];

// A table as read from a file: a 64-byte frame, destinations with their header checksums.
static void make_table(struct table *table)
{
	struct wire_recipe recipe = wire_recipe(4);
	struct wire_ip4 *ip = (struct wire_ip4 *)(table->frame + WIRE_ETHER_BYTES);

	memset(table, 0, sizeof(*table));
	recipe.frame_bytes = TABLE_FRAME_BYTES;
	assert_int_equal(wire_build(&recipe, table->frame, TABLE_FRAME_BYTES), 0);
	for (int i = 0; i < N_RECORDS; i++) {
		for (int j = 0; j < 4; j++)
			ip->dst[j] = 37 * i + 101 * j + 1;
		uint16_t checksum = wire_ip4_checksum_be(ip);
		memcpy(records[i], ip->dst, 4);
		memcpy(records[i] + 4, &checksum, 2);
	}
	table->records = records[0];
	table->mask = N_RECORDS - 1;
	table->record_bytes = TABLE_RECORD4_BYTES;
}

static uint16_t udp_rest(const uint8_t *frame)
{
	const struct wire_ip4 *ip = (const struct wire_ip4 *)(frame + WIRE_ETHER_BYTES);
	size_t n = STAMPED_FRAME_BYTES - STAMPED_UDP_AT;

	return wire_sum_finish_be(
		wire_sum(wire_sum_pseudo4(ip, WIRE_PROTO_UDP, n), frame + STAMPED_UDP_AT, n));
}

static void writes_frames_whose_checksums_are_right(void **state)
{
	uint8_t frame[TABLE_FRAME_BYTES];
	struct stamped stamped;
	struct table table;

	make_table(&table);
	assert_int_equal(stamped_prepare(&stamped, &table), 0);
	srandom(1);
	for (uint64_t i = 0; i < 20000; i++) {
		struct stamp stamp = {.magic = STAMP_MAGIC | (i & 0xff), .stream = i >> 3};

		stamp.sequence = i % 3 ? i : STAMP_40_BITS - i;
		stamp.due = (uint64_t)random() << 9;
		stamp.sent = stamp.due + random();
		table_write(&table, i, frame);
		stamped_write(&stamped, &stamp, frame);
		const struct wire_ip4 *ip = (const struct wire_ip4 *)(frame + WIRE_ETHER_BYTES);
		const struct wire_udp *udp = (const struct wire_udp *)(frame + STAMPED_UDP_AT);
		assert_true(wire_ip4_checksum_good(ip));
		assert_int_equal(be16toh(ip->total_length_be), 46);
		assert_int_equal(be16toh(udp->length_be), 26);
		assert_int_not_equal(udp->checksum_be, 0);
		assert_int_equal(udp_rest(frame), 0);
	}
}

static void writes_the_stamp_that_it_was_given(void **state)
{
	const struct stamp stamp = {STAMP_MAGIC, 9, 123456789, 0xab12345678, 0xab12345700};
	uint8_t frame[TABLE_FRAME_BYTES];
	struct stamped stamped;
	struct stamp read;
	struct table table;

	make_table(&table);
	assert_int_equal(stamped_prepare(&stamped, &table), 0);
	table_write(&table, 3, frame);
	stamped_write(&stamped, &stamp, frame);
	stamp_read(frame + STAMPED_AT, &read);
	assert_int_equal(read.magic, stamp.magic);
	assert_int_equal(read.stream, stamp.stream);
	assert_int_equal(read.sequence, stamp.sequence);
	assert_int_equal(read.due, stamp.due);
	assert_int_equal(read.sent, stamp.sent);
	assert_memory_equal(frame + TABLE_DESTINATION4_AT, records[3], 4);
}

static void refuses_a_table_without_ipv4_destinations(void **state)
{
	struct stamped stamped;
	struct table six = {.is_ip6 = true}, flows = {.has_flows = true}, macs = {.has_macs = true};

	assert_int_equal(stamped_prepare(&stamped, &six), -EINVAL);
	assert_int_equal(stamped_prepare(&stamped, &flows), -EINVAL);
	assert_int_equal(stamped_prepare(&stamped, &macs), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_frames_whose_checksums_are_right),
		cmocka_unit_test(writes_the_stamp_that_it_was_given),
		cmocka_unit_test(refuses_a_table_without_ipv4_destinations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
