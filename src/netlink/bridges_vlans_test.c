// Bridges of Linux that filter by VLAN: which VLANs and addresses workers have. Synthetic events, a
// real MAC table.
#include "netlink/fake_linux.h"

#include "base/fail_alloc.h"
#include "netlink/bridges_inside.h"

#include <linux/if_bridge.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <string.h>

enum { LEFT = FAKE_TAP, RIGHT = FAKE_TAP + 1, BRIDGE = 40, NOWHERE = -1, SECOND = 1000000000 };

static struct rcu *rcu;

static struct event_link bridge_link(int ifindex, bool filters)
{
	struct event_link link = fake_device(ifindex, "", "bridge");

	snprintf(link.name, sizeof(link.name), "br%d", ifindex - BRIDGE);
	link.bridge.ageing_cs = 30000;
	link.bridge.filters_vlans = filters;
	link.bridge.vlan_protocol = ETH_P_8021Q;
	return link;
}

static void put(const struct event_link *link)
{
	fake_iface(&fake, link);
	fake_flush(&fake);
}

static struct event_link member(unsigned port, int bridge)
{
	struct event_link link = fake_tap(port);

	link.master = bridge;
	snprintf(link.slave_kind, sizeof(link.slave_kind), "bridge");
	link.port = (struct event_bridge_port){.is_known = true,
		.state = BR_STATE_FORWARDING,
		.learns = true};
	return link;
}

static void filter(bool does)
{
	const struct event_link bridge = bridge_link(BRIDGE, does);

	put(&bridge);
}

// VLANs 1 to 63, as bits.
static void tell(struct event_vlans vlans, bool is_delete)
{
	const struct event event = {.kind = EVENT_VLANS, .is_delete = is_delete, .vlans = vlans};

	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
}

static void tell_mac(int ifindex, uint8_t host, uint16_t vlan, bool is_delete)
{
	const struct event event = {.kind = EVENT_FDB,
		.is_delete = is_delete,
		.fdb = {.ifindex = ifindex,
			.bridge = BRIDGE,
			.mac = fake_mac(host),
			.vlan = vlan,
			.is_plain = true}};

	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
}

// The port behind which workers know the address in a VLAN, which is the only one in the table.
static int port_of(uint8_t host, uint16_t vlan)
{
	const struct mac_choice all = {1, MAC_PORTS};
	const struct wire_mac mac = fake_mac(host);
	struct mac_info info[64];
	uint32_t place = 0;
	int found = NOWHERE;

	do {
		const unsigned n = mac_page(fake_macs, &all, SECOND, &place, info, 64);

		for (unsigned i = 0; i < n; i++)
			if (wire_mac_equal(&info[i].mac, &mac) && info[i].vlan == vlan) {
				assert_int_equal(found, NOWHERE);
				found = info[i].port;
			}
	} while (place);
	return found;
}

// NULL: the bridge does not filter.
static const struct mac_vlans *vlans_of(unsigned port)
{
	struct mac_member is;
	uint16_t domain;
	uint32_t n;

	assert_true(mac_member(fake_macs, port, &is, &domain, &n));
	assert_true(fake.is_bridged[port]);
	assert_ptr_equal(mac_live_view(mac_live(fake_macs))->port[port].vlans, is.vlans);
	return is.vlans;
}

static void expect_vlans(unsigned port, uint64_t has, uint64_t untagged, uint16_t pvid)
{
	const struct mac_vlans *vlans = vlans_of(port);

	assert_non_null(vlans);
	assert_int_equal(vlans->has[0], has);
	assert_int_equal(vlans->untagged[0], untagged);
	assert_int_equal(vlans->pvid, pvid);
	for (unsigned i = 1; i < MAC_VIDS / 64; i++)
		assert_int_equal(vlans->has[i] | vlans->untagged[i], 0);
}

