// Workers look up and count while the control thread changes a nearly full table, in which entries
// move all the time (for ThreadSanitizer). And the same moments one by one, without luck. Tests
// only.
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

// Keys of each family: the first stay as they are, the next change their action all the time, the
// others come and go. The lines have space for N_KEYS - 8 of them or a few more.
enum { N_STAY = 24, N_CHANGE = 24, N_COME = 72, N_KEYS = N_STAY + N_CHANGE + N_COME };
enum { N_WORKERS = 2, N_NUMBERS = 4096 }; // numbers wait for workers
#ifdef __SANITIZE_THREAD__
enum { N_CHANGES = 20000, N_LOOKUPS = 2000 };
#else
enum { N_CHANGES = 280000, N_LOOKUPS = 20000 };
#endif

static const uint8_t FAMILY[2] = {4, 6};

struct watch {
	const struct rcu_readers *rcu;
	struct flow_view view; // with a variant of its own
	unsigned worker;
	const int *stop;
	struct flow_key4 four[N_KEYS];
	struct flow_key6 six[N_KEYS];
	uint32_t flow[2][N_KEYS]; // of those that stay or change
	uint64_t n_lookups, n_wrong, n_missing, n_found, packets;
};

// The actions that a key may have: one, or two.
static uint32_t action_of(unsigned f, unsigned number, unsigned which)
{
	const uint32_t base = (f * N_KEYS + number) * 2 + (number < N_STAY ? 0 : which);

	return 1 + base * 8191 % (FLOW_ACTIONS - 1); // all bits
}

static void judge(struct watch *watch, unsigned f, unsigned number, uint32_t flow, uint32_t action)
{
	const bool lives = number < N_STAY + N_CHANGE;

	if (!flow) {
		watch->n_missing += lives;
		return;
	}
	watch->n_found++;
	watch->n_wrong += action != action_of(f, number, 0) && action != action_of(f, number, 1);
	watch->n_wrong += lives && flow != watch->flow[f][number];
	flow_count_packet(watch->view.count[watch->worker], flow, 100 + f, 1);
	watch->packets++;
}

static void look_up(struct watch *watch, unsigned f, unsigned from, unsigned n)
{
	struct flow_lookup lookup = {.n = n, .count = watch->view.count[watch->worker]};

	if (f)
		flow_lookup6(&watch->view, watch->six + from, &lookup);
	else
		flow_lookup4(&watch->view, watch->four + from, &lookup);
	for (unsigned i = 0; i < n; i++)
		judge(watch, f, from + i, lookup.flow[i], lookup.action[i]);
}

static void *run_worker(void *arg)
{
	struct watch *watch = arg;

	rcu_reader_online(watch->rcu, watch->worker);
	while (!__atomic_load_n(watch->stop, __ATOMIC_RELAXED)) {
		for (unsigned f = 0; f < 2; f++) {
			look_up(watch, f, 0, FLOW_BURST);
			look_up(watch, f, FLOW_BURST, N_KEYS - FLOW_BURST);
		}
		__atomic_store_n(&watch->n_lookups, watch->n_lookups + 1, __ATOMIC_RELAXED);
		rcu_reader_report(watch->rcu, watch->worker);
	}
	rcu_reader_offline(watch->rcu, watch->worker);
	return NULL;
}

struct ended {
	uint64_t packets, n;
};

static void note_ended(void *ctx, const struct flow_info *info)
{
	struct ended *ended = ctx;

	ended->packets += info->packets;
	ended->n++;
}

static struct flow_change random_change(unsigned f, unsigned number)
{
	return (struct flow_change){.op = number >= N_STAY + N_CHANGE && testing_below(2)
	                                          ? FLOW_DELETE
	                                          : FLOW_REPLACE,
		.key = testing_key(FAMILY[f], number),
		.action = action_of(f, number, testing_below(2))};
}

// A table whose lines just hold the keys that live and most of the others.
static struct flow_table *tight_table(struct ended *ended)
{
	struct flow_settings settings = testing_settings(N_NUMBERS, N_NUMBERS, N_WORKERS);

	settings.ended = note_ended;
	settings.ctx = ended;
	struct flow_table *table = testing_table(&settings);
	table->index[0].n_lines = table->view.n_lines4 = (N_KEYS - 8) / LINE4_SLOTS;
	table->index[1].n_lines = table->view.n_lines6 = (N_KEYS - 8) / LINE6_SLOTS;
	for (unsigned f = 0; f < 2; f++)
		for (unsigned i = 0; i < N_KEYS; i++) {
			testing_use_action(table, action_of(f, i, 0));
			testing_use_action(table, action_of(f, i, 1));
		}
	for (unsigned f = 0; f < 2; f++)
		for (unsigned i = 0; i < N_STAY + N_CHANGE; i++) {
			struct flow_change change = random_change(f, i);
			assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
		}
	return table;
}

