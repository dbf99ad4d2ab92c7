// Files of pcapng: their sections, interfaces and options, and what is refused.
#include "gen/capture.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ETHERNET = 1, RAW_IP = 101, LINUX_SLL = 113 };

static struct {
	size_t n, block; // block: where the current one begins
	bool is_swapped;
	uint8_t bytes[1 << 12];
} file;
static struct gen_stream stream = {.capture = {.path = "a.pcapng"}};
static struct capture capture;
static struct error error;

static void put16(uint16_t value)
{
	value = file.is_swapped ? __builtin_bswap16(value) : value;
	memcpy(file.bytes + file.n, &value, 2);
	file.n += 2;
}

static void put32(uint32_t value)
{
	value = file.is_swapped ? __builtin_bswap32(value) : value;
	memcpy(file.bytes + file.n, &value, 4);
	file.n += 4;
}

static void put64(uint64_t value)
{
	value = file.is_swapped ? __builtin_bswap64(value) : value;
	memcpy(file.bytes + file.n, &value, 8);
	file.n += 8;
}

static void put(const void *bytes, size_t n)
{
	memcpy(file.bytes + file.n, bytes, n);
	file.n += n;
	while (file.n % 4)
		file.bytes[file.n++] = 0;
}

static void begin_block(uint32_t type)
{
	file.block = file.n;
	put32(type);
	put32(0);
}

static void end_block(void)
{
	uint32_t n = file.n + 4 - file.block;
	size_t at = file.n;

	put32(n);
	file.n = file.block + 4;
	put32(n);
	file.n = at + 4;
}

static void put_section(bool is_swapped)
{
	file.is_swapped = is_swapped;
	begin_block(0x0a0d0d0a);
	put32(0x1a2b3c4d);
	put16(1);
	put16(0);
	put64(-1);
	end_block();
}

static void begin_iface(uint16_t link_type, uint32_t snap_bytes)
{
	begin_block(1);
	put16(link_type);
	put16(0);
	put32(snap_bytes);
}

static void put_iface(uint16_t link_type, uint32_t snap_bytes)
{
	begin_iface(link_type, snap_bytes);
	end_block();
}

static void put_option8(uint16_t code, uint8_t value)
{
	put16(code);
	put16(1);
	put(&value, 1);
}

// A frame of `n` bytes, its first one `mark`.
static void put_bytes(uint8_t mark, uint32_t n)
{
	uint8_t frame[256] = {mark};

	for (uint32_t i = 1; i < n; i++)
		frame[i] = i;
	put(frame, n);
}

static void begin_packet(uint32_t iface, uint64_t ticks, uint8_t mark, uint32_t n)
{
	begin_block(6);
	put32(iface);
	put32(ticks >> 32);
	put32(ticks);
	put32(n);
	put32(n);
	put_bytes(mark, n);
}

static void put_packet(uint32_t iface, uint64_t ticks, uint8_t mark, uint32_t n)
{
	begin_packet(iface, ticks, mark, n);
	end_block();
}

static int take(void)
{
	capture_free(&capture);
	error.text[0] = 0;
	return capture_read_file(&capture, fmemopen(file.bytes, file.n, "r"), &stream, &error);
}

static void assert_frame(uint32_t i, uint8_t mark, uint64_t at_ns, uint16_t n)
{
	assert_true(i < capture.n);
	assert_int_equal(capture.bytes[capture.frame[i].offset], mark);
	assert_int_equal(capture.frame[i].at_ns, at_ns);
	assert_int_equal(capture.frame[i].n_bytes, n);
}

static int set_up(void **state)
{
	file.n = 0;
	put_section(false);
	return 0;
}

static int tear_down(void **state)
{
	capture_free(&capture);
	return 0;
}

static void takes_ethernet_and_names_the_interfaces_that_it_leaves_out(void **state)
{
	put_iface(ETHERNET, 0);
	begin_iface(LINUX_SLL, 96);
	put16(2);
	put16(3);
	put("any", 3);
	put32(0);
	end_block();
	put_iface(RAW_IP, 0); // without packets
	put_iface(ETHERNET, 1500);
	put_packet(0, 1000, 1, 60);
	put_packet(1, 2000, 2, 84);
	put_packet(3, 3000, 3, 70);
	put_packet(1, 4000, 4, 9);
	assert_int_equal(take(), 0);
	assert_int_equal(capture.n, 2);
	assert_frame(0, 1, 0, 60);
	assert_frame(1, 3, 2000000, 70);
	assert_int_equal(capture.n_left_out, 2);
	assert_string_equal(capture.left_out, "interface 1 (any, LINUX_SLL, 2 frames)");
}

