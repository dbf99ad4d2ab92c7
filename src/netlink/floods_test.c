// Which frames workers flood for bridges of Linux. Synthetic events, a real MAC table.
#include "netlink/fake_linux.h"

#include "netlink/bridges_inside.h"

#include <linux/if_bridge.h>
#include <stdio.h>
#include <string.h>

enum { BRIDGE = 40, VETH = 50, SECOND = 1000000000 };
enum { BROADCAST = 1 << MAC_BROADCAST, MULTICAST = 1 << MAC_MULTICAST, UNKNOWN = 1 << MAC_UNKNOWN };

static struct rcu *rcu;

static struct event_link bridge_link(void)
{
	struct event_link link = fake_device(BRIDGE, "br0", "bridge");

	link.bridge.ageing_cs = 30000;
	return link;
}

static void put(const struct event_link *link)
{
	fake_iface(&fake, link);
	fake_flush(&fake);
}

static struct event_link member(int ifindex)
{
	struct event_link link = ifindex == VETH ? fake_device(VETH, "veth0", "veth")
	                                         : fake_tap((unsigned)(ifindex - FAKE_TAP));

	link.master = BRIDGE;
	snprintf(link.slave_kind, sizeof(link.slave_kind), "bridge");
	link.port = (struct event_bridge_port){.is_known = true,
		.state = BR_STATE_FORWARDING,
		.learns = true,
		.floods = true};
	return link;
}

static void join(int ifindex)
{
	const struct event_link link = member(ifindex);

	put(&link);
}

