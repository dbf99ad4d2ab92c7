// Kernel route events and the resulting behaviour of workers. Each test delivers events observed
// from a real kernel and checks for the kernel's observed lookup results.
#include "netlink/fake_ifaces.h"

#include "base/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void a_route_comes_and_goes(void **state)
{
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1");
	ASK("20.1.2.3", "via 10.1.0.2 dev 1");
	fake_say("2001:db8::/32 via fe80::2 dev 2");
	ASK("2001:db8::1", "via fe80::2 dev 2");
	fake_say("20.1.0.0/16 via fe80::2 dev 2");
	ASK("20.1.2.3", "via fe80::2 dev 2");
	fake_say("10.1.0.0/24 dev 1 scope 253 proto 2");
	ASK("10.1.0.9", "dev 1");
	fake_say("deleted 20.1.0.0/16 via fe80::2 dev 2");
	ASK("20.1.2.3", "via 10.1.0.2 dev 1");
	fake_say("deleted 20.0.0.0/8 via 10.1.0.2 dev 1");
	ASK("20.1.2.3", "nothing");
	fake_say("deleted 2001:db8::/32 via fe80::2 dev 2");
	ASK("2001:db8::1", "nothing");
	assert_int_equal(fake.routes->store.n_places, 1);
	assert_int_equal(fake.routes->hop_sets.by_key.n, 1);
}

