// Triggers each counter of the sink once and checks its exact value, with hand-made frames; no
// device.
#include "gen/fake_frames.h"
#include "gen/timeline.h"

#include "wire/checksum.h"
#include "wire/headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OUR_PORT = 1, OUR_RUN = 7, OUR_ID = 3, N_FRAMES = 8, NOW = 5000000, LAYER4 = 34 };

static struct fake_frame frames[N_FRAMES];
static struct gen_stream stream;
static struct sink sink;
static struct sink_stream *s;
static struct sink_port counters;

static int begin(void **state)
{
	stream = fake_stream(OUR_ID);
	memset(&counters, 0, sizeof(counters));
	sink = (struct sink){.run = OUR_RUN};
	assert_int_equal(sink_stream_create(&s, &stream, NULL), 0);
	sink.by_id[OUR_ID] = s;
	return 0;
}

static int end(void **state)
{
	const struct sink_counters *c = &s->counters;

	assert_int_equal(counters.rx_packets, c->received + c->duplicated + c->corrupted +
						      c->too_old + counters.foreign +
						      counters.stale + counters.misdirected);
	sink_stream_destroy(s);
	return 0;
}

// Recreates the stream after a change of `stream`.
static void begin_again(void)
{
	sink_stream_destroy(s);
	assert_int_equal(sink_stream_create(&s, &stream, NULL), 0);
	sink.by_id[OUR_ID] = s;
}

static struct stamp stamp_of(uint64_t sequence)
{
	return (struct stamp){
		.magic = STAMP_MAGIC | OUR_RUN,
		.stream = OUR_ID,
		.sequence = sequence,
		.due = NOW - 3000,
		.sent = NOW - 2000,
	};
}

static void take_on(uint8_t port, struct fake_frame *f)
{
	struct rte_mbuf *mbuf = &f->mbuf;

	sink_take(&sink, &counters, &mbuf, 1, port, NOW);
	assert_int_equal(rte_mbuf_refcnt_read(mbuf), 1); // freed once
	rte_mbuf_refcnt_set(mbuf, 2);
}

static void take(struct fake_frame *f)
{
	take_on(OUR_PORT, f);
}

// The first frame eight times, which takes the burst code path.
static void take_eight(void)
{
	struct rte_mbuf *mbuf[N_FRAMES];

	for (unsigned i = 0; i < N_FRAMES; i++) {
		if (i)
			memcpy(&frames[i], &frames[0], sizeof(frames[0]));
		frames[i].mbuf.buf_addr = frames[i].room;
		mbuf[i] = &frames[i].mbuf;
	}
	sink_take(&sink, &counters, mbuf, N_FRAMES, OUR_PORT, NOW);
	for (unsigned i = 0; i < N_FRAMES; i++)
		rte_mbuf_refcnt_set(mbuf[i], 2);
}

static void take_number(uint64_t sequence)
{
	struct stamp stamp = stamp_of(sequence);

	fake_frame_build(&frames[0], &stream, &stamp, 64);
	take(&frames[0]);
}

static void expect_nothing_but(const uint64_t *counter, uint64_t n)
{
	const uint64_t *all[] = {&s->counters.received, &s->counters.duplicated,
		&s->counters.reordered, &s->counters.corrupted, &s->counters.too_old,
		&counters.foreign, &counters.stale, &counters.misdirected};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		assert_int_equal(*all[i], all[i] == counter ? n : 0);
}

static void a_good_frame_is_received(void **state)
{
	take_number(0);
	expect_nothing_but(&s->counters.received, 1);
	assert_int_equal(s->counters.received_bytes, 64);
	assert_int_equal(s->counters.highest, 1);
	assert_int_equal(s->counters.first_tsc, NOW);
	assert_int_equal(s->counters.last_tsc, NOW);
	assert_int_equal(counters.rx_packets, 1);
	assert_int_equal(counters.rx_bytes, 64);
}

