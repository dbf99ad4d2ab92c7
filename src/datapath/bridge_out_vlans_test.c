// Routing on VLANs of a bridge of Linux: which interface frames come in on, and the tags with which
// packets leave, for bridges that filter by VLAN and others.
#include "datapath/vlans.h"

#include "mac/mac.h"

#include <rte_cycles.h>
#include <stdio.h>

enum {
	BRIDGE = 300, // interfaces
	VLAN_10,
	VLAN_20,
	OTHER_10, // 802.1ad; only without filtering
	N_IFACES = OTHER_10 - BRIDGE + 1
};
enum {
	N_MEMBERS = 3,
	OUTSIDE = 3,
	MTU = 1500,
	MORE = 400,
	BIT_1 = 2,
	BIT_10 = 1 << 10,
	BIT_20 = 1 << 20
};
enum { TCI_10 = 0x8100000a, TCI_20 = 0x81000014, SERVICE_10 = 0x88a8000a };

static struct mac_table *table;
static struct mac_member members[N_MEMBERS];
static struct mac_vlans vlans[N_MEMBERS], own_vlans;
static struct mac_bridge bridge;
static const struct mac_vlan_iface on_bridge[] = {{VLAN_10, 0x8100, 10}, {VLAN_20, 0x8100, 20},
	{OTHER_10, 0x88a8, 10}};
static const struct wire_mac own = {{2, 0, 0, 0, 7, 1}};
static struct iface ifaces[N_IFACES];

// Host H is behind port H, in VLAN V of the network 10.V.0.0/16, with V = 50 for the bridge itself.
static struct wire_mac mac_of(unsigned host)
{
	return (struct wire_mac){{2, 0, 0, 0, 9, host}};
}

static const unsigned network[N_IFACES] = {50, 60, 70, 80};

static void add_hosts(unsigned i)
{
	const struct fib_hop connected = {.kind = FIB_CONNECTED, .iface = BRIDGE + i};
	struct wire_addr addr;
	char text[64];

	snprintf(text, sizeof(text), "10.%u.0.0/16", network[i]);
	fake_route(0, text, &connected);
	for (unsigned host = 0; host < N_MEMBERS; host++) {
		const struct wire_mac mac = mac_of(host);

		snprintf(text, sizeof(text), "10.%u.0.%u", network[i], host + 1);
		assert_int_equal(wire_addr_parse(text, &addr), 0);
		assert_int_equal(fib_neighbour_set(fake.fib, BRIDGE + i, &addr, &mac, NULL), 0);
	}
}

static int open_bridge(void **state)
{
	int err = fake_open(state);
	struct mac_settings settings = {.hz = rte_get_tsc_hz(), .n_workers = 1, .rcu = fake.rcu};

	settings.hz = settings.hz ? settings.hz : 1000000000; // no EAL
	for (unsigned i = 0; i < N_IFACES; i++) {
		ifaces[i] = (struct iface){.is_bridge = true, .mtu = MTU, .mac = own};
		if (i) {
			ifaces[i].port = BRIDGE;
			ifaces[i].n_tags = 1;
			ifaces[i].tag[0] =
				(struct iface_tag){on_bridge[i - 1].tag, on_bridge[i - 1].vid};
			ifaces[i].mac.bytes[5] = i % 2 ? 1 : 9; // VLAN 20 has one of its own
		}
		fake_set(BRIDGE + i, &ifaces[i]);
		add_hosts(i);
	}
	return err ? err : mac_open(&table, &settings, NULL);
}

static int close_bridge(void **state)
{
	mac_close(table);
	return fake_close(state);
}

static void commit(void)
{
	struct mac_pending *pending;

	assert_int_equal(mac_prepare(table, &bridge, 1, &pending, NULL), 0);
	mac_commit(table, pending, rte_rdtsc());
}

static void follow(uint16_t vlan)
{
	for (unsigned host = 0; host < N_MEMBERS; host++) {
		const struct mac_fixed at = {mac_of(host), host, vlan, false};

		assert_true(mac_follow(table, mac_domain(table, "br0"), &at, rte_rdtsc()));
	}
}

