// VXLAN devices of Linux in the mirror: which of them workers serve, what they flood to, and where
// addresses are. Synthetic events, real tables.
#include "netlink/fake_linux.h"

#include "netlink/bridges_inside.h"

#include <linux/if_bridge.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <string.h>

enum { LEFT = FAKE_TAP, BRIDGE = 40, VXLAN = 50, TWIN = 51, VNI = 10, SECOND = 1000000000 };
enum { NO_MEMBER = -1 };

static struct rcu *rcu;

static struct event_link port_of_bridge(struct event_link link)
{
	link.master = BRIDGE;
	snprintf(link.slave_kind, sizeof(link.slave_kind), "bridge");
	link.port = (struct event_bridge_port){.is_known = true,
		.state = BR_STATE_FORWARDING,
		.learns = true,
		.floods = true};
	return link;
}

static struct event_link device(int ifindex)
{
	struct event_link link =
		fake_device(ifindex, ifindex == VXLAN ? "vxlan10" : "vxlan11", "vxlan");

	link.tunnel = (struct event_tunnel){.is_tunnel = true, .learns = true, .ageing_s = 300};
	link.tunnel.settings = (struct iface_tunnel){.local = fake_addr("192.0.2.1"),
		.kind = IFACE_VXLAN,
		.ttl = 64,
		.dest_port = 4789,
		.key = VNI};
	return link;
}

static void put(const struct event_link *link)
{
	fake_iface(&fake, link);
	fake_flush(&fake);
}

static struct event_remote remote(uint8_t host, const char *end)
{
	return (struct event_remote){.ifindex = VXLAN,
		.mac = host ? fake_mac(host) : (struct wire_mac){{0}},
		.addr = fake_addr(end),
		.is_learnt = host};
}

static void announce(struct event_remote is, bool is_delete)
{
	const struct event event = {.kind = EVENT_REMOTE, .is_delete = is_delete, .remote = is};

	mirror_event(fake.mirror, &event);
}

static void tell_remote(struct event_remote is, bool is_delete)
{
	announce(is, is_delete);
	fake_flush(&fake);
}

static void tell_mac(uint8_t host, bool is_delete)
{
	const struct event event = {.kind = EVENT_FDB,
		.is_delete = is_delete,
		.fdb = {.ifindex = VXLAN,
			.bridge = BRIDGE,
			.mac = fake_mac(host),
			.is_plain = true}};

	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
}

static uint16_t member(void)
{
	const struct interface *one = interfaces_find(&fake.mirror->ifaces->all, VXLAN);

	return one && one->vxlan ? MAC_FIRST_TUNNEL + one->vxlan - 1 : 0;
}

// The number of the remote end behind which workers have an address; 0: none.
static uint32_t end_of(uint8_t host)
{
	const struct mac_choice all = {0, MAC_PORTS};
	const struct wire_mac mac = fake_mac(host);
	uint32_t found = 0;
	struct mac_remote at;
	struct mac_info info[64];
	uint32_t place = 0;

	do {
		const unsigned n = mac_page(fake_macs, &all, SECOND, &place, info, 64);

		for (unsigned i = 0; i < n; i++) {
			if (!wire_mac_equal(&info[i].mac, &mac))
				continue;
			assert_true(info[i].is_linux);
			assert_int_equal(info[i].port, member());
			assert_true(mac_remote_at(fake_macs, info[i].remote, &at));
			found = at.vtep;
		}
	} while (place);
	return found;
}

static uint32_t vtep(const char *text)
{
	const struct wire_addr addr = fake_addr(text);

	return fib_vtep_find(fake.fib, 0, &addr);
}

static void expect_end(uint8_t host, const char *wanted)
{
	const uint32_t number = wanted ? vtep(wanted) : 0;

	assert_true(!wanted == !number);
	assert_int_equal(end_of(host), number);
}

static unsigned n_floods(void)
{
	const struct mac_flood *flood = mac_live_flood(mac_live(fake_macs), member());

	return flood ? flood->n : 0;
}

