// Packets punted to Linux: each verdict in its class, byte for byte, and the effect of interface
// flags.
#include "datapath/fake.h"

#include "wire/headers.h"

enum { FROM = 3, OUT = 1, LOST = 2, BGP = 179, TTL_AT = 22 };

static const struct fib_hop unreachable = {.kind = FIB_UNREACHABLE, .iface = IFACE_NONE};
static const struct fib_hop prohibit = {.kind = FIB_PROHIBIT, .iface = IFACE_NONE};
static const struct fib_hop blackhole = {.kind = FIB_BLACKHOLE, .iface = IFACE_NONE};
static const struct fib_hop for_linux = {.kind = FIB_LINUX, .iface = IFACE_NONE};
static const struct fib_hop local = {.kind = FIB_LOCAL, .iface = IFACE_NONE};

static int open_table(void **state)
{
	struct fib_hop lost = {.kind = FIB_VIA, .iface = LOST};

	fake_open(state);
	wire_addr_parse("10.2.0.77", &lost.via);
	fake_route(0, "10.100.0.0/16", &unreachable);
	fake_route(0, "10.101.0.0/16", &prohibit);
	fake_route(0, "10.102.0.0/16", &blackhole);
	fake_route(0, "10.103.0.0/16", &for_linux);
	fake_route(0, "10.104.0.0/16", &lost);
	fake_route(0, "10.0.0.1/32", &local);
	fake_route(0, "2001:db8::ff/128", &local);
	return 0;
}

// Functions that turn a frame into an unusual one.
static void as_it_is(struct bytes *f)
{
}

static void broadcast(struct bytes *f)
{
	memset(f->at, 0xff, 6);
}

static void arp(struct bytes *f)
{
	f->at[12] = 0x08;
	f->at[13] = 0x06;
	broadcast(f);
}

static void lldp(struct bytes *f)
{
	f->at[12] = 0x88;
	f->at[13] = 0xcc;
}

static void unknown_vlan(struct bytes *f)
{
	frame_tag(f, 0x81000fff);
}

static void option(struct bytes *f) // four bytes of "no operation"
{
	f->at[14] = 0x46;
	memset(f->at + 34, 1, 4);
	frame_mend(f);
}

static void hop_by_hop(struct bytes *f)
{
	f->at[20] = 0;
}

static void link_local_source(struct bytes *f)
{
	memcpy(f->at + 22, (uint8_t[]){0xfe, 0x80}, 2);
}

static void ttl_1(struct bytes *f)
{
	f->at[TTL_AT] = 1;
	frame_mend(f);
}

static void too_long(struct bytes *f)
{
	memset(f->at + f->n, 0, 1515 - f->n);
	f->n = 1515;
	f->at[16] = 1501 >> 8;
	f->at[17] = 1501 & 0xff;
	frame_mend(f);
}

static void bgp(struct bytes *f)
{
	f->at[23] = WIRE_PROTO_TCP;
	f->at[36] = 0;
	f->at[37] = BGP;
	frame_mend(f);
}

static void wrong_checksum(struct bytes *f)
{
	f->at[24]++;
}

static void another_mac(struct bytes *f)
{
	f->at[5] = 0x77;
}

static void martian(struct bytes *f)
{
	f->at[26] = 127;
	frame_mend(f);
}

static void no_source(struct bytes *f)
{
	if (f->at[12] == 0x86) {
		memset(f->at + 22, 0, 16);
		return;
	}
	memset(f->at + 26, 0, 4);
	frame_mend(f);
}

static void own_source(struct bytes *f)
{
	memcpy(f->at + 26, (uint8_t[]){10, 0, 0, 1}, 4);
	frame_mend(f);
}

static void solicitation(struct bytes *f)
{
	f->at[20] = WIRE_PROTO_ICMP6;
	f->at[54] = 135;
}

static void hidden_solicitation(struct bytes *f)
{
	f->at[20] = 60; // destination options, 8 bytes
	f->at[54] = WIRE_PROTO_ICMP6;
	f->at[55] = 0;
	memset(f->at + 62, 0, 24);
	f->at[62] = 135;
	f->at[19] = 8 + 24;
	f->n = 62 + 24;
}

