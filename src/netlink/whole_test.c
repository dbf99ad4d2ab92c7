// The parts of the mirror together: effects of interfaces and neighbours on existing routes.
// Synthetic events, a real fib. Tests only.
#include "netlink/fake_linux.h"

#include "base/bits.h"
#include "netlink/routes_inside.h"

#include <linux/neighbour.h>
#include <linux/netfilter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

enum { VLAN = 20, RED = 50, TABLE_RED = 10 };

static struct event_route to(const char *prefix, const char *via, int ifindex)
{
	struct event_route route = {.table = RT_TABLE_MAIN,
		.type = RTN_UNICAST,
		.protocol = RTPROT_STATIC,
		.n_hops = 1};

	assert_int_equal(wire_prefix_parse(prefix, &route.prefix), 0);
	if (via)
		route.hop[0].via = fake_addr(via);
	else
		route.scope = RT_SCOPE_LINK;
	route.hop[0].ifindex = ifindex;
	route.hop[0].weight = 1;
	return route;
}

static void add_route(struct event_route route)
{
	struct event event = {.kind = EVENT_ROUTE, .nl_flags = NLM_F_CREATE | NLM_F_EXCL};

	event.route = route;
	mirror_event(fake.mirror, &event);
}

// An interface with 10.0.0.1/24, a neighbour 10.0.0.2 and 20.0.0.0/8 via that, in a table.
static void furnish(int ifindex, uint32_t table)
{
	struct event_route connected = to("10.0.0.0/24", NULL, ifindex);
	struct event_route far = to("20.0.0.0/8", "10.0.0.2", ifindex);

	connected.table = far.table = table;
	connected.prefsrc = fake_addr("10.0.0.1");
	fake_address(&fake, ifindex, "10.0.0.1/24", false);
	add_route(connected);
	add_route(far);
	fake_neighbour(&fake, ifindex, "10.0.0.2", (struct fake_seen){2, NUD_REACHABLE});
}

static struct fib_answer look(uint16_t vrf, const char *text)
{
	struct wire_addr addr = fake_addr(text);
	struct fib_answer answer;

	fake_flush(&fake);
	rib_lookup(fake.fib, vrf, &addr, &answer);
	return answer;
}

static enum verdict verdict(const char *text)
{
	return look(0, text).verdict;
}

static void forwards_over_a_tap(void **state)
{
	furnish(10, RT_TABLE_MAIN);
	assert_int_equal(verdict("10.0.0.2"), VERDICT_FORWARD);
	assert_int_equal(verdict("10.0.0.3"), VERDICT_NEIGHBOUR_UNRESOLVED);
	struct fib_answer far = look(0, "20.1.1.1");
	assert_int_equal(far.verdict, VERDICT_FORWARD);
	assert_int_equal(far.hop.iface, 0);
	assert_int_equal(far.mac.bytes[5], 2);
}

static void forwards_by_what_was_told_in_the_wrong_order(void **state)
{
	struct event_link vlan = fake_vlan(VLAN, 10, 7), red = fake_vrf(RED, "red", TABLE_RED);

	vlan.master = RED;
	furnish(VLAN, TABLE_RED);
	fake_router(&fake, &vlan);
	fake_flush(&fake);
	fake_router(&fake, &red);
	fake_flush(&fake);
	uint16_t vrf = ifaces_vrf_of_table(fake.mirror, TABLE_RED);
	assert_int_equal(look(vrf, "20.1.1.1").verdict, VERDICT_FORWARD);
	assert_int_equal(verdict("20.1.1.1"), VERDICT_NO_ROUTE);
	assert_int_equal(look(vrf, "20.1.1.1").hop.iface, ifaces_state(fake.mirror, VLAN).iface);
}

static void leaves_routes_to_linux_while_only_it_may_send(void **state)
{
	struct event_foreign htb = {.ifindex = 10, .sides = EVENT_EGRESS, .name = "qdisc htb 1:"};
	struct event_link tap = fake_tap(0);

	furnish(10, RT_TABLE_MAIN);
	fake_foreign(&fake, EVENT_QDISC, &htb, false);
	assert_int_equal(verdict("20.1.1.1"), VERDICT_LINUX);
	assert_int_equal(verdict("10.0.0.2"), VERDICT_LINUX);
	fake_foreign(&fake, EVENT_QDISC, &htb, true);
	assert_int_equal(verdict("20.1.1.1"), VERDICT_FORWARD);
	tap.master = 40;
	fake_iface(&fake, &tap);
	assert_int_equal(verdict("20.1.1.1"), VERDICT_LINUX);
	tap.master = 0;
	fake_iface(&fake, &tap);
	assert_int_equal(verdict("20.1.1.1"), VERDICT_FORWARD);
}

