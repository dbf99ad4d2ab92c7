// Workers look up what actions mean while these come and go, and numbers are used again (for
// ThreadSanitizer). Tests only.
#include "flow/flow.h"

#include "base/clock.h"
#include "flow/table.h"
#include "flow/testing.h"
#include "rcu/rcu_fast.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// The flow of each key always has actions of its own subscriber, which come and go.
enum { N_WORKERS = 2, N_WATCHED = 32 };
#ifdef __SANITIZE_THREAD__
enum { N_CHANGES = 20000 };
#else
enum { N_CHANGES = 200000 };
#endif

struct watch {
	const struct rcu_readers *rcu;
	struct flow_view view; // with a variant of its own
	unsigned worker;
	const int *stop;
	struct flow_key4 four[N_WATCHED];
	struct flow_key6 six[N_WATCHED];
	uint64_t n_lookups, n_wrong;
};

static void judge(struct watch *watch, const struct flow_lookup *lookup)
{
	for (unsigned i = 0; i < N_WATCHED; i++) {
		const struct flow_action *action = &watch->view.actions[lookup->action[i]];
		watch->n_wrong += !lookup->flow[i] || action->subscriber != i + 1;
	}
}

static void *run_worker(void *arg)
{
	struct watch *watch = arg;

	rcu_reader_online(watch->rcu, watch->worker);
	while (!__atomic_load_n(watch->stop, __ATOMIC_RELAXED)) {
		struct flow_lookup lookup = {.n = N_WATCHED};
		flow_lookup4(&watch->view, watch->four, &lookup);
		judge(watch, &lookup);
		flow_lookup6(&watch->view, watch->six, &lookup);
		judge(watch, &lookup);
		__atomic_store_n(&watch->n_lookups, watch->n_lookups + 1, __ATOMIC_RELAXED);
		rcu_reader_report(watch->rcu, watch->worker);
	}
	rcu_reader_offline(watch->rcu, watch->worker);
	return NULL;
}

static void change_action(struct flow_table *table, unsigned i, uint8_t family)
{
	const struct flow_action action = {.subscriber = i + 1,
		.dscp = FLOW_KEEP_DSCP,
		.mirror = testing_random()};
	struct flow_change change = {.op = FLOW_REPLACE, .key = testing_key(family, i)};

	assert_int_equal(flow_action_use(table, &action, &change.action, NULL), 0);
	assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
	flow_action_unuse(table, change.action);
}

static bool all_have_looked(const struct watch *watch, uint64_t n)
{
	for (unsigned i = 0; i < N_WORKERS; i++)
		if (__atomic_load_n(&watch[i].n_lookups, __ATOMIC_RELAXED) < n)
			return false;
	return true;
}

static void start(struct watch *watch, const struct flow_table *table, unsigned worker)
{
	watch->worker = worker;
	watch->view = *flow_view(table);
	testing_use_variant(&watch->view, worker);
	for (unsigned i = 0; i < N_WATCHED; i++) {
		watch->four[i] = testing_key(4, i).four;
		watch->six[i] = testing_key(6, i).six;
	}
}

static void workers_see_what_an_action_means_whatever_changes(void **state)
{
	const struct flow_settings settings = testing_settings(N_WATCHED, N_WATCHED, N_WORKERS);
	struct flow_table *table = testing_table(&settings);
	struct rcu *rcu = rcu_create(N_WORKERS, NULL);
	static struct watch watch[N_WORKERS];
	pthread_t thread[N_WORKERS];
	const uint64_t start_ns = clock_now_ns();
	int stop = 0;

	for (unsigned i = 0; i < 2 * N_WATCHED; i++)
		change_action(table, i / 2, i % 2 ? 4 : 6);
	flow_attach(table, rcu);
	for (unsigned i = 0; i < N_WORKERS; i++) {
		watch[i].rcu = rcu_readers(rcu);
		watch[i].stop = &stop;
		start(&watch[i], table, i);
		assert_int_equal(pthread_create(&thread[i], NULL, run_worker, &watch[i]), 0);
	}
	for (unsigned n = 0;
		n < N_CHANGES || !all_have_looked(watch, 1000) || table->actions.max > n / 2;
		n++) { // until numbers were used again
		change_action(table, n / 2 % N_WATCHED, n % 2 ? 4 : 6);
		if (n % 16 == 0)
			flow_age(table, TESTING_HZ);
		assert_true(clock_now_ns() - start_ns < 100000000000);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < N_WORKERS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < N_WORKERS; i++)
		assert_int_equal(watch[i].n_wrong, 0);
	flow_detach(table);
	flow_destroy(table);
	rcu_destroy(rcu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_see_what_an_action_means_whatever_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
