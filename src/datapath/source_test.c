// Packets from our own addresses: whose address it is, in which table, and the resulting verdict.
#include "datapath/dice.h"
#include "datapath/vlans.h"

#include "wire/headers.h"

#include <stdio.h>

enum { OUT = 1, TTL_AT = 22, MANY = 1500 };

static const struct fib_hop local = {.kind = FIB_LOCAL, .iface = IFACE_NONE};

static int open_table(void **state)
{
	vlans_open(state);
	fake_route(0, "10.0.0.1/32", &local);
	return 0;
}

// A frame on an interface from a given address; tags precede the packet.
static struct bytes frame_from(uint16_t iface, const char *src, const char *dst)
{
	struct bytes frame = frame_on(iface, dst);
	unsigned at = WIRE_ETHER_BYTES;
	struct wire_addr addr;

	assert_int_equal(wire_addr_parse(src, &addr), 0);
	while (frame.at[at - 2] != 0x08)
		at += WIRE_VLAN_BYTES;
	memcpy(frame.at + at + offsetof(struct wire_ip4, src), addr.bytes, 4);
	frame_mend(&frame);
	return frame;
}

static void forget(const char *prefix)
{
	struct fib_change gone = {.op = FIB_DELETE};

	assert_int_equal(wire_prefix_parse(prefix, &gone.route.prefix), 0);
	assert_int_equal(fib_change(fake.fib, &gone, 1, NULL, NULL), 0);
}

static unsigned n_left(void)
{
	return fake.stat.verdict[VERDICT_FORWARD];
}

static void linux_gets_them_as_they_came(void **state)
{
	struct bytes frame = frame_from(PLAIN_IN, "10.0.0.1", "10.1.2.3");

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		fake_reset(fake_variants[v]);
		fake_receive(0, &frame);
		fake_run();
		assert_int_equal(fake.stat.handed[VERDICT_OWN_SOURCE], 1);
		expect_bytes(fake_punted(CLASS_OTHER), &frame);
		assert_int_equal(n_left(), 0);
	}
}

static void without_taps_they_are_martians(void **state)
{
	struct bytes frame = frame_from(PLAIN_IN, "10.0.0.1", "10.1.2.3");

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		fake_reset(fake_variants[v]);
		fake.worker.tap = NULL;
		fake_receive(0, &frame);
		fake_run();
		assert_int_equal(fake.stat.verdict[VERDICT_MARTIAN_SOURCE], 1);
		assert_int_equal(n_left(), 0);
	}
}

static void where_martians_pass_they_pass(void **state)
{
	struct bytes frame = frame_from(PLAIN_IN, "10.0.0.1", "10.1.2.3"),
		     left = frame_forwarded(&frame, OUT);

	fake_reset(fake_variants[1]);
	fake.states[0].pass_martians = true;
	fake_receive(0, &frame);
	fake_run();
	expect_sent(OUT, &left);
}

// At any place in bursts; packets are identified by their IPv4 identification.
static void the_others_of_a_burst_pass_in_order(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned round = 0; round < 50; round++) {
			unsigned n = 1 + dice(3 * BURST_MAX), n_others = 0;
			struct bytes others[3 * BURST_MAX];

			fake_reset(fake_variants[v]);
			for (unsigned i = 0; i < n; i++) {
				bool is_ours = !dice(1 + round % 9);
				struct bytes frame = frame_from(PLAIN_IN,
					is_ours ? "10.0.0.1" : "10.0.0.2", "10.1.2.3");

				frame.at[18] = i >> 8;
				frame.at[19] = i & 0xff;
				frame.at[TTL_AT] = 2 + dice(200);
				frame_mend(&frame);
				fake_receive(0, &frame);
				if (!is_ours)
					others[n_others++] = frame_forwarded(&frame, OUT);
			}
			fake_run();
			assert_int_equal(fake.stat.handed[VERDICT_OWN_SOURCE], n - n_others);
			assert_int_equal(fake.device[OUT].n_sent, n_others);
			for (unsigned i = 0; i < n_others; i++)
				expect_bytes(fake.device[OUT].sent[i], &others[i]);
		}
}

// A verdict of the route, or a reply that Linux sends, is not overridden.
static void what_is_not_forwarded_keeps_its_verdict(void **state)
{
	static const struct {
		const char *dst;
		uint8_t verdict, class;
	} rows[] = {{"10.0.0.1", VERDICT_LOCAL, CLASS_HOST},
		{"10.99.0.1", VERDICT_NO_ROUTE, CLASS_UNREACHABLE},
		{"224.0.0.9", VERDICT_MULTICAST, CLASS_MULTICAST}};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
			struct bytes frame = frame_from(PLAIN_IN, "10.0.0.1", rows[i].dst);

			fake_reset(fake_variants[v]);
			fake_receive(0, &frame);
			fake_run();
			assert_int_equal(fake.stat.handed[rows[i].verdict], 1);
			expect_bytes(fake_punted(rows[i].class), &frame);
		}
}

