// What a worker records about its loops: stalls, but not the time that its frames take.
#include "datapath/fake.h"

#include <rte_cycles.h>
#include <sched.h>

// Cycle counts that any machine can resolve, and short enough for some loops to run undisturbed.
enum {
	LONG_GAP = 1 << 18,
	LOOP = 3 * LONG_GAP,
	STALL = 5 * LONG_GAP,
	EXPENSIVE = 12 * LONG_GAP, // a burst this long counts as disturbed if packets cost less
	BURSTS = 4,                // together less than one scheduler time slice
	ATTEMPTS = 500,
	IDLE_LOOPS = 64,
	SLOW_TSC = 1000000, // the first sleep comes after a few loops
};

static struct stall known[STALLS_KNOWN];

// Queues full bursts, each of which takes `loop` cycles; the worker stalls before one of them.
static void prepare(uint64_t loop, uint64_t stall)
{
	struct bytes frame = frame_to(0, "10.1.0.2");

	fake_reset(fake_variants[1]);
	fake.worker.long_gap = LONG_GAP;
	fake.device[0].burst_cycles = loop;
	fake.device[0].stall_cycles = stall;
	fake.device[0].stall_at = BURSTS / 2 * BURST_MAX;
	for (unsigned i = 0; i < BURSTS * BURST_MAX; i++)
		fake_receive(0, &frame);
}

static unsigned run_prepared(void)
{
	uint64_t n_forgotten;

	sched_yield(); // start with a fresh time slice
	fake_run();
	return stalls_read(&fake.stat.stalls, known, &n_forgotten);
}

static unsigned run(uint64_t loop, uint64_t stall)
{
	prepare(loop, stall);
	return run_prepared();
}

// Where the machine itself preempts the core, some runs are spoilt.
static void a_loop_that_is_long_by_its_frames_is_no_stall(void **state)
{
	unsigned n = run(LOOP, 0);

	for (unsigned i = 0; n && i < ATTEMPTS; i++)
		n = run(LOOP, 0);
	assert_int_equal(n, 0);
	assert_true(fake.stat.longest_gap_cycles >= LOOP);
}

// A disturbance in the first burst, which sets the packet cost, hides the stall, and another one
// may be recorded instead.
static void expect_the_stall(uint64_t loop)
{
	unsigned n = run(loop, STALL);

	for (unsigned i = 0; (n != 1 || known[0].cycles < loop + STALL) && i < ATTEMPTS; i++)
		n = run(loop, STALL);
	assert_int_equal(n, 1);
	assert_true(known[0].cycles >= loop + STALL);
}

static void a_stall_among_such_loops_is_noted(void **state)
{
	expect_the_stall(LOOP);
}

static void a_stall_among_short_loops_is_noted(void **state)
{
	expect_the_stall(0);
}

static void a_long_gap_is_counted_by_its_length(void **state)
{
	const uint64_t *n = fake.stat.long_gaps;
	uint64_t least = 0, longer = 0;

	prepare(LOOP, STALL);
	fake_run();
	for (unsigned i = 0; i < STATS_GAPS; i++) {
		least += n[i] * ((uint64_t)LONG_GAP << i);
		longer += i >= 3 ? n[i] : 0;
	}
	assert_true(longer >= 1); // 3 + 5 times LONG_GAP
	assert_true(fake.stat.long_gap_cycles >= LOOP + STALL);
	assert_true(fake.stat.long_gap_cycles >= least);
	if (!n[STATS_GAPS - 1])
		assert_true(fake.stat.long_gap_cycles < 2 * least);
}

// A worker that may sleep does so while no frames arrive, and forwards those that arrive then.
static void a_worker_without_work_sleeps(void **state)
{
	struct bytes frame = frame_to(0, "10.1.0.2");

	fake_reset(fake_variants[1]);
	fake.io.may_sleep = true;
	fake.worker.tsc_hz = SLOW_TSC;
	fake.loops_least = IDLE_LOOPS;
	fake_run();
	assert_true(fake.stat.sleeps > 0);
	assert_true(fake.stat.slept_cycles > 0);
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(fake.stat.verdict[VERDICT_FORWARD], 1);
	fake.io.may_sleep = false;
}

static void a_worker_that_polls_never_sleeps(void **state)
{
	fake_reset(fake_variants[1]);
	fake.io.may_sleep = false;
	fake.worker.tsc_hz = SLOW_TSC;
	fake.loops_least = IDLE_LOOPS;
	fake_run();
	assert_int_equal(fake.stat.sleeps, 0);
}

