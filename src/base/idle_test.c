// When a worker sleeps and for how long, and that it does sleep. Control thread.
#include "base/idle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const uint64_t HZ = 2000000000, US = 2000;

static struct idle started(bool may_sleep)
{
	struct idle idle;

	idle_start(&idle, may_sleep, HZ, 1000 * US);
	return idle;
}

// For a worker that only time wakes.
static uint64_t length_us(const struct idle *idle, uint64_t idle_us)
{
	return idle_length(idle, idle->last_busy + idle_us * US, false) / US;
}

static uint64_t woken_us(const struct idle *idle, uint64_t idle_us)
{
	return idle_length(idle, idle->last_busy + idle_us * US, true) / US;
}

static void polls_on_for_a_while_after_work(void **state)
{
	struct idle idle = started(true);

	assert_int_equal(length_us(&idle, 0), 0);
	assert_int_equal(length_us(&idle, IDLE_SPIN_US - 1), 0);
	assert_int_equal(length_us(&idle, IDLE_SPIN_US), IDLE_LEAST_US);
}

static void sleeps_for_a_share_of_the_time_that_it_was_idle(void **state)
{
	struct idle idle = started(true);

	assert_int_equal(length_us(&idle, 320), 20);
	assert_int_equal(length_us(&idle, 1600), IDLE_BLIND_US);
	assert_int_equal(length_us(&idle, 3600000000ull), IDLE_BLIND_US);
}

static void sleeps_long_where_all_queues_wake_it(void **state)
{
	struct idle idle = started(true);

	assert_int_equal(woken_us(&idle, IDLE_SPIN_US - 1), 0);
	assert_int_equal(woken_us(&idle, IDLE_SPIN_US), IDLE_MOST_US);
	assert_int_equal(idle_ns(&idle, 300 * US), 300000);
}

static void a_late_wakeup_is_a_stall_by_what_is_beyond_the_usual(void **state)
{
	struct idle idle = started(true);

	assert_int_equal(idle_intended(&idle, 500 * US, 400 * US), 400 * US);
	assert_int_equal(idle_intended(&idle, 500 * US, 560 * US), 560 * US);
	assert_int_equal(idle_intended(&idle, 500 * US, 5000 * US), (500 + IDLE_LATE_US) * US);
}

static void work_makes_it_poll_again(void **state)
{
	struct idle idle = started(true);

	idle.last_busy += 5000 * US;
	assert_int_equal(length_us(&idle, IDLE_SPIN_US - 1), 0);
}

static void never_sleeps_when_told_to_poll(void **state)
{
	struct idle idle = started(false), none = {.spin = 0};

	assert_int_equal(length_us(&idle, 3600000000ull), 0);
	assert_int_equal(length_us(&none, 3600000000ull), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(polls_on_for_a_while_after_work),
		cmocka_unit_test(sleeps_for_a_share_of_the_time_that_it_was_idle),
		cmocka_unit_test(sleeps_long_where_all_queues_wake_it),
		cmocka_unit_test(a_late_wakeup_is_a_stall_by_what_is_beyond_the_usual),
		cmocka_unit_test(work_makes_it_poll_again),
		cmocka_unit_test(never_sleeps_when_told_to_poll),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
