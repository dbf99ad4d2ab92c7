// Compares frames bytewise with those of wire_build, with the stamp inserted and all checksums
// recomputed.
#include "gen/frame.h"

#include "base/bits.h"
#include "wire/check.h"
#include "wire/checksum.h"
#include "wire/headers.h"
#include "wire/stamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 9728, RUN = 0x5a, ROUNDS = 400 };

static struct frame_values values;
static uint8_t room[GEN_MAX_BURST][ROOM] LINE_ALIGNED;
static const uint8_t no_pick[GEN_MAX_BURST];

static uint64_t dice(void)
{
	static uint64_t seed = 88172645463325252ull; // xorshift64

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static struct gen_stream stream_of(uint8_t family, uint8_t protocol, bool has_vlan)
{
	struct gen_stream stream = {.recipe = wire_recipe(family), .id = 0x77, .n_sizes = 1};

	stream.recipe.protocol = protocol;
	stream.recipe.has_vlan = has_vlan;
	stream.recipe.vlan_tag = 0x2005;
	stream.fields[GEN_SRC_MAC].count = stream.fields[GEN_DST_MAC].count = 2;
	return stream;
}

static void put_last32(uint8_t *bytes, unsigned n, uint32_t value)
{
	uint32_t be = htobe32(value);

	memcpy(bytes + n - 4, &be, 4);
}

static struct wire_recipe recipe_of(const struct gen_stream *stream, unsigned i, unsigned size)
{
	struct wire_recipe recipe = stream->recipe;
	unsigned addr_bytes = recipe.src.family == 6 ? 16 : 4;

	put_last32(recipe.src_mac.bytes, 6, values.field[GEN_SRC_MAC][i]);
	put_last32(recipe.dst_mac.bytes, 6, values.field[GEN_DST_MAC][i]);
	put_last32(recipe.src.bytes, addr_bytes, values.field[GEN_SRC_IP][i]);
	put_last32(recipe.dst.bytes, addr_bytes, values.field[GEN_DST_IP][i]);
	recipe.src_port = values.field[GEN_SRC_PORT][i];
	recipe.dst_port = values.field[GEN_DST_PORT][i];
	recipe.frame_bytes = stream->sizes[size].bytes - 4;
	return recipe;
}

// The checksum over the pseudo header and layer 4, with `checksum` 0.
static uint16_t checksum_of(const uint8_t *ip, bool is_ip6, uint8_t protocol, unsigned l4_bytes)
{
	const uint8_t *l4 = ip + (is_ip6 ? WIRE_IP6_BYTES : WIRE_IP4_BYTES);
	uint64_t pseudo = is_ip6 ? wire_sum_pseudo6((const void *)ip, protocol, l4_bytes)
	                         : wire_sum_pseudo4((const void *)ip, protocol, l4_bytes);

	return wire_sum_finish_be(wire_sum(pseudo, l4, l4_bytes));
}

// Stamps a frame of wire_build according to wire/stamp.h, in the simplest way.
static void put_stamp(uint8_t *l4, bool is_tcp, const struct stamp *s)
{
	uint8_t bytes[STAMP_BYTES];

	stamp_write(bytes, s);
	if (!is_tcp) {
		memcpy(l4 + WIRE_UDP_BYTES, bytes, sizeof(bytes));
		return;
	}
	memcpy(l4 + 4, bytes + 4, 4);   // sequence, low 32 bits
	memcpy(l4 + 8, bytes + 9, 4);   // due, low 32 bits
	memcpy(l4 + 20, bytes, 3);      // magic, stream
	l4[23] = bytes[3];              // sequence, high byte
	l4[24] = bytes[8];              // due, high byte
	memcpy(l4 + 25, bytes + 13, 5); // sent
}

static void build_expected(const struct gen_stream *stream, unsigned i, unsigned size,
	uint8_t *frame)
{
	struct wire_recipe recipe = recipe_of(stream, i, size);
	bool is_ip6 = recipe.src.family == 6, is_tcp = recipe.protocol == WIRE_PROTO_TCP;
	uint8_t *ip = frame + WIRE_ETHER_BYTES + (recipe.has_vlan ? WIRE_VLAN_BYTES : 0);
	uint8_t *l4 = ip + (is_ip6 ? WIRE_IP6_BYTES : WIRE_IP4_BYTES);
	unsigned l4_bytes = frame + recipe.frame_bytes - l4;
	unsigned checksum_at = is_tcp ? 16 : 6;
	struct stamp stamp = {STAMP_MAGIC | RUN, stream->id, values.sequence + i, values.due[i],
		values.sent};

	assert_int_equal(wire_build(&recipe, frame, ROOM), 0);
	put_stamp(l4, is_tcp, &stamp);
	if (is_tcp)
		((struct wire_tcp *)l4)->flags = WIRE_TCP_ACK | WIRE_TCP_PSH;
	memset(l4 + checksum_at, 0, 2);
	uint16_t checksum_be = checksum_of(ip, is_ip6, recipe.protocol, l4_bytes);
	if (!checksum_be && !is_tcp)
		checksum_be = 0xffff;
	memcpy(l4 + checksum_at, &checksum_be, 2);
}

static void roll_values(void)
{
	for (unsigned f = 0; f < GEN_N_FIELDS; f++)
		for (unsigned i = 0; i < GEN_MAX_BURST; i++)
			values.field[f][i] = f < GEN_SRC_PORT ? dice() >> 20 : dice() >> 48;
	for (unsigned i = 0; i < GEN_MAX_BURST; i++)
		values.due[i] = dice();
	values.sent = dice();
	values.sequence = dice();
	if (dice() % 4 == 0) // all ones and zeros: corner cases of checksums
		memset(values.field, dice() % 2 ? 0xff : 0, sizeof(values.field[0]) * 4);
}

static void fill_room(void)
{
	for (unsigned i = 0; i < GEN_MAX_BURST; i++) {
		values.to[i] = room[i];
		memset(room[i], dice(), 256);
	}
}

static void check_frames(const struct gen_stream *stream, const struct frame_form *form)
{
	static const struct wire_check_rules rules = {true, true};
	unsigned n = 1 + dice() % GEN_MAX_BURST;
	static uint8_t want[ROOM];

	roll_values();
	fill_room();
	values.n = n;
	frame_build(form, &values);
	for (unsigned i = 0; i < n; i++) {
		unsigned size = values.size[i], n_bytes = form->sizes[size].n_bytes;

		assert_int_equal(n_bytes, stream->sizes[size].bytes - 4);
		build_expected(stream, i, size, want);
		assert_memory_equal(room[i], want, n_bytes);
		if (!stream->recipe.has_vlan && stream->recipe.src.family == 4)
			assert_in_set(wire_check(room[i], n_bytes, n_bytes, &rules),
				((const unsigned long[]){WIRE_OK, WIRE_LINK_LOCAL_SOURCE}), 2);
	}
}

static void builds_each_kind_of_frame_in_each_size_with_right_checksums(void **state)
{
	static const uint16_t sizes[] = {64, 65, 68, 84, 88, 96, 100, 127, 128, 129, 132, 511, 1518,
		9622};
	static const uint8_t protocols[] = {WIRE_PROTO_UDP, WIRE_PROTO_TCP};

	values.size = no_pick;
	for (unsigned kind = 0; kind < 8; kind++)
		for (unsigned s = 0; s < ARRAY_LEN(sizes); s++) {
			struct gen_stream stream =
				stream_of(kind & 1 ? 6 : 4, protocols[kind >> 1 & 1], kind & 4);
			struct frame_form form;

			stream.sizes[0].bytes = sizes[s];
			bool has_room = sizes[s] >= gen_smallest_bytes(&stream);
			assert_int_equal(frame_form_make(&form, &stream, RUN), has_room ? 0 : -22);
			for (unsigned round = 0; has_room && round < ROUNDS / 8; round++)
				check_frames(&stream, &form);
			frame_form_free(&form);
		}
}

static void says_which_frames_hold_no_stamp(void **state)
{
	static const struct {
		uint8_t family, protocol;
		bool has_vlan;
		uint16_t smallest;
	} rows[] = {
		{4, WIRE_PROTO_UDP, false, 64},
		{4, WIRE_PROTO_UDP, true, 68},
		{6, WIRE_PROTO_UDP, false, 84},
		{6, WIRE_PROTO_UDP, true, 88},
		{4, WIRE_PROTO_TCP, false, 68},
		{6, WIRE_PROTO_TCP, true, 92},
	};

	for (unsigned r = 0; r < ARRAY_LEN(rows); r++) {
		struct gen_stream stream =
			stream_of(rows[r].family, rows[r].protocol, rows[r].has_vlan);
		struct frame_form form;

		stream.sizes[0].bytes = rows[r].smallest;
		assert_int_equal(frame_form_make(&form, &stream, RUN), 0);
		frame_form_free(&form);
		stream.sizes[0].bytes--;
		assert_int_equal(frame_form_make(&form, &stream, RUN), -22);
		frame_form_free(&form);
	}
}

static void builds_a_mix_of_sizes(void **state)
{
	struct gen_stream stream = stream_of(4, WIRE_PROTO_UDP, false);
	uint8_t pick[GEN_MAX_BURST];
	struct frame_form form;

	stream.n_sizes = 5;
	for (unsigned i = 0; i < 5; i++)
		stream.sizes[i].bytes = 64 << i;
	assert_int_equal(frame_form_make(&form, &stream, RUN), 0);
	values.size = pick;
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < GEN_MAX_BURST; i++)
			pick[i] = dice() % 5;
		check_frames(&stream, &form);
	}
	frame_form_free(&form);
}