// Linux has sent half a burst, and sending it takes as long as a full one.
static void a_loop_that_is_long_by_what_linux_sent_is_no_stall(void **state)
{
	struct bytes frame = frame_to(2, "10.3.0.2");
	unsigned n = 1;

	for (unsigned i = 0; n && i < ATTEMPTS; i++) {
		prepare(LOOP, 0);
		fake.device[2].send_cycles = LOOP / 2;
		for (unsigned k = 0; k < BURST_MAX / 2; k++)
			fake_inject(2, &frame);
		n = run_prepared();
	}
	assert_int_equal(n, 0);
	assert_true(fake.stat.longest_gap_cycles >= LOOP + LOOP / 2);
}

static void a_burst_that_is_expensive_by_its_packets_is_timed(void **state)
{
	uint64_t n_timed = 0;

	for (unsigned i = 0; n_timed != BURST_MAX && i < ATTEMPTS; i++) {
		prepare(EXPENSIVE, 0);
		fake.worker.cost_per_packet = EXPENSIVE / BURST_MAX;
		fake_run();
		n_timed = fake.stat.timed_packets;
	}
	assert_int_equal(n_timed, BURST_MAX);
	assert_true(fake.stat.step_cycles[0] >= EXPENSIVE);
}

static void a_burst_in_which_the_core_was_taken_away_is_not_timed(void **state)
{
	prepare(LOOP, EXPENSIVE);
	fake.worker.cost_per_packet = LOOP / BURST_MAX;
	fake.device[0].stall_at = 0;
	fake_run();
	assert_int_equal(fake.stat.timed_packets, 0);
	assert_int_equal(fake.stat.step_cycles[0], 0);
	assert_int_equal(fake.stat.bursts, BURSTS);
}

static unsigned n_uses; // of a device that is gone

static uint16_t count_use(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	n_uses++;
	return 0;
}

static void a_worker_uses_no_device_of_a_closed_queue(void **state)
{
	struct bytes to_gone = frame_to(1, "10.0.0.2"), to_other = frame_to(1, "10.2.0.2");
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[fake.io.queues[0].device];

	fake_reset(fake_variants[1]);
	ops->rx_pkt_burst = ops->tx_pkt_burst = count_use;
	n_uses = 0;
	fake.io.queues[0].is_closed = true;
	fake.states[0].up = false;
	fake_receive(1, &to_gone);
	fake_receive(1, &to_other);
	fake_inject(0, &to_gone);
	fake_run();
	assert_int_equal(n_uses, 0);
	assert_int_equal(fake.stat.verdict[VERDICT_PORT_DOWN], 2);
	assert_int_equal(fake.device[2].n_sent, 1);
	fake.io.queues[0].is_closed = false;
	fake_run();
	assert_true(n_uses > 0);
}

// Frames to be forwarded, numbered in the last bytes.
static void receive_numbered(unsigned n)
{
	struct bytes frame = frame_to(0, "10.1.0.2");

	for (unsigned i = 0; i < n; i++) {
		memcpy(frame.at + frame.n - sizeof(i), &i, sizeof(i));
		fake_receive(0, &frame);
	}
}

static void frames_leave_in_the_order_in_which_they_came(void **state)
{
	const unsigned numbers[] = {1, BURST_MAX, BURST_MAX + 1, 2 * BURST_MAX, 2 * BURST_MAX + 1,
		9 * BURST_MAX + 9};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned k = 0; k < ARRAY_LEN(numbers); k++) {
			fake_reset(fake_variants[v]);
			fake.io.burst = BURST_MAX;
			receive_numbered(numbers[k]);
			fake_run();
			assert_int_equal(fake.device[1].n_sent, numbers[k]);
			for (unsigned i = 0; i < numbers[k]; i++) {
				const struct rte_mbuf *m = fake.device[1].sent[i];

				assert_int_equal(load32(rte_pktmbuf_mtod(m, uint8_t *) +
							 m->data_len - sizeof(i)),
					i);
			}
			assert_int_equal(fake.stat.bursts,
				(numbers[k] + BURST_MAX - 1) / BURST_MAX);
		}
}

// Also where full bursts are pipelined: five frames for each of three hops, and 64 is not a
// multiple of 15.
static void each_frame_leaves_by_its_own_hop(void **state)
{
	static const char *const dst[] = {"10.1.0.2", "10.2.0.2", "10.3.0.2"};
	const unsigned n = 4 * BURST_MAX;
	unsigned n_seen[FAKE_PORTS] = {0};

	fake_reset(fake_variants[2]);
	fake.io.burst = BURST_MAX;
	for (unsigned i = 0; i < n; i++) {
		struct bytes frame = frame_to(0, dst[i / 5 % 3]);

		memcpy(frame.at + frame.n - sizeof(i), &i, sizeof(i));
		fake_receive(0, &frame);
	}
	fake_run();
	for (unsigned i = 0; i < n; i++) {
		const struct fake_device *d = &fake.device[i / 5 % 3 + 1];
		const struct rte_mbuf *m = d->sent[n_seen[i / 5 % 3 + 1]++];

		assert_non_null(m);
		assert_int_equal(load32(rte_pktmbuf_mtod(m, uint8_t *) + m->data_len - sizeof(i)),
			i);
	}
}

