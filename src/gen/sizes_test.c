// The order of frame sizes in a mix.
#include "gen/sizes.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct gen_stream imix = {.n_sizes = 5,
	.sizes = {{64, 450}, {128, 235}, {256, 150}, {512, 110}, {1024, 55}}};
static const struct gen_stream classic = {.n_sizes = 3, .sizes = {{64, 7}, {570, 4}, {1518, 1}}};
static const struct gen_stream large = {.n_sizes = 3, .sizes = {{64, 1000}, {570, 999}, {71, 1}}};
static const struct gen_stream single = {.n_sizes = 1, .sizes = {{64, 1000}}};
static const struct gen_stream *const mixes[] = {&imix, &classic, &large, &single};

static unsigned total_of(const struct gen_stream *stream)
{
	unsigned total = 0;

	for (unsigned i = 0; i < stream->n_sizes; i++)
		total += stream->sizes[i].weight;
	return total;
}

static void counts_each_size_by_its_weight_and_never_a_round_apart(void **state)
{
	for (unsigned m = 0; m < ARRAY_LEN(mixes); m++) {
		const struct gen_stream *mix = mixes[m];
		const double total = total_of(mix);
		double seen[GEN_MAX_SIZES] = {0};
		struct sizes sizes;

		assert_int_equal(sizes_make(&sizes, mix), 0);
		for (unsigned n = 1; n <= 2 * total; n++) {
			seen[*sizes_take(&sizes, 1)]++;
			for (unsigned i = 0; i < mix->n_sizes; i++) {
				double ahead = seen[i] - n * mix->sizes[i].weight / total;

				assert_true(ahead > -2 && ahead < 2);
			}
		}
		for (unsigned i = 0; i < mix->n_sizes; i++)
			assert_true(seen[i] == 2 * mix->sizes[i].weight);
		sizes_free(&sizes);
	}
}

static void gives_the_same_order_in_bursts_of_any_length_and_after_seeking(void **state)
{
	for (unsigned m = 0; m < ARRAY_LEN(mixes); m++) {
		struct sizes one, many;
		uint64_t sequence = 0;

		assert_int_equal(sizes_make(&one, mixes[m]), 0);
		assert_int_equal(sizes_make(&many, mixes[m]), 0);
		for (unsigned n = 1; sequence < 10000; n = n % GEN_MAX_BURST + 1) {
			const uint8_t *taken = sizes_take(&many, n);

			for (unsigned i = 0; i < n; i++)
				assert_int_equal(taken[i], *sizes_take(&one, 1));
			sequence += n;
			if (n % 7 == 0)
				sizes_seek(&many, sequence);
		}
		sizes_free(&one);
		sizes_free(&many);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_each_size_by_its_weight_and_never_a_round_apart),
		cmocka_unit_test(gives_the_same_order_in_bursts_of_any_length_and_after_seeking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
