// Policers in virtual time: sequences worked by hand, random arrivals beside a model of exact
// integers, and threads that share a bucket. Tests only.
#include "police/police.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MTU = 1500, N_THREADS = 2, STEPS = 20000 };
#define HZ 1000000000ull // a tick is a nanosecond
#define US 1000ull
#define MS 1000000ull
#define SECOND HZ

typedef __int128 wide;

static bool passes(struct police *police, uint64_t now, uint32_t bytes)
{
	return police_take(police, now, &bytes, 1);
}

static struct police_rate rate_of(uint64_t bits, uint64_t burst)
{
	return (struct police_rate){bits, burst, HZ};
}

// 8 Mbit/s are one byte a microsecond.
static void a_sequence_worked_by_hand(void **state)
{
	static const struct {
		uint64_t us;
		uint32_t bytes, left; // afterwards
		bool passes;
	} rows[] = {
		{0, 1500, 1500, true},
		{0, 1501, 1500, false},
		{0, 1500, 0, true},
		{0, 1, 0, false},
		{999, 1000, 999, false},
		{1000, 1000, 0, true},
		{1100, 64, 36, true},
		{1100, 64, 36, false},
		{1128, 64, 0, true},
		{4127, 3000, 2999, false},
		{4128, 3000, 0, true},
		{9000000, 3001, 3000, false}, // not more than the burst after any time
		{9000000, 3000, 0, true},
		{8999000, 1, 0, false}, // a worker whose time is behind
		{9000001, 1, 0, true},
	};
	const struct police_rate rate = rate_of(8000000, 3000);
	struct police police;

	(void)state;
	police_start(&police, &rate, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(passes(&police, rows[i].us * US, rows[i].bytes), rows[i].passes);
		assert_int_equal(police_left(&police, rows[i].us * US), rows[i].left);
	}
}

static void a_burst_is_judged_as_its_packets_one_by_one(void **state)
{
	const uint32_t cost[] = {1000, 2500, 1000, 900, 200, 100};
	const struct police_rate rate = rate_of(8000000, 3000);
	struct police police;

	(void)state;
	police_start(&police, &rate, 0);
	assert_int_equal(police_take(&police, 0, cost, 6), 1 | 4 | 8 | 32);
	assert_int_equal(police_left(&police, 0), 0);
}

static void what_is_counted(void **state)
{
	(void)state;
	assert_int_equal(police_cost(&(struct police_measure){.overhead = 24}, 1500), 1524);
	assert_int_equal(police_cost(&(struct police_measure){.counts_packets = true}, 1500), 1);
}

// Exact: tokens times 8 times HZ.
struct model {
	wide tokens, most, unit;
	uint64_t bits, then;
};

static wide model_left(struct model *model, uint64_t now)
{
	model->tokens += (wide)(now - model->then) * model->bits;
	model->tokens = MIN_OF(model->tokens, model->most);
	model->then = now;
	return model->tokens;
}

// The largest excess over the rate in any window that ends now (Kadane's maximum sum).
struct windows {
	wide excess, worst, passed;
};

static void add_to_windows(struct windows *windows, wide since, wide passed)
{
	windows->excess = windows->excess > since ? windows->excess - since : 0;
	windows->excess += passed;
	windows->worst = windows->worst > windows->excess ? windows->worst : windows->excess;
	windows->passed += passed;
}

// Packets come at `load` times the rate, half of them in bursts at one time.
static void run_random(uint64_t bits, uint64_t burst, unsigned load)
{
	const struct police_rate rate = rate_of(bits, burst);
	struct model model = {.unit = (wide)8 * HZ, .bits = bits};
	struct windows windows = {.worst = 0};
	struct police police;
	uint64_t now = 12345, began = now, rest = 0;

	model.most = model.tokens = model.unit * burst;
	model.then = now;
	police_start(&police, &rate, now);
	for (unsigned i = 0; i < STEPS; i++) {
		const uint32_t bytes = 64 + rand() % (MTU - 63);
		const wide gap = 2 * model.unit * bytes * (rand() & 1) + rest;

		rest = gap % (bits * load);
		const uint64_t before = now;
		now += gap / (bits * load);
		const wide left = model_left(&model, now), need = model.unit * bytes;
		const bool does = passes(&police, now, bytes);

		// Both may differ by rounding only, which is less than a byte.
		if (does != (need <= left))
			assert_true(need - left < model.unit && left - need < model.unit);
		model.tokens -= does ? need : 0;
		add_to_windows(&windows, (wide)(now - before) * bits, does ? need : 0);
	}
	assert_true(windows.worst <= model.unit * (burst + 1));
	if (load == 3 && burst >= 10 * MTU) // the bucket never runs over
		assert_true(windows.passed >= (wide)(now - began) * bits - model.unit * MTU);
}