static void each_type_has_its_kind(void **state)
{
	static const struct {
		const char *say, *ask, *answer;
	} rows[] = {
		{"local 10.0.0.1/32 dev 1 table 255 scope 254", "10.0.0.1", "local"},
		{"broadcast 10.0.0.255/32 dev 1 table 255 scope 253", "10.0.0.255", "local"},
		{"anycast 2001:db8::/128 dev 1 table 255", "2001:db8::", "local"},
		{"blackhole 20.0.0.0/8", "20.0.0.1", "blackhole"},
		{"unreachable 21.0.0.0/8", "21.0.0.1", "unreachable"},
		{"prohibit 22.0.0.0/8", "22.0.0.1", "prohibit"},
		{"throw 23.0.0.0/8", "23.0.0.1", "linux"},
		{"blackhole 2001:db8:1::/48 dev 1", "2001:db8:1::1", "blackhole"},
		{"24.0.0.0/8 dev 7", "24.0.0.1", "linux"},
		{"25.0.0.0/8 via 10.1.0.2 dev 1 encap", "25.0.0.1", "linux"},
		{"26.0.0.0/8 via 10.1.0.2 dev 1 mtu 1400", "26.0.0.1", "linux"},
		{"27.0.0.0/8 via 10.1.0.2 dev 1 mtu 1500", "27.0.0.1", "via 10.1.0.2 dev 1"},
		{"28.0.0.0/8 via 10.1.0.2 dev 1 tos 16", "28.0.0.1", "linux"},
		{"2001:db8:2::/48 from 2001:db8:1::/64 via fe80::2 dev 1", "2001:db8:2::1",
			"linux"},
		{"29.0.0.0/8 via 10.1.0.2 dev 1 table 253", "29.0.0.1", "linux"},
		{"30.0.0.0/8 via 10.1.0.2 dev 1 table 77", "30.0.0.1", "nothing"},
		{"31.0.0.0/8 nexthop via 10.1.0.2 dev 1 nexthop dev 2", "31.0.0.1", "linux"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_say(rows[i].say);
		ASK(rows[i].ask, rows[i].answer);
	}
}

static void the_built_in_ranges_stay_as_they_are(void **state)
{
	fake_say("fe80::/64 dev 1");
	ASK("fe80::1", "link-local");
	fake_say("local fe80::7/128 dev 1 table 255");
	ASK("fe80::7", "link-local");
	fake_say("multicast ff00::/8 dev 1 table 255");
	ASK("ff02::1", "multicast");
	fake_say("local 127.0.0.0/8 dev 1 table 255");
	ASK("127.0.0.1", "martian");
	fake_say("local ::1/128 dev 1 table 255");
	ASK("::1", "martian");
	fake_say("255.255.255.255/32 via 10.1.0.2 dev 1");
	ASK("255.255.255.255", "martian");
	fake_say("0.0.0.0/0 via 10.1.0.2 dev 1");
	ASK("1.2.3.4", "via 10.1.0.2 dev 1");
	ASK("0.0.0.0", "martian");
	ASK("127.0.0.1", "martian");
	ASK("224.0.0.5", "multicast");
	ASK("255.255.255.255", "martian");
	fake_say("0.0.0.0/32 via 10.1.0.2 dev 1");
	ASK("0.0.0.0", "martian");
	fake_say("::/0 via fe80::2 dev 1");
	ASK("4000::1", "via fe80::2 dev 1");
	ASK("::1", "martian");
	ASK("fe80::1", "link-local");
	ASK("ff02::1", "multicast");
}

static void ranges_that_linux_routes_follow_its_routes(void **state)
{
	static const char *const addresses4[] = {"0.0.0.1", "0.1.2.3", "169.254.1.1", "240.0.0.1",
		"255.255.255.254"};

	for (unsigned i = 0; i < sizeof(addresses4) / sizeof(addresses4[0]); i++)
		ASK(addresses4[i], "nothing");
	ASK("::", "nothing");
	fake_say("0.0.0.0/0 via 10.1.0.2 dev 1");
	fake_say("::/0 via fe80::2 dev 1");
	for (unsigned i = 0; i < sizeof(addresses4) / sizeof(addresses4[0]); i++)
		ASK(addresses4[i], "via 10.1.0.2 dev 1");
	ASK("::", "via fe80::2 dev 1");
	fake_say("0.0.0.0/8 via 10.2.0.2 dev 2");
	ASK("0.1.2.3", "via 10.2.0.2 dev 2");
	fake_say("169.254.0.0/16 dev 2 scope 253");
	ASK("169.254.1.1", "dev 2");
	fake_say("::/127 via fe80::3 dev 1");
	ASK("::", "via fe80::3 dev 1");
	ASK("::1", "martian");
	fake_say("::/128 via fe80::4 dev 1");
	ASK("::", "via fe80::4 dev 1");
	fake_say("deleted 0.0.0.0/8 via 10.2.0.2 dev 2");
	ASK("0.1.2.3", "via 10.1.0.2 dev 1");
}

static void the_lowest_metric_wins_and_the_next_one_follows(void **state)
{
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1 metric 20");
	fake_say("20.0.0.0/8 via 10.2.0.2 dev 2 metric 10");
	fake_say("20.0.0.0/8 via 10.3.0.2 dev 3 metric 30");
	ASK("20.0.0.1", "via 10.2.0.2 dev 2");
	fake_say("deleted 20.0.0.0/8 via 10.2.0.2 dev 2 metric 10");
	ASK("20.0.0.1", "via 10.1.0.2 dev 1");
	fake_say("20.0.0.0/8 via 10.4.0.2 dev 4");
	ASK("20.0.0.1", "via 10.4.0.2 dev 4");
	fake_say("local 20.0.0.1/32 dev 1 table 255 scope 254");
	fake_say("20.0.0.1/32 via 10.4.0.2 dev 4");
	ASK("20.0.0.1", "local");
}

static void ipv4_routes_of_one_metric_stand_in_a_list(void **state)
{
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1");
	fake_say("20.0.0.0/8 via 10.2.0.2 dev 2 append");
	ASK("20.0.0.1", "via 10.1.0.2 dev 1");
	fake_say("20.0.0.0/8 via 10.2.0.3 dev 2"); // inserted before them
	ASK("20.0.0.1", "via 10.2.0.3 dev 2");
	fake_say("20.0.0.0/8 via 10.1.0.9 dev 1 replace"); // replaces the first one
	ASK("20.0.0.1", "via 10.1.0.9 dev 1");
	fake_say("deleted 20.0.0.0/8 via 10.1.0.9 dev 1");
	ASK("20.0.0.1", "via 10.1.0.2 dev 1");
	fake_say("deleted 20.0.0.0/8 via 10.1.0.2 dev 1");
	ASK("20.0.0.1", "via 10.2.0.2 dev 2");
	fake_say("20.0.0.0/8 via 10.2.0.2 dev 2 proto 186 append"); // by another protocol
	fake_say("deleted 20.0.0.0/8 via 10.2.0.2 dev 2");
	ASK("20.0.0.1", "via 10.2.0.2 dev 2");
	fake_say("deleted 20.0.0.0/8 via 10.2.0.2 dev 2 proto 186");
	ASK("20.0.0.1", "nothing");
	assert_int_equal(fake.n_dumps, 0);
}

static void ipv6_gateways_of_one_metric_are_one_route(void **state)
{
	fake_say("2001:db8::/48 via fe80::2 dev 1");
	fake_say("2001:db8::/48 nexthop via fe80::3 dev 2 nexthop via fe80::2 dev 1 append");
	ASK("2001:db8::1", "fe80::2 dev 1 weight 1, fe80::3 dev 2 weight 1");
	fake_say("deleted 2001:db8::/48 via fe80::2 dev 1");
	ASK("2001:db8::1", "via fe80::3 dev 2");
	fake_say("2001:db8::/48 via fe80::9 dev 1 replace");
	ASK("2001:db8::1", "via fe80::9 dev 1");
	fake_say("2001:db8::/48 dev 3 append"); // separate routes: Linux may use either
	ASK("2001:db8::1", "linux");
	fake_say("2001:db8::/48 dev 2 replace"); // replaces the one without a gateway
	fake_say("deleted 2001:db8::/48 via fe80::9 dev 1");
	ASK("2001:db8::1", "dev 2");
	fake_say("deleted 2001:db8::/48 dev 2");
	ASK("2001:db8::1", "nothing");
}

static void weights_are_scaled_into_what_groups_know(void **state)
{
	fake_say("20.0.0.0/8 nexthop via 10.1.0.2 dev 1 weight 1 nexthop via 10.2.0.2 dev 2 weight "
		 "256");
	ASK("20.0.0.1", "10.1.0.2 dev 1 weight 1, 10.2.0.2 dev 2 weight 255");
	fake_say("20.0.0.0/8 nexthop via 10.1.0.2 dev 1 weight 3 nexthop via 10.2.0.2 dev 2 weight "
		 "5 replace");
	ASK("20.0.0.1", "10.1.0.2 dev 1 weight 3, 10.2.0.2 dev 2 weight 5");
}

static void routes_over_a_iface_that_goes_down_are_gone(void **state)
{
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1");
	fake_say("20.0.0.0/8 via 10.2.0.2 dev 2 metric 9");
	fake_say("21.0.0.0/8 nexthop via 10.1.0.2 dev 1 nexthop via 10.2.0.2 dev 2");
	fake_say("local 10.1.0.1/32 dev 1 table 255 scope 254");
	fake_say("2001:db8::/48 nexthop via fe80::2 dev 1 nexthop via fe80::2 dev 2");
	fake_say("2001:db8:1::/48 via fe80::2 dev 1");
	fake_set_up(1, false);
	ASK("20.0.0.1", "via 10.2.0.2 dev 2");
	ASK("21.0.0.1", "via 10.2.0.2 dev 2");
	ASK("10.1.0.1", "local");
	ASK("2001:db8::1", "via fe80::2 dev 2");
	ASK("2001:db8:1::1", "nothing");
	fake_set_up(1, true);
	ASK("20.0.0.1", "via 10.2.0.2 dev 2"); // not restored by the carrier
	ASK("21.0.0.1", "10.1.0.2 dev 1 weight 1, 10.2.0.2 dev 2 weight 1");
	ASK("2001:db8::1", "fe80::2 dev 1 weight 1, fe80::2 dev 2 weight 1");
	fake_set_up(1, false);
	fake_set_up(2, false);
	ASK("21.0.0.1", "nothing");
	fake_set_up(2, true);
	ASK("21.0.0.1", "nothing");
}

// With skip_notify_on_dev_down the kernel does not report them.
static void ipv6_routes_go_with_their_iface_those_of_its_addresses_too(void **state)
{
	fake_say("local 2001:db8::1/128 dev 1 table 255");
	fake_say("anycast 2001:db8::/128 dev 1 table 255");
	fake_say("2001:db8::/64 dev 1 metric 256");
	fake_say("local 2001:db8::2/128 dev 2 table 255");
	ASK("2001:db8::1", "local");
	fake_set_up(1, false);
	ASK("2001:db8::1", "nothing");
	ASK("2001:db8::", "nothing");
	ASK("2001:db8::9", "nothing");
	ASK("2001:db8::2", "local");
	fake_say("deleted local 2001:db8::1/128 dev 1 table 255"); // reported nevertheless
	assert_int_equal(fake.n_dumps, 0);
}

// With nexthop_compat_mode 0 routes carry no hops, and only the objects are reported.
static void routes_follow_their_objects_without_being_reported_again(void **state)
{
	fake_say("id 1 via 10.1.0.2 dev 1");
	fake_say("id 2 via 10.2.0.2 dev 2");
	fake_say("id 10 group 1,1000/2,3000");
	fake_say("20.0.0.0/8 nhid 10");
	ASK("20.0.0.1", "10.1.0.2 dev 1 weight 85, 10.2.0.2 dev 2 weight 255");
	fake_say("id 10 group 2");
	ASK("20.0.0.1", "via 10.2.0.2 dev 2");
	fake_say("id 2 via 10.3.0.2 dev 3");
	ASK("20.0.0.1", "via 10.3.0.2 dev 3");
	fake_say("id 20 via fe80::2 dev 1");
	fake_say("2001:db8::/48 nhid 20");
	ASK("2001:db8::1", "via fe80::2 dev 1");
	fake_say("deleted id 20");
	fake_say("deleted id 10");
	ASK("2001:db8::1", "nothing");
	ASK("20.0.0.1", "nothing");
}

// With fib_notify_on_flag_change the kernel repeats a route when a driver has offloaded it.
static void a_repeated_route_is_not_added_again(void **state)
{
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1");
	fake_say("2001:db8::/48 nexthop via fe80::2 dev 1 nexthop via fe80::3 dev 1");
	fake_say("repeat 20.0.0.0/8 via 10.1.0.2 dev 1");
	fake_say("repeat 2001:db8::/48 nexthop via fe80::3 dev 1 nexthop via fe80::2 dev 1");
	assert_int_equal(fake.n_dumps, 0);
	fake_say("deleted 20.0.0.0/8 via 10.1.0.2 dev 1");
	fake_say("deleted 2001:db8::/48 nexthop via fe80::2 dev 1 nexthop via fe80::3 dev 1");
	fake_say("repeat 20.0.0.0/8 via 10.1.0.2 dev 1"); // has overtaken the repetition
	ASK("20.0.0.1", "nothing");
	assert_int_equal(fake.n_dumps, 1);
	fake_say("repeat 2001:db8::/48 nexthop via fe80::2 dev 1 nexthop via fe80::3 dev 1");
	ASK("2001:db8::1", "nothing");
	assert_int_equal(fake.n_dumps, 2);
}

static void without_carrier_routes_stay_unless_told_otherwise(void **state)
{
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1");
	fake_say("20.0.0.0/8 via 10.2.0.2 dev 2 metric 9");
	fake_say("2001:db8::/48 nexthop via fe80::2 dev 1 nexthop via fe80::2 dev 2");
	fake_set_carrier(1, false);
	ASK("20.0.0.1", "via 10.1.0.2 dev 1");
	fake.iface[1].ignores_linkdown4 = true;
	routes_iface_changed(fake.routes, 1);
	ASK("20.0.0.1", "via 10.2.0.2 dev 2");
	ASK("2001:db8::1", "fe80::2 dev 1 weight 1, fe80::2 dev 2 weight 1");
	fake.iface[1].ignores_linkdown6 = true;
	routes_iface_changed(fake.routes, 1);
	ASK("2001:db8::1", "via fe80::2 dev 2");
	fake_set_carrier(1, true);
	ASK("20.0.0.1", "via 10.1.0.2 dev 1");
	assert_int_equal(fake.n_dumps, 0);
}

static void ipv6_next_hops_of_a_iface_set_up_without_carrier_wait_for_it(void **state)
{
	fake_say("20.0.0.0/8 nexthop via 10.1.0.2 dev 1 nexthop via 10.2.0.2 dev 2");
	fake_say("2001:db8::/48 nexthop via fe80::2 dev 1 nexthop via fe80::2 dev 2");
	fake_set_carrier(1, false);
	ASK("2001:db8::1", "fe80::2 dev 1 weight 1, fe80::2 dev 2 weight 1");
	fake_set_up(1, false);
	fake_set_up(1, true);
	ASK("20.0.0.1", "10.1.0.2 dev 1 weight 1, 10.2.0.2 dev 2 weight 1");
	ASK("2001:db8::1", "via fe80::2 dev 2");
	fake_set_carrier(1, true);
	ASK("2001:db8::1", "fe80::2 dev 1 weight 1, fe80::2 dev 2 weight 1");
}

static void ipv4_routes_that_differ_in_a_metric_of_tcp_are_two(void **state)
{
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1 advmss 1400");
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1 advmss 1300 append");
	fake_say("deleted 20.0.0.0/8 via 10.1.0.2 dev 1 advmss 1400");
	ASK("20.0.0.1", "via 10.1.0.2 dev 1");
	fake_say("deleted 20.0.0.0/8 via 10.1.0.2 dev 1 advmss 1300");
	ASK("20.0.0.1", "nothing");
}

// IPv6 reports each removed route, after the interface; other routes of the same prefix stay.
static void a_iface_that_goes_down_leaves_no_doubt(void **state)
{
	fake_say("2001:db8::/64 dev 1 metric 256");
	fake_say("2001:db8::/64 dev 2 metric 256 append");
	fake_say("fe80::/64 dev 1 metric 256");
	fake_say("fe80::/64 dev 2 metric 256 append");
	fake_set_up(1, false);
	fake_say("deleted 2001:db8::/64 dev 1 metric 256");
	fake_say("deleted fe80::/64 dev 1 metric 256");
	ASK("2001:db8::1", "dev 2");
	assert_int_equal(fake.n_dumps, 0);
	fake_say("deleted 2001:db8::/64 dev 3 metric 256");
	assert_int_equal(fake.n_dumps, 1);
}

// Linux replaces the first route of its kind, even if one equal to the new one follows it: then
// there are two equal routes, and a deletion removes one of them.
static void an_ipv6_route_replaces_the_first_one_though_its_equal_is_there(void **state)
{
	fake_say("prohibit 2001:db8::/48 metric 30");
	fake_say("2001:db8::/48 dev 1 metric 30 append");
	fake_say("2001:db8::/48 dev 1 metric 30 replace");
	fake_say("deleted 2001:db8::/48 dev 1 metric 30");
	ASK("2001:db8::1", "dev 1");
	fake_say("deleted 2001:db8::/48 dev 1 metric 30");
	ASK("2001:db8::1", "nothing");
	assert_int_equal(fake.n_dumps, 0);
}

static void a_dump_reports_equal_ipv6_routes_one_after_another(void **state)
{
	static const char *const words[] = {"2001:db8::/48 dev 1 metric 30 dump request 1",
		"2001:db8::/48 dev 1 metric 30 dump request 2",
		"2001:db8::/48 dev 1 metric 30 dump request 3"};

	for (unsigned i = 0; i < 3; i++) {
		routes_dump_begins(fake.routes);
		fake_say(words[i]);
		if (i != 2)
			fake_say(words[i]);
		routes_dump_ends(fake.routes, 0);
		assert_int_equal(fake.routes->store.n_routes[1], i != 2 ? 2 : 1);
	}
	fake_say("deleted 2001:db8::/48 dev 1 metric 30");
	ASK("2001:db8::1", "nothing");
	assert_int_equal(fake.n_dumps, 0);
}

// A notification during a dump, and a dump that begins anew after an interruption.
static void an_ipv6_route_reported_again_is_no_second_one(void **state)
{
	routes_dump_begins(fake.routes);
	fake_say("2001:db8::/48 dev 1 metric 30");
	fake_say("2001:db8::/48 dev 1 metric 30 dump request 4");
	fake_say("2001:db8::/48 dev 1 metric 30 append");
	fake_say("2001:db8::/48 dev 1 metric 30 dump request 5");
	routes_dump_ends(fake.routes, 0);
	assert_int_equal(fake.routes->store.n_routes[1], 1);
}

// When the next-hop object of a route changes, the route is reported as replaced, with the sequence
// number of the object's request.
static void an_ipv6_route_stays_in_its_place_when_its_next_hop_object_changes(void **state)
{
	fake_say("id 1 via fe80::2 dev 1 request 7");
	fake_say("2001:db8::/48 dev 2 metric 30 request 8");
	fake_say("2001:db8::/48 nhid 1 via fe80::2 dev 1 metric 30 append request 9");
	fake_say("id 1 via fe80::3 dev 1 request 10");
	fake_say("2001:db8::/48 nhid 1 via fe80::3 dev 1 metric 30 replace request 10");
	fake_say("deleted 2001:db8::/48 dev 2 metric 30 request 11");
	ASK("2001:db8::1", "via fe80::3 dev 1");
	fake_say("2001:db8::/48 dev 2 metric 30 append request 12");
	fake_say("2001:db8::/48 dev 2 metric 30 replace request 13");
	fake_say("deleted 2001:db8::/48 dev 2 metric 30 request 14");
	fake_say("deleted 2001:db8::/48 dev 2 metric 30 request 15");
	ASK("2001:db8::1", "nothing");
	assert_int_equal(fake.n_dumps, 0);
}

// Linux marks them dead and does not report them when the carrier returns.
static void routes_told_without_carrier_come_back_with_it(void **state)
{
	fake.iface[1].ignores_linkdown4 = fake.iface[1].ignores_linkdown6 = true;
	fake_set_carrier(1, false);
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1 dead linkdown");
	fake_say("dump 21.0.0.0/8 nexthop via 10.1.0.2 dev 1 dead linkdown "
		 "nexthop via 10.2.0.2 dev 2");
	fake_say("2001:db8::/48 via fe80::2 dev 1 dead linkdown");
	ASK("20.0.0.1", "nothing");
	ASK("21.0.0.1", "via 10.2.0.2 dev 2");
	ASK("2001:db8::1", "nothing");
	fake_set_carrier(1, true);
	ASK("20.0.0.1", "via 10.1.0.2 dev 1");
	ASK("21.0.0.1", "10.1.0.2 dev 1 weight 1, 10.2.0.2 dev 2 weight 1");
	ASK("2001:db8::1", "via fe80::2 dev 1");
}

// The kernel marks the next hops of an interface that has lost its last address this way.
static void a_hop_that_is_dead_though_the_carrier_is_there_stays_dead(void **state)
{
	fake.iface[1].ignores_linkdown4 = true;
	fake_say("dump 21.0.0.0/8 nexthop via 10.1.0.2 dev 1 dead linkdown "
		 "nexthop via 10.2.0.2 dev 2");
	ASK("21.0.0.1", "via 10.2.0.2 dev 2");
}

static void a_iface_that_is_deleted_takes_its_routes_along(void **state)
{
	fake_say("21.0.0.0/8 nexthop via 10.1.0.2 dev 1 nexthop via 10.2.0.2 dev 2");
	fake_say("2001:db8::/48 nexthop via fe80::2 dev 1 nexthop via fe80::2 dev 2");
	fake_say("local 10.2.0.1/32 dev 2 table 255 scope 254");
	fake_set_up(2, false);
	fake_say("deleted 2001:db8::/48 via fe80::2 dev 2");
	fake_remove(2);
	ASK("21.0.0.1", "nothing"); // removed as a whole, as observed
	ASK("10.2.0.1", "nothing");
	ASK("2001:db8::1", "via fe80::2 dev 1");
	assert_int_equal(fake.n_dumps, 0);
}

static void the_last_address_takes_ipv4_routes_along(void **state)
{
	fake_say("20.0.0.0/8 via 10.2.0.2 dev 2");
	fake_say("21.0.0.0/8 nexthop via 10.1.0.2 dev 1 nexthop via 10.2.0.2 dev 2");
	fake_say("id 15 dev 2");
	fake_say("42.0.0.0/8 nhid 15");
	fake_say("2001:db8::/48 via fe80::2 dev 2");
	routes_ip4_gone(fake.routes, 2);
	ASK("20.0.0.1", "nothing");
	ASK("21.0.0.1", "via 10.1.0.2 dev 1");
	ASK("42.0.0.1", "dev 2");
	ASK("2001:db8::1", "via fe80::2 dev 2");
	fake_say("dump 21.0.0.0/8 nexthop via 10.1.0.2 dev 1 nexthop via 10.2.0.2 dev 2 dead");
	ASK("21.0.0.1", "via 10.1.0.2 dev 1");
	routes_address_came(fake.routes, 2);
	ASK("21.0.0.1", "10.1.0.2 dev 1 weight 1, 10.2.0.2 dev 2 weight 1");
}

static void an_address_takes_routes_that_prefer_it_along(void **state)
{
	struct wire_addr gone;

	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1 src 10.2.0.1");
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1 src 10.1.0.1 metric 9");
	fake_say("30.0.0.0/8 via 10.1.0.2 dev 1 src 10.2.0.1 table 1000"); // not in a VRF: stays
	wire_addr_parse("10.2.0.1", &gone);
	routes_address_gone(fake.routes, 0, &gone);
	ASK("20.0.0.1", "via 10.1.0.2 dev 1");
	assert_int_equal(fake.routes->store.n_routes[0], 2);
	fake_say("deleted 20.0.0.0/8 via 10.1.0.2 dev 1 src 10.2.0.1"); // reported by newer kernels
	ASK("20.0.0.1", "via 10.1.0.2 dev 1");
	assert_int_equal(fake.n_dumps, 0);
}

static void a_broad_local_route_hides_what_lies_under_it(void **state)
{
	fake_say("20.1.0.0/16 via 10.1.0.2 dev 1");
	ASK("20.1.0.1", "via 10.1.0.2 dev 1");
	fake_say("local 20.0.0.0/8 dev 7 table 255 scope 254");
	ASK("20.1.0.1", "linux");
	ASK("20.2.0.1", "local");
	fake_say("20.1.1.0/24 via 10.1.0.2 dev 1");
	ASK("20.1.1.1", "linux");
	fake_say("deleted local 20.0.0.0/8 dev 7 table 255 scope 254");
	ASK("20.1.0.1", "via 10.1.0.2 dev 1");
	ASK("20.1.1.1", "via 10.1.0.2 dev 1");
	ASK("20.2.0.1", "nothing");
}

static void tables_of_vrfs_are_apart(void **state)
{
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1 table 1000");
	fake_say("20.0.0.0/8 via 10.2.0.2 dev 2");
	ASK("20.0.0.1", "via 10.2.0.2 dev 2");
	fake.has_vrf = true;
	assert_int_equal(fib_vrf_open(fake.fib, 1, NULL), 0);
	routes_vrf_changed(fake.routes, 1000);
	assert_string_equal(fake_ask_vrf(1, "20.0.0.1"), "via 10.1.0.2 dev 1");
	ASK("20.0.0.1", "via 10.2.0.2 dev 2");
	fake_say("10.1.0.0/24 dev 1 table 1000"); // interface 0 belongs to VRF 0
	assert_string_equal(fake_ask_vrf(1, "10.1.0.2"), "linux");
	fake.has_vrf = false;
	routes_vrf_changed(fake.routes, 1000);
	fake_flush();
	fib_vrf_close(fake.fib, 1);
	fake_say("deleted 20.0.0.0/8 via 10.1.0.2 dev 1 table 1000");
	fake_flush();
	fake.has_vrf = true;
	assert_int_equal(fib_vrf_open(fake.fib, 1, NULL), 0);
	routes_vrf_changed(fake.routes, 1000);
	assert_string_equal(fake_ask_vrf(1, "20.0.0.1"), "nothing");
}

static void what_a_dump_does_not_name_is_swept(void **state)
{
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1");
	fake_say("21.0.0.0/8 via 10.1.0.2 dev 1");
	fake_say("id 1 via 10.1.0.2 dev 1");
	fake_say("22.0.0.0/8 nhid 1");
	routes_dump_begins(fake.routes);
	fake_say("dump 21.0.0.0/8 via 10.1.0.2 dev 1");
	fake_say("23.0.0.0/8 via 10.1.0.2 dev 1"); // in the meantime
	ASK("20.0.0.1", "via 10.1.0.2 dev 1");
	routes_dump_ends(fake.routes, 0);
	ASK("20.0.0.1", "nothing");
	ASK("21.0.0.1", "via 10.1.0.2 dev 1");
	ASK("22.0.0.1", "nothing");
	ASK("23.0.0.1", "via 10.1.0.2 dev 1");
	assert_int_equal(fake.routes->nexthops.n_known, 0);
}

// The kernel could not dump all routes: whether the others still exist is unknown.
static void what_a_dump_in_part_does_not_name_stays(void **state)
{
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1");
	fake_say("2001:db8::/32 via fe80::2 dev 1");
	fake_say("id 1 via 10.1.0.2 dev 1");
	fake_say("22.0.0.0/8 nhid 1");
	routes_dump_begins(fake.routes);
	routes_dump_ends(fake.routes, 1 << EVENT_ROUTE | 1 << EVENT_NEXTHOP);
	ASK("20.0.0.1", "via 10.1.0.2 dev 1");
	ASK("2001:db8::1", "via fe80::2 dev 1");
	ASK("22.0.0.1", "via 10.1.0.2 dev 1");
	routes_dump_begins(fake.routes);
	fake_say("dump 20.0.0.0/8 via 10.1.0.2 dev 1");
	fake_say("dump 22.0.0.0/8 nhid 1");
	routes_dump_ends(fake.routes, 1 << EVENT_NEXTHOP);
	ASK("20.0.0.1", "via 10.1.0.2 dev 1");
	ASK("2001:db8::1", "nothing");
	ASK("22.0.0.1", "via 10.1.0.2 dev 1");
	routes_dump_begins(fake.routes);
	fake_say("id 1 via 10.1.0.2 dev 1");
	routes_dump_ends(fake.routes, 1 << EVENT_ROUTE);
	ASK("22.0.0.1", "via 10.1.0.2 dev 1");
	routes_dump_begins(fake.routes);
	routes_dump_ends(fake.routes, 0);
	ASK("20.0.0.1", "nothing");
	ASK("22.0.0.1", "nothing");
	assert_int_equal(fake.routes->nexthops.n_known, 0);
}

static void a_dump_sets_the_order_right(void **state)
{
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1");
	fake_say("20.0.0.0/8 via 10.2.0.2 dev 2 append");
	routes_dump_begins(fake.routes);
	fake_say("dump 20.0.0.0/8 via 10.3.0.2 dev 3");
	fake_say("dump 20.0.0.0/8 via 10.2.0.2 dev 2");
	fake_say("dump 20.0.0.0/8 via 10.1.0.2 dev 1");
	routes_dump_ends(fake.routes, 0);
	ASK("20.0.0.1", "via 10.3.0.2 dev 3");
	fake_say("deleted 20.0.0.0/8 via 10.3.0.2 dev 3");
	ASK("20.0.0.1", "via 10.2.0.2 dev 2");
}

static void a_iface_may_be_told_after_its_routes(void **state)
{
	fake.iface[1] = (struct ifaces_state){.iface = IFACE_NONE};
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1");
	ASK("20.0.0.1", "linux");
	fake.iface[1] = (struct ifaces_state){.is_known = true,
		.is_up = true,
		.has_carrier = true,
		.iface = 0};
	routes_iface_changed(fake.routes, 1);
	ASK("20.0.0.1", "via 10.1.0.2 dev 1");
}

static void a_deletion_that_does_not_fit_asks_for_a_dump(void **state)
{
	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1");
	fake_say("deleted 20.0.0.0/8 via 10.9.0.2 dev 2 metric 5");
	assert_int_equal(fake.n_dumps, 0); // may have been dropped without a notification
	fake_say("deleted 20.0.0.0/8 via 10.9.0.2 dev 2");
	assert_int_equal(fake.n_dumps, 1);
	ASK("20.0.0.1", "via 10.1.0.2 dev 1");
}

static void next_hop_objects_change_under_their_routes(void **state)
{
	fake_say("30.0.0.0/8 nhid 1");
	ASK("30.0.0.1", "linux"); // not reported yet
	fake_say("id 1 via 10.1.0.2 dev 1");
	fake_say("id 2 via 10.2.0.2 dev 2");
	fake_say("id 10 group 1,5/2");
	fake_say("31.0.0.0/8 nhid 10");
	fake_say("2001:db8::/48 nhid 11");
	fake_say("id 11 group 6,3/7,600");
	fake_say("id 6 via fe80::2 dev 1");
	ASK("2001:db8::1", "linux");
	fake_say("id 7 via fe80::2 dev 2");
	ASK("30.0.0.1", "via 10.1.0.2 dev 1");
	ASK("31.0.0.1", "10.1.0.2 dev 1 weight 5, 10.2.0.2 dev 2 weight 1");
	ASK("2001:db8::1", "fe80::2 dev 1 weight 1, fe80::2 dev 2 weight 255");
	fake_say("id 1 via 10.1.0.7 dev 1 replace");
	ASK("30.0.0.1", "via 10.1.0.7 dev 1");
	ASK("31.0.0.1", "10.1.0.7 dev 1 weight 5, 10.2.0.2 dev 2 weight 1");
	fake_say("31.0.0.0/8 nhid 10 via 10.1.0.7 dev 1 replace"); // as repeated by the kernel
	fake_say("id 10 group 2 replace");
	ASK("31.0.0.1", "via 10.2.0.2 dev 2");
	fake_say("id 3 blackhole");
	fake_say("blackhole 32.0.0.0/8 nhid 3");
	ASK("32.0.0.1", "blackhole");
	fake_say("id 3 via 10.3.0.2 dev 3 replace");
	ASK("32.0.0.1", "via 10.3.0.2 dev 3");
}

static void a_next_hop_object_takes_its_routes_along(void **state)
{
	fake_say("id 1 via 10.1.0.2 dev 1");
	fake_say("id 2 via 10.2.0.2 dev 2");
	fake_say("id 10 group 1/2");
	fake_say("id 13 group 1");
	fake_say("30.0.0.0/8 nhid 10");
	fake_say("31.0.0.0/8 nhid 1");
	fake_say("32.0.0.0/8 nhid 13");
	fake_flush();
	fake_say("deleted id 1"); // 31/8 and 32/8 are not reported
	ASK("30.0.0.1", "via 10.2.0.2 dev 2");
	ASK("31.0.0.1", "nothing");
	ASK("32.0.0.1", "nothing");
	fake_say("deleted id 2");
	ASK("30.0.0.1", "nothing");
	assert_int_equal(fake.routes->nexthops.n_known, 0);
	assert_int_equal(fake.routes->nexthops.bytes, 0);
}

static void next_hop_objects_need_a_carrier(void **state)
{
	fake_say("id 1 via 10.1.0.2 dev 1");
	fake_say("id 2 via 10.2.0.2 dev 2");
	fake_say("id 10 group 1/2");
	fake_say("30.0.0.0/8 nhid 10");
	fake_say("31.0.0.0/8 nhid 1");
	fake_flush();
	fake_set_carrier(1, false);
	ASK("30.0.0.1", "via 10.2.0.2 dev 2");
	ASK("31.0.0.1", "nothing");
	assert_int_equal(fake.n_dumps, 0);
	fake_set_carrier(1, true); // it may have been too short for Linux to react
	assert_int_equal(fake.n_dumps, 1);
	fake_set_up(2, false);
	ASK("30.0.0.1", "nothing");
}

// Two next hops each, all different.
static void say_group(unsigned i, const char *prefix)
{
	char words[200];

	snprintf(words, sizeof(words),
		"%s%u.%u.%u.0/24 nexthop via 10.1.%u.%u dev 1 nexthop via 10.2.0.2 dev 2", prefix,
		20 + (i >> 16), i >> 8 & 255, i & 255, i >> 8, i & 255);
	fake_say(words);
}

static void groups_without_room_are_left_to_linux_until_there_is_some(void **state)
{
	for (unsigned i = 0; i < 4100; i++)
		say_group(i, "");
	ASK("20.0.0.1", "10.1.0.0 dev 1 weight 1, 10.2.0.2 dev 2 weight 1");
	ASK("20.16.3.1", "linux");
	ASK("20.16.0.1", "linux");
	for (unsigned i = 0; i < 8; i++)
		say_group(i, "deleted ");
	for (unsigned i = 0; i < 64; i++)
		fake_flush();
	ASK("20.16.0.1", "10.1.16.0 dev 1 weight 1, 10.2.0.2 dev 2 weight 1");
	ASK("20.16.3.1", "10.1.16.3 dev 1 weight 1, 10.2.0.2 dev 2 weight 1");
	assert_int_equal(fake.routes->first_deferred, 0);
}

static int hash_policy(void *ops, uint8_t family)
{
	const int *policies = ops;

	return policies[family == 6];
}

// Only the routes with several next hops of the family whose policy workers do not support.
static void hash_policies_2_and_3_are_left_to_linux(void **state)
{
	static const char *const four = "10.1.0.2 dev 1 weight 1, 10.2.0.2 dev 2 weight 1",
				 *const six = "fe80::2 dev 1 weight 1, fe80::2 dev 2 weight 1";
	struct mirror_ops *ops = &fake.mirror.settings.ops;
	int policies[] = {HASH_LAYER4, HASH_LAYER4};

	ops->hash_policy = hash_policy;
	ops->ops = policies;
	fake_say("20.0.0.0/8 nexthop via 10.1.0.2 dev 1 nexthop via 10.2.0.2 dev 2");
	fake_say("2001:db8::/32 nexthop via fe80::2 dev 1 nexthop via fe80::2 dev 2");
	fake_say("21.0.0.0/8 via 10.1.0.2 dev 1");
	for (int policy = 0; policy < 4; policy++)
		for (unsigned is_ip6 = 0; is_ip6 < 2; is_ip6++) {
			policies[is_ip6] = policy;
			routes_poll(fake.routes);
			ASK("20.0.0.1", policies[0] > HASH_LAYER4 ? "linux" : four);
			ASK("2001:db8::1", policies[1] > HASH_LAYER4 ? "linux" : six);
			ASK("21.0.0.1", "via 10.1.0.2 dev 1");
		}
	fake_say("22.0.0.0/8 nexthop via 10.1.0.2 dev 1 nexthop via 10.2.0.2 dev 2");
	ASK("22.0.0.1", "linux");
	policies[0] = -EIO;
	policies[1] = HASH_LAYER3;
	routes_poll(fake.routes);
	ASK("20.0.0.1", "linux");
	ASK("2001:db8::1", six);
	policies[0] = HASH_LAYER3;
	routes_poll(fake.routes);
	ASK("20.0.0.1", four);
	ASK("22.0.0.1", four);
}

static void next_hops_without_room_are_left_to_linux_until_there_is_some(void **state)
{
	char words[200];
	unsigned n_left = 0;

	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 40000; i++) {
			snprintf(words, sizeof(words), "%s20.%u.%u.0/24 via 10.1.%u.%u dev 1",
				round ? "deleted " : "", i >> 8, i & 255, i >> 8, i & 255);
			if (round && i >= 20000)
				continue;
			fake_say(words);
			if (i % 9000 == 0)
				fake_flush();
		}
	for (unsigned i = 0; i < 20000; i++)
		fake_flush();
	for (unsigned i = 20000; i < 40000; i++) {
		snprintf(words, sizeof(words), "20.%u.%u.1", i >> 8, i & 255);
		n_left += !strcmp(fake_ask(words), "linux");
	}
	assert_int_equal(n_left, 0);
	assert_int_equal(fake.routes->n_refused, 0);
}

