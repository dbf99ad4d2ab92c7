// Settings of one interface do not affect another: MAC addresses, flags, redirects, VRFs on one
// port.
#include "datapath/dice.h"
#include "datapath/steps.h"
#include "datapath/vlans.h"

static void the_mac_of_a_vlan_may_be_its_own(void **state)
{
	struct iface iface;
	struct bytes frame = frame_on(TAGGED_IN, "10.1.2.3"), left = frame_forwarded(&frame, 1);

	fake_reset(fake_variants[1]);
	iface = *fib_iface(fake.fib, TAGGED_IN);
	iface.mac.bytes[4] = 0x42;
	iface.macs[iface.n_macs++] = (struct wire_mac){{0, 0, 0x5e, 0, 1, 7}};
	fake_set(TAGGED_IN, &iface);
	fake_receive(0, &frame); // addressed to the port's MAC
	memcpy(frame.at, iface.macs[0].bytes, 6);
	frame.at[5]++;
	fake_receive(0, &frame);
	frame.at[5]--;
	fake_receive(0, &frame);
	memcpy(frame.at, iface.mac.bytes, 6);
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(fake.stat.verdict[VERDICT_MAC_NOT_OURS], 2);
	assert_int_equal(fake.device[1].n_sent, 2);
	expect_bytes(fake.device[1].sent[0], &left);
	expect_bytes(fake.device[1].sent[1], &left);
}

// Flags of the VLAN and the verdict of its packets; those of the port are still forwarded.
static const struct {
	uint8_t flags, handed, dropped; // VERDICT_FORWARD: not handed or dropped
} flag_rows[] = {
	{IFACE_DOWN, VERDICT_FORWARD, VERDICT_PORT_DISABLED},
	{IFACE_LINUX, VERDICT_LINUX, VERDICT_FORWARD},
	{IFACE_LINUX4, VERDICT_LINUX, VERDICT_FORWARD},
	{IFACE_LINUX6, VERDICT_FORWARD, VERDICT_FORWARD},
};

static void set_flags(uint16_t iface, uint8_t flags)
{
	struct iface changed = *fib_iface(fake.fib, iface);

	changed.flags = flags;
	fake_set(iface, &changed);
}

static void the_flags_of_a_vlan_are_its_own(void **state)
{
	struct bytes tagged = frame_on(TAGGED_IN, "10.1.2.3"), plain = frame_to(0, "10.1.2.3");

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(flag_rows); i++) {
			fake_reset(fake_variants[v]);
			set_flags(TAGGED_IN, flag_rows[i].flags);
			for (unsigned k = 0; k < 20; k++) {
				fake_receive(0, &tagged);
				fake_receive(0, &plain);
			}
			fake_run();
			bool is_sent = !flag_rows[i].handed && !flag_rows[i].dropped;
			assert_int_equal(fake.device[1].n_sent, is_sent ? 40 : 20);
			if (flag_rows[i].handed)
				assert_int_equal(fake.stat.handed[flag_rows[i].handed], 20);
			if (flag_rows[i].dropped)
				assert_int_equal(fake.stat.verdict[flag_rows[i].dropped], 20);
		}
}

static void a_port_of_linuxs_gives_it_its_vlans_too(void **state)
{
	struct bytes frame = frame_on(TAGGED_IN, "10.1.2.3");

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		fake_reset(fake_variants[v]);
		set_flags(PLAIN_IN, IFACE_LINUX);
		fake_receive(0, &frame);
		fake_run();
		expect_bytes(fake_punted(CLASS_LINUX), &frame);
	}
}

