// Bucket bounds; percentiles compared with sorted values.
#include "gen/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct histogram h;
static uint64_t seed = 88172645463325252ull;

static uint64_t dice(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void every_value_lies_in_its_bucket(void **state)
{
	uint64_t low, high;

	for (int i = 0; i < 1000000; i++) {
		uint64_t value = dice() >> (24 + dice() % 40);
		histogram_bounds(histogram_index(value), &low, &high);
		assert_true(low <= value && value <= high);
		assert_true((double)(high - low) / 2 <= 0.004 * (double)low);
	}
}

static void buckets_follow_each_other_without_a_gap(void **state)
{
	uint64_t low, high, next = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		histogram_bounds(i, &low, &high);
		assert_int_equal(low, next);
		assert_int_equal(histogram_index(low), i);
		assert_int_equal(histogram_index(high), i);
		next = high + 1;
	}
	assert_int_equal(next, 1ull << HISTOGRAM_MAX_BITS);
}

static void values_beyond_the_range_fall_into_the_last_bucket(void **state)
{
	assert_int_equal(histogram_index(1ull << 40), HISTOGRAM_BUCKETS - 1);
	assert_int_equal(histogram_index(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void expect_close(double share, const uint64_t sorted[], size_t n)
{
	double exact = share * (double)n;
	size_t rank = (size_t)exact + ((double)(size_t)exact < exact);
	double want = (double)sorted[rank ? rank - 1 : 0];
	double got = (double)histogram_percentile(&h, share);

	assert_true(got - want <= 0.004 * want && want - got <= 0.004 * want);
}

static void percentiles_are_those_of_sorting_within_4_in_1000(void **state)
{
	static const double shares[] = {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999};
	static uint64_t values[200000];

	for (unsigned round = 0; round < 20; round++) {
		size_t n = 1 + dice() % ARRAY_LEN(values);
		uint64_t sum = 0;
		histogram_clear(&h);
		for (size_t i = 0; i < n; i++) {
			values[i] = dice() >> (24 + (round % 2 ? dice() % 40 : round));
			sum += values[i];
			histogram_add(&h, values[i]);
		}
		qsort(values, n, sizeof(values[0]), by_value);
		assert_int_equal(h.n, n);
		assert_int_equal(h.sum, sum);
		assert_int_equal(histogram_percentile(&h, 0), values[0]);
		assert_int_equal(histogram_percentile(&h, 1), values[n - 1]);
		for (size_t i = 0; i < ARRAY_LEN(shares); i++)
			expect_close(shares[i], values, n);
	}
}

static void a_burst_counts_as_its_values_one_by_one(void **state)
{
	static struct histogram one_by_one;
	uint64_t values[HISTOGRAM_BURST];

	histogram_clear(&h);
	histogram_clear(&one_by_one);
	for (unsigned round = 0; round < 20000; round++) {
		unsigned n = dice() % (HISTOGRAM_BURST + 1), shift = 24 + dice() % 40;
		for (unsigned i = 0; i < n; i++) {
			values[i] = round % 3 && i ? values[0] : dice() >> shift;
			histogram_add(&one_by_one, values[i]);
		}
		histogram_add_burst(&h, values, n);
	}
	assert_memory_equal(&h, &one_by_one, sizeof(h));
}

static void an_empty_histogram_answers_0(void **state)
{
	histogram_clear(&h);
	assert_int_equal(h.min, UINT64_MAX);
	assert_int_equal(histogram_percentile(&h, 0), 0);
	assert_int_equal(histogram_percentile(&h, 0.5), 0);
	assert_int_equal(histogram_percentile(&h, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_value_lies_in_its_bucket),
		cmocka_unit_test(buckets_follow_each_other_without_a_gap),
		cmocka_unit_test(values_beyond_the_range_fall_into_the_last_bucket),
		cmocka_unit_test(percentiles_are_those_of_sorting_within_4_in_1000),
		cmocka_unit_test(a_burst_counts_as_its_values_one_by_one),
		cmocka_unit_test(an_empty_histogram_answers_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