static void drops_routes_of_a_link_that_went_down_and_up_again(void **state)
{
	struct event_link down = fake_tap(0), up = fake_tap(0);

	down.flags = 0;
	furnish(10, RT_TABLE_MAIN);
	assert_int_equal(verdict("20.1.1.1"), VERDICT_FORWARD);
	fake_iface(&fake, &down); // the kernel does not report the removed IPv4 routes
	fake_iface(&fake, &up);
	add_route(to("10.0.0.0/24", NULL, 10));
	assert_int_equal(verdict("20.1.1.1"), VERDICT_NO_ROUTE);
	assert_int_equal(verdict("10.0.0.2"), VERDICT_FORWARD);
}

static void drops_routes_of_a_vlan_that_was_made_anew(void **state)
{
	struct event_link vlan = fake_vlan(VLAN, 10, 7);

	fake_router(&fake, &vlan);
	furnish(VLAN, RT_TABLE_MAIN);
	assert_int_equal(verdict("20.1.1.1"), VERDICT_FORWARD);
	fake_iface_gone(&fake, VLAN);
	fake_router(&fake, &vlan);
	assert_int_equal(verdict("20.1.1.1"), VERDICT_NO_ROUTE);
	furnish(VLAN, RT_TABLE_MAIN);
	assert_int_equal(verdict("20.1.1.1"), VERDICT_FORWARD);
}

static void drops_routes_of_a_source_address_that_is_gone(void **state)
{
	struct event_route route = to("30.0.0.0/8", "10.0.0.2", 10);

	furnish(10, RT_TABLE_MAIN);
	fake_address(&fake, 11, "10.9.9.9/32", false);
	route.prefsrc = fake_addr("10.9.9.9");
	add_route(route);
	assert_int_equal(verdict("30.1.1.1"), VERDICT_FORWARD);
	fake_address(&fake, 11, "10.9.9.9/32", true);
	assert_int_equal(verdict("30.1.1.1"), VERDICT_NO_ROUTE);
	assert_int_equal(verdict("20.1.1.1"), VERDICT_FORWARD);
}

static void takes_a_vrf_away_with_its_routes(void **state)
{
	struct event_link tap = fake_tap(0), red = fake_vrf(RED, "red", TABLE_RED);
	struct event_route hole = {.prefix = {fake_addr("30.0.0.0"), 8},
		.type = RTN_BLACKHOLE,
		.table = TABLE_RED};

	fake_router(&fake, &red);
	tap.master = RED;
	fake_iface(&fake, &tap);
	furnish(10, TABLE_RED);
	add_route(hole);
	uint16_t vrf = ifaces_vrf_of_table(fake.mirror, TABLE_RED);
	assert_int_equal(look(vrf, "20.1.1.1").verdict, VERDICT_FORWARD);
	tap.master = 0;
	fake_iface(&fake, &tap);
	fake_iface_gone(&fake, RED);
	fake_flush(&fake);
	assert_false(fib_vrf_is_open(fake.fib, vrf));
	assert_int_equal(verdict("20.1.1.1"), VERDICT_NO_ROUTE);
	fake_router(&fake, &red); // routes of a table outlive its VRF device
	fake_flush(&fake);
	vrf = ifaces_vrf_of_table(fake.mirror, TABLE_RED);
	assert_int_equal(look(vrf, "30.1.1.1").verdict, VERDICT_BLACKHOLE);
	assert_int_equal(look(vrf, "20.1.1.1").verdict, VERDICT_NO_ROUTE); // removed with its
	                                                                   // interface
}

// Workers look up on-link hosts in the interface's own VRF. Its routes are removed with each move.
static void leaves_routes_over_a_iface_of_another_vrf_to_linux(void **state)
{
	struct event_link tap = fake_tap(0), red = fake_vrf(RED, "red", TABLE_RED);

	furnish(10, RT_TABLE_MAIN);
	fake_router(&fake, &red);
	assert_int_equal(verdict("10.0.0.2"), VERDICT_FORWARD);
	tap.master = RED;
	fake_iface(&fake, &tap);
	assert_int_equal(verdict("10.0.0.2"), VERDICT_NO_ROUTE);
	furnish(10, RT_TABLE_MAIN);
	assert_int_equal(verdict("10.0.0.2"), VERDICT_LINUX);
	tap.master = 0;
	fake_iface(&fake, &tap);
	assert_int_equal(verdict("10.0.0.2"), VERDICT_NO_ROUTE);
	furnish(10, RT_TABLE_MAIN);
	assert_int_equal(verdict("10.0.0.2"), VERDICT_FORWARD);
}