static void any_window_has_its_rate_and_one_burst_at_most(void **state)
{
	static const uint64_t bits[] = {8000, 64000, 1000000, 333333333, 10000000000,
		POLICE_MOST_RATE};

	(void)state;
	srand(20);
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		for (unsigned load = 1; load <= 3; load++) {
			run_random(bits[i], MTU, load);
			run_random(bits[i], 10 * MTU, load);
			run_random(bits[i], bits[i] / 800 + MTU, load);
		}
}

static void ten_seconds_of_overload_get_the_rate(void **state)
{
	static const uint64_t hz[] = {25000000, HZ, 2596000000, 5000000000};

	(void)state;
	for (size_t i = 0; i < sizeof(hz) / sizeof(hz[0]); i++)
		for (uint64_t bits = 8000; bits <= POLICE_MOST_RATE; bits *= 50) {
			const struct police_rate rate = {bits, bits / 80 + 2 * MTU, hz[i]};
			uint64_t passed = 0;
			struct police police;

			police_start(&police, &rate, 7);
			// Each step is an eighth of a burst, and offers three times as much.
			for (unsigned step = 0; step <= 800; step++)
				for (uint32_t left = 3 * (bits / 640) + MTU, one; left;
					left -= one) {
					one = MIN_OF(left, bits / 6400 + MTU);
					passed += passes(&police, 7 + step * hz[i] / 80, one) ? one
					                                                      : 0;
				}
			assert_in_range(passed, 10 * bits / 8 - bits / 6400 - MTU,
				10 * bits / 8 + rate.burst + 1);
		}
}

static void no_time_of_silence_gives_more_than_a_burst(void **state)
{
	const struct police_rate fast = rate_of(POLICE_MOST_RATE, POLICE_MOST_BURST);
	const struct police_rate slow = rate_of(8000, MTU);

	(void)state;
	for (unsigned shift = 20; shift < 63; shift++)
		for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
			const struct police_rate *rate = is_fast ? &fast : &slow;
			struct police police;
			uint64_t passed = 0;

			police_start(&police, rate, 0);
			assert_true(passes(&police, 0, MTU));
			while (passes(&police, 1ull << shift, rate->burst / 2))
				passed++;
			assert_true(passed <= 2);
			assert_true(passed == 2 || shift > 40 || (shift < 31));
		}
}

// After 31 hours at 10 Gbit/s the clock of a bucket is as it was: shortly before, it must not seem
// to be ahead.
static void no_time_of_silence_takes_tokens(void **state)
{
	const uint64_t bits = 10000000000, around = (1ull << 63) / 81920;
	const struct police_rate rate = rate_of(bits, MTU);

	(void)state;
	for (uint64_t before = 40 * SECOND; before < around; before *= 2) {
		struct police police;

		police_start(&police, &rate, 0);
		assert_true(passes(&police, 0, MTU));
		assert_true(passes(&police, around - before, MTU));
	}
}

static void a_change_of_the_rate_neither_gives_nor_takes_tokens(void **state)
{
	const struct police_rate slow = rate_of(8000, 64000), fast = rate_of(8000000000, 64000),
				 narrow = rate_of(8000, 2000);
	struct police police;

	(void)state;
	police_start(&police, &slow, 0);
	assert_true(passes(&police, 0, 60000));
	assert_false(police_change(&police, &slow, 0));
	for (unsigned i = 0; i < 1000; i++) {
		assert_true(police_change(&police, i & 1 ? &slow : &fast, SECOND));
		assert_int_equal(police_left(&police, SECOND), 4000 + 1000);
	}
	assert_true(police_change(&police, &narrow, SECOND));
	assert_int_equal(police_left(&police, SECOND), 2000);
	assert_true(police_change(&police, &fast, SECOND));
	assert_int_equal(police_left(&police, SECOND), 2000); // clipped, and not filled again
	assert_int_equal(police_left(&police, SECOND + 2 * US), 4000);
}

