// Rings: what goes in comes out, in order, and what does not fit is counted.
#include "capture/fixture.h"

#include <pthread.h>
#include <stdlib.h>

enum { RING_BYTES = 4096, OFFERED = 20000 };

static struct capture_session session;
static struct capture_producer producer;
static const struct capture_event in = {CAPTURE_IN, VERDICT_FORWARD, 3};

static int open_ring(void **state)
{
	session = (struct capture_session){
		.settings = {.port = -1, .wants_received = true, .wants_sent = true, .snap = ROOM}};
	producer = (struct capture_producer){.session = &session};
	return capture_ring_make(&producer, RING_BYTES);
}

static int close_ring(void **state)
{
	capture_ring_free(&producer);
	return 0;
}

static unsigned offer(unsigned n, uint8_t seed)
{
	struct capture_draft draft;
	struct frame frame;
	struct rte_mbuf *mbuf = make_frame(&frame, n, n, seed);

	capture_copy(&producer, &draft, CAPTURE_FRAMES, &mbuf, 1);
	return capture_publish(&producer, &draft, &in, 1);
}

static void expect(unsigned n, uint8_t seed)
{
	const struct capture_record *record = capture_ring_peek(&producer);

	assert_non_null(record);
	assert_int_equal(record->length, n);
	assert_int_equal(record->captured, MIN_OF(n, session.settings.snap));
	assert_memory_equal(&record->event, &in, sizeof(in));
	for (unsigned i = 0; i < record->captured; i++)
		assert_int_equal(record->bytes[i], (uint8_t)(seed + i));
	capture_ring_pop(&producer, record);
}

// Lengths of which some leave a gap at the end of the ring.
static void frames_come_out_in_order_around_the_end(void **state)
{
	for (unsigned i = 0; i < 1000; i++) {
		const unsigned n = 14 + i * 37 % 1400;

		assert_int_equal(offer(n, i), 0);
		assert_int_equal(offer(60, i + 1), 0);
		expect(n, i);
		expect(60, i + 1);
		assert_null(capture_ring_peek(&producer));
	}
}

static void frames_are_cut_to_the_snap_length(void **state)
{
	session.settings.snap = 100;
	assert_int_equal(offer(99, 1) + offer(100, 2) + offer(1500, 3), 0);
	expect(99, 1);
	expect(100, 2);
	expect(1500, 3);
}

static void frames_that_do_not_fit_are_counted(void **state)
{
	unsigned missed = 0, n = 0;

	for (unsigned i = 0; i < 100; i++)
		missed += offer(100, i);
	assert_in_range(missed, 1, 99);
	assert_int_equal(producer.missed, missed);
	for (; capture_ring_peek(&producer); n++)
		expect(100, n);
	assert_int_equal(n + missed, 100);
	assert_int_equal(offer(100, 7), 0);
	expect(100, 7);
}

// As when a device accepts only some frames.
static void only_published_frames_come_out(void **state)
{
	struct rte_mbuf *mbuf[CAPTURE_BURST];
	struct frame frame[CAPTURE_BURST];
	struct capture_draft draft;

	for (unsigned i = 0; i < CAPTURE_BURST; i++)
		mbuf[i] = make_frame(&frame[i], 20, 20, i);
	capture_copy(&producer, &draft, CAPTURE_FRAMES, mbuf, CAPTURE_BURST);
	assert_null(capture_ring_peek(&producer));
	assert_int_equal(capture_publish(&producer, &draft, &in, 0), 0);
	assert_null(capture_ring_peek(&producer));
	capture_copy(&producer, &draft, CAPTURE_FRAMES, mbuf, CAPTURE_BURST);
	capture_publish(&producer, &draft, &in, 5);
	for (unsigned i = 0; i < 5; i++)
		expect(20, i);
	assert_null(capture_ring_peek(&producer));
	capture_copy(&producer, &draft, CAPTURE_FRAMES, mbuf, CAPTURE_BURST);
	capture_publish(&producer, &draft, &in, CAPTURE_BURST);
	for (unsigned i = 0; i < CAPTURE_BURST; i++)
		expect(20, i);
}

// The mean of the gaps between samples is what was asked for; a sample is any frame of a burst, and
// frames and losses are sampled apart.
static void samples_are_one_of_so_many(void **state)
{
	enum { MEAN = 100, BURSTS = 100000, N_FRAMES = 60 };
	struct rte_mbuf *mbuf[N_FRAMES];
	struct frame frame[N_FRAMES];
	struct capture_draft draft;
	unsigned n[N_FRAMES] = {0}, all = 0;

	for (unsigned i = 0; i < N_FRAMES; i++)
		mbuf[i] = make_frame(&frame[i], 20, 20, i);
	session.settings.sample[CAPTURE_FRAMES] = MEAN;
	producer.random = 1;
	for (unsigned burst = 0; burst < BURSTS; burst++) {
		capture_copy(&producer, &draft, CAPTURE_FRAMES, mbuf, N_FRAMES);
		for (uint64_t rest = draft.matched; rest; rest &= rest - 1, all++)
			n[__builtin_ctzll(rest)]++;
		capture_copy(&producer, &draft, CAPTURE_LOSSES, mbuf, N_FRAMES);
		assert_int_equal(draft.matched, (1ull << N_FRAMES) - 1);
	}
	assert_in_range(all, BURSTS * N_FRAMES / MEAN * 98 / 100,
		BURSTS * N_FRAMES / MEAN * 102 / 100);
	for (unsigned i = 0; i < N_FRAMES; i++)
		assert_in_range(n[i], all / N_FRAMES * 80 / 100, all / N_FRAMES * 120 / 100);
	assert_int_equal(capture_publish(&producer, &draft, &in, 0), 0);
}

