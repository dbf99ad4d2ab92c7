// Neighbour requests and replies, byte for byte, and invalid ones.
#include "wire/neighbour.h"

#include "wire/checksum.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct wire_mac mine = {{2, 0, 0, 0, 0, 0x11}}, other = {{2, 0, 0, 0, 0, 0x99}};

static struct wire_addr addr(const char *text)
{
	struct wire_addr addr;

	assert_int_equal(wire_addr_parse(text, &addr), 0);
	return addr;
}

static struct wire_neighbour question(const char *target, const char *sender)
{
	return (struct wire_neighbour){.target = addr(target),
		.sender = addr(sender),
		.asker_mac = other};
}

static struct wire_neighbour answer(const char *target, const char *sender)
{
	struct wire_neighbour reported = question(target, sender);

	reported.is_reply = true;
	reported.about_mac = mine;
	return reported;
}

// clang-format off
static const uint8_t arp_request[] = {
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 0x99, 0x08, 0x06,
	0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 0x99, 10, 0, 0, 254, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1,
};
static const uint8_t arp_reply[] = {
	2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 0x11, 0x08, 0x06,
	0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 0x11, 10, 0, 0, 1, 2, 0, 0, 0, 0, 0x99, 10, 0, 0,
	254,
};
// As Linux sends it to resolve 2001:db8::1; the checksum was computed by scapy.
static const uint8_t solicitation[] = {
	0x33, 0x33, 0xff, 0, 0, 1, 2, 0, 0, 0, 0, 0x99, 0x86, 0xdd,
	0x60, 0, 0, 0, 0, 32, 58, 255,
	0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfe,
	0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 1,
	135, 0, 0x1a, 0x94, 0, 0, 0, 0,
	0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
	1, 1, 2, 0, 0, 0, 0, 0x99,
};
static const uint8_t advertisement[] = {
	2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 0x11, 0x86, 0xdd,
	0x60, 0, 0, 0, 0, 32, 58, 255,
	0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
	0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfe,
	136, 0, 0x89, 0x67, 0x60, 0, 0, 0,
	0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
	2, 1, 2, 0, 0, 0, 0, 0x11,
};
// clang-format on

