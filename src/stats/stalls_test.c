// The log of a worker's stalls, also while the worker writes to it; also run under ThreadSanitizer.
#include "stats/stalls.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { N_NOTED = 2000000 };

static struct stalls stalls;
static struct stall known[STALLS_KNOWN];

static int forget(void **state)
{
	memset(&stalls, 0, sizeof(stalls));
	return 0;
}

static void note(uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		stalls_record(&stalls, 1000 * i, i);
}

static void nothing_is_known_of_a_worker_that_never_stalled(void **state)
{
	uint64_t n_forgotten = 7;

	assert_int_equal(stalls_read(&stalls, known, &n_forgotten), 0);
	assert_int_equal(n_forgotten, 0);
}

static void stalls_are_told_oldest_first(void **state)
{
	uint64_t n_forgotten;

	note(1, 4);
	assert_int_equal(stalls_read(&stalls, known, &n_forgotten), 3);
	assert_int_equal(n_forgotten, 0);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(known[i].cycles, i + 1);
		assert_int_equal(known[i].end, 1000 * (i + 1));
	}
}

static void the_oldest_are_forgotten_and_counted(void **state)
{
	uint64_t n_forgotten;

	note(0, STALLS_KNOWN);
	assert_int_equal(stalls_read(&stalls, known, &n_forgotten), STALLS_KNOWN);
	assert_int_equal(n_forgotten, 0);
	note(STALLS_KNOWN, 3 * STALLS_SLOTS + 5);
	assert_int_equal(stalls_read(&stalls, known, &n_forgotten), STALLS_KNOWN);
	assert_int_equal(n_forgotten, 3 * STALLS_SLOTS + 5 - STALLS_KNOWN);
	assert_int_equal(known[0].cycles, n_forgotten);
	assert_int_equal(known[STALLS_KNOWN - 1].cycles, 3 * STALLS_SLOTS + 4);
}

static void *note_many(void *arg)
{
	note(0, N_NOTED);
	return NULL;
}

// Each stall is consistent, and stall i is returned as number i.
static void nothing_is_torn_while_the_worker_writes(void **state)
{
	uint64_t n_forgotten = 0, seen = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, note_many, NULL), 0);
	while (seen < N_NOTED) {
		unsigned n = stalls_read(&stalls, known, &n_forgotten);

		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(known[i].cycles, n_forgotten + i);
			assert_int_equal(known[i].end, 1000 * (n_forgotten + i));
		}
		assert_true(n_forgotten + n >= seen);
		seen = n_forgotten + n;
	}
	pthread_join(thread, NULL);
	assert_int_equal(n_forgotten, N_NOTED - STALLS_KNOWN);
}

#define TEST(name) cmocka_unit_test_setup(name, forget)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_known_of_a_worker_that_never_stalled),
		TEST(stalls_are_told_oldest_first),
		TEST(the_oldest_are_forgotten_and_counted),
		TEST(nothing_is_torn_while_the_worker_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