// Where Linux has a filter on an output, it sends there itself, and workers to all others.
static void an_output_of_linuxs_gets_nothing_from_workers(void **state)
{
	struct bytes to_it = frame_on(PLAIN_IN, "10.1.2.3"), back = frame_on(TAGGED_IN, "10.0.2.3");

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned is_linuxs = 0; is_linuxs < 2; is_linuxs++) {
			fake_reset(fake_variants[v]);
			set_flags(PLAIN_OUT, is_linuxs ? IFACE_OUT_LINUX : 0);
			for (unsigned k = 0; k < 20; k++) {
				fake_receive(0, &to_it);
				fake_receive(0, &back);
			}
			fake_run();
			assert_int_equal(fake.device[1].n_sent, is_linuxs ? 0 : 20);
			assert_int_equal(fake.device[0].n_sent, 20);
			assert_int_equal(fake.stat.handed[VERDICT_LINUX], is_linuxs ? 20 : 0);
			if (is_linuxs)
				expect_bytes(fake_punted(CLASS_LINUX), &to_it);
		}
	set_flags(PLAIN_OUT, 0);
}

// A frame with a priority tag (VID 0) before its other tags or after the outer one.
static struct bytes with_priority(struct bytes frame, bool is_inner)
{
	uint32_t outer = be32toh(load32(frame.at + 12));

	if (is_inner)
		memmove(frame.at + 12, frame.at + 16, (frame.n -= 4) - 12);
	frame_tag(&frame, CUSTOMER | PRIORITY);
	if (is_inner)
		frame_tag(&frame, outer);
	return frame;
}

static void redirects_are_for_the_same_vlan_only(void **state)
{
	struct bytes frames[] = {with_priority(frame_on(PLAIN_IN, "10.0.2.3"), false),
		with_priority(frame_on(TAGGED_IN, "10.10.2.3"), false),
		with_priority(frame_on(TAGGED_IN, "10.10.2.3"), true),
		with_priority(frame_on(TAGGED_IN, "10.0.2.3"), true),
		frame_on(TAGGED_IN, "10.10.2.3"), frame_on(TAGGED_IN, "10.0.2.3"),
		frame_on(TAGGED_IN, "10.12.2.3"), frame_on(PLAIN_IN, "10.10.2.3"),
		frame_on(QINQ_IN, "10.12.2.3"), frame_on(PLAIN_IN, "10.0.2.3")};
	static const bool is_redirect[] = {true, true, true, false, true, false, false, false, true,
		true};

	for (unsigned i = 0; i < ARRAY_LEN(frames); i++) {
		fake_reset(fake_variants[1]);
		fake.tap.redirect_cycles = 1;
		set_flags(PLAIN_IN, IFACE_REDIRECTS4);
		set_flags(TAGGED_IN, IFACE_REDIRECTS4);
		set_flags(QINQ_IN, IFACE_REDIRECTS4);
		struct rte_mbuf *m = fake_receive(0, &frames[i]);
		fake_run();
		assert_int_equal(fake.stat.handed[VERDICT_REDIRECT], is_redirect[i]);
		if (is_redirect[i])
			expect_bytes(m, &frames[i]);
		else
			assert_int_equal(fake.device[0].n_sent, 1);
	}
}

static void ip4_through_an_ip6_neighbour_has_the_mtu_of_ip4(void **state)
{
	struct iface out = *fib_iface(fake.fib, PLAIN_OUT);
	struct fib_hop hop = {.kind = FIB_VIA, .iface = PLAIN_OUT};
	struct bytes frame = frame_to(0, "10.77.0.1");

	wire_addr_parse("2001:db8:1::2", &hop.via);
	fake_route(0, "10.77.0.0/16", &hop);
	frame.n = 14 + out.mtu;
	frame.at[16] = out.mtu >> 8;
	frame.at[17] = out.mtu & 0xff;
	frame_mend(&frame);
	struct bytes left = frame_forwarded(&frame, PLAIN_OUT), longer = frame;

	longer.n++;
	longer.at[17]++;
	frame_mend(&longer);
	out.mtu6 = out.mtu - 100;
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		fake_reset(fake_variants[v]);
		fake_set(PLAIN_OUT, &out);
		fake_receive(0, &frame);
		fake_receive(0, &longer);
		fake_run();
		expect_sent(1, &left);
		assert_int_equal(fake.stat.handed[VERDICT_MTU_EXCEEDED], 1);
	}
}

