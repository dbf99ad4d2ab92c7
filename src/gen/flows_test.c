// The frequency of each flow.
#include "gen/flows.h"

#include "base/bits.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DRAWS = 1 << 22 };

static struct flows make(uint8_t kind, uint32_t n, double exponent, uint64_t seed)
{
	const struct gen_stream stream = {.name = "a",
		.n_flows = n,
		.distribution = kind,
		.exponent = exponent,
		.seed = seed};
	struct error error = {""};
	struct flows flows;

	assert_int_equal(flows_make(&flows, &stream, &error), 0);
	return flows;
}

static uint32_t *count(const struct flows *flows)
{
	uint32_t *n_of = calloc(flows->n, sizeof(*n_of)), flow[GEN_MAX_BURST];

	assert_non_null(n_of);
	for (uint64_t at = 0; at < DRAWS; at += GEN_MAX_BURST) {
		flows_fill(flows, at, flow, GEN_MAX_BURST);
		for (unsigned i = 0; i < GEN_MAX_BURST; i++) {
			assert_true(flow[i] < flows->n);
			n_of[flow[i]]++;
		}
	}
	return n_of;
}

// Ten standard deviations: values outside are not random.
static void want_near(double found, double wanted)
{
	if (fabs(found - wanted) > 10 * sqrt(wanted) + 10)
		fail_msg("%g found, about %g wanted", found, wanted);
}

static void takes_each_flow_with_the_same_chance(void **state)
{
	static const uint32_t rows[] = {1, 2, 3, 1000, 65536, 65537};

	for (unsigned r = 0; r < ARRAY_LEN(rows); r++) {
		struct flows flows = make(GEN_UNIFORM, rows[r], 0, 1);
		uint32_t *n_of = count(&flows);

		for (uint32_t i = 0; i < rows[r]; i++)
			want_near(n_of[i], (double)DRAWS / rows[r]);
		free(n_of);
		flows_free(&flows);
	}
}

static void takes_flows_by_the_law_of_zipf(void **state)
{
	static const struct {
		uint32_t n;
		double exponent;
	} rows[] = {{1, 1}, {2, 1}, {100, .5}, {1000, 1}, {3000, 1.2}, {65536, 1}, {65536, 2.5},
		{GEN_MAX_FLOWS, .8}, {GEN_MAX_FLOWS, 1}, {GEN_MAX_FLOWS, 10}};

	for (unsigned r = 0; r < ARRAY_LEN(rows); r++) {
		struct flows flows = make(GEN_ZIPF, rows[r].n, rows[r].exponent, 1);
		uint32_t *n_of = count(&flows);
		double sum = 0, above = 0, n_above = 0;

		for (uint32_t i = 0; i < rows[r].n; i++)
			sum += pow(i + 1, -rows[r].exponent);
		for (uint32_t i = 0; i < rows[r].n; i++) {
			double wanted = DRAWS * pow(i + 1, -rows[r].exponent) / sum;

			want_near(n_of[i], wanted);
			above += wanted;
			n_above += n_of[i];
			if ((i & (i + 1)) == 0) // also all flows below each power of two
				want_near(n_above, above);
		}
		free(n_of);
		flows_free(&flows);
	}
}

static void tells_one_flow_as_it_tells_many(void **state)
{
	for (unsigned i = 0; i < 2 * (GEN_ZIPF + 1); i++) {
		unsigned kind = i / 2, n = i & 1 ? 1 : 3000;
		struct flows flows = make(kind, n, 1, 7);
		uint32_t flow[GEN_MAX_BURST];

		for (uint64_t at = (1ull << 46) - 100; at < (1ull << 46) + 3000; at += 37) {
			flows_fill(&flows, at, flow, 37);
			for (unsigned k = 0; k < 37; k++) {
				assert_int_equal(flows_of(&flows, at + k), flow[k]);
				assert_true(flow[k] < n);
				if (kind == GEN_SEQUENTIAL)
					assert_int_equal(flow[k], (at + k) % n);
			}
		}
		flows_free(&flows);
	}
}

// A number of a frame may be anything below 2^47; a flow out of range would be a write out of
// bounds.
static void takes_flows_in_turn_up_to_the_highest_number(void **state)
{
	static const uint32_t rows[] = {1, 2, 3, 65535, 65536, 65537, 1000003, GEN_MAX_FLOWS / 3,
		GEN_MAX_FLOWS - 1, GEN_MAX_FLOWS};

	for (unsigned r = 0; r < ARRAY_LEN(rows); r++) {
		struct flows flows = make(GEN_SEQUENTIAL, rows[r], 0, 0);

		for (uint64_t top = 1ull << 47; top; top /= 2)
			for (uint64_t i = 1; i < 100 && i <= top; i++) {
				uint64_t turn = (top - i) / rows[r] * rows[r];

				assert_int_equal(flows_of(&flows, top - i), (top - i) % rows[r]);
				assert_int_equal(flows_of(&flows, turn), 0);
				if (turn)
					assert_int_equal(flows_of(&flows, turn - 1), rows[r] - 1);
			}
		flows_free(&flows);
	}
}

static void a_seed_makes_an_order_and_another_makes_another(void **state)
{
	struct flows a = make(GEN_ZIPF, 1 << 20, 1, 5), b = make(GEN_ZIPF, 1 << 20, 1, 5);
	struct flows c = make(GEN_ZIPF, 1 << 20, 1, 6);
	unsigned n_same = 0;

	for (uint64_t i = 0; i < 10000; i++) {
		assert_int_equal(flows_of(&a, i), flows_of(&b, i));
		n_same += flows_of(&a, i) == flows_of(&c, i);
	}
	assert_true(n_same < 500);
	flows_free(&a);
	flows_free(&b);
	flows_free(&c);
}

static void keeps_its_table_small_for_any_number_of_flows(void **state)
{
	for (uint32_t n = 1; n <= GEN_MAX_FLOWS; n *= 2) {
		struct flows flows = make(GEN_ZIPF, n, 1, 1);
		assert_true(flows.n_bins >= 1 && flows.n_bins <= 16384);
		flows_free(&flows);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_each_flow_with_the_same_chance),
		cmocka_unit_test(takes_flows_by_the_law_of_zipf),
		cmocka_unit_test(tells_one_flow_as_it_tells_many),
		cmocka_unit_test(takes_flows_in_turn_up_to_the_highest_number),
		cmocka_unit_test(a_seed_makes_an_order_and_another_makes_another),
		cmocka_unit_test(keeps_its_table_small_for_any_number_of_flows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