static bool remember(void *arg, const struct netlink_unsupported *one)
{
	snprintf(arg, 200, "%s, %s, %u", one->what, one->where, (unsigned)one->n);
	return true;
}

static void names_what_is_left_to_linux(void **state)
{
	char reported[200] = "";

	fake_say("20.0.0.0/8 via 10.1.0.2 dev 1");
	fake_flush();
	routes_unsupported(fake.routes, remember, reported);
	assert_string_equal(reported, "");
	fake_say("24.0.0.0/8 dev 7");
	fake_say("25.0.0.0/8 dev 7");
	fake_flush();
	routes_unsupported(fake.routes, remember, reported);
	assert_string_equal(reported,
		"route via an interface that is not a port, 24.0.0.0/8 dev wg0, 2");
}

// IPv6 routes with a lifetime: they are unused after it ends, even if the kernel still has them.

enum { PATIENCE_S = 60, PAUSE_US = 10000 };

static void wait_for_dumps(unsigned n)
{
	const uint64_t end_ns = clock_now_ns() + PATIENCE_S * 1000000000ull;

	while (fake.n_dumps < n && clock_now_ns() < end_ns) {
		usleep(PAUSE_US);
		routes_poll(fake.routes);
	}
	assert_int_equal(fake.n_dumps, n);
}