static const struct row {
	const uint8_t *frame;
	size_t n;
	const char *target, *sender;
	bool is_reply;
} rows[] = {
	{arp_request, sizeof(arp_request), "10.0.0.1", "10.0.0.254", false},
	{arp_reply, sizeof(arp_reply), "10.0.0.1", "10.0.0.254", true},
	{solicitation, sizeof(solicitation), "2001:db8::1", "2001:db8::fe", false},
	{advertisement, sizeof(advertisement), "2001:db8::1", "2001:db8::fe", true},
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static struct wire_neighbour said(const struct row *row)
{
	return row->is_reply ? answer(row->target, row->sender)
	                     : question(row->target, row->sender);
}

static void builds_each_byte_for_byte(void **state)
{
	for (unsigned i = 0; i < N_ROWS; i++) {
		const struct wire_neighbour neighbour = said(&rows[i]);
		uint8_t frame[WIRE_NEIGHBOUR_BYTES];

		assert_int_equal(wire_neighbour_build(&neighbour, frame), rows[i].n);
		assert_memory_equal(frame, rows[i].frame, rows[i].n);
		assert_true(wire_is_neighbour(frame, rows[i].n));
	}
}

static void reads_what_it_builds_with_and_without_a_tag_and_padding(void **state)
{
	for (unsigned i = 0; i < 4 * N_ROWS; i++) {
		struct wire_neighbour neighbour = said(&rows[i / 4]), got;
		uint8_t frame[WIRE_NEIGHBOUR_BYTES + 18] = {0};

		neighbour.has_vlan = i & 1;
		neighbour.vlan_tag = i & 1 ? 0x6005 : 0;
		size_t n = wire_neighbour_build(&neighbour, frame) + (i & 2 ? 18 : 0);
		assert_int_equal(wire_neighbour_read(frame, n, &got), 0);
		assert_true(wire_is_neighbour(frame, n));
		assert_int_equal(got.is_reply, neighbour.is_reply);
		assert_int_equal(got.vlan_tag, neighbour.vlan_tag);
		assert_true(wire_addr_equal(&got.target, &neighbour.target));
		assert_true(wire_addr_equal(&got.sender, &neighbour.sender));
		if (got.is_reply)
			assert_true(wire_mac_equal(&got.about_mac, &mine));
		else
			assert_true(wire_mac_equal(&got.asker_mac, &other));
	}
}

static void tells_all_where_the_asker_has_no_address_yet(void **state)
{
	const struct wire_neighbour reported = answer("2001:db8::1", "::");
	uint8_t frame[WIRE_NEIGHBOUR_BYTES];
	struct wire_neighbour got;

	size_t n = wire_neighbour_build(&reported, frame);
	assert_memory_equal(frame, "\x33\x33\0\0\0\1", 6);
	assert_int_equal(frame[14 + 40 + 4], 0x20); // not solicited
	assert_int_equal(wire_neighbour_read(frame, n, &got), 0);
	assert_int_equal(got.sender.bytes[0], 0xff);
}

static void is_none_when_cut_anywhere(void **state)
{
	for (unsigned i = 0; i < N_ROWS; i++)
		for (size_t n = 0; n < rows[i].n; n++) {
			uint8_t *frame = malloc(n + 1); // exact size, for sanitizers
			struct wire_neighbour got;

			memcpy(frame + 1, rows[i].frame, n);
			assert_int_equal(wire_neighbour_read(frame + 1, n, &got), -EINVAL);
			wire_is_neighbour(frame + 1, n);
			free(frame);
		}
}

// A valid frame with one byte changed: where, and to what.
static const struct {
	uint8_t row, at, value;
} wrongs[] = {
	{0, 6, 3},                   // group address as Ethernet source
	{0, 15, 6},                  // wrong hardware type
	{0, 16, 0x86},               // wrong protocol type
	{0, 18, 8},                  // wrong address lengths
	{0, 19, 16}, {0, 21, 3},     // RARP
	{0, 22, 1},                  // group address as sender MAC
	{0, 28, 224}, {2, 14, 0x40}, // version
	{2, 20, 59},                 // no next header
	{2, 21, 254},                // forwarded by a router
	{2, 22, 0xff},               // group address as source
	{2, 55, 1},                  // code
	{2, 56, 0},                  // checksum
	{2, 62, 0xff},               // target is a group
	{2, 79, 0},                  // option of length 0
	{2, 79, 2},                  // truncated option
	{2, 80, 3},                  // group address as MAC option
	{2, 19, 31},                 // payload shorter, longer than the frame, too short
	{2, 19, 33}, {2, 19, 23}, {3, 38, 0xff}, // solicited reply to a group
};

static void put_checksum(uint8_t *frame, size_t n)
{
	uint16_t checksum_be;

	memset(frame + 56, 0, 2);
	uint64_t pseudo = wire_sum_pseudo6((const void *)(frame + 14), WIRE_PROTO_ICMP6, n - 54);
	checksum_be = wire_sum_finish_be(wire_sum(pseudo, frame + 54, n - 54));
	memcpy(frame + 56, &checksum_be, 2);
}

static void is_none_when_it_breaks_a_rule(void **state)
{
	for (unsigned i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		const struct row *row = &rows[wrongs[i].row];
		uint8_t frame[WIRE_NEIGHBOUR_BYTES];
		struct wire_neighbour got;

		memcpy(frame, row->frame, row->n);
		frame[wrongs[i].at] = wrongs[i].value;
		if (wrongs[i].row >= 2 && wrongs[i].at != 56)
			put_checksum(frame, row->n);
		if (!wire_neighbour_read(frame, row->n, &got))
			fail_msg("row %u is taken", i);
	}
}

static void other_frames_do_not_look_like_one(void **state)
{
	uint8_t frame[128] = {0};

	assert_false(wire_is_neighbour(frame, sizeof(frame)));
	memcpy(frame, solicitation, sizeof(solicitation));
	frame[54] = 134; // router advertisement
	assert_false(wire_is_neighbour(frame, sizeof(frame)));
	frame[20] = WIRE_PROTO_UDP;
	assert_false(wire_is_neighbour(frame, sizeof(frame)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builds_each_byte_for_byte),
		cmocka_unit_test(reads_what_it_builds_with_and_without_a_tag_and_padding),
		cmocka_unit_test(tells_all_where_the_asker_has_no_address_yet),
		cmocka_unit_test(is_none_when_cut_anywhere),
		cmocka_unit_test(is_none_when_it_breaks_a_rule),
		cmocka_unit_test(other_frames_do_not_look_like_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
