// Frames from Linux leave in order and first; frames that a device refuses wait for a limited time.
#include "datapath/fake.h"

enum { OTHER = 3 };

static void set_number(struct bytes *frame, unsigned number)
{
	frame->at[50] = number >> 8;
	frame->at[51] = number;
}

static unsigned number_of(const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

	return frame[50] << 8 | frame[51];
}

// Numbered from 0, on the ports in turn.
static void inject(unsigned n, unsigned n_ports)
{
	struct bytes frame = frame_to(OTHER, "10.1.2.3"); // not to our MAC: Linux may send that

	for (unsigned i = 0; i < n; i++) {
		set_number(&frame, i);
		fake_inject(i % n_ports, &frame);
	}
}

static void expect_order(uint8_t port, unsigned first, unsigned step)
{
	const struct fake_device *d = &fake.device[port];

	for (unsigned i = 0; i < d->n_sent; i++)
		assert_int_equal(number_of(d->sent[i]), first + i * step);
}

static void frames_from_linux_leave_in_order_as_they_are(void **state)
{
	struct bytes frame = frame_to(OTHER, "10.1.2.3");

	fake_reset(datapath_choose_variant());
	inject(500, 3);
	fake_run();
	for (uint8_t port = 0; port < 3; port++) {
		assert_int_equal(fake.stat.port[port].injected_packets, port == 2 ? 166 : 167);
		assert_int_equal(fake.stat.port[port].tx_packets, port == 2 ? 166 : 167);
		assert_int_equal(fake.device[port].n_sent, port == 2 ? 166 : 167);
		expect_order(port, port, 3);
	}
	set_number(&frame, 7);
	expect_bytes(fake.device[1].sent[2], &frame);
	assert_int_equal(fake.stat.port[2].tx_bytes, 166 * frame.n);
}

static void tagged_frames_from_linux_keep_their_tags(void **state)
{
	struct bytes frame = frame_to(OTHER, "10.1.2.3");

	fake_reset(datapath_choose_variant());
	frame_tag(&frame, 0x81000123);
	fake_inject(2, &frame);
	fake_run();
	expect_sent(2, &frame);
}

static void frames_from_linux_leave_before_the_workers_own(void **state)
{
	struct bytes own = frame_to(0, "10.1.2.3");

	fake_reset(datapath_choose_variant());
	set_number(&own, 99);
	for (unsigned i = 0; i < 10; i++)
		fake_receive(0, &own);
	for (unsigned i = 0; i < 10; i++) {
		struct bytes frame = frame_to(OTHER, "10.1.2.3");
		set_number(&frame, i);
		fake_inject(1, &frame);
	}
	fake_run();
	assert_int_equal(fake.device[1].n_sent, 20);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(number_of(fake.device[1].sent[i]), i);
}

// Lets the device of port 0 accept one more frame each time that the worker polls port 3.
static uint16_t make_room(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	fake.device[0].takes++;
	return 0;
}

static void what_a_device_refuses_is_sent_later_in_order(void **state)
{
	fake_reset(datapath_choose_variant());
	fake.device[0].takes = 5;
	rte_eth_fp_ops[fake.io.queues[3].device].rx_pkt_burst = make_room;
	fake.loops_least = 800;
	inject(400, 1);
	fake_run();
	assert_int_equal(fake.device[0].n_sent, 400);
	assert_int_equal(fake.stat.verdict[VERDICT_TX_REFUSED], 0);
	expect_order(0, 0, 1);
}

static void a_device_that_takes_nothing_does_not_hold_up_another(void **state)
{
	fake_reset(datapath_choose_variant());
	fake.device[0].takes = 0;
	inject(60, 2);
	fake.loops_least = 900; // less than PATIENCE_LOOPS of the frames of port 0
	fake_run();
	assert_int_equal(fake.device[1].n_sent, 30);
	expect_order(1, 1, 2);
	assert_int_equal(fake.stat.verdict[VERDICT_TX_REFUSED], 30); // when the worker ended
}