static void every_kind_of_frame_of_every_size_is_received(void **state)
{
	uint64_t n = 0, bytes = 0;

	for (unsigned kind = 0; kind < 8; kind++) {
		stream.recipe = wire_recipe(kind & 1 ? 6 : 4);
		stream.recipe.protocol = kind & 2 ? WIRE_PROTO_TCP : WIRE_PROTO_UDP;
		stream.recipe.has_vlan = kind & 4;
		for (unsigned size = 96; size < GEN_MAX_SIZE; size += 1 + size / 50) {
			struct stamp stamp = stamp_of(n++);
			fake_frame_build(&frames[0], &stream, &stamp, size);
			take(&frames[0]);
			bytes += size;
		}
	}
	expect_nothing_but(&s->counters.received, n);
	assert_int_equal(s->counters.received_bytes, bytes);
	assert_int_equal(s->counters.highest, n);
}

static void the_stamp_of_tcp_keeps_all_40_bits(void **state)
{
	uint8_t tcp[30];
	struct stamp in = {0xd307, 200, 0xfe23456789, 0xab98765432, 0xcd01020304}, out;

	stamp_write_tcp(tcp, &in);
	stamp_read_tcp(tcp, &out);
	assert_int_equal(out.magic, in.magic);
	assert_int_equal(out.stream, in.stream);
	assert_int_equal(out.sequence, in.sequence);
	assert_int_equal(out.due, in.due);
	assert_int_equal(out.sent, in.sent);
}

// Inserts a VLAN tag before the EtherType.
static void push_tag(struct fake_frame *f, uint16_t type)
{
	uint8_t *frame = fake_frame_bytes(f);
	uint16_t type_be = htobe16(type);

	memmove(frame + 16, frame + 12, f->mbuf.data_len - 12);
	memcpy(frame + 12, &type_be, 2);
	frame[14] = 0x20;
	f->mbuf.data_len += 4;
	f->mbuf.pkt_len += 4;
}

static void two_tags_are_looked_through_and_a_third_is_foreign(void **state)
{
	struct stamp stamp = stamp_of(0);

	fake_frame_build(&frames[0], &stream, &stamp, 64);
	push_tag(&frames[0], WIRE_ETHERTYPE_VLAN);
	push_tag(&frames[0], WIRE_ETHERTYPE_QINQ);
	take(&frames[0]);
	expect_nothing_but(&s->counters.received, 1);
	push_tag(&frames[0], WIRE_ETHERTYPE_QINQ);
	take(&frames[0]);
	assert_int_equal(counters.foreign, 1);
}

static void padding_behind_the_packet_does_not_matter(void **state)
{
	struct stamp stamp = stamp_of(0);

	fake_frame_build(&frames[0], &stream, &stamp, 64);
	memset(fake_frame_bytes(&frames[0]) + 60, 0xa5, 9);
	frames[0].mbuf.data_len = frames[0].mbuf.pkt_len = 69;
	take(&frames[0]);
	expect_nothing_but(&s->counters.received, 1);
	assert_int_equal(s->counters.received_bytes, 73);
}

static void a_frame_seen_before_is_a_duplicate(void **state)
{
	take_number(0);
	take_number(1);
	take_number(0);
	assert_int_equal(s->counters.received, 2);
	assert_int_equal(s->counters.duplicated, 1);
	assert_int_equal(s->counters.reordered, 0);
	assert_int_equal(s->due.n, 2);
}

static void a_frame_behind_a_later_one_is_reordered(void **state)
{
	take_number(0);
	take_number(2);
	assert_int_equal(s->counters.missing, 1);
	take_number(1);
	take_number(3);
	assert_int_equal(s->counters.received, 4);
	assert_int_equal(s->counters.reordered, 1);
	assert_int_equal(s->counters.missing, 0);
}

