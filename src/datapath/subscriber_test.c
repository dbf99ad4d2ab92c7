// Subscribers on packets of the whole pipeline: whom a packet belongs to in each direction, what is
// dropped, counted and marked. Time stands still: tokens are those of the burst.
#include "datapath/steps.h"
#include "datapath/vlans.h"

#include "qos/qos.h"

#include <stdio.h>

enum { N_IFACES = 64, N_FRAMES = 60, ETHER_BYTES = 14 };
#define STANDSTILL (1ull << 62)

static struct qos *qos;

// Interfaces are named by their index.
static const char *iface_name(void *ctx, unsigned iface)
{
	static char name[4];

	(void)ctx;
	snprintf(name, sizeof(name), "%u", iface);
	return name;
}

static void stage_all(const char *const text[], unsigned n)
{
	const struct qos_settings settings = {.n_workers = 1,
		.hz = STANDSTILL,
		.n_ifaces = N_IFACES,
		.iface_name = iface_name};
	struct error error;

	qos_close(qos);
	qos = NULL;
	assert_int_equal(qos_open(&qos, &settings, &error), 0);
	qos_begin(qos);
	for (unsigned i = 0; i < n; i++)
		if (text[i] && qos_stage(qos, text[i], false, &error))
			fail_msg("%s: %s", text[i], error.text);
	assert_int_equal(qos_prepare(qos, &error), 0);
	qos_commit(qos, 0);
	fake.worker.qos = qos_live(qos);
}

#define PROFILE "profile p rate 8kbit/s burst 20000B counts ip"
#define MOST 7

static void reset(unsigned v, const char *const text[MOST])
{
	const char *all[MOST + 1] = {PROFILE};

	memcpy(&all[1], text, MOST * sizeof(*text));
	fake_reset(fake_variants[v]);
	stage_all(all, MOST + 1);
}

static struct qos_count count_of(const char *name, enum qos_direction direction)
{
	struct qos_info info;

	assert_true(qos_find_name(qos, name, &info));
	return info.count[direction];
}

static unsigned n_sent(void)
{
	unsigned n = 0;

	for (unsigned port = 0; port < FAKE_PORTS; port++)
		n += fake.device[port].n_sent;
	return n;
}

// A frame from another source than usual if it is given.
static struct bytes packet(uint16_t iface, const char *src, const char *dst)
{
	struct bytes frame = frame_to(0, dst);
	struct wire_addr addr;

	if (src) {
		assert_int_equal(wire_addr_parse(src, &addr), 0);
		if (addr.family == 4)
			memcpy(frame.at + 26, addr.bytes, 4);
		else
			memcpy(frame.at + 22, addr.bytes, 16);
		if (addr.family == 4)
			frame_mend(&frame);
	}
	frame_tag_for(&frame, iface);
	return frame;
}

static const struct row {
	const char *text[MOST], *src, *dst;
	uint16_t from;
	bool is_up, is_down; // policed as the packet of `a`
} rows[] = {
	{{"add a up p down p address 192.0.2.1"}, NULL, "10.1.2.3", PLAIN_IN, true, false},
	{{"add a up p down p address 10.1.2.3"}, NULL, "10.1.2.3", PLAIN_IN, false, true},
	{{"add a up p down p address 10.1.0.0/16"}, NULL, "10.1.2.3", QINQ_IN, false, true},
	{{"add a up p down p address 2001:db8::/64"}, NULL, "2001:db8:1::3", PLAIN_IN, true, false},
	{{"add a up p down p address 2001:db8:1::/56"}, NULL, "2001:db8:1::3", PLAIN_IN, false,
		true},
	{{"add a up p down p address 10.1.2.4"}, NULL, "10.1.2.3", PLAIN_IN, false, false},
	// By interface, which decides before addresses.
	{{"add a up p down p interface 0"}, NULL, "10.1.2.3", PLAIN_IN, true, false},
	{{"add a up p down p interface 0"}, NULL, "10.1.2.3", TAGGED_IN, false, false},
	{{"add a up p down p interface 10"}, NULL, "2001:db8:1::3", TAGGED_IN, true, false},
	{{"add a up p down p interface 20"}, NULL, "10.20.2.3", PLAIN_IN, false, true},
	{{"add a up p down p interface 1"}, NULL, "10.20.2.3", PLAIN_IN, false, false},
	{{"add a up p interface 10", "add b address 192.0.2.1"}, NULL, "10.1.2.3", TAGGED_IN, true,
		false},
	{{"add b up p interface 10", "add a address 192.0.2.1"}, NULL, "10.1.2.3", TAGGED_IN, false,
		false},
	// Addresses are those of the main VRF.
	{{"add a up p down p address 192.0.2.1"}, NULL, "10.1.2.3", RED_IN, false, false},
	{{"add a up p interface 13"}, NULL, "10.1.2.3", RED_IN, true, false},
	// From one subscriber to itself: both directions.
	{{"add a up p down p address 10.1.2.3 address 10.1.2.4"}, "10.1.2.4", "10.1.2.3", PLAIN_IN,
		true, true},
};

static void each_packet_is_that_of_its_subscribers(void **state)
{
	(void)state;
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			const struct row *row = &rows[i];
			const struct bytes frame = packet(row->from, row->src, row->dst);

			reset(v, row->text);
			fake_receive(0, &frame);
			fake_run();
			assert_int_equal(n_sent(), 1);
			assert_int_equal(count_of("a", QOS_UP).packets[POLICE_GREEN], row->is_up);
			assert_int_equal(count_of("a", QOS_DOWN).packets[POLICE_GREEN],
				row->is_down);
		}
}

