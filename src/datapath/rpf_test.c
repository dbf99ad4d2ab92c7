// The reverse path filter: which sources pass on which interface, and the verdicts of the others.
#include "datapath/dice.h"
#include "datapath/vlans.h"

#include "wire/headers.h"

enum { TTL_AT = 22, ROUNDS = 60, HANDED = 1 << 8 };

static const char *const kinds[N_FIB_KINDS] = {
	[FIB_BLACKHOLE] = "172.16.0.0/16",
	[FIB_UNREACHABLE] = "172.17.0.0/16",
	[FIB_PROHIBIT] = "172.18.0.0/16",
	[FIB_LINUX] = "172.19.0.0/16",
	[FIB_LOCAL] = "172.20.0.0/16",
};

static void add_group(const char *prefix, const uint16_t iface[], unsigned n)
{
	struct fib_member member[16];
	struct fib_hop group;

	for (unsigned i = 0; i < n; i++) {
		member[i] = (struct fib_member){.hop = {.kind = FIB_VIA, .iface = iface[i]},
			.weight = 1 + i};
		assert_int_equal(wire_addr_parse("10.9.9.9", &member[i].hop.via), 0);
	}
	assert_int_equal(fib_group(fake.fib, member, n, &group, NULL), 0);
	fake_route(0, prefix, &group);
}

static int open_table(void **state)
{
	static const uint16_t many[] = {1, 2, 3, 10, 11, 12, 13, 14, 20};
	const struct fib_hop connected = {.kind = FIB_CONNECTED, .iface = PLAIN_IN};

	vlans_open(state);
	for (uint8_t kind = 0; kind < N_FIB_KINDS; kind++)
		if (kinds[kind])
			fake_route(0, kinds[kind],
				&(struct fib_hop){.kind = kind, .iface = IFACE_NONE});
	fake_route(0, "172.21.0.0/16", &connected);
	fake_route(0, "172.25.0.0/16", &(struct fib_hop){.kind = FIB_CONNECTED, .iface = RED_IN});
	fake_route(RED, "10.2.0.0/16",
		&(struct fib_hop){.kind = FIB_UNREACHABLE, .iface = IFACE_NONE});
	add_group("172.22.0.0/16", (uint16_t[]){TAGGED_OUT, PLAIN_IN}, 2);
	add_group("172.23.0.0/16", (uint16_t[]){TAGGED_OUT, TAGGED_IN}, 2);
	add_group("172.24.0.0/16", many, ARRAY_LEN(many));
	return 0;
}

static void set_mode(uint16_t iface, enum iface_rpf mode)
{
	struct iface settings = *fib_iface(fake.fib, iface);

	settings.rpf4 = mode;
	fake_set(iface, &settings);
}

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

