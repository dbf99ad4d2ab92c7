// The schedule of a stream.
#include "gen/pace.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { HZ = 2600000000u, START = 1000000 };

static struct pace pace_of(double pps, uint16_t burst, uint64_t n_frames, uint64_t end)
{
	struct gen_stream stream = {.pps = pps, .burst = burst, .n_frames = n_frames};
	struct pace pace;

	pace_make(&pace, &stream, HZ);
	pace_begin(&pace, START, end);
	return pace;
}

// When frame k must be due.
static uint64_t due_of(uint64_t k, double pps, uint16_t burst)
{
	return START + (uint64_t)((long double)(k / burst * burst) * HZ / pps);
}

static void puts_each_frame_at_its_time_without_drift(void **state)
{
	static const struct {
		double pps;
		uint16_t burst;
	} rows[] = {{1e6, 1}, {14880952.38, 1}, {148.8e6, 1}, {3, 1}, {0.5, 2}, {1e6, 64}, {1e6, 7},
		{1e7, 33}, {5e9, 1}};

	for (unsigned r = 0; r < ARRAY_LEN(rows); r++) {
		struct pace pace = pace_of(rows[r].pps, rows[r].burst, 0, 0);
		uint64_t due[GEN_MAX_BURST], k = 0;

		for (unsigned turn = 0; turn < 100000; turn++) {
			uint64_t now = due_of(k, rows[r].pps, rows[r].burst) + 1;
			unsigned n = pace_take(&pace, now, due);

			assert_in_range(n, 1, GEN_MAX_BURST);
			for (unsigned i = 0; i < n; i++, k++) {
				uint64_t want = due_of(k, rows[r].pps, rows[r].burst);

				assert_in_range(due[i], want - 1, want + 1);
				assert_true(due[i] <= now);
			}
		}
		assert_int_equal(pace.late, 0);
	}
}

static void gives_nothing_before_it_is_due(void **state)
{
	struct pace pace = pace_of(1e6, 1, 0, 0);
	uint64_t due[GEN_MAX_BURST];

	assert_int_equal(pace_take(&pace, START - 1, due), 0);
	assert_int_equal(pace_take(&pace, START, due), 1);
	assert_int_equal(pace_take(&pace, START + 2599, due), 0);
	assert_int_equal(pace_take(&pace, START + 2600, due), 1);
	assert_int_equal(due[0], START + 2600);
}

static void gives_a_burst_at_once(void **state)
{
	struct pace pace = pace_of(1e6, 10, 0, 0);
	uint64_t due[GEN_MAX_BURST];

	assert_int_equal(pace_take(&pace, START, due), 10);
	assert_int_equal(pace_take(&pace, START + 25999, due), 0);
	assert_int_equal(pace_take(&pace, START + 26000, due), 10);
	assert_int_equal(due[0], START + 26000);
	assert_int_equal(due[9], START + 26000);
}

// Everything due at `now`, in several calls. The most recent frame is the last in due[].
static unsigned take_all(struct pace *pace, uint64_t now, uint64_t due[])
{
	unsigned n = 0, got;

	do {
		got = pace_take(pace, now, due + n);
		assert_true(got <= GEN_MAX_BURST);
		n += got;
	} while (got);
	return n;
}

static void catches_up_with_the_newest_after_a_gap_and_calls_the_rest_late(void **state)
{
	static const uint16_t bursts[] = {1, 2, 7, 10, 33, 63, 64};

	for (unsigned b = 0; b < ARRAY_LEN(bursts); b++)
		for (unsigned missed = 1; missed < 4 * GEN_MAX_BURST; missed++) {
			uint16_t burst = bursts[b];
			struct pace pace = pace_of(1e6, burst, 0, 0);
			uint64_t due[2 * GEN_MAX_BURST], now = START + 2600ull * missed;
			uint64_t n_due = (missed / burst + 1) * burst;
			uint64_t n_late = n_due > GEN_MAX_BURST ? n_due - GEN_MAX_BURST : 0;

			assert_int_equal(take_all(&pace, now, due), n_due - n_late);
			assert_int_equal(pace.late, n_late);
			for (unsigned i = 0; i < n_due - n_late; i++)
				assert_int_equal(due[i], due_of(n_late + i, 1e6, burst));
			assert_int_equal(pace_take(&pace, due_of(n_due, 1e6, burst), due), burst);
			assert_int_equal(due[0], due_of(n_due, 1e6, burst));
		}
}

