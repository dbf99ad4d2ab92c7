// Ageing with a clock that the test moves; counters, also beyond 40 bits. Tests only.
#include "flow/flow.h"

#include "flow/table.h"
#include "flow/testing.h"
#include "rcu/rcu_fast.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_FLOWS = 5000, LATEST_MS = 1000 };

// When each flow ended, by its number in the test: the action is that number + 1.
struct log {
	uint64_t now; // of the test
	uint32_t n;
	uint64_t at[MAX_FLOWS];
	struct flow_info info[MAX_FLOWS];
};

static void note_ended(void *ctx, const struct flow_info *info)
{
	struct log *log = ctx;
	const uint32_t number = info->action - 1;

	assert_int_equal(log->at[number], 0);
	log->at[number] = log->now;
	log->info[number] = *info;
	log->n++;
}

static uint64_t cycles(uint64_t ms)
{
	return ms * (TESTING_HZ / 1000);
}

// A moment from which the 24 bits of ticks soon start again.
static uint64_t before_wrap(void)
{
	return (((uint64_t)3 << 24) - 40) << 27;
}

struct bench {
	struct flow_table *table;
	struct log *log;
	uint64_t start;
};

static struct bench make(struct flow_settings settings, uint64_t start)
{
	struct bench bench = {.log = calloc(1, sizeof(struct log)), .start = start};

	assert_non_null(bench.log);
	settings.ended = note_ended;
	settings.ctx = bench.log;
	bench.table = flow_create(&settings, start, NULL);
	testing_use_actions(bench.table, MAX_FLOWS);
	assert_non_null(bench.table);
	bench.log->now = start;
	return bench;
}

static void destroy(struct bench *bench)
{
	flow_destroy(bench->table);
	free(bench->log);
}

// As the control thread does it: ten times a second, and again while it is behind.
static void run_until(struct bench *bench, uint64_t ms)
{
	const uint64_t end = bench->start + cycles(ms);

	while (bench->log->now < end) {
		bench->log->now = MIN_OF(bench->log->now + cycles(100), end);
		while (flow_age(bench->table, bench->log->now))
			;
	}
}

static uint64_t ended_ms(const struct bench *bench, uint32_t number)
{
	return bench->log->at[number]
	               ? (bench->log->at[number] - bench->start) / (TESTING_HZ / 1000)
	               : 0;
}

static void add(struct bench *bench, uint32_t number, enum flow_life life, uint32_t lasts_ms)
{
	const struct flow_change change = {.op = FLOW_ADD,
		.life = life,
		.key = testing_key(number % 5 ? 4 : 6, number),
		.action = 1 + number % MAX_FLOWS,
		.lasts_ms = lasts_ms};

	assert_int_equal(testing_change(bench->table, &change, bench->log->now), 0);
}

static void count(struct bench *bench, uint32_t number, unsigned worker)
{
	const struct flow_view *view = flow_view(bench->table);
	const struct flow_key key = testing_key(number % 5 ? 4 : 6, number);
	uint32_t action;
	const uint32_t flow = testing_lookup(bench->table, &key, &action);

	assert_int_not_equal(flow, FLOW_NONE);
	flow_count_packet(view->count[worker], flow, 100, flow_tick(view, bench->log->now));
}

static void idle_flows_end_within_a_second_of_their_timeout(void **state)
{
	static const uint32_t timeout_ms[FLOW_TIMEOUTS] = {0, 1, 1000, 1500, 2000, 3000, 7777,
		20000};
	const uint64_t starts[] = {cycles(5000), before_wrap(), 0};

	for (size_t round = 0; round < ARRAY_LEN(starts); round++) {
		struct flow_settings settings = testing_settings(MAX_FLOWS, MAX_FLOWS, 2);
		memcpy(settings.timeout_ms, timeout_ms, sizeof(timeout_ms));
		struct bench bench = make(settings, starts[round]);
		uint64_t added_ms[MAX_FLOWS] = {0};

		for (uint32_t i = 0; i < MAX_FLOWS; i++) {
			if (i % 500 == 0)
				run_until(&bench, i / 3);
			added_ms[i] = (bench.log->now - bench.start) / (TESTING_HZ / 1000);
			add(&bench, i, i % (FLOW_TIMEOUTS + 1), 0);
		}
		run_until(&bench, 30000);
		for (uint32_t i = 0; i < MAX_FLOWS; i++) {
			const unsigned life = i % (FLOW_TIMEOUTS + 1);
			if (life == FLOW_ENDLESS) {
				assert_int_equal(bench.log->at[i], 0);
				continue;
			}
			const uint64_t due_ms = added_ms[i] + timeout_ms[life - 1];
			assert_in_range(ended_ms(&bench, i), due_ms, due_ms + LATEST_MS);
			assert_int_equal(bench.log->info[i].reason, FLOW_IDLE);
		}
		destroy(&bench);
	}
}