static void order_is_judged_within_each_flow(void **state)
{
	stream.n_flows = 3;
	begin_again();
	take_number(4); // flow 1
	take_number(0); // flow 0, its first frame
	take_number(2); // flow 2
	assert_int_equal(s->counters.reordered, 0);
	take_number(1); // flow 1, after 4
	assert_int_equal(s->counters.reordered, 1);
}

static void more_flows_than_can_be_watched_are_judged_as_one(void **state)
{
	stream.n_flows = GEN_FLOWS_IN_ORDER + 1;
	begin_again();
	take_number(4);
	take_number(0);
	assert_int_equal(s->counters.reordered, 1);
}

static void a_frame_more_than_2_to_the_20_behind_is_too_old(void **state)
{
	take_number(1 << 20);
	take_number(0);
	take_number(1);
	assert_int_equal(s->counters.received, 2);
	assert_int_equal(s->counters.too_old, 1);
	assert_int_equal(s->counters.reordered, 1);
}

// Reached after 20 hours at 15 million frames per second.
static void numbers_go_on_after_40_bits(void **state)
{
	const uint64_t wrap = STAMP_40_BITS + 1;

	for (uint64_t i = wrap - 4; i < wrap + 4; i++)
		take_number(i & STAMP_40_BITS);
	take_number(6); // 4 and 5 arrive later
	take_number(wrap - 1);
	take_number(4);
	assert_int_equal(s->counters.received, 10);
	assert_int_equal(s->counters.duplicated, 1);
	assert_int_equal(s->counters.reordered, 1);
	assert_int_equal(s->counters.too_old, 0);
	assert_int_equal(s->counters.highest, wrap + 7);
	assert_int_equal(s->counters.missing, wrap - 4 + 1);
}

// With valid checksums: no field of a frame may index the flow table out of bounds.
static void numbers_that_leap_stay_within_bounds(void **state)
{
	stream.n_flows = 1000;
	begin_again();
	for (uint64_t i = 1; i < 2000; i++) {
		take_number((i << 38) & STAMP_40_BITS);
		assert_true(s->counters.highest <= 1ull << 47);
	}
}

static void any_bit_that_is_wrong_behind_the_identity_makes_a_corrupted_frame(void **state)
{
	struct stamp stamp = stamp_of(0);
	uint64_t n = 0;

	fake_frame_build(&frames[0], &stream, &stamp, 64);
	for (unsigned at = 14; at < 60; at++) {
		bool is_protocol = at == 23, is_identity = at >= LAYER4 + 8 && at < LAYER4 + 11;
		if (is_protocol || is_identity)
			continue;
		for (unsigned bit = 0; bit < 8; bit++, n += 1 + N_FRAMES) {
			fake_frame_bytes(&frames[0])[at] ^= 1 << bit;
			take(&frames[0]);
			take_eight();
			fake_frame_bytes(&frames[0])[at] ^= 1 << bit;
		}
	}
	expect_nothing_but(&s->counters.corrupted, n);
	assert_int_equal(s->counters.highest, 0);
}

static void a_frame_cut_short_is_corrupted_or_foreign(void **state)
{
	struct stamp stamp = stamp_of(0);

	for (unsigned kind = 0; kind < 4; kind++) {
		stream.recipe = wire_recipe(kind & 1 ? 6 : 4);
		stream.recipe.protocol = kind & 2 ? WIRE_PROTO_TCP : WIRE_PROTO_UDP;
		unsigned identity = 14 + (kind & 1 ? 40 : 20) + (kind & 2 ? 20 : 8);
		fake_frame_build(&frames[0], &stream, &stamp, 90);
		for (unsigned n = 0; n < 86; n++) {
			uint64_t corrupted = s->counters.corrupted;
			frames[0].mbuf.data_len = frames[0].mbuf.pkt_len = n;
			take(&frames[0]);
			take_eight();
			assert_int_equal(s->counters.corrupted,
				corrupted + (n >= identity + 3 ? 1 + N_FRAMES : 0));
		}
	}
	assert_int_equal(s->counters.received, 0);
}

