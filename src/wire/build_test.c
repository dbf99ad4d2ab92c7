// Built frames pass the check, and their checksums match plain sums.
#include "wire/build.h"

#include "base/bits.h"
#include "wire/check.h"
#include "wire/checksum.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct wire_check_rules strict = {.verify_ip4_checksum = true};

// The sum over pseudo header and layer 4, computed from the bytes alone: 0 or 0xffff if correct.
static uint16_t layer4_sum(const struct wire_recipe *recipe, const uint8_t *frame)
{
	size_t ip_at = recipe->has_vlan ? 18 : 14;
	size_t at = ip_at + (recipe->src.family == 6 ? 40 : 20);
	size_t bytes = recipe->frame_bytes - recipe->padding_bytes - at;
	size_t addr_bytes = recipe->src.family == 6 ? 16 : 4;
	uint32_t sum = 0;

	if (recipe->protocol != WIRE_PROTO_ICMP4) {
		sum = recipe->protocol + bytes;
		for (size_t i = 0; i < addr_bytes; i++)
			sum += (recipe->src.bytes[i] + recipe->dst.bytes[i]) << (i % 2 ? 0 : 8);
	}
	for (size_t i = 0; i < bytes; i++)
		sum += frame[at + i] << (i % 2 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static void builds_frames_that_pass_the_check_at_any_size(void **state)
{
	static const struct {
		uint8_t family, protocol;
		size_t least;
	} rows[] = {
		{4, WIRE_PROTO_UDP, 42},
		{4, WIRE_PROTO_TCP, 54},
		{4, WIRE_PROTO_ICMP4, 42},
		{6, WIRE_PROTO_UDP, 62},
		{6, WIRE_PROTO_TCP, 74},
		{6, WIRE_PROTO_ICMP6, 62},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct wire_recipe recipe = wire_recipe(rows[i].family);

		recipe.protocol = rows[i].protocol;
		for (size_t bytes = rows[i].least; bytes < 1600; bytes += 7) {
			uint8_t *frame = malloc(bytes);

			recipe.frame_bytes = bytes;
			assert_int_equal(wire_build(&recipe, frame, bytes), 0);
			assert_int_equal(wire_check(frame, bytes, bytes, &strict), WIRE_OK);
			assert_int_equal(layer4_sum(&recipe, frame), 0);
			free(frame);
		}
		recipe.frame_bytes = rows[i].least - 1;
		assert_int_equal(wire_build(&recipe, NULL, 2000), -EINVAL);
	}
}

static void puts_every_field_where_it_belongs(void **state)
{
	static const uint8_t wanted[] = {
		0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x81, 0x00, 0xa0, 0x05, 0x08,
		0x00, // Ethernet, VLAN
		0x45, 0xb8, 0, 30, 0, 0, 0x40, 0, 7, 17, 0x86, 0xe1, 192, 0, 2, 1, 198, 51, 100,
		1,                                               // IPv4
		0x04, 0x00, 0x08, 0x00, 0, 10, 0x07, 0xa3, 0, 1, // UDP and two bytes of payload
		0, 0, 0,                                         // padding
	};
	struct wire_recipe recipe = wire_recipe(4);
	uint8_t frame[sizeof(wanted)];

	recipe.has_vlan = true;
	recipe.vlan_tag = 0xa005;
	recipe.dscp_ecn = 0xb8;
	recipe.ttl = 7;
	recipe.padding_bytes = 3;
	recipe.frame_bytes = sizeof(wanted);
	memset(frame, 0xff, sizeof(frame));
	assert_int_equal(wire_build(&recipe, frame, sizeof(frame)), 0);
	assert_int_equal(layer4_sum(&recipe, frame), 0);
	assert_memory_equal(frame, wanted, sizeof(wanted));
}

static void puts_every_ipv6_field_where_it_belongs(void **state)
{
	struct wire_recipe recipe = wire_recipe(6);
	uint8_t frame[62];

	recipe.dscp_ecn = 0xb8;
	recipe.ttl = 7;
	assert_int_equal(wire_build(&recipe, frame, sizeof(frame)), 0);
	assert_memory_equal(frame + 12, "\x86\xdd\x6b\x80\x00\x00\x00\x08\x11\x07", 10);
	assert_memory_equal(frame + 22, recipe.src.bytes, 16);
	assert_memory_equal(frame + 38, recipe.dst.bytes, 16);
}

static void never_sends_a_udp_checksum_of_zero(void **state)
{
	struct wire_recipe recipe = wire_recipe(4);
	uint8_t frame[60];
	unsigned n_ffff = 0;

	for (unsigned port = 0; port <= 0xffff; port++) {
		recipe.src_port = port;
		assert_int_equal(wire_build(&recipe, frame, sizeof(frame)), 0);
		assert_true(frame[40] || frame[41]);
		n_ffff += frame[40] == 0xff && frame[41] == 0xff;
	}
	assert_in_range(n_ffff, 1, 2);
}

static void builds_an_unknown_protocol_as_payload_alone(void **state)
{
	struct wire_recipe recipe = wire_recipe(4);
	uint8_t frame[37];

	recipe.protocol = 99;
	recipe.frame_bytes = sizeof(frame);
	assert_int_equal(wire_build(&recipe, frame, sizeof(frame)), 0);
	assert_memory_equal(frame + 34, "\0\1\2", 3);
}

static void refuses_what_cannot_be_built_and_writes_nothing(void **state)
{
	struct wire_recipe recipe = wire_recipe(4);
	uint8_t frame[60];

	memset(frame, 0xee, sizeof(frame));
	assert_int_equal(wire_build(&recipe, frame, 59), -ENOSPC);
	recipe.padding_bytes = 19;
	assert_int_equal(wire_build(&recipe, frame, 60), -EINVAL);
	recipe.padding_bytes = 61;
	assert_int_equal(wire_build(&recipe, frame, 60), -EINVAL);
	recipe.padding_bytes = 0;
	recipe.frame_bytes = 14 + 65536;
	assert_int_equal(wire_build(&recipe, frame, 100000), -EINVAL);
	recipe = wire_recipe(4);
	recipe.dst.family = 6;
	assert_int_equal(wire_build(&recipe, frame, 60), -EINVAL);
	recipe.src.family = recipe.dst.family = 0;
	assert_int_equal(wire_build(&recipe, frame, 60), -EINVAL);
	for (size_t i = 0; i < sizeof(frame); i++)
		assert_int_equal(frame[i], 0xee);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builds_frames_that_pass_the_check_at_any_size),
		cmocka_unit_test(puts_every_field_where_it_belongs),
		cmocka_unit_test(puts_every_ipv6_field_where_it_belongs),
		cmocka_unit_test(never_sends_a_udp_checksum_of_zero),
		cmocka_unit_test(builds_an_unknown_protocol_as_payload_alone),
		cmocka_unit_test(refuses_what_cannot_be_built_and_writes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