static int setup(void **state)
{
	struct mac_settings settings = {.hz = SECOND, .n_workers = 1};
	struct event_link bridge = fake_device(BRIDGE, "br0", "bridge");

	rcu = rcu_create(1, NULL);
	settings.rcu = rcu;
	assert_int_equal(mac_open(&fake_macs, &settings, NULL), 0);
	fake_setup(state);
	fake.has_guard = true;
	fake_address(&fake, LEFT, "192.0.2.1/24", false);
	bridge.bridge.ageing_cs = 30000;
	put(&bridge);
	const struct event_link left = port_of_bridge(fake_tap(0)),
				vxlan = port_of_bridge(device(VXLAN));
	put(&left);
	put(&vxlan);
	mirror_dump_begins(fake.mirror);
	mirror_dump_ends(fake.mirror, ~(1u << EVENT_FDB));
	fake_flush(&fake);
	return 0;
}

static int teardown(void **state)
{
	fake_teardown(state);
	mac_close(fake_macs);
	fake_macs = NULL;
	rcu_destroy(rcu);
	return 0;
}

static void a_device_in_a_bridge_is_a_member(void **state)
{
	const struct iface *iface = fake_fib_iface(&fake, VXLAN);
	struct mac_member is;
	uint16_t domain;
	uint32_t n;

	assert_non_null(iface);
	assert_true(
		iface_carries_frames(iface) && iface->is_bridge && !(iface->flags & IFACE_LINUX));
	assert_true(member() && mac_member(fake_macs, member(), &is, &domain, &n));
	assert_int_equal(is.flags, MAC_OF_LINUX | MAC_LEARNS | MAC_FLOODS | MAC_LEARNS_REMOTES);
	fake_iface_gone(&fake, VXLAN);
	fake_flush(&fake);
	assert_false(mac_member(fake_macs, MAC_FIRST_TUNNEL, &is, &domain, &n));
	assert_null(fake_fib_iface(&fake, VXLAN));
}

static void addresses_are_where_both_tables_say(void **state)
{
	tell_mac(7, false);
	expect_end(7, NULL);
	tell_remote(remote(7, "192.0.2.2"), false);
	expect_end(7, "192.0.2.2");
	tell_remote(remote(7, "192.0.2.3"), false); // it has moved
	expect_end(7, "192.0.2.3");
	struct event_remote bound = remote(7, "192.0.2.4");
	bound.link = LEFT;
	tell_remote(bound, false);
	expect_end(7, NULL);
	tell_remote(remote(7, "192.0.2.3"), false);
	tell_mac(7, true);
	expect_end(7, NULL);
	assert_int_equal(vtep("192.0.2.3"), 0); // nothing holds it
}

static void an_address_without_an_entry_is_behind_the_only_end(void **state)
{
	tell_mac(7, false);
	tell_remote(remote(0, "192.0.2.2"), false);
	assert_int_equal(n_floods(), 1);
	expect_end(7, "192.0.2.2");
	tell_remote(remote(0, "192.0.2.3"), false);
	assert_int_equal(n_floods(), 2);
	expect_end(7, NULL);
	tell_remote(remote(0, "192.0.2.2"), true);
	assert_int_equal(n_floods(), 1);
	expect_end(7, "192.0.2.3");
}

// Both changes come before workers get one of them.
static void another_only_end_takes_over_addresses(void **state)
{
	struct event_remote group = remote(1, "192.0.2.3");

	tell_mac(7, false);
	tell_remote(remote(0, "192.0.2.2"), false);
	expect_end(7, "192.0.2.2");
	announce(remote(0, "192.0.2.2"), true);
	tell_remote(remote(0, "192.0.2.3"), false);
	assert_int_equal(n_floods(), 1);
	expect_end(7, "192.0.2.3");
	assert_int_equal(vtep("192.0.2.2"), 0); // nothing holds it
	group.mac.bytes[0] = 1;
	tell_remote(group, false); // one for a group is none for others
	tell_mac(8, false);
	expect_end(8, "192.0.2.3");
}

static void nothing_is_left_of_a_device_that_is_gone(void **state)
{
	const struct remotes *remotes = &fake.mirror->bridges->remotes;

	tell_remote(remote(7, "192.0.2.2"), false);
	tell_remote(remote(0, "192.0.2.2"), false);
	assert_int_equal(remotes->devices.n, 1);
	fake_iface_gone(&fake, VXLAN);
	fake_flush(&fake);
	assert_int_equal(remotes->devices.n, 0);
	assert_int_equal(remotes->table.n, 0);
	assert_int_equal(vtep("192.0.2.2"), 0);
}