// The time of the change is before that of packets that have passed already.
static void what_was_due_before_a_change_is_not_due_again(void **state)
{
	const struct police_rate fast = rate_of(8000000000, 2000), slow = rate_of(8000000, 2000);
	struct police police;

	(void)state;
	police_start(&police, &fast, 0);
	assert_true(passes(&police, 0, 2000));
	for (unsigned us = 1; us <= 100; us++)
		assert_true(passes(&police, us * US, 1000));
	assert_true(police_change(&police, &slow, 10 * US));
	assert_false(passes(&police, 100 * US, 1));
	assert_true(passes(&police, 102 * US, 1)); // no debt either
	assert_false(passes(&police, 102 * US, 1));
}

struct shared {
	struct police police;
	uint64_t passed[N_THREADS], rounds[N_THREADS]; // atomic
};

struct taker {
	struct shared *shared;
	unsigned number;
};

// Takes as much as it gets, over and over; time goes on by a microsecond each round.
static void *take_all(void *taker_)
{
	const struct taker *taker = taker_;
	struct shared *shared = taker->shared;
	const uint32_t cost[] = {400, 100, 800};

	for (uint64_t round = 1; round <= STEPS; round++) {
		const uint64_t passed = police_take(&shared->police, round * US, cost, 3);

		for (unsigned i = 0; i < 3; i++)
			shared->passed[taker->number] += passed >> i & 1 ? cost[i] : 0;
		__atomic_store_n(&shared->rounds[taker->number], round, __ATOMIC_RELEASE);
	}
	return NULL;
}

static uint64_t run_threads(struct shared *shared, void (*beside)(struct shared *shared))
{
	struct taker taker[N_THREADS];
	pthread_t thread[N_THREADS];
	uint64_t passed = 0;

	for (unsigned i = 0; i < N_THREADS; i++) {
		taker[i] = (struct taker){shared, i};
		assert_int_equal(pthread_create(&thread[i], NULL, take_all, &taker[i]), 0);
	}
	if (beside)
		beside(shared);
	for (unsigned i = 0; i < N_THREADS; i++) {
		pthread_join(thread[i], NULL);
		passed += shared->passed[i];
	}
	return passed;
}

static void threads_share_one_rate(void **state)
{
	const struct police_rate rate = rate_of(4000000000, 3000); // 500 bytes a round
	struct shared shared = {.passed = {0}};

	(void)state;
	police_start(&shared.police, &rate, 0);
	assert_in_range(run_threads(&shared, NULL), 500ull * STEPS - MTU,
		500ull * STEPS + 3000 + 1);
}

// All threads have begun another round since, so that none uses old terms, or have ended.
static void wait_for_rounds(const struct shared *shared)
{
	for (unsigned i = 0; i < N_THREADS; i++) {
		const uint64_t then = __atomic_load_n(&shared->rounds[i], __ATOMIC_ACQUIRE);

		while (__atomic_load_n(&shared->rounds[i], __ATOMIC_ACQUIRE) <
			MIN_OF(then + 2, STEPS))
			;
	}
}

static void change_all_the_time(struct shared *shared)
{
	const struct police_rate rates[] = {rate_of(4000000000, 3000), rate_of(400000000, 2000)};
	uint64_t round = 0;

	for (unsigned i = 1; round < STEPS; i++) {
		round = __atomic_load_n(&shared->rounds[i % N_THREADS], __ATOMIC_ACQUIRE);
		if (police_change(&shared->police, &rates[i & 1], round * US))
			wait_for_rounds(shared);
	}
}

static void changes_beside_threads_give_them_no_tokens(void **state)
{
	const struct police_rate rate = rate_of(4000000000, 3000);
	struct shared shared = {.passed = {0}};

	(void)state;
	police_start(&shared.police, &rate, 0);
	const uint64_t passed = run_threads(&shared, change_all_the_time);

	assert_in_range(passed, 3000, 500ull * STEPS + 3000 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sequence_worked_by_hand),
		cmocka_unit_test(a_burst_is_judged_as_its_packets_one_by_one),
		cmocka_unit_test(what_is_counted),
		cmocka_unit_test(any_window_has_its_rate_and_one_burst_at_most),
		cmocka_unit_test(ten_seconds_of_overload_get_the_rate),
		cmocka_unit_test(no_time_of_silence_gives_more_than_a_burst),
		cmocka_unit_test(no_time_of_silence_takes_tokens),
		cmocka_unit_test(a_change_of_the_rate_neither_gives_nor_takes_tokens),
		cmocka_unit_test(what_was_due_before_a_change_is_not_due_again),
		cmocka_unit_test(threads_share_one_rate),
		cmocka_unit_test(changes_beside_threads_give_them_no_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
