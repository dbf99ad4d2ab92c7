// Headers of packets that guests leave open, and segments of TCP compared with a plain model.
#include "base/bits.h"
#include "wire/checksum.h"
#include "wire/segment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 66000, EXTENSION = 8 };

// A frame to be built: `payload` bytes behind a TCP header with `options`, or behind UDP's.
struct recipe {
	bool is_ip6, is_udp;
	unsigned tags, ip_options, extensions, options, payload;
	uint8_t flags;
};

static uint8_t frame[ROOM];

static void put16(uint8_t *at, unsigned value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static unsigned get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static unsigned put_ip4(uint8_t *at, const struct recipe *r, unsigned l4_bytes)
{
	const unsigned header = 20 + r->ip_options;

	memset(at, 1, header);
	at[0] = 0x40 | header / 4;
	put16(at + 2, header + l4_bytes);
	put16(at + 4, 0xfffe); // the identification, which overflows
	put16(at + 6, 0x4000);
	at[8] = 64;
	at[9] = r->is_udp ? 17 : 6;
	return header;
}

static unsigned put_ip6(uint8_t *at, const struct recipe *r, unsigned l4_bytes)
{
	const uint8_t proto = r->is_udp ? 17 : 6;

	memset(at, 1, 40 + r->extensions * EXTENSION);
	put16(at, 0x6000);
	put16(at + 4, r->extensions * EXTENSION + l4_bytes);
	at[6] = r->extensions ? WIRE_PROTO_DESTINATION : proto;
	for (unsigned i = 0; i < r->extensions; i++) {
		at[40 + i * EXTENSION] = i + 1 < r->extensions ? WIRE_PROTO_DESTINATION : proto;
		at[41 + i * EXTENSION] = 0;
	}
	return 40 + r->extensions * EXTENSION;
}

// Returns its length, and where headers begin in `l3` and `l4`.
static unsigned build(const struct recipe *r, unsigned *l3, unsigned *l4)
{
	const unsigned header = r->is_udp ? 8 : 20 + r->options;
	unsigned at = 12;

	memset(frame, 2, at);
	for (unsigned i = 0; i < r->tags; i++, at += 4) {
		put16(frame + at, i || r->tags == 1 ? 0x8100 : 0x88a8);
		put16(frame + at + 2, 100 + i);
	}
	put16(frame + at, r->is_ip6 ? 0x86dd : 0x0800);
	*l3 = at + 2;
	*l4 = *l3 + (r->is_ip6 ? put_ip6 : put_ip4)(frame + *l3, r, header + r->payload);
	for (unsigned i = 0; i < header + r->payload; i++)
		frame[*l4 + i] = rand();
	if (!r->is_udp) {
		frame[*l4 + 12] = header / 4 << 4;
		frame[*l4 + 13] = r->flags;
		put16(frame + *l4 + 4, 0xffff); // the sequence number, which overflows
	}
	return *l4 + header + r->payload;
}

static uint32_t model_sum(const uint8_t *bytes, unsigned n, uint32_t sum)
{
	for (unsigned i = 0; i < n; i++)
		sum += i % 2 ? bytes[i] : bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static unsigned model_checksum(const uint8_t *made, bool is_ip6, unsigned l3, unsigned l4,
	unsigned bytes)
{
	const uint8_t *addresses = made + l3 + (is_ip6 ? 8 : 12);

	return 0xffff &
	       ~model_sum(made + l4, bytes, model_sum(addresses, is_ip6 ? 32 : 8, 6 + bytes));
}

// Segment `i` of the frame, written field by field.
static unsigned model_segment(const struct recipe *r, unsigned l3, unsigned l4, unsigned size,
	unsigned i, uint8_t *made)
{
	const unsigned header = 20 + r->options, start = i * size;
	const unsigned bytes = MIN_OF(size, r->payload - start);
	uint32_t seq = (uint32_t)get16(frame + l4 + 4) << 16 | get16(frame + l4 + 6);

	memcpy(made, frame, l4 + header);
	memcpy(made + l4 + header, frame + l4 + header + start, bytes);
	if (r->is_ip6) {
		put16(made + l3 + 4, l4 - l3 - 40 + header + bytes);
	} else {
		put16(made + l3 + 2, l4 - l3 + header + bytes);
		put16(made + l3 + 4, get16(frame + l3 + 4) + i);
		put16(made + l3 + 10, 0);
		put16(made + l3 + 10, 0xffff & ~model_sum(made + l3, l4 - l3, 0));
	}
	seq += start;
	put16(made + l4 + 4, seq >> 16);
	put16(made + l4 + 6, seq);
	if (i)
		made[l4 + 13] &= ~0x80;
	if (start + bytes < r->payload)
		made[l4 + 13] &= ~0x09;
	put16(made + l4 + 16, 0);
	put16(made + l4 + 16, model_checksum(made, r->is_ip6, l3, l4, header + bytes));
	return l4 + header + bytes;
}

static void check_segments(const struct recipe *r, unsigned size)
{
	static uint8_t made[ROOM], wanted[ROOM];
	struct wire_segments plan;
	struct wire_layout layout;
	unsigned l3, l4, n = build(r, &l3, &l4), i = 0;

	assert_true(wire_layout_read(&layout, frame, n, n));
	wire_segments_plan(&plan, &layout, size);
	for (unsigned at = layout.payload_at; at < n; i++) {
		const unsigned bytes = wire_segment_bytes(&plan, i);
		const unsigned length = model_segment(r, l3, l4, size, i, wanted);

		memcpy(made + layout.payload_at, frame + at, bytes);
		wire_segment_headers(&layout, &plan, i, frame, made,
			wire_sum(0, frame + at, bytes));
		assert_int_equal(layout.payload_at + bytes, length);
		assert_memory_equal(made, wanted, length);
		at += bytes;
	}
	assert_int_equal(plan.n, i);
}

static void segments_are_those_of_a_plain_model(void **state)
{
	static const uint8_t flags[] = {0x10, 0x18, 0x19, 0x99, 0xff};
	static const unsigned payloads[] = {1, 99, 100, 101, 1000, 65000};

	for (unsigned i = 0; i < ARRAY_LEN(flags) * ARRAY_LEN(payloads) * 2; i++) {
		const struct recipe r = {.is_ip6 = i % 2,
			.tags = rand() % 3,
			.ip_options = rand() % 11 * 4,
			.extensions = rand() % 3,
			.options = rand() % 11 * 4,
			.payload = payloads[i / 2 % ARRAY_LEN(payloads)],
			.flags = flags[i / 2 / ARRAY_LEN(payloads)]};

		check_segments(&r, 1 + rand() % 1460);
		check_segments(&r, 100);
		check_segments(&r, 65001);
	}
}

static void headers_are_found_behind_tags_options_and_extension_headers(void **state)
{
	for (unsigned i = 0; i < 200; i++) {
		const struct recipe r = {.is_ip6 = i % 2,
			.is_udp = i / 2 % 2,
			.tags = i % 3,
			.ip_options = rand() % 11 * 4,
			.extensions = rand() % 4,
			.options = rand() % 11 * 4,
			.payload = rand() % 50};
		unsigned l3, l4, n = build(&r, &l3, &l4);
		const unsigned header = r.is_udp ? 8 : 20 + r.options;
		struct wire_layout layout;

		assert_true(wire_layout_read(&layout, frame, l4 + header, n + rand() % 20));
		assert_int_equal(layout.l3_at, l3);
		assert_int_equal(layout.l4_at, l4);
		assert_int_equal(layout.payload_at, l4 + header);
		assert_int_equal(layout.end, n);
		assert_int_equal(layout.is_ip6, r.is_ip6);
		assert_int_equal(layout.has_extensions, r.is_ip6 && r.extensions);
		assert_int_equal(wire_layout_checksum_at(&layout), l4 + (r.is_udp ? 6 : 16));
		assert_false(wire_layout_read(&layout, frame, l4 + header - 1, n));
		assert_false(wire_layout_read(&layout, frame, n, n - 1));
	}
}

static void what_fits_no_header_is_refused(void **state)
{
	static const struct {
		bool is_ip6, is_udp;
		unsigned from_l3, value; // 16 bits, at this offset
	} rows[] = {
		{false, false, 0, 0x5501},                       // version
		{false, false, 0, 0x4401},                       // header length
		{false, false, 2, 39},                           // total length
		{false, true, 2, 27}, {false, false, 6, 0x2000}, // a first fragment
		{false, false, 6, 0x0001},                       // a later one
		{false, false, 8, 0x4084},                       // SCTP
		{false, false, 32, 0x4010},                      // TCP's data offset: too small,
		{false, false, 32, 0xf010},                      // and beyond the packet
		{true, false, 0, 0x5000}, {true, false, 4, 19}, {true, true, 4, 7},
		{true, false, 6, 0x3a40},                               // ICMPv6
		{true, false, 6, 0x2c40},                               // a fragment header
		{true, false, 52, 0x4010}, {false, false, -2u, 0x0806}, // ARP
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		const struct recipe r = {.is_ip6 = rows[i].is_ip6, .is_udp = rows[i].is_udp};
		unsigned l3, l4, n = build(&r, &l3, &l4);
		struct wire_layout layout;

		assert_true(wire_layout_read(&layout, frame, n, n));
		put16(frame + l3 + (int)rows[i].from_l3, rows[i].value);
		assert_false(wire_layout_read(&layout, frame, n, n));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_are_those_of_a_plain_model),
		cmocka_unit_test(headers_are_found_behind_tags_options_and_extension_headers),
		cmocka_unit_test(what_fits_no_header_is_refused),
	};

	return cmocka_run_group_tests_name("segment", tests, NULL, NULL);
}
