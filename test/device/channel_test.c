#include "channel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HZ = 1000 * 1000 * 1000, MOST = 100 * 1000 };

static struct channel_account account;
static unsigned came[MOST];
static unsigned n_came;

static struct channel *make(const char *text)
{
	struct channel_settings settings;
	char words[256], error[128] = "";

	strcpy(words, text);
	assert_true(channel_read(&settings, words, error, sizeof(error)));
	memset(&account, 0, sizeof(account));
	struct channel *channel = channel_create(&settings, HZ, &account);

	assert_non_null(channel);
	return channel;
}

static uint64_t counted(enum channel_count what)
{
	return account.rows[what].n;
}

static void take_all(struct channel *channel, uint64_t now)
{
	unsigned frame[16];

	n_came = 0;
	while (channel_take(channel, frame, sizeof(frame), now))
		came[n_came++] = frame[0];
}

static bool put(struct channel *channel, unsigned number, uint64_t now)
{
	unsigned frame[16] = {number};

	return channel_put(channel, frame, sizeof(frame), now);
}

static void put_all(struct channel *channel, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_true(put(channel, i, 1));
	take_all(channel, 1);
}

static void drops_exactly_one_in_n(void **state)
{
	struct channel *channel = make("drop_every=7");

	put_all(channel, 700);
	assert_int_equal(n_came, 600);
	assert_int_equal(counted(CHANNEL_DROPPED), 100);
	assert_int_equal(counted(CHANNEL_OFFERED), 700);
	assert_int_equal(came[6], 7);
	channel_destroy(channel);
}

static void holds_a_frame_back_until_others_have_passed(void **state)
{
	static const unsigned wanted[] = {0, 1, 2, 4, 5, 3, 6, 8, 9, 7};
	struct channel *channel = make("swap_every=4 swap_by=2");

	put_all(channel, 10);
	assert_int_equal(n_came, 10);
	assert_memory_equal(came, wanted, sizeof(wanted));
	assert_int_equal(counted(CHANNEL_SWAPPED), 2);
	channel_destroy(channel);
}

static void sends_every_third_frame_twice(void **state)
{
	static const unsigned wanted[] = {0, 1, 2, 2, 3, 4, 5, 5};
	struct channel *channel = make("duplicate_every=3");

	put_all(channel, 6);
	assert_int_equal(n_came, 8);
	assert_memory_equal(came, wanted, sizeof(wanted));
	channel_destroy(channel);
}

static void changes_the_byte_that_it_is_told_to(void **state)
{
	struct channel *channel = make("corrupt_every=2 corrupt_at=0 corrupt_with=0x80");

	put_all(channel, 4);
	assert_int_equal(came[0], 0);
	assert_int_equal(came[1], 1 ^ 0x80);
	assert_int_equal(counted(CHANNEL_CORRUPTED), 2);
	channel_destroy(channel);
}

static void keeps_a_frame_for_as_long_as_told(void **state)
{
	struct channel *channel = make("delay_ns=500");

	put(channel, 1, 1000);
	take_all(channel, 1499);
	assert_int_equal(n_came, 0);
	take_all(channel, 1500);
	assert_int_equal(n_came, 1);
	channel_destroy(channel);
}

static void keeps_every_second_frame_longer(void **state)
{
	struct channel *channel = make("delay_ns=500 late_every=2 late_ns=100");

	put(channel, 1, 1000);
	put(channel, 2, 1000);
	take_all(channel, 1599);
	assert_int_equal(n_came, 1);
	take_all(channel, 1600);
	assert_int_equal(n_came, 1);
	channel_destroy(channel);
}

// 1000 frames a second for ten seconds, offered at twice that rate.
static void lets_exactly_the_limit_through(void **state)
{
	struct channel *channel = make("limit_pps=1000 limit_depth=10 ring=65536");

	for (unsigned i = 0; i < 20000; i++)
		assert_true(put(channel, i, 1 + i * (HZ / 2000ull)));
	take_all(channel, UINT64_MAX);
	assert_in_range(n_came, 10000, 10011);
	assert_int_equal(counted(CHANNEL_OVER_LIMIT), 20000 - n_came);
	channel_destroy(channel);
}

// A burst at four times the limit: 100 / (1 - 1/4) frames, and the first.
static void lets_a_burst_through_that_fits_into_its_buffer(void **state)
{
	struct channel *channel = make("limit_pps=1000 limit_depth=100 ring=65536");

	for (unsigned i = 0; i < 134; i++)
		assert_true(put(channel, i, 1 + i * (HZ / 4000ull)));
	assert_int_equal(counted(CHANNEL_OVER_LIMIT), 0);
	assert_true(put(channel, 134, 1 + 134 * (HZ / 4000ull)));
	assert_int_equal(counted(CHANNEL_OVER_LIMIT), 1);
	channel_destroy(channel);
}

static void empties_its_buffer_at_the_limit(void **state)
{
	struct channel *channel = make("limit_pps=1000 limit_depth=3 queues=1");

	for (unsigned i = 0; i < 6; i++)
		put(channel, i, 1);
	assert_int_equal(counted(CHANNEL_OVER_LIMIT), 2);
	for (unsigned wanted = 1; wanted <= 4; wanted++) {
		take_all(channel, 1 + (wanted - 1) * (HZ / 1000ull));
		assert_int_equal(n_came, 1);
	}
	assert_false(channel_has(channel, UINT64_MAX));
	channel_destroy(channel);
}

