// Grace periods and deferred frees with workers simulated by this thread or real ones. Tests only.
#include "rcu/rcu.h"

#include "base/clock.h"
#include "rcu/rcu_fast.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

// What was freed: how many, and the last one. Blocks are freed in the order in which they came.
struct log {
	uint32_t n;
	struct rcu_block last;
};

static void note(void *ctx, struct rcu_block block)
{
	struct log *log = ctx;

	assert_int_equal(block.first, log->n);
	log->n++;
	log->last = block;
}

static struct rcu_defer *make_queue(struct log *log)
{
	struct rcu_defer *defer = calloc(1, sizeof(*defer));

	assert_non_null(defer);
	defer->free = note;
	defer->ctx = log;
	return defer;
}

static void add(struct rcu_defer *defer, uint32_t from, uint32_t n)
{
	for (uint32_t i = from; i < from + n; i++)
		rcu_defer_add(defer, (struct rcu_block){.first = i, .n = 3, .kind = 7});
}

static void frees_nothing_before_the_workers_that_are_online_report(void **state)
{
	struct rcu *rcu = rcu_create(3, NULL);
	const struct rcu_readers *workers = rcu_readers(rcu);
	struct log log = {0};
	struct rcu_defer *defer = make_queue(&log);

	rcu_defer_attach(defer, rcu);
	rcu_reader_online(workers, 0);
	rcu_reader_online(workers, 2);
	add(defer, 0, 100);
	rcu_poll(rcu);
	rcu_reader_report(workers, 0);
	rcu_poll(rcu);
	assert_int_equal(log.n, 0);
	assert_int_equal(rcu_defer_pending(defer), 100);
	rcu_reader_report(workers, 2);
	rcu_poll(rcu);
	assert_int_equal(log.n, 100);
	assert_int_equal(log.last.n, 3);
	assert_int_equal(log.last.kind, 7);
	assert_int_equal(rcu_defer_pending(defer), 0);
	add(defer, 100, 1);
	rcu_reader_report(workers, 2);
	rcu_poll(rcu); // starts a grace period; the report came before
	assert_int_equal(log.n, 100);
	rcu_reader_offline(workers, 0);
	rcu_reader_offline(workers, 2);
	rcu_poll(rcu);
	assert_int_equal(log.n, 101);
	rcu_defer_detach(defer);
	free(defer);
	rcu_destroy(rcu);
}

static void frees_at_once_while_no_worker_reads(void **state)
{
	struct rcu *rcu = rcu_create(1, NULL);
	struct log log = {0};
	struct rcu_defer *defer = make_queue(&log);

	add(defer, 0, 5);
	assert_int_equal(log.n, 5);
	rcu_defer_attach(defer, rcu); // its worker is offline
	add(defer, 5, 5);
	assert_int_equal(log.n, 5);
	rcu_defer_detach(defer);
	assert_int_equal(log.n, 10);
	add(defer, 10, 5);
	assert_int_equal(log.n, 15);
	free(defer);
	rcu_destroy(rcu);
}

static void polls_all_queues_that_are_attached(void **state)
{
	struct rcu *rcu = rcu_create(1, NULL);
	struct rcu_defer *defer[3];
	struct log log[3] = {{0}};

	for (unsigned i = 0; i < 3; i++) {
		defer[i] = make_queue(&log[i]);
		rcu_defer_attach(defer[i], rcu);
		add(defer[i], 0, 10 + i);
	}
	rcu_defer_detach(defer[1]);
	assert_int_equal(log[0].n, 0);
	assert_int_equal(log[1].n, 11);
	rcu_poll(rcu);
	assert_int_equal(log[0].n, 10);
	assert_int_equal(log[2].n, 12);
	rcu_defer_detach(defer[2]);
	rcu_defer_detach(defer[0]);
	for (unsigned i = 0; i < 3; i++)
		free(defer[i]);
	rcu_destroy(rcu);
}

