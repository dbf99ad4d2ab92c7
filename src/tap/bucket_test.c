// The token bucket with simulated time.
#include "tap/bucket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SECOND = 1000000000 };

static unsigned take_all(struct bucket *bucket)
{
	unsigned n = 0;

	while (bucket_take(bucket))
		n++;
	return n;
}

static void starts_with_a_whole_burst(void **state)
{
	struct bucket bucket;

	bucket_start(&bucket, 20, 5 * (uint64_t)SECOND);
	assert_int_equal(take_all(&bucket), 20);
}

static void lets_through_the_rate_however_it_is_looked_at(void **state)
{
	static const struct {
		uint32_t rate;
		uint64_t step_ns;
	} rows[] = {{1, SECOND / 7}, {1000, 1}, {1000, 999}, {3333, 50000}, {10000000, 77}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bucket bucket;
		uint64_t n = 0, steps = 1000003, ns;

		bucket_start(&bucket, 100, 0);
		take_all(&bucket);
		for (ns = 0; steps--; ns += rows[i].step_ns) {
			bucket_fill(&bucket, rows[i].rate, 100, ns);
			n += take_all(&bucket);
		}
		ns -= rows[i].step_ns;
		assert_int_equal(n, (unsigned __int128)ns * rows[i].rate / SECOND);
	}
}

static void saves_up_no_more_than_the_burst(void **state)
{
	struct bucket bucket;

	bucket_start(&bucket, 65536, 0);
	take_all(&bucket);
	bucket_fill(&bucket, 10000000, 65536, UINT64_MAX / 2);
	assert_int_equal(take_all(&bucket), 65536);
	bucket_fill(&bucket, 10000000, 10, UINT64_MAX);
	assert_int_equal(take_all(&bucket), 10);
}

static void lets_nothing_through_at_rate_0(void **state)
{
	struct bucket bucket;

	bucket_start(&bucket, 20, 0);
	bucket_fill(&bucket, 0, 20, SECOND);
	assert_int_equal(take_all(&bucket), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_with_a_whole_burst),
		cmocka_unit_test(lets_through_the_rate_however_it_is_looked_at),
		cmocka_unit_test(saves_up_no_more_than_the_burst),
		cmocka_unit_test(lets_nothing_through_at_rate_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
