// A list that is replaced while workers use it: each packet obeys the old list or the new one, also
// under TSan.
#include "acl/testing.h"

#include "rcu/rcu_fast.h"

#include <pthread.h>
#include <rte_cycles.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_WORKERS = 2, N_RULES = 50, N_PACKETS = 256, N_SWAPS = 60, EAL_MIB = 256 };
enum { RATE = 80000000, BURST = 9000, COST = 1000 }; // bit/s; bytes

// Two lists, and what each says about each packet.
static struct acl_source sources[2];
static struct testing_packet packets[N_PACKETS];
static uint32_t wanted[2][N_PACKETS];

static struct worker {
	pthread_t thread;
	unsigned id;
	uint64_t n_judged[2], n_wrong, n_passed, n_rounds; // n_rounds: atomic, relaxed
} workers[N_WORKERS];
static const struct rcu_readers *readers;
static const struct acl_live *live;
static bool stop; // atomic, relaxed

static const char *iface_name(void *ctx, unsigned iface)
{
	return "east";
}

// All rules that permit share a bucket.
static void police_packet(struct worker *w, const struct acl_list *list, uint32_t rule)
{
	const struct acl_policer *policer = &list->policer[rule];
	const uint32_t cost = COST;

	if (policer->police)
		w->n_passed += police_take(policer->police, rte_rdtsc(), &cost, 1);
}

// All packets of a burst are judged by one list. Rules of the second list have a mark.
static void judge_burst(struct worker *w, const struct acl_list *list)
{
	for (unsigned i = 0; i < N_PACKETS; i++) {
		const bool is_ip6 = packets[i].words.src.family == 6;
		const unsigned which = list->action[1].dscp == 1;
		struct acl_key key;
		uint32_t rule;

		if (!(is_ip6 ? acl_key6 : acl_key4)(&key, packets[i].bytes, packets[i].n))
			continue;
		key.is_local = packets[i].words.is_local;
		acl_classify(list, is_ip6, &key, &rule, 1);
		acl_count_packet(live->count[w->id], list->action[rule].counter, 1);
		police_packet(w, list, rule);
		w->n_wrong += rule != wanted[which][i];
		w->n_judged[which]++;
	}
}

static void *run(void *arg)
{
	struct worker *w = arg;

	rcu_reader_online(readers, w->id);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		const struct acl_view *view = acl_live_view(live);

		judge_burst(w, acl_view_list(view, ACL_IN, 0));
		rcu_reader_report(readers, w->id);
		__atomic_fetch_add(&w->n_rounds, 1, __ATOMIC_RELAXED);
	}
	rcu_reader_offline(readers, w->id);
	return NULL;
}

// The second list has twice the rate and burst.
static void set_rates(struct acl_source *source, unsigned times)
{
	const struct acl_police police = {.rate = (uint64_t)RATE * times,
		.burst = (uint64_t)BURST * times,
		.bucket = "one"};

	for (size_t i = 0; i < source->n; i++)
		if (source->rule[i].effect == ACL_PERMIT)
			source->rule[i].police = police;
}

static void make_lists(void)
{
	uint64_t random = 5;

	for (unsigned i = 0; i < N_PACKETS; i++)
		testing_packet(&packets[i], &random);
	for (unsigned k = 0; k < 2; k++) {
		sources[k] = testing_list("edge", N_RULES, &random);
		sources[k].rule[0].mark = k;
		set_rates(&sources[k], 1 + k);
		for (unsigned i = 0; i < N_PACKETS; i++)
			wanted[k][i] = testing_find(&sources[k], &packets[i].words);
	}
}

static void wait_for_round(void)
{
	for (unsigned i = 0; i < N_WORKERS; i++) {
		const uint64_t before = __atomic_load_n(&workers[i].n_rounds, __ATOMIC_RELAXED);

		while (__atomic_load_n(&workers[i].n_rounds, __ATOMIC_RELAXED) - before < 2)
			sched_yield();
	}
}

static void each_packet_obeys_the_old_list_or_the_new_one(void **state)
{
	struct rcu *rcu = rcu_create(N_WORKERS, NULL);
	const struct acl_settings settings = {.n_workers = N_WORKERS,
		.rcu = rcu,
		.iface_name = iface_name,
		.n_ifaces = 1};
	struct acl_use use = {"east", "edge", ACL_IN};
	struct acl_table *table;
	uint64_t n_judged = 0, n_passed = 0;
	const uint64_t began = rte_rdtsc();

	make_lists();
	assert_non_null(rcu);
	assert_int_equal(acl_open(&table, &settings, NULL), 0);
	assert_int_equal(acl_apply(table, &(struct acl_set){&sources[0], &use, 1, 1}, NULL), 0);
	readers = rcu_readers(rcu);
	live = acl_live(table);
	for (unsigned i = 0; i < N_WORKERS; i++) {
		workers[i].id = i;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, run, &workers[i]), 0);
	}
	for (unsigned i = 1; i <= N_SWAPS; i++) {
		const struct acl_set set = {&sources[i % 2], &use, 1, 1};

		wait_for_round();
		assert_int_equal(acl_apply(table, &set, NULL), 0);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < N_WORKERS; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].n_wrong, 0);
		assert_true(workers[i].n_judged[0] > 0 && workers[i].n_judged[1] > 0);
		n_passed += workers[i].n_passed;
		n_judged += workers[i].n_judged[0] + workers[i].n_judged[1];
	}
	// No change of the rate gives tokens.
	const double seconds = (double)(rte_rdtsc() - began) / rte_get_tsc_hz();

	assert_in_range(n_passed, BURST / COST, (2 * RATE / 8 * seconds + 2 * BURST) / COST + 1);
	// Both lists have the same names, so nothing was lost over the swaps.
	for (size_t i = 0; i <= N_RULES; i++)
		n_judged -= acl_rule_count(table, "edge", i).packets;
	assert_int_equal(n_judged, 0);
	acl_close(table);
	rcu_destroy(rcu);
	free(sources[0].rule);
	free(sources[1].rule);
}

static int start_eal(void **state)
{
	return testing_start_eal(EAL_MIB) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_packet_obeys_the_old_list_or_the_new_one),
	};

	return cmocka_run_group_tests(tests, start_eal, NULL);
}