// Port 0: VLAN 1 untagged, 10 and 20 tagged; port 1: VLAN 10 untagged; port 2: VLAN 20 untagged,
// 10 tagged. The bridge: VLAN 1 untagged, 10 and 20 tagged.
static void set_vlans(void)
{
	vlans[0] = (struct mac_vlans){.pvid = 1,
		.has = {BIT_1 | BIT_10 | BIT_20},
		.untagged = {BIT_1}};
	vlans[1] = (struct mac_vlans){.pvid = 10, .has = {BIT_10}, .untagged = {BIT_10}};
	vlans[2] = (struct mac_vlans){.pvid = 20, .has = {BIT_10 | BIT_20}, .untagged = {BIT_20}};
	own_vlans = vlans[0];
}

static void reset(const struct datapath_variant *variant, bool filters)
{
	fake_reset(variant);
	set_vlans();
	for (unsigned i = 0; i < FAKE_PORTS; i++) {
		struct iface settings = *fib_iface(fake.fib, i);

		fake.states[i].is_bridged = i < N_MEMBERS;
		fake.states[i].mtu = MTU;
		settings.flags = i < N_MEMBERS ? IFACE_LINUX : 0;
		fake_set(i, &settings);
	}
	for (unsigned i = 0; i < N_MEMBERS; i++)
		members[i] = (struct mac_member){.port = i,
			.flags = MAC_LEARNS | MAC_FLOODS | MAC_OF_LINUX,
			.vlans = filters ? &vlans[i] : NULL};
	for (unsigned i = 0; i < N_IFACES; i++)
		fake_set(BRIDGE + i, &ifaces[i]);
	fake.worker.macs = mac_live(table);
	bridge = (struct mac_bridge){.name = "br0",
		.linuxs = MAC_ALL_STORMS,
		.linux_id = 1 + filters,
		.ageing_s = 300,
		.max = 100,
		.member = members,
		.n_members = N_MEMBERS,
		.is_routed = true,
		.iface = BRIDGE,
		.mac = own,
		.vlan_tag = filters ? 0x8100 : 0,
		.own_vlans = filters ? &own_vlans : NULL,
		.vlan_iface = on_bridge,
		.n_vlan_ifaces = filters ? 2 : 3};
	commit();
	if (!filters) {
		follow(0);
		return;
	}
	follow(1);
	follow(10);
	follow(20);
}

// From the host behind a port, to the bridge; tag 0: none.
static struct bytes frame_from(unsigned port, const char *dst, uint32_t tag)
{
	const struct wire_mac mac = mac_of(port);
	struct bytes made = frame_to(0, dst);

	memcpy(made.at, own.bytes, 6);
	memcpy(made.at + 6, mac.bytes, 6);
	if (tag)
		frame_tag(&made, tag);
	return made;
}

// As it is sent to the host behind a port, on an interface.
static struct bytes sent_to(const struct bytes *made, unsigned port, uint16_t iface, uint32_t tag)
{
	const struct wire_mac mac = mac_of(port);
	struct bytes out = *made;

	memcpy(out.at, mac.bytes, 6);
	memcpy(out.at + 6, ifaces[iface - BRIDGE].mac.bytes, 6);
	out.at[22]--;
	frame_mend(&out);
	if (tag)
		frame_tag(&out, tag);
	return out;
}

static unsigned drain_punted(void)
{
	unsigned n = 0;

	for (enum punt_class class = 0; class < N_CLASSES; class ++)
		while (fake_punted(class))
			n++;
	return n;
}

// Only this port sends, only these bytes; PORT_NONE: Linux gets it, as it came, or nobody.
static void expect_out(uint8_t in, const struct bytes *made, uint16_t port, const struct bytes *out)
{
	unsigned before[FAKE_PORTS];

	for (unsigned i = 0; i < FAKE_PORTS; i++)
		before[i] = fake.device[i].n_sent;
	fake_receive(in, made);
	fake_run();
	for (unsigned i = 0; i < FAKE_PORTS; i++)
		assert_int_equal(fake.device[i].n_sent - before[i], i == port);
	if (port != PORT_NONE)
		expect_bytes(fake.device[port].sent[before[port]], out);
	assert_int_equal(drain_punted(), port == PORT_NONE && out);
}