// One burst with packets to the same addresses in three tables.
static void walk_vrfs(const char *dst)
{
	static const uint16_t in[] = {PLAIN_IN, RED_IN, TAGGED_IN, BLUE_IN};
	static const uint16_t out[] = {PLAIN_OUT, RED_OUT, PLAIN_OUT, 3};
	struct bytes left[ARRAY_LEN(in)];

	for (unsigned i = 0; i < BURST_MAX; i++) {
		struct bytes frame = frame_on(in[i % 4], dst);
		left[i % 4] = frame_forwarded(&frame, out[i % 4]);
		fake_receive(0, &frame);
	}
	fake_run();
	assert_int_equal(fake.device[1].n_sent, 32);
	assert_int_equal(fake.device[2].n_sent, 16);
	assert_int_equal(fake.device[3].n_sent, 16);
	for (unsigned i = 0; i < 32; i++)
		expect_bytes(fake.device[1].sent[i], &left[0]);
	for (unsigned i = 0; i < 16; i++)
		expect_bytes(fake.device[2].sent[i], &left[1]);
	for (unsigned i = 0; i < 16; i++)
		expect_bytes(fake.device[3].sent[i], &left[3]);
}

static void bursts_of_a_vlan_keep_their_order(void **state)
{
	struct bytes frame = frame_on(RED_IN, "10.1.2.3");
	const unsigned n = 2 * BURST_MAX;

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		fake_reset(fake_variants[v]);
		fake.io.burst = BURST_MAX;
		for (unsigned i = 0; i < n; i++) {
			frame.at[frame.n - 1] = i;
			fake_receive(0, &frame);
		}
		fake_run();
		assert_int_equal(fake.device[2].n_sent, n);
		for (unsigned i = 0; i < n; i++) {
			const struct rte_mbuf *m = fake.device[2].sent[i];

			assert_int_equal(rte_pktmbuf_mtod(m, uint8_t *)[m->data_len - 1], i);
		}
	}
}

// All leave through port 3, numbered in their last byte.
static void packets_of_several_vrfs_keep_their_order(void **state)
{
	static const struct {
		uint16_t in;
		const char *dst;
	} rows[] = {{BLUE_IN, "10.1.2.3"}, {PLAIN_IN, "10.3.2.3"}, {TAGGED_IN, "10.3.2.3"}};
	const unsigned n = 2 * BURST_MAX;

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		fake_reset(fake_variants[v]);
		fake.io.burst = BURST_MAX;
		for (unsigned i = 0; i < n; i++) {
			unsigned row = dice(ARRAY_LEN(rows));
			struct bytes frame = frame_on(rows[row].in, rows[row].dst);

			frame.at[frame.n - 1] = i;
			fake_receive(0, &frame);
		}
		fake_run();
		// Untagged frames that the vector parser recognises are taken before the others of
		// their sixteen.
		assert_int_equal(fake.device[3].n_sent, n);
		for (unsigned i = 0; i < n; i++) {
			const struct rte_mbuf *m = fake.device[3].sent[i];
			unsigned number = rte_pktmbuf_mtod(m, uint8_t *)[m->data_len - 1];

			if (v == 0)
				assert_int_equal(number, i);
			assert_int_equal(number / 16, i / 16);
		}
	}
}

// Which interfaces the frames of a burst come in on, in turns, and the marks of the burst.
static const struct {
	uint16_t in[3];
	bool has_one_iif, has_one_vrf;
} in_rows[] = {
	{{PLAIN_IN, PLAIN_IN, PLAIN_IN}, true, true},
	{{RED_IN, RED_IN, RED_IN}, true, true},
	{{PLAIN_IN, TAGGED_IN, TAGGED_IN}, false, true},
	{{TAGGED_IN, SERVICE_IN, QINQ_IN}, false, true},
	{{PLAIN_IN, RED_IN, BLUE_IN}, false, false},
	{{BLUE_IN, RED_IN, BLUE_IN}, false, false},
};