static void before_the_routes(struct bytes *f)
{
	fib_set_synced(fake.fib, false);
}

static const struct row {
	const char *dst;
	void (*make)(struct bytes *frame);
	uint8_t verdict, class; // CLASS_NONE: dropped
} rows[] = {
	{"10.1.2.3", arp, VERDICT_ARP, CLASS_NEIGHBOUR},
	{"10.1.2.3", unknown_vlan, VERDICT_VLAN_UNKNOWN, CLASS_OTHER},
	{"10.1.2.3", lldp, VERDICT_ETHERTYPE_UNKNOWN, CLASS_OTHER},
	{"10.1.2.3", broadcast, VERDICT_MAC_GROUP, CLASS_MULTICAST},
	{"10.1.2.3", option, VERDICT_IP4_OPTIONS, CLASS_OPTIONS},
	{"2001:db8:1::3", hop_by_hop, VERDICT_IP6_HOP_BY_HOP, CLASS_OPTIONS},
	{"2001:db8:1::3", link_local_source, VERDICT_LINK_LOCAL_SOURCE, CLASS_HOST},
	{"10.99.2.3", as_it_is, VERDICT_NO_ROUTE, CLASS_UNREACHABLE},
	{"10.99.2.3", before_the_routes, VERDICT_NOT_SYNCED, CLASS_LINUX},
	{"2001:db8:99::3", before_the_routes, VERDICT_NOT_SYNCED, CLASS_LINUX},
	{"10.0.0.1", as_it_is, VERDICT_LOCAL, CLASS_HOST},
	{"10.0.0.1", bgp, VERDICT_LOCAL, CLASS_ROUTING},
	{"10.0.0.1", ttl_1, VERDICT_LOCAL, CLASS_HOST},
	{"2001:db8::ff", as_it_is, VERDICT_LOCAL, CLASS_HOST},
	{"10.100.2.3", as_it_is, VERDICT_UNREACHABLE, CLASS_UNREACHABLE},
	{"10.101.2.3", as_it_is, VERDICT_PROHIBIT, CLASS_UNREACHABLE},
	{"127.0.0.1", as_it_is, VERDICT_MARTIAN_DESTINATION, CLASS_OTHER},
	{"fe80::1", as_it_is, VERDICT_LINK_LOCAL_DESTINATION, CLASS_HOST},
	{"224.0.0.9", as_it_is, VERDICT_MULTICAST, CLASS_MULTICAST},
	{"10.103.2.3", as_it_is, VERDICT_LINUX, CLASS_LINUX},
	{"10.104.2.3", as_it_is, VERDICT_NEIGHBOUR_UNRESOLVED, CLASS_UNRESOLVED},
	{"10.1.2.3", ttl_1, VERDICT_TTL_EXPIRED, CLASS_TTL},
	{"10.1.2.3", too_long, VERDICT_MTU_EXCEEDED, CLASS_MTU},
	{"10.3.2.3", as_it_is, VERDICT_REDIRECT, CLASS_REDIRECT},
	{"10.1.2.3", own_source, VERDICT_OWN_SOURCE, CLASS_OTHER},
	{"10.1.2.3", wrong_checksum, VERDICT_IP4_CHECKSUM, CLASS_NONE},
	{"10.1.2.3", another_mac, VERDICT_MAC_NOT_OURS, CLASS_NONE},
	{"10.1.2.3", martian, VERDICT_MARTIAN_SOURCE, CLASS_NONE},
	{"10.1.2.3", no_source, VERDICT_MARTIAN_SOURCE, CLASS_NONE},
	{"2001:db8:1::3", no_source, VERDICT_MARTIAN_SOURCE, CLASS_NONE},
	{"10.102.2.3", as_it_is, VERDICT_BLACKHOLE, CLASS_NONE},
};

// Unicast frames to us that contain broadcasts or multicasts; without TAP interfaces they are
// martians.
static const struct row group_rows[] = {
	{"255.255.255.255", no_source, VERDICT_LOCAL, CLASS_MULTICAST},
	{"224.0.0.22", no_source, VERDICT_MULTICAST, CLASS_MULTICAST},
	{"ff02::1:ff00:1", no_source, VERDICT_MULTICAST, CLASS_MULTICAST},
};

