// Frames and the expected lines.
#include "wire/print.h"

#include "wire/build.h"
#include "wire/headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MACS "02:00:00:00:00:01 > 02:00:00:00:00:02 "

static char text[WIRE_FRAME_TEXT];

static const char *print_built(const struct wire_recipe *recipe)
{
	uint8_t frame[256];

	assert_int_equal(wire_build(recipe, frame, sizeof(frame)), 0);
	return wire_frame_print(frame, recipe->frame_bytes, text);
}

static void prints_each_kind_of_packet(void **state)
{
	struct wire_recipe four = wire_recipe(4), six = wire_recipe(6);

	assert_string_equal(print_built(&four),
		"frame of 60 bytes: " MACS
		"IPv4 192.0.2.1:1024 > 198.51.100.1:2048 UDP ttl 64 length 46");
	assert_string_equal(print_built(&six),
		"frame of 62 bytes: " MACS
		"IPv6 [2001:db8::1]:1024 > [2001:db8:1::1]:2048 UDP hop limit 64 length 48");
	four.protocol = WIRE_PROTO_TCP;
	four.has_vlan = true;
	four.vlan_tag = 0xe00a;
	assert_string_equal(print_built(&four),
		"frame of 60 bytes: " MACS
		"VLAN 10 IPv4 192.0.2.1:1024 > 198.51.100.1:2048 TCP ACK ttl 64 length 42");
	four.protocol = WIRE_PROTO_ICMP4;
	four.has_vlan = false;
	assert_string_equal(print_built(&four),
		"frame of 60 bytes: " MACS "IPv4 192.0.2.1 > 198.51.100.1 ICMP echo request id "
		"1024 seq 2048 ttl 64 length 46");
	six.protocol = WIRE_PROTO_ICMP6;
	assert_string_equal(print_built(&six),
		"frame of 62 bytes: " MACS "IPv6 2001:db8::1 > 2001:db8:1::1 ICMPv6 echo request "
		"id 1024 seq 2048 hop limit 64 length 48");
	four.protocol = 89;
	assert_string_equal(print_built(&four),
		"frame of 60 bytes: " MACS
		"IPv4 192.0.2.1 > 198.51.100.1 protocol 89 ttl 64 length 46");
}

static void prints_arp(void **state)
{
	static const uint8_t ask[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6, 0,
		1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2,
		2};
	uint8_t reply[sizeof(ask)];

	assert_string_equal(wire_frame_print(ask, sizeof(ask), text),
		"frame of 42 bytes: 02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff ARP who has 192.0.2.2, "
		"asks 192.0.2.1");
	memcpy(reply, ask, sizeof(ask));
	reply[21] = 2;
	assert_string_equal(wire_frame_print(reply, sizeof(reply), text),
		"frame of 42 bytes: 02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff ARP 192.0.2.1 is at "
		"02:00:00:00:00:01");
	assert_string_equal(wire_frame_print(ask, 41, text),
		"frame of 41 bytes: 02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff ARP cut short");
}

static void says_what_is_wrong_with_a_packet(void **state)
{
	struct wire_recipe recipe = wire_recipe(4);
	uint8_t frame[60];

	wire_build(&recipe, frame, sizeof(frame));
	frame[22] = 1;
	assert_non_null(
		strstr(wire_frame_print(frame, 60, text), "ttl 1 length 46 checksum wrong"));
	assert_non_null(strstr(wire_frame_print(frame, 59, text), "length 46 cut short"));
	frame[20] = 0x20;
	assert_non_null(strstr(wire_frame_print(frame, 60, text), "UDP fragment at 0 ttl"));
	frame[21] = 2;
	assert_non_null(strstr(wire_frame_print(frame, 60, text),
		"198.51.100.1 protocol 17 fragment at 16 ttl"));
	frame[14] = 0x44;
	assert_non_null(strstr(wire_frame_print(frame, 60, text),
		"header length 16, total length 46 of 46"));
	frame[12] = 0x12;
	assert_string_equal(wire_frame_print(frame, 60, text),
		"frame of 60 bytes: " MACS "EtherType 0x1200");
	assert_string_equal(wire_frame_print(frame, 13, text), "frame of 13 bytes: cut short");
	assert_string_equal(wire_frame_print(NULL, 0, text), "frame of 0 bytes: cut short");
}

static void reads_no_byte_beyond_the_frame(void **state)
{
	struct wire_recipe recipe = wire_recipe(4);
	uint8_t frame[80];

	recipe.has_vlan = true;
	recipe.protocol = WIRE_PROTO_TCP;
	recipe.frame_bytes = sizeof(frame);
	wire_build(&recipe, frame, sizeof(frame));
	for (size_t bytes = 1; bytes < sizeof(frame); bytes++) {
		uint8_t *piece = malloc(bytes);

		memcpy(piece, frame, bytes);
		assert_non_null(strstr(wire_frame_print(piece, bytes, text), "cut short"));
		free(piece);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prints_each_kind_of_packet),
		cmocka_unit_test(prints_arp),
		cmocka_unit_test(says_what_is_wrong_with_a_packet),
		cmocka_unit_test(reads_no_byte_beyond_the_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
