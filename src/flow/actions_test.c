// Actions: their numbers, who uses them, and when they are free again. Tests only.
#include "flow/flow.h"

#include "flow/table.h"
#include "flow/testing.h"
#include "rcu/rcu_fast.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct flow_action for_subscriber(uint32_t subscriber)
{
	return (struct flow_action){.effect = FLOW_BY_ROUTE,
		.subscriber = subscriber,
		.dscp = FLOW_KEEP_DSCP,
		.mirror = FLOW_NO_MIRROR};
}

// What was told, by subscriber.
enum { N_SUBSCRIBERS = 64 };
struct log {
	struct flow_table *table;
	unsigned n_freed[N_SUBSCRIBERS];
	uint32_t ended; // the subscriber of the latest flow that has ended
};

static void note_freed(void *ctx, const struct flow_action *action)
{
	struct log *log = ctx;

	log->n_freed[action->subscriber]++;
}

static void note_ended(void *ctx, const struct flow_info *info)
{
	struct log *log = ctx;
	const struct flow_action *action = flow_action_of(log->table, info->action);

	assert_non_null(action);
	log->ended = action->subscriber;
}

static struct flow_table *open_table(struct log *log, uint32_t max)
{
	struct flow_settings settings = testing_settings(max, max, 1);

	settings.ended = note_ended;
	settings.action_freed = note_freed;
	settings.ctx = log;
	*log = (struct log){.table = testing_table(&settings)};
	return log->table;
}

static uint32_t use(struct flow_table *table, uint32_t subscriber)
{
	const struct flow_action action = for_subscriber(subscriber);
	uint32_t number = 0;

	assert_int_equal(flow_action_use(table, &action, &number, NULL), 0);
	assert_in_range(number, 1, FLOW_ACTIONS - 1);
	assert_memory_equal(&flow_view(table)->actions[number], &action, sizeof(action));
	assert_ptr_equal(flow_action_of(table, number), &flow_view(table)->actions[number]);
	return number;
}

static int set(struct flow_table *table, enum flow_op op, uint32_t key, uint32_t action)
{
	const struct flow_change change = {.op = op,
		.key = testing_key(key % 3 ? 4 : 6, key),
		.action = action};

	return testing_change(table, &change, TESTING_HZ);
}

static void equal_actions_have_one_number(void **state)
{
	struct log log;
	struct flow_table *table = open_table(&log, 10);
	const uint32_t one = use(table, 1), two = use(table, 2);
	struct flow_usage usage;

	assert_int_not_equal(one, two);
	assert_int_equal(use(table, 1), one);
	flow_action_unuse(table, one);
	assert_int_equal(log.n_freed[1], 0);
	flow_usage(table, &usage);
	assert_int_equal(usage.n_actions, 2);
	flow_action_unuse(table, one);
	assert_int_equal(log.n_freed[1], 1);
	assert_null(flow_action_of(table, one));
	assert_null(flow_action_of(table, 0));
	assert_null(flow_action_of(table, UINT32_MAX));
	assert_non_null(flow_action_of(table, two));
	assert_int_equal(use(table, 3), one);
	flow_destroy(table);
}

static void refuses_actions_that_mean_nothing(void **state)
{
	struct log log;
	struct flow_table *table = open_table(&log, 10);
	struct flow_action action[6];
	struct error error;
	uint32_t number;

	for (size_t i = 0; i < ARRAY_LEN(action); i++)
		action[i] = for_subscriber(1);
	action[0].effect = N_FLOW_EFFECTS;
	action[1].dscp = FLOW_KEEP_DSCP + 1;
	action[2].effect = FLOW_TO_HOP;
	action[3].held = 7;
	action[4].learnt = 1;
	action[5].withdrawn = 1;
	for (size_t i = 0; i < ARRAY_LEN(action); i++) {
		assert_int_equal(flow_action_use(table, &action[i], &number, &error), -EINVAL);
		assert_string_equal(error.text, "invalid action of a flow");
	}
	flow_destroy(table);
}

