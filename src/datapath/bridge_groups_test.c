// Frames to groups of a bridge of Linux that snoops: which ports get them, and what is Linux's.
#include "datapath/fake.h"

#include "mac/mac.h"
#include "wire/checksum.h"
#include "wire/headers.h"

#include <rte_cycles.h>

enum { IN = 0, LENGTH = 100, TAG_AT = 12, IP_AT = 14 };
enum { ALL = 0xe, WANTED = 1 << 1, ROUTER = 1 << 2 };

static struct mac_table *table;
static struct mac_member members[FAKE_PORTS];
static struct mac_bridge bridge;
static struct mac_group group[4];
static struct mac_snooping snooping;
static const uint8_t group4[4] = {239, 1, 2, 3}, group6[16] = {0xff, 5, [15] = 9};
static const uint8_t group_mac[6] = {0x33, 0, 0, 0, 0, 7};

static void commit(void)
{
	struct mac_pending *pending;

	assert_int_equal(mac_prepare(table, &bridge, 1, &pending, NULL), 0);
	mac_commit(table, pending, rte_rdtsc());
	mac_set_partial(table, false);
}

static void set_group(unsigned i, enum mac_family family, const uint8_t *addr, unsigned n)
{
	group[i] = (struct mac_group){.family = family, .out.ports = {WANTED}};
	memcpy(group[i].addr, addr, n);
}

// All ports in the bridge; there is a querier; port 1 wants three groups, and port 2 has a router
// of IPv4.
static int setup(void **state)
{
	int err = fake_open(state);
	struct mac_settings settings = {.hz = rte_get_tsc_hz() ? rte_get_tsc_hz() : 1000000000,
		.n_workers = 1};
	struct iface left = {0};

	settings.rcu = fake.rcu;
	if (err || mac_open(&table, &settings, NULL))
		return -1;
	fake_reset(fake_variants[1]);
	fake.worker.macs = mac_live(table);
	fake.worker.tap = &fake.tap;
	for (unsigned i = 0; i < FAKE_PORTS; i++) {
		members[i] = (struct mac_member){.port = i, .flags = MAC_OF_LINUX | MAC_FLOODS};
		fake.states[i].is_bridged = true;
		fake.states[i].mtu = 1500;
	}
	set_group(0, MAC_OF_IP4, group4, sizeof(group4));
	set_group(1, MAC_OF_IP6, group6, sizeof(group6));
	set_group(2, MAC_OF_MACS, group_mac, sizeof(group_mac));
	snooping = (struct mac_snooping){.group = group, .n_groups = 3};
	for (unsigned i = 0; i < MAC_FAMILIES; i++)
		snooping.has_querier[i] = true;
	snooping.routers[MAC_OF_IP4].ports[0] = snooping.routers[MAC_OF_MACS].ports[0] = ROUTER;
	bridge = (struct mac_bridge){.name = "br0",
		.ageing_s = 300,
		.max = 100,
		.member = members,
		.n_members = FAKE_PORTS,
		.snooping = &snooping};
	commit();
	left = *fib_iface(fake.fib, IN);
	left.flags = IFACE_LINUX;
	fake_set(IN, &left);
	return 0;
}

static int teardown(void **state)
{
	mac_close(table);
	return fake_close(state);
}

static struct bytes frame(uint16_t type)
{
	struct bytes made = {.n = LENGTH, .at = {0x33, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 1}};

	made.at[TAG_AT] = type >> 8;
	made.at[TAG_AT + 1] = type;
	return made;
}

static void set_checksum(struct bytes *made)
{
	struct wire_ip4 *ip = (void *)(made->at + IP_AT);

	ip->checksum_be = wire_ip4_checksum_be(ip);
}

static struct bytes packet4(const uint8_t to[4])
{
	struct bytes made = frame(WIRE_ETHERTYPE_IP4);

	made.at[IP_AT] = 0x45;
	made.at[IP_AT + 3] = LENGTH - IP_AT - 4; // some bytes follow
	made.at[IP_AT + 9] = WIRE_PROTO_UDP;
	memcpy(made.at + IP_AT + 16, to, 4);
	set_checksum(&made);
	return made;
}

static struct bytes packet6(const uint8_t to[16])
{
	struct bytes made = frame(WIRE_ETHERTYPE_IP6);

	made.at[IP_AT] = 0x60;
	made.at[IP_AT + 5] = LENGTH - IP_AT - 40;
	made.at[IP_AT + 6] = WIRE_PROTO_UDP;
	memcpy(made.at + IP_AT + 24, to, 16);
	return made;
}

static unsigned n_punted(const struct bytes *made)
{
	unsigned n = 0;

	for (enum punt_class class = 0; class < N_CLASSES; class ++)
		for (struct rte_mbuf *m; (m = fake_punted(class)); n++)
			expect_bytes(m, made);
	return n;
}

// The frame comes out at these ports, and Linux gets it, or not.
static void expect(struct bytes made, unsigned ports, unsigned punted)
{
	unsigned before[FAKE_PORTS];

	for (unsigned i = 0; i < FAKE_PORTS; i++)
		before[i] = fake.device[i].n_sent;
	fake_receive(IN, &made);
	fake_run();
	for (unsigned i = 0; i < FAKE_PORTS; i++) {
		assert_int_equal(fake.device[i].n_sent - before[i], ports >> i & 1);
		if (ports >> i & 1)
			expect_bytes(fake.device[i].sent[before[i]], &made);
	}
	assert_int_equal(n_punted(&made), punted);
}

