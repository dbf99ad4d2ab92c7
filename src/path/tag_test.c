// VLANs: every way in against every way out, further rules of links, and VRFs that share a port.
#include "path/fake.h"

#include "wire/headers.h"

#include <stdio.h>

enum { CUSTOMER = 0x8100 << 16, SERVICE = 0x88a8u << 16, PRIORITY = 5 << 13 };
enum {
	PLAIN_IN, // ports are links 0 to 3
	PLAIN_OUT,
	TAGGED_IN = 10, // links on port 0
	SERVICE_IN,
	QINQ_IN,
	RED_IN,
	BLUE_IN,
	TAGGED_OUT = 20, // links on port 1
	QINQ_OUT,
	RED_OUT = 30, // on port 2
	RED = 1,
	BLUE = 63,
};

static const struct vlan {
	uint16_t link;
	uint8_t port, vrf;
	uint32_t tags[FIB_MAX_TAGS];
} vlans[] = {
	{TAGGED_IN, 0, 0, {CUSTOMER | 10}},
	{SERVICE_IN, 0, 0, {SERVICE | 10}},
	{QINQ_IN, 0, 0, {SERVICE | 30, CUSTOMER | 10}},
	{TAGGED_OUT, 1, 0, {CUSTOMER | 4094}},
	{QINQ_OUT, 1, 0, {SERVICE | 257, CUSTOMER | 1}},
	{RED_IN, 0, RED, {CUSTOMER | 100}},
	{BLUE_IN, 0, BLUE, {CUSTOMER | 200}},
	{RED_OUT, 2, RED, {CUSTOMER | 300}},
};

static const struct path_variant *variants[2];
enum { N_VARIANTS = ARRAY_LEN(variants) };

// VRFs have the routes that the main table has, and lead to other neighbours.
static void open_vrfs(void)
{
	struct fib_hop red = {.kind = FIB_VIA, .link = RED_OUT};
	struct fib_hop blue = {.kind = FIB_VIA, .link = 3};
	struct fib_hop local = {.kind = FIB_LOCAL, .link = FIB_NO_LINK};

	wire_addr_parse("10.30.0.2", &red.via);
	wire_addr_parse("10.3.0.2", &blue.via);
	fake_route(RED, "10.1.0.0/16", &red);
	fake_route(RED, "2001:db8:1::/48", &red);
	fake_route(BLUE, "10.1.0.0/16", &blue);
	fake_route(BLUE, "2001:db8:1::/48", &blue);
	fake_route(BLUE, "10.0.0.9/32", &local);
}

static int open_table(void **state)
{
	variants[0] = &path_scalar;
	variants[1] = path_choose_variant();
	fake_open(state);
	assert_int_equal(fib_vrf_open(fake.fib, RED, NULL), 0);
	assert_int_equal(fib_vrf_open(fake.fib, BLUE, NULL), 0);
	for (unsigned i = 0; i < ARRAY_LEN(vlans); i++)
		fake_link(vlans[i].link, vlans[i].port, vlans[i].vrf, vlans[i].tags);
	open_vrfs();
	return 0;
}

static const struct vlan *vlan_of(uint16_t link)
{
	static const struct vlan none;

	for (unsigned i = 0; i < ARRAY_LEN(vlans); i++)
		if (vlans[i].link == link)
			return &vlans[i];
	return &none;
}

// A frame to us on a link.
static struct bytes frame_on(uint16_t link, const char *dst)
{
	struct bytes frame = frame_to(0, dst);
	const struct vlan *vlan = vlan_of(link);

	for (unsigned i = FIB_MAX_TAGS; i; i--)
		if (vlan->tags[i - 1])
			frame_tag(&frame, vlan->tags[i - 1]);
	return frame;
}

static const uint16_t ways_in[] = {PLAIN_IN, TAGGED_IN, SERVICE_IN, QINQ_IN};
static const uint16_t ways_out[] = {PLAIN_OUT, TAGGED_OUT, QINQ_OUT};

static void walk_way(uint16_t in, uint16_t out, const char *format)
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
	for (unsigned v = 0; v < N_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(ways_in); i++)
			for (unsigned o = 0; o < ARRAY_LEN(ways_out); o++) {
				fake_reset(variants[v]);
				walk_way(ways_in[i], ways_out[o], "10.%u.2.3");
				fake_reset(variants[v]);
				walk_way(ways_in[i], ways_out[o], "2001:db8:%x::3");
			}
}

