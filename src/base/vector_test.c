// Growing an array, with and without memory. The tests replace realloc.
#include "base/vector.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static bool is_out_of_memory;
static unsigned n_calls;

void *__real_realloc(void *memory, size_t n);
void *__wrap_realloc(void *memory, size_t n);
void *__wrap_realloc(void *memory, size_t n)
{
	n_calls++;
	return is_out_of_memory ? NULL : __real_realloc(memory, n);
}

static void keeps_elements_while_it_grows(void **state)
{
	size_t capacity = 0;
	uint32_t *number = NULL;

	for (uint32_t i = 0; i < 10000; i++) {
		assert_int_equal(vector_reserve(&number, &capacity, i + 1, sizeof(*number)), 0);
		assert_true(capacity > i);
		number[i] = i;
	}
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(number[i], i);
	free(number);
}

static void appends_a_million_elements_in_a_few_steps(void **state)
{
	size_t capacity = 0;
	uint32_t *number = NULL;

	n_calls = 0;
	for (uint32_t i = 0; i < 1000000; i++)
		assert_int_equal(vector_reserve(&number, &capacity, i + 1, sizeof(*number)), 0);
	assert_in_range(n_calls, 1, 20);
	free(number);
}

static void makes_space_for_many_elements_at_once(void **state)
{
	size_t capacity = 0;
	uint8_t *byte = NULL;

	assert_int_equal(vector_reserve(&byte, &capacity, 100000, 1), 0);
	assert_int_equal(capacity, 100000);
	byte[99999] = 1;
	assert_int_equal(vector_reserve(&byte, &capacity, 100001, 1), 0);
	assert_int_equal(capacity, 200000);
	assert_int_equal(byte[99999], 1);
	free(byte);
}

static void leaves_an_array_that_is_large_enough(void **state)
{
	size_t capacity = 0;
	uint32_t *number = NULL, *before;

	assert_int_equal(vector_reserve(&number, &capacity, 0, sizeof(*number)), 0);
	assert_null(number);
	assert_int_equal(vector_reserve(&number, &capacity, 5, sizeof(*number)), 0);
	before = number;
	n_calls = 0;
	assert_int_equal(vector_reserve(&number, &capacity, capacity, sizeof(*number)), 0);
	assert_int_equal(n_calls, 0);
	assert_ptr_equal(number, before);
	free(number);
}

static void leaves_the_array_when_there_is_no_memory(void **state)
{
	size_t capacity = 0, before;
	uint32_t *number = NULL, *at;

	assert_int_equal(vector_reserve(&number, &capacity, 1, sizeof(*number)), 0);
	number[0] = 7;
	at = number;
	before = capacity;
	is_out_of_memory = true;
	assert_int_equal(vector_reserve(&number, &capacity, before + 1, sizeof(*number)), -ENOMEM);
	is_out_of_memory = false;
	assert_ptr_equal(number, at);
	assert_int_equal(capacity, before);
	assert_int_equal(number[0], 7);
	assert_int_equal(vector_reserve(&number, &capacity, before + 1, sizeof(*number)), 0);
	assert_int_equal(number[0], 7);
	free(number);
}

static void refuses_sizes_that_overflow(void **state)
{
	size_t capacity = 0;
	uint32_t *number = NULL;

	n_calls = 0;
	assert_int_equal(vector_reserve(&number, &capacity, SIZE_MAX / 4 + 1, sizeof(*number)),
		-ENOMEM);
	assert_int_equal(vector_reserve(&number, &capacity, SIZE_MAX, sizeof(*number)), -ENOMEM);
	assert_int_equal(n_calls, 0);
	assert_null(number);
	assert_int_equal(capacity, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_elements_while_it_grows),
		cmocka_unit_test(appends_a_million_elements_in_a_few_steps),
		cmocka_unit_test(makes_space_for_many_elements_at_once),
		cmocka_unit_test(leaves_an_array_that_is_large_enough),
		cmocka_unit_test(leaves_the_array_when_there_is_no_memory),
		cmocka_unit_test(refuses_sizes_that_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