// A device of frames in GRE has no table: all goes to its remote end, which no dump contains.
static void a_device_of_gre_sends_all_to_its_end(void **state)
{
	struct event_link gre = port_of_bridge(fake_device(VXLAN, "tap1", "gretap"));

	fake_iface_gone(&fake, VXLAN);
	gre.tunnel = (struct event_tunnel){.is_tunnel = true};
	gre.tunnel.settings = (struct iface_tunnel){.local = fake_addr("192.0.2.1"),
		.remote = fake_addr("192.0.2.8"),
		.kind = IFACE_GRETAP};
	put(&gre);
	assert_int_equal(n_floods(), 1);
	tell_mac(7, false);
	expect_end(7, "192.0.2.8");
	mirror_dump_begins(fake.mirror);
	tell_mac(7, false);
	mirror_dump_ends(fake.mirror, ~(1u << EVENT_FDB));
	fake_flush(&fake);
	assert_int_equal(n_floods(), 1);
	expect_end(7, "192.0.2.8");
	gre.tunnel.settings.remote = fake_addr("192.0.2.9");
	put(&gre);
	assert_int_equal(n_floods(), 1);
	expect_end(7, "192.0.2.9");
	assert_int_equal(vtep("192.0.2.8"), 0);
	fake_iface_gone(&fake, VXLAN);
	fake_flush(&fake);
	assert_int_equal(vtep("192.0.2.9"), 0);
	assert_int_equal(fake.mirror->bridges->remotes.devices.n, 0);
}

// Flags of an address in the bridge, as workers see it.
static uint16_t flags_of(uint8_t host)
{
	const struct wire_mac mac = fake_mac(host);
	uint8_t bytes[8] = {0};
	const struct mac_view *view = mac_live_view(mac_live(fake_macs));
	struct mac_found found;
	uint64_t key;

	memcpy(bytes, mac.bytes, sizeof(mac.bytes));
	key = mac_key(view->port[0].domain, bytes);
	mac_lookup(view->slots, &key, 1, &found);
	return found.slot ? found.flags : 0;
}

// The bridge would flood to it, but its device sends to one remote end.
static void an_address_that_only_the_device_has_is_linuxs(void **state)
{
	const struct event_link vxlan = port_of_bridge(device(VXLAN)), alone = device(VXLAN);

	tell_remote(remote(7, "192.0.2.2"), false);
	assert_int_equal(flags_of(7), MAC_LINUX | MAC_ELSEWHERE);
	tell_mac(7, false);
	assert_int_equal(flags_of(7), MAC_LINUX | MAC_REMOTE);
	tell_mac(7, true);
	assert_int_equal(flags_of(7), MAC_LINUX | MAC_ELSEWHERE);
	put(&alone);
	assert_int_equal(flags_of(7), 0);
	put(&vxlan);
	assert_int_equal(flags_of(7), MAC_LINUX | MAC_ELSEWHERE);
	tell_remote(remote(7, "192.0.2.2"), true);
	assert_int_equal(flags_of(7), 0);
}

// A device that learns drops frames from elsewhere of an address that somebody has written.
static void written_addresses_are_pinned(void **state)
{
	struct event_remote is = remote(7, "192.0.2.2");

	tell_mac(7, false);
	is.is_learnt = false;
	tell_remote(is, false);
	assert_int_equal(flags_of(7), MAC_LINUX | MAC_REMOTE | MAC_PINNED);
	is.is_learnt = true;
	tell_remote(is, false);
	assert_int_equal(flags_of(7), MAC_LINUX | MAC_REMOTE);
}

static uint8_t linuxs(void)
{
	return mac_live_view(mac_live(fake_macs))->port[0].linuxs;
}

// What is flooded to a group is Linux's, and so is what is flooded by a certain interface.
static void floods_that_workers_cannot_do_are_linuxs(void **state)
{
	struct event_remote bound = remote(0, "192.0.2.9");

	tell_remote(remote(0, "192.0.2.2"), false);
	assert_int_equal(linuxs(), 0);
	assert_int_equal(fake.n_guarded, 2);
	tell_remote(remote(0, "239.1.1.1"), false);
	assert_int_equal(linuxs(), MAC_ALL_STORMS);
	assert_int_equal(n_floods(), 0);
	tell_remote(remote(0, "239.1.1.1"), true);
	assert_int_equal(linuxs(), 0);
	assert_int_equal(n_floods(), 1);
	bound.link = LEFT;
	tell_remote(bound, false);
	assert_int_equal(linuxs(), MAC_ALL_STORMS);
	tell_remote(bound, true);
	struct event_remote group = remote(1, "192.0.2.2");
	group.mac.bytes[0] = 1;
	tell_remote(group, false);
	assert_int_equal(linuxs(), 1 << MAC_MULTICAST);
}

