// Fragments compared with a plain model, byte by byte, and put together again.
#include "wire/checksum.h"
#include "wire/fragment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PACKET_MAX = 65535, HEADER_MAX = 60 };

struct packet {
	union {
		struct wire_ip4 ip;
		uint8_t byte[PACKET_MAX];
	};
};

static unsigned length_of(const struct packet *packet)
{
	return be16toh(packet->ip.total_length_be);
}

static void make(struct packet *packet, const uint8_t *options, unsigned n_options,
	unsigned payload, uint16_t fragment)
{
	unsigned header = WIRE_IP4_BYTES + n_options;

	memset(packet, 0, sizeof(*packet));
	packet->ip = (struct wire_ip4){
		.version_ihl = 0x40 | header / 4,
		.dscp_ecn = 0xb9,
		.total_length_be = htobe16(header + payload),
		.id_be = htobe16(0xbeef),
		.fragment_be = htobe16(fragment),
		.ttl = 9,
		.protocol = WIRE_PROTO_UDP,
		.src = {10, 0, 0, 1},
		.dst = {10, 0, 1, 1},
	};
	if (n_options)
		memcpy(packet->byte + WIRE_IP4_BYTES, options, n_options);
	for (unsigned i = 0; i < payload; i++)
		packet->byte[header + i] = rand();
	packet->ip.checksum_be = wire_ip4_checksum_be(&packet->ip);
}

static void cut(const struct packet *packet, const struct wire_fragments *plan, unsigned i,
	struct packet *out)
{
	wire_fragment_header(plan, i, &packet->ip, &out->ip);
	memcpy(out->byte + plan->header_bytes,
		packet->byte + plan->header_bytes + wire_fragment_start(plan, i),
		wire_fragment_bytes(plan, i));
}

// RFC 791: a fragment that is not the last has as many units of 8 bytes as fit.
static unsigned model_bytes(unsigned left, unsigned header, uint16_t mtu)
{
	return header + left <= mtu ? left : (mtu - header) / 8 * 8;
}

static void check_fragment(const struct packet *packet, const struct packet *fragment,
	unsigned start, unsigned bytes, bool is_last)
{
	const unsigned header = wire_ip4_header_bytes(&packet->ip);
	const uint16_t was = be16toh(packet->ip.fragment_be);
	struct wire_ip4 expected = packet->ip;
	uint16_t more = is_last ? was & WIRE_IP4_MORE_FRAGMENTS : WIRE_IP4_MORE_FRAGMENTS;

	expected.total_length_be = htobe16(header + bytes);
	expected.fragment_be = htobe16(((was & WIRE_IP4_FRAGMENT_OFFSET) + start / 8) | more);
	expected.checksum_be = fragment->ip.checksum_be;
	assert_memory_equal(fragment, &expected, sizeof(expected));
	assert_true(wire_ip4_checksum_good(&fragment->ip));
	assert_memory_equal(fragment->byte + header, packet->byte + header + start, bytes);
}

static void check_fragments(const struct packet *packet, uint16_t mtu)
{
	static struct packet fragment;
	const unsigned header = wire_ip4_header_bytes(&packet->ip);
	const unsigned payload = length_of(packet) - header;
	struct wire_fragments plan;
	unsigned start = 0, i = 0;

	assert_true(wire_fragment_plan(&plan, &packet->ip, mtu));
	assert_int_equal(plan.header_bytes, header);
	for (; start < payload; i++) {
		unsigned bytes = model_bytes(payload - start, header, mtu);

		cut(packet, &plan, i, &fragment);
		check_fragment(packet, &fragment, start, bytes, start + bytes == payload);
		start += bytes;
	}
	assert_int_equal(plan.n, i);
}

static void cuts_packets_of_all_lengths_as_the_model_does(void **state)
{
	static struct packet packet;

	for (uint16_t mtu = 68; mtu < 84; mtu++)
		for (unsigned payload = mtu - WIRE_IP4_BYTES + 1; payload < 400; payload++) {
			make(&packet, NULL, 0, payload, 0);
			check_fragments(&packet, mtu);
		}
}

static void cuts_random_packets_as_the_model_does(void **state)
{
	static struct packet packet;
	static const uint8_t padding[HEADER_MAX] = {0};

	for (unsigned i = 0; i < 2000; i++) {
		unsigned n_options = rand() % 11 * 4, header = WIRE_IP4_BYTES + n_options;
		uint16_t mtu = 68 + rand() % 9000;
		unsigned payload = mtu - header + 1 + rand() % 9000;
		uint16_t offset = rand() % 2 ? rand() % (8191 - payload / 8) : 0;

		make(&packet, padding, n_options, payload,
			offset | (rand() % 2 ? WIRE_IP4_MORE_FRAGMENTS : 0));
		check_fragments(&packet, mtu);
	}
}

static void cuts_the_longest_packet(void **state)
{
	static struct packet packet;
	static const uint8_t padding[HEADER_MAX - WIRE_IP4_BYTES] = {0};

	make(&packet, NULL, 0, PACKET_MAX - WIRE_IP4_BYTES, 0);
	check_fragments(&packet, 68);
	check_fragments(&packet, PACKET_MAX - 1);
	make(&packet, padding, sizeof(padding), PACKET_MAX - HEADER_MAX, 0);
	check_fragments(&packet, 68);
}