// A thousand frames that a pause let come all at once, and then one that was due too early.
static void judges_frames_by_when_they_were_due(void **state)
{
	struct channel *channel = make("limit_pps=1000 limit_depth=1 due_at=3");
	uint8_t frame[16] = {0};
	uint64_t now = 5ull << 40 | 7; // the due times' 40 bits have just begun anew

	for (unsigned i = 0; i <= 1001; i++) {
		uint64_t due = now - (1000 - (i < 1001 ? i : 1000)) * (HZ / 1000ull);

		for (unsigned byte = 0; byte < 5; byte++)
			frame[3 + byte] = due >> (32 - 8 * byte);
		assert_true(channel_put(channel, frame, sizeof(frame), now));
	}
	assert_int_equal(counted(CHANNEL_OVER_LIMIT), 0);
	assert_true(channel_put(channel, frame, sizeof(frame), now));
	assert_int_equal(counted(CHANNEL_OVER_LIMIT), 1);
	channel_destroy(channel);
}

// A millisecond without any, after the last that was above the limit.
static void loses_all_for_a_while_after_an_overload(void **state)
{
	struct channel *channel = make("limit_pps=100000 limit_depth=1 after_ns=1000000");
	uint64_t now = 1;

	for (unsigned i = 0; i < 4; i++)
		assert_true(put(channel, i, now));
	assert_int_equal(counted(CHANNEL_OVER_LIMIT), 2);
	for (now += HZ / 50000; now < 1 + HZ / 1000; now += HZ / 50000)
		put(channel, 0, now);
	assert_int_equal(counted(CHANNEL_AFTER_LIMIT), 49);
	take_all(channel, now);
	assert_int_equal(n_came, 2);
	put(channel, 9, now);
	take_all(channel, now);
	assert_int_equal(came[0], 9);
	channel_destroy(channel);
}

static void dies_for_as_long_as_it_is_told(void **state)
{
	struct channel *channel = make("");

	assert_true(put(channel, 0, 1000));
	account.rows[CHANNEL_DIE_NS].n = 500;
	assert_true(put(channel, 1, 2000));
	assert_true(put(channel, 2, 2499));
	assert_true(put(channel, 3, 2500));
	take_all(channel, 3000);
	assert_int_equal(n_came, 2);
	assert_int_equal(came[1], 3);
	assert_int_equal(counted(CHANNEL_DEAD), 2);
	assert_int_equal(counted(CHANNEL_DIE_NS), 0);
	channel_destroy(channel);
}

static void holds_frames_for_as_long_as_it_is_told(void **state)
{
	struct channel *channel = make("");

	account.rows[CHANNEL_HOLD].n = 1;
	assert_true(put(channel, 0, 1000));
	take_all(channel, 5000);
	assert_int_equal(n_came, 0);
	account.rows[CHANNEL_HOLD].n = 0;
	take_all(channel, 5000);
	assert_int_equal(n_came, 1);
	channel_destroy(channel);
}

static void loses_nothing_at_the_limit(void **state)
{
	struct channel *channel = make("limit_pps=1000 ring=65536");

	for (unsigned i = 0; i < 20000; i++)
		assert_true(put(channel, i, 1 + i * (HZ / 1000ull)));
	take_all(channel, UINT64_MAX);
	assert_int_equal(n_came, 20000);
	channel_destroy(channel);
}

static void loses_what_nobody_takes(void **state)
{
	struct channel *channel = make("ring=100");

	put_all(channel, 150);
	assert_int_equal(n_came, 100);
	assert_int_equal(counted(CHANNEL_RING_FULL), 50);
	assert_int_equal(counted(CHANNEL_TAKEN), 100);
	channel_destroy(channel);
}

static void refuses_what_finds_no_room(void **state)
{
	struct channel *channel = make("ring=100 refuses=1");
	unsigned n = 0;

	while (put(channel, n, 1))
		n++;
	channel_refuse(channel, 5);
	take_all(channel, 1);
	assert_int_equal(n_came, n);
	assert_in_range(n, 97, 100);
	assert_int_equal(counted(CHANNEL_REFUSED), 5);
	assert_int_equal(counted(CHANNEL_OFFERED), n + 5);
	assert_int_equal(counted(CHANNEL_RING_FULL), 0);
	assert_true(put(channel, n, 1));
	channel_destroy(channel);
}

static void says_which_word_it_does_not_know(void **state)
{
	static const char *const wrong[] = {"drop=1", "from", "from=", "from=1x", "drop_every=a",
		"swap_every=2 swap_by=2", "swap_every=2 swap_by=0"};
	struct channel_settings settings;
	char words[64], error[128];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		strcpy(words, wrong[i]);
		assert_false(channel_read(&settings, words, error, sizeof(error)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drops_exactly_one_in_n),
		cmocka_unit_test(holds_a_frame_back_until_others_have_passed),
		cmocka_unit_test(sends_every_third_frame_twice),
		cmocka_unit_test(changes_the_byte_that_it_is_told_to),
		cmocka_unit_test(keeps_a_frame_for_as_long_as_told),
		cmocka_unit_test(keeps_every_second_frame_longer),
		cmocka_unit_test(lets_exactly_the_limit_through),
		cmocka_unit_test(lets_a_burst_through_that_fits_into_its_buffer),
		cmocka_unit_test(empties_its_buffer_at_the_limit),
		cmocka_unit_test(judges_frames_by_when_they_were_due),
		cmocka_unit_test(loses_all_for_a_while_after_an_overload),
		cmocka_unit_test(dies_for_as_long_as_it_is_told),
		cmocka_unit_test(holds_frames_for_as_long_as_it_is_told),
		cmocka_unit_test(loses_nothing_at_the_limit),
		cmocka_unit_test(loses_what_nobody_takes),
		cmocka_unit_test(refuses_what_finds_no_room),
		cmocka_unit_test(says_which_word_it_does_not_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