static void a_dump_removes_ends_that_it_does_not_contain(void **state)
{
	tell_mac(7, false);
	tell_remote(remote(7, "192.0.2.2"), false);
	tell_remote(remote(0, "192.0.2.2"), false);
	tell_remote(remote(0, "192.0.2.3"), false);
	mirror_dump_begins(fake.mirror);
	tell_mac(7, false);
	tell_remote(remote(0, "192.0.2.3"), false);
	mirror_dump_ends(fake.mirror, ~(1u << EVENT_FDB));
	fake_flush(&fake);
	assert_int_equal(n_floods(), 1);
	expect_end(7, "192.0.2.3");
}

// What does not fit is asked for again when there is space, and not at once, as it would not fit.
static void a_full_table_asks_again_when_there_is_space(void **state)
{
	struct remotes *remotes = &fake.mirror->bridges->remotes;
	const unsigned dumps = fake.n_dumps_requested;

	remotes->most = 4;
	for (uint8_t host = 1; host <= 6; host++)
		announce(remote(host, "192.0.2.2"), false);
	fake_flush(&fake);
	assert_int_equal(fake.n_dumps_requested, dumps);
	assert_true(remotes->is_short);
	tell_remote(remote(1, "192.0.2.2"), true);
	assert_int_equal(fake.n_dumps_requested, dumps + 1);
}

static void two_devices_of_one_vni_and_port_are_linuxs_and_named(void **state)
{
	struct event_link other = device(TWIN);
	char where[64];

	put(&other);
	assert_int_equal(member(), 0);
	assert_int_equal(fake_unsupported(&fake, "several VXLAN devices of one VNI and port",
				 where),
		2);
	other.tunnel.settings.key = VNI + 1;
	put(&other);
	assert_true(member());
	assert_int_equal(fake_unsupported(&fake, "several VXLAN devices of one VNI and port",
				 where),
		0);
}

// Those that were served stay so, and the next one is when a port is free again.
static void a_device_of_a_seventeenth_udp_port_is_linuxs_and_named(void **state)
{
	enum { FIRST = 60, N = 15, PORT = 5000 };
	static const char WHAT[] = "VXLAN on more than 16 UDP ports (dstport)";
	struct event_link last = device(FIRST + N);
	char where[64];

	for (unsigned i = 0; i < N; i++) {
		struct event_link other = device(FIRST + i);

		snprintf(other.name, sizeof(other.name), "more%u", i);
		other.tunnel.settings.key = VNI + 1 + i;
		other.tunnel.settings.dest_port = PORT + i;
		put(&other);
	}
	assert_int_equal(fake_unsupported(&fake, WHAT, where), 0);
	snprintf(last.name, sizeof(last.name), "last");
	last.tunnel.settings.key = VNI + 1 + N;
	last.tunnel.settings.dest_port = PORT + N;
	put(&last);
	assert_int_equal(fake_unsupported(&fake, WHAT, where), 1);
	assert_string_equal(where, "last");
	assert_true(member());
	fake_iface_gone(&fake, FIRST);
	fake_flush(&fake);
	assert_int_equal(fake_unsupported(&fake, WHAT, where), 0);
	last.tunnel.settings.dest_port = PORT + 1; // shared with another one
	put(&last);
	assert_int_equal(fake_unsupported(&fake, WHAT, where), 0);
}

static void of_two_devices_in_a_bridge_one_is_served(void **state)
{
	struct event_link other = port_of_bridge(device(TWIN));
	char where[64];
	struct mac_member is;
	uint16_t domain;
	uint32_t n;

	tell_remote(remote(0, "192.0.2.2"), false);
	other.tunnel.settings.key = VNI + 1;
	put(&other);
	assert_true(mac_member(fake_macs, member(), &is, &domain, &n));
	assert_int_equal(linuxs(), 1 << MAC_UNKNOWN); // Linux floods to the other one
	assert_int_equal(fake_unsupported(&fake, "port of a bridge left to Linux", where), 1);
	assert_string_equal(where, "vxlan11 in br0");
}