static void start(struct watch *watch, struct flow_table *table, unsigned number)
{
	watch->view = *flow_view(table);
	testing_use_variant(&watch->view, number);
	watch->worker = number;
	for (unsigned i = 0; i < N_KEYS; i++) {
		struct flow_key key[2] = {testing_key(4, i), testing_key(6, i)};
		struct flow_info info;
		watch->four[i] = key[0].four;
		watch->six[i] = key[1].six;
		for (unsigned f = 0; f < 2; f++)
			if (flow_find(table, &key[f], TESTING_HZ, &info))
				watch->flow[f][i] = info.number;
	}
}

static bool all_have_looked(const struct watch *watch)
{
	for (unsigned i = 0; i < N_WORKERS; i++)
		if (__atomic_load_n(&watch[i].n_lookups, __ATOMIC_RELAXED) < N_LOOKUPS)
			return false;
	return true;
}

static void churn(struct flow_table *table, struct rcu *rcu, const struct watch *watch)
{
	const uint64_t start_ns = clock_now_ns();

	for (unsigned n = 0; n < N_CHANGES || !all_have_looked(watch); n++) {
		const unsigned f = n % 2;
		struct flow_change change =
			random_change(f, N_STAY + testing_below(N_CHANGE + N_COME));
		testing_change(table, &change, TESTING_HZ);
		if (n % 64 == 0)
			rcu_poll(rcu);
		assert_true(clock_now_ns() - start_ns < 400000000000);
	}
}

static void workers_see_the_old_action_or_the_new_one_while_entries_move(void **state)
{
	struct rcu *rcu = rcu_create(N_WORKERS, NULL);
	struct ended ended = {0};
	struct flow_table *table = tight_table(&ended);
	static struct watch watch[N_WORKERS];
	pthread_t thread[N_WORKERS];
	struct flow_usage usage;
	uint64_t packets = 0, counted = 0;
	int stop = 0;

	flow_attach(table, rcu);
	for (unsigned i = 0; i < N_WORKERS; i++) {
		watch[i].rcu = rcu_readers(rcu);
		watch[i].stop = &stop;
		start(&watch[i], table, i);
		assert_int_equal(pthread_create(&thread[i], NULL, run_worker, &watch[i]), 0);
	}
	churn(table, rcu, watch);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < N_WORKERS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < N_WORKERS; i++) {
		assert_int_equal(watch[i].n_wrong, 0);
		assert_int_equal(watch[i].n_missing, 0);
		assert_int_not_equal(watch[i].n_found, 0);
		packets += watch[i].packets;
	}
	flow_detach(table);
	flow_usage(table, &usage);
	assert_in_range(usage.four.n_moves, 100, UINT32_MAX);
	assert_in_range(usage.six.n_moves, 1, UINT32_MAX);
	assert_int_equal(usage.n_deleted, ended.n);
	struct flow_info info = {.number = 0};
	while (flow_next(table, info.number + 1, TESTING_HZ, &info))
		counted += info.packets;
	assert_int_equal(counted + ended.packets, packets);
	flow_destroy(table);
	rcu_destroy(rcu);
}

// As if the control thread had stopped in the middle of a change.
static void workers_do_not_wait_for_a_change_that_has_begun(void **state)
{
	for (unsigned round = 0; round < 4; round++) {
		const struct flow_settings settings = testing_settings(10, 10, N_WORKERS);
		struct flow_table *table = testing_table(&settings);
		struct flow_change change = {.op = FLOW_ADD,
			.key = testing_key(FAMILY[round / 2], 1),
			.action = 0x2abcde};
		struct flow_info info;
		uint32_t action;

		testing_use_action(table, change.action);
		assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
		testing_use_variant(&table->view, round);
		assert_true(flow_find(table, &change.key, TESTING_HZ, &info));
		const struct place place = place_of(table, info.number);
		union line *line = &table->index[round / 2].lines[place.line];
		table->shadow->before = *line;
		table->shadow->line = line;
		table->shadow->sequence += 2;
		memset(line->slots, 0x5a, sizeof(line->slots));
		line->state |= 1;
		if (round / 2)
			memset(&line->six, 0, sizeof(line->slots));
		assert_int_equal(testing_lookup(table, &change.key, &action), info.number);
		assert_int_equal(action, 0x2abcde);
		change.key = testing_key(FAMILY[round / 2], 2);
		assert_int_equal(testing_lookup(table, &change.key, &action), FLOW_NONE);
		flow_destroy(table);
	}
}