static int setup(void **state)
{
	struct mac_settings settings = {.hz = SECOND, .n_workers = 1};
	const struct event_link bridge = bridge_link();

	rcu = rcu_create(1, NULL);
	settings.rcu = rcu;
	assert_int_equal(mac_open(&fake_macs, &settings, NULL), 0);
	fake_setup(state);
	fake.has_guard = true;
	put(&bridge);
	join(FAKE_TAP);
	join(FAKE_TAP + 1);
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

static const struct mac_port *port(unsigned i)
{
	return &mac_live_view(mac_live(fake_macs))->port[i];
}

static void expect_left(uint8_t linuxs, uint8_t linux_too)
{
	for (unsigned i = 0; i < 2; i++) {
		assert_true(fake.is_bridged[i]);
		assert_int_equal(port(i)->linuxs, linuxs);
		assert_int_equal(port(i)->linux_too, linux_too);
	}
}

static void expect_guarded(unsigned n, bool has_multicasts)
{
	assert_int_equal(fake.n_guarded, n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(fake.guarded[i].name[0], 'p');
		assert_int_equal(fake.guarded[i].has_multicasts, has_multicasts);
	}
}

static void workers_flood_all_where_nobody_else_listens(void **state)
{
	char where[64];

	expect_left(0, 0);
	expect_guarded(2, true);
	assert_int_equal(fake_unsupported(&fake, "flooding by a bridge", where), 0);
	const struct event_link alone = fake_tap(0);
	put(&alone);
	expect_guarded(1, true);
	join(FAKE_TAP);
	expect_guarded(2, true);
	fake_iface_gone(&fake, BRIDGE);
	fake_flush(&fake);
	expect_guarded(0, false);
}

static void a_bridge_that_is_addressed_gets_frames_to_groups(void **state)
{
	struct event_link bridge = bridge_link();

	fake_address(&fake, BRIDGE, "10.0.0.1/24", false);
	fake_flush(&fake);
	expect_left(0, BROADCAST | MULTICAST);
	fake_address(&fake, BRIDGE, "10.0.0.1/24", true);
	fake_address(&fake, BRIDGE, "fe80::1/64", false);
	fake_flush(&fake);
	expect_left(0, BROADCAST | MULTICAST);
	fake_address(&fake, BRIDGE, "fe80::1/64", true);
	fake_flush(&fake);
	expect_left(0, 0);
	bridge.flags |= IFF_ALLMULTI;
	put(&bridge);
	expect_left(0, BROADCAST | MULTICAST);
	bridge = bridge_link();
	bridge.promiscuity = 1;
	put(&bridge);
	expect_left(UNKNOWN, BROADCAST | MULTICAST);
}

static void ports_that_workers_do_not_serve_get_all(void **state)
{
	struct event_link locked = member(FAKE_TAP);
	char where[64];

	join(VETH);
	expect_left(UNKNOWN, BROADCAST | MULTICAST);
	assert_int_equal(fake_unsupported(&fake, "flooding by a bridge", where), 2);
	fake_iface_gone(&fake, VETH);
	fake_flush(&fake);
	expect_left(0, 0);
	locked.port.is_odd = true;
	put(&locked);
	assert_int_equal(port(1)->linuxs, UNKNOWN);
	assert_int_equal(port(1)->linux_too, BROADCAST | MULTICAST);
	expect_guarded(1, true);
}

static void groups_are_linuxs_where_it_snoops(void **state)
{
	struct event_link bridge = bridge_link();

	bridge.bridge.snoops = true;
	put(&bridge);
	expect_left(MULTICAST, 0);
	expect_guarded(2, false);
	join(VETH);
	expect_left(MULTICAST | UNKNOWN, BROADCAST);
}

static void flags_say_which_ports_get_copies(void **state)
{
	struct event_link left = member(FAKE_TAP);

	left.port.no_broadcasts = true;
	put(&left);
	assert_int_equal(port(1)->copies[MAC_BROADCAST][0], 0);
	assert_int_equal(port(1)->copies[MAC_MULTICAST][0], 1);
	left.port.no_broadcasts = false;
	left.port.no_multicasts = true;
	left.port.floods = false;
	put(&left);
	assert_int_equal(port(1)->copies[MAC_BROADCAST][0], 1);
	assert_int_equal(port(1)->copies[MAC_MULTICAST][0], 0);
	assert_int_equal(port(1)->copies[MAC_UNKNOWN][0], 0);
}

static void without_the_guard_linux_floods(void **state)
{
	char where[64];

	fake.has_guard = false;
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	expect_left(MAC_ALL_STORMS, 0);
	assert_int_equal(fake_unsupported(&fake, "guard against flooding twice", where), 1);
	assert_string_equal(where, "table bridge dl3d");
	assert_int_equal(fake_unsupported(&fake, "flooding by a bridge", where), 2);
	fake.has_guard = true;
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	expect_left(0, 0);
	assert_int_equal(fake_unsupported(&fake, "guard against flooding twice", where), 0);
}

static void a_list_that_judges_a_port_leaves_all_to_linux(void **state)
{
	fake.is_judged = true;
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	expect_left(MAC_ALL_STORMS, 0);
	expect_guarded(0, false);
	fake.is_judged = false;
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	expect_left(0, 0);
}

static void limits_of_storm_control_are_followed(void **state)
{
	for (uint32_t pps = 0; pps < 2; pps++) {
		fake.storm_pps = pps;
		mirror_poll(fake.mirror);
		fake_flush(&fake);
		expect_left(0, 0);
		for (unsigned i = 0; i < MAC_STORMS; i++) {
			assert_int_equal(port(0)->storm_cycles[i], pps * SECOND);
			assert_int_equal(port(1)->storm_cycles[i], 0);
		}
	}
}

static void tell_vlans(const struct event_vlans *vlans)
{
	const struct event event = {.kind = EVENT_VLANS, .vlans = *vlans};

	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
}

static void vlans_that_workers_do_not_follow_leave_all_to_linux(void **state)
{
	struct event_vlans vlans = {.ifindex = FAKE_TAP, .has = {6}};
	struct event_link bridge = bridge_link();

	bridge.bridge.filters_vlans = true;
	put(&bridge);
	tell_vlans(&vlans);
	expect_left(0, 0);
	vlans.odd[0] = 4;
	tell_vlans(&vlans);
	expect_left(MAC_ALL_STORMS, 0);
	expect_guarded(0, false);
	vlans.odd[0] = 0;
	tell_vlans(&vlans);
	expect_left(0, 0);
	bridge.bridge.has_common_macs = true;
	put(&bridge);
	expect_left(UNKNOWN, 0);
}

// Frames to an address that Linux has are not unknown, wherever that is.
static void workers_flood_no_frames_to_what_linux_knows(void **state)
{
	struct event event = {.kind = EVENT_FDB, .fdb = {.ifindex = BRIDGE, .bridge = BRIDGE}};
	struct mac_found found;
	uint8_t mac[8] = {0};

	event.fdb.mac = fake_mac(9);
	memcpy(mac, event.fdb.mac.bytes, sizeof(event.fdb.mac));
	const uint64_t key = mac_key(port(0)->domain, mac);
	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
	mac_lookup(mac_live_view(mac_live(fake_macs))->slots, &key, 1, &found);
	assert_non_null(found.slot);
	assert_int_equal(found.flags, MAC_LINUX | MAC_ELSEWHERE);
	assert_true(mac_live(fake_macs)->is_partial); // no dump has ended yet
	mirror_dump_begins(fake.mirror);
	mirror_event(fake.mirror, &event);
	mirror_dump_ends(fake.mirror, ~(1u << EVENT_FDB));
	fake_flush(&fake);
	assert_false(mac_live(fake_macs)->is_partial);
	mirror_dump_begins(fake.mirror);
	assert_true(mac_live(fake_macs)->is_partial);
	mirror_dump_ends(fake.mirror, ~(1u << EVENT_FDB)); // it is gone
	fake_flush(&fake);
	mac_lookup(mac_live_view(mac_live(fake_macs))->slots, &key, 1, &found);
	assert_null(found.slot);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(workers_flood_all_where_nobody_else_listens),
		TEST(a_bridge_that_is_addressed_gets_frames_to_groups),
		TEST(ports_that_workers_do_not_serve_get_all),
		TEST(groups_are_linuxs_where_it_snoops),
		TEST(flags_say_which_ports_get_copies),
		TEST(without_the_guard_linux_floods),
		TEST(a_list_that_judges_a_port_leaves_all_to_linux),
		TEST(limits_of_storm_control_are_followed),
		TEST(vlans_that_workers_do_not_follow_leave_all_to_linux),
		TEST(workers_flood_no_frames_to_what_linux_knows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
