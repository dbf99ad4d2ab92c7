// VLANs: every input against every output interface, unknown tags, truncated frames.
#include "datapath/vlans.h"

#include <stdio.h>

static const uint16_t ways_in[] = {PLAIN_IN, TAGGED_IN, SERVICE_IN, QINQ_IN};
static const uint16_t ways_out[] = {PLAIN_OUT, TAGGED_OUT, QINQ_OUT};

static void walk_hop_set(uint16_t in, uint16_t out, const char *format)
{
	char dst[64];

	snprintf(dst, sizeof(dst), format, out);
	struct bytes frame = frame_on(in, dst), left = frame_forwarded(&frame, out);
	fake_receive(0, &frame);
	fake_run();
	expect_sent(1, &left);
}

static void each_way_in_leads_to_each_way_out(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(ways_in); i++)
			for (unsigned o = 0; o < ARRAY_LEN(ways_out); o++) {
				fake_reset(fake_variants[v]);
				walk_hop_set(ways_in[i], ways_out[o], "10.%u.2.3");
				fake_reset(fake_variants[v]);
				walk_hop_set(ways_in[i], ways_out[o], "2001:db8:%x::3");
			}
}

// All of them in one burst, several times.
static void a_burst_of_all_ways_keeps_their_order(void **state)
{
	struct bytes left[BURST_MAX];
	unsigned n = 0;

	fake_reset(fake_variants[1]);
	for (; n < BURST_MAX; n++) {
		char dst[32];
		uint16_t out = ways_out[n * 7 % ARRAY_LEN(ways_out)];
		snprintf(dst, sizeof(dst), "10.%u.0.%u", out, n);
		struct bytes frame = frame_on(ways_in[n % ARRAY_LEN(ways_in)], dst);
		left[n] = frame_forwarded(&frame, out);
		fake_receive(0, &frame);
	}
	fake_run();
	assert_int_equal(fake.device[1].n_sent, n);
	bool is_seen[BURST_MAX] = {false};
	for (unsigned i = 0; i < n; i++) {
		const struct rte_mbuf *m = fake.device[1].sent[i];
		unsigned number = rte_pktmbuf_mtod(m, uint8_t *)[33 + m->pkt_len - 60];
		expect_bytes(m, &left[number]);
		assert_false(is_seen[number]);
		is_seen[number] = true;
	}
}

static void a_priority_alone_is_no_vlan(void **state)
{
	static const uint32_t priorities[] = {CUSTOMER | PRIORITY, SERVICE | PRIORITY};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(priorities); i++) {
			struct bytes plain = frame_on(PLAIN_IN, "10.20.2.3");
			struct bytes tagged = frame_on(TAGGED_IN, "10.20.2.3");
			struct bytes left = frame_forwarded(&plain, TAGGED_OUT);

			fake_reset(fake_variants[v]);
			frame_tag(&plain, priorities[i]);
			fake_receive(0, &plain);
			fake_run();
			expect_sent(1, &left);
			fake_reset(fake_variants[v]);
			frame_tag(&tagged, priorities[i]);
			fake_receive(0, &tagged);
			fake_run();
			expect_sent(1, &left);
		}
}

static void the_priority_of_a_vlans_frame_does_not_matter(void **state)
{
	struct bytes frame = frame_on(TAGGED_IN, "10.1.2.3"), left = frame_forwarded(&frame, 1);

	fake_reset(fake_variants[1]);
	frame.at[14] |= 0xf0; // priority 7, drop eligible
	fake_receive(0, &frame);
	fake_run();
	expect_sent(1, &left);
}

