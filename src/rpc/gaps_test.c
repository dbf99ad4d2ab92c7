// Result of the method gaps.
#include "rpc/rpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

// A TSC of 2 GHz that read 1000 at 5,000,000 ns.
static const struct clock_pair born = {1000, 5000000}, now = {2001000, 6000000};
static struct stalls stalls[2];

static int forget(void **state)
{
	memset(stalls, 0, sizeof(stalls));
	return 0;
}

static json_t *ask(const char *params_text, struct error *error)
{
	const struct rpc_worker workers[] = {{0, 4, &stalls[0]}, {1, 6, &stalls[1]}};
	const struct rpc_gaps gaps = {workers, 2, born, now};
	json_t *params = json_loads(params_text, 0, NULL);
	json_t *answer = rpc_gaps_json(&gaps, params, error);

	json_decref(params);
	return answer;
}

static void expect(const char *params, const char *wanted_text)
{
	json_t *answer = ask(params, NULL), *wanted = json_loads(wanted_text, 0, NULL);

	assert_non_null(answer);
	assert_non_null(wanted);
	assert_true(json_equal(answer, wanted));
	json_decref(answer);
	json_decref(wanted);
}

static void stalls_of_all_workers_are_told_by_one_clock_oldest_first(void **state)
{
	stalls_record(&stalls[0], 3000, 50000);
	stalls_record(&stalls[0], 9000, 90000);
	stalls_record(&stalls[1], 5000, 41000);
	expect("{}", "{\"gaps\": ["
		     "{\"worker\": 0, \"core\": 4, \"at_ns\": 5001000, \"us\": 25.0},"
		     "{\"worker\": 1, \"core\": 6, \"at_ns\": 5002000, \"us\": 20.5},"
		     "{\"worker\": 0, \"core\": 4, \"at_ns\": 5004000, \"us\": 45.0}],"
		     "\"forgotten\": 0, \"now_ns\": 6000000}");
}

static void shorter_stalls_than_asked_for_are_left_out(void **state)
{
	stalls_record(&stalls[0], 3000, 50000);
	stalls_record(&stalls[1], 5000, 41000);
	expect("{\"min_us\": 21}",
		"{\"gaps\": [{\"worker\": 0, \"core\": 4, \"at_ns\": 5001000, \"us\": 25.0}],"
		"\"forgotten\": 0, \"now_ns\": 6000000}");
}

static void forgotten_ones_of_all_workers_are_counted(void **state)
{
	for (unsigned i = 0; i < STALLS_KNOWN + 3; i++) {
		stalls_record(&stalls[0], i, 50000);
		stalls_record(&stalls[1], i, 50000);
	}
	json_t *answer = ask("{}", NULL);
	assert_int_equal(json_array_size(json_object_get(answer, "gaps")), 2 * STALLS_KNOWN);
	assert_int_equal(json_integer_value(json_object_get(answer, "forgotten")), 6);
	json_decref(answer);
}

static void refuses_what_is_no_length(void **state)
{
	struct error error = {""};

	assert_null(ask("{\"min_us\": -1}", &error));
	assert_non_null(strstr(error.text, "min_us"));
}

#define TEST(name) cmocka_unit_test_setup(name, forget)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(stalls_of_all_workers_are_told_by_one_clock_oldest_first),
		TEST(shorter_stalls_than_asked_for_are_left_out),
		TEST(forgotten_ones_of_all_workers_are_counted),
		TEST(refuses_what_is_no_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
