// Frames and their verdicts, side by side.
#include "wire/check.h"

#include "base/bits.h"
#include "wire/build.h"
#include "wire/checksum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 256, MAX_POKES = 4 };

static const struct wire_check_rules strict = {.verify_ip4_checksum = true};

// A valid frame of `family`, with some bytes changed, truncated to `cut` bytes (0: not truncated).
struct row {
	const char *what;
	enum wire_fault fault;
	uint8_t family;
	struct {
		uint8_t at, value;
	} poke[MAX_POKES]; // at 0: none
	uint8_t cut;
	bool keeps_checksum; // otherwise the IPv4 header checksum is recomputed after the changes
};

static const struct row rows[] = {
	{"a good IPv4 packet", WIRE_OK, 4, .cut = 0},
	{"a good IPv6 packet", WIRE_OK, 6, .cut = 0},
	{"one byte", WIRE_RUNT, 4, .cut = 1},
	{"Ethernet header cut", WIRE_RUNT, 4, .cut = 13},
	{"Ethernet header alone", WIRE_RUNT, 4, .cut = 14},
	{"IPv4 header cut", WIRE_RUNT, 4, .cut = 33},
	{"IPv4 payload cut", WIRE_IP4_LENGTH, 4, .cut = 34},
	{"IPv4 last byte cut", WIRE_IP4_LENGTH, 4, .cut = 59},
	{"IPv6 header cut", WIRE_RUNT, 6, .cut = 53},
	{"IPv6 payload cut", WIRE_IP6_LENGTH, 6, .cut = 54},
	{"IPv6 last byte cut", WIRE_IP6_LENGTH, 6, .cut = 61},
	{"ARP", WIRE_ARP, 4, .poke = {{12, 0x08}, {13, 0x06}}},
	{"ARP cut", WIRE_ARP, 4, .poke = {{12, 0x08}, {13, 0x06}}, .cut = 14},
	{"802.1Q", WIRE_VLAN, 4, .poke = {{12, 0x81}, {13, 0x00}}},
	{"802.1ad", WIRE_VLAN, 4, .poke = {{12, 0x88}, {13, 0xa8}}},
	{"LLDP", WIRE_ETHERTYPE, 4, .poke = {{12, 0x88}, {13, 0xcc}}},
	{"802.3 length", WIRE_ETHERTYPE, 4, .poke = {{12, 0x00}, {13, 0x2e}}},
	{"version 5", WIRE_IP4_VERSION, 4, .poke = {{14, 0x55}}},
	{"version before header length", WIRE_IP4_VERSION, 4, .poke = {{14, 0x00}}},
	{"header of 16 bytes", WIRE_IP4_HEADER_LENGTH, 4, .poke = {{14, 0x44}},
		.keeps_checksum = true},
	{"header length before checksum", WIRE_IP4_HEADER_LENGTH, 4, .poke = {{14, 0x40}},
		.keeps_checksum = true},
	{"total length below header", WIRE_IP4_LENGTH, 4, .poke = {{16, 0}, {17, 19}}},
	{"total length is the header", WIRE_OK, 4, .poke = {{16, 0}, {17, 20}}},
	{"total length beyond frame", WIRE_IP4_LENGTH, 4, .poke = {{16, 0}, {17, 47}}},
	{"total length 65535", WIRE_IP4_LENGTH, 4, .poke = {{16, 0xff}, {17, 0xff}}},
	{"padding", WIRE_OK, 4, .poke = {{16, 0}, {17, 28}}},
	{"options beyond frame", WIRE_IP4_LENGTH, 4, .poke = {{14, 0x4f}}, .keeps_checksum = true},
	{"checksum", WIRE_IP4_CHECKSUM, 4, .poke = {{24, 0}, {25, 0}}, .keeps_checksum = true},
	{"wrong TTL", WIRE_IP4_CHECKSUM, 4, .poke = {{22, 63}}, .keeps_checksum = true},
	{"checksum before options", WIRE_IP4_CHECKSUM, 4, .poke = {{14, 0x46}},
		.keeps_checksum = true},
	{"checksum before martian", WIRE_IP4_CHECKSUM, 4, .poke = {{26, 127}},
		.keeps_checksum = true},
	{"options", WIRE_IP4_OPTIONS, 4, .poke = {{14, 0x46}, {34, 1}, {35, 1}}},
	{"options before martian", WIRE_IP4_OPTIONS, 4, .poke = {{14, 0x46}, {26, 127}}},
	{"TTL 0 is judged later", WIRE_OK, 4, .poke = {{22, 0}}},
	{"source 0.0.0.0", WIRE_MARTIAN_SOURCE, 4, .poke = {{26, 0}, {27, 0}, {28, 0}, {29, 0}}},
	{"source 0.255.2.1", WIRE_MARTIAN_SOURCE, 4, .poke = {{26, 0}, {27, 255}}},
	{"source 1.0.2.1", WIRE_OK, 4, .poke = {{26, 1}}},
	{"source 126.0.2.1", WIRE_OK, 4, .poke = {{26, 126}}},
	{"source 127.0.2.1", WIRE_MARTIAN_SOURCE, 4, .poke = {{26, 127}}},
	{"source 128.0.2.1", WIRE_OK, 4, .poke = {{26, 128}}},
	{"source 223.0.2.1", WIRE_OK, 4, .poke = {{26, 223}}},
	{"source 224.0.2.1", WIRE_MARTIAN_SOURCE, 4, .poke = {{26, 224}}},
	{"source 240.0.2.1", WIRE_MARTIAN_SOURCE, 4, .poke = {{26, 240}}},
	{"source 255.255.255.255", WIRE_MARTIAN_SOURCE, 4,
		.poke = {{26, 255}, {27, 255}, {28, 255}, {29, 255}}},
	{"source 169.254.2.1", WIRE_LINK_LOCAL_SOURCE, 4, .poke = {{26, 169}, {27, 254}}},
	{"source 169.253.2.1", WIRE_OK, 4, .poke = {{26, 169}, {27, 253}}},
	{"source 168.254.2.1", WIRE_OK, 4, .poke = {{26, 168}, {27, 254}}},
	{"IPv6 with version 4", WIRE_IP6_VERSION, 6, .poke = {{14, 0x45}}},
	{"IPv6 class and flow", WIRE_OK, 6, .poke = {{14, 0x6f}, {15, 0xff}}},
	{"IPv6 payload beyond frame", WIRE_IP6_LENGTH, 6, .poke = {{19, 9}}},
	{"IPv6 payload 65535", WIRE_IP6_LENGTH, 6, .poke = {{18, 0xff}, {19, 0xff}}},
	{"IPv6 payload 0", WIRE_OK, 6, .poke = {{19, 0}}},
	{"hop-by-hop", WIRE_IP6_HOP_BY_HOP, 6, .poke = {{20, 0}}},
	{"hop-by-hop before martian", WIRE_IP6_HOP_BY_HOP, 6, .poke = {{20, 0}, {22, 0xff}}},
	{"IPv6 source ff01::", WIRE_MARTIAN_SOURCE, 6, .poke = {{22, 0xff}}},
	{"IPv6 source fe80::", WIRE_LINK_LOCAL_SOURCE, 6, .poke = {{22, 0xfe}, {23, 0x80}}},
	{"IPv6 source febf::", WIRE_LINK_LOCAL_SOURCE, 6, .poke = {{22, 0xfe}, {23, 0xbf}}},
	{"IPv6 source fec0::", WIRE_OK, 6, .poke = {{22, 0xfe}, {23, 0xc0}}},
	{"IPv6 source fe7f::", WIRE_OK, 6, .poke = {{22, 0xfe}, {23, 0x7f}}},
};

