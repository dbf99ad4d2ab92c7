// Bridges of Linux that snoop: which groups and routers workers know, and when frames to groups are
// Linux's. Synthetic events, a real MAC table.
#include "netlink/fake_linux.h"

#include "base/clock.h"
#include "base/fail_alloc.h"
#include "netlink/bridges_inside.h"

#include <linux/if_bridge.h>
#include <stdio.h>
#include <string.h>

enum { BRIDGE = 40, VETH = 50, SECOND = 1000000000 };
enum { MULTICAST = 1 << MAC_MULTICAST };

static struct rcu *rcu;
static struct event groups, routers; // large
static uint64_t now_ns;

static struct event_link bridge_link(void)
{
	struct event_link link = fake_device(BRIDGE, "br0", "bridge");

	link.bridge.ageing_cs = 30000;
	link.bridge.snoops = true;
	link.bridge.snooping.router = MDB_RTR_TYPE_TEMP_QUERY;
	return link;
}

static struct event_link querier_link(void)
{
	struct event_link link = bridge_link();

	link.bridge.snooping.is_querier = true;
	link.bridge.snooping.response_cs = 1000;
	return link;
}

static void put(const struct event_link *link)
{
	if (link->ifindex == BRIDGE)
		fake.asked_link = *link;
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
		.floods = true,
		.router = MDB_RTR_TYPE_TEMP_QUERY};
	return link;
}

static void put_member(int ifindex)
{
	const struct event_link link = member(ifindex);

	put(&link);
}

// Some time passes, and Linux is asked again.
static void wait_s(unsigned seconds)
{
	now_ns += seconds * (uint64_t)SECOND;
	if (queriers_poll(fake.mirror->bridges, now_ns))
		mdb_poll(fake.mirror->bridges, now_ns);
	fake.mirror->bridges->publish_ns = 0;
	fake_flush(&fake);
}

static void dump(void)
{
	mirror_dump_begins(fake.mirror);
	if (groups.groups.n)
		mirror_event(fake.mirror, &groups);
	mirror_dump_ends(fake.mirror, ~(1u << EVENT_GROUPS));
	wait_s(2);
}

