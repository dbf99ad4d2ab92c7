// Several descriptors combined into one.
#include "base/wake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>
#include <poll.h>
#include <unistd.h>

static bool is_readable(int fd)
{
	struct pollfd one = {fd, POLLIN, 0};

	return poll(&one, 1, 0) == 1;
}

static void is_readable_while_one_of_them_is(void **state)
{
	struct error error;
	int a[2], b[2], wake = wake_open(&error);
	char byte = 0;

	assert_true(wake >= 0);
	assert_false(pipe(a) || pipe(b));
	assert_false(wake_add(wake, a[0], &error) || wake_add(wake, b[0], &error));
	assert_false(is_readable(wake));
	assert_int_equal(write(b[1], &byte, 1), 1);
	assert_true(is_readable(wake));
	assert_true(is_readable(wake));
	assert_int_equal(read(b[0], &byte, 1), 1);
	assert_false(is_readable(wake));
	close(wake);
}

static void a_descriptor_that_is_none_is_named(void **state)
{
	struct error error;
	int wake = wake_open(&error);

	assert_true(wake_add(wake, -1, &error) < 0);
	assert_string_equal(error.text, "cannot wait for file descriptor -1: Bad file descriptor");
	close(wake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_readable_while_one_of_them_is),
		cmocka_unit_test(a_descriptor_that_is_none_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
