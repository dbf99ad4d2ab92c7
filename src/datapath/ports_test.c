// The last port number, 255, is one like any other: it is also what the summary table of next hops
// has for those that are not in it.
#include "datapath/fake.h"

enum { LAST = STATS_MAX_PORTS - 1, DEVICE_OF_LAST = 3, N_EACH = 100 };

// Port 255 has the device of port 3, its queue included.
static void start(const struct datapath_variant *variant)
{
	fake_reset(variant);
	fake.states[LAST] = fake.states[DEVICE_OF_LAST];
	fake.states[LAST].mac[5] = (uint8_t)(LAST + 1);
	fake.io.out[LAST] = fake.io.out[DEVICE_OF_LAST];
	fake.io.queues[DEVICE_OF_LAST].port = LAST;
}

static void receive_many(uint8_t port, unsigned n, const struct bytes *frame)
{
	for (unsigned i = 0; i < n; i++)
		fake_receive(port, frame);
}

static void expect_all(unsigned device, unsigned n, const struct bytes *frame)
{
	assert_int_equal(fake.device[device].n_sent, n);
	for (unsigned i = 0; i < n; i++)
		expect_bytes(fake.device[device].sent[i], frame);
}

static void frames_leave_by_the_last_port(void **state)
{
	static const char *const dst[] = {"10.255.2.3", "2001:db8:ff::3"};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(dst); i++) {
			start(fake_variants[v]);
			struct bytes frame = frame_to(0, dst[i]);
			struct bytes left = frame_forwarded(&frame, LAST);

			receive_many(0, N_EACH, &frame);
			fake_run();
			expect_all(DEVICE_OF_LAST, N_EACH, &left);
			assert_int_equal(fake.stat.port[LAST].tx_packets, N_EACH);
			assert_int_equal(fake.stat.port[LAST].tx_bytes, N_EACH * left.n);
		}
}

// Bursts whose packets leave by several ports.
static void frames_leave_by_the_last_port_among_others(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		start(fake_variants[v]);
		struct bytes last = frame_to(0, "10.255.2.3"), other = frame_to(0, "10.1.2.3");
		struct bytes last_left = frame_forwarded(&last, LAST);
		struct bytes other_left = frame_forwarded(&other, 1);

		for (unsigned i = 0; i < N_EACH; i++) {
			fake_receive(0, &last);
			fake_receive(0, &other);
		}
		fake_run();
		expect_all(DEVICE_OF_LAST, N_EACH, &last_left);
		expect_all(1, N_EACH, &other_left);
	}
}

// What each packet's own limits decide.
static void the_limits_of_the_last_port_are_its_own(void **state)
{
	struct iface iface = *fib_iface(fake.fib, LAST);

	iface.mtu = 68;
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		start(fake_variants[v]);
		struct bytes expired = frame_to(0, "10.255.2.3"), good = expired;
		struct bytes left = frame_forwarded(&good, LAST);

		expired.at[22] = 1;
		frame_mend(&expired);
		fake_receive(0, &expired);
		fake_receive(0, &good);
		fake_set(LAST, &iface);
		struct bytes elsewhere = frame_to(0, "10.1.2.3");
		fake_receive(0, &elsewhere);
		fake.worker.tap = NULL;
		fake_run();
		expect_all(DEVICE_OF_LAST, 1, &left);
		assert_int_equal(fake.device[1].n_sent, 1);
		assert_int_equal(fake.stat.verdict[VERDICT_TTL_EXPIRED], 1);
	}
}

// The limit of the summary table is that of the hops in it.
static void a_hop_of_the_last_port_does_not_lower_the_limit_of_others(void **state)
{
	struct iface iface = *fib_iface(fake.fib, LAST);
	const struct wire_mac macs[] = {{{2, 0, 0, LAST, 0, 9}}, {{2, 0, 0, LAST, 0, 2}}};
	struct wire_addr via;

	start(fake_variants[0]);
	iface.mtu = 68;
	fake_set(LAST, &iface);
	assert_int_equal(wire_addr_parse("10.255.0.2", &via), 0);
	for (unsigned i = 0; i < ARRAY_LEN(macs); i++) {
		assert_int_equal(fib_neighbour_set(fake.fib, LAST, &via, &macs[i], NULL), 0);
		assert_int_equal(fib_live_view(&fake.live)->plain->frame_max, 1500 + 14);
	}
}

static void frames_arrive_on_the_last_port(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		start(fake_variants[v]);
		struct bytes frame = frame_to(LAST, "10.1.2.3"), for_linux = frame;
		struct bytes left = frame_forwarded(&frame, 1);

		for_linux.at[22] = 1;
		frame_mend(&for_linux);
		receive_many(DEVICE_OF_LAST, N_EACH, &frame);
		struct rte_mbuf *m = fake_receive(DEVICE_OF_LAST, &for_linux);
		fake_run();
		expect_all(1, N_EACH, &left);
		assert_int_equal(fake.stat.port[LAST].rx_packets, N_EACH + 1);
		assert_int_equal(fake.stat.handed[VERDICT_TTL_EXPIRED], 1);
		assert_ptr_equal(fake_punted(verdict_class(VERDICT_TTL_EXPIRED)), m);
		assert_int_equal(m->port, LAST);
	}
}

static void frames_from_linux_leave_by_the_last_port(void **state)
{
	start(fake_variants[0]);
	struct bytes frame = frame_to(LAST, "10.1.2.3");

	fake_inject(LAST, &frame);
	fake_run();
	expect_all(DEVICE_OF_LAST, 1, &frame);
	assert_int_equal(fake.stat.port[LAST].injected_packets, 1);
}

static int open_last(void **state)
{
	int err = fake_open(state);

	fake_iface(LAST, LAST, 0, (uint32_t[IFACE_MAX_TAGS]){0});
	return err;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_leave_by_the_last_port),
		cmocka_unit_test(frames_leave_by_the_last_port_among_others),
		cmocka_unit_test(the_limits_of_the_last_port_are_its_own),
		cmocka_unit_test(a_hop_of_the_last_port_does_not_lower_the_limit_of_others),
		cmocka_unit_test(frames_arrive_on_the_last_port),
		cmocka_unit_test(frames_from_linux_leave_by_the_last_port),
	};

	return cmocka_run_group_tests(tests, open_last, fake_close);
}
