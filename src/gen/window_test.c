// Compares the window with a simple model that records every number.
#include "gen/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NUMBERS = 1 << 23, TURNS = 60000 };

static uint64_t seed;

static uint64_t dice(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) % below;
}

// Records every number.
struct model {
	uint32_t n_flows;
	uint64_t next, n_new;
	bool seen[NUMBERS];
	uint64_t flow_next[GEN_FLOWS_IN_ORDER];
};

static struct model model;
static struct window *window;
static struct flows flows; // for distributions that are not sequential

static void begin(uint32_t n_flows)
{
	free(window);
	window = aligned_alloc(64, round_up(window_bytes(n_flows), 64));
	memset(window, 0, window_bytes(n_flows));
	window_begin(window, n_flows);
	flows_free(&flows);
	memset(&model, 0, sizeof(model));
	model.n_flows = n_flows <= GEN_FLOWS_IN_ORDER ? n_flows : 1;
}

static void begin_scattered(uint32_t n_flows)
{
	const struct gen_stream stream = {.n_flows = n_flows,
		.distribution = GEN_ZIPF,
		.exponent = 1,
		.seed = 3};
	struct error error = {""};

	begin(n_flows);
	assert_int_equal(flows_make(&flows, &stream, &error), 0);
	window->flows = &flows;
}

static enum window_verdict take_in_model(uint64_t number)
{
	uint32_t flow = flows.n ? flows_of(&flows, number) : number % model.n_flows;
	uint64_t *flow_next = &model.flow_next[flow];
	bool is_late = number < *flow_next;

	if (number + WINDOW_NUMBERS < model.next)
		return WINDOW_TOO_OLD;
	if (model.seen[number])
		return WINDOW_DUPLICATE;
	model.seen[number] = true;
	model.n_new++;
	model.next = MAX_OF(model.next, number + 1);
	*flow_next = MAX_OF(*flow_next, number + 1);
	return is_late ? WINDOW_NEW_REORDERED : WINDOW_NEW;
}

static void take_both(uint64_t number)
{
	assert_int_equal(window_take(window, number), take_in_model(number));
	assert_int_equal(window->next, model.next);
	assert_int_equal(window->missing, model.next - model.n_new);
}

// Mostly the next number, sometimes a gap, a small step back, a step of about the window's size, or
// any number.
static uint64_t any_number(void)
{
	uint64_t next = model.next, gap = 0, back;

	switch (dice(16)) {
	case 0:
		gap = dice(1ull << dice(dice(64) ? 17 : 22));
		return MIN_OF(next + gap, NUMBERS - 1);
	case 1:
	case 2:
		back = 1 + dice(1 + dice(200));
		break;
	case 3:
		back = WINDOW_NUMBERS - 2 + dice(5);
		break;
	case 4:
		back = dice(next + 1);
		break;
	default:
		return MIN_OF(next, NUMBERS - 1);
	}
	return back <= next ? MIN_OF(next - back, NUMBERS - 1) : 0;
}

static void judges_like_a_model_that_remembers_everything(void **state)
{
	static const uint32_t flows[] = {1, 2, 3, 7, 64, 1000, 4093, 65535, 65536, 65537, 1 << 24};

	for (unsigned i = 0; i < 4 * ARRAY_LEN(flows); i++) {
		seed = 88172645463325252ull + i;
		begin(flows[i % ARRAY_LEN(flows)]);
		for (unsigned turn = 0; turn < TURNS && model.next < NUMBERS - 1; turn++)
			take_both(any_number());
	}
}

// The next number after a complete burst in order, and before it, in both code paths.
static void judges_flows_that_come_in_no_turn(void **state)
{
	static const uint32_t n_flows[] = {2, 3, 1000, 65536};

	for (unsigned i = 0; i < ARRAY_LEN(n_flows); i++) {
		seed = 88172645463325252ull + i;
		begin_scattered(n_flows[i]);
		for (unsigned turn = 0; turn < TURNS && model.next < NUMBERS - 65; turn++) {
			unsigned n = 1 + dice(64);

			take_both(any_number());
			if (turn % 4)
				continue;
			window_take_next(window, n);
			for (uint64_t end = model.next + n; model.next < end;)
				take_in_model(model.next);
		}
	}
}

static void knows_a_duplicate_2_to_the_20_numbers_back_and_no_further(void **state)
{
	begin(1);
	assert_int_equal(window_take(window, 0), WINDOW_NEW);
	assert_int_equal(window_take(window, 1), WINDOW_NEW);
	assert_int_equal(window_take(window, WINDOW_NUMBERS), WINDOW_NEW);
	assert_int_equal(window_take(window, 0), WINDOW_TOO_OLD);
	assert_int_equal(window_take(window, 1), WINDOW_DUPLICATE);
	assert_int_equal(window_take(window, 2), WINDOW_NEW_REORDERED);
	assert_int_equal(window->missing, WINDOW_NUMBERS - 3);
}

static void the_flow_of_a_number_is_its_remainder(void **state)
{
	const uint64_t top = (1ull << 47) - 1;

	seed = 1;
	for (uint32_t n = 2; n <= GEN_FLOWS_IN_ORDER; n += 1 + (n > 2000) * 37) {
		struct window w = {0};
		window_begin(&w, n);
		for (int i = 0; i < 20; i++) {
			uint64_t number = dice(top + 1) >> dice(47);
			assert_int_equal(window_flow(&w, number), number % n);
			number = number / n * n;
			assert_int_equal(window_flow(&w, number), 0);
			assert_int_equal(window_flow(&w, number ? number - 1 : 0),
				number ? n - 1 : 0);
		}
		assert_int_equal(window_flow(&w, top), top % n);
	}
}

static void a_wild_number_moves_the_window_and_breaks_nothing(void **state)
{
	const uint64_t top = (1ull << 40) - 1;

	begin(1000);
	assert_int_equal(window_take(window, 5), WINDOW_NEW);
	assert_int_equal(window_take(window, top), WINDOW_NEW);
	assert_int_equal(window_take(window, top), WINDOW_DUPLICATE);
	assert_int_equal(window_take(window, 6), WINDOW_TOO_OLD);
	assert_int_equal(window_take(window, top - 1000), WINDOW_NEW_REORDERED);
	assert_int_equal(window_take(window, top - 999), WINDOW_NEW);
	assert_int_equal(window->next, top + 1);
	assert_int_equal(window->missing, top + 1 - 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judges_like_a_model_that_remembers_everything),
		cmocka_unit_test(judges_flows_that_come_in_no_turn),
		cmocka_unit_test(knows_a_duplicate_2_to_the_20_numbers_back_and_no_further),
		cmocka_unit_test(the_flow_of_a_number_is_its_remainder),
		cmocka_unit_test(a_wild_number_moves_the_window_and_breaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
