// Programs that do not exit by themselves: because a thread is blocked, never returns, or does not
// get the core.
#include "base/deadline.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { LIMIT_S = 1, STARVED_S = 4 };
static const char WORDS[] = "a worker hangs\n";

static bool stop, is_starved; // atomic
static pid_t tid;             // of the worker, once it runs; atomic

// Runs `hang` in a child whose stderr it reads into `words`; returns the child's exit status.
static int run_child(void (*hang)(void), char *words, size_t size)
{
	int pipes[2], status;

	memset(words, 0, size);
	assert_int_equal(pipe(pipes), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child) {
		dup2(pipes[1], STDERR_FILENO);
		hang();
		_exit(EXIT_SUCCESS);
	}
	close(pipes[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_true(read(pipes[0], words, size - 1) >= 0);
	close(pipes[0]);
	return WEXITSTATUS(status);
}

static void be_blocked(void)
{
	deadline_start(LIMIT_S, WORDS);
	for (;;)
		pause();
}

static void *work(void *arg)
{
	__atomic_store_n(&tid, gettid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		;
	return NULL;
}

static pthread_t start_worker(void)
{
	pthread_t worker;

	assert_int_equal(pthread_create(&worker, NULL, work, NULL), 0);
	while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
		usleep(1000);
	return worker;
}

static void wait_for_a_busy_worker(void)
{
	pthread_t worker = start_worker();

	deadline_start(LIMIT_S, WORDS);
	deadline_watch(tid);
	pthread_join(worker, NULL);
}

static void *take_core(void *arg)
{
	while (__atomic_load_n(&is_starved, __ATOMIC_ACQUIRE))
		;
	return NULL;
}

// Both threads are on one core, and the worker gets what the other leaves, some thousandths.
static void wait_for_a_starved_worker(void)
{
	static const struct sched_param none = {0};
	pthread_t worker, other;
	cpu_set_t core;

	CPU_ZERO(&core);
	CPU_SET(sched_getcpu(), &core);
	assert_int_equal(sched_setaffinity(0, sizeof(core), &core), 0);
	worker = start_worker();
	is_starved = true;
	assert_int_equal(pthread_create(&other, NULL, take_core, NULL), 0);
	assert_int_equal(pthread_setschedparam(worker, SCHED_IDLE, &none), 0);
	deadline_start(LIMIT_S, WORDS);
	deadline_watch(tid);
	sleep(STARVED_S);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	__atomic_store_n(&is_starved, false, __ATOMIC_RELEASE);
	pthread_join(worker, NULL);
	pthread_join(other, NULL);
}

static void a_program_that_is_blocked_says_so_and_exits_with_a_status(void **state)
{
	char words[256];

	assert_int_equal(run_child(be_blocked, words, sizeof(words)), EXIT_FAILURE);
	assert_string_equal(words, WORDS);
}

static void a_worker_that_never_returns_ends_the_program(void **state)
{
	char words[256];

	assert_int_equal(run_child(wait_for_a_busy_worker, words, sizeof(words)), EXIT_FAILURE);
	assert_string_equal(words, WORDS);
}

static void a_worker_that_does_not_get_the_core_is_waited_for(void **state)
{
	char words[256];

	assert_int_equal(run_child(wait_for_a_starved_worker, words, sizeof(words)), EXIT_SUCCESS);
	assert_string_equal(words, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_is_blocked_says_so_and_exits_with_a_status),
		cmocka_unit_test(a_worker_that_never_returns_ends_the_program),
		cmocka_unit_test(a_worker_that_does_not_get_the_core_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
