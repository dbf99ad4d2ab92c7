// Compaction of the table after many changes. Tests only.
#include "fib/fib.h"

#include "fib/churn.h"
#include "fib/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct model model;

static void tidies_up_once_changes_have_ended(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct churn_used before;

	churn_reset(&model, 0);
	for (unsigned i = 0; i < 12000; i++) {
		struct fib_change change = churn_change(&model, 4, 900);
		churn_apply(&model, &change);
		fib_change(fib, &change, 1, NULL, NULL);
	}
	before = churn_used(fib);
	assert_int_not_equal(fib->publish4.leaf.n_free, 0);
	for (unsigned i = 0; i < 50; i++)
		fib_tidy(fib);
	churn_expect_used(fib, before);
	assert_int_equal(fib->publish4.leaf.n_free, 0);
	assert_int_equal(fib->publish4.tail.n_free, 0);
	churn_check_all(fib, &model);
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tidies_up_once_changes_have_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