// All of them in one burst, several times.
static void a_burst_of_all_ways_keeps_their_order(void **state)
{
	struct bytes left[BURST_MAX];
	unsigned n = 0;

	fake_reset(variants[1]);
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

	for (unsigned v = 0; v < N_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(priorities); i++) {
			struct bytes plain = frame_on(PLAIN_IN, "10.20.2.3");
			struct bytes tagged = frame_on(TAGGED_IN, "10.20.2.3");
			struct bytes left = frame_forwarded(&plain, TAGGED_OUT);

			fake_reset(variants[v]);
			frame_tag(&plain, priorities[i]);
			fake_receive(0, &plain);
			fake_run();
			expect_sent(1, &left);
			fake_reset(variants[v]);
			frame_tag(&tagged, priorities[i]);
			fake_receive(0, &tagged);
			fake_run();
			expect_sent(1, &left);
		}
}

static void the_priority_of_a_vlans_frame_does_not_matter(void **state)
{
	struct bytes frame = frame_on(TAGGED_IN, "10.1.2.3"), left = frame_forwarded(&frame, 1);

	fake_reset(variants[1]);
	frame.at[14] |= 0xf0; // priority 7, may be dropped
	fake_receive(0, &frame);
	fake_run();
	expect_sent(1, &left);
}

// Tags, and whether the destination MAC is everybody's or somebody else's.
static const struct {
	uint32_t outer, inner;
	uint8_t verdict;
	bool is_group, is_other;
} unknown[] = {
	{CUSTOMER | 11, 0, VERDICT_VLAN_UNKNOWN, false, false},
	{SERVICE | 257, 0, VERDICT_VLAN_UNKNOWN, false, false},             // of another port
	{CUSTOMER | 10, CUSTOMER | 10, VERDICT_VLAN_UNKNOWN, false, false}, // one too many
	{SERVICE | 30, 0, VERDICT_VLAN_UNKNOWN, false, false},              // one too few
	{SERVICE | 30, SERVICE | 10, VERDICT_VLAN_UNKNOWN, false, false},
	{CUSTOMER | 11, 0, VERDICT_VLAN_UNKNOWN, true, false},
	{CUSTOMER | 11, 0, VERDICT_MAC_NOT_OURS, false, true},
	{CUSTOMER | 10, 0, VERDICT_MAC_NOT_OURS, false, true},
	{CUSTOMER | 10, 0, VERDICT_MAC_GROUP, true, false},
};

static void unknown_tags_are_linuxs_to_judge(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(unknown); i++) {
		struct bytes frame = frame_to(0, "10.1.2.3");

		fake_reset(variants[1]);
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

		fake_reset(variants[1]);
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
	for (unsigned v = 0; v < N_VARIANTS; v++)
		for (unsigned n = 0; n < 42; n++) {
			struct bytes frame = frame_on(QINQ_IN, "10.1.2.3");

			fake_reset(variants[v]);
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

		fake_reset(variants[1]);
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

		fake_reset(variants[1]);
		struct rte_mbuf *m = fake_receive(0, &frame);
		memmove((uint8_t *)m->buf_addr + room, frame.at, frame.n);
		m->data_off = room;
		fake_run();
		assert_int_equal(fake.stat.verdict[VERDICT_NO_HEADROOM], room < 8);
		if (room == 8)
			expect_sent(1, &left);
	}
}

static void the_mac_of_a_vlan_may_be_its_own(void **state)
{
	struct fib_link link;
	struct bytes frame = frame_on(TAGGED_IN, "10.1.2.3"), left = frame_forwarded(&frame, 1);

	fake_reset(variants[1]);
	link = *fib_link(fake.fib, TAGGED_IN);
	link.mac.bytes[4] = 0x42;
	link.macs[link.n_macs++] = (struct wire_mac){{0, 0, 0x5e, 0, 1, 7}};
	fake_set(TAGGED_IN, &link);
	fake_receive(0, &frame); // to the port's
	memcpy(frame.at, link.macs[0].bytes, 6);
	frame.at[5]++;
	fake_receive(0, &frame);
	frame.at[5]--;
	fake_receive(0, &frame);
	memcpy(frame.at, link.mac.bytes, 6);
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(fake.stat.verdict[VERDICT_MAC_NOT_OURS], 2);
	assert_int_equal(fake.device[1].n_sent, 2);
	expect_bytes(fake.device[1].sent[0], &left);
	expect_bytes(fake.device[1].sent[1], &left);
}

