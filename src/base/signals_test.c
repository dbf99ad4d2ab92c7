// Pending signals are kept until they are read.
#include "base/signals.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static void hands_out_each_signal_once_and_ends_nobody(void **state)
{
	struct error error = {""};

	signals_block(SIGHUP);
	int signals = signals_open(&error);
	assert_true(signals >= 0);
	assert_int_equal(signals_next(signals), 0);
	raise(SIGHUP);
	raise(SIGTERM);
	struct pollfd wait = {signals, POLLIN, 0};
	assert_int_equal(poll(&wait, 1, 1000), 1);
	int first = signals_next(signals), second = signals_next(signals);
	assert_int_equal(first + second, SIGHUP + SIGTERM);
	assert_true(first == SIGHUP || first == SIGTERM);
	assert_int_equal(signals_next(signals), 0);
	close(signals);
}

static void a_reader_that_went_away_is_no_end(void **state)
{
	int pipes[2], signals = signals_open(NULL);

	assert_true(signals >= 0);
	assert_int_equal(pipe(pipes), 0);
	close(pipes[0]);
	assert_int_equal(write(pipes[1], "x", 1), -1);
	close(pipes[1]);
	close(signals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hands_out_each_signal_once_and_ends_nobody),
		cmocka_unit_test(a_reader_that_went_away_is_no_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
