// Tables of destinations: valid files, invalid files, and the resulting frames.
#include "onecore/table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/onecore_table_XXXXXX";

static void write_bytes(const void *bytes, size_t n)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, n, file), n);
	fclose(file);
}

static void write_file(uint16_t ethertype, const void *records, size_t n)
{
	uint8_t frame[TABLE_FRAME_BYTES] = {0};

	for (int i = 0; i < TABLE_FRAME_BYTES; i++)
		frame[i] = i;
	frame[12] = ethertype >> 8;
	frame[13] = ethertype;
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(frame, 1, sizeof(frame), file), sizeof(frame));
	assert_int_equal(fwrite(records, 1, n, file), n);
	fclose(file);
}

static void puts_ipv4_destination_and_checksum_into_the_frame(void **state)
{
	const uint8_t records[2][8] = {{10, 1, 2, 3, 0xab, 0xcd}, {10, 4, 5, 6, 0x12, 0x34}};
	const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	uint8_t out[TABLE_FRAME_BYTES];
	struct table table;

	write_file(0x0800, records, sizeof(records));
	assert_int_equal(table_load(&table, path, mac), 0);
	table_write(&table, 3, out); // wraps around to record 1
	assert_memory_equal(out, mac, 6);
	assert_memory_equal(out + 24, "\x12\x34", 2);
	assert_memory_equal(out + 30, "\x0a\x04\x05\x06", 4);
	assert_int_equal(out[26], 26); // the rest is from the frame
	assert_int_equal(out[34], 34);
}

static void puts_ipv6_destination_into_the_frame(void **state)
{
	uint8_t records[16], out[TABLE_FRAME_BYTES];
	struct table table;

	memset(records, 0x77, sizeof(records));
	write_file(0x86dd, records, sizeof(records));
	assert_int_equal(table_load(&table, path, NULL), 0);
	table_write(&table, 0, out);
	assert_memory_equal(out + 38, records, 16);
	assert_int_equal(out[0], 0);
	assert_int_equal(out[37], 37);
	assert_int_equal(out[54], 54);
}

static void puts_addresses_ports_and_checksum_of_a_flow_into_the_frame(void **state)
{
	uint8_t file[64 + 2 * TABLE_FLOW_BYTES] = {[6] = 2, [12] = 0x08};
	uint8_t out[TABLE_FRAME_BYTES], *second = file + 64 + TABLE_FLOW_BYTES;
	struct table table;

	for (int i = 0; i < 14; i++)
		second[i] = 0x80 + i;
	file[34] = 0x99; // replaced, as the ports of the frame
	file[38] = 0x42;
	write_bytes(file, sizeof(file));
	assert_int_equal(table_load(&table, path, NULL), 0);
	table_write(&table, 1, out);
	assert_memory_equal(out + 26, second, 12);
	assert_memory_equal(out + 24, second + 12, 2);
	assert_int_equal(out[38], 0x42);
	table_write(&table, 2, out);
	assert_int_equal(out[34], 0);
}

static void exchanges_mac_addresses_and_ports_on_the_way_back(void **state)
{
	uint8_t file[64 + 2 * TABLE_MACS_BYTES] = {[0] = 0x99, [12] = 0x08, [30] = 0x42};
	uint8_t out[TABLE_FRAME_BYTES];
	struct table table, back;

	memcpy(file + 64 + TABLE_MACS_BYTES, "ABCDEFabcdef1234", TABLE_MACS_BYTES);
	write_bytes(file, sizeof(file));
	assert_int_equal(table_load(&table, path, NULL), 0);
	table_turn(&table, &back);
	table_write(&table, 3, out); // wraps around to record 1
	assert_memory_equal(out, "ABCDEFabcdef\x08", 13);
	assert_memory_equal(out + 34, "1234", 4);
	assert_int_equal(out[30], 0x42);
	table_write(&back, 3, out);
	assert_memory_equal(out, "abcdefABCDEF\x08", 13);
	assert_memory_equal(out + 34, "3412", 4);
	assert_int_equal(out[30], 0x42);
}