// Two lines for all keys, and for each IPv6 key a tag of its own.
static void fixed4(const struct flow_view *view, const struct flow_key4 key[], uint64_t hash[],
	unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		hash[i] = (uint64_t)1 << 63;
}

static void fixed6(const struct flow_view *view, const struct flow_key6 key[], uint64_t hash[],
	unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		hash[i] = (uint64_t)1 << 63 | load16(key[i].dst + 14);
}

static void begin_and_continue(const struct flow_table *table, const struct flow_key *key,
	struct flow_lookup *lookup)
{
	if (key->family == 4) {
		flow_lookup4_begin(flow_view(table), &key->four, lookup);
		flow_lookup4_continue(flow_view(table), &key->four, lookup);
		return;
	}
	flow_lookup6_begin(flow_view(table), &key->six, lookup);
	flow_lookup6_continue(flow_view(table), &key->six, lookup);
}

// The first line is full, so that the entry is in the second one. It moves to the first one after
// that has been read, and before the second one is read.
static void an_entry_that_moves_back_during_a_lookup_is_found(void **state)
{
	for (unsigned round = 0; round < 4; round++) {
		const uint8_t family = FAMILY[round / 2];
		const unsigned n_slots = family == 4 ? LINE4_SLOTS : LINE6_SLOTS;
		const struct flow_settings settings = testing_settings(100, 100, N_WORKERS);
		struct flow_table *table = testing_table(&settings);
		struct flow_lookup lookup = {.n = 1};
		struct flow_change change = {.op = FLOW_ADD};

		testing_use_actions(table, n_slots + 1);
		testing_use_variant(&table->view, round);
		table->view.hash4 = fixed4;
		table->view.hash6 = fixed6;
		for (unsigned i = 0; i <= n_slots; i++) {
			change.key = testing_key(family, i);
			change.action = 1 + i;
			assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
		}
		begin_and_continue(table, &change.key, &lookup);
		for (unsigned i = 0; i <= n_slots; i += n_slots) {
			struct flow_change delete = {.op = FLOW_DELETE,
				.key = testing_key(family, i)};
			assert_int_equal(testing_change(table, &delete, TESTING_HZ), 0);
		}
		assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
		if (family == 4)
			flow_lookup4_end(flow_view(table), &change.key.four, &lookup);
		else
			flow_lookup6_end(flow_view(table), &change.key.six, &lookup);
		assert_int_not_equal(lookup.flow[0], FLOW_NONE);
		assert_int_equal(lookup.action[0], 1 + n_slots);
		flow_destroy(table);
	}
}

// A number is not used again while a worker may still count packets of the flow that had it.
static void counts_of_packets_that_are_under_way_belong_to_the_ended_flow(void **state)
{
	struct rcu *rcu = rcu_create(1, NULL);
	const struct rcu_readers *workers = rcu_readers(rcu);
	struct ended ended = {0};
	struct flow_settings settings = testing_settings(2, 0, 1);
	struct flow_change change = {.op = FLOW_ADD, .key = testing_key(4, 1), .action = 1};
	uint32_t action;

	settings.ended = note_ended;
	settings.ctx = &ended;
	struct flow_table *table = testing_table(&settings);
	testing_use_actions(table, 1);
	flow_attach(table, rcu);
	rcu_reader_online(workers, 0);
	assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
	const uint32_t flow = testing_lookup(table, &change.key, &action);
	change.op = FLOW_DELETE;
	assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
	rcu_poll(rcu);
	assert_int_equal(testing_lookup(table, &change.key, &action), FLOW_NONE);
	change.op = FLOW_ADD;
	assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
	assert_int_not_equal(testing_lookup(table, &change.key, &action), flow);
	flow_count_packet(flow_view(table)->count[0], flow, 64, 1);
	assert_int_equal(ended.n, 0);
	rcu_reader_report(workers, 0);
	rcu_poll(rcu);
	assert_int_equal(ended.n, 1);
	assert_int_equal(ended.packets, 1);
	change.key = testing_key(4, 2);
	assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
	assert_int_equal(testing_lookup(table, &change.key, &action), flow);
	struct flow_info info;
	assert_true(flow_find(table, &change.key, TESTING_HZ, &info));
	assert_int_equal(info.packets, 0);
	rcu_reader_offline(workers, 0);
	flow_detach(table);
	flow_destroy(table);
	rcu_destroy(rcu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_see_the_old_action_or_the_new_one_while_entries_move),
		cmocka_unit_test(workers_do_not_wait_for_a_change_that_has_begun),
		cmocka_unit_test(an_entry_that_moves_back_during_a_lookup_is_found),
		cmocka_unit_test(counts_of_packets_that_are_under_way_belong_to_the_ended_flow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
