// Which packets get an ICMP error, and what it quotes.
#include "wire/icmp_error.h"

#include "base/bits.h"
#include "wire/build.h"
#include "wire/checksum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 2048, MAX_POKES = 3 };

static const struct row {
	const char *what;
	uint8_t family, protocol;
	struct {
		uint8_t at, value;
	} poke[MAX_POKES]; // at 255: none
	bool is_answered;
} rows[] = {
	{"UDP", 4, WIRE_PROTO_UDP, {{255, 0}}, true},
	{"UDP", 6, WIRE_PROTO_UDP, {{255, 0}}, true},
	{"an echo", 4, WIRE_PROTO_ICMP4, {{34, WIRE_ICMP4_ECHO}}, true},
	{"an echo", 6, WIRE_PROTO_ICMP6, {{54, WIRE_ICMP6_ECHO}}, true},
	{"an ICMP error", 4, WIRE_PROTO_ICMP4, {{34, WIRE_ICMP4_TIME_EXCEEDED}}, false},
	{"an ICMP redirect", 4, WIRE_PROTO_ICMP4, {{34, WIRE_ICMP4_REDIRECT}}, false},
	{"an ICMPv6 error", 6, WIRE_PROTO_ICMP6, {{54, WIRE_ICMP6_TOO_BIG}}, false},
	{"an ICMPv6 redirect", 6, WIRE_PROTO_ICMP6, {{54, 137}}, false},
	{"a first fragment", 4, WIRE_PROTO_UDP, {{20, 0x20}}, true},
	{"a later fragment", 4, WIRE_PROTO_UDP, {{21, 1}}, false},
	{"a later fragment", 6, WIRE_PROTO_UDP, {{20, 44}, {57, 8}}, false},
	{"a source that is a group", 4, WIRE_PROTO_UDP, {{26, 224}}, false},
	{"a source in 127/8", 4, WIRE_PROTO_UDP, {{26, 127}}, false},
	{"no source", 4, WIRE_PROTO_UDP, {{26, 0}}, false},
	{"a source that is a group", 6, WIRE_PROTO_UDP, {{22, 0xff}}, false},
	{"a link-local source", 6, WIRE_PROTO_UDP, {{22, 0xfe}, {23, 0x80}}, false},
	{"a group", 4, WIRE_PROTO_UDP, {{30, 239}}, false},
	{"a group", 6, WIRE_PROTO_UDP, {{38, 0xff}}, false},
	{"a broadcast frame", 4, WIRE_PROTO_UDP, {{0, 1}}, false},
	{"another version", 4, WIRE_PROTO_UDP, {{14, 0x65}}, false},
	{"a header that is cut", 4, WIRE_PROTO_UDP, {{14, 0x4f}, {17, 60}}, false},
	{"ARP", 4, WIRE_PROTO_UDP, {{13, 0x06}}, false},
};

static size_t build(const struct row *row, size_t n, uint8_t frame[ROOM])
{
	struct wire_recipe recipe = wire_recipe(row->family);

	recipe.protocol = row->protocol;
	recipe.frame_bytes = n;
	assert_int_equal(wire_build(&recipe, frame, ROOM), 0);
	for (unsigned i = 0; i < MAX_POKES && row->poke[i].at != 255; i++)
		if (row->poke[i].at || row->poke[i].value)
			frame[row->poke[i].at] = row->poke[i].value;
	return n;
}

// What follows the Ethernet header is at least quoted, from a block of exact size.
static bool answer(struct wire_icmp_error *out, const uint8_t *frame, size_t n)
{
	uint8_t *exact = malloc(n);

	memcpy(exact, frame, n);
	const bool is_answered = wire_icmp_prohibited(out, exact, n);

	free(exact);
	return is_answered;
}

static void errors_are_sent_about_packets_of_hosts_only(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct wire_icmp_error error;
		uint8_t frame[ROOM];
		const size_t n = build(&rows[i], 70, frame);

		print_message("%s, IPv%u\n", rows[i].what, rows[i].family);
		assert_int_equal(answer(&error, frame, n), rows[i].is_answered);
	}
}

static void the_packet_is_quoted_and_its_sender_gets_the_error(void **state)
{
	static const size_t sizes[] = {70, 590, 1514};

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		for (unsigned tagged = 0; tagged < 2; tagged++)
			for (size_t r = 0; r < 2; r++) {
				const size_t most = r ? 1280 - 40 : 576 - 20;
				const size_t want = 8 + sizes[i] - 14;
				struct wire_icmp_error error;
				uint8_t frame[ROOM];
				size_t n = build(&rows[r], sizes[i], frame);

				if (tagged) {
					memmove(frame + 16, frame + 12, n - 12);
					memcpy(frame + 12, (uint8_t[]){0x81, 0, 0, 7}, 4);
					n += 4;
				}
				assert_true(answer(&error, frame, n));
				assert_int_equal(error.n, want < most ? want : most);
				assert_memory_equal(error.bytes, r ? "\1\1" : "\3\15", 2);
				assert_memory_equal(error.bytes + 8, frame + n - sizes[i] + 14,
					error.n - 8);
				assert_int_equal(error.to.family, r ? 6 : 4);
				assert_memory_equal(error.to.bytes, error.bytes + 8 + (r ? 8 : 12),
					r ? 16 : 4);
				if (!r)
					assert_int_equal(wire_sum_finish_be(
								 wire_sum(0, error.bytes, error.n)),
						0);
			}
}

static void frames_that_are_cut_are_not_read_beyond(void **state)
{
	uint8_t frame[ROOM];

	for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
		const size_t n = build(&rows[r], 70, frame);
		struct wire_icmp_error error;

		for (size_t cut = 0; cut < n; cut++)
			if (answer(&error, frame, cut))
				assert_true(cut >= 34);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_are_sent_about_packets_of_hosts_only),
		cmocka_unit_test(the_packet_is_quoted_and_its_sender_gets_the_error),
		cmocka_unit_test(frames_that_are_cut_are_not_read_beyond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