static void frees_only_so_many_blocks_at_a_time(void **state)
{
	struct rcu *rcu = rcu_create(1, NULL);
	struct log log = {0};
	struct rcu_defer *defer = make_queue(&log);

	defer->most = 10;
	rcu_defer_attach(defer, rcu);
	rcu_reader_online(rcu_readers(rcu), 0);
	add(defer, 0, 8);
	rcu_defer_close(defer, true);
	add(defer, 8, 17);
	rcu_defer_close(defer, true);
	assert_false(rcu_defer_poll(defer)); // the worker has not passed
	assert_int_equal(log.n, 0);
	rcu_reader_report(rcu_readers(rcu), 0);
	assert_true(rcu_defer_poll(defer));
	assert_int_equal(log.n, 10);
	rcu_defer_free_some(defer);
	assert_int_equal(log.n, 20);
	assert_false(rcu_defer_poll(defer));
	assert_int_equal(log.n, 25);
	rcu_reader_offline(rcu_readers(rcu), 0);
	add(defer, 25, RCU_DEFER_MAX + 1); // the last one has no space
	assert_in_range(log.n, 26, 25 + 10 + 10);
	rcu_defer_detach(defer);
	assert_int_equal(log.n, 25 + RCU_DEFER_MAX + 1);
	free(defer);
	rcu_destroy(rcu);
}

static void names_a_worker_that_is_silent_for_a_second(void **state)
{
	struct rcu *rcu = rcu_create(3, NULL);
	const struct rcu_readers *workers = rcu_readers(rcu);
	uint64_t start_ns = clock_now_ns();

	rcu_reader_online(workers, 1);
	rcu_reader_online(workers, 2);
	while (rcu_poll(rcu) < 0) {
		rcu_reader_report(workers, 1);
		assert_true(clock_now_ns() - start_ns < 60000000000);
	}
	assert_true(clock_now_ns() - start_ns >= 1000000000);
	assert_int_equal(rcu_poll(rcu), 2);
	rcu_reader_report(workers, 2);
	assert_int_equal(rcu_poll(rcu), -1);
	rcu_reader_offline(workers, 1);
	rcu_reader_offline(workers, 2);
	rcu_destroy(rcu);
}

static void refuses_a_rcu_for_too_many_workers(void **state)
{
	struct error error;

	assert_null(rcu_create(0, &error));
	assert_null(rcu_create(129, &error));
	assert_string_equal(error.text, "129 workers: expected 1 to 128");
}

struct sleeper {
	const struct rcu_readers *readers;
	int stop;
};

static void *report_now_and_then(void *arg)
{
	struct sleeper *sleeper = arg;

	while (!__atomic_load_n(&sleeper->stop, __ATOMIC_RELAXED)) {
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		rcu_reader_report(sleeper->readers, 0);
	}
	rcu_reader_offline(sleeper->readers, 0);
	return NULL;
}

static void waits_for_a_late_worker_when_too_many_are_pending(void **state)
{
	struct rcu *rcu = rcu_create(1, NULL);
	struct sleeper sleeper = {.readers = rcu_readers(rcu)};
	struct log log = {0};
	struct rcu_defer *defer = make_queue(&log);
	uint32_t most = 0;
	pthread_t thread;

	rcu_defer_attach(defer, rcu);
	rcu_reader_online(sleeper.readers, 0);
	assert_int_equal(pthread_create(&thread, NULL, report_now_and_then, &sleeper), 0);
	for (uint32_t i = 0; i < 5 * RCU_DEFER_MAX; i++) {
		add(defer, i, 1);
		if (i % 100 == 0)
			rcu_defer_close(defer, false);
		most = most > rcu_defer_pending(defer) ? most : rcu_defer_pending(defer);
	}
	assert_in_range(most, RCU_DEFER_BATCH, RCU_DEFER_MAX);
	assert_int_equal(log.n + rcu_defer_pending(defer), 5 * RCU_DEFER_MAX);
	rcu_defer_drain(defer);
	assert_int_equal(log.n, 5 * RCU_DEFER_MAX);
	__atomic_store_n(&sleeper.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	rcu_defer_detach(defer);
	free(defer);
	rcu_destroy(rcu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frees_nothing_before_the_workers_that_are_online_report),
		cmocka_unit_test(frees_at_once_while_no_worker_reads),
		cmocka_unit_test(polls_all_queues_that_are_attached),
		cmocka_unit_test(frees_only_so_many_blocks_at_a_time),
		cmocka_unit_test(names_a_worker_that_is_silent_for_a_second),
		cmocka_unit_test(refuses_a_rcu_for_too_many_workers),
		cmocka_unit_test(waits_for_a_late_worker_when_too_many_are_pending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
