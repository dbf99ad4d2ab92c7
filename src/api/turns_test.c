// Long turns of the control loop, as a client sees them.
#include "api/fixture.h"

#include "base/bits.h"
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <time.h>

enum { MS = 1000000 };

static int make_ctx(void **state)
{
	return fixture_open("ports:\n  - {name: left, device: x}\n");
}

static bool stands; // the clock by which turns are long, so that only note() makes them so

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	if (!stands || clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, now);
	*now = (struct timespec){.tv_sec = 1000000};
	return 0;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// A turn that began so long ago and did nothing since the one before.
static void note(uint64_t ns)
{
	api_note_turn(&ctx, clock_now_ns() - ns);
}

static size_t n_long(const char *params)
{
	json_t *turns = call("turns", params);
	const size_t n = json_array_size(json_object_get(turns, "long"));

	json_decref(turns);
	return n;
}

static double of_last(const char *key)
{
	json_t *turns = call("turns", "{}");
	const json_t *list = json_object_get(turns, "long");
	const json_t *last = json_array_get(list, json_array_size(list) - 1);
	const double value = json_number_value(json_object_get(last, key));

	json_decref(turns);
	return value;
}

static void only_long_turns_are_kept(void **state)
{
	stands = true;
	note(0);
	note(5 * MS - 1);
	assert_int_equal(n_long("{}"), 0);
	note(5 * MS);
	note(70 * MS);
	assert_int_equal(n_long("{}"), 2);
	assert_int_equal(n_long("{\"min_ms\": 69.5}"), 1);
	assert_true(of_last("ms") == 70);
	assert_true(of_last("at_ns") == clock_now_ns());
	stands = false;
	json_t *turns = call("turns", "{}");
	assert_int_equal(json_integer_value(json_object_get(turns, "turns")), 4);
	assert_int_equal(json_integer_value(json_object_get(turns, "forgotten")), 0);
	json_decref(turns);
}

static void time_without_a_core_is_told_apart(void **state)
{
	note(0);
	const uint64_t start_ns = cpu_ns();
	note(10000ull * MS);
	const double idle_ms = of_last("cpu_ms");
	while (cpu_ns() - start_ns < 20 * MS)
		;
	note(10000ull * MS);
	assert_true(idle_ms < 10000);
	assert_true(idle_ms + of_last("cpu_ms") >= 20);
	json_t *turns = call("turns", "{}");
	const json_t *most = json_object_get(turns, "most_cpu");
	assert_true(json_number_value(json_object_get(most, "cpu_ms")) >= 20 - idle_ms);
	json_decref(turns);
}

static void the_latest_ones_are_kept(void **state)
{
	for (unsigned i = 0; i < API_TURNS + 44; i++)
		note((i + 10ull) * MS);
	json_t *turns = call("turns", "{}");
	const json_t *list = json_object_get(turns, "long");

	assert_int_equal(json_array_size(list), API_TURNS);
	assert_int_equal(json_integer_value(json_object_get(turns, "forgotten")), 44);
	assert_true(json_number_value(json_object_get(json_array_get(list, 0), "ms")) >= 54);
	json_decref(turns);
	assert_true(of_last("ms") >= API_TURNS + 53);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_long_turns_are_kept, make_ctx, fixture_close),
		cmocka_unit_test_setup_teardown(time_without_a_core_is_told_apart, make_ctx,
			fixture_close),
		cmocka_unit_test_setup_teardown(the_latest_ones_are_kept, make_ctx, fixture_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