// IPv4, a /64 and a /56 in turns, on ports and VLANs: together one burst.
static void all_addresses_of_one_share_its_rate(void **state)
{
	static const char *const dst[] = {"10.1.2.3", "2001:db8:1:7::3", "2001:db8:1:100::4"};

	(void)state;
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		unsigned bytes = 0, n = 0;
		const char *text[MOST] = {"profile s rate 8kbit/s burst 2000B counts ip",
			"add a down s address 10.1.2.3 address 2001:db8:1:7::/64 address "
			"2001:db8:1:100::/56"};

		reset(v, text);
		for (unsigned i = 0; i < N_FRAMES; i++) {
			const struct bytes frame =
				packet(i & 1 ? TAGGED_IN : PLAIN_IN, NULL, dst[i % 3]);

			fake_receive(0, &frame);
		}
		fake_run();
		const struct qos_count count = count_of("a", QOS_DOWN);

		n = count.packets[POLICE_GREEN];
		bytes = count.bytes[POLICE_GREEN];
		assert_in_range(bytes, 2000 - 100, 2000);
		assert_int_equal(n_sent(), n);
		assert_int_equal(count.packets[POLICE_RED], N_FRAMES - n);
		assert_int_equal(fake.stat.verdict[VERDICT_POLICE_RED], N_FRAMES - n);
	}
}

// What is dropped upstream takes no tokens downstream.
static void upstream_is_judged_first(void **state)
{
	const char *text[MOST] = {"profile s rate 8kbit/s burst 1500B counts ip",
		"add a up s address 192.0.2.1", "add b down p address 10.1.2.3"};
	const struct bytes frame = packet(PLAIN_IN, NULL, "10.1.2.3");

	(void)state;
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		reset(v, text);
		for (unsigned i = 0; i < N_FRAMES; i++)
			fake_receive(0, &frame);
		fake_run();
		const unsigned passed = 1500 / (frame.n - ETHER_BYTES);

		assert_int_equal(count_of("a", QOS_UP).packets[POLICE_GREEN], passed);
		assert_int_equal(count_of("b", QOS_DOWN).packets[POLICE_GREEN], passed);
		assert_int_equal(n_sent(), passed);
	}
}

// DSCP with ECN kept, under tags; 802.1p in each tag that is written.
static void colours_are_marked(void **state)
{
	static const uint16_t outs[] = {PLAIN_OUT, TAGGED_OUT, QINQ_OUT};
	static const char *const dst[] = {"10.1.2.3", "10.20.2.3", "10.21.2.3"};
	const char *text[MOST] = {"profile m rate 8kbit/s burst 20000B green dscp:46,priority:5",
		"add a up m address 192.0.2.1"};

	(void)state;
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned k = 0; k < ARRAY_LEN(outs); k++) {
			struct bytes frame = packet(PLAIN_IN, NULL, dst[k]), left;

			frame.at[15] = 10 << 2 | 2; // ECT(0)
			frame_mend(&frame);
			left = frame_forwarded(&frame, outs[k]);
			const unsigned n_tags = k;

			for (unsigned tag = 0; tag < n_tags; tag++)
				left.at[14 + 4 * tag] |= 5 << 5;
			left.at[15 + 4 * n_tags] = 46 << 2 | 2;
			// The checksum behind the tags.
			struct bytes plain = left;

			memmove(plain.at + 12, plain.at + 12 + 4 * n_tags,
				plain.n - 12 - 4 * n_tags);
			plain.n -= 4 * n_tags;
			frame_mend(&plain);
			memcpy(left.at + 24 + 4 * n_tags, plain.at + 24, 2);
			reset(v, text);
			fake_receive(0, &frame);
			fake_run();
			expect_sent(1, &left);
		}
}

// What workers do not forward is not policed.
static void packets_without_a_route_take_no_tokens(void **state)
{
	const char *text[MOST] = {"add a up p address 192.0.2.1"};
	const struct bytes frame = packet(PLAIN_IN, NULL, "172.16.0.9");

	(void)state;
	reset(1, text);
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(fake.stat.handed[VERDICT_NO_ROUTE], 1);
	assert_int_equal(count_of("a", QOS_UP).packets[POLICE_GREEN], 0);
}

static bool is_enabled(void)
{
	const struct enabled_steps *steps = &fake.worker.steps[0];

	for (unsigned i = 0; i < steps->first[N_PHASES]; i++)
		if (steps->step[i].run == datapath_subscriber)
			return true;
	return false;
}

static void without_subscribers_there_is_no_step(void **state)
{
	const char *text[MOST] = {NULL};
	const struct bytes frame = packet(PLAIN_IN, NULL, "10.1.2.3");

	(void)state;
	fake_reset(fake_variants[1]);
	fake.worker.qos = NULL;
	datapath_enable_steps(&fake.worker);
	assert_false(is_enabled());
	reset(1, text);
	datapath_enable_steps(&fake.worker);
	assert_true(is_enabled());
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(n_sent(), 1);
}

static int close_all(void **state)
{
	qos_close(qos);
	return fake_close(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_packet_is_that_of_its_subscribers),
		cmocka_unit_test(all_addresses_of_one_share_its_rate),
		cmocka_unit_test(upstream_is_judged_first),
		cmocka_unit_test(colours_are_marked),
		cmocka_unit_test(packets_without_a_route_take_no_tokens),
		cmocka_unit_test(without_subscribers_there_is_no_step),
	};

	return cmocka_run_group_tests(tests, vlans_open, close_all);
}