// Both families, frames for other hosts, and an odd number of each in a burst; one pipelined batch
// that ends with a burst that is not full, and some that reach the maximum length.
static void families_and_drops_share_a_batch(void **state)
{
	static const char *const dst[] = {"10.1.0.2", "2001:db8:2::2", "10.3.0.2", "2001:db8:1::2"};
	const unsigned n = (2 * BATCH_POLLS + 1) * BURST_MAX + 7;
	unsigned n_seen[FAKE_PORTS] = {0}, n_others = 0;

	fake_reset(fake_variants[2]);
	fake.io.burst = BURST_MAX;
	for (unsigned i = 0; i < n; i++) {
		struct bytes frame = frame_to(i % 11 ? 0 : 3, dst[i / 3 % 4]);

		memcpy(frame.at + frame.n - sizeof(i), &i, sizeof(i));
		fake_receive(0, &frame);
		n_others += i % 11 == 0;
	}
	fake_run();
	assert_int_equal(fake.stat.verdict[VERDICT_MAC_NOT_OURS], n_others);
	// Packets of one family stay in order; within a burst IPv6 comes after IPv4.
	for (unsigned p = 1; p < FAKE_PORTS; p++)
		for (unsigned k = 0, last[2] = {0}; k < fake.device[p].n_sent; k++) {
			const struct rte_mbuf *m = fake.device[p].sent[k];
			const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
			unsigned number = load32(frame + m->data_len - sizeof(number));

			assert_int_equal(dst[number / 3 % 4][0] == '1', frame[12] == 0x08);
			assert_true(!n_seen[p] || number >= last[frame[12] == 0x08]);
			last[frame[12] == 0x08] = number + 1;
			n_seen[p]++;
		}
	assert_int_equal(n_seen[1] + n_seen[2] + n_seen[3], n - n_others);
}

static void all_frames_of_a_batch_may_be_dropped(void **state)
{
	struct bytes frame = frame_to(1, "10.1.0.2");
	const unsigned n = (BATCH_POLLS + 1) * BURST_MAX;

	fake_reset(fake_variants[2]);
	fake.io.burst = BURST_MAX;
	for (unsigned i = 0; i < n; i++)
		fake_receive(0, &frame);
	fake_run();
	assert_int_equal(fake.stat.verdict[VERDICT_MAC_NOT_OURS], n);
}

static void a_batch_is_timed_as_often_as_bursts_alone(void **state)
{
	const unsigned n_bursts = FAKE_FRAMES / 2;

	fake_reset(fake_variants[2]);
	fake.io.burst = 2;
	fake.worker.long_gap = 1ull << 56; // no burst counts as disturbed
	receive_numbered(2 * n_bursts);
	fake_run();
	assert_int_equal(fake.stat.bursts, n_bursts);
	// One pipelined batch, then 64 times as many bursts.
	const unsigned turn = BATCH_POLLS * 65, rest = n_bursts % turn;
	const unsigned n_timed = n_bursts / turn * BATCH_POLLS + MIN_OF(rest, BATCH_POLLS);
	assert_int_equal(fake.stat.timed_packets, 2 * n_timed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loop_that_is_long_by_its_frames_is_no_stall),
		cmocka_unit_test(a_stall_among_such_loops_is_noted),
		cmocka_unit_test(a_stall_among_short_loops_is_noted),
		cmocka_unit_test(a_long_gap_is_counted_by_its_length),
		cmocka_unit_test(a_loop_that_is_long_by_what_linux_sent_is_no_stall),
		cmocka_unit_test(a_worker_without_work_sleeps),
		cmocka_unit_test(a_worker_that_polls_never_sleeps),
		cmocka_unit_test(a_burst_that_is_expensive_by_its_packets_is_timed),
		cmocka_unit_test(a_burst_in_which_the_core_was_taken_away_is_not_timed),
		cmocka_unit_test(a_worker_uses_no_device_of_a_closed_queue),
		cmocka_unit_test(frames_leave_in_the_order_in_which_they_came),
		cmocka_unit_test(each_frame_leaves_by_its_own_hop),
		cmocka_unit_test(families_and_drops_share_a_batch),
		cmocka_unit_test(all_frames_of_a_batch_may_be_dropped),
		cmocka_unit_test(a_batch_is_timed_as_often_as_bursts_alone),
	};

	return cmocka_run_group_tests(tests, fake_open, fake_close);
}