// Changes a word of the frame and updates the checksum at `sum_at` to remain valid.
static void change_word(unsigned at, uint16_t value, unsigned sum_at)
{
	uint8_t *frame = fake_frame_bytes(&frames[0]);
	uint16_t old_be, new_be = htobe16(value), sum_be;

	memcpy(&old_be, frame + at, 2);
	memcpy(&sum_be, frame + sum_at, 2);
	sum_be = wire_checksum_update_be(sum_be, old_be, new_be);
	memcpy(frame + at, &new_be, 2);
	memcpy(frame + sum_at, &sum_be, 2);
}

static void headers_that_lie_under_right_checksums_make_corrupted_frames(void **state)
{
	static const struct {
		unsigned at, value, sum_at;
	} rows[] = {
		{LAYER4 + 4, 44, LAYER4 + 6}, // UDP length, two too short
		{LAYER4 + 4, 48, LAYER4 + 6}, // two too long
		{14, 0x4600, 24},             // options
		{14, 0x5500, 24},             // version
		{16, 64, 24},                 // total length, two too short
		{16, 68, 24},                 // beyond the frame's end
		{16, 12, 24},                 // shorter than its own header
		{20, 0x2000, 24},             // more fragments
		{20, 0x0001, 24},             // not the first fragment
	};
	struct stamp stamp = stamp_of(0);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		fake_frame_build(&frames[0], &stream, &stamp, 84);
		change_word(rows[i].at, rows[i].value, rows[i].sum_at);
		take(&frames[0]);
		take_eight();
		assert_int_equal(s->counters.corrupted, (i + 1) * (1 + N_FRAMES));
	}
	assert_int_equal(s->counters.received, 0);
}

static void a_checksum_of_0_is_none_and_therefore_wrong(void **state)
{
	struct stamp stamp = stamp_of(0);

	fake_frame_build(&frames[0], &stream, &stamp, 64);
	memset(fake_frame_bytes(&frames[0]) + LAYER4 + 6, 0, 2);
	take(&frames[0]);
	expect_nothing_but(&s->counters.corrupted, 1);
}

static void a_frame_of_another_run_is_stale(void **state)
{
	struct stamp stamp = stamp_of(0);

	stamp.magic = STAMP_MAGIC | (OUR_RUN + 1);
	fake_frame_build(&frames[0], &stream, &stamp, 64);
	take(&frames[0]);
	expect_nothing_but(&counters.stale, 1);
}

static void a_stream_that_is_only_received_takes_any_run(void **state)
{
	struct stamp stamp = stamp_of(0);

	stream.is_receive_only = true;
	begin_again();
	stamp.magic = STAMP_MAGIC | (OUR_RUN + 1);
	fake_frame_build(&frames[0], &stream, &stamp, 64);
	take(&frames[0]);
	expect_nothing_but(&s->counters.received, 1);
}

static void a_frame_that_ends_on_another_port_is_misdirected(void **state)
{
	struct stamp stamp = stamp_of(0);

	fake_frame_build(&frames[0], &stream, &stamp, 64);
	take_on(OUR_PORT + 1, &frames[0]);
	expect_nothing_but(&counters.misdirected, 1);
}

static void what_is_not_ours_is_foreign(void **state)
{
	struct stamp stamp = stamp_of(0);

	stamp.stream = OUR_ID + 1; // no such stream
	fake_frame_build(&frames[0], &stream, &stamp, 64);
	take(&frames[0]);
	stamp = stamp_of(0);
	stamp.magic = 0xd200 | OUR_RUN;
	fake_frame_build(&frames[0], &stream, &stamp, 64);
	take(&frames[0]);
	stamp = stamp_of(0);
	fake_frame_build(&frames[0], &stream, &stamp, 64);
	fake_frame_bytes(&frames[0])[12] = 0x99; // EtherType
	take(&frames[0]);
	fake_frame_build(&frames[0], &stream, &stamp, 64);
	fake_frame_bytes(&frames[0])[23] = 1; // ICMP
	take(&frames[0]);
	expect_nothing_but(&counters.foreign, 4);
}