static void packets_keep_flows_alive(void **state)
{
	struct bench bench = make(testing_settings(MAX_FLOWS, MAX_FLOWS, 3), before_wrap());
	enum { N = 2000, TIMEOUT_MS = 10000 };

	for (uint32_t i = 0; i < N; i++)
		add(&bench, i, 2, 0);
	// Half a second before each timeout, on any worker; the last packet of flow i at 9.5 s
	// times its class.
	for (unsigned round = 1; round <= 5; round++) {
		run_until(&bench, round * (TIMEOUT_MS - 500));
		for (uint32_t i = 0; i < N; i++)
			if (i % 6 >= round)
				count(&bench, i, (i + round) % 3);
	}
	run_until(&bench, 70000);
	for (uint32_t i = 0; i < N; i++) {
		const uint64_t due_ms = i % 6 * (TIMEOUT_MS - 500) + TIMEOUT_MS;
		assert_in_range(ended_ms(&bench, i), due_ms, due_ms + LATEST_MS);
		assert_int_equal(bench.log->info[i].packets, i % 6);
		assert_int_equal(bench.log->info[i].bytes, i % 6 * 100);
		assert_in_range(bench.log->info[i].idle_ms, TIMEOUT_MS, TIMEOUT_MS + LATEST_MS);
	}
	destroy(&bench);
}

static void flows_with_a_fixed_end_end_then_whatever_they_carry(void **state)
{
	struct bench bench = make(testing_settings(100, 100, 1), before_wrap());
	struct flow_info info;

	for (uint32_t i = 0; i < 20; i++)
		add(&bench, i, FLOW_FIXED_END, i * 700);
	for (unsigned ms = 500; ms <= 16000; ms += 500) {
		run_until(&bench, ms);
		for (uint32_t i = 0; i < 20; i++)
			if (!bench.log->at[i])
				count(&bench, i, 0);
		const struct flow_key key = testing_key(4, 19);
		if (!flow_find(bench.table, &key, bench.log->now, &info))
			continue;
		assert_in_range(info.left_ms + ms, 19 * 700, 19 * 700 + 200);
		assert_in_range(info.idle_ms, 0, 200);
	}
	for (uint32_t i = 0; i < 20; i++) {
		assert_in_range(ended_ms(&bench, i), i * 700, i * 700 + LATEST_MS);
		assert_int_equal(bench.log->info[i].reason, FLOW_REACHED_END);
	}
	destroy(&bench);
}

static void a_changed_timeout_holds_for_existing_flows(void **state)
{
	struct bench bench = make(testing_settings(100, 0, 1), cycles(77));

	add(&bench, 1, 3, 0); // 60 s
	add(&bench, 2, 4, 0); // 300 s
	run_until(&bench, 10000);
	flow_set_timeout(bench.table, 3, 5000);
	run_until(&bench, 11000);
	assert_in_range(ended_ms(&bench, 1), 10000, 11000);
	flow_set_timeout(bench.table, 4, 20000);
	run_until(&bench, 19900);
	assert_int_equal(bench.log->n, 1);
	run_until(&bench, 21000);
	assert_in_range(ended_ms(&bench, 2), 20000, 21000);
	destroy(&bench);
}

static void a_replaced_life_starts_again(void **state)
{
	struct bench bench = make(testing_settings(100, 0, 1), cycles(77));
	struct flow_change change = {.op = FLOW_REPLACE, .key = testing_key(4, 1), .action = 2};

	add(&bench, 1, 2, 0);
	run_until(&bench, 9000);
	change.life = 1;
	assert_int_equal(testing_change(bench.table, &change, bench.log->now), 0);
	run_until(&bench, 20000);
	assert_in_range(ended_ms(&bench, 1), 10000, 11000);
	destroy(&bench);
}