static void there_are_as_many_actions_as_fit_into_a_flow(void **state)
{
	struct log log;
	struct flow_table *table = open_table(&log, 10);
	const struct flow_action action = for_subscriber(3);
	struct error error;
	uint32_t number;

	table->actions.max = FLOW_ACTIONS - 3; // as if they were in use
	assert_int_equal(use(table, 1), FLOW_ACTIONS - 2);
	const uint32_t last = use(table, 2);
	assert_int_equal(last, FLOW_ACTIONS - 1);
	assert_int_equal(flow_action_use(table, &action, &number, &error), -ENOSPC);
	assert_string_equal(error.text,
		"no space for another action: the table holds at most 4194303");
	assert_int_equal(set(table, FLOW_ADD, 1, last), 0);
	flow_action_unuse(table, last);
	assert_int_equal(flow_action_use(table, &action, &number, NULL), -ENOSPC);
	assert_int_equal(set(table, FLOW_DELETE, 1, 0), 0);
	assert_int_equal(use(table, 3), last);
	flow_destroy(table);
}

static void flows_use_their_action(void **state)
{
	struct log log;
	struct flow_table *table = open_table(&log, 10);
	const uint32_t one = use(table, 1), two = use(table, 2);

	for (uint32_t key = 1; key <= 3; key++)
		assert_int_equal(set(table, FLOW_ADD, key, one), 0);
	assert_int_equal(set(table, FLOW_ADD, 3, two), -EEXIST);
	flow_action_unuse(table, one);
	assert_int_equal(set(table, FLOW_REPLACE, 1, two), 0);
	assert_int_equal(set(table, FLOW_REPLACE, 2, one), 0);
	assert_int_equal(set(table, FLOW_DELETE, 2, 0), 0);
	assert_int_equal(log.ended, 1);
	assert_int_equal(log.n_freed[1], 0);
	assert_int_equal(set(table, FLOW_DELETE, 3, UINT32_MAX), 0);
	assert_int_equal(log.n_freed[1], 1);
	flow_action_unuse(table, two);
	assert_int_equal(log.n_freed[2], 0);
	assert_int_equal(set(table, FLOW_DELETE, 1, 0), 0);
	assert_int_equal(log.ended, 2);
	assert_int_equal(log.n_freed[2], 1);
	flow_destroy(table);
}

// Flows of other actions stay, and the action can be learnt again meanwhile.
static void flows_of_a_withdrawn_action_end(void **state)
{
	enum { N = 20000 };
	struct flow_settings settings = testing_settings(N, N, 1);
	struct flow_table *table = testing_table(&settings);
	struct flow_action action = {.effect = FLOW_TO_HOP,
		.held = 7,
		.learnt = 1,
		.dscp = FLOW_KEEP_DSCP,
		.mirror = FLOW_NO_MIRROR};
	uint32_t learnt, again, by_user;
	struct flow_info info;
	unsigned n_turns = 0;

	assert_int_equal(flow_action_use(table, &action, &learnt, NULL), 0);
	action.learnt = 0;
	assert_int_equal(flow_action_use(table, &action, &by_user, NULL), 0);
	for (uint32_t key = 0; key < N; key++) {
		const struct flow_change change = {.op = FLOW_ADD,
			.key = testing_key(key % 2 ? 6 : 4, key),
			.action = key % 3 ? learnt : by_user};
		assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
	}
	assert_false(flow_end_withdrawn(table, TESTING_HZ));
	flow_action_withdraw(table, learnt);
	assert_int_equal(flow_view(table)->actions[learnt].withdrawn, 1);
	action.learnt = 1;
	assert_int_equal(flow_action_use(table, &action, &again, NULL), 0);
	assert_true(again != learnt);
	flow_action_unuse(table, learnt);
	while (flow_end_withdrawn(table, TESTING_HZ))
		n_turns++;
	assert_in_range(n_turns, 2, N);
	for (uint32_t key = 0; key < N; key++) {
		const struct flow_key of = testing_key(key % 2 ? 6 : 4, key);
		assert_int_equal(flow_find(table, &of, TESTING_HZ, &info), key % 3 == 0);
	}
	assert_null(flow_action_of(table, learnt));
	flow_destroy(table);
}

static void flows_that_end_by_themselves_leave_their_action(void **state)
{
	struct log log;
	struct flow_table *table = open_table(&log, 10);
	const struct flow_change change = {.op = FLOW_ADD,
		.key = testing_key(4, 1),
		.life = FLOW_FIXED_END,
		.lasts_ms = 1000,
		.action = use(table, 1)};

	assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
	flow_action_unuse(table, change.action);
	while (flow_age(table, TESTING_HZ * 3 / 2))
		;
	assert_int_equal(log.n_freed[1], 0);
	while (flow_age(table, TESTING_HZ * 5))
		;
	assert_int_equal(log.ended, 1);
	assert_int_equal(log.n_freed[1], 1);
	flow_destroy(table);
}