// Cuts the frame into pieces of `first`, `second` and the rest.
static void cut(struct fake_frame f[3], unsigned first, unsigned second)
{
	unsigned whole = f[0].mbuf.data_len;

	for (int i = 1; i < 3; i++)
		f[i].mbuf = (struct rte_mbuf){.buf_addr = f[i].room,
			.data_off = FAKE_HEADROOM,
			.nb_segs = 1,
			.refcnt = 2};
	memcpy(fake_frame_bytes(&f[1]), fake_frame_bytes(&f[0]) + first, second);
	memcpy(fake_frame_bytes(&f[2]), fake_frame_bytes(&f[0]) + first + second,
		whole - first - second);
	memset(fake_frame_bytes(&f[0]) + first, 0xee, whole - first);
	f[0].mbuf.data_len = first;
	f[1].mbuf.data_len = second;
	f[2].mbuf.data_len = whole - first - second;
	f[0].mbuf.nb_segs = 3;
	f[0].mbuf.next = &f[1].mbuf;
	f[1].mbuf.next = &f[2].mbuf;
}

static void frames_in_several_segments_are_received_wherever_they_are_cut(void **state)
{
	uint64_t n = 0, foreign = 0;

	for (unsigned first = 20; first < 190; first++)
		for (unsigned second = 0; second < 6; second++) {
			struct stamp stamp = stamp_of(n);
			bool is_whole = first >= LAYER4 + 8 + STAMP_BYTES;
			fake_frame_build(&frames[0], &stream, &stamp, 205);
			cut(frames, first, second);
			take(&frames[0]);
			n += is_whole;
			foreign += !is_whole;
		}
	assert_int_equal(s->counters.received, n);
	assert_int_equal(s->counters.corrupted, 0);
	assert_int_equal(counters.foreign, foreign);
}

static void a_wrong_byte_in_a_later_segment_is_found(void **state)
{
	struct stamp stamp = stamp_of(0);

	fake_frame_build(&frames[0], &stream, &stamp, 200);
	cut(frames, 97, 40);
	fake_frame_bytes(&frames[2])[5] ^= 0x10;
	take(&frames[0]);
	expect_nothing_but(&s->counters.corrupted, 1);
}

static void take_delayed(uint64_t sequence, uint64_t due_ago, uint64_t sent_ago)
{
	struct stamp stamp = stamp_of(sequence);

	stamp.due = (NOW - due_ago) & STAMP_40_BITS;
	stamp.sent = (NOW - sent_ago) & STAMP_40_BITS;
	fake_frame_build(&frames[0], &stream, &stamp, 64);
	take(&frames[0]);
}

static void latency_counts_from_due_and_from_sent(void **state)
{
	take_delayed(0, 3000, 2000);
	take_delayed(1, 100, 90);
	take_delayed(2, 6000000, 5500000); // stamped before the 40 bits wrapped
	assert_int_equal(s->due.n, 3);
	assert_int_equal(s->due.sum, 6003100);
	assert_int_equal(s->due.min, 100);
	assert_int_equal(s->due.max, 6000000);
	assert_int_equal(s->due.bucket[100], 1);
	assert_int_equal(s->due.bucket[histogram_index(3000)], 1);
	assert_int_equal(s->sent.n, 3);
	assert_int_equal(s->sent.sum, 5502090);
	assert_int_equal(s->sent.min, 90);
	assert_int_equal(s->sent.max, 5500000);
}

static void a_stamp_from_the_future_counts_as_no_time(void **state)
{
	take_delayed(0, -200, -100);
	assert_int_equal(s->due.bucket[0], 1);
	assert_int_equal(s->due.max, 0);
	assert_int_equal(s->sent.max, 0);
}