static void expect_linuxs(uint8_t in, const struct bytes *made, enum verdict verdict)
{
	const uint64_t handed = fake.stat.handed[verdict];

	expect_out(in, made, PORT_NONE, made);
	assert_int_equal(fake.stat.handed[verdict], handed + 1);
}

// The interface on which a frame comes in: the route to its source leads there, or it is dropped.
static void expect_in(uint8_t in, const struct bytes *made, uint16_t iface)
{
	const struct fib_hop here = {.kind = FIB_CONNECTED, .iface = iface};
	struct bytes out = frame_forwarded(made, OUTSIDE);

	fake_route(0, "192.0.2.0/24", &here);
	expect_out(in, made, OUTSIDE, &out);
}

static void set_strict(uint8_t rpf4)
{
	for (unsigned i = 0; i < N_IFACES; i++) {
		struct iface settings = ifaces[i];

		settings.rpf4 = rpf4;
		fake_set(BRIDGE + i, &settings);
	}
}

// Of the bridge, its tag or the port's PVID tells; and whether the bridge is in it untagged.
static const struct {
	uint8_t port;
	uint32_t tag;
	uint16_t iface; // IFACE_NONE: Linux gets it
} arrivals[] = {
	{0, 0, BRIDGE},
	{0, 0x81000000, BRIDGE}, // a priority only
	{0, 0x81000001, BRIDGE},
	{0, TCI_10, VLAN_10},
	{0, TCI_10 | 0xa000, VLAN_10},
	{0, TCI_20, VLAN_20},
	{0, 0x8100001e, IFACE_NONE}, // no VLAN of the port
	{0, SERVICE_10, IFACE_NONE}, // a tag in VLAN 1
	{1, 0, VLAN_10},
	{1, TCI_10, VLAN_10},
	{1, TCI_20, IFACE_NONE},
	{2, 0, VLAN_20},
	{2, TCI_10, VLAN_10},
};

static void frames_come_in_on_the_interface_of_their_vlan(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		reset(fake_variants[v], true);
		set_strict(IFACE_RPF_STRICT);
		for (unsigned i = 0; i < ARRAY_LEN(arrivals); i++) {
			const struct bytes made =
				frame_from(arrivals[i].port, "10.3.1.1", arrivals[i].tag);

			if (arrivals[i].iface == IFACE_NONE)
				expect_out(arrivals[i].port, &made, PORT_NONE, &made);
			else
				expect_in(arrivals[i].port, &made, arrivals[i].iface);
		}
	}
}

static void without_filtering_the_tag_tells(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		reset(fake_variants[v], false);
		set_strict(IFACE_RPF_STRICT);
		for (unsigned port = 0; port < N_MEMBERS; port++) {
			struct bytes made = frame_from(port, "10.3.1.1", 0);

			expect_in(port, &made, BRIDGE);
			made = frame_from(port, "10.3.1.1", TCI_10);
			expect_in(port, &made, VLAN_10);
			made = frame_from(port, "10.3.1.1", TCI_20);
			expect_in(port, &made, VLAN_20);
			made = frame_from(port, "10.3.1.1", SERVICE_10);
			expect_in(port, &made, OTHER_10);
			made = frame_from(port, "10.3.1.1", 0x8100001e);
			expect_linuxs(port, &made, VERDICT_VLAN_UNKNOWN);
		}
	}
}