static void expect_iifs(const struct burst *b, const uint16_t in[3])
{
	uint64_t linux_mask = 0;

	for (unsigned i = 0; i < b->n; i++) {
		unsigned number = b->frame[i][b->length[i] - 1];
		uint16_t iif = in[number % 3];

		assert_int_equal(burst_iif(b, i), iif);
		assert_int_equal(burst_vrf(b, i), fib_iface(fake.fib, iif)->vrf);
		linux_mask |= (uint64_t)(iif == BLUE_IN || iif == TAGGED_IN) << i;
	}
	assert_int_equal(b->linux_mask & burst_all(b), linux_mask);
}

static void a_burst_says_where_its_packets_came_in(void **state)
{
	struct rte_mbuf *mbufs[BURST_MAX];
	const struct received r = {.from = fake.io.queues, .mbuf = mbufs, .n = BURST_MAX};

	for (unsigned v = 0; v < 2; v++)
		for (unsigned row = 0; row < 2 * ARRAY_LEN(in_rows); row++) {
			const bool is_ip6 = row % 2;

			fake_reset(fake_variants[v]);
			set_flags(TAGGED_IN, is_ip6 ? IFACE_LINUX6 : IFACE_LINUX4);
			set_flags(BLUE_IN, IFACE_LINUX);
			for (unsigned i = 0; i < BURST_MAX; i++) {
				struct bytes frame = frame_on(in_rows[row / 2].in[i % 3],
					is_ip6 ? "2001:db8:1::3" : "10.1.2.3");
				frame.at[frame.n - 1] = i;
				mbufs[i] = fake_mbuf(&frame);
			}
			datapath_parse(&fake.worker, fib_live_view(fake.worker.live), &r);
			const struct burst *b =
				is_ip6 ? &fake.worker.poll->ip6 : &fake.worker.poll->ip4;
			assert_int_equal(b->n, BURST_MAX);
			assert_int_equal(b->in_port, 0);
			assert_int_equal(b->has_one_iif, in_rows[row / 2].has_one_iif);
			assert_int_equal(b->has_one_vrf, in_rows[row / 2].has_one_vrf);
			expect_iifs(b, in_rows[row / 2].in);
		}
}

static void vrfs_with_the_same_prefixes_stay_apart(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		fake_reset(fake_variants[v]);
		walk_vrfs("10.1.2.3");
		fake_reset(fake_variants[v]);
		walk_vrfs("2001:db8:1::3");
	}
}

static void an_address_is_local_in_its_own_vrf_only(void **state)
{
	struct bytes blue = frame_on(BLUE_IN, "10.0.0.9"), red = frame_on(RED_IN, "10.0.0.9");

	fake_reset(fake_variants[1]);
	fake_receive(0, &blue);
	fake_receive(0, &red);
	fake_run();
	assert_int_equal(fake.stat.handed[VERDICT_LOCAL], 1);
	assert_int_equal(fake.stat.handed[VERDICT_NO_ROUTE], 1);
	expect_bytes(fake_punted(CLASS_HOST), &blue);
	expect_bytes(fake_punted(CLASS_UNREACHABLE), &red);
}

static void a_port_may_be_in_a_vrf_without_its_vlans(void **state)
{
	struct bytes plain = frame_to(0, "10.1.2.3"), tagged = frame_on(TAGGED_IN, "10.1.2.3");

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		fake_reset(fake_variants[v]);
		struct iface iface = *fib_iface(fake.fib, PLAIN_IN);
		iface.vrf = BLUE;
		fake_set(PLAIN_IN, &iface);
		for (unsigned i = 0; i < 32; i++) {
			fake_receive(0, &plain);
			if (i % 4 == 0)
				fake_receive(0, &tagged);
		}
		fake_run();
		assert_int_equal(fake.device[3].n_sent, 32);
		assert_int_equal(fake.device[1].n_sent, 8);
	}
}

// A frame on a random interface to a random destination, possibly with a few random bytes or
// truncated.
static struct bytes any_frame(void)
{
	static const uint16_t in[] = {PLAIN_IN, TAGGED_IN, SERVICE_IN, QINQ_IN, RED_IN, BLUE_IN};
	static const char *const dst[] = {"10.1.2.3", "10.0.2.3", "10.20.0.1", "10.21.0.1",
		"10.10.0.1", "10.0.0.9", "2001:db8:1::3", "2001:db8:15::1", "2001:db8:a::1"};
	struct bytes frame = frame_on(in[dice(ARRAY_LEN(in))], dst[dice(ARRAY_LEN(dst))]);