// What each mode makes of a source; HANDED: Linux gets the packet.
static const struct row {
	uint16_t iface;
	const char *src;
	unsigned strict, loose;
} rows[] = {
	{PLAIN_IN, "10.0.7.7", VERDICT_FORWARD, VERDICT_FORWARD},
	{PLAIN_IN, "10.2.7.7", VERDICT_RPF_FAILED, VERDICT_FORWARD},
	{PLAIN_IN, "10.10.7.7", VERDICT_RPF_FAILED, VERDICT_FORWARD}, // a VLAN of the same port
	{PLAIN_IN, "203.0.113.1", VERDICT_RPF_FAILED, VERDICT_RPF_FAILED},
	{PLAIN_IN, "172.16.0.1", VERDICT_RPF_FAILED, VERDICT_RPF_FAILED},
	{PLAIN_IN, "172.17.0.1", VERDICT_RPF_FAILED, VERDICT_RPF_FAILED},
	{PLAIN_IN, "172.18.0.1", VERDICT_RPF_FAILED, VERDICT_RPF_FAILED},
	{PLAIN_IN, "172.19.0.1", HANDED | VERDICT_LINUX, HANDED | VERDICT_LINUX},
	{PLAIN_IN, "172.20.0.1", HANDED | VERDICT_OWN_SOURCE, HANDED | VERDICT_OWN_SOURCE},
	{PLAIN_IN, "172.21.0.1", VERDICT_FORWARD, VERDICT_FORWARD}, // unresolved
	{TAGGED_IN, "172.21.0.1", VERDICT_RPF_FAILED, VERDICT_FORWARD},
	{PLAIN_IN, "172.22.0.1", VERDICT_FORWARD, VERDICT_FORWARD},
	{PLAIN_IN, "172.23.0.1", VERDICT_RPF_FAILED, VERDICT_FORWARD},
	{TAGGED_IN, "172.23.0.1", VERDICT_FORWARD, VERDICT_FORWARD},
	{PLAIN_IN, "172.24.0.1", HANDED | VERDICT_LINUX, VERDICT_FORWARD},
	{TAGGED_IN, "10.10.7.7", VERDICT_FORWARD, VERDICT_FORWARD},
	{TAGGED_IN, "10.0.7.7", VERDICT_RPF_FAILED, VERDICT_FORWARD},
	{QINQ_IN, "10.12.7.7", VERDICT_FORWARD, VERDICT_FORWARD},
	{RED_IN, "10.13.7.7", VERDICT_FORWARD, VERDICT_FORWARD},
	{RED_IN, "10.30.7.7", VERDICT_RPF_FAILED, VERDICT_FORWARD},
	// Where a VRF has no route, the main table counts.
	{RED_IN, "10.0.7.7", VERDICT_RPF_FAILED, VERDICT_FORWARD},
	{RED_IN, "203.0.113.1", VERDICT_RPF_FAILED, VERDICT_RPF_FAILED},
	{RED_IN, "172.16.0.1", VERDICT_RPF_FAILED, VERDICT_RPF_FAILED},
	{RED_IN, "172.19.0.1", HANDED | VERDICT_LINUX, HANDED | VERDICT_LINUX},
	{RED_IN, "172.23.0.1", VERDICT_RPF_FAILED, VERDICT_FORWARD},
	{RED_IN, "172.25.0.1", VERDICT_FORWARD, VERDICT_FORWARD},     // leads back into the VRF
	{RED_IN, "10.2.7.7", VERDICT_RPF_FAILED, VERDICT_RPF_FAILED}, // unreachable in the VRF
	{BLUE_IN, "10.14.7.7", VERDICT_FORWARD, VERDICT_FORWARD},
	{BLUE_IN, "10.13.7.7", VERDICT_RPF_FAILED, VERDICT_RPF_FAILED},
};

static unsigned expected(const struct row *row, enum iface_rpf mode)
{
	if (mode == IFACE_RPF_STRICT)
		return row->strict;
	if (mode == IFACE_RPF_LOOSE || row->strict == (HANDED | VERDICT_OWN_SOURCE))
		return row->loose;
	return VERDICT_FORWARD;
}

static uint64_t n_with(unsigned verdict)
{
	return verdict & HANDED ? fake.stat.handed[verdict & ~HANDED] : fake.stat.verdict[verdict];
}

static void each_source_gets_its_verdict(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned r = 0; r < ARRAY_LEN(rows); r++)
			for (enum iface_rpf mode = IFACE_RPF_OFF; mode <= IFACE_RPF_LOOSE; mode++) {
				struct bytes frame =
					frame_from(rows[r].iface, rows[r].src, "10.1.2.3");

				fake_reset(fake_variants[v]);
				set_mode(rows[r].iface, mode);
				fake_receive(0, &frame);
				fake_run();
				assert_int_equal(n_with(expected(&rows[r], mode)), 1);
			}
}

// Modes differ by interface; packets of all of them come in one burst.
static void packets_of_one_burst_are_checked_each_by_its_interface(void **state)
{
	static enum iface_rpf mode[BLUE_IN + 1];

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t n_expected[2 * HANDED] = {0};
		unsigned n = 1 + dice(3 * BURST_MAX);

		fake_reset(fake_variants[round % FAKE_VARIANTS]);
		for (uint16_t iface = 0; iface <= BLUE_IN; iface++)
			if (iface == PLAIN_IN || iface >= TAGGED_IN)
				set_mode(iface, mode[iface] = (enum iface_rpf)dice(3));
		for (unsigned i = 0; i < n; i++) {
			const struct row *row = &rows[dice(ARRAY_LEN(rows))];
			struct bytes frame = frame_from(row->iface, row->src, "10.1.2.3");

			n_expected[expected(row, mode[row->iface])]++;
			fake_receive(0, &frame);
		}
		fake_run();
		for (unsigned verdict = 0; verdict < 2 * HANDED; verdict++)
			if (n_expected[verdict])
				assert_int_equal(n_with(verdict), n_expected[verdict]);
	}
}

