// Parsing and printing numbers with units.
#include "base/quantity.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

static void reads_a_number_and_leaves_the_rest(void **state)
{
	static const struct {
		const char *text;
		double value;
		const char *rest;
	} numbers[] = {
		{"1", 1, ""},
		{" 1.5 Mpps", 1.5, "Mpps"},
		{"1.5Mpps", 1.5, "Mpps"},
		{".5 %", .5, "%"},
		{"2e3 x", 2000, "x"},
		{"2exx", 2, "exx"},
		{"1,5", 1, ",5"},
	};

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		const char *rest;
		double value;

		assert_true(quantity_number(numbers[i].text, &value, &rest));
		assert_true(fabs(value - numbers[i].value) < 1e-12);
		assert_string_equal(rest, numbers[i].rest);
	}
}

static void takes_nothing_else_for_a_number(void **state)
{
	static const char *const texts[] = {"", " ", "-1", "+1", "nan", "inf", "0x10", "0X1",
		"1e999", ".", "e5", "Mpps"};
	const char *rest;
	double value;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (quantity_number(texts[i], &value, &rest))
			fail_msg("\"%s\" was read as %g", texts[i], value);
}

static void multiplies_by_the_prefix_of_the_unit(void **state)
{
	static const struct {
		const char *text, *unit, *rest;
		double factor; // 0: another unit
	} units[] = {
		{"pps", "pps", "", 1},
		{"kpps", "pps", "", 1e3},
		{"Mpps  x", "pps", "x", 1e6},
		{"Gbit/s l2", "bit/s", "l2", 1e9},
		{"Tbit/s", "bit/s", "", 1e12},
		{"mpps", "pps", "mpps", 0},
		{"Kpps", "pps", "Kpps", 0},
		{"Mbit/s", "pps", "Mbit/s", 0},
		{"", "pps", "", 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		const char *text = units[i].text;
		double value = 3;

		assert_int_equal(quantity_unit(&text, units[i].unit, &value), units[i].factor > 0);
		assert_string_equal(text, units[i].rest);
		assert_true(value == (units[i].factor > 0 ? 3 * units[i].factor : 3));
	}
}

static void prints_with_the_largest_prefix_that_leaves_one(void **state)
{
	char text[QUANTITY_TEXT];

	assert_string_equal(quantity_print(1e11, "bit/s", text), "100 Gbit/s");
	assert_string_equal(quantity_print(14880952, "pps", text), "14.881 Mpps");
	assert_string_equal(quantity_print(1000, "pps", text), "1 kpps");
	assert_string_equal(quantity_print(999, "pps", text), "999 pps");
	assert_string_equal(quantity_print(0.25, "%", text), "0.25 %");
	assert_string_equal(quantity_print(2e12, "bit/s", text), "2 Tbit/s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_number_and_leaves_the_rest),
		cmocka_unit_test(takes_nothing_else_for_a_number),
		cmocka_unit_test(multiplies_by_the_prefix_of_the_unit),
		cmocka_unit_test(prints_with_the_largest_prefix_that_leaves_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