static void a_flow_may_have_been_idle_when_it_is_added(void **state)
{
	struct bench bench = make(testing_settings(100, 0, 1), before_wrap());
	struct flow_change change = {.op = FLOW_ADD,
		.key = testing_key(4, 1),
		.life = 2,
		.action = 2,
		.idle_ms = 8000,
		.packets = 5,
		.bytes = 999};
	struct flow_info info;

	assert_int_equal(testing_change(bench.table, &change, bench.log->now), 0);
	assert_true(flow_find(bench.table, &change.key, bench.log->now, &info));
	assert_in_range(info.idle_ms, 7800, 8000);
	run_until(&bench, 5000);
	assert_in_range(ended_ms(&bench, 1), 2000, 3000);
	assert_int_equal(bench.log->info[1].packets, 5);
	assert_int_equal(bench.log->info[1].bytes, 999);
	change.packets = FLOW_MAX_PACKETS + 1;
	assert_int_equal(testing_change(bench.table, &change, bench.log->now), -EINVAL);
	destroy(&bench);
}

static void add_idle(struct flow_table *table, uint32_t n)
{
	testing_use_actions(table, 1);
	for (uint32_t i = 0; i < n; i++) {
		struct flow_change change = {.op = FLOW_ADD,
			.life = 1,
			.key = testing_key(4, i),
			.action = 1};
		assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
	}
}

// More than can wait for workers at once, and a worker that does not report for a while.
static void all_flows_may_end_at_once(void **state)
{
	enum { N = 200000 };
	struct flow_settings settings = testing_settings(N, 0, 1);
	struct flow_table *table = testing_table(&settings);
	struct rcu *rcu = rcu_create(1, NULL);
	const struct rcu_readers *workers = rcu_readers(rcu);
	struct flow_usage usage;
	unsigned n_slices = 0;

	add_idle(table, N);
	flow_attach(table, rcu);
	rcu_reader_online(workers, 0);
	for (unsigned i = 0; i < 1000; i++)
		assert_true(flow_age(table, 4 * TESTING_HZ));
	flow_usage(table, &usage);
	assert_in_range(usage.four.n_ending, 60000, RCU_DEFER_MAX);
	assert_int_equal(usage.four.n + usage.four.n_ending, N);
	do {
		rcu_reader_report(workers, 0);
		n_slices++;
	} while (flow_age(table, 4 * TESTING_HZ));
	flow_usage(table, &usage);
	assert_int_equal(usage.four.n, 0);
	assert_int_equal(usage.n_idle, N);
	assert_in_range(n_slices, 20, 1000);
	rcu_reader_offline(workers, 0);
	flow_detach(table);
	flow_destroy(table);
	rcu_destroy(rcu);
}

// A worker has held up all of them: the control thread has other work, too.
static void the_end_of_many_flows_is_told_in_slices(void **state)
{
	enum { N = 20000 };
	struct flow_settings settings = testing_settings(N, 0, 1);
	struct flow_table *table = testing_table(&settings);
	struct rcu *rcu = rcu_create(1, NULL);
	struct flow_usage usage;
	uint64_t n_left = N;

	add_idle(table, N);
	flow_attach(table, rcu);
	rcu_reader_online(rcu_readers(rcu), 0);
	while (flow_age(table, 4 * TESTING_HZ))
		;
	for (usage.four.n_ending = N; usage.four.n_ending; n_left = usage.four.n_ending) {
		rcu_reader_report(rcu_readers(rcu), 0);
		const bool is_behind = flow_age(table, 4 * TESTING_HZ);
		flow_usage(table, &usage);
		// When a grace period starts, and after that.
		assert_in_range(n_left - usage.four.n_ending, 1, 2 * FREED_AT_ONCE);
		assert_true(is_behind || usage.four.n_ending < BLOCK_FLOWS);
	}
	assert_int_equal(usage.four.n, 0);
	rcu_reader_offline(rcu_readers(rcu), 0);
	flow_detach(table);
	flow_destroy(table);
	rcu_destroy(rcu);
}

static void blocks_in_which_nothing_is_due_are_left_out(void **state)
{
	enum { N = 100000 };
	struct bench bench = make(testing_settings(N, 0, 1), cycles(1000));
	uint32_t *age = bench.table->life;

	for (uint32_t i = 0; i < MAX_FLOWS; i++)
		add(&bench, i % 5 ? i : i + MAX_FLOWS * 5 + 1, FLOW_ENDLESS, 0);
	run_until(&bench, 1000);
	const uint32_t due = bench.table->due[0];
	bench.table->life = NULL; // a visit would crash
	run_until(&bench, 60000);
	bench.table->life = age;
	assert_int_equal(bench.table->due[0], due);
	destroy(&bench);
}