static int setup(void **state)
{
	struct mac_settings settings = {.hz = SECOND, .n_workers = 1};
	const struct event_link bridge = bridge_link();

	rcu = rcu_create(1, NULL);
	settings.rcu = rcu;
	assert_int_equal(mac_open(&fake_macs, &settings, NULL), 0);
	fake_setup(state);
	memset(&groups, 0, sizeof(groups));
	memset(&routers, 0, sizeof(routers));
	groups.kind = routers.kind = EVENT_GROUPS;
	groups.groups.bridge = routers.groups.bridge = BRIDGE;
	now_ns = clock_now_ns();
	fake.has_guard = fake.guard_follows = true;
	fake.routers = &routers;
	put(&bridge);
	put_member(FAKE_TAP);
	put_member(FAKE_TAP + 1);
	dump();
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

static const struct mac_view *view(void)
{
	return mac_live_view(mac_live(fake_macs));
}

static bool is_linuxs(void)
{
	assert_int_equal(fake.n_guarded, 2);
	assert_int_equal(fake.guarded[0].has_multicasts, !(view()->port[0].linuxs & MULTICAST));
	return view()->port[0].linuxs & MULTICAST;
}

static const struct mac_snoop *snoop(void)
{
	const struct mac_snoop *found = mac_snoop_of(view(), 1);

	assert_false(is_linuxs());
	assert_non_null(found);
	return found;
}

static struct event_group group_at(int ifindex, uint8_t family, uint8_t last)
{
	struct event_group group = {.ifindex = ifindex, .family = family};

	group.addr[0] = family == 4 ? 239 : family == 6 ? 0xff : 1;
	group.addr[family == 4 ? 3 : 5] = last;
	return group;
}

static void tell(struct event_group group, bool is_delete)
{
	groups.is_delete = is_delete;
	groups.groups.n = 1;
	groups.groups.group[0] = group;
	mirror_event(fake.mirror, &groups);
	fake.mirror->bridges->publish_ns = 0;
	fake_flush(&fake);
	groups.groups.n = 0;
	groups.is_delete = false;
}

// NULL: nobody is known to want it.
static const struct mac_out *look_up(uint8_t family, uint8_t last)
{
	static const enum mac_family family_of[] = {
		MAC_OF_MACS, [4] = MAC_OF_IP4, [6] = MAC_OF_IP6};
	const struct event_group group = group_at(0, family, last);
	const struct mac_group_key key = mac_group_key(1, family_of[family], group.addr);

	return mac_group_find(view(), &key);
}

static void expect(uint8_t family, uint8_t last, uint64_t ports, bool linux_too)
{
	const struct mac_out *out = look_up(family, last);

	assert_non_null(out);
	assert_int_equal(out->ports[0], ports);
	assert_int_equal(out->linux_too, linux_too);
}

static void workers_know_who_wants_a_group(void **state)
{
	tell(group_at(FAKE_TAP, 4, 1), false);
	expect(4, 1, 1, false);
	tell(group_at(FAKE_TAP + 1, 4, 1), false);
	tell(group_at(FAKE_TAP + 1, 6, 2), false);
	tell(group_at(FAKE_TAP + 1, 0, 3), false);
	expect(4, 1, 3, false);
	expect(6, 2, 2, false);
	expect(0, 3, 2, false);
	put_member(VETH);
	tell(group_at(VETH, 4, 1), false);
	expect(4, 1, 3, true);
	tell(group_at(VETH, 4, 1), true);
	expect(4, 1, 3, false);
	tell(group_at(BRIDGE, 4, 1), false); // the bridge's own interface
	expect(4, 1, 3, true);
	tell(group_at(FAKE_TAP, 4, 1), true);
	tell(group_at(FAKE_TAP + 1, 4, 1), true);
	expect(4, 1, 0, true);
	tell(group_at(BRIDGE, 4, 1), true);
	assert_null(look_up(4, 1));
	tell(group_at(FAKE_TAP, 4, 1), true); // it is not there
	expect(0, 3, 2, false);
}

static void a_dump_ends_what_it_does_not_have(void **state)
{
	tell(group_at(FAKE_TAP, 4, 1), false);
	tell(group_at(FAKE_TAP, 4, 2), false);
	mirror_dump_begins(fake.mirror);
	fake.mirror->bridges->publish_ns = 0;
	fake_flush(&fake);
	assert_true(is_linuxs());
	groups.groups.n = 1;
	groups.groups.group[0] = group_at(FAKE_TAP, 4, 2);
	mirror_event(fake.mirror, &groups);
	mirror_dump_ends(fake.mirror, ~(1u << EVENT_GROUPS));
	wait_s(2);
	assert_false(is_linuxs());
	assert_null(look_up(4, 1));
	expect(4, 2, 1, false);
	groups.groups.n = 0;
	fake_iface_gone(&fake, BRIDGE);
	fake_flush(&fake);
	assert_int_equal(fake.mirror->bridges->mdb.n, 0);
}

static void without_a_querier_packets_are_flooded(void **state)
{
	assert_false(snoop()->has_querier[MAC_OF_IP4] || snoop()->has_querier[MAC_OF_IP6]);
	assert_true(snoop()->has_querier[MAC_OF_MACS]);
}

// What Linux does until hosts have answered is its own.
static void after_a_querier_has_come_linux_waits_for_answers(void **state)
{
	struct event_link bridge = querier_link();

	put(&bridge);
	assert_true(is_linuxs());
	wait_s(9);
	assert_true(is_linuxs());
	wait_s(3);
	assert_true(snoop()->has_querier[MAC_OF_IP4]);
	assert_false(snoop()->has_querier[MAC_OF_IP6]); // it has no address
	bridge.bridge.snooping.other_cs[0] = 25000;     // another one takes over
	fake.asked_link = bridge;
	wait_s(1);
	assert_true(is_linuxs());
	wait_s(28);
	assert_true(snoop()->has_querier[MAC_OF_IP4]);
	bridge.bridge.snooping.is_querier = false;
	put(&bridge);
	assert_true(snoop()->has_querier[MAC_OF_IP4]);
	bridge.bridge.snooping.other_cs[0] = 100; // it was not seen for long
	fake.asked_link = bridge;
	wait_s(1);
	assert_true(is_linuxs());
	bridge.bridge.snooping.other_cs[0] = 0;
	fake.asked_link = bridge;
	wait_s(1);
	assert_false(snoop()->has_querier[MAC_OF_IP4]);
}

static void a_querier_of_ipv6_needs_an_address(void **state)
{
	struct event_link bridge = querier_link();

	bridge.bridge.snooping.query_cs = 12500;
	bridge.bridge.snooping.has_address6 = true;
	put(&bridge);
	wait_s(12);
	assert_true(is_linuxs()); // Linux has asked, and the address is gone
	fake_address(&fake, BRIDGE, "fe80::1/64", false);
	wait_s(12);
	assert_true(is_linuxs());
	wait_s(127);
	assert_true(snoop()->has_querier[MAC_OF_IP6]);
}

static void set_router(unsigned i, int ifindex, bool for4, bool for6)
{
	routers.groups.n_routers = i + 1;
	routers.groups.router[i] = (struct event_router){ifindex, for4, for6, false};
	wait_s(2);
}

static void ports_with_routers_are_read_from_time_to_time(void **state)
{
	struct event_link right = member(FAKE_TAP + 1);

	set_router(0, FAKE_TAP, true, false);
	assert_int_equal(snoop()->routers[MAC_OF_IP4].ports[0], 1);
	assert_int_equal(snoop()->routers[MAC_OF_MACS].ports[0], 1);
	assert_int_equal(snoop()->routers[MAC_OF_IP6].ports[0], 0);
	set_router(0, FAKE_TAP, true, true);
	assert_int_equal(snoop()->routers[MAC_OF_IP6].ports[0], 1);
	tell(group_at(FAKE_TAP + 1, 4, 1), false);
	expect(4, 1, 3, false);
	put_member(VETH);
	set_router(1, VETH, false, true);
	assert_true(snoop()->routers[MAC_OF_IP6].linux_too);
	assert_false(snoop()->routers[MAC_OF_IP4].linux_too);
	routers.groups.n_routers = 0;
	right.port.router = MDB_RTR_TYPE_PERM;
	put(&right);
	wait_s(2);
	assert_int_equal(snoop()->routers[MAC_OF_IP4].ports[0], 2);
	assert_int_equal(snoop()->routers[MAC_OF_IP6].ports[0], 2);
	set_router(0, FAKE_TAP, false, false); // of an old kernel
	assert_true(is_linuxs());
	fake.dump_error = -EINTR; // it stays as it was
	set_router(0, FAKE_TAP, true, true);
	assert_true(is_linuxs());
	fake.dump_error = 0;
	wait_s(2);
	assert_false(is_linuxs());
	fake.dump_error = -EIO;
	wait_s(2);
	assert_true(is_linuxs());
}

static void the_bridge_itself_gets_what_it_listens_to(void **state)
{
	struct event_link bridge = bridge_link();
	struct event event = {.kind = EVENT_NETCONF,
		.netconf = {BRIDGE, 4, -1, -1, -1, -1, .mc_forwarding = 1, .input = -1}};

	tell(group_at(FAKE_TAP, 4, 1), false);
	bridge.flags |= IFF_ALLMULTI;
	put(&bridge);
	expect(4, 1, 1, true);
	assert_true(snoop()->routers[MAC_OF_IP6].linux_too);
	bridge = bridge_link();
	bridge.bridge.snooping.router = MDB_RTR_TYPE_PERM;
	put(&bridge);
	expect(4, 1, 1, true);
	bridge = bridge_link();
	put(&bridge);
	fake_address(&fake, BRIDGE, "10.0.0.1/24", false);
	fake_flush(&fake);
	expect(4, 1, 1, false);
	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
	expect(4, 1, 1, true);
}

static void what_workers_do_not_follow_is_linuxs(void **state)
{
	struct event_link bridge = bridge_link(), left = member(FAKE_TAP);
	struct event_group odd = group_at(FAKE_TAP, 4, 1);
	char where[64];

	odd.is_odd = true;
	tell(odd, false);
	assert_false(is_linuxs()); // the bridge does not look at sources
	bridge.bridge.snooping.sees_sources[1] = true;
	put(&bridge);
	assert_false(is_linuxs());
	bridge.bridge.snooping.sees_sources[0] = true;
	put(&bridge);
	assert_true(is_linuxs());
	assert_int_equal(fake_unsupported(&fake, "flooding by a bridge", where), 2);
	odd.is_odd = false;
	tell(odd, false);
	assert_false(is_linuxs());
	odd.has_source = true;
	odd.source[0] = 10;
	tell(odd, false);
	assert_true(is_linuxs());
	tell(odd, true);
	assert_false(is_linuxs());
	bridge.bridge.snooping.router = MDB_RTR_TYPE_DISABLED;
	put(&bridge);
	assert_true(is_linuxs());
	bridge = bridge_link();
	put(&bridge);
	left.port.to_unicast = true;
	put(&left);
	assert_true(is_linuxs());
	put_member(FAKE_TAP);
	assert_false(is_linuxs());
	fake.guard_follows = false;
	put(&bridge);
	fake.mirror->bridges->mdb.is_changed = true;
	wait_s(2);
	assert_true(is_linuxs());
}

// Linux looks at no sources with IGMPv2, where they can still be set by hand.
static void sources_that_linux_does_not_look_at_are_none(void **state)
{
	struct event_group group = group_at(FAKE_TAP, 4, 1);

	group.has_source = true;
	group.source[0] = 10;
	tell(group, false);
	assert_false(is_linuxs());
	assert_null(look_up(4, 1));
	tell(group_at(FAKE_TAP + 1, 4, 1), false);
	expect(4, 1, 2, false);
}

static void there_are_limits(void **state)
{
	struct mdb *mdb = &fake.mirror->bridges->mdb;
	const unsigned dumps = fake.n_dumps_requested;

	mdb->most = 4;
	for (unsigned i = 0; i < 5; i++)
		tell(group_at(FAKE_TAP, 4, i), false);
	assert_true(is_linuxs());
	assert_int_equal(mdb->n, 4);
	tell(group_at(FAKE_TAP, 4, 0), true);
	assert_int_equal(fake.n_dumps_requested, dumps + 1);
	dump();
	assert_false(is_linuxs());
	mdb->most = 10;
	groups.groups.n = 0;
	groups.groups.too_many = true;
	mirror_event(fake.mirror, &groups);
	mdb->is_changed = true;
	wait_s(2);
	assert_true(is_linuxs());
}

static void a_group_that_could_not_be_stored_is_linuxs(void **state)
{
	fail_alloc_at(1);
	groups.groups.n = 1;
	groups.groups.group[0] = group_at(FAKE_TAP, 4, 1);
	mirror_event(fake.mirror, &groups);
	fail_alloc_at(0);
	groups.groups.n = 0;
	assert_true(event_kinds_have(fake.lost, EVENT_GROUPS));
	fake.mirror->bridges->mdb.is_changed = true;
	wait_s(2);
	assert_true(is_linuxs());
	dump();
	assert_false(is_linuxs());
}

// Nobody says so when there are too many groups.
static void linux_may_end_to_snoop_silently(void **state)
{
	struct event_link bridge = querier_link();

	put(&bridge);
	wait_s(20);
	assert_true(snoop()->has_querier[MAC_OF_IP4]);
	bridge.bridge.snoops = false;
	fake.asked_link = bridge;
	wait_s(2);
	assert_false(is_linuxs());
	assert_null(mac_snoop_of(view(), 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(workers_know_who_wants_a_group),
		TEST(a_dump_ends_what_it_does_not_have),
		TEST(without_a_querier_packets_are_flooded),
		TEST(after_a_querier_has_come_linux_waits_for_answers),
		TEST(a_querier_of_ipv6_needs_an_address),
		TEST(ports_with_routers_are_read_from_time_to_time),
		TEST(the_bridge_itself_gets_what_it_listens_to),
		TEST(what_workers_do_not_follow_is_linuxs),
		TEST(sources_that_linux_does_not_look_at_are_none),
		TEST(there_are_limits),
		TEST(a_group_that_could_not_be_stored_is_linuxs),
		TEST(linux_may_end_to_snoop_silently),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