// Builds the frame of a row in memory of exactly its size, so that sanitizers detect reads beyond
// it. Owner: caller.
static uint8_t *make_frame(const struct row *row, size_t *bytes)
{
	struct wire_recipe recipe = wire_recipe(row->family);
	struct wire_ip4 *ip;
	uint8_t room[ROOM], *frame;

	assert_int_equal(wire_build(&recipe, room, sizeof(room)), 0);
	for (size_t i = 0; i < MAX_POKES && row->poke[i].at; i++)
		room[row->poke[i].at] = row->poke[i].value;
	ip = (void *)(room + WIRE_ETHER_BYTES);
	if (row->family == 4 && !row->keeps_checksum)
		ip->checksum_be = wire_ip4_checksum_be(ip);
	*bytes = row->cut ? row->cut : recipe.frame_bytes;
	frame = malloc(*bytes);
	memcpy(frame, room, *bytes);
	return frame;
}

static void gives_each_frame_its_verdict(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t bytes;
		uint8_t *frame = make_frame(&rows[i], &bytes);
		enum wire_fault fault = wire_check(frame, bytes, bytes, &strict);

		if (fault != rows[i].fault)
			fail_msg("%s: fault %d, wanted %d", rows[i].what, fault, rows[i].fault);
		free(frame);
	}
}

static void has_a_row_for_each_fault_but_multi_segment(void **state)
{
	bool seen[N_WIRE_FAULTS] = {[WIRE_MULTI_SEGMENT] = true};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		seen[rows[i].fault] = true;
	for (int fault = 0; fault < N_WIRE_FAULTS; fault++)
		if (!seen[fault])
			fail_msg("no frame has fault %d", fault);
}