// One stamp in 65,536 gives a checksum of 0.
static void never_says_that_there_is_no_udp_checksum(void **state)
{
	unsigned n_ffff = 0;

	values.size = no_pick;
	for (unsigned family = 4; family <= 6; family += 2) {
		struct gen_stream stream = stream_of(family, WIRE_PROTO_UDP, false);
		unsigned at =
			WIRE_ETHER_BYTES + 6 + (family == 6 ? WIRE_IP6_BYTES : WIRE_IP4_BYTES);
		struct frame_form form;

		stream.sizes[0].bytes = 84;
		assert_int_equal(frame_form_make(&form, &stream, RUN), 0);
		roll_values();
		fill_room();
		values.n = GEN_MAX_BURST;
		for (values.sequence = 0; values.sequence < 1 << 18;
			values.sequence += GEN_MAX_BURST) {
			frame_build(&form, &values);
			for (unsigned i = 0; i < GEN_MAX_BURST; i++) {
				assert_false(room[i][at] == 0 && room[i][at + 1] == 0);
				n_ffff += room[i][at] == 0xff && room[i][at + 1] == 0xff;
			}
		}
		frame_form_free(&form);
	}
	assert_true(n_ffff > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builds_each_kind_of_frame_in_each_size_with_right_checksums),
		cmocka_unit_test(says_which_frames_hold_no_stamp),
		cmocka_unit_test(builds_a_mix_of_sizes),
		cmocka_unit_test(never_says_that_there_is_no_udp_checksum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