static void the_others_of_a_burst_leave_in_order(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		struct bytes left[BURST_MAX];
		unsigned n_left = 0;

		fake_reset(fake_variants[v]);
		set_mode(PLAIN_IN, IFACE_RPF_STRICT);
		for (unsigned i = 0; i < BURST_MAX; i++) {
			const bool passes = i % 3;
			struct bytes frame = frame_from(PLAIN_IN, passes ? "10.0.7.7" : "10.2.7.7",
				i % 2 ? "10.1.2.3" : "10.20.2.3");

			frame.at[TTL_AT] = 2 + i;
			frame_mend(&frame);
			fake_receive(0, &frame);
			if (passes)
				left[n_left++] =
					frame_forwarded(&frame, i % 2 ? PLAIN_OUT : TAGGED_OUT);
		}
		fake_run();
		assert_int_equal(fake.device[1].n_sent, n_left);
		for (unsigned i = 0; i < n_left; i++)
			expect_bytes(fake.device[1].sent[i], &left[i]);
	}
}

// Linux looks up the destination first, and checks what it gets itself.
static void a_destination_that_is_not_forwarded_comes_first(void **state)
{
	static const struct {
		const char *dst;
		unsigned verdict;
	} row[] = {
		{"203.0.113.9", HANDED | VERDICT_NO_ROUTE}, {"172.16.0.9", VERDICT_BLACKHOLE},
		{"172.17.0.9", HANDED | VERDICT_UNREACHABLE},
		{"172.19.0.9", HANDED | VERDICT_LINUX}, {"172.20.0.9", HANDED | VERDICT_LOCAL},
		{"172.21.0.9", VERDICT_RPF_FAILED}, // unresolved
		{"172.23.0.9", VERDICT_RPF_FAILED}, // a group
	};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		struct bytes frame = frame_from(PLAIN_IN, "10.2.7.7", row[i].dst);

		fake_reset(fake_variants[1]);
		set_mode(PLAIN_IN, IFACE_RPF_STRICT);
		fake_receive(0, &frame);
		fake_run();
		assert_int_equal(n_with(row[i].verdict), 1);
	}
}

static void ttl_comes_later(void **state)
{
	struct bytes frame = frame_from(PLAIN_IN, "10.2.7.7", "10.1.2.3");

	frame.at[TTL_AT] = 1;
	frame_mend(&frame);
	fake_reset(fake_variants[1]);
	set_mode(PLAIN_IN, IFACE_RPF_STRICT);
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(n_with(VERDICT_RPF_FAILED), 1);
}

static void linux_decides_about_own_addresses_that_it_may_accept(void **state)
{
	struct bytes frame = frame_from(PLAIN_IN, "172.20.0.1", "10.1.2.3");

	for (enum iface_rpf mode = IFACE_RPF_STRICT; mode <= IFACE_RPF_LOOSE; mode++) {
		fake_reset(fake_variants[1]);
		fake.states[0].pass_martians = true;
		set_mode(PLAIN_IN, mode);
		fake_receive(0, &frame);
		fake_run();
		assert_int_equal(n_with(HANDED | VERDICT_LINUX), 1);
	}
}

static void before_all_routes_are_read_linux_decides(void **state)
{
	struct bytes frame = frame_from(PLAIN_IN, "203.0.113.1", "10.1.2.3");

	fake_reset(fake_variants[1]);
	fib_set_synced(fake.fib, false);
	set_mode(PLAIN_IN, IFACE_RPF_LOOSE);
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(n_with(HANDED | VERDICT_NOT_SYNCED), 1);
}

static void where_linux_forwards_it_also_checks(void **state)
{
	struct iface settings = *fib_iface(fake.fib, PLAIN_IN);
	struct bytes frame = frame_from(PLAIN_IN, "10.2.7.7", "10.1.2.3");

	fake_reset(fake_variants[1]);
	settings.rpf4 = IFACE_RPF_STRICT;
	settings.flags = IFACE_LINUX4;
	fake_set(PLAIN_IN, &settings);
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(n_with(HANDED | VERDICT_LINUX), 1);
}

static void rp_filter_does_not_concern_ip6(void **state)
{
	struct bytes frame = frame_on(PLAIN_IN, "2001:db8:1::3"),
		     left = frame_forwarded(&frame, PLAIN_OUT);

	fake_reset(fake_variants[1]);
	set_mode(PLAIN_IN, IFACE_RPF_STRICT);
	fake_receive(0, &frame);
	fake_run();
	expect_sent(1, &left);
}

static struct bytes frame6_from(uint16_t iface, const char *src, const char *dst)
{
	struct bytes frame = frame_on(iface, dst);
	struct wire_addr addr;
	unsigned at = WIRE_ETHER_BYTES;