static void refuses_flows_with_an_action_that_is_not_in_use(void **state)
{
	struct log log;
	struct flow_table *table = open_table(&log, 2);
	const uint32_t one = use(table, 1), gone = use(table, 2);
	const uint32_t refused[] = {0, gone, gone + 1, FLOW_ACTIONS - 1, FLOW_ACTIONS,
		FLOW_ACTIONS | one, UINT32_MAX};

	flow_action_unuse(table, gone);
	assert_int_equal(set(table, FLOW_ADD, 1, one), 0);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		assert_int_equal(set(table, FLOW_ADD, 2, refused[i]), -EINVAL);
		assert_int_equal(set(table, FLOW_REPLACE, 1, refused[i]), -EINVAL);
	}
	// Those for which there is no space do not use it, either.
	assert_int_equal(set(table, FLOW_ADD, 2, one), 0);
	assert_int_equal(set(table, FLOW_ADD, 4, one), -ENOSPC);
	assert_int_equal(table->actions.n_users[one], 3);
	flow_destroy(table);
}

static void an_action_is_in_use_until_workers_have_passed(void **state)
{
	struct rcu *rcu = rcu_create(1, NULL);
	struct log log;
	struct flow_table *table = open_table(&log, 10);
	const uint32_t one = use(table, 1), two = use(table, 2);

	flow_attach(table, rcu);
	rcu_reader_online(rcu_readers(rcu), 0);
	assert_int_equal(set(table, FLOW_ADD, 1, one), 0);
	assert_int_equal(set(table, FLOW_ADD, 2, two), 0);
	flow_action_unuse(table, one);
	flow_action_unuse(table, two);
	assert_int_equal(set(table, FLOW_REPLACE, 1, two), 0);
	assert_int_equal(set(table, FLOW_DELETE, 1, 0), 0);
	assert_int_equal(set(table, FLOW_DELETE, 2, 0), 0);
	flow_age(table, TESTING_HZ);
	assert_int_equal(log.n_freed[1] + log.n_freed[2], 0);
	assert_int_not_equal(use(table, 3), one);
	assert_int_equal(use(table, 2), two); // taken into use again
	rcu_reader_report(rcu_readers(rcu), 0);
	flow_age(table, TESTING_HZ);
	assert_int_equal(log.n_freed[1], 1);
	assert_int_equal(log.n_freed[2], 0);
	assert_int_equal(use(table, 4), one);
	flow_action_unuse(table, two);
	assert_int_equal(log.n_freed[2], 1);
	rcu_reader_offline(rcu_readers(rcu), 0);
	flow_detach(table);
	flow_destroy(table);
	rcu_destroy(rcu);
}

static void describe(void *ctx, uint32_t action, uint8_t record[FLOW_RECORD_BYTES])
{
	memcpy(record, flow_action_of(ctx, action), sizeof(struct flow_action));
}

static void check_saved_actions(const char *path, uint32_t first, uint32_t second)
{
	struct error error = {""};
	struct flow_load *load = flow_load_open(open(path, O_RDONLY), path, &error);
	struct flow_action action[2];
	uint32_t n;

	assert_non_null(load);
	while (flow_load_check(load, &error) > 0)
		;
	assert_string_equal(error.text, "");
	const uint8_t(*record)[FLOW_RECORD_BYTES] = flow_load_actions(load, &n);
	assert_int_equal(n, 2);
	for (unsigned i = 0; i < 2; i++)
		memcpy(&action[i], record[i], sizeof(action[i]));
	assert_int_equal(action[0].subscriber, first);
	assert_int_equal(action[1].subscriber, second);
	flow_load_close(load);
}