static void dump(const char *words)
{
	routes_dump_begins(fake.routes);
	fake_say(words);
	routes_dump_ends(fake.routes, 0);
}

static void a_route_counts_until_its_lifetime_is_over(void **state)
{
	fake_say("2001:db8::/32 via fe80::2 dev 2 metric 2048");
	fake_say("2001:db8::/32 via fe80::2 dev 1 expires 1");
	ASK("2001:db8::1", "via fe80::2 dev 1");
	wait_for_dumps(1);
	routes_dump_begins(fake.routes);
	fake_say("dump 2001:db8::/32 via fe80::2 dev 1 expires -5");
	fake_say("dump 2001:db8::/32 via fe80::2 dev 2 metric 2048");
	routes_dump_ends(fake.routes, 0);
	ASK("2001:db8::1", "via fe80::2 dev 2");
	fake_say("deleted 2001:db8::/32 via fe80::2 dev 1");
	ASK("2001:db8::1", "via fe80::2 dev 2");
}

static void a_lifetime_may_become_longer_without_a_word(void **state)
{
	fake_say("2001:db8::/32 via fe80::2 dev 1 proto 9 expires 1");
	wait_for_dumps(1);
	dump("dump 2001:db8::/32 via fe80::2 dev 1 proto 9 expires 1");
	ASK("2001:db8::1", "via fe80::2 dev 1");
	wait_for_dumps(2);
	dump("dump 2001:db8::/32 via fe80::2 dev 1 proto 9");
	ASK("2001:db8::1", "via fe80::2 dev 1");
	assert_int_equal(fake.routes->look_again_ns, 0);
}