static void cutting_twice_is_cutting_once_to_the_smaller_size(void **state)
{
	static struct packet packet, fragment, smaller, at_once;
	struct wire_fragments plan, again, once;
	unsigned n = 0;

	make(&packet, NULL, 0, 4 * 960, 0);
	assert_true(wire_fragment_plan(&plan, &packet.ip, 20 + 960));
	assert_true(wire_fragment_plan(&once, &packet.ip, 20 + 480));
	for (unsigned i = 0; i < plan.n; i++) {
		cut(&packet, &plan, i, &fragment);
		assert_true(wire_fragment_plan(&again, &fragment.ip, 20 + 480));
		for (unsigned j = 0; j < again.n; j++) {
			cut(&fragment, &again, j, &smaller);
			cut(&packet, &once, n++, &at_once);
			assert_memory_equal(&smaller, &at_once, length_of(&at_once));
		}
	}
	assert_int_equal(n, once.n);
}

// A security option (copied) between a timestamp and a record route (not copied).
static const uint8_t options[] = {68, 8, 5, 0, 1, 2, 3, 4, 1, 130, 11, 9, 9, 9, 9, 9, 9, 9, 9, 9, 7,
	7, 4, 0, 0, 0, 0, 0};
static const uint8_t copied[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 130, 11, 9, 9, 9, 9, 9, 9, 9, 9, 9, 1,
	1, 1, 1, 1, 1, 1, 0};

static void later_fragments_have_the_copied_options_only(void **state)
{
	static struct packet packet, fragment;
	struct wire_fragments plan;

	make(&packet, options, sizeof(options), 1000, 0);
	assert_true(wire_fragment_plan(&plan, &packet.ip, 500));
	assert_int_equal(plan.n, 3);
	for (unsigned i = 0; i < plan.n; i++) {
		cut(&packet, &plan, i, &fragment);
		assert_memory_equal(fragment.byte + WIRE_IP4_BYTES, i ? copied : options,
			sizeof(options));
		assert_true(wire_ip4_checksum_good(&fragment.ip));
	}
}

static void options_of_a_later_fragment_stay(void **state)
{
	static struct packet packet, fragment;
	struct wire_fragments plan;

	make(&packet, options, sizeof(options), 1000, 100);
	assert_true(wire_fragment_plan(&plan, &packet.ip, 500));
	for (unsigned i = 0; i < plan.n; i++) {
		cut(&packet, &plan, i, &fragment);
		assert_memory_equal(fragment.byte + WIRE_IP4_BYTES, options, sizeof(options));
	}
}

static void options_of_impossible_length_end_the_search(void **state)
{
	static struct packet packet, fragment;
	static const uint8_t row[][2][8] = {
		{{7, 0, 7, 3, 0, 0, 0, 0}, {7, 0, 7, 3, 0, 0, 0, 0}},
		{{7, 1, 7, 3, 0, 0, 0, 0}, {7, 1, 7, 3, 0, 0, 0, 0}},
		{{7, 3, 4, 7, 6, 0, 0, 0}, {1, 1, 1, 7, 6, 0, 0, 0}},
		{{7, 9, 4, 7, 5, 0, 0, 0}, {7, 9, 4, 7, 5, 0, 0, 0}},
		{{1, 1, 1, 1, 1, 1, 1, 7}, {1, 1, 1, 1, 1, 1, 1, 7}},
		{{0, 7, 3, 4, 0, 0, 0, 0}, {0, 7, 3, 4, 0, 0, 0, 0}},
	};
	struct wire_fragments plan;

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		make(&packet, row[i][0], 8, 100, 0);
		assert_true(wire_fragment_plan(&plan, &packet.ip, 68));
		cut(&packet, &plan, 1, &fragment);
		assert_memory_equal(fragment.byte + WIRE_IP4_BYTES, row[i][1], 8);
	}
}

static void the_first_header_can_replace_the_packets_own(void **state)
{
	static struct packet packet, fragment;
	struct wire_fragments plan;

	make(&packet, options, sizeof(options), 1000, 0);
	assert_true(wire_fragment_plan(&plan, &packet.ip, 500));
	cut(&packet, &plan, 0, &fragment);
	wire_fragment_header(&plan, 0, &packet.ip, &packet.ip);
	assert_memory_equal(&packet, &fragment, length_of(&fragment));
}

static void a_reserved_flag_does_not_reach_the_fragments(void **state)
{
	static struct packet packet;
	struct wire_ip4 to;
	struct wire_fragments plan;

	make(&packet, NULL, 0, 1000, 0x8000);
	assert_true(wire_fragment_plan(&plan, &packet.ip, 500));
	wire_fragment_header(&plan, 0, &packet.ip, &to);
	assert_int_equal(be16toh(to.fragment_be), WIRE_IP4_MORE_FRAGMENTS);
}

static void refuses_what_may_not_be_fragmented(void **state)
{
	static struct packet packet;
	struct wire_fragments plan;

	make(&packet, NULL, 0, 1000, WIRE_IP4_DONT_FRAGMENT);
	assert_false(wire_fragment_plan(&plan, &packet.ip, 500));
	make(&packet, NULL, 0, 16 + 16, 8191 - 2);
	assert_true(wire_fragment_plan(&plan, &packet.ip, 20 + 16));
	make(&packet, NULL, 0, 16 + 16, 8191 - 1);
	assert_false(wire_fragment_plan(&plan, &packet.ip, 20 + 16));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_packets_of_all_lengths_as_the_model_does),
		cmocka_unit_test(cuts_random_packets_as_the_model_does),
		cmocka_unit_test(cuts_the_longest_packet),
		cmocka_unit_test(cutting_twice_is_cutting_once_to_the_smaller_size),
		cmocka_unit_test(later_fragments_have_the_copied_options_only),
		cmocka_unit_test(options_of_a_later_fragment_stay),
		cmocka_unit_test(options_of_impossible_length_end_the_search),
		cmocka_unit_test(the_first_header_can_replace_the_packets_own),
		cmocka_unit_test(a_reserved_flag_does_not_reach_the_fragments),
		cmocka_unit_test(refuses_what_may_not_be_fragmented),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