// Sources that the RFCs forbid; Linux accepts the last ones.
static const struct {
	const char *dst;
	uint8_t src[16];
	bool passes;
	uint8_t verdict; // if it does not pass
} source_rows[] = {
	{"10.1.2.3", {127, 0, 0, 1}, false, VERDICT_MARTIAN_SOURCE},
	{"10.1.2.3", {224, 0, 0, 1}, false, VERDICT_MARTIAN_SOURCE},
	{"10.1.2.3", {239, 255, 255, 255}, false, VERDICT_MARTIAN_SOURCE},
	{"10.1.2.3", {0, 0, 0, 0}, false, VERDICT_MARTIAN_SOURCE},
	{"10.1.2.3", {255, 255, 255, 255}, false, VERDICT_MARTIAN_SOURCE},
	{"2001:db8:1::3", {0}, false, VERDICT_MARTIAN_SOURCE},
	{"2001:db8:1::3", {[15] = 1}, false, VERDICT_MARTIAN_SOURCE},
	{"2001:db8:1::3", {0xff, 0x0e, [15] = 1}, false, VERDICT_MARTIAN_SOURCE},
	{"10.1.2.3", {0, 0, 0, 1}, true, VERDICT_MARTIAN_SOURCE},
	{"10.1.2.3", {0, 255, 255, 255}, true, VERDICT_MARTIAN_SOURCE},
	{"10.1.2.3", {240, 0, 0, 0}, true, VERDICT_MARTIAN_SOURCE},
	{"10.1.2.3", {255, 255, 255, 254}, true, VERDICT_MARTIAN_SOURCE},
	{"10.1.2.3", {169, 254, 1, 1}, true, VERDICT_LINK_LOCAL_SOURCE},
	{"2001:db8:1::3", {[10] = 0xff, [11] = 0xff, 10, 0, 1, 2}, true, VERDICT_MARTIAN_SOURCE},
};

// Sets flags of the input port.
static void set_flags(uint8_t flags)
{
	struct iface iface = *fib_iface(fake.fib, FROM);

	iface.flags = flags;
	fake_set(FROM, &iface);
}

static void start(const struct datapath_variant *variant, uint8_t flags)
{
	fake_reset(variant);
	set_flags(flags);
	fake.tap.redirect_cycles = UINT64_MAX / BURST_MAX;
	fake.tap.redirect_burst = 1;
}

static void expect_punted(const struct rte_mbuf *m, const struct bytes *frame, uint8_t verdict,
	uint8_t class)
{
	assert_int_equal(fake.stat.handed[verdict], 1);
	assert_int_equal(fake.stat.verdict[verdict], 0);
	assert_ptr_equal(fake_punted(class), m);
	expect_bytes(m, frame);
	assert_int_equal(m->port, FROM);
}

static void expect_dropped(uint8_t verdict)
{
	assert_int_equal(fake.stat.handed[verdict], 0);
	assert_int_equal(fake.stat.verdict[verdict], 1);
}

static void walk_row(const struct row *row)
{
	struct bytes frame = frame_to(FROM, row->dst);

	start(fake.worker.variant, IFACE_REDIRECTS4);
	row->make(&frame);
	struct rte_mbuf *m = fake_receive(FROM, &frame);
	fake_run();
	if (row->class == CLASS_NONE)
		expect_dropped(row->verdict);
	else
		expect_punted(m, &frame, row->verdict, row->class);
}

static void each_verdict_goes_to_its_class_byte_for_byte(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
			fake.worker.variant = fake_variants[v];
			walk_row(&rows[i]);
		}
}

static void who_has_no_address_yet_is_heard_by_linux(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(group_rows); i++) {
		struct bytes frame = frame_to(FROM, group_rows[i].dst);

		fake.worker.variant = fake_variants[1];
		walk_row(&group_rows[i]);
		fake_reset(fake_variants[1]);
		fake.worker.tap = NULL;
		group_rows[i].make(&frame);
		fake_receive(FROM, &frame);
		fake_run();
		expect_dropped(VERDICT_MARTIAN_SOURCE);
	}
}

