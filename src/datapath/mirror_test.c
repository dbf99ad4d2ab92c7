// Copies for mirrors: their bytes, and what happens if they cannot be made or sent.
#include "datapath/flows.h"

#include "wire/headers.h"

enum { MIRROR = 2, OUT = 1, TRAILER = 9, HALF = 40 };

static const char *const dsts[] = {"10.1.2.3", "2001:db8:1::3"};

static struct flow_action mirroring(uint16_t iface)
{
	struct flow_action action = flows_by_route();

	action.mirror = iface;
	return action;
}

// A flow whose packets are mirrored to a port, and marked, so that the copy differs.
static void reset(unsigned number, const char *dst, uint16_t mirror)
{
	const struct flow_tuple tuple = flows_tuple(dst);
	struct flow_action action = mirroring(mirror);

	action.dscp = 10;
	flows_reset(number);
	flows_set(&tuple, action);
}

static void copies_are_as_received(void **state)
{
	static const uint16_t in[] = {PLAIN_IN, TAGGED_IN, QINQ_IN};

	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(in) * ARRAY_LEN(dsts); i++) {
			struct bytes frame = frame_on(in[i / 2], dsts[i % 2]);

			reset(v, dsts[i % 2], MIRROR);
			frame.n += TRAILER; // goes to the mirror, too
			fake_receive(0, &frame);
			fake_run();
			assert_int_equal(fake.device[MIRROR].n_sent, 1);
			expect_bytes(fake.device[MIRROR].sent[0], &frame);
			assert_int_equal(fake.device[OUT].n_sent, 1);
			assert_int_equal(fake.stat.port[MIRROR].copied_packets, 1);
			assert_int_equal(fake.stat.port[MIRROR].tx_bytes, frame.n);
			assert_int_equal(fake.stat.verdict[VERDICT_FORWARD], 2);
		}
}

// Also to the port where they came in, and to the one where they leave.
static void mirrors_may_be_any_port(void **state)
{
	for (unsigned port = 0; port < FAKE_PORTS; port++) {
		struct bytes frame = frame_to(0, dsts[0]);

		reset(1, dsts[0], port);
		fake_receive(0, &frame);
		fake_run();
		assert_int_equal(fake.device[port].n_sent, 1 + (port == OUT));
		expect_bytes(fake.device[port].sent[0], &frame);
	}
}

// A frame in two buffers: HALF bytes, and the others.
static void receive_halves(const struct bytes *frame)
{
	struct bytes first = *frame, rest = {.n = frame->n - HALF};
	struct rte_mbuf *m;

	first.n = HALF;
	memcpy(rest.at, frame->at + HALF, rest.n);
	m = fake_receive(0, &first);
	m->next = fake_mbuf(&rest);
	fake.n_made--; // one packet
	m->next->refcnt++;
	m->nb_segs = 2;
	m->pkt_len = frame->n;
}

static void copies_of_several_buffers_are_whole(void **state)
{
	struct bytes frame = frame_to(0, dsts[0]);

	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		reset(v, dsts[0], MIRROR);
		fake.states[OUT].tx_multi_segment = true;
		receive_halves(&frame);
		fake_run();
		assert_int_equal(fake.device[OUT].n_sent, 1);
		assert_int_equal(fake.device[MIRROR].n_sent, 1);
		expect_bytes(fake.device[MIRROR].sent[0], &frame);
		fake.states[OUT].tx_multi_segment = false;
	}
}

static void receive_some(unsigned n, const struct bytes *frame)
{
	while (n--)
		fake_receive(0, frame);
}

static void without_buffers_the_packets_pass(void **state)
{
	struct bytes frame = frame_to(0, dsts[0]);

	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		reset(v, dsts[0], MIRROR);
		fake.n_buffers = 10;
		receive_some(BURST_MAX, &frame);
		fake_run();
		assert_int_equal(fake.device[OUT].n_sent, BURST_MAX);
		assert_int_equal(fake.device[MIRROR].n_sent, 10);
		assert_int_equal(fake.stat.verdict[VERDICT_MIRROR_FAILED], BURST_MAX - 10);
		assert_int_equal(fake.stat.port[MIRROR].copied_packets, BURST_MAX);
	}
}

static void a_mirror_that_is_down_gets_none(void **state)
{
	static const uint16_t ifaces[] = {MIRROR, 3 + MIRROR, TAGGED_OUT + 1000, 40000};
	struct bytes frame = frame_to(0, dsts[0]);

	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(ifaces); i++) {
			reset(v, dsts[0], ifaces[i]);
			fake.states[MIRROR].up = false;
			receive_some(BURST_MAX, &frame);
			fake_run();
			assert_int_equal(fake.device[OUT].n_sent, BURST_MAX);
			assert_int_equal(fake.device[MIRROR].n_sent, 0);
			assert_int_equal(fake.stat.verdict[VERDICT_PORT_DOWN], BURST_MAX);
			assert_int_equal(fake.n_taken, 0);
		}
}

// Many refused copies in one batch, whose packets are then dropped as well.
static void a_mirror_that_is_full_refuses_some(void **state)
{
	enum { N = 8 * BURST_MAX };
	struct bytes frame = frame_to(0, dsts[0]);

	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		reset(v, dsts[0], MIRROR);
		fake.device[MIRROR].takes = 3;
		fake.device[OUT].takes = 5;
		receive_some(N, &frame);
		fake_run();
		assert_int_equal(fake.device[OUT].n_sent, 5);
		assert_int_equal(fake.device[MIRROR].n_sent, 3);
		assert_int_equal(fake.stat.verdict[VERDICT_TX_REFUSED], N - 5 + N - 3);
	}
}

// A frame longer than a buffer of the pool, most of which follows the packet.
static void a_copy_in_several_buffers_needs_a_port_that_sends_it(void **state)
{
	struct bytes frame = frame_to(0, dsts[0]), rest = {.n = sizeof(rest.at)};

	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		reset(v, dsts[0], MIRROR);
		struct rte_mbuf *m = fake_receive(0, &frame);

		m->next = fake_mbuf(&rest);
		fake.n_made--;
		m->next->refcnt++;
		m->nb_segs = 2;
		m->pkt_len += rest.n;
		fake_run();
		assert_int_equal(fake.device[OUT].n_sent, 1);
		assert_int_equal(fake.device[MIRROR].n_sent, 0);
		assert_int_equal(fake.stat.verdict[VERDICT_MULTI_SEGMENT], 1);
	}
}

// Only packets that leave are mirrored.
static void dropped_packets_are_not_mirrored(void **state)
{
	struct bytes frame = frame_to(0, "10.99.0.1");

	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		reset(v, "10.99.0.1", MIRROR);
		fake_receive(0, &frame);
		fake_run();
		assert_int_equal(flows_stopped(VERDICT_NO_ROUTE), 1);
		assert_int_equal(fake.n_taken, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_are_as_received),
		cmocka_unit_test(mirrors_may_be_any_port),
		cmocka_unit_test(copies_of_several_buffers_are_whole),
		cmocka_unit_test(without_buffers_the_packets_pass),
		cmocka_unit_test(a_mirror_that_is_down_gets_none),
		cmocka_unit_test(a_mirror_that_is_full_refuses_some),
		cmocka_unit_test(a_copy_in_several_buffers_needs_a_port_that_sends_it),
		cmocka_unit_test(dropped_packets_are_not_mirrored),
	};

	return cmocka_run_group_tests(tests, flows_open, flows_close);
}
