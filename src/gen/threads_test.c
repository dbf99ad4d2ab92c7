// Runs that are handed from the control thread to workers and back; also run under ThreadSanitizer.
// Tests only.
#include "gen/fake_ctx.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <rte_cycles.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define STREAM(name, from, to)                                                                     \
	"{\"name\": \"" name "\", \"from\": \"" from "\", \"to\": \"" to                           \
	"\", \"dst_mac\": \"02:00:00:00:00:99\", \"rate\": \"1 Mpps\"}"
#define FEW(name, port)                                                                            \
	"{\"name\": \"" name "\", \"from\": \"" port "\", \"to\": \"" port                         \
	"\", \"dst_mac\": \"02:00:00:00:00:99\", \"rate\": \"max\", \"frames\": 100}"
#define STRAIGHT "[" STREAM("a", "left", "left") ", " STREAM("b", "right", "right") "]"
#define ACROSS "[" STREAM("a", "left", "right") ", " STREAM("b", "right", "left") "]"

static struct gen *gen;
static bool is_running;

static void open_with(const char *streams)
{
	json_error_t error;
	json_t *list = json_loads(streams, 0, &error);

	assert_non_null(list);
	gen = fake_load(list);
}

static int close_it(void **state)
{
	if (!gen)
		return 0; // skipped
	json_t *list = (json_t *)gen->streams;

	if (is_running)
		gen_stop(gen);
	is_running = false;
	gen_close(gen);
	json_decref(list);
	gen = NULL;
	assert_int_equal(fake.n_senders, 0);
	assert_int_equal(fake.n_wrong, 0);
	return 0;
}

static void pause_ms(unsigned ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000l}, NULL);
}

static void start_workers(void)
{
	assert_int_equal(gen_start(gen, NULL), 0);
	is_running = true;
}

static void send_for(double seconds)
{
	const struct gen_order order = {.seconds = seconds, .delay_s = 0.0005};
	struct error error = {""};

	if (gen_send(gen, &order, &error))
		fail_msg("refused: %s", error.text);
}

static void await_done(void)
{
	uint64_t start_ns = clock_now_ns();

	while (gen_state(gen) != GEN_DONE) {
		assert_true(clock_now_ns() - start_ns < 60000000000);
		pause_ms(1);
	}
}

static uint64_t sent_by(unsigned stream)
{
	return stats_read(&sender_counters(gen->current->sender[stream])->sent);
}

// This thread acts as a worker that takes over the current run.
static void take_up(unsigned worker)
{
	__atomic_store_n(&gen->worker[worker].held, gen->current, __ATOMIC_RELEASE);
}

static struct run *make_run(unsigned number)
{
	struct gen_streams *streams = calloc(1, sizeof(*streams));
	struct gen_port ports[] = {{.name = "left"}, {.name = "right"}};
	struct error error = {""};
	struct run *run;

	if (gen_read_streams(streams, gen->streams, ports, 2, &error))
		fail_msg("refused: %s", error.text);
	const struct run_terms terms = {.n_ports = 2,
		.worker_of = gen->worker_of,
		.streams = streams,
		.number = number,
		.hz = FAKE_HZ};
	assert_int_equal(run_create(&run, &terms, &error), 0);
	free(streams);
	return run;
}

static void a_run_lives_until_the_last_worker_has_let_go(void **state)
{
	open_with(STRAIGHT);
	take_up(0);
	take_up(1);
	hand_over(gen, make_run(1));
	assert_int_equal(hand_poll(gen), 0);
	take_up(0);
	take_up(1);
	assert_int_equal(hand_poll(gen), -1);
	hand_over(gen, make_run(2));
	hand_over(gen, make_run(3));
	assert_int_equal(fake.n_senders, 6);
	take_up(0);
	assert_int_equal(hand_poll(gen), 1);
	assert_int_equal(fake.n_senders, 6);
	take_up(1);
	assert_int_equal(hand_poll(gen), -1);
	assert_int_equal(fake.n_senders, 2);
}

static void names_a_worker_that_does_not_come_and_sends_nothing(void **state)
{
	const struct gen_order order = {.seconds = 1};
	struct error error = {""};

	open_with(STRAIGHT);
	gen->patience_s = 1;
	take_up(0);
	take_up(1);
	assert_int_equal(gen_send(gen, &order, &error), -EBUSY);
	assert_string_equal(error.text,
		"worker 0 (core 4) has not completed a loop for 1 s, so nothing is sent; another "
		"thread may occupy its core: give the worker a core of its own");
	assert_int_equal(gen_state(gen), GEN_DONE);
	assert_int_equal(gen_send(gen, &order, &error), -EBUSY);
	assert_int_equal(gen->current->number, 1);
}

// The offset added by __wrap_clock_gettime, and the number of __wrap_nanosleep calls since.
static uint64_t ahead_s;
static unsigned n_naps;

static void workers_come_late(void)
{
	if (n_naps++ == 0)
		ahead_s = 3600; // a VM that was suspended and resumed
	if (n_naps < 3)
		return;
	take_up(0);
	take_up(1);
}

static void (*on_nap)(void);

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	int result = __real_clock_gettime(clock, t);

	t->tv_sec += ahead_s;
	return result;
}

int __real_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	if (on_nap)
		on_nap();
	return __real_nanosleep(t, left);
}

static void a_machine_that_stood_still_is_no_worker_that_does_not_come(void **state)
{
	struct error error = {""};

	open_with(STRAIGHT);
	take_up(0);
	take_up(1);
	hand_over(gen, make_run(1));
	n_naps = 0;
	on_nap = workers_come_late;
	int err = hand_await(gen, &error);
	on_nap = NULL;
	ahead_s = 0;
	assert_string_equal(error.text, "");
	assert_int_equal(err, 0);
	assert_int_equal(n_naps, 3);
}

