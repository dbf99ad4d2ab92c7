// Conversion of cycles to nanoseconds.
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint64_t n_reads;

// A counter whose third reading comes at once, the others after a pause.
static uint64_t count(void)
{
	static const uint64_t at[] = {100, 900, 1000, 1500, 2000, 2010, 3000, 3400, 4000, 4200};

	return at[n_reads++];
}

static void a_pair_is_taken_where_least_time_passed(void **state)
{
	uint64_t before = clock_now_ns();
	struct clock_pair pair = clock_pair_take(count);

	assert_int_equal(n_reads, 10);
	assert_int_equal(pair.cycles, 2005);
	assert_true(pair.ns >= before && pair.ns <= clock_now_ns());
}

static void time_runs_straight_through_two_pairs(void **state)
{
	const struct clock_pair first = {1000, 500000}, last = {4000, 501000};

	assert_int_equal(clock_ns_at(&first, &last, 1000), 500000);
	assert_int_equal(clock_ns_at(&first, &last, 2500), 500500);
	assert_int_equal(clock_ns_at(&first, &last, 4000), 501000);
	assert_int_equal(clock_ns_at(&first, &last, 5500), 501500);
	assert_int_equal(clock_ns_at(&first, &last, 400), 499800);
}

static void a_year_of_cycles_does_not_overflow(void **state)
{
	const uint64_t year_s = 365ull * 86400;
	const struct clock_pair first = {0, 0}, last = {year_s * 3000000000, year_s * 1000000000};

	assert_int_equal(clock_ns_at(&first, &last, 3000000000), 1000000000);
}

static void two_pairs_of_one_moment_tell_that_moment(void **state)
{
	const struct clock_pair pair = {1000, 500000};

	assert_int_equal(clock_ns_at(&pair, &pair, 7), 500000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pair_is_taken_where_least_time_passed),
		cmocka_unit_test(time_runs_straight_through_two_pairs),
		cmocka_unit_test(a_year_of_cycles_does_not_overflow),
		cmocka_unit_test(two_pairs_of_one_moment_tell_that_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