// Flags of the VLAN, and what becomes of its packets; those of the port go on.
static const struct {
	uint8_t flags, handed, dropped; // VERDICT_FORWARD: not so
} flag_rows[] = {
	{FIB_LINK_DOWN, VERDICT_FORWARD, VERDICT_PORT_DISABLED},
	{FIB_LINK_LINUX, VERDICT_LINUX, VERDICT_FORWARD},
	{FIB_LINK_LINUX4, VERDICT_LINUX, VERDICT_FORWARD},
	{FIB_LINK_LINUX6, VERDICT_FORWARD, VERDICT_FORWARD},
};

static void set_flags(uint16_t link, uint8_t flags)
{
	struct fib_link changed = *fib_link(fake.fib, link);

	changed.flags = flags;
	fake_set(link, &changed);
}

static void the_flags_of_a_vlan_are_its_own(void **state)
{
	struct bytes tagged = frame_on(TAGGED_IN, "10.1.2.3"), plain = frame_to(0, "10.1.2.3");

	for (unsigned v = 0; v < N_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(flag_rows); i++) {
			fake_reset(variants[v]);
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

static void redirects_are_for_the_same_vlan_only(void **state)
{
	struct bytes frames[] = {frame_on(TAGGED_IN, "10.10.2.3"), frame_on(TAGGED_IN, "10.0.2.3"),
		frame_on(TAGGED_IN, "10.12.2.3"), frame_on(PLAIN_IN, "10.10.2.3"),
		frame_on(QINQ_IN, "10.12.2.3"), frame_on(PLAIN_IN, "10.0.2.3")};
	static const bool is_redirect[] = {true, false, false, false, true, true};

	for (unsigned i = 0; i < ARRAY_LEN(frames); i++) {
		fake_reset(variants[1]);
		fake.tap.redirect_cycles = 1;
		set_flags(PLAIN_IN, FIB_LINK_REDIRECTS4);
		set_flags(TAGGED_IN, FIB_LINK_REDIRECTS4);
		set_flags(QINQ_IN, FIB_LINK_REDIRECTS4);
		struct rte_mbuf *m = fake_receive(0, &frames[i]);
		fake_run();
		assert_int_equal(fake.stat.handed[VERDICT_REDIRECT], is_redirect[i]);
		if (is_redirect[i])
			expect_bytes(m, &frames[i]);
		else
			assert_int_equal(fake.device[0].n_sent, 1);
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

static void vrfs_with_the_same_prefixes_stay_apart(void **state)
{
	for (unsigned v = 0; v < N_VARIANTS; v++) {
		fake_reset(variants[v]);
		walk_vrfs("10.1.2.3");
		fake_reset(variants[v]);
		walk_vrfs("2001:db8:1::3");
	}
}

static void an_address_is_local_in_its_own_vrf_only(void **state)
{
	struct bytes blue = frame_on(BLUE_IN, "10.0.0.9"), red = frame_on(RED_IN, "10.0.0.9");

	fake_reset(variants[1]);
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

	for (unsigned v = 0; v < N_VARIANTS; v++) {
		fake_reset(variants[v]);
		struct fib_link link = *fib_link(fake.fib, PLAIN_IN);
		link.vrf = BLUE;
		fake_set(PLAIN_IN, &link);
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
		cmocka_unit_test(the_mac_of_a_vlan_may_be_its_own),
		cmocka_unit_test(the_flags_of_a_vlan_are_its_own),
		cmocka_unit_test(redirects_are_for_the_same_vlan_only),
		cmocka_unit_test(vrfs_with_the_same_prefixes_stay_apart),
		cmocka_unit_test(an_address_is_local_in_its_own_vrf_only),
		cmocka_unit_test(a_port_may_be_in_a_vrf_without_its_vlans),
	};
	return cmocka_run_group_tests(tests, open_table, fake_close);
}