// Tags, and whether the destination MAC is a group address or another host's.
static const struct {
	uint32_t outer, inner;
	uint8_t verdict;
	bool is_group, is_other;
} unknown[] = {
	{CUSTOMER | 11, 0, VERDICT_VLAN_UNKNOWN, false, false},
	{SERVICE | 257, 0, VERDICT_VLAN_UNKNOWN, false, false},             // of another port
	{CUSTOMER | 10, CUSTOMER | 10, VERDICT_VLAN_UNKNOWN, false, false}, // one too many
	{SERVICE | 1030, 0, VERDICT_VLAN_UNKNOWN, false, false},            // one too few
	{SERVICE | 1030, SERVICE | 10, VERDICT_VLAN_UNKNOWN, false, false},
	{CUSTOMER | 11, 0, VERDICT_VLAN_UNKNOWN, true, false},
	{CUSTOMER | 11, 0, VERDICT_MAC_NOT_OURS, false, true},
	{CUSTOMER | 10, 0, VERDICT_MAC_NOT_OURS, false, true},
	{CUSTOMER | 10, 0, VERDICT_MAC_GROUP, true, false},
};

static void unknown_tags_are_linuxs_to_judge(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(unknown); i++) {
		struct bytes frame = frame_to(0, "10.1.2.3");

		fake_reset(fake_variants[1]);
		if (unknown[i].is_group)
			memset(frame.at, 0xff, 6);
		frame.at[4] ^= unknown[i].is_other;
		if (unknown[i].inner)
			frame_tag(&frame, unknown[i].inner);
		frame_tag(&frame, unknown[i].outer);
		struct rte_mbuf *m = fake_receive(0, &frame);
		fake_run();
		bool is_punted = unknown[i].verdict != VERDICT_MAC_NOT_OURS;
		assert_int_equal(fake.stat.handed[unknown[i].verdict], is_punted);
		assert_int_equal(fake.stat.verdict[unknown[i].verdict], !is_punted);
		expect_bytes(m, &frame);
	}
}

static void punted_frames_keep_their_tags(void **state)
{
	static const uint8_t classes[] = {CLASS_TTL, CLASS_UNREACHABLE, CLASS_NEIGHBOUR};

	for (unsigned i = 0; i < ARRAY_LEN(classes); i++) {
		struct bytes frame = frame_on(QINQ_IN, i == 1 ? "10.99.2.3" : "10.1.2.3");

		fake_reset(fake_variants[1]);
		if (i == 0)
			frame.at[30] = 1; // TTL
		frame_mend(&frame);
		if (i == 2)
			frame.at[21] = 0x06;
		struct rte_mbuf *m = fake_receive(0, &frame);
		fake_run();
		assert_ptr_equal(fake_punted(classes[i]), m);
		expect_bytes(m, &frame);
	}
}

static void frames_cut_within_their_tags_are_never_read_beyond(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned n = 0; n < 42; n++) {
			struct bytes frame = frame_on(QINQ_IN, "10.1.2.3");

			fake_reset(fake_variants[v]);
			frame.n = n;
			struct rte_mbuf *m = fake_receive(0, &frame);
			fake_run();
			bool is_short = n < 14 || n >= 22;
			uint8_t verdict = is_short ? VERDICT_RUNT : VERDICT_VLAN_UNKNOWN;
			assert_int_equal(fake.stat.verdict[verdict] + fake.stat.handed[verdict], 1);
			expect_bytes(m, &frame);
		}
}

static void an_mtu_counts_without_tags(void **state)
{
	for (unsigned over = 0; over < 2; over++) {
		struct bytes frame = frame_to(0, "2001:db8:15::3"); // hexadecimal 21: QINQ_OUT

		fake_reset(fake_variants[1]);
		memset(frame.at + frame.n, 0, 1514 + over - frame.n);
		frame.n = 1514 + over;
		frame.at[18] = (1460 + over) >> 8;
		frame.at[19] = (1460 + over) & 0xff;
		frame_tag(&frame, CUSTOMER | 10);
		struct bytes left = frame_forwarded(&frame, QINQ_OUT);
		fake_receive(0, &frame);
		fake_run();
		assert_int_equal(fake.stat.handed[VERDICT_MTU_EXCEEDED], over);
		if (!over)
			expect_sent(1, &left);
	}
}

