// Sums compared with the definition, byte by byte, and with the RFCs' examples.
#include "wire/checksum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// RFC 1071 as defined: 16-bit words, high byte first.
static uint16_t sum_plainly(const uint8_t *bytes, size_t n)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += i % 2 ? bytes[i] : bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static void sums_the_example_of_rfc_1071(void **state)
{
	static const uint8_t bytes[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};

	assert_int_equal(be16toh(wire_sum_finish_be(wire_sum(0, bytes, sizeof(bytes)))), 0x220d);
}

static void sums_any_length_at_any_address(void **state)
{
	for (size_t n = 0; n < 300; n++) {
		uint8_t *bytes = malloc(n + 1), *at = bytes + n % 2;
		size_t left = n + 1 - n % 2 < n ? n - 1 : n;

		for (size_t i = 0; i < n + 1; i++)
			bytes[i] = rand();
		assert_int_equal(be16toh(wire_sum_finish_be(wire_sum(0, at, left))),
			sum_plainly(at, left));
		free(bytes);
	}
}

static void sums_pieces_as_one(void **state)
{
	uint8_t bytes[64];

	memset(bytes, 0xff, sizeof(bytes));
	bytes[63] = 1;
	for (size_t cut = 0; cut <= 64; cut += 2)
		assert_int_equal(be16toh(wire_sum_finish_be(
					 wire_sum(wire_sum(0, bytes, cut), bytes + cut, 64 - cut))),
			sum_plainly(bytes, 64));
}

// A captured header: 192.168.0.1 to 192.168.0.199, checksum b861.
static const uint8_t seen[] = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8,
	0x61, 192, 168, 0, 1, 192, 168, 0, 199};

static void knows_a_right_header_from_a_wrong_one(void **state)
{
	struct wire_ip4 ip;

	memcpy(&ip, seen, sizeof(ip));
	assert_true(wire_ip4_checksum_good(&ip));
	assert_int_equal(wire_ip4_checksum_be(&ip), htobe16(0xb861));
	for (unsigned bit = 0; bit < 8 * sizeof(ip); bit++) {
		if (bit >= 4 && bit < 8)
			continue;
		memcpy(&ip, seen, sizeof(ip));
		((uint8_t *)&ip)[bit / 8] ^= 0x80 >> bit % 8;
		assert_false(wire_ip4_checksum_good(&ip));
	}
}

static void computes_a_checksum_whatever_stands_in_the_field(void **state)
{
	struct wire_ip4 ip;

	memcpy(&ip, seen, sizeof(ip));
	for (unsigned value = 0; value <= 0xffff; value++) {
		ip.checksum_be = value;
		assert_int_equal(wire_ip4_checksum_be(&ip), htobe16(0xb861));
	}
}

static void updates_the_example_of_rfc_1624(void **state)
{
	assert_int_equal(wire_checksum_update_be(htobe16(0xdd2f), htobe16(0x5555), htobe16(0x3285)),
		0);
}

static void keeps_the_checksum_right_while_the_ttl_falls(void **state)
{
	struct wire_ip4 ip;

	for (unsigned id = 0; id <= 0xffff; id++) {
		memcpy(&ip, seen, sizeof(ip));
		ip.id_be = htobe16(id);
		ip.ttl = 1 + id % 255;
		ip.checksum_be = wire_ip4_checksum_be(&ip);
		wire_ip4_decrement_ttl(&ip);
		assert_int_equal(ip.ttl, id % 255);
		assert_true(wire_ip4_checksum_good(&ip));
		assert_int_equal(ip.checksum_be, wire_ip4_checksum_be(&ip));
	}
}

static void leaves_a_wrong_checksum_wrong(void **state)
{
	struct wire_ip4 ip;

	memcpy(&ip, seen, sizeof(ip));
	ip.checksum_be ^= 1;
	wire_ip4_decrement_ttl(&ip);
	assert_false(wire_ip4_checksum_good(&ip));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_the_example_of_rfc_1071),
		cmocka_unit_test(sums_any_length_at_any_address),
		cmocka_unit_test(sums_pieces_as_one),
		cmocka_unit_test(knows_a_right_header_from_a_wrong_one),
		cmocka_unit_test(computes_a_checksum_whatever_stands_in_the_field),
		cmocka_unit_test(updates_the_example_of_rfc_1624),
		cmocka_unit_test(keeps_the_checksum_right_while_the_ttl_falls),
		cmocka_unit_test(leaves_a_wrong_checksum_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