	for (unsigned n = dice(4) ? 0 : dice(4); n; n--)
		frame.at[dice(frame.n)] = dice(256);
	if (!dice(20))
		frame.n = dice(frame.n);
	return frame;
}

static void expect_punts_as_they_came(const struct bytes frames[], struct rte_mbuf *const mbufs[],
	unsigned n)
{
	for (unsigned c = 0; c < N_CLASSES; c++)
		for (const struct rte_mbuf *m = fake_punted(c); m; m = fake_punted(c))
			for (unsigned i = 0; i < n; i++)
				if (mbufs[i] == m)
					expect_bytes(m, &frames[i]);
}

static void walk_any(const struct bytes frames[], unsigned n, uint32_t flags)
{
	struct rte_mbuf *mbufs[4 * BURST_MAX];

	set_flags(PLAIN_IN, flags & 0x7f);
	set_flags(TAGGED_IN, flags >> 8 & 0x7f);
	set_flags(RED_IN, flags >> 16 & 0x7f);
	fake.tap.redirect_cycles = flags & 0x1000000 ? 0 : UINT64_MAX;
	for (unsigned i = 0; i < n; i++)
		mbufs[i] = fake_receive(0, &frames[i]);
	fake_run();
	expect_punts_as_they_came(frames, mbufs, n);
}

// Packet by packet or in bursts, which have packets of several VRFs and with several flags.
// fake_run checks the packet accounting.
static void whatever_comes_is_accounted_for_and_punted_as_it_came(void **state)
{
	static struct bytes frames[4 * BURST_MAX];
	static struct stats_worker plain;
	uint64_t n_sent = 0, n_punted = 0;

	for (unsigned round = 0; round < 300; round++) {
		uint32_t flags = dice(1 << 25) & dice(1 << 25) & dice(1 << 25);

		for (unsigned i = 0; i < ARRAY_LEN(frames); i++)
			frames[i] = any_frame();
		fake_reset(fake_variants[0]);
		walk_any(frames, ARRAY_LEN(frames), flags);
		plain = fake.stat;
		for (unsigned v = 1; v < FAKE_VARIANTS; v++) {
			fake_reset(fake_variants[v]);
			fake.io.burst = round % 2 ? fake.io.burst : BURST_MAX;
			walk_any(frames, ARRAY_LEN(frames), flags);
			assert_memory_equal(plain.verdict, fake.stat.verdict,
				sizeof(plain.verdict));
			assert_memory_equal(plain.handed, fake.stat.handed, sizeof(plain.handed));
		}
		n_sent += plain.verdict[VERDICT_FORWARD];
		n_punted += plain.handed[VERDICT_LINUX];
	}
	assert_in_range(n_sent, 20000, 70000);
	assert_in_range(n_punted, 3000, 40000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_mac_of_a_vlan_may_be_its_own),
		cmocka_unit_test(the_flags_of_a_vlan_are_its_own),
		cmocka_unit_test(a_port_of_linuxs_gives_it_its_vlans_too),
		cmocka_unit_test(an_output_of_linuxs_gets_nothing_from_workers),
		cmocka_unit_test(redirects_are_for_the_same_vlan_only),
		cmocka_unit_test(ip4_through_an_ip6_neighbour_has_the_mtu_of_ip4),
		cmocka_unit_test(packets_of_several_vrfs_keep_their_order),
		cmocka_unit_test(a_burst_says_where_its_packets_came_in),
		cmocka_unit_test(bursts_of_a_vlan_keep_their_order),
		cmocka_unit_test(vrfs_with_the_same_prefixes_stay_apart),
		cmocka_unit_test(an_address_is_local_in_its_own_vrf_only),
		cmocka_unit_test(a_port_may_be_in_a_vrf_without_its_vlans),
		cmocka_unit_test(whatever_comes_is_accounted_for_and_punted_as_it_came),
	};
	return cmocka_run_group_tests(tests, vlans_open, fake_close);
}
