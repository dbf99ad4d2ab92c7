// The flows of a stream: distinct, repeated in each round, all values equally frequent.
#include "gen/fields.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct row {
	struct gen_field fields[GEN_N_FIELDS]; // src_mac, dst_mac, src_ip, dst_ip, ports, then
	                                       // those of an encapsulation; count 0: one value
	uint32_t n_flows;
};

#define COUNTS(n)                                                                                  \
	{                                                                                          \
		(n), false                                                                         \
	}
#define RANDOM(n)                                                                                  \
	{                                                                                          \
		(n), true                                                                          \
	}
#define FIXED COUNTS(1)

// All possible flows of the fields, unless noted otherwise.
static const struct row rows[] = {
	{{FIXED, FIXED, FIXED, FIXED, FIXED, FIXED}, 1},
	{{FIXED, FIXED, FIXED, COUNTS(1000), FIXED, FIXED}, 1000},
	{{FIXED, FIXED, FIXED, RANDOM(1000), FIXED, FIXED}, 1000},
	{{FIXED, FIXED, FIXED, RANDOM(2), FIXED, FIXED}, 2},
	{{FIXED, FIXED, COUNTS(2), COUNTS(3), COUNTS(5), COUNTS(7)}, 210},
	{{COUNTS(2), COUNTS(2), COUNTS(2), COUNTS(2), COUNTS(2), COUNTS(2)}, 64},
	{{RANDOM(2), RANDOM(2), RANDOM(2), RANDOM(2), RANDOM(2), RANDOM(2)}, 64},
	{{RANDOM(2), RANDOM(3), RANDOM(5), RANDOM(7), RANDOM(11), RANDOM(13)}, 30030},
	{{FIXED, FIXED, COUNTS(4), RANDOM(4), FIXED, FIXED}, 16},
	{{FIXED, FIXED, COUNTS(4), RANDOM(6), RANDOM(10), COUNTS(15)}, 3600},
	{{FIXED, FIXED, RANDOM(4), COUNTS(6), COUNTS(1), FIXED}, 24},
	{{FIXED, FIXED, COUNTS(4), RANDOM(6), FIXED, FIXED}, 17}, // not all flows
	{{FIXED, FIXED, FIXED, COUNTS(4), FIXED, FIXED, COUNTS(1000)}, 4000},
	{{FIXED, FIXED, RANDOM(2), RANDOM(3), FIXED, FIXED, RANDOM(5), RANDOM(7), RANDOM(2)}, 420},
	{{RANDOM(2), RANDOM(2), RANDOM(3), RANDOM(3), RANDOM(2), RANDOM(2), RANDOM(3), RANDOM(3),
		 RANDOM(5)},
		6480},
	{{FIXED, FIXED, RANDOM(256), RANDOM(256), FIXED, COUNTS(3)}, 196608},
	{{FIXED, FIXED, RANDOM(1000), COUNTS(1000), FIXED, FIXED}, 1000000},
	{{FIXED, FIXED, RANDOM(1000), RANDOM(1000), FIXED, FIXED}, 1000000},
	{{FIXED, FIXED, RANDOM(4000000000), RANDOM(4000000000), FIXED, COUNTS(60000)}, 100000},
	{{FIXED, FIXED, COUNTS(4096), RANDOM(64), FIXED, COUNTS(64)}, GEN_MAX_FLOWS},
};

static struct gen_stream stream_of(const struct row *row)
{
	struct gen_stream stream = {.recipe = wire_recipe(4), .n_flows = row->n_flows};

	memcpy(stream.fields, row->fields, sizeof(row->fields));
	memset(&stream.recipe.src.bytes, 0, 4);
	memset(&stream.recipe.dst.bytes, 0, 4);
	stream.recipe.src_port = stream.recipe.dst_port = 0;
	memset(&stream.recipe.src_mac.bytes, 0, 6);
	memset(&stream.recipe.dst_mac.bytes, 0, 6);
	return stream;
}