static void tells_a_header_in_pieces_from_a_short_frame(void **state)
{
	for (uint8_t family = 4; family <= 6; family += 2) {
		const struct row good = {"good", WIRE_OK, family, .cut = 0};
		size_t bytes, headers = WIRE_ETHER_BYTES +
		                        (family == 4 ? WIRE_IP4_BYTES : WIRE_IP6_BYTES);
		uint8_t *frame = make_frame(&good, &bytes);

		for (size_t contiguous = 0; contiguous <= bytes; contiguous++) {
			uint8_t *piece = malloc(contiguous + 1);

			memcpy(piece + 1, frame, contiguous);
			assert_int_equal(wire_check(piece + 1, contiguous, bytes, &strict),
				contiguous < headers ? WIRE_MULTI_SEGMENT : WIRE_OK);
			free(piece);
		}
		free(frame);
	}
}

static void tells_options_in_pieces_before_it_sums_them(void **state)
{
	const struct row options = {"options", WIRE_IP4_OPTIONS, 4, .poke = {{14, 0x46}}};
	size_t bytes;
	uint8_t *frame = make_frame(&options, &bytes), *piece = malloc(37);

	memcpy(piece, frame, 37);
	assert_int_equal(wire_check(piece, 37, bytes, &strict), WIRE_MULTI_SEGMENT);
	assert_int_equal(wire_check(frame, 38, bytes, &strict), WIRE_IP4_OPTIONS);
	free(piece);
	free(frame);
}

static void leaves_out_what_the_rules_leave_out(void **state)
{
	const struct wire_check_rules unverified = {.verify_ip4_checksum = false};
	const struct wire_check_rules lax = {.verify_ip4_checksum = true, .pass_martians = true};
	const struct {
		struct row row;
		const struct wire_check_rules *rules;
	} cases[] = {
		{{"checksum", WIRE_OK, 4, .poke = {{24, 0}}, .keeps_checksum = true}, &unverified},
		{{"checksum", WIRE_IP4_CHECKSUM, 4, .poke = {{24, 0}}, .keeps_checksum = true},
			&lax},
		{{"martian", WIRE_MARTIAN_SOURCE, 4, .poke = {{26, 127}}}, &unverified},
		{{"martian", WIRE_OK, 4, .poke = {{26, 127}}}, &lax},
		{{"martian", WIRE_OK, 6, .poke = {{22, 0xff}}}, &lax},
		{{"link-local", WIRE_LINK_LOCAL_SOURCE, 4, .poke = {{26, 169}, {27, 254}}}, &lax},
		{{"link-local", WIRE_LINK_LOCAL_SOURCE, 6, .poke = {{22, 0xfe}, {23, 0x80}}}, &lax},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t bytes;
		uint8_t *frame = make_frame(&cases[i].row, &bytes);

		assert_int_equal(wire_check(frame, bytes, bytes, cases[i].rules),
			cases[i].row.fault);
		free(frame);
	}
}

static void refuses_ipv6_sources_that_nobody_has(void **state)
{
	struct wire_recipe recipe = wire_recipe(6);
	static const struct {
		const char *src;
		enum wire_fault fault;
	} sources[] = {
		{"::", WIRE_MARTIAN_SOURCE},
		{"::1", WIRE_MARTIAN_SOURCE},
		{"::2", WIRE_OK},
		{"::1:0", WIRE_OK},
		{"::1:1", WIRE_OK},
		{"::ffff:10.0.0.1", WIRE_MARTIAN_SOURCE}, // IPv4-mapped, not for the wire
		{"::ffff:127.0.0.1", WIRE_MARTIAN_SOURCE},
		{"::fffe:10.0.0.1", WIRE_OK},
		{"::1:ffff:10.0.0.1", WIRE_OK},
		{"64:ff9b::10.0.0.1", WIRE_OK}, // through a translator
		{"100::", WIRE_OK},
		{"fdff::1", WIRE_OK},
		{"ff02::1", WIRE_MARTIAN_SOURCE},
	};
	uint8_t frame[ROOM];

	for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
		assert_int_equal(wire_addr_parse(sources[i].src, &recipe.src), 0);
		assert_int_equal(wire_build(&recipe, frame, sizeof(frame)), 0);
		assert_int_equal(wire_check(frame, 62, 62, &strict), sources[i].fault);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_each_frame_its_verdict),
		cmocka_unit_test(has_a_row_for_each_fault_but_multi_segment),
		cmocka_unit_test(tells_a_header_in_pieces_from_a_short_frame),
		cmocka_unit_test(tells_options_in_pieces_before_it_sums_them),
		cmocka_unit_test(leaves_out_what_the_rules_leave_out),
		cmocka_unit_test(refuses_ipv6_sources_that_nobody_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