// What rules, flows and bridges decide has its rows in acl_test.c, flow_test.c and
// bridge_out_test.c, what labels do in mpls_test.c,
// and tunnels in tunnel_test.c.
static bool has_row_elsewhere(unsigned v)
{
	return v == VERDICT_ACL_REJECTED || v == VERDICT_ACL_PUNTED || v == VERDICT_FLOW_PUNTED ||
	       v == VERDICT_BRIDGE_UNKNOWN || v == VERDICT_MPLS_RESERVED ||
	       v == VERDICT_MPLS_DEEP || (v >= VERDICT_TUNNEL_NO_WAY && v <= VERDICT_TUNNEL_ECN);
}

static void each_verdict_with_a_class_has_a_row(void **state)
{
	for (unsigned v = 0; v < N_VERDICTS; v++) {
		bool has_row = verdict_class(v) == CLASS_NONE || has_row_elsewhere(v);

		for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
			has_row |= rows[i].verdict == v;
		if (!has_row)
			fail_msg("no row for %s", verdict_name(v));
	}
}

static void without_taps_all_that_is_for_linux_is_dropped(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct bytes frame = frame_to(FROM, rows[i].dst);
		bool is_forwarded = rows[i].verdict == VERDICT_REDIRECT;
		uint8_t verdict = rows[i].verdict == VERDICT_OWN_SOURCE ? VERDICT_MARTIAN_SOURCE
		                                                        : rows[i].verdict;

		fake_reset(fake_variants[1]);
		set_flags(IFACE_REDIRECTS4 | IFACE_LINUX | IFACE_DOWN); // no effect
		fake.worker.tap = NULL;
		rows[i].make(&frame);
		fake_receive(FROM, &frame);
		fake_run();
		assert_int_equal(fake.device[FROM].n_sent, is_forwarded);
		if (!is_forwarded)
			expect_dropped(verdict);
	}
}

static void a_full_ring_is_a_drop_of_its_own(void **state)
{
	struct bytes frame = frame_to(FROM, "10.1.2.3");
	unsigned room = rte_ring_get_capacity(fake.tap.punt[CLASS_TTL]);

	start(fake_variants[1], 0);
	ttl_1(&frame);
	for (unsigned i = 0; i < room + 5; i++)
		fake_receive(FROM, &frame);
	fake_run();
	assert_int_equal(fake.stat.handed[VERDICT_TTL_EXPIRED], room);
	assert_int_equal(fake.stat.verdict[VERDICT_TTL_EXPIRED], 0);
	assert_int_equal(fake.stat.verdict[VERDICT_PUNT_RING_FULL], 5);
	assert_int_equal(fake.stat.ring_full[CLASS_TTL], 5);
}

static void walk_source_row(unsigned i, bool has_taps)
{
	struct bytes frame = frame_to(FROM, source_rows[i].dst);
	bool is_ip4 = frame.at[12] == 0x08, passes = has_taps && source_rows[i].passes;

	memcpy(frame.at + (is_ip4 ? 26 : 22), source_rows[i].src, is_ip4 ? 4 : 16);
	if (is_ip4)
		frame_mend(&frame);
	struct bytes left = frame_forwarded(&frame, OUT);
	if (!has_taps)
		fake.worker.tap = NULL;
	fake_receive(FROM, &frame);
	fake_run();
	if (passes)
		expect_sent(OUT, &left);
	else
		expect_dropped(
			source_rows[i].verdict ? source_rows[i].verdict : VERDICT_MARTIAN_SOURCE);
}

static void sources_are_judged_as_linux_does_where_it_routes(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(source_rows); i++) {
			start(fake_variants[v], 0);
			walk_source_row(i, true);
			start(fake_variants[v], 0);
			walk_source_row(i, false);
		}
}

