// Chains of extension headers and what is found behind them, compared with rows and with a model.
#include "wire/transport.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 1024, MAX_CHAIN = 10 };

// An extension header: its number and its length in bytes.
struct link {
	uint8_t proto;
	uint16_t bytes;
};

// An IPv6 packet with `chain` and a last header `proto`, cut to `cut` bytes after its IPv6 header.
struct row {
	const char *what;
	struct link chain[MAX_CHAIN]; // bytes 0: the end
	uint8_t proto;
	uint16_t fragment; // field of the fragment headers
	uint16_t cut;      // 0: not cut
	struct wire_transport want;
};

static const struct row rows[] = {
	{"no extension header", .proto = WIRE_PROTO_TCP,
		.want = {.proto = WIRE_PROTO_TCP, .offset = 40}},
	{"an empty packet", .proto = WIRE_PROTO_NONE,
		.want = {.proto = WIRE_PROTO_NONE, .offset = 40}},
	{"hop-by-hop options", {{WIRE_PROTO_HOP_BY_HOP, 8}}, WIRE_PROTO_UDP,
		.want = {.proto = WIRE_PROTO_UDP, .offset = 48}},
	{"one of each kind",
		{{WIRE_PROTO_HOP_BY_HOP, 8}, {WIRE_PROTO_DESTINATION, 8}, {WIRE_PROTO_ROUTING, 24},
			{WIRE_PROTO_FRAGMENT, 8}, {WIRE_PROTO_AH, 24}, {WIRE_PROTO_MOBILITY, 8},
			{WIRE_PROTO_HIP, 40}, {WIRE_PROTO_SHIM6, 8}},
		WIRE_PROTO_TCP,
		.want = {.proto = WIRE_PROTO_TCP, .offset = 40 + 8 + 8 + 24 + 8 + 24 + 8 + 40 + 8}},
	{"eight headers",
		{{WIRE_PROTO_DESTINATION, 8}, {WIRE_PROTO_DESTINATION, 8},
			{WIRE_PROTO_DESTINATION, 8}, {WIRE_PROTO_DESTINATION, 8},
			{WIRE_PROTO_DESTINATION, 8}, {WIRE_PROTO_DESTINATION, 8},
			{WIRE_PROTO_DESTINATION, 8}, {WIRE_PROTO_DESTINATION, 8}},
		WIRE_PROTO_TCP, .want = {.proto = WIRE_PROTO_TCP, .offset = 104}},
	{"nine headers",
		{{WIRE_PROTO_DESTINATION, 8}, {WIRE_PROTO_DESTINATION, 8},
			{WIRE_PROTO_DESTINATION, 8}, {WIRE_PROTO_DESTINATION, 8},
			{WIRE_PROTO_DESTINATION, 8}, {WIRE_PROTO_DESTINATION, 8},
			{WIRE_PROTO_DESTINATION, 8}, {WIRE_PROTO_DESTINATION, 8},
			{WIRE_PROTO_DESTINATION, 8}},
		WIRE_PROTO_TCP,
		.want = {WIRE_TRANSPORT_TOO_MANY, WIRE_PROTO_DESTINATION, .offset = 104}},
	{"256 bytes", {{WIRE_PROTO_DESTINATION, 248}, {WIRE_PROTO_DESTINATION, 8}}, WIRE_PROTO_UDP,
		.want = {.proto = WIRE_PROTO_UDP, .offset = 296}},
	{"264 bytes", {{WIRE_PROTO_DESTINATION, 248}, {WIRE_PROTO_DESTINATION, 16}}, WIRE_PROTO_UDP,
		.want = {WIRE_TRANSPORT_TOO_MANY, WIRE_PROTO_DESTINATION, .offset = 288}},
	{"260 bytes of AH", {{WIRE_PROTO_AH, 260}}, WIRE_PROTO_UDP,
		.want = {WIRE_TRANSPORT_TOO_MANY, WIRE_PROTO_AH, .offset = 40}},
	{"AH is not a multiple of 8", {{WIRE_PROTO_AH, 12}}, WIRE_PROTO_UDP,
		.want = {.proto = WIRE_PROTO_UDP, .offset = 52}},
	{"ESP ends the chain", {{WIRE_PROTO_DESTINATION, 8}}, WIRE_PROTO_ESP,
		.want = {.proto = WIRE_PROTO_ESP, .offset = 48}},
	{"a first fragment",
		{{WIRE_PROTO_DESTINATION, 8}, {WIRE_PROTO_FRAGMENT, 8},
			{WIRE_PROTO_DESTINATION, 8}},
		WIRE_PROTO_UDP, .fragment = 1,
		.want = {.proto = WIRE_PROTO_UDP, .fragment = WIRE_FRAGMENT_FIRST, .offset = 64}},
	{"an atomic fragment", {{WIRE_PROTO_FRAGMENT, 8}}, WIRE_PROTO_UDP,
		.want = {.proto = WIRE_PROTO_UDP, .offset = 48}},
	{"reserved bits of a fragment header", {{WIRE_PROTO_FRAGMENT, 8}}, WIRE_PROTO_UDP,
		.fragment = 6, .want = {.proto = WIRE_PROTO_UDP, .offset = 48}},
	{"a later fragment: what follows is data",
		{{WIRE_PROTO_FRAGMENT, 8}, {WIRE_PROTO_DESTINATION, 8}}, WIRE_PROTO_UDP,
		.fragment = 8 * 185 | 1,
		.want = {.proto = WIRE_PROTO_DESTINATION,
			.fragment = WIRE_FRAGMENT_LATER,
			.offset = 48,
			.fragment_units = 185}},
	{"the last fragment", {{WIRE_PROTO_FRAGMENT, 8}}, WIRE_PROTO_TCP, .fragment = 8,
		.want = {.proto = WIRE_PROTO_TCP,
			.fragment = WIRE_FRAGMENT_LATER,
			.offset = 48,
			.fragment_units = 1}},
	{"cut in the first 8 bytes", {{WIRE_PROTO_DESTINATION, 8}}, WIRE_PROTO_TCP, .cut = 7,
		.want = {WIRE_TRANSPORT_TRUNCATED, WIRE_PROTO_DESTINATION, .offset = 40}},
	{"cut in a long header", {{WIRE_PROTO_DESTINATION, 8}, {WIRE_PROTO_ROUTING, 24}},
		WIRE_PROTO_TCP, .cut = 31,
		.want = {WIRE_TRANSPORT_TRUNCATED, WIRE_PROTO_ROUTING, .offset = 48}},
	{"cut in the fragment header", {{WIRE_PROTO_FRAGMENT, 8}}, WIRE_PROTO_TCP, .fragment = 1,
		.cut = 7, .want = {WIRE_TRANSPORT_TRUNCATED, WIRE_PROTO_FRAGMENT, .offset = 40}},
	{"cut after the last extension header", {{WIRE_PROTO_DESTINATION, 8}}, WIRE_PROTO_TCP,
		.cut = 8, .want = {.proto = WIRE_PROTO_TCP, .offset = 48}},
};