// The number of an action that a save has seen does not become another action's before its end.
static void an_action_means_the_same_during_a_save(void **state)
{
	enum { N = 10000 };
	char path[] = "/tmp/flow_actions_test.XXXXXX";
	struct log log;
	struct flow_table *table = open_table(&log, N);
	const uint32_t one = use(table, 1);
	int more;

	close(mkstemp(path));
	for (uint32_t key = 0; key < N; key++)
		assert_int_equal(set(table, FLOW_ADD, key, one), 0);
	flow_action_unuse(table, one);
	const struct flow_save_settings settings = {.path = path,
		.describe = describe,
		.ctx = table};
	struct flow_save *save = flow_save_open(table, &settings, NULL);
	assert_int_equal(flow_save_step(save, TESTING_HZ, 1, NULL), 1);
	const uint32_t two = use(table, 2);
	for (uint32_t key = 0; key < N; key++)
		assert_int_equal(set(table, FLOW_REPLACE, key, two), 0);
	assert_int_equal(log.n_freed[1], 0);
	do
		more = flow_save_step(save, TESTING_HZ, 1, NULL);
	while (more > 0);
	assert_int_equal(more, 0);
	flow_save_close(save);
	assert_int_equal(log.n_freed[1], 1);
	check_saved_actions(path, 1, 2);
	unlink(path);
	flow_destroy(table);
}

// Random uses against a plain count; flows of key k have the action of `wanted[k]`, 0: no flow.
enum { N_KEYS = 200 };
struct model {
	struct log log;
	unsigned n_uses[N_SUBSCRIBERS], n_freed[N_SUBSCRIBERS];
	uint32_t wanted[N_KEYS];
};

static unsigned users_of(const struct model *model, uint32_t subscriber)
{
	unsigned n = model->n_uses[subscriber];

	for (unsigned key = 0; key < N_KEYS; key++)
		n += model->wanted[key] == subscriber;
	return n;
}

static void step(struct model *model)
{
	const uint32_t subscriber = 1 + testing_below(N_SUBSCRIBERS - 1);
	const unsigned key = testing_below(N_KEYS);
	struct flow_table *table = model->log.table;
	const uint32_t number = use(table, subscriber);
	unsigned before[N_SUBSCRIBERS];

	for (unsigned i = 1; i < N_SUBSCRIBERS; i++)
		before[i] = users_of(model, i) + (i == subscriber);
	switch (testing_below(4)) {
	case 0:
		model->n_uses[subscriber]++;
		use(table, subscriber);
		break;
	case 1:
		if (!model->n_uses[subscriber])
			break;
		model->n_uses[subscriber]--;
		flow_action_unuse(table, number);
		break;
	case 2:
		assert_int_equal(set(table, FLOW_REPLACE, key, number), 0);
		model->wanted[key] = subscriber;
		break;
	case 3:
		assert_int_equal(set(table, FLOW_DELETE, key, 0), model->wanted[key] ? 0 : -ENOENT);
		model->wanted[key] = 0;
		break;
	}
	flow_action_unuse(table, number);
	for (unsigned i = 1; i < N_SUBSCRIBERS; i++) {
		model->n_freed[i] += before[i] && !users_of(model, i);
		assert_int_equal(model->log.n_freed[i], model->n_freed[i]);
	}
}

static void counts_agree_with_a_plain_count(void **state)
{
	static struct model model;
	struct flow_usage usage;
	unsigned n = 0;

	open_table(&model.log, N_KEYS);
	for (unsigned i = 0; i < 20000; i++)
		step(&model);
	for (unsigned i = 1; i < N_SUBSCRIBERS; i++)
		n += users_of(&model, i) != 0;
	flow_usage(model.log.table, &usage);
	assert_int_equal(usage.n_actions, n);
	for (unsigned i = 1; i < N_SUBSCRIBERS; i++) {
		const uint32_t number = use(model.log.table, i);
		assert_int_equal(model.log.table->actions.n_users[number], users_of(&model, i) + 1);
	}
	flow_destroy(model.log.table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_actions_have_one_number),
		cmocka_unit_test(refuses_actions_that_mean_nothing),
		cmocka_unit_test(there_are_as_many_actions_as_fit_into_a_flow),
		cmocka_unit_test(flows_use_their_action),
		cmocka_unit_test(flows_of_a_withdrawn_action_end),
		cmocka_unit_test(flows_that_end_by_themselves_leave_their_action),
		cmocka_unit_test(refuses_flows_with_an_action_that_is_not_in_use),
		cmocka_unit_test(an_action_is_in_use_until_workers_have_passed),
		cmocka_unit_test(an_action_means_the_same_during_a_save),
		cmocka_unit_test(counts_agree_with_a_plain_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