// The first values are 0 here, so the values of a flow can be combined into one number. It is
// unique in rows that use all flows, and a hash in others.
static uint64_t number_of(const struct row *row, const struct frame_values *values, unsigned i)
{
	uint64_t number = 0;

	for (unsigned f = 0; f < GEN_N_FIELDS; f++) {
		uint64_t count = MAX_OF(row->fields[f].count, 1u);

		assert_true(values->field[f][i] < count);
		number = number * count + values->field[f][i];
	}
	return number;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t *flows_of(const struct row *row, unsigned n_rounds, unsigned step)
{
	struct gen_stream stream = stream_of(row);
	uint64_t n = (uint64_t)row->n_flows * n_rounds;
	uint64_t *flows = malloc(n * sizeof(*flows));
	static struct frame_values values;
	struct fields fields;

	assert_non_null(flows);
	fields_make(&fields, &stream);
	fields_fill_fixed(&stream, &values);
	for (uint64_t at = 0; at < n;) {
		unsigned burst = MIN_OF(step ? step : 1 + at % GEN_MAX_BURST, n - at);

		fields_fill(&fields, &values, burst);
		for (unsigned i = 0; i < burst; i++)
			flows[at++] = number_of(row, &values, i);
	}
	return flows;
}

static void makes_as_many_distinct_flows_as_were_asked_for(void **state)
{
	for (unsigned r = 0; r < ARRAY_LEN(rows); r++) {
		uint64_t *flows = flows_of(&rows[r], 1, GEN_MAX_BURST);

		qsort(flows, rows[r].n_flows, sizeof(*flows), compare);
		for (uint32_t i = 1; i < rows[r].n_flows; i++)
			assert_true(flows[i] != flows[i - 1]);
		free(flows);
	}
}

static void makes_the_same_flows_in_each_round_and_in_bursts_of_any_length(void **state)
{
	for (unsigned r = 0; r < ARRAY_LEN(rows) - 1; r++) {
		uint32_t n = rows[r].n_flows;
		uint64_t *one = flows_of(&rows[r], 1, 1), *three = flows_of(&rows[r], 3, 0);

		for (unsigned round = 0; round < 3; round++)
			assert_memory_equal(one, three + (uint64_t)n * round, n * sizeof(*one));
		free(one);
		free(three);
	}
}

static void goes_to_any_flow_as_if_it_had_come_there_by_steps(void **state)
{
	for (unsigned r = 0; r < ARRAY_LEN(rows) - 1; r++) {
		struct gen_stream stream = stream_of(&rows[r]);
		uint64_t *flows = flows_of(&rows[r], 1, GEN_MAX_BURST);
		static struct frame_values values;
		struct fields fields;

		fields_make(&fields, &stream);
		fields_fill_fixed(&stream, &values);
		for (uint32_t i = 0; i < 1000; i++) {
			uint32_t flow = i * 2654435761u % rows[r].n_flows;

			fields_seek(&fields, flow);
			for (unsigned k = 0; k < 3; k++, flow = (flow + 1) % rows[r].n_flows) {
				fields_fill(&fields, &values, 1);
				assert_int_equal(number_of(&rows[r], &values, 0), flows[flow]);
			}
		}
		free(flows);
	}
}

static void makes_any_flows_at_once_as_it_makes_them_one_by_one(void **state)
{
	for (unsigned r = 0; r < ARRAY_LEN(rows); r++) {
		struct gen_stream stream = stream_of(&rows[r]);
		uint64_t *flows = flows_of(&rows[r], 1, GEN_MAX_BURST);
		uint32_t flow[GEN_MAX_BURST];
		static struct frame_values values;
		struct fields fields;

		fields_make(&fields, &stream);
		fields_fill_fixed(&stream, &values);
		for (uint32_t i = 0; i < 1000; i++) {
			unsigned n = 1 + i % GEN_MAX_BURST;

			for (unsigned k = 0; k < n; k++)
				flow[k] = (i * 64 + k) * 2654435761u % rows[r].n_flows;
			flow[n - 1] = rows[r].n_flows - 1;
			fields_fill_flows(&fields, &values, flow, n);
			for (unsigned k = 0; k < n; k++)
				assert_int_equal(number_of(&rows[r], &values, k), flows[flow[k]]);
		}
		free(flows);
	}
}

static void counts_the_first_field_fastest(void **state)
{
	struct gen_stream stream = stream_of(&rows[4]);
	static struct frame_values values;
	struct fields fields;

	stream.recipe.src.bytes[3] = 9;
	stream.recipe.src_port = 700;
	fields_make(&fields, &stream);
	fields_fill_fixed(&stream, &values);
	fields_fill(&fields, &values, 64);
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(values.field[GEN_SRC_IP][i], 9 + i % 2);
		assert_int_equal(values.field[GEN_DST_IP][i], i / 2 % 3);
		assert_int_equal(values.field[GEN_SRC_PORT][i], 700 + i / 6 % 5);
		assert_int_equal(values.field[GEN_DST_PORT][i], i / 30 % 7);
	}
}

static void scatters_random_values_and_takes_each_equally_often(void **state)
{
	struct row row = {{FIXED, FIXED, FIXED, RANDOM(100), COUNTS(3), RANDOM(64)}, 19200};
	struct gen_stream stream = stream_of(&row);
	unsigned n_ip[100] = {0}, n_port[64] = {0}, n_neighbours = 0;
	static struct frame_values values;
	struct fields fields;
	uint32_t last = 0;

	fields_make(&fields, &stream);
	fields_fill_fixed(&stream, &values);
	for (unsigned i = 0; i < row.n_flows; i++) {
		fields_fill(&fields, &values, 1);
		n_ip[values.field[GEN_DST_IP][0]]++;
		n_port[values.field[GEN_DST_PORT][0]]++;
		n_neighbours += values.field[GEN_DST_IP][0] - last + 1 <= 2;
		last = values.field[GEN_DST_IP][0];
	}
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(n_ip[i], row.n_flows / 100);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(n_port[i], row.n_flows / 64);
	assert_true(n_neighbours < row.n_flows / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makes_as_many_distinct_flows_as_were_asked_for),
		cmocka_unit_test(makes_the_same_flows_in_each_round_and_in_bursts_of_any_length),
		cmocka_unit_test(goes_to_any_flow_as_if_it_had_come_there_by_steps),
		cmocka_unit_test(makes_any_flows_at_once_as_it_makes_them_one_by_one),
		cmocka_unit_test(counts_the_first_field_fastest),
		cmocka_unit_test(scatters_random_values_and_takes_each_equally_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