// In no bridge, it is one of its own, for what is routed.
static void a_device_in_no_bridge_routes(void **state)
{
	const struct event_link alone = device(VXLAN);
	struct mac_way way;

	tell_remote(remote(7, "192.0.2.2"), false);
	put(&alone);
	expect_end(7, "192.0.2.2");
	const struct interface *one = interfaces_find(&fake.mirror->ifaces->all, VXLAN);
	const struct wire_mac mac = fake_mac(7);
	assert_true(mac_way_to(fake_macs, one->id, &mac, &way));
	assert_int_equal(way.port, member());
	tell_remote(remote(7, "192.0.2.2"), true);
	expect_end(7, NULL);
}

// What workers read stays small where there are as many as there can be.
static void the_more_bridges_the_less_space_each_has_at_first(void **state)
{
	enum { MANY = 12 };
	const struct served_set *now = &fake.mirror->bridges->now;
	struct event_link alone = device(VXLAN);

	for (unsigned i = 0; i < MANY; i++) {
		alone.ifindex = VXLAN + (int)i;
		alone.tunnel.settings.key = VNI + i;
		snprintf(alone.name, sizeof(alone.name), "vx%u", i);
		put(&alone);
	}
	assert_true(now->n >= MANY);
	assert_int_equal(now->bridge[0].is.max, MAC_DEFAULT_MAX);
	assert_true(now->bridge[now->n - 1].is.max < MAC_DEFAULT_MAX);
}

// The table of a VRF that is gone is another's only when nothing leads to it any more, however many
// turns that takes.
static void a_vrf_rests_while_remote_ends_are_in_it(void **state)
{
	enum { VRF = 60, TABLE = 100, N = 6000 };
	const struct event_link vrf = fake_vrf(VRF, "red", TABLE);
	const struct wire_addr addr = fake_addr("192.0.2.2");
	struct event_remote is = remote(7, "192.0.2.2");
	struct event_link alone = device(VXLAN);
	bool has_more = true;

	put(&vrf);
	alone.tunnel.link = VRF;
	put(&alone);
	for (unsigned i = 0; i < N; i++) {
		is.mac.bytes[1] = i >> 8;
		is.mac.bytes[2] = i & 255;
		announce(is, false);
	}
	fake_flush(&fake);
	const uint16_t id = ifaces_vrf_of_table(fake.mirror, TABLE);
	assert_true(id && fib_vtep_find(fake.fib, id, &addr));
	fake_iface_gone(&fake, VRF);
	while (has_more) {
		has_more = mirror_flush(fake.mirror);
		assert_true(fib_vrf_is_open(fake.fib, id) || !fib_vtep_find(fake.fib, id, &addr));
	}
	assert_false(fib_vrf_is_open(fake.fib, id));
}

static void linux_is_told_of_senders_behind_remote_ends(void **state)
{
	struct mac_info info = {.mac = fake_mac(9),
		.port = member(),
		.end = fake_addr("192.0.2.5")};

	mirror_learn(fake.mirror, &info);
	assert_int_equal(fake.n_seen, 1);
	assert_int_equal(fake.seen.ifindex, VXLAN);
	assert_true(fake.seen.is_new && wire_addr_equal(&fake.seen.end, &info.end));
	struct event_remote fixed = remote(9, "192.0.2.6");
	fixed.is_learnt = false; // the device does not learn over it
	tell_remote(fixed, false);
	mirror_learn(fake.mirror, &info);
	assert_int_equal(fake.n_seen, 2);
	assert_int_equal(fake.seen.end.family, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_device_in_a_bridge_is_a_member),
		TEST(addresses_are_where_both_tables_say),
		TEST(an_address_without_an_entry_is_behind_the_only_end),
		TEST(another_only_end_takes_over_addresses),
		TEST(nothing_is_left_of_a_device_that_is_gone),
		TEST(a_device_of_gre_sends_all_to_its_end),
		TEST(an_address_that_only_the_device_has_is_linuxs),
		TEST(written_addresses_are_pinned),
		TEST(floods_that_workers_cannot_do_are_linuxs),
		TEST(a_dump_removes_ends_that_it_does_not_contain),
		TEST(a_full_table_asks_again_when_there_is_space),
		TEST(two_devices_of_one_vni_and_port_are_linuxs_and_named),
		TEST(a_device_of_a_seventeenth_udp_port_is_linuxs_and_named),
		TEST(of_two_devices_in_a_bridge_one_is_served),
		TEST(a_device_in_no_bridge_routes),
		TEST(the_more_bridges_the_less_space_each_has_at_first),
		TEST(a_vrf_rests_while_remote_ends_are_in_it),
		TEST(linux_is_told_of_senders_behind_remote_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