// The effect of an interface's flags on a frame.
static const struct {
	uint8_t flags;
	struct row row; // VERDICT_FORWARD: sent on OUT
} flag_rows[] = {
	{IFACE_DOWN, {"10.1.2.3", as_it_is, VERDICT_PORT_DISABLED, CLASS_NONE}},
	{IFACE_DOWN, {"10.0.0.1", arp, VERDICT_PORT_DISABLED, CLASS_NONE}},
	{IFACE_LINUX, {"10.1.2.3", as_it_is, VERDICT_LINUX, CLASS_LINUX}},
	{IFACE_LINUX, {"2001:db8:1::3", as_it_is, VERDICT_LINUX, CLASS_LINUX}},
	{IFACE_LINUX, {"10.99.2.3", as_it_is, VERDICT_LINUX, CLASS_LINUX}},
	{IFACE_LINUX, {"10.102.2.3", as_it_is, VERDICT_LINUX, CLASS_LINUX}},
	{IFACE_LINUX, {"10.1.2.3", wrong_checksum, VERDICT_LINUX, CLASS_LINUX}},
	{IFACE_LINUX, {"10.1.2.3", another_mac, VERDICT_LINUX, CLASS_LINUX}},
	{IFACE_LINUX, {"10.1.2.3", unknown_vlan, VERDICT_LINUX, CLASS_LINUX}},
	{IFACE_LINUX, {"10.1.2.3", arp, VERDICT_ARP, CLASS_NEIGHBOUR}},
	{IFACE_LINUX, {"10.0.0.1", bgp, VERDICT_LOCAL, CLASS_ROUTING}},
	{IFACE_LINUX4, {"10.1.2.3", as_it_is, VERDICT_LINUX, CLASS_LINUX}},
	{IFACE_LINUX4, {"10.1.2.3", own_source, VERDICT_LINUX, CLASS_LINUX}},
	{IFACE_LINUX4, {"10.1.2.3", ttl_1, VERDICT_LINUX, CLASS_LINUX}},
	{IFACE_LINUX4, {"10.0.0.1", as_it_is, VERDICT_LOCAL, CLASS_HOST}},
	{IFACE_LINUX4, {"10.1.2.3", wrong_checksum, VERDICT_IP4_CHECKSUM, CLASS_NONE}},
	{IFACE_LINUX4, {"10.1.2.3", martian, VERDICT_MARTIAN_SOURCE, CLASS_NONE}},
	{IFACE_LINUX4, {"2001:db8:1::3", as_it_is, VERDICT_FORWARD, CLASS_NONE}},
	{IFACE_LINUX6, {"2001:db8:1::3", as_it_is, VERDICT_LINUX, CLASS_LINUX}},
	{IFACE_LINUX6, {"2001:db8::ff", as_it_is, VERDICT_LOCAL, CLASS_HOST}},
	{IFACE_LINUX6, {"10.1.2.3", as_it_is, VERDICT_FORWARD, CLASS_NONE}},
	{IFACE_REDIRECTS4, {"10.1.2.3", as_it_is, VERDICT_FORWARD, CLASS_NONE}},
	{IFACE_DISCOVERY6, {"2001:db8:1::3", solicitation, VERDICT_LOCAL, CLASS_NEIGHBOUR}},
	{IFACE_DISCOVERY6, {"2001:db8:1::3", hidden_solicitation, VERDICT_LOCAL, CLASS_NEIGHBOUR}},
	{IFACE_DISCOVERY6, {"2001:db8:1::3", as_it_is, VERDICT_FORWARD, CLASS_NONE}},
	{IFACE_DISCOVERY6, {"10.1.2.3", as_it_is, VERDICT_FORWARD, CLASS_NONE}},
	{0, {"2001:db8:1::3", solicitation, VERDICT_FORWARD, CLASS_NONE}},
};

static void walk_flag_row(uint8_t flags, const struct row *row)
{
	struct bytes frame = frame_to(FROM, row->dst);

	start(fake.worker.variant, flags);
	row->make(&frame);
	struct bytes left = frame_forwarded(&frame, OUT);
	struct rte_mbuf *m = fake_receive(FROM, &frame);
	fake_run();
	if (row->verdict == VERDICT_FORWARD)
		expect_sent(OUT, &left);
	else if (row->class == CLASS_NONE)
		expect_dropped(row->verdict);
	else
		expect_punted(m, &frame, row->verdict, row->class);
}