static void the_first_lifetime_to_end_counts(void **state)
{
	fake_say("2001:db8:1::/48 via fe80::2 dev 1 expires 1000000");
	const uint64_t late_ns = fake.routes->look_again_ns;
	fake_say("2001:db8:2::/48 via fe80::2 dev 1 expires 500000");
	const uint64_t soon_ns = fake.routes->look_again_ns;
	fake_say("2001:db8:3::/48 via fe80::2 dev 1 expires 1000000");
	fake_say("2001:db8:4::/48 via fe80::2 dev 1");
	assert_true(soon_ns < late_ns);
	assert_true(fake.routes->look_again_ns == soon_ns);
	routes_poll(fake.routes);
	assert_int_equal(fake.n_dumps, 0);
}

static void no_dump_is_wished_during_a_dump(void **state)
{
	fake_say("2001:db8::/32 via fe80::2 dev 1 expires 1");
	fake.routes->look_again_ns = 1; // in the past
	routes_dump_begins(fake.routes);
	routes_poll(fake.routes);
	assert_int_equal(fake.n_dumps, 0);
	routes_dump_ends(fake.routes, 0);
	routes_poll(fake.routes);
	assert_int_equal(fake.n_dumps, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_route_comes_and_goes),
		TEST(each_type_has_its_kind),
		TEST(the_built_in_ranges_stay_as_they_are),
		TEST(ranges_that_linux_routes_follow_its_routes),
		TEST(the_lowest_metric_wins_and_the_next_one_follows),
		TEST(ipv4_routes_of_one_metric_stand_in_a_list),
		TEST(ipv6_gateways_of_one_metric_are_one_route),
		TEST(weights_are_scaled_into_what_groups_know),
		TEST(routes_over_a_iface_that_goes_down_are_gone),
		TEST(ipv6_routes_go_with_their_iface_those_of_its_addresses_too),
		TEST(routes_follow_their_objects_without_being_reported_again),
		TEST(a_repeated_route_is_not_added_again),
		TEST(without_carrier_routes_stay_unless_told_otherwise),
		TEST(ipv6_next_hops_of_a_iface_set_up_without_carrier_wait_for_it),
		TEST(ipv4_routes_that_differ_in_a_metric_of_tcp_are_two),
		TEST(a_iface_that_goes_down_leaves_no_doubt),
		TEST(an_ipv6_route_replaces_the_first_one_though_its_equal_is_there),
		TEST(a_dump_reports_equal_ipv6_routes_one_after_another),
		TEST(an_ipv6_route_reported_again_is_no_second_one),
		TEST(an_ipv6_route_stays_in_its_place_when_its_next_hop_object_changes),
		TEST(routes_told_without_carrier_come_back_with_it),
		TEST(a_hop_that_is_dead_though_the_carrier_is_there_stays_dead),
		TEST(a_iface_that_is_deleted_takes_its_routes_along),
		TEST(the_last_address_takes_ipv4_routes_along),
		TEST(an_address_takes_routes_that_prefer_it_along),
		TEST(a_broad_local_route_hides_what_lies_under_it),
		TEST(tables_of_vrfs_are_apart),
		TEST(what_a_dump_does_not_name_is_swept),
		TEST(what_a_dump_in_part_does_not_name_stays),
		TEST(a_dump_sets_the_order_right),
		TEST(a_iface_may_be_told_after_its_routes),
		TEST(a_deletion_that_does_not_fit_asks_for_a_dump),
		TEST(next_hop_objects_change_under_their_routes),
		TEST(a_next_hop_object_takes_its_routes_along),
		TEST(next_hop_objects_need_a_carrier),
		TEST(hash_policies_2_and_3_are_left_to_linux),
		TEST(groups_without_room_are_left_to_linux_until_there_is_some),
		TEST(next_hops_without_room_are_left_to_linux_until_there_is_some),
		TEST(names_what_is_left_to_linux),
		TEST(a_route_counts_until_its_lifetime_is_over),
		TEST(a_lifetime_may_become_longer_without_a_word),
		TEST(the_first_lifetime_to_end_counts),
		TEST(no_dump_is_wished_during_a_dump),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
