// A program that does not exit by itself.
#include "base/deadline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void hang(int words)
{
	dup2(words, STDERR_FILENO);
	deadline_start(1, "a worker hangs\n");
	for (;;)
		pause();
}

static void a_program_that_hangs_says_so_and_leaves_with_a_status(void **state)
{
	char words[256] = "";
	int pipes[2], status;

	assert_int_equal(pipe(pipes), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child)
		hang(pipes[1]);
	close(pipes[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
	assert_true(read(pipes[0], words, sizeof(words) - 1) > 0);
	assert_string_equal(words, "a worker hangs\n");
	close(pipes[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_hangs_says_so_and_leaves_with_a_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