// Returns the length of the packet.
static size_t build(const struct row *row, uint8_t packet[ROOM])
{
	struct wire_ip6 *ip = (void *)packet;
	uint8_t *next = &ip->next_header;
	size_t at = sizeof(*ip);

	memset(packet, 0xee, ROOM);
	for (unsigned i = 0; i < MAX_CHAIN && row->chain[i].bytes; i++) {
		const struct link *link = &row->chain[i];
		uint8_t *header = packet + at;

		*next = link->proto;
		next = header;
		header[1] =
			link->proto == WIRE_PROTO_AH ? link->bytes / 4 - 2 : link->bytes / 8 - 1;
		if (link->proto == WIRE_PROTO_FRAGMENT) {
			header[2] = row->fragment >> 8;
			header[3] = row->fragment;
		}
		at += link->bytes;
	}
	*next = row->proto;
	return row->cut ? sizeof(*ip) + row->cut : at + 20;
}

static void assert_same(const struct wire_transport *got, const struct wire_transport *want)
{
	assert_int_equal(got->verdict, want->verdict);
	assert_int_equal(got->proto, want->proto);
	assert_int_equal(got->fragment, want->fragment);
	assert_int_equal(got->offset, want->offset);
	assert_int_equal(got->fragment_units, want->fragment_units);
}

