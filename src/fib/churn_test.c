// Random changes of the table and of a plain list of routes. Tests only.
#include "fib/fib.h"

#include "fib/churn.h"
#include "fib/table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct model model;

static void churn_one_by_one(struct fib *fib, uint8_t family, unsigned n, size_t wanted)
{
	churn_reset(&model, 0);
	for (unsigned i = 0; i < n; i++) {
		struct fib_change change = churn_change(&model, family, wanted);
		int result = churn_apply(&model, &change);
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), result);
		churn_check_edges(fib, &model, &change.route.prefix);
		churn_check_some(fib, &model, family, 2);
		if (i % 200 == 199)
			assert_true(publish4_tidy(fib));
		if (i % 1000 == 999)
			churn_check_all(fib, &model);
	}
	churn_check_all(fib, &model);
	fib_destroy(fib);
}

static void agrees_with_a_list_after_each_ip4_change(void **state)
{
	churn_one_by_one(fib_create(NULL), 4, churn_rounds(3000), 60);
	churn_one_by_one(fib_create(NULL), 4, churn_rounds(2000), 500);
}

static void agrees_with_a_list_after_each_ip6_change(void **state)
{
	churn_one_by_one(fib_create(NULL), 6, churn_rounds(3000), 60);
	churn_one_by_one(fib_create(NULL), 6, churn_rounds(3000), 700);
}

// Batches of both families; some must fail as a whole.
static void agrees_with_a_list_after_each_batch(void **state)
{
	static struct model before;
	static struct fib_change batch[500];
	const unsigned n_rounds = churn_rounds(150);
	struct fib *fib = fib_create(NULL);

	churn_reset(&model, 0);
	for (unsigned round = 0; round < n_rounds; round++) {
		size_t n = 1 + model_random(round % 3 ? 20 : 500), first_bad = SIZE_MAX,
		       bad = SIZE_MAX;
		int expected = 0;
		before = model;
		for (size_t i = 0; i < n; i++) {
			batch[i] = churn_change(&model, model_random(2) ? 4 : 6, 1500);
			if (model_random(1000))
				batch[i].op =
					batch[i].op == FIB_DELETE &&
							model_find(&model,
								&batch[i].route.prefix) >= 0 &&
							churn_builtin(&batch[i].route.prefix) < 0
						? FIB_DELETE
						: FIB_REPLACE;
			int result = churn_apply(&model, &batch[i]);
			if (!expected && result) {
				expected = result;
				first_bad = i;
			}
		}
		assert_int_equal(fib_change(fib, batch, n, &bad, NULL), expected);
		assert_int_equal(bad, first_bad);
		if (expected)
			model = before;
		churn_check_some(fib, &model, 4, 20);
		churn_check_some(fib, &model, 6, 20);
		if (round % 50 == 49)
			churn_check_all(fib, &model);
	}
	churn_check_all(fib, &model);
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_list_after_each_ip4_change),
		cmocka_unit_test(agrees_with_a_list_after_each_ip6_change),
		cmocka_unit_test(agrees_with_a_list_after_each_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