static void names_the_interfaces_of_a_file_without_ethernet(void **state)
{
	put_iface(RAW_IP, 0);
	put_iface(147, 0); // of a user
	put_packet(0, 0, 1, 60);
	put_packet(1, 0, 1, 60);
	assert_int_not_equal(take(), 0);
	assert_string_equal(error.text,
		"a.pcapng has no Ethernet frames, only those of interface 0 (RAW, 1 frame), "
		"interface 1 (link type 147, 1 frame); expected an Ethernet capture");
}

static void shortens_a_long_list_of_interfaces(void **state)
{
	put_iface(ETHERNET, 0);
	put_packet(0, 0, 1, 60);
	for (unsigned i = 1; i < 20; i++) {
		put_iface(RAW_IP, 0);
		put_packet(i, 0, 1, 60);
	}
	assert_int_equal(take(), 0);
	assert_int_equal(capture.n_left_out, 19);
	assert_int_equal(strlen(capture.left_out), sizeof(capture.left_out) - 1);
	assert_string_equal(capture.left_out + sizeof(capture.left_out) - 4, "...");
}

static void cuts_off_an_fcs_that_an_interface_or_a_packet_declares(void **state)
{
	static const uint8_t lengths[] = {0, 4, 32}; // in octets, or in bits

	for (unsigned i = 0; i < ARRAY_LEN(lengths); i++) {
		begin_iface(ETHERNET, 0);
		put_option8(13, lengths[i]);
		put32(0);
		end_block();
		put_packet(i, 0, i, 104);
	}
	for (unsigned i = 0; i < 2; i++) {
		begin_packet(i, 0, 10 + i, 104);
		put16(2); // flags
		put16(4);
		put32(i ? 0 : 4 << 5 | 1);
		put32(0);
		end_block();
	}
	assert_int_equal(take(), 0);
	assert_int_equal(capture.n, 5);
	static const uint16_t n[] = {104, 100, 100, 100, 100};
	static const uint8_t marks[] = {0, 1, 2, 10, 11};
	for (unsigned i = 0; i < 5; i++)
		assert_frame(i, marks[i], 0, n[i]);
}

static void scales_times_by_the_resolution_and_offset_of_each_interface(void **state)
{
	static const struct {
		uint8_t resolution;
		uint64_t ticks, ns; // since 100 s
	} rows[] = {
		{6, 100000001, 1000},
		{9, 100000002001, 2001},
		{0, 101, 1000000000},
		{12, 101500000000000, 1500000000},
		{0x80 | 10, 101 * 1024 + 768, 1750000000},
		{19, 10ull * 10000000000000000000ull / 10, 1750000000}, // 1 s: before the first
		{0x80 | 32, 102ull << 32, 2000000000},
		{0x80 | 57, 103ull << 57, 3000000000},
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		begin_iface(ETHERNET, 0);
		put_option8(9, rows[i].resolution);
		put32(0);
		end_block();
	}
	begin_iface(ETHERNET, 0);
	put16(14);
	put16(8);
	put64(-1000);
	end_block();
	put_iface(ETHERNET, 0);
	put_packet(ARRAY_LEN(rows) + 1, 100000000, 0, 60);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		put_packet(i, rows[i].ticks, 1, 60);
	put_packet(ARRAY_LEN(rows), 1104000000, 1, 60);
	assert_int_equal(take(), 0);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		assert_frame(1 + i, 1, rows[i].ns, 60);
	assert_frame(1 + ARRAY_LEN(rows), 1, 4000000000, 60);
}

static void begins_anew_with_each_section_in_its_byte_order(void **state)
{
	put_iface(RAW_IP, 0);
	put_iface(ETHERNET, 0);
	put_packet(1, 1000000, 1, 60);
	put_section(true);
	put_iface(ETHERNET, 0x40000);
	put_packet(0, 2000000, 2, 61);
	put_section(false);
	put_iface(ETHERNET, 60);
	put_packet(0, 3000000, 3, 60);
	assert_int_equal(take(), 0);
	assert_int_equal(capture.n, 3);
	assert_frame(0, 1, 0, 60);
	assert_frame(1, 2, 1000000000, 61);
	assert_frame(2, 3, 2000000000, 60);
	put_packet(1, 0, 1, 60); // of a former section
	assert_int_not_equal(take(), 0);
	assert_string_equal(error.text,
		"a.pcapng is truncated or damaged after frame 3 (a packet of interface 1, which "
		"has no description); capture again, or repair the file");
}