// Frames that were not accepted are not missing either.
static void only_missing_frames_of_the_published_count(void **state)
{
	struct rte_mbuf *mbuf[CAPTURE_BURST];
	struct frame frame[CAPTURE_BURST];
	struct capture_draft draft;
	unsigned n = 0;

	for (unsigned i = 0; i < CAPTURE_BURST; i++)
		mbuf[i] = make_frame(&frame[i], 100, 100, i);
	capture_copy(&producer, &draft, CAPTURE_FRAMES, mbuf, CAPTURE_BURST);
	assert_int_equal(capture_publish(&producer, &draft, &in, 2), 0);
	capture_copy(&producer, &draft, CAPTURE_FRAMES, mbuf, CAPTURE_BURST);
	unsigned missed = capture_publish(&producer, &draft, &in, CAPTURE_BURST);

	for (const struct capture_record *record; (record = capture_ring_peek(&producer)); n++)
		capture_ring_pop(&producer, record);
	assert_int_equal(n + missed, 2 + CAPTURE_BURST);
	assert_true(missed > 0);
}

static void frames_in_two_buffers_are_joined_and_filtered(void **state)
{
	// The byte at 50 is 51: it is in the second buffer.
	struct bpf_insn program[] = {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 50),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 51, 0, 1), BPF_STMT(BPF_RET | BPF_K, 1),
		BPF_STMT(BPF_RET | BPF_K, 0)};
	struct capture_draft draft;
	struct frame frame[2];
	struct rte_mbuf *mbuf[] = {make_frame(&frame[0], 100, 40, 1),
		make_frame(&frame[1], 100, 40, 2)};

	session.settings.program = program;
	session.settings.snap = 30; // the filter sees everything
	capture_copy(&producer, &draft, CAPTURE_FRAMES, mbuf, 2);
	assert_int_equal(capture_publish(&producer, &draft, &in, 2), 0);
	session.settings.snap = 30;
	expect(100, 1);
	assert_null(capture_ring_peek(&producer));
}

static void *offer_many(void *missed)
{
	for (unsigned i = 0; i < OFFERED; i++)
		*(unsigned *)missed += offer(14 + i % 300, i);
	return NULL;
}

static void all_that_is_offered_is_read_or_missed(void **state)
{
	unsigned missed = 0, n = 0;
	pthread_t thread;
	bool is_joined = false, is_over = false;

	assert_int_equal(pthread_create(&thread, NULL, offer_many, &missed), 0);
	while (!is_over) {
		const struct capture_record *record = capture_ring_peek(&producer);

		is_joined = is_joined || (!record && !pthread_tryjoin_np(thread, NULL));
		if (!record && is_joined) { // it may have offered some since
			record = capture_ring_peek(&producer);
			is_over = !record;
		}
		for (; record; record = capture_ring_peek(&producer), n++) {
			for (unsigned i = 1; i < record->captured; i++)
				assert_int_equal(record->bytes[i], (uint8_t)(record->bytes[0] + i));
			capture_ring_pop(&producer, record);
		}
	}
	assert_int_equal(n + missed, OFFERED);
}

struct program_row {
	const char *name;
	unsigned n;
	struct bpf_insn insn[3];
	bool is_sound;
};

static const struct program_row program_rows[] = {
	{"accepts all", 1, {BPF_STMT(BPF_RET | BPF_K, 1)}, true},
	{"jumps forward", 2, {BPF_STMT(BPF_JMP | BPF_JA, 0), BPF_STMT(BPF_RET | BPF_K, 1)}, true},
	{"has no instruction", 0, {{0}}, false},
	{"has no end", 1, {BPF_STMT(BPF_LD | BPF_IMM, 1)}, false},
	{"jumps to itself", 2, {BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX), BPF_STMT(BPF_RET, 1)},
		false},
	{"jumps beyond", 2, {BPF_STMT(BPF_JMP | BPF_JA, 1), BPF_STMT(BPF_RET | BPF_K, 1)}, false},
	{"branches beyond", 2,
		{BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1), BPF_STMT(BPF_RET | BPF_K, 1)},
		false},
	{"has an unknown code", 2, {{0xffff, 0, 0, 0}, BPF_STMT(BPF_RET | BPF_K, 1)}, false},
	{"reads memory beyond", 2, {BPF_STMT(BPF_LD | BPF_MEM, 16), BPF_STMT(BPF_RET | BPF_K, 1)},
		false},
	{"divides by 0", 2, {BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 1)},
		false},
};

static void only_sound_programs_are_accepted(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(program_rows); i++) {
		const struct program_row *row = &program_rows[i];
		struct error error = {""};
		int err = capture_check_program(row->insn, row->n, &error);

		if ((err == 0) != row->is_sound || !err != !error.text[0])
			fail_msg("a program that %s: %d", row->name, err);
	}
}

int main(void)
{
#define RING_TEST(test) cmocka_unit_test_setup_teardown(test, open_ring, close_ring)
	const struct CMUnitTest tests[] = {
		RING_TEST(frames_come_out_in_order_around_the_end),
		RING_TEST(frames_are_cut_to_the_snap_length),
		RING_TEST(frames_that_do_not_fit_are_counted),
		RING_TEST(only_published_frames_come_out),
		RING_TEST(samples_are_one_of_so_many),
		RING_TEST(only_missing_frames_of_the_published_count),
		RING_TEST(frames_in_two_buffers_are_joined_and_filtered),
		RING_TEST(all_that_is_offered_is_read_or_missed),
		cmocka_unit_test(only_sound_programs_are_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