static void a_frame_without_room_for_tags_is_dropped_by_name(void **state)
{
	for (unsigned room = 0; room < 9; room++) {
		struct bytes frame = frame_on(PLAIN_IN, "10.21.2.3");
		struct bytes left = frame_forwarded(&frame, QINQ_OUT);

		fake_reset(fake_variants[1]);
		struct rte_mbuf *m = fake_receive(0, &frame);
		memmove((uint8_t *)m->buf_addr + room, frame.at, frame.n);
		m->data_off = room;
		fake_run();
		assert_int_equal(fake.stat.verdict[VERDICT_NO_HEADROOM], room < 8);
		if (room == 8)
			expect_sent(1, &left);
	}
}

static void the_others_of_the_burst_leave_where_they_should(void **state)
{
	struct bytes frame = frame_on(PLAIN_IN, "10.20.2.3");
	struct bytes left = frame_forwarded(&frame, TAGGED_OUT);

	fake_reset(fake_variants[1]);
	struct rte_mbuf *m = fake_receive(0, &frame);
	memmove(m->buf_addr, frame.at, frame.n);
	m->data_off = 0;
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(fake.stat.verdict[VERDICT_NO_HEADROOM], 1);
	expect_sent(1, &left);
}

// Routes 10.77.0.0/16 through it; returns the next hop's id as workers read it.
static uint16_t lead_over(uint16_t iface, const char *via)
{
	struct fib_hop hop = {.kind = FIB_VIA, .iface = iface};
	struct wire_mac mac = {{2, 0, 0, iface, 0, 2}};
	struct wire_addr to;

	assert_int_equal(wire_addr_parse(via, &hop.via), 0);
	assert_int_equal(wire_addr_parse("10.77.2.3", &to), 0);
	assert_int_equal(fib_neighbour_set(fake.fib, iface, &hop.via, &mac, NULL), 0);
	fake_route(0, "10.77.0.0/16", &hop);
	return fib_lookup(fake.fib, 0, &to);
}

// Releases its id for reuse after a grace period.
static void let_go(uint16_t iface, const char *via)
{
	const struct fib_hop none = {.kind = FIB_BLACKHOLE, .iface = IFACE_NONE};
	struct wire_addr addr;

	assert_int_equal(wire_addr_parse(via, &addr), 0);
	fake_route(0, "10.77.0.0/16", &none);
	assert_int_equal(fib_neighbour_delete(fake.fib, iface, &addr), 0);
	rcu_poll(fake.rcu);
}

static void a_next_hop_does_not_inherit_the_tags_of_another(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(ways_in); i++) {
		struct bytes frame = frame_on(ways_in[i], "10.77.2.3");
		struct bytes other = frame_on(ways_in[i], "10.20.2.3"); // leaves with tags
		struct bytes left = frame_forwarded(&frame, PLAIN_OUT);

		fake_reset(fake_variants[1]);
		uint32_t id = lead_over(QINQ_OUT, "10.21.0.9");
		let_go(QINQ_OUT, "10.21.0.9");
		assert_int_equal(lead_over(PLAIN_OUT, "10.1.0.9"), id);
		fake_receive(0, &frame);
		fake_receive(0, &other);
		fake_run();
		expect_bytes(fake.device[1].sent[0], &left);
		let_go(PLAIN_OUT, "10.1.0.9");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_way_in_leads_to_each_way_out),
		cmocka_unit_test(a_burst_of_all_ways_keeps_their_order),
		cmocka_unit_test(a_priority_alone_is_no_vlan),
		cmocka_unit_test(the_priority_of_a_vlans_frame_does_not_matter),
		cmocka_unit_test(unknown_tags_are_linuxs_to_judge),
		cmocka_unit_test(punted_frames_keep_their_tags),
		cmocka_unit_test(frames_cut_within_their_tags_are_never_read_beyond),
		cmocka_unit_test(an_mtu_counts_without_tags),
		cmocka_unit_test(a_frame_without_room_for_tags_is_dropped_by_name),
		cmocka_unit_test(the_others_of_the_burst_leave_where_they_should),
		cmocka_unit_test(a_next_hop_does_not_inherit_the_tags_of_another),
	};
	return cmocka_run_group_tests(tests, vlans_open, fake_close);
}
