// The rings by which workers tell of packets without a flow.
#include "flow/testing.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RATE = 1000000, WORKERS = 2, ROOM = 8192, MANY = 200000 };

static struct flow_table *table;
static struct flow_learn *learn;

static int open_all(void **state)
{
	const struct flow_settings settings = testing_settings(100, 100, WORKERS);

	table = testing_table(&settings);
	learn = flow_learn_open(WORKERS, NULL);
	assert_non_null(learn);
	flow_learn_set_rate(learn, RATE);
	return 0;
}

static int close_all(void **state)
{
	flow_learn_close(learn);
	flow_destroy(table);
	return 0;
}

static struct flow_unknown unknown_of(uint8_t family, uint32_t number)
{
	const struct flow_key key = testing_key(family, number);
	struct flow_unknown unknown = {.hop = number, .iface = number % 100, .family = family};

	if (family == 6)
		unknown.six = key.six;
	else
		unknown.four = key.four;
	return unknown;
}

static unsigned put(unsigned worker, uint32_t tick, const struct flow_unknown unknown[], unsigned n)
{
	const struct flow_learn_from from = {worker, tick};

	return flow_learn_put(flow_view(table), learn, &from, unknown, n);
}

static void what_is_told_is_taken_in_order(void **state)
{
	struct flow_unknown told[4], taken[5];

	for (unsigned worker = 0; worker < WORKERS; worker++)
		for (unsigned family = 4; family <= 6; family += 2) {
			for (unsigned i = 0; i < ARRAY_LEN(told); i++)
				told[i] = unknown_of(family, i);
			assert_int_equal(put(worker, 7, told, ARRAY_LEN(told)), 0);
			assert_int_equal(flow_learn_take(learn, !worker, taken, 5), 0);
			assert_int_equal(flow_learn_take(learn, worker, taken, 3), 3);
			assert_int_equal(flow_learn_take(learn, worker, taken + 3, 2), 1);
			for (unsigned i = 0; i < ARRAY_LEN(told); i++) {
				assert_int_equal(taken[i].hop, told[i].hop);
				assert_int_equal(taken[i].iface, told[i].iface);
				assert_int_equal(taken[i].family, family);
				assert_memory_equal(&taken[i].six, &told[i].six,
					family == 6 ? sizeof(told[i].six) : sizeof(told[i].four));
			}
		}
}

static void a_key_is_told_once_in_a_tick(void **state)
{
	struct flow_unknown told[] = {unknown_of(4, 1), unknown_of(4, 2), unknown_of(4, 1)};
	struct flow_unknown taken[8];

	for (uint32_t tick = 1; tick < 4; tick++) {
		for (unsigned again = 0; again < 2; again++)
			assert_int_equal(put(0, tick, told, ARRAY_LEN(told)), 0);
		assert_int_equal(flow_learn_take(learn, 0, taken, ARRAY_LEN(taken)), 2);
	}
}

static void a_full_ring_takes_no_more_until_there_is_space(void **state)
{
	static struct flow_unknown taken[ROOM + 1];
	struct flow_unknown one;

	for (unsigned i = 0; i < ROOM; i++) {
		one = unknown_of(4, i);
		assert_true(flow_learn_has_space(learn, 0, 1));
		assert_int_equal(put(0, 1, &one, 1), 0);
	}
	one = unknown_of(4, ROOM);
	assert_false(flow_learn_has_space(learn, 0, 1));
	assert_int_equal(put(0, 1, &one, 1), 1);
	assert_int_equal(flow_learn_take(learn, 0, taken, 1), 1);
	assert_int_equal(put(0, 1, &one, 1), 0); // what was lost is not remembered as told
	assert_int_equal(flow_learn_take(learn, 0, taken, ROOM + 1), ROOM);
	for (unsigned i = 0; i < ROOM; i++)
		assert_int_equal(taken[i].hop, i + 1);
}

// An eighth of the rate and 64 in each tick; nothing without a rate.
static void a_tick_has_a_limit(void **state)
{
	enum { RATE_NOW = 80, MOST = RATE_NOW / 8 + 64 };
	struct flow_unknown taken[MOST + 1];

	flow_learn_set_rate(learn, RATE_NOW);
	for (uint32_t tick = 1; tick < 4; tick++) {
		for (unsigned i = 0; i < 2 * MOST; i++) {
			const struct flow_unknown one = unknown_of(4, i);
			assert_int_equal(put(0, tick, &one, 1), i >= MOST);
		}
		assert_false(flow_learn_has_space(learn, 0, tick));
		assert_int_equal(flow_learn_take(learn, 0, taken, MOST + 1), MOST);
	}
	flow_learn_set_rate(learn, 0);
	assert_false(flow_learn_is_on(learn));
	assert_false(flow_learn_has_space(learn, 0, 9));
}

static void *tell_many(void *n_lost)
{
	for (uint32_t i = 0; i < MANY; i++) {
		const struct flow_unknown one = unknown_of(i % 3 ? 4 : 6, i);
		*(unsigned *)n_lost += put(1, i / 1000, &one, 1);
	}
	return NULL;
}

static void a_thread_takes_while_another_one_tells(void **state)
{
	struct flow_unknown taken[50];
	unsigned n_lost = 0, n_taken = 0, n;
	uint32_t next = 0;
	pthread_t teller;
	bool has_ended = false;

	assert_int_equal(pthread_create(&teller, NULL, tell_many, &n_lost), 0);
	do {
		if (!has_ended && !pthread_tryjoin_np(teller, NULL))
			has_ended = true;
		n = flow_learn_take(learn, 1, taken, ARRAY_LEN(taken));
		for (unsigned i = 0; i < n; i++) {
			const struct flow_unknown told =
				unknown_of(taken[i].hop % 3 ? 4 : 6, taken[i].hop);

			assert_true(taken[i].hop >= next);
			next = taken[i].hop + 1;
			assert_int_equal(taken[i].family, told.family);
			assert_memory_equal(&taken[i].six, &told.six, sizeof(told.six));
		}
		n_taken += n;
	} while (n || !has_ended);
	assert_int_equal(n_taken + n_lost, MANY);
	assert_true(n_taken > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_told_is_taken_in_order),
		TEST(a_key_is_told_once_in_a_tick),
		TEST(a_full_ring_takes_no_more_until_there_is_space),
		TEST(a_tick_has_a_limit),
		TEST(a_thread_takes_while_another_one_tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
