// Which fields of a packet select the member of a group, by Linux's hash policies 0 and 1. The
// member of each bucket is the bucket's number.
#include "datapath/dice.h"
#include "datapath/steps.h"

#include "wire/build.h"
#include "wire/headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 256, FRAME = 120, GROUP = 1, ROUNDS = 400, PARTS = 16 };

struct frame {
	uint8_t at[ROOM];
	uint16_t n;
};

static struct fib_hop_entry hops[2] = {[GROUP] = {.kind = FIB_HOP_GROUP}};
static uint32_t buckets[FIB_GROUP_BUCKETS];
static uint8_t layer3;
static const struct fib_view view = {.hops = hops, .bucket = buckets, .layer3_hash = &layer3};

static int number_buckets(void **state)
{
	for (unsigned i = 0; i < FIB_GROUP_BUCKETS; i++)
		buckets[i] = i;
	return 0;
}

static uint32_t bucket_in(const struct frame *frame, uint16_t contiguous)
{
	static struct burst b;
	struct rte_mbuf mbuf = {.buf_addr = (void *)(uintptr_t)frame->at, .data_len = contiguous};

	b = (struct burst){.n = 1,
		.view = &view,
		.is_ip6 = frame->at[12] == 0x86,
		.has = contiguous < frame->n ? BURST_SEGMENTS : 0};
	b.mbuf[0] = &mbuf;
	b.frame[0] = mbuf.buf_addr;
	b.length[0] = frame->n;
	b.hop[0] = GROUP;
	assert_true(datapath_ecmp(&b));
	return b.hop[0];
}

static uint32_t bucket_of(const struct frame *frame)
{
	return bucket_in(frame, frame->n);
}

static struct frame build(const struct wire_recipe *recipe)
{
	struct frame frame = {.n = recipe->frame_bytes};

	assert_int_equal(wire_build(recipe, frame.at, ROOM), 0);
	return frame;
}

static struct wire_recipe random_packet(uint8_t family)
{
	struct wire_recipe recipe = wire_recipe(family);

	recipe.frame_bytes = FRAME;
	recipe.src_port = dice(65536);
	for (unsigned i = family == 4 ? 1 : 4; i < (family == 4 ? 4 : 16); i++) {
		recipe.src.bytes[i] = dice(256);
		recipe.dst.bytes[i] = dice(256);
	}
	return recipe;
}

// One field of the header: its first byte in the frame, its bits, and whether they select.
struct field {
	unsigned at, n_bits, first_bit;
	bool selects;
};

static void expect_field(uint8_t family, const struct field *field)
{
	for (unsigned bit = field->first_bit; bit < field->first_bit + field->n_bits; bit++) {
		unsigned n_moved = 0;

		for (unsigned i = 0; i < ROUNDS; i++) {
			struct wire_recipe recipe = random_packet(family);
			struct frame frame = build(&recipe);
			uint32_t before = bucket_of(&frame);

			frame.at[field->at + bit / 8] ^= 0x80 >> bit % 8;
			n_moved += bucket_of(&frame) != before;
		}
		if (field->selects)
			assert_true(n_moved > ROUNDS * 9 / 10);
		else
			assert_int_equal(n_moved, 0);
	}
}

static void layer_3_of_ip4_is_the_addresses(void **state)
{
	static const struct field fields[] = {{26, 32, 0, true}, {30, 32, 0, true},
		{15, 8, 0, false}, {18, 16, 0, false}, {22, 8, 0, false}, {34, 32, 0, false}};

	layer3 = FIB_LAYER3_IP4;
	for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
		expect_field(4, &fields[i]);
}

static void layer_3_of_ip6_has_the_flow_label_and_the_next_header(void **state)
{
	static const struct field fields[] = {{22, 128, 0, true}, {38, 128, 0, true},
		{14, 20, 12, true}, {20, 8, 0, true}, {14, 8, 4, false}, {21, 8, 0, false},
		{54, 32, 0, false}};

	layer3 = FIB_LAYER3_IP6;
	for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
		expect_field(6, &fields[i]);
}

static void layer_4_of_one_family_is_not_affected_by_the_other(void **state)
{
	layer3 = FIB_LAYER3_IP6;
	expect_field(4, &(struct field){34, 32, 0, true});
	layer3 = FIB_LAYER3_IP4;
	expect_field(6, &(struct field){54, 32, 0, true});
}

// Consecutive hosts, as in a network.
static void many_hosts_spread_evenly(void **state)
{
	layer3 = FIB_LAYER3_IP4 | FIB_LAYER3_IP6;
	for (uint8_t family = 4; family <= 6; family += 2) {
		const unsigned n_hosts = 16000, expected = n_hosts / PARTS;
		unsigned n[PARTS] = {0}, last = family == 4 ? 3 : 15;

		for (unsigned i = 0; i < n_hosts; i++) {
			struct wire_recipe recipe = wire_recipe(family);
			recipe.src.bytes[last - 1] = i >> 8;
			recipe.src.bytes[last] = i & 255;
			struct frame frame = build(&recipe);
			n[bucket_of(&frame) * PARTS / FIB_GROUP_BUCKETS]++;
		}
		for (unsigned part = 0; part < PARTS; part++)
			assert_in_range(n[part], expected - expected / 6, expected + expected / 6);
	}
}

static void both_directions_take_one_bucket(void **state)
{
	layer3 = FIB_LAYER3_IP4 | FIB_LAYER3_IP6;
	for (uint8_t family = 4; family <= 6; family += 2)
		for (unsigned i = 0; i < ROUNDS; i++) {
			struct wire_recipe recipe = random_packet(family), back = recipe;
			back.src = recipe.dst;
			back.dst = recipe.src;
			struct frame frame = build(&recipe), other = build(&back);
			assert_int_equal(bucket_of(&frame), bucket_of(&other));
		}
}