static void chains_lead_to_their_transport_header(void **state)
{
	uint8_t packet[ROOM];

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		const size_t bytes = build(&rows[i], packet);
		uint8_t *exact = malloc(bytes); // so that sanitizers detect reads beyond it
		struct wire_transport got;

		memcpy(exact, packet, bytes);
		print_message("%s\n", rows[i].what);
		wire_transport6(&got, exact, bytes);
		assert_same(&got, &rows[i].want);
		free(exact);
	}
}

static const uint8_t kinds[] = {0, 43, 44, 51, 60, 135, 139, 140};

// The model is told the chain instead of reading it.
static struct wire_transport walk_model(const struct row *row, size_t bytes)
{
	struct wire_transport want = {.offset = 40};

	for (unsigned n = 0; n < MAX_CHAIN && row->chain[n].bytes; n++) {
		const struct link *link = &row->chain[n];

		want.proto = link->proto;
		if (want.fragment == WIRE_FRAGMENT_LATER)
			return want;
		if (n == 8)
			want.verdict = WIRE_TRANSPORT_TOO_MANY;
		else if (bytes < want.offset + 8u)
			want.verdict = WIRE_TRANSPORT_TRUNCATED;
		else if (want.offset + link->bytes > 40 + 256)
			want.verdict = WIRE_TRANSPORT_TOO_MANY;
		else if (want.offset + link->bytes > (int)bytes)
			want.verdict = WIRE_TRANSPORT_TRUNCATED;
		if (want.verdict)
			return want;
		want.offset += link->bytes;
		if (link->proto != WIRE_PROTO_FRAGMENT)
			continue;
		want.fragment_units = row->fragment / 8;
		if (row->fragment / 8)
			want.fragment = WIRE_FRAGMENT_LATER;
		else if (row->fragment & 1)
			want.fragment = WIRE_FRAGMENT_FIRST;
	}
	want.proto = row->proto;
	return want;
}

static void random_chains_agree_with_the_model(void **state)
{
	uint8_t packet[ROOM];
	unsigned found[3] = {0};

	srand(7);
	for (unsigned i = 0; i < 100000; i++) {
		struct row row = {.proto = rand() % 2 ? WIRE_PROTO_TCP : WIRE_PROTO_ESP};
		const unsigned n = rand() % (MAX_CHAIN + 1);
		struct wire_transport got, want;

		for (unsigned k = 0; k < n; k++) {
			const uint8_t proto = kinds[rand() % ARRAY_LEN(kinds)];
			const unsigned units = 1 + rand() % (rand() % 4 ? 2 : 20);

			row.chain[k] = (struct link){proto, proto == 44 ? 8 : units * 8};
		}
		row.fragment = rand() % 2 ? rand() % 4 : rand();
		row.cut = rand() % 4 ? 0 : 1 + rand() % 120;
		const size_t bytes = build(&row, packet);

		wire_transport6(&got, packet, bytes);
		want = walk_model(&row, bytes);
		assert_same(&got, &want);
		found[got.verdict]++;
	}
	for (unsigned i = 0; i < ARRAY_LEN(found); i++)
		assert_true(found[i] > 1000);
}

static void ip4_fragments_have_their_class(void **state)
{
	assert_int_equal(wire_fragment_class4(htobe16(0)), WIRE_FRAGMENT_NONE);
	assert_int_equal(wire_fragment_class4(htobe16(0x4000)), WIRE_FRAGMENT_NONE);
	assert_int_equal(wire_fragment_class4(htobe16(0x2000)), WIRE_FRAGMENT_FIRST);
	assert_int_equal(wire_fragment_class4(htobe16(0x2001)), WIRE_FRAGMENT_LATER);
	assert_int_equal(wire_fragment_class4(htobe16(0x1fff)), WIRE_FRAGMENT_LATER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chains_lead_to_their_transport_header),
		cmocka_unit_test(random_chains_agree_with_the_model),
		cmocka_unit_test(ip4_fragments_have_their_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