// The counters of others are not read: those are far apart in memory.
static void only_flows_that_may_be_due_are_looked_at(void **state)
{
	enum { N = 4 * BLOCK_FLOWS, DUE_MS = 5000, LONG_MS = 60000 };
	struct bench bench = make(testing_settings(N, 0, 1), before_wrap());
	const struct flow_view *view = flow_view(bench.table);
	const uint64_t old = 1ull << FLOW_SEEN_BITS;

	for (uint32_t i = 0; i < N; i++) {
		const bool is_soon = i % 100 == 0;
		const struct flow_change change = {.op = FLOW_ADD,
			.key = testing_key(4, i),
			.action = 1 + i,
			.life = is_soon ? FLOW_FIXED_END : 3,
			.lasts_ms = is_soon ? DUE_MS + i : 0};
		assert_int_equal(testing_change(bench.table, &change, bench.log->now), 0);
	}
	run_until(&bench, 1000);
	// As if the last packet had been long ago: a look would end them.
	for (uint32_t flow = 1; flow <= N; flow++)
		view->count[0][flow].packets_and_seen =
			old | flow_tick(view, bench.start - cycles(LONG_MS));
	run_until(&bench, DUE_MS + N + LATEST_MS);
	assert_int_equal(bench.log->n, (N + 99) / 100);
	run_until(&bench, LONG_MS + LATEST_MS);
	assert_int_equal(bench.log->n, N);
	destroy(&bench);
}

// How late flows end.
struct lateness {
	struct flow_table *table;
	uint32_t n_ended;
	uint64_t now, latest; // cycles
	uint64_t *due;        // by action
};

static void note_latest(void *ctx, const struct flow_info *info)
{
	struct lateness *late = ctx;

	late->latest = MAX_OF(late->latest, late->now - late->due[info->action]);
	late->n_ended++;
}

// The thread has other work, too: it makes no more than a few slices in a tenth of a second. Each
// block has flows that are due all the time.
static void flows_end_in_time_with_little_work(void **state)
{
	enum { N = 1 << 18, SPREAD_MS = 40000, SLICES = 3 };
	struct lateness late = {.now = TESTING_HZ, .due = calloc(N + 1, sizeof(*late.due))};
	struct flow_settings settings = testing_settings(N, 0, 1);

	assert_non_null(late.due);
	settings.ended = note_latest;
	settings.ctx = &late;
	late.table = testing_table(&settings);
	testing_use_actions(late.table, N);
	for (uint32_t i = 0; i < N; i++) {
		// A permutation: neighbours do not end at the same time.
		const uint32_t end_ms = 1000 + (i * 40503ull % N) * SPREAD_MS / N;
		const struct flow_change change = {.op = FLOW_ADD,
			.key = testing_key(4, i),
			.action = 1 + i,
			.life = FLOW_FIXED_END,
			.lasts_ms = end_ms};
		assert_int_equal(testing_change(late.table, &change, late.now), 0);
		late.due[1 + i] = late.now + cycles(end_ms);
	}
	for (unsigned tenth = 0; tenth < (SPREAD_MS + 3000) / 100; tenth++) {
		late.now += cycles(100);
		for (unsigned i = 0; i < SLICES && flow_age(late.table, late.now); i++)
			;
	}
	assert_int_equal(late.n_ended, N);
	assert_in_range(late.latest, 1, cycles(LATEST_MS));
	flow_destroy(late.table);
	free(late.due);
}

static void it_is_late_while_a_turn_takes_longer_than_its_time(void **state)
{
	enum { N = 200000 };
	struct flow_settings settings = testing_settings(N, 0, 1);
	struct flow_table *table = testing_table(&settings);
	struct rcu *rcu = rcu_create(1, NULL);
	const uint64_t later = 4 * TESTING_HZ + cycles(500);

	add_idle(table, N);
	assert_true(flow_age(table, 4 * TESTING_HZ));
	assert_false(flow_age_is_late(table));
	assert_true(flow_age(table, later));
	assert_true(flow_age_is_late(table));
	// More time does not help if a worker has to pass first.
	flow_attach(table, rcu);
	rcu_reader_online(rcu_readers(rcu), 0);
	while (flow_age_is_late(table))
		assert_true(flow_age(table, later));
	rcu_reader_offline(rcu_readers(rcu), 0);
	flow_detach(table);
	assert_true(flow_age_is_late(table));
	while (flow_age(table, later))
		;
	assert_false(flow_age_is_late(table));
	flow_destroy(table);
	rcu_destroy(rcu);
}