// From a random router, quoting the beginning of a packet.
static struct frame icmp_message(const struct frame *quoted, uint8_t type)
{
	const bool is_ip4 = quoted->at[12] == 0x08;
	const unsigned ip_bytes = is_ip4 ? WIRE_IP4_BYTES : WIRE_IP6_BYTES;
	const unsigned icmp_at = WIRE_ETHER_BYTES + ip_bytes;
	struct wire_recipe recipe = random_packet(is_ip4 ? 4 : 6);

	recipe.protocol = is_ip4 ? WIRE_PROTO_ICMP4 : WIRE_PROTO_ICMP6;
	struct frame frame = build(&recipe);
	frame.at[icmp_at] = type;
	memcpy(frame.at + icmp_at + WIRE_ICMP_BYTES, quoted->at + WIRE_ETHER_BYTES, ip_bytes);
	return frame;
}

// How many of the messages of a type take the bucket of what they quote.
static unsigned count_with_quoted(uint8_t family, uint8_t type)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct wire_recipe recipe = random_packet(family);
		struct frame quoted = build(&recipe), message = icmp_message(&quoted, type);

		n += bucket_of(&message) == bucket_of(&quoted);
	}
	return n;
}

static void icmp_errors_take_the_bucket_of_what_they_quote(void **state)
{
	layer3 = FIB_LAYER3_IP4 | FIB_LAYER3_IP6;
	for (unsigned type = 0; type < 256; type++) {
		bool is_error4 = (type >= 3 && type <= 5) || type == 11 || type == 12;
		bool is_error6 = type >= 1 && type <= 4;
		unsigned n4 = count_with_quoted(4, type), n6 = count_with_quoted(6, type);

		assert_true(is_error4 ? n4 == ROUNDS : n4 < ROUNDS / 20);
		assert_true(is_error6 ? n6 == ROUNDS : n6 < ROUNDS / 20);
	}
}

// Of a later fragment, and of a message without a whole IP header, the outer addresses count.
static void errors_that_quote_too_little_take_the_bucket_of_their_addresses(void **state)
{
	layer3 = FIB_LAYER3_IP4 | FIB_LAYER3_IP6;
	for (uint8_t family = 4; family <= 6; family += 2)
		for (unsigned i = 0; i < ROUNDS; i++) {
			const unsigned ip_bytes = family == 4 ? WIRE_IP4_BYTES : WIRE_IP6_BYTES;
			const uint16_t whole = WIRE_ETHER_BYTES + 2 * ip_bytes + WIRE_ICMP_BYTES;
			const uint8_t error = family == 4 ? 11 : 3, echo = family == 4 ? 8 : 128;
			struct wire_recipe recipe = random_packet(family);
			struct frame quoted = build(&recipe),
				     message = icmp_message(&quoted, error);
			struct frame plain = message;

			plain.at[WIRE_ETHER_BYTES + ip_bytes] = echo;
			assert_int_equal(bucket_in(&message, whole), bucket_of(&quoted));
			assert_int_equal(bucket_in(&message, whole - 1), bucket_of(&plain));
			message.n = whole - 1;
			assert_int_equal(bucket_of(&message), bucket_of(&plain));
			message.n = FRAME;
			message.at[21] = 1; // IPv4: at offset 8
			if (family == 4)
				assert_int_equal(bucket_of(&message), bucket_of(&plain));
		}
}

// The bucket is marked with the epoch of its last packet; other groups have no marks.
static void the_use_of_a_resilient_groups_bucket_is_noted(void **state)
{
	static uint32_t used[FIB_GROUP_BUCKETS];
	static const uint32_t epochs[] = {7, 8};
	static struct burst b;
	struct fib_hop_entry entry[2] = {[GROUP] = {.kind = FIB_HOP_GROUP}};
	const struct wire_recipe recipe = random_packet(4);
	const struct frame packet = build(&recipe);
	struct rte_mbuf mbuf = {.buf_addr = (void *)(uintptr_t)packet.at, .data_len = packet.n};

	for (unsigned i = 0; i < 4; i++) {
		const bool is_resilient = i & 1;
		const struct fib_view own = {.hops = entry,
			.bucket = buckets,
			.layer3_hash = &layer3,
			.used = used,
			.epoch = &epochs[i / 2]};
		entry[GROUP].macs[FIB_ENTRY_RESILIENT] = is_resilient;
		memset(used, 0, sizeof(used));
		b = (struct burst){.n = 1, .view = &own};
		b.mbuf[0] = &mbuf;
		b.frame[0] = mbuf.buf_addr;
		b.length[0] = packet.n;
		b.hop[0] = GROUP;
		assert_true(datapath_ecmp(&b));
		for (unsigned at = 0; at < FIB_GROUP_BUCKETS; at++)
			assert_int_equal(used[at],
				is_resilient && at == b.hop[0] ? epochs[i / 2] : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layer_3_of_ip4_is_the_addresses),
		cmocka_unit_test(the_use_of_a_resilient_groups_bucket_is_noted),
		cmocka_unit_test(layer_3_of_ip6_has_the_flow_label_and_the_next_header),
		cmocka_unit_test(layer_4_of_one_family_is_not_affected_by_the_other),
		cmocka_unit_test(many_hosts_spread_evenly),
		cmocka_unit_test(both_directions_take_one_bucket),
		cmocka_unit_test(icmp_errors_take_the_bucket_of_what_they_quote),
		cmocka_unit_test(errors_that_quote_too_little_take_the_bucket_of_their_addresses),
	};
	return cmocka_run_group_tests(tests, number_buckets, NULL);
}