static void puts_the_way_back_into_outer_headers(void **state)
{
	uint8_t file[64 + 2 * TABLE_MACS_BYTES] = {[12] = 0x08, [30] = 0x42};
	uint8_t outer[TABLE_OUTER_BYTES + 1], out[TABLE_MAX_BYTES];
	struct table table, back;

	memset(outer, 0x11, sizeof(outer));
	memcpy(file + 64 + TABLE_MACS_BYTES, "ABCDEFabcdef1234", TABLE_MACS_BYTES);
	write_bytes(file, sizeof(file));
	assert_int_equal(table_load(&table, path, NULL), 0);
	table_turn(&table, &back);
	write_bytes(outer, TABLE_OUTER_BYTES);
	assert_int_equal(table_wrap(&back, path), 0);
	assert_int_equal(table_bytes(&table), 64);
	assert_int_equal(table_bytes(&back), 114);
	table_write(&back, 1, out);
	assert_memory_equal(out, outer, 34);
	assert_memory_equal(out + 34, "\xc5\x46", 2); // 'E' in the range of source ports, 'F'
	assert_memory_equal(out + 36, outer, 14);
	assert_memory_equal(out + 50, "abcdefABCDEF\x08", 13);
	assert_int_equal(out[50 + 30], 0x42);
	table_write(&table, 1, out);
	assert_memory_equal(out, "ABCDEFabcdef\x08", 13);
}

static void refuses_outer_headers_of_another_length(void **state)
{
	const uint8_t outer[TABLE_OUTER_BYTES + 1] = {0};
	struct table table = {.has_outer = false};

	write_bytes(outer, TABLE_OUTER_BYTES + 1);
	assert_int_equal(table_wrap(&table, path), -EINVAL);
	write_bytes(outer, TABLE_OUTER_BYTES - 1);
	assert_int_equal(table_wrap(&table, path), -EINVAL);
	assert_int_equal(table_wrap(&table, "/nonexistent/outer"), -ENOENT);
	assert_false(table.has_outer);
}

static void refuses_half_a_pair_of_mac_addresses(void **state)
{
	const uint8_t file[64 + 24] = {[12] = 0x08};
	struct table table;

	write_bytes(file, sizeof(file));
	assert_int_equal(table_load(&table, path, NULL), -EINVAL);
}

static void refuses_half_a_flow(void **state)
{
	const uint8_t file[64 + 24] = {[6] = 2, [12] = 0x08};
	struct table table;

	write_bytes(file, sizeof(file));
	assert_int_equal(table_load(&table, path, NULL), -EINVAL);
	write_bytes(file, 64 + 8);
	assert_int_equal(table_load(&table, path, NULL), -EINVAL);
}

static void refuses_a_file_that_is_no_table(void **state)
{
	const uint8_t records[32] = {0};
	struct table table;

	write_file(0x0800, records, 24); // three records
	assert_int_equal(table_load(&table, path, NULL), -EINVAL);
	write_file(0x0800, records, 12); // one and a half
	assert_int_equal(table_load(&table, path, NULL), -EINVAL);
	write_file(0x0800, records, 0);
	assert_int_equal(table_load(&table, path, NULL), -EINVAL);
	write_file(0x0806, records, 16); // ARP
	assert_int_equal(table_load(&table, path, NULL), -EINVAL);
}

static void names_the_error_of_a_file_that_cannot_be_read(void **state)
{
	struct table table;

	assert_int_equal(table_load(&table, "/nonexistent/table", NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(puts_ipv4_destination_and_checksum_into_the_frame),
		cmocka_unit_test(puts_ipv6_destination_into_the_frame),
		cmocka_unit_test(puts_addresses_ports_and_checksum_of_a_flow_into_the_frame),
		cmocka_unit_test(exchanges_mac_addresses_and_ports_on_the_way_back),
		cmocka_unit_test(puts_the_way_back_into_outer_headers),
		cmocka_unit_test(refuses_outer_headers_of_another_length),
		cmocka_unit_test(refuses_half_a_pair_of_mac_addresses),
		cmocka_unit_test(refuses_half_a_flow),
		cmocka_unit_test(refuses_a_file_that_is_no_table),
		cmocka_unit_test(names_the_error_of_a_file_that_cannot_be_read),
	};
	int file = mkstemp(path);

	if (file < 0)
		return 1;
	close(file);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