static void takes_simple_and_old_packets_and_skips_other_blocks(void **state)
{
	put_iface(ETHERNET, 64);
	put_packet(0, 5000000, 1, 60);
	begin_block(4); // names
	put32(0);
	end_block();
	begin_block(3);
	put32(63);
	put_bytes(2, 63);
	end_block();
	begin_block(0xbad);
	end_block();
	begin_block(2);
	put16(0);
	put16(7); // dropped
	put32(0);
	put32(5000009);
	put32(60);
	put32(60);
	put_bytes(3, 60);
	end_block();
	assert_int_equal(take(), 0);
	assert_int_equal(capture.n, 3);
	assert_frame(0, 1, 0, 60);
	assert_frame(1, 2, 0, 63);
	assert_frame(2, 3, 9000, 60);
	begin_block(3);
	put32(65); // 64 of these
	put_bytes(2, 64);
	end_block();
	assert_int_not_equal(take(), 0);
	assert_string_equal(error.text,
		"a.pcapng: frame 4 was truncated to 64 of 65 bytes when it was "
		"captured; capture whole frames (tcpdump -s 0)");
}

static void assert_damaged(const char *reason)
{
	char text[ERROR_MAX];

	snprintf(text, sizeof(text),
		"a.pcapng is truncated or damaged after frame 0 (%s); capture again, or repair the "
		"file",
		reason);
	assert_int_not_equal(take(), 0);
	assert_string_equal(error.text, text);
}

static void refuses_malformed_blocks(void **state)
{
	put32(6);
	assert_damaged("the header of a block ends after 4 bytes");
	set_up(NULL);
	file.bytes[file.n - 4]++;
	assert_damaged("the lengths of a block differ");
	set_up(NULL);
	file.bytes[8]++;
	assert_damaged("a section has no byte order");
	set_up(NULL);
	file.bytes[12]++;
	assert_damaged("pcapng 2.0; expected 1.0");
	set_up(NULL);
	put32(7), put32(13), put32(0), put32(0);
	assert_damaged("a block has a length of 13 bytes");
	set_up(NULL);
	put32(7), put32(0x7ffffffc), put32(0);
	assert_damaged("a block has a length of 2147483644 bytes");
	set_up(NULL);
	put_packet(0, 0, 1, 60);
	assert_damaged("a packet of interface 0, which has no description");
	set_up(NULL);
	put_iface(ETHERNET, 0);
	put_packet(0, 0, 1, 60);
	file.n -= 7;
	assert_damaged("a block of 92 bytes ends after 85");
	set_up(NULL);
	put_iface(ETHERNET, 0);
	begin_block(3), put32(100), put_bytes(1, 60), end_block();
	assert_damaged("a packet of 100 bytes exceeds its block");
	set_up(NULL);
	begin_block(1), put32(1), end_block();
	assert_damaged("an interface block is too short");
	set_up(NULL);
	begin_block(6), put32(0), end_block();
	assert_damaged("a packet block is too short");
}

static void refuses_malformed_options(void **state)
{
	static const uint8_t resolutions[] = {20, 0x80 | 64};

	for (unsigned i = 0; i < ARRAY_LEN(resolutions); i++) {
		set_up(NULL);
		begin_iface(ETHERNET, 0), put_option8(9, resolutions[i]), end_block();
		assert_damaged("option 9 of interface 0 is malformed");
	}
	set_up(NULL);
	begin_iface(ETHERNET, 0), put16(14), put16(4), put32(0), end_block();
	assert_damaged("option 14 of interface 0 is malformed");
	set_up(NULL);
	begin_iface(ETHERNET, 0), put16(77), put16(5), put32(0), end_block();
	assert_damaged("an option of interface 0 exceeds its block");
	set_up(NULL);
	put_iface(ETHERNET, 0);
	begin_packet(0, 0, 1, 60), put16(2), put16(0xffff), end_block();
	assert_int_not_equal(take(), 0);
	assert_string_equal(error.text,
		"a.pcapng is truncated or damaged after frame 0 (an option of a packet exceeds its "
		"block); capture again, or repair the file");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(takes_ethernet_and_names_the_interfaces_that_it_leaves_out),
		TEST(names_the_interfaces_of_a_file_without_ethernet),
		TEST(shortens_a_long_list_of_interfaces),
		TEST(cuts_off_an_fcs_that_an_interface_or_a_packet_declares),
		TEST(scales_times_by_the_resolution_and_offset_of_each_interface),
		TEST(begins_anew_with_each_section_in_its_byte_order),
		TEST(takes_simple_and_old_packets_and_skips_other_blocks),
		TEST(refuses_malformed_blocks),
		TEST(refuses_malformed_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