static void the_flags_of_a_iface_decide_who_forwards(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(flag_rows); i++) {
			fake.worker.variant = fake_variants[v];
			walk_flag_row(flag_rows[i].flags, &flag_rows[i].row);
		}
}

// Bursts whose packets all have one next hop, after others that have several.
static void bursts_of_one_next_hop_are_judged_for_linux_too(void **state)
{
	struct bytes ours = frame_to(FROM, "10.0.0.1"), on = frame_to(FROM, "10.1.2.3");

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		start(fake_variants[v], IFACE_LINUX4);
		for (unsigned i = 0; i < 4 * BURST_MAX; i++) // the first burst is timed
			fake_receive(FROM, i / BURST_MAX == 1 && i % 2 ? &ours : &on);
		fake_run();
		assert_int_equal(fake.stat.handed[VERDICT_LOCAL], BURST_MAX / 2);
		assert_int_equal(fake.stat.handed[VERDICT_LINUX], 7 * BURST_MAX / 2);
	}
}

static void frames_to_a_further_mac_of_a_iface_are_ours(void **state)
{
	struct iface iface;
	struct bytes frame = frame_to(FROM, "10.1.2.3"), left = frame_forwarded(&frame, OUT);

	start(fake_variants[1], 0);
	iface = *fib_iface(fake.fib, FROM);
	iface.macs[iface.n_macs++] = (struct wire_mac){{0, 0, 0x5e, 0, 1, 7}}; // VRRP
	fake_set(FROM, &iface);
	memcpy(frame.at, iface.macs[0].bytes, 6);
	fake_receive(FROM, &frame);
	frame.at[5]++;
	fake_receive(FROM, &frame);
	fake_run();
	expect_sent(OUT, &left);
	assert_int_equal(fake.stat.verdict[VERDICT_MAC_NOT_OURS], 1);
}

// Half of the packets leave through their input port, the others through another.
static void receive_returning(unsigned n)
{
	struct bytes back = frame_to(FROM, "10.3.2.3"), on = frame_to(FROM, "10.1.2.3");

	for (unsigned i = 0; i < n; i++) {
		fake_receive(FROM, &back);
		fake_receive(FROM, &on);
	}
}

static void linux_sees_a_few_redirects_and_the_rest_is_forwarded(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		start(fake_variants[v], IFACE_REDIRECTS4);
		fake.tap.redirect_burst = 10;
		receive_returning(200);
		fake_run();
		assert_int_equal(fake.stat.handed[VERDICT_REDIRECT], 10);
		assert_int_equal(fake.device[FROM].n_sent, 190);
		assert_int_equal(fake.device[OUT].n_sent, 200);
	}
}

static void a_burst_that_returns_as_a_whole_loses_its_first_packet_only(void **state)
{
	struct bytes back = frame_to(FROM, "10.3.2.3");

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		start(fake_variants[v], IFACE_REDIRECTS4);
		for (unsigned i = 0; i < 20; i++)
			fake_receive(FROM, &back);
		fake_run();
		assert_int_equal(fake.stat.handed[VERDICT_REDIRECT], 1);
		assert_int_equal(fake.device[FROM].n_sent, 19);
	}
}

static void redirects_are_saved_up_again(void **state)
{
	start(fake_variants[1], IFACE_REDIRECTS4);
	fake.tap.redirect_cycles = 1000;
	fake.tap.redirect_burst = 3;
	receive_returning(1);
	fake_run();
	for (uint64_t until = rte_rdtsc() + 10000; rte_rdtsc() < until;)
		;
	receive_returning(3);
	fake_run();
	assert_int_equal(fake.stat.handed[VERDICT_REDIRECT], 4);
}

static void redirects_are_forwarded_when_nobody_asks_for_them(void **state)
{
	static const struct {
		uint8_t flags;
		uint64_t cycles;
	} asked[] = {{0, 0}, {IFACE_REDIRECTS6, 0}, {IFACE_REDIRECTS4, UINT64_MAX}};

	for (unsigned i = 0; i < ARRAY_LEN(asked); i++) {
		start(fake_variants[1], asked[i].flags);
		fake.tap.redirect_cycles = asked[i].cycles;
		receive_returning(20);
		fake_run();
		assert_int_equal(fake.device[FROM].n_sent, 20);
		assert_int_equal(fake.device[OUT].n_sent, 20);
	}
}