static int setup(void **state)
{
	struct mac_settings settings = {.hz = SECOND, .n_workers = 1};
	const struct event_link left = member(0, BRIDGE), right = member(1, BRIDGE);

	rcu = rcu_create(1, NULL);
	settings.rcu = rcu;
	assert_int_equal(mac_open(&fake_macs, &settings, NULL), 0);
	fake_setup(state);
	filter(true);
	put(&left);
	put(&right);
	tell((struct event_vlans){LEFT, 1, {2}, {2}, {0}}, false);
	tell((struct event_vlans){RIGHT, 1, {2}, {2}, {0}}, false);
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

static void workers_have_the_vlans_of_linux(void **state)
{
	expect_vlans(0, 2, 2, 1);
	assert_int_equal(vlans_of(0)->tag, ETH_P_8021Q);
	tell((struct event_vlans){LEFT, 5, {0xf0}, {0x10}, {0}}, false); // 4 to 7
	expect_vlans(0, 0xf2, 0x12, 5);
	expect_vlans(1, 2, 2, 1);
	tell((struct event_vlans){LEFT, 0, {0x30}, {0x20}, {0}}, false); // 5 is no PVID any more
	expect_vlans(0, 0xf2, 0x22, 0);
	tell((struct event_vlans){LEFT, 4, {0x10}, {0}, {0}}, false);
	tell((struct event_vlans){LEFT, 0, {0x50}, {0}, {0}}, true);
	expect_vlans(0, 0xa2, 0x22, 0);
	tell((struct event_vlans){LEFT, 0, {~1ull}, {0}, {0}}, true);
	expect_vlans(0, 0, 0, 0);
	tell((struct event_vlans){BRIDGE, 1, {2}, {2}, {0}}, false); // br0 itself
	tell((struct event_vlans){999, 1, {2}, {2}, {0}}, false);    // unknown
	expect_vlans(0, 0, 0, 0);
}

static void tags_are_of_the_type_of_the_bridge(void **state)
{
	struct event_link bridge = bridge_link(BRIDGE, true);

	bridge.bridge.vlan_protocol = ETH_P_8021AD;
	put(&bridge);
	assert_int_equal(vlans_of(0)->tag, ETH_P_8021AD);
}

static void vlans_that_do_not_forward_are_left_to_linux_and_named(void **state)
{
	struct event_link bridge = bridge_link(BRIDGE, true);
	char where[64];

	assert_int_equal(fake_unsupported(&fake, "VLANs of a port left to Linux", where), 0);
	tell((struct event_vlans){LEFT, 1, {0x6}, {0x2}, {0x2}}, false);
	expect_vlans(0, 4, 0, 1);
	assert_int_equal(fake_unsupported(&fake, "VLANs of a port left to Linux", where), 1);
	assert_string_equal(where, "p0 in br0");
	tell((struct event_vlans){LEFT, 1, {0x2}, {0x2}, {0}}, false);
	expect_vlans(0, 6, 2, 1);
	assert_int_equal(fake_unsupported(&fake, "VLANs of a port left to Linux", where), 0);
	assert_int_equal(fake_unsupported(&fake, "counters of VLANs", where), 0);
	bridge.bridge.counts_vlans = true;
	put(&bridge);
	assert_int_equal(fake_unsupported(&fake, "counters of VLANs", where), 2);
}

static void an_address_is_known_by_vlan(void **state)
{
	tell_mac(LEFT, 1, 1, false);
	tell_mac(RIGHT, 1, 5, false);
	tell_mac(LEFT, 1, 0, false); // Linux does not use it
	assert_int_equal(port_of(1, 1), 0);
	assert_int_equal(port_of(1, 5), 1);
	assert_int_equal(port_of(1, 0), NOWHERE);
	tell_mac(LEFT, 1, 5, false); // it moves
	assert_int_equal(port_of(1, 5), 0);
	tell_mac(LEFT, 1, 1, true);
	assert_int_equal(port_of(1, 1), NOWHERE);
	assert_int_equal(port_of(1, 5), 0);
}

static void filtering_may_begin_and_end(void **state)
{
	tell_mac(LEFT, 1, 1, false);
	tell_mac(RIGHT, 2, 0, false);
	filter(false);
	assert_null(vlans_of(0));
	assert_int_equal(port_of(1, 1), NOWHERE);
	assert_int_equal(port_of(2, 0), 1);
	filter(true);
	expect_vlans(0, 2, 2, 1);
	assert_int_equal(port_of(1, 1), 0);
	assert_int_equal(port_of(2, 0), NOWHERE);
}

static void a_dump_removes_vlans_that_it_does_not_contain(void **state)
{
	tell((struct event_vlans){LEFT, 2, {0xc}, {0}, {0}}, false);
	mirror_dump_begins(fake.mirror);
	tell((struct event_vlans){LEFT, 1, {0x2}, {0x2}, {0}}, false);
	expect_vlans(0, 0xe, 2, 1); // not yet
	mirror_dump_ends(fake.mirror, ~0u);
	fake_flush(&fake);
	expect_vlans(0, 0xe, 2, 1); // it may lack some
	mirror_dump_begins(fake.mirror);
	tell((struct event_vlans){LEFT, 0, {0x4}, {0x4}, {0}}, false);
	mirror_dump_ends(fake.mirror, ~(1u << EVENT_VLANS));
	fake_flush(&fake);
	expect_vlans(0, 4, 4, 0);
	expect_vlans(1, 0, 0, 0);
}

static void without_memory_vlans_are_lost_until_a_dump(void **state)
{
	const struct event_link alone = fake_tap(0), again = member(0, BRIDGE);

	fake_iface_gone(&fake, LEFT);
	put(&alone);
	put(&again);
	fail_alloc_often(1, 1);
	tell((struct event_vlans){LEFT, 1, {2}, {2}, {0}}, false);
	fail_alloc_at(0);
	assert_true(event_kinds_have(fake.lost, EVENT_VLANS));
	tell((struct event_vlans){LEFT, 1, {2}, {2}, {0}}, false);
	expect_vlans(0, 2, 2, 1);
}

// As a worker that forwards a frame from there.
static void see(uint8_t host, uint16_t vlan)
{
	const struct mac_view *view = mac_live_view(mac_live(fake_macs));
	const struct wire_mac mac = fake_mac(host);
	uint8_t bytes[8] = {0};
	struct mac_found found;

	memcpy(bytes, mac.bytes, sizeof(mac.bytes));
	const uint64_t key = mac_key(view->port[0].vlans->domain + vlan, bytes);
	mac_lookup(view->slots, &key, 1, &found);
	assert_non_null(found.slot);
	mac_mark(&found, mac_tick(view, rte_rdtsc()));
}

static void linux_is_told_in_which_vlan_a_host_was_seen(void **state)
{
	tell((struct event_vlans){RIGHT, 0, {0x20}, {0}, {0}}, false);
	tell_mac(RIGHT, 2, 1, false);
	tell_mac(RIGHT, 2, 5, false);
	mirror_refresh_macs(fake.mirror, SECOND);
	see(2, 5);
	mirror_refresh_macs(fake.mirror, SECOND + 30ull * SECOND);
	assert_int_equal(fake.n_seen, 1);
	assert_int_equal(fake.seen.ifindex, RIGHT);
	assert_int_equal(fake.seen.vlan, 5);
}

static const struct mac_view *view_now(void)
{
	return mac_live_view(mac_live(fake_macs));
}

static void put_router(const struct event_link *link)
{
	fake_router(&fake, link);
	fake_flush(&fake);
}

static uint16_t id_of(int ifindex)
{
	const struct interface *one = interfaces_find(&fake.mirror->ifaces->all, ifindex);

	return one ? one->id : IFACE_NONE;
}

// The VLAN in which workers send on an interface; -1: they do not.
static int vlan_of(int ifindex)
{
	const struct mac_iface *found = mac_iface_of(view_now(), id_of(ifindex));

	return found ? found->domain % MAC_VIDS : NOWHERE;
}

static void tell_own(uint16_t pvid, uint64_t has, uint64_t untagged)
{
	tell((struct event_vlans){BRIDGE, pvid, {has}, {untagged}, {0}}, false);
}

// Its own interface is in VLANs, as its ports are; Linux tells of them as of those of ports.
static void workers_route_in_the_own_vlans_of_a_bridge(void **state)
{
	struct event_link bridge = bridge_link(BRIDGE, true);

	bridge.mac = fake_mac(77);
	put_router(&bridge);
	assert_true(view_now()->port[0].own != 0);
	assert_int_equal(view_now()->port[0].own_vlans->has[0], 0);
	assert_int_equal(vlan_of(BRIDGE), NOWHERE);
	tell_own(1, 2, 2);
	assert_int_equal(view_now()->port[0].own_vlans->has[0], 2);
	assert_int_equal(vlan_of(BRIDGE), 1);
	tell_own(5, 32, 0);
	assert_int_equal(vlan_of(BRIDGE), 5);
	assert_int_equal(view_now()->port[1].own_vlans->untagged[0], 2);
	assert_int_equal(view_now()->port[1].own_vlans->has[0], 34);
	tell((struct event_vlans){BRIDGE, 0, {32}, {0}, {32}}, false); // it does not forward
	assert_int_equal(vlan_of(BRIDGE), NOWHERE);
	bridge.bridge.filters_vlans = false;
	put_router(&bridge);
	assert_null(view_now()->port[0].own_vlans);
	assert_int_equal(vlan_of(BRIDGE), view_now()->port[0].domain);
}

static void vlan_interfaces_of_a_bridge_are_those_of_workers(void **state)
{
	struct event_link bridge = bridge_link(BRIDGE, true), on = fake_vlan(50, BRIDGE, 5);
	struct event_link second = fake_vlan(51, BRIDGE, 6);

	on.mac = fake_mac(88);
	on.mtu = 1300;
	put_router(&bridge);
	put_router(&on);
	put_router(&second);
	const struct iface *iface = fake_fib_iface(&fake, 50);
	assert_true(iface->is_bridge);
	assert_int_equal(iface->port, id_of(BRIDGE));
	assert_int_equal(iface->tag[0].vid, 5);
	assert_int_equal(iface->mtu, 1300);
	assert_true(wire_mac_equal(&iface->mac, &on.mac));
	assert_int_equal(iface->flags & (IFACE_LINUX | IFACE_OUT_LINUX | IFACE_DOWN), 0);
	assert_int_equal(vlan_of(50), NOWHERE);
	tell_own(1, 2 + 32 + 64, 2);
	assert_int_equal(vlan_of(50), 5);
	assert_int_equal(vlan_of(51), 6);
	on.flags &= ~IFF_UP;
	put_router(&on);
	assert_true(fake_fib_iface(&fake, 50)->flags & IFACE_DOWN);
	fake_iface_gone(&fake, 50);
	fake_flush(&fake);
	assert_null(fake_fib_iface(&fake, 50));
	assert_int_equal(vlan_of(51), 6);
	fake_iface_gone(&fake, BRIDGE);
	fake_flush(&fake);
	assert_null(fake_fib_iface(&fake, 51));
}

// Whose tags are not those by which the bridge filters, or more than one.
static void vlan_interfaces_with_other_tags_are_linuxs_and_named(void **state)
{
	static const char what[] = "VLAN interface on a bridge with other tags";
	struct event_link bridge = bridge_link(BRIDGE, true), on = fake_vlan(50, BRIDGE, 5);
	const struct event_link above = fake_vlan(51, 50, 6);
	char where[64];

	on.vlan_protocol = ETH_P_8021AD;
	put_router(&bridge);
	put_router(&on);
	assert_null(fake_fib_iface(&fake, 50));
	assert_int_equal(fake_unsupported(&fake, what, where), 1);
	assert_string_equal(where, on.name);
	bridge.bridge.vlan_protocol = ETH_P_8021AD;
	put_router(&bridge);
	assert_non_null(fake_fib_iface(&fake, 50));
	assert_int_equal(fake_unsupported(&fake, what, where), 0);
	put_router(&above);
	assert_null(fake_fib_iface(&fake, 51));
	assert_int_equal(fake_unsupported(&fake, what, where), 1);
	assert_string_equal(where, above.name);
	bridge.bridge.vlan_protocol = ETH_P_8021Q;
	put_router(&bridge);
	assert_null(fake_fib_iface(&fake, 50));
	bridge.bridge.filters_vlans = false; // then any
	put_router(&bridge);
	assert_non_null(fake_fib_iface(&fake, 50));
	assert_int_equal(mac_iface_of(view_now(), id_of(50))->tag, ETH_P_8021AD);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(workers_have_the_vlans_of_linux),
		TEST(tags_are_of_the_type_of_the_bridge),
		TEST(vlans_that_do_not_forward_are_left_to_linux_and_named),
		TEST(an_address_is_known_by_vlan),
		TEST(filtering_may_begin_and_end),
		TEST(a_dump_removes_vlans_that_it_does_not_contain),
		TEST(without_memory_vlans_are_lost_until_a_dump),
		TEST(linux_is_told_in_which_vlan_a_host_was_seen),
		TEST(workers_route_in_the_own_vlans_of_a_bridge),
		TEST(vlan_interfaces_of_a_bridge_are_those_of_workers),
		TEST(vlan_interfaces_with_other_tags_are_linuxs_and_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
