// The packet cost estimate, updated burst by burst.
#include "datapath/cost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { FRAMES = 64, FEW = 7, SMALL = 160, BIG = 1181, COLD = 20000, TAKEN_AWAY = 10000000 };

static uint64_t update_often(uint64_t cost, uint64_t each, unsigned n_bursts)
{
	while (n_bursts--)
		cost = cost_update(cost, each * FRAMES, FRAMES);
	return cost;
}

static void the_first_burst_is_believed(void **state)
{
	assert_int_equal(cost_update(0, (uint64_t)BIG * FRAMES, FRAMES), BIG);
}

static void a_core_that_is_taken_away_during_the_first_burst_is_no_cost(void **state)
{
	assert_int_equal(cost_update(0, TAKEN_AWAY, FRAMES), COST_FIRST_MAX);
	assert_true(COST_FIRST_MAX * FRAMES < TAKEN_AWAY);
}

static void frames_of_another_size_are_known_after_ten_bursts(void **state)
{
	assert_int_equal(update_often(SMALL, BIG, 10), BIG);
	assert_int_equal(update_often(BIG, SMALL, 10), SMALL);
}

static void a_core_that_is_taken_away_hardly_counts(void **state)
{
	uint64_t after = cost_update(BIG, TAKEN_AWAY, FRAMES);

	assert_true(after > BIG && after <= BIG * 5 / 4 + 1);
	assert_true(update_often(after, BIG, 1) <= (after + BIG) / 2);
}

static void a_first_burst_that_was_dear_is_soon_forgotten(void **state)
{
	assert_true(update_often(COLD, SMALL, 1) <= SMALL * 3 / 2);
	assert_int_equal(update_often(COLD, SMALL, 10), SMALL);
	assert_true(update_often(TAKEN_AWAY / FRAMES, SMALL, 1) <= SMALL * 3 / 2);
}

static void a_burst_of_few_frames_does_not_raise_the_cost(void **state)
{
	assert_int_equal(cost_update(0, COLD, 1), 0);
	assert_int_equal(cost_update(SMALL, (uint64_t)BIG * FEW, FEW), SMALL);
	assert_true(cost_update(BIG, (uint64_t)SMALL * FEW, FEW) < BIG);
}

static void the_cost_may_be_next_to_nothing(void **state)
{
	assert_int_equal(update_often(SMALL, 0, 50), 0);
	assert_int_equal(update_often(1, 0, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_burst_is_believed),
		cmocka_unit_test(a_core_that_is_taken_away_during_the_first_burst_is_no_cost),
		cmocka_unit_test(frames_of_another_size_are_known_after_ten_bursts),
		cmocka_unit_test(a_core_that_is_taken_away_hardly_counts),
		cmocka_unit_test(a_first_burst_that_was_dear_is_soon_forgotten),
		cmocka_unit_test(a_burst_of_few_frames_does_not_raise_the_cost),
		cmocka_unit_test(the_cost_may_be_next_to_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