static void a_full_ring_of_redirects_forwards_too(void **state)
{
	unsigned room = rte_ring_get_capacity(fake.tap.punt[CLASS_REDIRECT]);

	start(fake_variants[1], IFACE_REDIRECTS4);
	fake.tap.redirect_cycles = 1;
	fake.tap.redirect_burst = UINT32_MAX;
	receive_returning(room + 30);
	fake_run();
	assert_int_equal(fake.stat.handed[VERDICT_REDIRECT], room);
	assert_int_equal(fake.device[FROM].n_sent, 30);
	assert_int_equal(fake.device[OUT].n_sent, room + 30);
}

static void frames_of_a_cross_connect_are_never_punted(void **state)
{
	struct bytes frame = frame_to(FROM, "10.0.0.1"), runt = {.n = 10};

	start(fake_variants[1], IFACE_LINUX);
	fake.states[FROM].is_xconnect = true;
	fake.states[FROM].xconnect = OUT;
	broadcast(&frame);
	fake_receive(FROM, &frame);
	fake_receive(FROM, &runt);
	fake_run();
	expect_sent(OUT, &frame);
	expect_dropped(VERDICT_RUNT);
}

// One at each place of a burst, among frames that are forwarded.
static void a_cross_connect_keeps_back_what_it_cannot_send(void **state)
{
	struct bytes frame = frame_to(FROM, "10.0.0.1"), runt = {.n = WIRE_ETHER_BYTES - 1};
	struct bytes shortest = {.n = WIRE_ETHER_BYTES};

	for (unsigned odd = 0; odd < 64; odd++) {
		start(fake_variants[1], IFACE_LINUX);
		fake.states[FROM].is_xconnect = true;
		fake.states[FROM].xconnect = OUT;
		for (unsigned i = 0; i < 63; i++) {
			struct rte_mbuf *m = fake_receive(FROM, i == odd ? &runt
								: i % 2  ? &frame
									 : &shortest);

			m->vlan_tci = UINT16_MAX; // shares a word with the lengths
		}
		struct rte_mbuf *m = fake_receive(FROM, &frame);

		m->pkt_len += 1;
		m->nb_segs = 2;
		fake_run();
		assert_int_equal(fake.stat.verdict[VERDICT_RUNT], odd < 63);
		assert_int_equal(fake.stat.verdict[VERDICT_MULTI_SEGMENT], 1);
		assert_int_equal(fake.device[OUT].n_sent, odd < 63 ? 62 : 63);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_verdict_goes_to_its_class_byte_for_byte),
		cmocka_unit_test(who_has_no_address_yet_is_heard_by_linux),
		cmocka_unit_test(each_verdict_with_a_class_has_a_row),
		cmocka_unit_test(without_taps_all_that_is_for_linux_is_dropped),
		cmocka_unit_test(a_full_ring_is_a_drop_of_its_own),
		cmocka_unit_test(sources_are_judged_as_linux_does_where_it_routes),
		cmocka_unit_test(the_flags_of_a_iface_decide_who_forwards),
		cmocka_unit_test(bursts_of_one_next_hop_are_judged_for_linux_too),
		cmocka_unit_test(frames_to_a_further_mac_of_a_iface_are_ours),
		cmocka_unit_test(linux_sees_a_few_redirects_and_the_rest_is_forwarded),
		cmocka_unit_test(a_burst_that_returns_as_a_whole_loses_its_first_packet_only),
		cmocka_unit_test(redirects_are_saved_up_again),
		cmocka_unit_test(redirects_are_forwarded_when_nobody_asks_for_them),
		cmocka_unit_test(a_full_ring_of_redirects_forwards_too),
		cmocka_unit_test(frames_of_a_cross_connect_are_never_punted),
		cmocka_unit_test(a_cross_connect_keeps_back_what_it_cannot_send),
	};
	return cmocka_run_group_tests(tests, open_table, fake_close);
}