static void catches_up_with_as_many_as_its_stream_allows(void **state)
{
	struct gen_stream stream = {.pps = 1e6, .burst = 1, .catch_up = 1000};
	uint64_t due[1000];
	struct pace pace;

	pace_make(&pace, &stream, HZ);
	pace_begin(&pace, START, 0);
	assert_int_equal(take_all(&pace, START + 2600 * 999ull, due), 1000);
	assert_int_equal(pace.late, 0);
	assert_int_equal(take_all(&pace, START + 2600 * 2499ull, due), 1000);
	assert_int_equal(pace.late, 500);
	assert_int_equal(due[0], due_of(1500, 1e6, 1));
}

static void ends_after_its_frames_or_its_time_and_counts_what_was_late_until_then(void **state)
{
	uint64_t due[2 * GEN_MAX_BURST];
	struct pace pace = pace_of(1e6, 1, 3, 0);

	assert_int_equal(pace_take(&pace, START + 2600, due), 2);
	assert_false(pace_is_over(&pace, START + 2600));
	assert_int_equal(pace_take(&pace, START + 26000, due), 1);
	assert_true(pace_is_over(&pace, START + 26000));

	pace = pace_of(1e6, 1, GEN_MAX_BURST + 36, 0);
	assert_int_equal(take_all(&pace, START + 26000000, due), GEN_MAX_BURST);
	assert_int_equal(pace.late, 36);
	assert_true(pace_is_over(&pace, START));

	pace = pace_of(1e6, 1, 0, START + 2600 * (GEN_MAX_BURST + 136));
	assert_int_equal(take_all(&pace, START + 26000000, due), GEN_MAX_BURST);
	assert_int_equal(due[GEN_MAX_BURST - 1], START + 2600 * (GEN_MAX_BURST + 135));
	assert_int_equal(pace.late, 136);
	assert_true(pace_is_over(&pace, START));
}

static void sends_as_many_frames_as_rate_and_time_make(void **state)
{
	static const struct {
		double pps, seconds;
		uint64_t n_frames;
	} rows[] = {{3e6, 1, 3000000}, {7e3, 0.7, 4900}, {700e3, 0.1, 70000}, {9e5, 1, 900000},
		{1.1e6, 2, 2200000}, {3, 0.3, 1}, {0.001, 1, 1}};

	for (unsigned r = 0; r < ARRAY_LEN(rows); r++) {
		uint64_t end = START + (uint64_t)(rows[r].seconds * HZ), n = 0;
		struct pace pace = pace_of(rows[r].pps, 1, 0, end);
		uint64_t due[GEN_MAX_BURST];

		while (!pace_is_over(&pace, end))
			n += pace_take(&pace, pace.due.cycles, due);
		assert_int_equal(n, rows[r].n_frames);
	}
}

static void goes_as_fast_as_can_be_without_being_late(void **state)
{
	struct pace pace = pace_of(0, 1, 130, START + 1000);
	uint64_t due[GEN_MAX_BURST];

	assert_int_equal(pace_take(&pace, START - 1, due), 0);
	assert_int_equal(pace_take(&pace, START + 500, due), 64);
	assert_int_equal(due[63], START + 500);
	pace_refuse(&pace, 4);
	assert_int_equal(pace_take(&pace, START + 999, due), 64);
	assert_int_equal(pace_take(&pace, START + 1000, due), 0);
	assert_true(pace_is_over(&pace, START + 1000));
	assert_false(pace_is_over(&pace, START + 999));
	assert_int_equal(pace_take(&pace, START + 999, due), 6);
	assert_true(pace_is_over(&pace, START + 999));
	assert_int_equal(pace.late, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(puts_each_frame_at_its_time_without_drift),
		cmocka_unit_test(gives_nothing_before_it_is_due),
		cmocka_unit_test(gives_a_burst_at_once),
		cmocka_unit_test(catches_up_with_the_newest_after_a_gap_and_calls_the_rest_late),
		cmocka_unit_test(catches_up_with_as_many_as_its_stream_allows),
		cmocka_unit_test(
			ends_after_its_frames_or_its_time_and_counts_what_was_late_until_then),
		cmocka_unit_test(sends_as_many_frames_as_rate_and_time_make),
		cmocka_unit_test(goes_as_fast_as_can_be_without_being_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