// Duplicates and corrupted frames have a due time, too, but are not counted as received.
static void frames_are_received_at_the_time_at_which_they_were_due(void **state)
{
	static struct timeline line;

	memset(&line, 0, sizeof(line));
	timeline_begin(&line, NOW - 100000, 0);
	s->timeline = &line;
	take_delayed(0, 90000, 1);
	take_delayed(1, 89999, 1);
	take_delayed(5, 50000, 1);
	take_delayed(5, 50000, 1);
	take_delayed(3, 70000, 1);
	assert_int_equal(s->counters.received, 4);
	assert_int_equal(line.count[((NOW - 90000) >> line.shift) - line.first], 2);
	assert_int_equal(line.count[((NOW - 50000) >> line.shift) - line.first], 1);
	assert_int_equal(line.count[((NOW - 70000) >> line.shift) - line.first], 1);
}

static void jitter_is_between_frames_received_one_after_the_other(void **state)
{
	take_delayed(0, 1000, 500);
	assert_int_equal(s->counters.n_jitter, 0);
	take_delayed(2, 1000, 800);
	take_delayed(2, 9000, 9000); // duplicates are not counted
	take_delayed(1, 1000, 700);
	assert_int_equal(s->counters.n_jitter, 2);
	assert_int_equal(s->counters.jitter_sum, 400);
	assert_int_equal(s->counters.jitter_max, 300);
}

static void a_burst_may_be_longer_than_the_sinks_own(void **state)
{
	enum { MANY = 150 };
	struct fake_frame *many = aligned_alloc(64, MANY * sizeof(*many));
	struct rte_mbuf *mbuf[MANY];

	for (unsigned i = 0; i < MANY; i++) {
		struct stamp stamp = stamp_of(i);
		fake_frame_build(&many[i], &stream, &stamp, 64);
		mbuf[i] = &many[i].mbuf;
	}
	sink_take(&sink, &counters, mbuf, MANY, OUR_PORT, NOW);
	expect_nothing_but(&s->counters.received, MANY);
	assert_int_equal(counters.rx_packets, MANY);
	assert_int_equal(counters.rx_bytes, 64 * MANY);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(rte_mbuf_refcnt_read(mbuf[i]), 1);
	free(many);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_good_frame_is_received),
		CASE(every_kind_of_frame_of_every_size_is_received),
		CASE(the_stamp_of_tcp_keeps_all_40_bits),
		CASE(two_tags_are_looked_through_and_a_third_is_foreign),
		CASE(padding_behind_the_packet_does_not_matter),
		CASE(a_frame_seen_before_is_a_duplicate),
		CASE(a_frame_behind_a_later_one_is_reordered),
		CASE(order_is_judged_within_each_flow),
		CASE(more_flows_than_can_be_watched_are_judged_as_one),
		CASE(a_frame_more_than_2_to_the_20_behind_is_too_old),
		CASE(numbers_go_on_after_40_bits),
		CASE(numbers_that_leap_stay_within_bounds),
		CASE(any_bit_that_is_wrong_behind_the_identity_makes_a_corrupted_frame),
		CASE(a_frame_cut_short_is_corrupted_or_foreign),
		CASE(headers_that_lie_under_right_checksums_make_corrupted_frames),
		CASE(a_checksum_of_0_is_none_and_therefore_wrong),
		CASE(a_frame_of_another_run_is_stale),
		CASE(a_stream_that_is_only_received_takes_any_run),
		CASE(a_frame_that_ends_on_another_port_is_misdirected),
		CASE(what_is_not_ours_is_foreign),
		CASE(frames_in_several_segments_are_received_wherever_they_are_cut),
		CASE(a_wrong_byte_in_a_later_segment_is_found),
		CASE(latency_counts_from_due_and_from_sent),
		CASE(a_stamp_from_the_future_counts_as_no_time),
		CASE(frames_are_received_at_the_time_at_which_they_were_due),
		CASE(jitter_is_between_frames_received_one_after_the_other),
		CASE(a_burst_may_be_longer_than_the_sinks_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