// Otherwise those beyond the redirect rate would be forwarded.
static void they_are_no_redirects(void **state)
{
	struct bytes frame = frame_from(PLAIN_IN, "10.0.0.1", "10.0.2.3");
	struct iface iface;

	fake_reset(fake_variants[1]);
	iface = *fib_iface(fake.fib, PLAIN_IN);
	iface.flags = IFACE_REDIRECTS4;
	fake_set(PLAIN_IN, &iface);
	fake.tap.redirect_cycles = UINT64_MAX;
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(fake.stat.handed[VERDICT_OWN_SOURCE], 1);
}

// 10.0.0.9 is an address of BLUE, 10.0.0.1 one of the main table, which counts in every VRF.
static void each_vrf_has_its_own(void **state)
{
	static const struct {
		uint16_t in;
		const char *src;
		bool is_ours;
	} rows[] = {{BLUE_IN, "10.0.0.9", true}, {BLUE_IN, "10.0.0.1", true},
		{RED_IN, "10.0.0.9", false}, {RED_IN, "10.0.0.1", true},
		{TAGGED_IN, "10.0.0.9", false}, {TAGGED_IN, "10.0.0.1", true}};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
			struct bytes frame = frame_from(rows[i].in, rows[i].src, "10.1.2.3");

			fake_reset(fake_variants[v]);
			fake_receive(0, &frame);
			fake_run();
			assert_int_equal(fake.stat.handed[VERDICT_OWN_SOURCE], rows[i].is_ours);
			assert_int_equal(n_left(), !rows[i].is_ours);
			if (rows[i].is_ours)
				expect_bytes(fake_punted(CLASS_OTHER), &frame);
		}
}

static void they_pass_once_the_address_is_another_ones(void **state)
{
	struct bytes frame = frame_from(PLAIN_IN, "10.0.0.77", "10.1.2.3");

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		fake_reset(fake_variants[v]);
		fake_route(0, "10.0.0.77/32", &local);
		fake_receive(0, &frame);
		fake_run();
		assert_int_equal(n_left(), 0);
		forget("10.0.0.77/32");
		fake_receive(0, &frame);
		fake_run();
		assert_int_equal(n_left(), 1);
	}
}

static void walk_from(const char *src, unsigned n_passing)
{
	struct bytes frame = frame_from(PLAIN_IN, src, "10.1.2.3");

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		fake_reset(fake_variants[v]);
		for (unsigned i = 0; i < BURST_MAX; i++)
			fake_receive(0, &frame);
		fake_run();
		assert_int_equal(n_left(), n_passing);
		assert_int_equal(fake.stat.handed[VERDICT_OWN_SOURCE], BURST_MAX - n_passing);
	}
}

// The filter is full then.
static void thousands_of_addresses_are_told_apart_from_others(void **state)
{
	char text[WIRE_PREFIX_TEXT];

	for (unsigned i = 0; i < MANY; i++) {
		snprintf(text, sizeof(text), "10.66.%u.%u/32", i / 100, i % 100);
		fake_route(0, text, &local);
	}
	walk_from("10.66.3.99", 0);
	walk_from("10.66.3.100", BURST_MAX);
	walk_from("10.67.3.99", BURST_MAX);
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(text, sizeof(text), "10.66.%u.%u/32", i / 100, i % 100);
		forget(text);
	}
	walk_from("10.66.3.99", BURST_MAX);
}

static void a_local_prefix_is_ours_as_a_whole(void **state)
{
	fake_route(0, "10.68.0.0/16", &local);
	walk_from("10.68.255.254", 0);
	walk_from("10.69.0.1", BURST_MAX);
	forget("10.68.0.0/16");
	walk_from("10.68.255.254", BURST_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linux_gets_them_as_they_came),
		cmocka_unit_test(without_taps_they_are_martians),
		cmocka_unit_test(where_martians_pass_they_pass),
		cmocka_unit_test(the_others_of_a_burst_pass_in_order),
		cmocka_unit_test(what_is_not_forwarded_keeps_its_verdict),
		cmocka_unit_test(they_are_no_redirects),
		cmocka_unit_test(each_vrf_has_its_own),
		cmocka_unit_test(they_pass_once_the_address_is_another_ones),
		cmocka_unit_test(thousands_of_addresses_are_told_apart_from_others),
		cmocka_unit_test(a_local_prefix_is_ours_as_a_whole),
	};
	return cmocka_run_group_tests(tests, open_table, fake_close);
}