static void groups_go_to_ports_that_want_them_and_to_routers(void **state)
{
	const uint8_t other4[4] = {239, 1, 2, 4}, other6[16] = {0xff, 5, [15] = 8};
	struct bytes tagged = packet4(group4), other_mac = frame(0x88b5);

	expect(packet4(group4), WANTED | ROUTER, 0);
	expect(packet6(group6), WANTED, 0);
	expect(frame(0x88b5), WANTED | ROUTER, 0);
	frame_tag(&tagged, 0x81000005);
	expect(tagged, WANTED | ROUTER, 0);
	frame_tag(&tagged, 0x81000005); // behind two, no IP is seen
	expect(tagged, WANTED | ROUTER, 0);
	expect(packet4(other4), ROUTER, 0);
	expect(packet6(other6), 0, 0);
	other_mac.at[5] = 8;
	expect(other_mac, ALL, 0);
	assert_int_equal(fake.stat.verdict[VERDICT_BRIDGE_NO_PORT], 1);
}

static void groups_that_everybody_wants_are_flooded(void **state)
{
	const uint8_t local4[4] = {224, 0, 0, 251}, all6[16] = {0xff, 2, [15] = 1};
	const uint8_t mdns6[16] = {0xff, 2, [15] = 0xfb};

	expect(packet4(local4), ALL, 0);
	expect(packet6(all6), ALL, 0);
	expect(packet6(mdns6), 0, 0);
	members[3].flags |= MAC_NO_MULTICASTS;
	commit();
	expect(packet4(local4), ALL & ~(1 << 3), 0);
	members[1].flags |= MAC_NO_MULTICASTS;
	commit();
	expect(packet4(group4), WANTED | ROUTER, 0); // what is wanted is no flood
}

static void without_a_querier_all_packets_are_flooded(void **state)
{
	snooping.has_querier[MAC_OF_IP4] = false;
	commit();
	expect(packet4(group4), ALL, 0);
	expect(packet6(group6), WANTED, 0);
	snooping.has_querier[MAC_OF_MACS] = false;
	assert_int_equal(mac_set_groups(table, &bridge, 1, NULL), 0);
	expect(frame(0x88b5), WANTED | ROUTER, 0); // of MAC addresses, there is none
}

static void linux_gets_what_somebody_else_wants(void **state)
{
	const uint8_t other4[4] = {239, 1, 2, 4};

	group[0].out.linux_too = true;
	commit();
	expect(packet4(group4), WANTED | ROUTER, 1);
	expect(packet6(group6), WANTED, 0);
	expect(packet4(other4), ROUTER, 0);
	snooping.routers[MAC_OF_IP4].linux_too = true;
	commit();
	expect(packet4(other4), ROUTER, 1);
	bridge.linux_too = 1 << MAC_MULTICAST; // of those that are flooded
	commit();
	expect(packet6(group6), WANTED, 0);
	snooping.has_querier[MAC_OF_IP6] = false;
	commit();
	expect(packet6(group6), ALL, 1);
}

// And PIM, from which it learns where routers are.
static void packets_that_linux_drops_or_learns_from_are_its_own(void **state)
{
	const struct {
		uint8_t at, value;
	} wrong4[] = {{0, 0x55}, {0, 0x44}, {3, 19}, {3, LENGTH}, {9, WIRE_PROTO_PIM}},
	  wrong6[] = {{0, 0x50}, {5, 0}, {5, LENGTH}, {6, WIRE_PROTO_HOP_BY_HOP}};
	struct bytes made = packet4(group4);

	made.at[IP_AT + 10] ^= 1;
	expect(made, 0, 1);
	for (unsigned i = 0; i < sizeof(wrong4) / sizeof(wrong4[0]); i++) {
		made = packet4(group4);
		made.at[IP_AT + wrong4[i].at] = wrong4[i].value;
		set_checksum(&made);
		expect(made, 0, 1);
	}
	for (unsigned i = 0; i < sizeof(wrong6) / sizeof(wrong6[0]); i++) {
		made = packet6(group6);
		made.at[IP_AT + wrong6[i].at] = wrong6[i].value;
		expect(made, 0, 1);
	}
	for (made = packet4(group4); --made.n >= IP_AT + 10;)
		if (made.n < LENGTH - 4)
			expect(made, 0, 1);
}

static void no_port_gets_what_it_may_not_have(void **state)
{
	members[IN].flags |= MAC_ISOLATED;
	members[1].flags |= MAC_ISOLATED;
	commit();
	expect(packet4(group4), ROUTER, 0);
	members[1].flags &= ~MAC_ISOLATED;
	group[0].out.ports[0] = 1 << IN;
	commit();
	expect(packet4(group4), ROUTER, 0); // not where it came in
	members[IN].flags |= MAC_HAIRPIN;
	members[IN].flags &= ~MAC_ISOLATED;
	commit();
	expect(packet4(group4), ROUTER | 1 << IN, 0);
	fake.states[2].up = false;
	expect(packet4(group4), 1 << IN, 0);
	fake.states[2].up = true;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(groups_go_to_ports_that_want_them_and_to_routers),
		TEST(groups_that_everybody_wants_are_flooded),
		TEST(without_a_querier_all_packets_are_flooded),
		TEST(linux_gets_what_somebody_else_wants),
		TEST(packets_that_linux_drops_or_learns_from_are_its_own),
		TEST(no_port_gets_what_it_may_not_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