static void workers_take_up_each_run_and_send_all_of_it(void **state)
{
	open_with("[" FEW("a", "left") ", " FEW("b", "right") "]");
	start_workers();
	for (unsigned i = 1; i <= 60; i++) {
		send_for(0);
		assert_int_equal(gen->current->number, i);
		await_done();
		assert_int_equal(sent_by(0) + sent_by(1), 200);
		assert_int_equal(hand_poll(gen), -1);
		assert_int_equal(fake.n_senders, 2);
	}
}

static void all_senders_begin_together_and_end_together(void **state)
{
	open_with(STRAIGHT);
	start_workers();
	send_for(0.05);
	await_done();
	const struct run *run = gen->current;
	for (unsigned i = 0; i < 2; i++) {
		const struct sender_counters *c = sender_counters(run->sender[i]);

		if (!stats_read(&c->sent))
			continue; // its core was taken away for that long
		assert_true(stats_read(&c->first_tsc) >= run->start);
		assert_true(stats_read(&c->last_tsc) < run->end);
	}
	assert_true(run->end - run->start == FAKE_HZ / 20);
}

static void halt_ends_sending_at_once(void **state)
{
	open_with(STRAIGHT);
	start_workers();
	send_for(3600);
	while (!sent_by(0) || !sent_by(1))
		pause_ms(1);
	__atomic_store_n(&gen->current->is_halted, true, __ATOMIC_RELAXED);
	await_done();
	uint64_t sent = sent_by(0);
	pause_ms(5);
	assert_int_equal(sent_by(0), sent);
}

static void workers_end_in_the_middle_of_a_run(void **state)
{
	open_with(ACROSS);
	start_workers();
	send_for(3600);
	gen_stop(gen);
	is_running = false;
	assert_null(gen->worker[0].held);
}

// On a busy machine the two workers may fail to meet for a second, but not ten times.
static void measures_the_offset_of_two_workers_before_and_after(void **state)
{
	bool is_measured = false;

	if (fake_cpus() < FAKE_WORKERS)
		skip();
	open_with(ACROSS);
	start_workers();
	for (unsigned i = 0; i < 10 && !is_measured; i++) {
		send_for(0.002);
		await_done();
		const struct run *run = gen->current;
		assert_int_equal(run->n_pairs, 1); // one for both directions
		assert_true(run->is_measured_again);
		is_measured = run->is_measured_before && run->pair[0].n_before >= 1 &&
		              run_has_measured_since(run);
	}
	assert_true(is_measured);
}

static void needs_no_offset_where_one_worker_does_both(void **state)
{
	open_with(STRAIGHT);
	start_workers();
	send_for(0.002);
	assert_int_equal(gen->current->n_pairs, 0);
	await_done();
}

static void gives_up_on_a_worker_that_does_not_answer(void **state)
{
	struct offset_pair pair = {.answerer = 1};
	uint64_t start_ns = clock_now_ns();

	open_with(STRAIGHT);
	offset_ask(&pair, 1, FAKE_HZ);
	offset_answer(&pair, 2, FAKE_HZ);
	assert_int_equal(pair.n_measured, 0);
	assert_true(clock_now_ns() - start_ns < 60000000000);
}

struct shifted {
	struct offset_pair pair;
	uint64_t shift;
};

// Same as offset_answer, on a core whose TSC is ahead.
static void *answer_shifted(void *arg)
{
	struct shifted *s = arg;

	for (uint64_t i = 0; i < OFFSET_EXCHANGES; i++) {
		uint64_t number = OFFSET_EXCHANGES + i;

		while (__atomic_load_n(&s->pair.question.number, __ATOMIC_ACQUIRE) != number)
			;
		__atomic_store_n(&s->pair.answer.tsc, rte_rdtsc() + s->shift, __ATOMIC_RELAXED);
		__atomic_store_n(&s->pair.answer.number, number, __ATOMIC_RELEASE);
	}
	return NULL;
}

// Within the duration of the fastest exchange, because the core may be shared here.
static void finds_a_tsc_that_is_ahead(void **state)
{
	static struct shifted s = {.shift = 1ull << 40};
	pthread_t thread;

	open_with(STRAIGHT);
	assert_int_equal(pthread_create(&thread, NULL, answer_shifted, &s), 0);
	offset_ask(&s.pair, 1, 1000ull * FAKE_HZ);
	pthread_join(thread, NULL);
	assert_int_equal(s.pair.n_measured, 1);
	assert_true(s.pair.largest > s.shift - (1ull << 33));
	assert_true(s.pair.largest < s.shift + (1ull << 33));
}

#define TEST(name) cmocka_unit_test_teardown(name, close_it)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_run_lives_until_the_last_worker_has_let_go),
		TEST(names_a_worker_that_does_not_come_and_sends_nothing),
		TEST(a_machine_that_stood_still_is_no_worker_that_does_not_come),
		TEST(workers_take_up_each_run_and_send_all_of_it),
		TEST(all_senders_begin_together_and_end_together),
		TEST(halt_ends_sending_at_once),
		TEST(workers_end_in_the_middle_of_a_run),
		TEST(measures_the_offset_of_two_workers_before_and_after),
		TEST(needs_no_offset_where_one_worker_does_both),
		TEST(gives_up_on_a_worker_that_does_not_answer),
		TEST(finds_a_tsc_that_is_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
