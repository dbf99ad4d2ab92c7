// Frames by due time, also while the worker is counting; also run under ThreadSanitizer.
#include "gen/timeline.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define STAMP_BITS ((1ull << 40) - 1)

enum { FINEST = 1 << 11, BURST = 64, N_BURSTS = 20000 };

static struct timeline line, other, seen;

// The last 40 bits of this time are small, so earlier times have different upper bits.
static const uint64_t START = (7ull << 40) + 1000;

static int begin(void **state)
{
	memset(&line, 0, sizeof(line));
	memset(&other, 0, sizeof(other));
	timeline_begin(&line, START, 0);
	timeline_begin(&other, START, 0);
	return 0;
}

static uint64_t total(const struct timeline *t)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < TIMELINE_BUCKETS; i++)
		sum += t->count[i];
	return sum;
}

static void add_one(struct timeline *t, uint64_t due, uint64_t now)
{
	timeline_add(t, &due, 1, now);
}

static void buckets_are_as_wide_as_the_time_of_the_run_wants(void **state)
{
	static const struct {
		uint64_t cycles, width;
	} rows[] = {{1, FINEST}, {FINEST * 4095ull - 1, FINEST}, {FINEST * 4095ull, 2 * FINEST},
		{2600000000, 1 << 20}, {86400 * 5000000000ull, 1ull << 37}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		timeline_begin(&line, START, rows[i].cycles);
		assert_int_equal(1ull << line.shift, rows[i].width);
		assert_true(
			(START + rows[i].cycles - 1) >> line.shift < line.first + TIMELINE_BUCKETS);
	}
}

static void a_burst_of_one_time_goes_into_one_bucket(void **state)
{
	uint64_t due[BURST];

	for (unsigned i = 0; i < BURST; i++)
		due[i] = START + 3 * FINEST;
	timeline_add(&line, due, BURST, due[0] + 5);
	assert_int_equal(line.count[3], BURST);
	assert_int_equal(total(&line), BURST);
}

static void a_burst_over_several_buckets_is_told_apart(void **state)
{
	uint64_t due[BURST];

	for (unsigned i = 0; i < BURST; i++)
		due[i] = (line.first + i / 16) * FINEST + (i ? 0 : START % FINEST);
	timeline_add(&line, due, BURST, due[BURST - 1]);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(line.count[i], 16);
	assert_int_equal(total(&line), BURST);
}

static void frames_out_of_order_are_told_apart_too(void **state)
{
	const uint64_t due[] = {START + 9 * FINEST, START, START + 9 * FINEST};

	timeline_add_each(&line, due, 3, START + 10 * FINEST);
	assert_int_equal(line.count[9], 2);
	assert_int_equal(line.count[0], 1);
}

// A stamp contains the last 40 bits of a time, and the clock of its core may be ahead.
static void the_last_bits_of_a_time_are_enough(void **state)
{
	uint64_t late = START + FINEST * 4000ull;

	add_one(&line, START & STAMP_BITS, START + 100);
	add_one(&line, START & STAMP_BITS, START - 100);
	add_one(&line, late & STAMP_BITS, late + (1ull << 38));
	assert_int_equal(line.count[0], 2);
	assert_int_equal(line.count[4000], 1);
	timeline_begin(&other, (8ull << 40) - FINEST, 0);
	add_one(&other, FINEST & STAMP_BITS, (8ull << 40) + 2 * FINEST); // after the wraparound
	assert_int_equal(other.count[2], 1);
}

static void what_was_due_at_no_time_of_the_run_is_at_its_ends(void **state)
{
	add_one(&line, START - FINEST, START);
	assert_int_equal(line.count[0], 1);
	line.shift = TIMELINE_MOST_SHIFT; // the resolution does not get coarser
	line.first = 0;
	line.start = 0;
	add_one(&line, UINT64_MAX - 5, UINT64_MAX);
	assert_int_equal(line.count[TIMELINE_BUCKETS - 1], 1);
}

static void a_run_without_an_end_gets_wider_buckets_and_loses_no_frame(void **state)
{
	uint64_t n_added = 0;

	for (uint64_t due = START; due < START + 50 * FINEST * 4096ull; due += 777777, n_added++)
		add_one(&line, due, due);
	assert_int_equal(total(&line), n_added);
	assert_int_equal(line.n_folds, 2 * 6); // 64 times as coarse
	assert_int_equal(1ull << line.shift, 64 * FINEST);
	for (unsigned i = 1; i + 1 < timeline_length(&line); i++) {
		uint64_t from = ((line.first + i) << line.shift) - START;
		uint64_t to = from + (1ull << line.shift);

		assert_int_equal(line.count[i], (to + 777776) / 777777 - (from + 777776) / 777777);
	}
}

static void workers_of_different_width_are_added_up(void **state)
{
	uint64_t late = START + FINEST * 10000ull;

	add_one(&line, START + 5 * FINEST, START);
	add_one(&other, START + 5 * FINEST, START);
	add_one(&other, late, late);
	timeline_merge(&line, &other);
	assert_int_equal(line.shift, other.shift);
	assert_int_equal(line.count[5 / 4], 2);
	assert_int_equal(line.count[10000 / 4], 1);
	assert_int_equal(timeline_length(&line), 2501);
	assert_int_equal(total(&line), 3);
}

static void an_empty_one_has_no_length(void **state)
{
	assert_int_equal(timeline_length(&line), 0);
}

// Folds a dozen times.
static void *count_frames(void *arg)
{
	uint64_t due[BURST], now = START;

	for (unsigned i = 0; i < N_BURSTS; i++, now += 3000 * FINEST / 4) {
		for (unsigned k = 0; k < BURST; k++)
			due[k] = now + k * 50;
		timeline_add(&line, due, BURST, now);
	}
	return NULL;
}

static void nothing_is_counted_twice_or_not_at_all_while_buckets_become_one(void **state)
{
	uint64_t before = 0, n_folds = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, count_frames, NULL), 0);
	while (before < N_BURSTS * BURST) {
		timeline_read(&line, &seen);
		uint64_t now = total(&seen);

		assert_true(now >= before && now <= N_BURSTS * BURST);
		assert_true(seen.n_folds >= n_folds && seen.n_folds % 2 == 0);
		assert_int_equal(seen.first, START >> seen.shift);
		before = now;
		n_folds = seen.n_folds;
	}
	pthread_join(thread, NULL);
	assert_true(n_folds >= 2 * 12);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(buckets_are_as_wide_as_the_time_of_the_run_wants),
		TEST(a_burst_of_one_time_goes_into_one_bucket),
		TEST(a_burst_over_several_buckets_is_told_apart),
		TEST(frames_out_of_order_are_told_apart_too),
		TEST(the_last_bits_of_a_time_are_enough),
		TEST(what_was_due_at_no_time_of_the_run_is_at_its_ends),
		TEST(a_run_without_an_end_gets_wider_buckets_and_loses_no_frame),
		TEST(workers_of_different_width_are_added_up),
		TEST(an_empty_one_has_no_length),
		TEST(nothing_is_counted_twice_or_not_at_all_while_buckets_become_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
