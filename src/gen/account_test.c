// The number of the last lost frame, and the longest outage.
#include "gen/account.h"
#include "gen/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ID = 3 };

static struct gen_stream stream;
static struct sink sink;
static struct sink_stream *s;

static int begin(void **state)
{
	stream = (struct gen_stream){.name = "east", .id = ID, .n_flows = 1};
	assert_int_equal(sink_stream_create(&s, &stream, NULL), 0);
	sink.by_id[ID] = s;
	return 0;
}

static int end(void **state)
{
	sink_stream_destroy(s);
	return 0;
}

// Frames `first` to `last`, received together.
static void take(uint64_t first, uint64_t last, uint64_t now)
{
	while (first <= last) {
		struct whole frames = {.n = 0};

		for (; frames.n < RECOGNISE_MAX && first <= last; frames.n++, first++) {
			frames.id[frames.n] = ID;
			frames.sequence[frames.n] = first;
			frames.due[frames.n] = now;
			frames.sent[frames.n] = now;
			frames.bytes[frames.n] = 64;
		}
		account(&sink, &frames, now);
	}
}

static void no_gap_is_no_outage(void **state)
{
	take(0, 99, 1000);
	take(100, 199, 900000);
	assert_int_equal(s->counters.gap_end, 0);
	assert_int_equal(s->counters.longest_outage, 0);
	assert_int_equal(s->counters.longest_silence, 899000);
}

static void knows_behind_which_frame_the_last_gap_ends(void **state)
{
	take(0, 9, 1000);
	take(20, 29, 5000);
	take(31, 40, 6000);
	assert_int_equal(s->counters.gap_end, 31);
	assert_int_equal(s->counters.missing, 11);
	assert_int_equal(s->counters.longest_outage, 4000);
}

static void a_run_may_begin_with_a_gap(void **state)
{
	take(5, 9, 1000);
	assert_int_equal(s->counters.gap_end, 5);
	assert_int_equal(s->counters.longest_outage, 0);
}

// Both sides of the gap arrived in one poll.
static void a_gap_within_a_burst_is_no_time(void **state)
{
	struct whole frames = {.n = 3, .id = {ID, ID, ID}, .sequence = {0, 1, 7}};

	account(&sink, &frames, 5000);
	assert_int_equal(s->counters.gap_end, 7);
	assert_int_equal(s->counters.longest_outage, 0);
}

static void a_frame_that_came_late_is_not_the_last_one_lost(void **state)
{
	take(0, 9, 1000);
	take(11, 299, 2000); // 10 is missing
	take(301, 400, 3000);
	assert_int_equal(s->counters.gap_end, 301);
	take(300, 300, 4000);
	assert_int_equal(s->counters.gap_end, 11);
	take(10, 10, 5000);
	assert_int_equal(s->counters.gap_end, 0);
}

static void an_older_gap_stays_when_a_newer_one_is_filled_from_its_beginning(void **state)
{
	take(0, 9, 1000);
	take(13, 20, 2000); // 10, 11, 12 are missing
	take(10, 10, 3000);
	assert_int_equal(s->counters.gap_end, 13);
	take(12, 12, 3000);
	assert_int_equal(s->counters.gap_end, 12);
}

static void a_gap_older_than_the_window_is_known_at_most(void **state)
{
	uint64_t far = WINDOW_NUMBERS + 1000;

	take(1, far - 2, 1000); // 0 is missing, and later leaves the window
	take(far, far, 2000);
	take(far - 1, far - 1, 3000);
	assert_int_equal(s->counters.gap_end, far + 1 - WINDOW_NUMBERS);
}

static void a_duplicate_fills_nothing(void **state)
{
	take(0, 9, 1000);
	take(11, 20, 2000);
	take(12, 12, 3000);
	assert_int_equal(s->counters.gap_end, 11);
}

// Adds a frame; its `due` identifies its position in the list.
static void put(struct whole *frames, uint64_t number, uint64_t due)
{
	frames->id[frames->n] = ID;
	frames->sequence[frames->n] = number;
	frames->due[frames->n] = due;
	frames->bytes[frames->n] = 64;
	frames->n++;
}

static void a_burst_of_many_gaps_is_taken_like_its_frames_one_by_one(void **state)
{
	struct whole frames = {.n = 0};
	const uint64_t now = 100000;

	take(0, 9, 1000);
	put(&frames, 10, now - 1);
	put(&frames, 11, now - 2);
	put(&frames, 14, now - 4);
	put(&frames, 15, now - 8);
	put(&frames, 15, now - 1000); // duplicate
	put(&frames, 12, now - 16);   // late
	put(&frames, 13, now - 32);   // late; follows the previous one, but is not the next number
	put(&frames, 14, now - 2000); // duplicate
	put(&frames, 20, now - 64);
	put(&frames, 21, now - 128);
	account(&sink, &frames, now);
	assert_int_equal(s->counters.received, 18);
	assert_int_equal(s->counters.duplicated, 2);
	assert_int_equal(s->counters.reordered, 2);
	assert_int_equal(s->counters.missing, 4);
	assert_int_equal(s->counters.highest, 22);
	assert_int_equal(s->counters.gap_end, 20);
	assert_int_equal(s->due.sum, 255);
}

// Spans two words of the window.
static void a_burst_behind_a_gap_leaves_no_number_unseen(void **state)
{
	take(0, 0, 1000);
	take(33, 96, 2000);
	assert_int_equal(s->counters.missing, 32);
	take(33, 96, 3000);
	assert_int_equal(s->counters.duplicated, 64);
	take(1, 32, 4000);
	assert_int_equal(s->counters.missing, 0);
	assert_int_equal(s->counters.received, 97);
}

// The first frame and the last of the burst were due together, the late one between them was not.
static void late_frames_in_a_burst_keep_their_time(void **state)
{
	static struct timeline line;
	struct whole frames = {.n = 0};

	timeline_begin(&line, 0, 0);
	s->timeline = &line;
	put(&frames, 5, 10 << line.shift);
	put(&frames, 2, 3 << line.shift);
	put(&frames, 6, 10 << line.shift);
	account(&sink, &frames, 11 << line.shift);
	assert_int_equal(line.count[10], 2);
	assert_int_equal(line.count[3], 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(no_gap_is_no_outage),
		CASE(knows_behind_which_frame_the_last_gap_ends),
		CASE(a_run_may_begin_with_a_gap),
		CASE(a_gap_within_a_burst_is_no_time),
		CASE(a_frame_that_came_late_is_not_the_last_one_lost),
		CASE(an_older_gap_stays_when_a_newer_one_is_filled_from_its_beginning),
		CASE(a_gap_older_than_the_window_is_known_at_most),
		CASE(a_duplicate_fills_nothing),
		CASE(a_burst_of_many_gaps_is_taken_like_its_frames_one_by_one),
		CASE(a_burst_behind_a_gap_leaves_no_number_unseen),
		CASE(late_frames_in_a_burst_keep_their_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