// A VLAN of the bridge without an interface; a VLAN that the bridge is not in; two tags.
static void what_no_interface_has_is_linuxs(void **state)
{
	struct bytes made = frame_from(2, "10.3.1.1", 0);

	reset(fake_variants[1], true);
	fib_iface_delete(fake.fib, VLAN_20);
	expect_out(2, &made, PORT_NONE, &made);
	made = frame_from(0, "10.3.1.1", TCI_20);
	expect_linuxs(0, &made, VERDICT_LINUX); // as all of the port
	own_vlans.has[0] = BIT_1 | BIT_20;
	commit();
	made = frame_from(1, "10.3.1.1", 0);
	expect_out(1, &made, PORT_NONE, &made);
	own_vlans.has[0] = BIT_1 | BIT_10;
	commit();
	made = frame_from(0, "10.3.1.1", 0x8100001e);
	frame_tag(&made, TCI_10);
	expect_linuxs(0, &made, VERDICT_VLAN_UNKNOWN);
}

// That of the untagged frames, and one of tagged ones.
static void an_interface_that_is_down_takes_no_others_with_it(void **state)
{
	struct iface settings = ifaces[VLAN_10 - BRIDGE];
	const struct bytes ten = frame_from(1, "10.3.1.1", 0), one = frame_from(0, "10.3.1.1", 0);
	const struct bytes ten_tagged = frame_from(0, "10.3.1.1", TCI_10);
	const struct bytes twenty = frame_from(0, "10.3.1.1", TCI_20);

	reset(fake_variants[0], true);
	settings.flags = IFACE_DOWN;
	fake_set(VLAN_10, &settings);
	expect_out(1, &ten, PORT_NONE, NULL);
	expect_out(0, &ten_tagged, PORT_NONE, NULL);
	assert_int_equal(fake.stat.verdict[VERDICT_PORT_DISABLED], 2);
	settings = ifaces[0];
	settings.flags = IFACE_DOWN;
	fake_set(BRIDGE, &settings);
	expect_out(0, &one, PORT_NONE, NULL);
	assert_int_equal(fake.stat.verdict[VERDICT_PORT_DISABLED], 3);
	const struct bytes out = frame_forwarded(&twenty, OUTSIDE);
	expect_out(0, &twenty, OUTSIDE, &out);
}

// The tag of what leaves: by port (-1: Linux gets it), interface by interface.
static void expect_tags(const int64_t tags[N_IFACES][N_MEMBERS])
{
	for (unsigned i = 0; i < N_IFACES; i++)
		for (unsigned port = 0; port < N_MEMBERS; port++) {
			char dst[32];

			snprintf(dst, sizeof(dst), "10.%u.0.%u", network[i], port + 1);
			const struct bytes made = frame_to(OUTSIDE, dst);
			if (tags[i][port] < 0) {
				expect_linuxs(OUTSIDE, &made, VERDICT_BRIDGE_UNKNOWN);
				continue;
			}
			const struct bytes out =
				sent_to(&made, port, BRIDGE + i, (uint32_t)tags[i][port]);
			expect_out(OUTSIDE, &made, port, &out);
		}
}

static void packets_leave_with_the_tag_of_the_port(void **state)
{
	static const int64_t tags[N_IFACES][N_MEMBERS] = {{0, -1, -1}, {TCI_10, 0, TCI_10},
		{TCI_20, -1, 0}, {-1, -1, -1}};
	static const int64_t in_10[N_IFACES][N_MEMBERS] = {{TCI_10, 0, TCI_10}, {TCI_10, 0, TCI_10},
		{-1, -1, -1}, {-1, -1, -1}};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		reset(fake_variants[v], true);
		expect_tags(tags);
		own_vlans = (struct mac_vlans){.pvid = 10, .has = {BIT_10}};
		commit();
		expect_tags(in_10);
	}
}

static void without_filtering_packets_leave_with_their_own(void **state)
{
	static const int64_t tags[N_IFACES][N_MEMBERS] = {{0, 0, 0}, {TCI_10, TCI_10, TCI_10},
		{TCI_20, TCI_20, TCI_20}, {SERVICE_10, SERVICE_10, SERVICE_10}};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		reset(fake_variants[v], false);
		expect_tags(tags);
	}
}

