// The worker's loop with a fake device, which floods it or keeps it waiting.
#include "gen/fake_ctx.h"

#include "base/clock.h"

#include <rte_cycles.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { DEVICE = RTE_MAX_ETHPORTS - 1, BURST = 64, STALL_MS = 20, OFTEN = 3000, ATTEMPTS = 20 };

#define FROM_TO_LEFT(from, rate)                                                                   \
	"[{\"from\": \"" from "\", \"to\": \"left\", \"dst_mac\": \"02:00:00:00:00:99\", "         \
	"\"rate\": \"" rate "\", \"frames\": 1000}]"
#define TO_LEFT(rate) FROM_TO_LEFT("left", rate)

// The device behind port left; atomic, relaxed.
static struct {
	unsigned n;            // frames returned by each poll
	bool is_stall;         // the next poll takes STALL_MS
	uint64_t burst_cycles; // duration of a poll that returns frames
	uint64_t n_polls;
} device;
static struct rte_mbuf mbufs[BURST];
static void *queue_data[RTE_MAX_QUEUES_PER_PORT] = {&device};
static void *no_callbacks[RTE_MAX_QUEUES_PER_PORT];
static struct gen *gen;
static json_t *streams;

static uint16_t give(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	if (__atomic_load_n(&device.is_stall, __ATOMIC_RELAXED)) {
		nanosleep(&(struct timespec){.tv_nsec = STALL_MS * 1000000l}, NULL);
		__atomic_store_n(&device.is_stall, false, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&device.n_polls, 1, __ATOMIC_RELAXED);
	n = RTE_MIN(n, __atomic_load_n(&device.n, __ATOMIC_RELAXED));
	uint64_t cycles = n ? __atomic_load_n(&device.burst_cycles, __ATOMIC_RELAXED) : 0;
	for (uint64_t start = rte_rdtsc(); rte_rdtsc() - start < cycles;)
		;
	for (uint16_t i = 0; i < n; i++)
		mbuf[i] = &mbufs[i];
	return n;
}

int sink_stream_create(struct sink_stream **out, const struct gen_stream *stream,
	struct error *error)
{
	*out = aligned_alloc(_Alignof(struct sink_stream), sizeof(**out));
	assert_non_null(*out);
	memset(*out, 0, sizeof(**out));
	return 0;
}

void sink_stream_destroy(struct sink_stream *stream)
{
	free(stream);
}

void sink_take(struct sink *sink, struct sink_port *counters, struct rte_mbuf *mbuf[], uint16_t n,
	uint8_t port, uint64_t now)
{
	stats_add(&counters->rx_packets, n);
}

static bool may_sleep;
static uint64_t long_gap; // 0: the default

static void open_with(const char *text)
{
	struct port_worker *worker = port_worker(NULL, 0);

	memset(&device, 0, sizeof(device));
	rte_eth_fp_ops[DEVICE].rx_pkt_burst = give;
	rte_eth_fp_ops[DEVICE].rxq.data = queue_data;
	rte_eth_fp_ops[DEVICE].rxq.clbk = no_callbacks;
	streams = json_loads(text, 0, NULL);
	assert_non_null(streams);
	gen = fake_load(streams);
	if (long_gap)
		gen->worker[0].long_gap = long_gap;
	worker->n_queues = 1;
	worker->may_sleep = may_sleep;
	worker->queues[0] = (struct port_queue){.device = DEVICE, .port = 0};
	assert_int_equal(gen_start(gen, NULL), 0);
}

static int close_it(void **state)
{
	gen_stop(gen);
	gen_close(gen);
	json_decref(streams);
	assert_int_equal(fake.n_wrong, 0);
	return 0;
}

static void begin_run(double delay_s)
{
	const struct gen_order order = {.delay_s = delay_s};
	struct error error = {""};

	if (gen_send(gen, &order, &error))
		fail_msg("refused: %s", error.text);
}

static void await(bool (*is_so)(void))
{
	uint64_t start_ns = clock_now_ns();

	while (!is_so()) {
		assert_true(clock_now_ns() - start_ns < 60000000000);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

static bool is_done(void)
{
	return gen_state(gen) == GEN_DONE;
}

static uint64_t polls(void)
{
	return __atomic_load_n(&device.n_polls, __ATOMIC_RELAXED);
}

static bool has_polled_often(void)
{
	return polls() > OFTEN;
}

static void await_polls(unsigned n)
{
	uint64_t start_ns = clock_now_ns();

	for (uint64_t before = polls(); polls() < before + n;)
		assert_true(clock_now_ns() - start_ns < 60000000000);
}

// The worker stalls during a poll, then polls ten more times.
static void stall_worker(void)
{
	uint64_t start_ns = clock_now_ns();

	__atomic_store_n(&device.is_stall, true, __ATOMIC_RELAXED);
	while (__atomic_load_n(&device.is_stall, __ATOMIC_RELAXED))
		assert_true(clock_now_ns() - start_ns < 60000000000);
	await_polls(10);
}

static const struct sink_port *counters(void)
{
	return &gen->current->port[0].counters;
}

static void a_flooded_port_keeps_the_worker_from_nothing(void **state)
{
	open_with(TO_LEFT("max"));
	__atomic_store_n(&device.n, BURST, __ATOMIC_RELAXED);
	begin_run(0);
	await(is_done);
	assert_int_equal(stats_read(&sender_counters(gen->current->sender[0])->sent), 1000);
	assert_true(stats_read(&counters()->rx_packets) >= 1000);
}

static void polls_again_while_bursts_come_full(void **state)
{
	open_with(TO_LEFT("max"));
	__atomic_store_n(&device.n, BURST, __ATOMIC_RELAXED);
	begin_run(0);
	await(is_done);
	uint64_t rounds = stats_read(&gen->current->part[0].rounds);
	uint64_t frames = stats_read(&counters()->rx_packets);
	assert_true(frames > (rounds - 1) * BURST * 3 / 2);
}

static void notes_a_stall_that_the_ring_does_not_outlast(void **state)
{
	open_with(TO_LEFT("1 Mpps"));
	begin_run(0);
	assert_true(gen->current->port[0].ring_cycles == 1024 * (FAKE_HZ / 1000000));
	__atomic_store_n(&device.n, BURST, __ATOMIC_RELAXED);
	stall_worker();
	assert_true(stats_read(&counters()->late_polls) >= 1);
	// The real TSC is not slower than the fake one.
	assert_true(stats_read(&counters()->longest_gap) >= STALL_MS * (FAKE_HZ / 1000));
	assert_true(stats_read(&gen->current->part[0].longest_gap) >= STALL_MS * (FAKE_HZ / 1000));
}

// Independent of what is sent, and whether anything is.
static void logs_each_long_stall(void **state)
{
	struct stall known[STALLS_KNOWN];
	uint64_t n_forgotten, before = rte_rdtsc(), longest = 0;

	open_with(TO_LEFT("1 Mpps"));
	stall_worker();
	unsigned n = stalls_read(&gen->worker[0].stalls, known, &n_forgotten);
	uint64_t after = rte_rdtsc();
	for (unsigned i = 0; i < n; i++) {
		assert_true(known[i].cycles > FAKE_HZ / 1000000 * STALLS_LEAST_US);
		assert_true(known[i].end > before && known[i].end < after);
		longest = MAX_OF(longest, known[i].cycles);
	}
	assert_true(longest >= STALL_MS * (FAKE_HZ / 1000));
}

static bool is_at_rest(void)
{
	return stats_read(&gen->current->part[0].rested_tsc);
}

// The worker stalls 0.1 s after `rested`; returns whether a stall starting then is recorded.
static bool logs_late_stall(uint64_t rested)
{
	struct stall known[STALLS_KNOWN];
	uint64_t n_forgotten, last = 0, late = rested + gen->hz / 10;

	while (rte_rdtsc() < late)
		sched_yield();
	await_polls(2); // it may have been preempted since before that
	stall_worker();
	unsigned n = stalls_read(&gen->worker[0].stalls, known, &n_forgotten);
	for (unsigned i = 0; i < n; i++)
		last = MAX_OF(last, known[i].end - known[i].cycles);
	return last > late;
}

// The log has a limited size: stalls of a run must stay until they are read.
static void logs_no_stall_long_after_a_run(void **state)
{
	open_with(TO_LEFT("1 Mpps"));
	begin_run(0);
	await(is_done);
	assert_false(logs_late_stall(run_sent_tsc(gen->current)));
}

// Another worker keeps sending to it: it has 1000 frames, and a quarter of a second for each.
static void logs_stalls_of_a_worker_that_only_receives(void **state)
{
	open_with(FROM_TO_LEFT("right", "1 Mpps"));
	fake.turn_cycles = FAKE_HZ / 4;
	begin_run(0);
	await(is_at_rest);
	assert_true(logs_late_stall(stats_read(&gen->current->part[0].rested_tsc)));
}

// Counts recent stalls, excluding those in which other programs used the core.
static unsigned count_stalls_below(uint64_t cycles)
{
	struct stall known[STALLS_KNOWN];
	uint64_t n_forgotten;
	unsigned count = 0, n = stalls_read(&gen->worker[0].stalls, known, &n_forgotten);

	for (unsigned i = 0; i < n; i++)
		count += known[i].cycles < cycles;
	return count;
}

// On a busy machine an attempt may be disturbed: `n_of` makes one attempt, which it leaves open,
// and returns how many short stalls it recorded.
static void expect_fewer_than(unsigned limit, unsigned (*n_of)(void))
{
	unsigned n = n_of();

	for (unsigned i = 1; n >= limit && i < ATTEMPTS; i++) {
		close_it(NULL);
		n = n_of();
	}
	assert_true(n < limit);
}

static unsigned rounds_of_several_bursts(void)
{
	const uint64_t least = FAKE_HZ / 5000; // much more than the rest of a poll

	long_gap = least;
	open_with(TO_LEFT("1 Mpps"));
	long_gap = 0;
	__atomic_store_n(&device.burst_cycles, least / 2, __ATOMIC_RELAXED);
	__atomic_store_n(&device.n, BURST, __ATOMIC_RELAXED);
	uint64_t before = stats_read(&gen->current->part[0].rounds);
	__atomic_store_n(&device.n_polls, 0, __ATOMIC_RELAXED);
	await(has_polled_often);
	assert_true(stats_read(&gen->current->part[0].rounds) - before > OFTEN / 4);
	return count_stalls_below(3 * least);
}

// One burst takes less than a stall, all bursts of an iteration take more.
static void a_round_of_several_bursts_is_no_stall(void **state)
{
	expect_fewer_than(OFTEN / 16, rounds_of_several_bursts); // a few, due to device interrupts
}

static unsigned rounds_that_send_and_receive(void)
{
	const uint64_t least = FAKE_HZ / 5000; // much more than the rest of an iteration

	long_gap = least;
	open_with(TO_LEFT("1 Mpps"));
	long_gap = 0;
	fake.turn_cycles = least * 2 / 3;
	__atomic_store_n(&device.burst_cycles, least * 2 / 3, __ATOMIC_RELAXED);
	__atomic_store_n(&device.n, BURST, __ATOMIC_RELAXED);
	begin_run(0);
	await(is_done);
	assert_int_equal(stats_read(&sender_counters(gen->current->sender[0])->sent), 1000);
	return count_stalls_below(3 * least);
}

// Each burst takes less than a stall; one sent and one received burst together take more.
static void a_round_that_sends_and_receives_is_no_stall(void **state)
{
	expect_fewer_than(1000 / 4, rounds_that_send_and_receive); // as above
}

// Nothing was lost: a ring that overflowed is still full when it is polled again.
static void notes_no_stall_after_which_the_ring_is_not_full(void **state)
{
	open_with(TO_LEFT("1 Mpps"));
	begin_run(0);
	__atomic_store_n(&device.n, BURST - 1, __ATOMIC_RELAXED);
	stall_worker();
	assert_true(stats_read(&counters()->longest_gap) >= STALL_MS * (FAKE_HZ / 1000));
	assert_int_equal(stats_read(&counters()->late_polls), 0);
}

// At one frame per second the ring lasts 17 minutes.
static void notes_no_stall_that_the_ring_outlasts(void **state)
{
	open_with(TO_LEFT("1 pps"));
	begin_run(0);
	stall_worker();
	assert_true(stats_read(&counters()->longest_gap) >= STALL_MS * (FAKE_HZ / 1000));
	assert_int_equal(stats_read(&counters()->late_polls), 0);
}

static void notes_no_stall_before_the_first_frame_is_due(void **state)
{
	open_with(TO_LEFT("1 Mpps"));
	begin_run(3600);
	stall_worker();
	assert_int_equal(stats_read(&counters()->late_polls), 0);
	assert_int_equal(stats_read(&counters()->longest_gap), 0);
	assert_int_equal(stats_read(&gen->current->part[0].longest_gap), 0);
}

// The rate is unknown, so it is derived from what was received so far.
static void judges_a_stall_by_what_came_so_far(void **state)
{
	open_with(TO_LEFT("max"));
	begin_run(0);
	stall_worker();
	assert_int_equal(stats_read(&counters()->late_polls), 0);
	__atomic_store_n(&device.n, BURST, __ATOMIC_RELAXED);
	for (int i = 0; i < 100 && !stats_read(&counters()->late_polls); i++) {
		await_polls(
			OFTEN); // a rate at which the ring is full sooner than the stall is over
		stall_worker();
	}
	assert_true(stats_read(&counters()->late_polls) >= 1);
}

static bool has_slept(void)
{
	return stats_read(&gen->worker[0].n_sleeps) > 100;
}

static void a_worker_sleeps_before_a_run_and_sends_all_of_it(void **state)
{
	may_sleep = true;
	open_with(TO_LEFT("1 Mpps"));
	may_sleep = false;
	await(has_slept);
	begin_run(0.001);
	await(is_done);
	assert_int_equal(stats_read(&sender_counters(gen->current->sender[0])->sent), 1000);
}

static void a_worker_that_polls_does_not_sleep(void **state)
{
	open_with(TO_LEFT("1 Mpps"));
	await(has_polled_often);
	assert_int_equal(stats_read(&gen->worker[0].n_sleeps), 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, close_it)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_flooded_port_keeps_the_worker_from_nothing),
		TEST(polls_again_while_bursts_come_full),
		TEST(notes_a_stall_that_the_ring_does_not_outlast),
		TEST(notes_no_stall_after_which_the_ring_is_not_full),
		TEST(notes_no_stall_that_the_ring_outlasts),
		TEST(notes_no_stall_before_the_first_frame_is_due),
		TEST(logs_each_long_stall),
		TEST(logs_no_stall_long_after_a_run),
		TEST(logs_stalls_of_a_worker_that_only_receives),
		TEST(a_round_of_several_bursts_is_no_stall),
		TEST(a_round_that_sends_and_receives_is_no_stall),
		TEST(a_worker_sleeps_before_a_run_and_sends_all_of_it),
		TEST(a_worker_that_polls_does_not_sleep),
		TEST(judges_a_stall_by_what_came_so_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