static void a_device_that_takes_nothing_for_long_loses_frames_by_name(void **state)
{
	fake_reset(datapath_choose_variant());
	fake.device[0].takes = 0;
	fake.loops_least = 5000;
	inject(100, 1);
	fake_run();
	assert_int_equal(fake.stat.verdict[VERDICT_TX_REFUSED], 100);
	assert_int_equal(fake.stat.port[0].injected_packets, 100);
	assert_int_equal(fake.worker.injection.n, 0);
}

// Loops in which Linux sends a frame on port 0, and in which port 1 starts to accept frames.
enum { SECOND_AT = 500, ROOM_AT = 700, FIRST_IS_OLD = 1200, SECOND_IS_OLD = 1600 };
static unsigned n_waiting_at_1200;

static uint16_t happen(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	struct bytes frame = frame_to(OTHER, "10.1.2.3");

	if (fake.stat.loops == SECOND_AT)
		fake_inject(0, &frame);
	if (fake.stat.loops == ROOM_AT)
		fake.device[1].takes = 1;
	if (fake.stat.loops == FIRST_IS_OLD)
		n_waiting_at_1200 = fake.worker.injection.n;
	return 0;
}

static void each_frame_waits_from_its_own_time_on(void **state)
{
	struct bytes frame = frame_to(OTHER, "10.1.2.3");

	fake_reset(datapath_choose_variant());
	fake.device[0].takes = fake.device[1].takes = 0;
	rte_eth_fp_ops[fake.io.queues[3].device].rx_pkt_burst = happen;
	fake.loops_least = SECOND_IS_OLD;
	fake_inject(1, &frame);
	fake_run();
	assert_int_equal(fake.device[1].n_sent, 1);
	assert_int_equal(n_waiting_at_1200, 1);
	assert_int_equal(fake.stat.verdict[VERDICT_TX_REFUSED], 1);
}

// Stops the worker in its first loop, before it has taken all frames.
static uint16_t stop_now(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	fake.stop = true;
	return 0;
}

static void nothing_stays_behind_when_the_worker_ends(void **state)
{
	fake_reset(datapath_choose_variant());
	for (unsigned q = 0; q < FAKE_PORTS; q++)
		rte_eth_fp_ops[fake.io.queues[q].device].rx_pkt_burst = stop_now;
	inject(300, 1);
	fake.device[0].takes = 250;
	fake_run();
	assert_int_equal(fake.stat.port[0].injected_packets, 300);
	assert_int_equal(fake.device[0].n_sent, 250);
	expect_order(0, 0, 1);
	assert_int_equal(fake.stat.verdict[VERDICT_TX_REFUSED], 50);
	assert_int_equal(fake.stat.loops, 1);
}

static void frames_for_a_port_without_link_are_dropped_at_once(void **state)
{
	fake_reset(datapath_choose_variant());
	fake.states[1].up = false;
	inject(40, 2);
	fake_run();
	assert_int_equal(fake.stat.verdict[VERDICT_PORT_DOWN], 20);
	assert_int_equal(fake.device[0].n_sent, 20);
	assert_in_range(fake.stat.loops, 0, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_from_linux_leave_in_order_as_they_are),
		cmocka_unit_test(tagged_frames_from_linux_keep_their_tags),
		cmocka_unit_test(frames_from_linux_leave_before_the_workers_own),
		cmocka_unit_test(what_a_device_refuses_is_sent_later_in_order),
		cmocka_unit_test(a_device_that_takes_nothing_does_not_hold_up_another),
		cmocka_unit_test(a_device_that_takes_nothing_for_long_loses_frames_by_name),
		cmocka_unit_test(each_frame_waits_from_its_own_time_on),
		cmocka_unit_test(nothing_stays_behind_when_the_worker_ends),
		cmocka_unit_test(frames_for_a_port_without_link_are_dropped_at_once),
	};
	return cmocka_run_group_tests(tests, fake_open, fake_close);
}