// As a file may have it; each would be looked for among all the others.
static void flows_that_start_with_many_packets_are_found_at_once(void **state)
{
	enum { N = FLOW_MAX_CARRIES + 1 };
	struct bench bench = make(testing_settings(N, 0, 2), cycles(1000));
	struct flow_change change = {.op = FLOW_ADD, .action = 1, .packets = FLOW_MAX_PACKETS};
	struct flow_info info;

	for (uint32_t i = 0; i < N - 1; i++) {
		change.key = testing_key(4, i);
		assert_int_equal(testing_change(bench.table, &change, bench.log->now), 0);
	}
	change.key = testing_key(4, N - 1);
	assert_int_equal(testing_change(bench.table, &change, bench.log->now), -E2BIG);
	bench.table->settings.ended = NULL; // the log is too small
	change.op = FLOW_DELETE;
	for (uint32_t i = 0; i < N - 1; i++) {
		change.key = testing_key(4, i);
		assert_true(flow_find(bench.table, &change.key, bench.log->now, &info));
		assert_int_equal(info.packets, FLOW_MAX_PACKETS);
		assert_int_equal(testing_change(bench.table, &change, bench.log->now), 0);
	}
	assert_int_equal(bench.table->carries.n, 0);
	destroy(&bench);
}

static void counters_go_on_beyond_40_bits(void **state)
{
	struct bench bench = make(testing_settings(10, 0, 2), cycles(1000));
	const uint64_t half = (uint64_t)1 << 39;
	struct flow_info info;
	uint64_t wanted[2] = {0};

	add(&bench, 1, FLOW_ENDLESS, 0);
	add(&bench, 2, FLOW_ENDLESS, 0);
	const struct flow_key key = testing_key(4, 1), other = testing_key(4, 2);
	assert_true(flow_find(bench.table, &key, bench.log->now, &info));
	for (unsigned hour = 1; hour <= 20; hour++) {
		// As if so many had been counted since the last hour.
		for (unsigned worker = 0; worker < 2; worker++) {
			struct flow_count *own =
				&flow_view(bench.table)->count[worker][info.number];
			uint64_t n = half - 1 - testing_below(1000) - (worker ? half / 3 : 0);
			own->packets_and_seen += n << FLOW_SEEN_BITS;
			wanted[worker] += n;
		}
		assert_true(flow_find(bench.table, &key, bench.log->now, &info));
		assert_int_equal(info.packets, wanted[0] + wanted[1]);
		run_until(&bench, hour * 4000000ull);
		assert_true(flow_find(bench.table, &key, bench.log->now, &info));
		assert_int_equal(info.packets, wanted[0] + wanted[1]);
	}
	assert_true(flow_find(bench.table, &other, bench.log->now, &info));
	assert_int_equal(info.packets, 0);
	const struct flow_change change = {.op = FLOW_DELETE, .key = key};
	assert_int_equal(testing_change(bench.table, &change, bench.log->now), 0);
	assert_int_equal(bench.log->info[1].packets, wanted[0] + wanted[1]);
	add(&bench, 3, FLOW_ENDLESS, 0); // takes its number
	const struct flow_key third = testing_key(4, 3);
	assert_true(flow_find(bench.table, &third, bench.log->now, &info));
	assert_int_equal(info.packets, 0);
	destroy(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_flows_end_within_a_second_of_their_timeout),
		cmocka_unit_test(packets_keep_flows_alive),
		cmocka_unit_test(flows_with_a_fixed_end_end_then_whatever_they_carry),
		cmocka_unit_test(a_changed_timeout_holds_for_existing_flows),
		cmocka_unit_test(a_replaced_life_starts_again),
		cmocka_unit_test(a_flow_may_have_been_idle_when_it_is_added),
		cmocka_unit_test(all_flows_may_end_at_once),
		cmocka_unit_test(the_end_of_many_flows_is_told_in_slices),
		cmocka_unit_test(blocks_in_which_nothing_is_due_are_left_out),
		cmocka_unit_test(only_flows_that_may_be_due_are_looked_at),
		cmocka_unit_test(flows_end_in_time_with_little_work),
		cmocka_unit_test(it_is_late_while_a_turn_takes_longer_than_its_time),
		cmocka_unit_test(flows_that_start_with_many_packets_are_found_at_once),
		cmocka_unit_test(counters_go_on_beyond_40_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