	assert_int_equal(wire_addr_parse(src, &addr), 0);
	while (frame.at[at - 2] != 0x86 || frame.at[at - 1] != 0xdd)
		at += WIRE_VLAN_BYTES;
	memcpy(frame.at + at + offsetof(struct wire_ip6, src), addr.bytes, 16);
	return frame;
}

// With TAP interfaces and without.
static void ip6_is_checked_as_the_port_says(void **state)
{
	static const struct row row[] = {
		{PLAIN_IN, "2001:db8::7", VERDICT_FORWARD, VERDICT_FORWARD},
		{PLAIN_IN, "2001:db8:2::7", VERDICT_RPF_FAILED, VERDICT_FORWARD},
		{PLAIN_IN, "2001:db9::7", VERDICT_RPF_FAILED, VERDICT_RPF_FAILED},
		{PLAIN_IN, "2001:dba::7", VERDICT_RPF_FAILED, VERDICT_RPF_FAILED}, // local
		{PLAIN_IN, "2001:dbb::7", VERDICT_FORWARD, VERDICT_FORWARD},       // Linux's
		{TAGGED_IN, "2001:db8:a::7", VERDICT_FORWARD, VERDICT_FORWARD},
		{TAGGED_IN, "2001:db8::7", VERDICT_RPF_FAILED, VERDICT_FORWARD},
		{RED_IN, "2001:db8:d::7", VERDICT_FORWARD, VERDICT_FORWARD},
		{RED_IN, "2001:db8::7", VERDICT_RPF_FAILED, VERDICT_FORWARD},
		{RED_IN, "2001:db9::7", VERDICT_RPF_FAILED, VERDICT_RPF_FAILED},
		{RED_IN, "2001:dbb::7", VERDICT_FORWARD, VERDICT_FORWARD},
	};

	fake_route(0, "2001:db8::/64", &(struct fib_hop){.kind = FIB_CONNECTED, .iface = PLAIN_IN});
	fake_route(0, "2001:dba::/64", &(struct fib_hop){.kind = FIB_LOCAL, .iface = IFACE_NONE});
	fake_route(0, "2001:dbb::/64", &(struct fib_hop){.kind = FIB_LINUX, .iface = IFACE_NONE});
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned r = 0; r < 3 * ARRAY_LEN(row); r++) {
			const struct row *one = &row[r / 3];
			struct bytes frame = frame6_from(one->iface, one->src, "2001:db8:1::3");

			fake_reset(fake_variants[v]);
			fake.states[0].rpf6 = r % 3;
			if (one->iface == PLAIN_IN && r % 2)
				fake.worker.tap = NULL;
			fake_receive(0, &frame);
			fake_run();
			assert_int_equal(n_with(expected(one, r % 3)), 1);
		}
}

static void ip6_packets_to_the_router_are_not_checked(void **state)
{
	struct bytes frame = frame6_from(PLAIN_IN, "2001:db9::7", "2001:dba::9");

	fake_reset(fake_variants[1]);
	fake.states[0].rpf6 = IFACE_RPF_STRICT;
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(n_with(HANDED | VERDICT_LOCAL), 1);
}

static void ip6_is_checked_where_linux_forwards(void **state)
{
	struct iface settings = *fib_iface(fake.fib, PLAIN_IN);
	struct bytes frame = frame6_from(PLAIN_IN, "2001:db8:2::7", "2001:db8:1::3");

	fake_reset(fake_variants[1]);
	settings.flags = IFACE_LINUX6;
	fake_set(PLAIN_IN, &settings);
	fake.states[0].rpf6 = IFACE_RPF_STRICT;
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(n_with(VERDICT_RPF_FAILED), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_source_gets_its_verdict),
		cmocka_unit_test(packets_of_one_burst_are_checked_each_by_its_interface),
		cmocka_unit_test(the_others_of_a_burst_leave_in_order),
		cmocka_unit_test(a_destination_that_is_not_forwarded_comes_first),
		cmocka_unit_test(ttl_comes_later),
		cmocka_unit_test(linux_decides_about_own_addresses_that_it_may_accept),
		cmocka_unit_test(before_all_routes_are_read_linux_decides),
		cmocka_unit_test(where_linux_forwards_it_also_checks),
		cmocka_unit_test(rp_filter_does_not_concern_ip6),
		cmocka_unit_test(ip6_is_checked_as_the_port_says),
		cmocka_unit_test(ip6_packets_to_the_router_are_not_checked),
		cmocka_unit_test(ip6_is_checked_where_linux_forwards),
	};

	return cmocka_run_group_tests(tests, open_table, fake_close);
}