static void looks_again_at_routes_when_a_ifaces_mtu_changes(void **state)
{
	struct event_route route = to("30.0.0.0/8", "10.0.0.2", 10);
	struct event_link tap = fake_tap(0);

	furnish(10, RT_TABLE_MAIN);
	route.mtu = 1400;
	add_route(route);
	assert_int_equal(verdict("30.1.1.1"), VERDICT_LINUX); // the route's MTU is smaller
	tap.mtu = 1300;
	fake_iface(&fake, &tap);
	assert_int_equal(verdict("30.1.1.1"), VERDICT_FORWARD);
}

static void forwards_by_no_route_of_a_tap_that_is_gone(void **state)
{
	furnish(10, RT_TABLE_MAIN);
	assert_int_equal(verdict("20.1.1.1"), VERDICT_FORWARD);
	fake_iface_gone(&fake, 10);
	assert_int_equal(verdict("20.1.1.1"), VERDICT_NO_ROUTE);
	struct event_link anew = fake_tap(0);
	anew.ifindex = 77;
	fake_router(&fake, &anew);
	mirror_tap_changed(fake.mirror, 0, 77);
	furnish(77, RT_TABLE_MAIN);
	assert_int_equal(verdict("20.1.1.1"), VERDICT_FORWARD);
}

static void dump_begins(void)
{
	fib_set_synced(fake.fib, false); // as before the first dump
	mirror_dump_begins(fake.mirror);
	fake.in_dump = true;
	fake_basics(&fake);
	fake_taps(&fake, 2);
}

static bool reports_synced(void)
{
	struct netlink_info info = {0};

	mirror_info(fake.mirror, &info);
	return info.is_synced;
}

static void names_packets_without_a_route_while_the_first_dump_runs(void **state)
{
	dump_begins();
	furnish(10, RT_TABLE_MAIN);
	assert_int_equal(verdict("20.1.1.1"), VERDICT_FORWARD);
	assert_int_equal(verdict("30.1.1.1"), VERDICT_NOT_SYNCED);
	assert_int_equal(look(1, "30.1.1.1").verdict, VERDICT_NOT_SYNCED); // VRFs as well
	assert_false(reports_synced());
	mirror_dump_ends(fake.mirror, 1 << EVENT_NEIGHBOUR);
	assert_int_equal(verdict("30.1.1.1"), VERDICT_NO_ROUTE);
	assert_true(reports_synced());
	mirror_dump_begins(fake.mirror);
	assert_int_equal(verdict("30.1.1.1"), VERDICT_NO_ROUTE); // the tables stay complete
}

static void is_synced_once_the_routes_of_the_dump_are_in_the_tables(void **state)
{
	enum { N = 3 * ROUTES_BATCH };
	char prefix[WIRE_PREFIX_TEXT];

	dump_begins();
	furnish(10, RT_TABLE_MAIN);
	for (unsigned i = 0; i < N; i++) {
		snprintf(prefix, sizeof(prefix), "40.%u.%u.0/24", i >> 8, i & 255);
		add_route(to(prefix, "10.0.0.2", 10));
	}
	mirror_dump_ends(fake.mirror, 0);
	for (unsigned flushes = 1; mirror_flush(fake.mirror); flushes++) {
		assert_true(flushes < N);
		assert_false(fib_is_synced(fake.fib));
	}
	assert_true(fib_is_synced(fake.fib));
	assert_int_equal(verdict("40.95.255.1"), VERDICT_FORWARD);
}

static void is_not_synced_by_a_dump_without_all_routes(void **state)
{
	const enum event_kind kinds[] = {EVENT_ROUTE, EVENT_NEXTHOP};

	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
		dump_begins();
		mirror_dump_ends(fake.mirror, 1u << kinds[i]);
		assert_int_equal(verdict("30.1.1.1"), VERDICT_NOT_SYNCED);
	}
	mirror_dump_begins(fake.mirror);
	mirror_dump_ends(fake.mirror, 0);
	assert_int_equal(verdict("30.1.1.1"), VERDICT_NO_ROUTE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(forwards_over_a_tap),
		TEST(forwards_by_what_was_told_in_the_wrong_order),
		TEST(leaves_routes_to_linux_while_only_it_may_send),
		TEST(drops_routes_of_a_link_that_went_down_and_up_again),
		TEST(drops_routes_of_a_vlan_that_was_made_anew),
		TEST(drops_routes_of_a_source_address_that_is_gone),
		TEST(takes_a_vrf_away_with_its_routes),
		TEST(leaves_routes_over_a_iface_of_another_vrf_to_linux),
		TEST(looks_again_at_routes_when_a_ifaces_mtu_changes),
		TEST(forwards_by_no_route_of_a_tap_that_is_gone),
		TEST(names_packets_without_a_route_while_the_first_dump_runs),
		TEST(is_synced_once_the_routes_of_the_dump_are_in_the_tables),
		TEST(is_not_synced_by_a_dump_without_all_routes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