// With a tag in, another one out; in one burst with plain packets, and one that is lost.
static void bursts_have_packets_with_and_without_tags(void **state)
{
	const struct bytes made[] = {frame_from(0, "10.70.0.3", TCI_10),
		frame_from(0, "10.60.0.1", 0), frame_from(0, "10.50.0.2", TCI_20),
		frame_from(0, "10.60.0.2", TCI_20), frame_from(0, "10.3.1.1", TCI_20)};
	struct bytes plain[ARRAY_LEN(made)], out[ARRAY_LEN(made)];

	for (unsigned i = 0; i < ARRAY_LEN(made); i++)
		plain[i] = frame_from(0,
			i == 0   ? "10.70.0.3"
			: i == 1 ? "10.60.0.1"
				 : "10.60.0.2",
			0);
	reset(fake_variants[0], true);
	out[0] = sent_to(&plain[0], 2, VLAN_20, 0);
	out[1] = sent_to(&plain[1], 0, VLAN_10, TCI_10);
	out[3] = sent_to(&plain[3], 1, VLAN_10, 0);
	out[4] = frame_forwarded(&made[4], OUTSIDE);
	for (unsigned i = 0; i < ARRAY_LEN(made); i++)
		fake_receive(0, &made[i]);
	fake_run();
	assert_int_equal(drain_punted(), 1); // no host of the bridge's own VLAN is behind port 1
	expect_bytes(fake.device[2].sent[0], &out[0]);
	expect_bytes(fake.device[0].sent[0], &out[1]);
	expect_bytes(fake.device[1].sent[0], &out[3]);
	expect_bytes(fake.device[OUTSIDE].sent[0], &out[4]);
}

// Each fragment has the tag; the MTU is that of the interface.
static void fragments_have_tags(void **state)
{
	struct bytes made = frame_to(OUTSIDE, "10.60.0.1");
	struct iface settings = ifaces[VLAN_10 - BRIDGE];

	made.n += MORE;
	made.at[16] = (made.n - 14) >> 8;
	made.at[17] = (uint8_t)(made.n - 14);
	made.at[20] = made.at[21] = 0; // no DF
	frame_mend(&made);
	reset(fake_variants[1], true);
	settings.mtu = 300;
	fake_set(VLAN_10, &settings);
	fake_receive(OUTSIDE, &made);
	fake_run();
	assert_int_equal(fake.device[0].n_sent, 2);
	for (unsigned i = 0; i < 2; i++) {
		const uint8_t *sent = rte_pktmbuf_mtod(fake.device[0].sent[i], const uint8_t *);

		assert_memory_equal(sent + 12, "\x81\x00\x00\x0a\x08\x00", 6);
		assert_true(fake.device[0].sent[i]->pkt_len <= 300 + 18);
	}
}

static void a_tag_needs_headroom(void **state)
{
	const struct bytes made = frame_to(OUTSIDE, "10.60.0.1");
	const uint64_t dropped = fake.stat.verdict[VERDICT_NO_HEADROOM];

	reset(fake_variants[1], true);
	struct rte_mbuf *m = fake_receive(OUTSIDE, &made);
	memmove(m->buf_addr, rte_pktmbuf_mtod(m, void *), made.n);
	m->data_off = 0;
	fake_run();
	assert_int_equal(fake.stat.verdict[VERDICT_NO_HEADROOM] - dropped, 1);
	assert_int_equal(fake.device[0].n_sent, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_come_in_on_the_interface_of_their_vlan),
		cmocka_unit_test(without_filtering_the_tag_tells),
		cmocka_unit_test(what_no_interface_has_is_linuxs),
		cmocka_unit_test(an_interface_that_is_down_takes_no_others_with_it),
		cmocka_unit_test(packets_leave_with_the_tag_of_the_port),
		cmocka_unit_test(without_filtering_packets_leave_with_their_own),
		cmocka_unit_test(bursts_have_packets_with_and_without_tags),
		cmocka_unit_test(fragments_have_tags),
		cmocka_unit_test(a_tag_needs_headroom),
	};

	return cmocka_run_group_tests(tests, open_bridge, close_bridge);
}
