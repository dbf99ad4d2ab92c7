// Ports that come and go, as seen by a client, with a real table and fake devices.
#include "api/fixture.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEFT "  - {name: left, device: x, addresses: [192.0.2.1/24]}\n"
#define RIGHT "  - {name: right, device: y, addresses: [198.51.100.1/24]}\n"
#define THIRD "  - {name: third, device: z, addresses: [203.0.113.1/24]}\n"
#define ROUTES                                                                                     \
	"neighbours:\n  - 192.0.2.2 lladdr 02:00:00:00:00:02 dev left\n"                           \
	"  - 198.51.100.2 lladdr 02:00:00:00:00:03 dev right\n"                                    \
	"routes:\n  - 10.0.0.0/8 via 198.51.100.2 dev right\n"                                     \
	"  - 11.0.0.0/8 via 198.51.100.2 dev right\n"                                              \
	"  - 12.0.0.0/8 nexthop via 192.0.2.2 dev left nexthop via 198.51.100.2 dev right\n"       \
	"  - 13.0.0.0/8 via 192.0.2.2 dev left\n"

static int make_ctx(void **state)
{
	return fixture_open("ports:\n" LEFT RIGHT ROUTES);
}

static int make_linux(void **state)
{
	fixture_open("ports:\n"
		     "  - {name: left, device: x}\n  - {name: right, device: y}\n"
		     "linux:\n");
	ctx.taps = fake_taps();
	ctx.netlink = fake_sync();
	return 0;
}

static void a_port_is_added_with_its_addresses(void **state)
{
	fake_stat(0)->port[2].rx_packets = 7; // of an earlier port
	check_all("ports.add",
		"{\"name\": \"third\", \"device\": \"z\", \"mtu\": 9000, \"addresses\": "
		"[\"203.0.113.1/24\"]}",
		(struct wanted[]){{"added.name", "\"third\""}, {"added.port", "2"},
			{"added.addresses", "[\"203.0.113.1/24\"]"}, {"added.rx_packets", "0"},
			{NULL, NULL}});
	assert_string_equal(fake.port_calls, "a2 b2 ");
	assert_int_equal(fake.added.mtu, 9000);
	check("route", "{\"address\": \"203.0.113.1\"}", "verdict", "\"local\"");
	check("route", "{\"address\": \"203.0.113.9\"}", "port", "\"third\"");
	check("status", "{}", "ports", "3");
	fake_stat(0)->port[2].rx_packets = 9;
	check("ports", "{}", "ports.2.rx_packets", "2");
}

static void a_removed_port_names_the_routes_that_lose_next_hops(void **state)
{
	check_all("ports.remove", "{\"name\": \"right\"}",
		(struct wanted[]){{"removed", "\"right\""}, {"routes_without_next_hop", "2"},
			{"routes_with_fewer_next_hops", "1"}, {NULL, NULL}});
	assert_string_equal(fake.port_calls, "r1 ");
	check_all("route", "{\"address\": \"10.1.2.3\"}",
		(struct wanted[]){{"verdict", "\"neighbour_unresolved\""}, {"port", "\"right\""},
			{NULL, NULL}});
	check("route", "{\"address\": \"13.1.2.3\"}", "verdict", "\"forward\"");
	check("route", "{\"address\": \"198.51.100.1\"}", "verdict", "\"no_route\"");
	check("status", "{}", "ports", "1");
}

// A port of another name gets another number; the same name resolves the routes again.
static void a_number_that_routes_refer_to_waits_for_its_port(void **state)
{
	json_decref(call("ports.remove", "{\"name\": \"right\"}"));
	check("ports.add", "{\"name\": \"other\", \"device\": \"y\"}", "added.port", "2");
	check("route", "{\"address\": \"10.1.2.3\"}", "verdict", "\"neighbour_unresolved\"");
	json_decref(call("ports.remove", "{\"name\": \"other\"}"));
	check("ports.add",
		"{\"name\": \"right\", \"device\": \"y\", \"addresses\": [\"198.51.100.1/24\"]}",
		"added.port", "1");
	check("route", "{\"address\": \"10.1.2.3\"}", "verdict", "\"forward\"");
	check("ports.add", "{\"name\": \"new\", \"device\": \"n\"}", "added.port", "2");
}

struct refusal {
	const char *method, *params, *sentence;
};

static void refuses_in_one_sentence_and_changes_nothing(void **state)
{
	static const struct refusal rows[] = {
		{"ports.add", "{\"name\": \"left\", \"device\": \"n\"}",
			"port \"left\" exists already; remove it first, or choose another name"},
		{"ports.add", "{\"name\": \"n\", \"device\": \"n\", \"mtu\": 67}",
			"port.mtu: found \"67\", expected a number from 68 to 9600"},
		{"ports.add", "{\"name\": \"n\", \"device\": \"n\"}",
			"ports[2] (n): no such device"},
		{"ports.remove", "{\"name\": \"n\"}",
			"unknown port \"n\"; expected one of left, right"},
		{"ports.remove", "{}", "missing parameter \"name\""},
	};

	fake.refuse_add_of = 2;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *reply = call(rows[i].method, rows[i].params);
		const char *said = json_string_value(json_object_get(reply, "error"));

		if (!said || strcmp(said, rows[i].sentence))
			fail_msg("%s %s: %s", rows[i].method, rows[i].params, said);
		json_decref(reply);
	}
	assert_string_equal(fake.port_calls, "");
	check("status", "{}", "ports", "2");
	check("route", "{\"address\": \"10.1.2.3\"}", "verdict", "\"forward\"");
}

static void an_address_whose_prefix_has_a_route_closes_the_port_again(void **state)
{
	json_t *reply = call("ports.add", "{\"name\": \"n\", \"device\": \"n\", \"addresses\": "
					  "[\"10.0.0.1/8\"]}");

	assert_non_null(strstr(json_string_value(json_object_get(reply, "error")),
		"cannot add the addresses of port n: "));
	json_decref(reply);
	assert_string_equal(fake.port_calls, "a2 r2 ");
	check("status", "{}", "ports", "2");
}

static void a_reload_adds_and_removes_ports(void **state)
{
	write_file("ports:\n" THIRD LEFT "routes: [14.0.0.0/8 dev third]\n");
	check("reload", "{}", "reloads", "1");
	assert_string_equal(fake.port_calls, "a2 r1 b2 ");
	check("route", "{\"address\": \"14.1.2.3\"}", "port", "\"third\"");
	check("ports", "{}", "ports.1.name", "\"third\"");
	check("ports", "{}", "ports.1.port", "2");
	write_file("ports:\n" LEFT RIGHT ROUTES);
	check("reload", "{}", "reloads", "2");
	assert_string_equal(fake.port_calls, "a2 r1 b2 a1 r2 b1 ");
	check("route", "{\"address\": \"10.1.2.3\"}", "verdict", "\"forward\"");
}

static void a_reload_that_fails_closes_what_it_has_opened(void **state)
{
	write_file("ports:\n" LEFT THIRD "  - {name: fourth, device: w}\n");
	fake.refuse_add_of = 3;
	check("reload", "{}", "error", "\"ports[3] (fourth): no such device\"");
	assert_string_equal(fake.port_calls, "a2 r2 ");
	check("status", "{}", "ports", "2");
	check("route", "{\"address\": \"10.1.2.3\"}", "verdict", "\"forward\"");
	write_file("ports:\n" LEFT "  - {name: renamed, device: y}\n");
	check("reload", "{}", "error", "\"needs a restart: ports[1].name; nothing was changed\"");
}

static void with_linux_the_tap_comes_and_goes_with_the_port(void **state)
{
	check("ports.add", "{\"name\": \"third\", \"device\": \"z\"}", "added.port", "2");
	assert_string_equal(fake.port_calls, "a2 t2 n2 b2 ");
	check("ports.remove", "{\"name\": \"third\"}", "removed", "\"third\"");
	assert_string_equal(fake.port_calls, "a2 t2 n2 b2 r2 T2 N2 ");
	fake.refuse_tap = true;
	fake.port_calls[0] = 0;
	check("ports.add", "{\"name\": \"third\", \"device\": \"z\"}", "error",
		"\"its name is taken\"");
	assert_string_equal(fake.port_calls, "a2 r2 ");
}

#define LISTS(rest)                                                                                \
	"acl:\n  lists: {a: {rules: [], default: " rest "}}\n"                                     \
	"  use: [{interface: third, direction: in, list: a}]\n"

static int make_lists(void **state)
{
	return fixture_open("ports:\n" LEFT RIGHT LISTS("deny"));
}

static void a_port_has_its_list_before_workers_poll_it(void **state)
{
	check("ports.add", "{\"name\": \"third\", \"device\": \"z\"}", "added.port", "2");
	assert_true(fake.begun_with_list);
	check("acls", "{}", "use.0.exists", "true");
	check("ports.remove", "{\"name\": \"third\"}", "removed", "\"third\"");
	check("acls", "{}", "use.0.exists", "false");
	check("ports.add", "{\"name\": \"fourth\", \"device\": \"z\"}", "added.port", "2");
	assert_false(fake.begun_with_list); // the number of another port
	check("ports.remove", "{\"name\": \"fourth\"}", "removed", "\"fourth\"");
	write_file("ports:\n" LEFT RIGHT THIRD LISTS("permit"));
	check("reload", "{}", "reloads", "1");
	assert_true(fake.begun_with_list);
	check("acls", "{}", "lists.0.default", "\"permit\"");
}

static void a_reload_that_fails_leaves_the_lists(void **state)
{
	const struct acl_set *set = acl_current(ctx.acls);

	fake.refuse_add_of = 2;
	write_file("ports:\n" LEFT RIGHT THIRD LISTS("permit"));
	json_t *reply = call("reload", "{}");

	assert_non_null(json_object_get(reply, "error"));
	json_decref(reply);
	assert_int_equal(set->n_lists, 1);
	assert_true(set->list[0].denies_rest);
	assert_null(acl_live_view(acl_live(ctx.acls)));
}

static void lists_that_would_do_nothing_are_refused(void **state)
{
	check("acl.change", "{\"lists\": {\"b\": [\"permit mirror left.10\"]}}", "error",
		"\"list 'b', rule 1: mirror: there is no port 'left.10'; copies leave by ports, "
		"not "
		"by VLANs; nothing was changed\"");
	check("ports.add",
		"{\"name\": \"third\", \"device\": \"z\", \"mode\": \"xconnect\", \"to\": "
		"\"left\"}",
		"error",
		"\"interface 'third' uses list 'a', but no list judges the frames of a port with "
		"mode: xconnect\"");
	assert_string_equal(fake.port_calls, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_ctx, fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_port_is_added_with_its_addresses),
		TEST(a_removed_port_names_the_routes_that_lose_next_hops),
		TEST(a_number_that_routes_refer_to_waits_for_its_port),
		TEST(refuses_in_one_sentence_and_changes_nothing),
		TEST(an_address_whose_prefix_has_a_route_closes_the_port_again),
		TEST(a_reload_adds_and_removes_ports),
		TEST(a_reload_that_fails_closes_what_it_has_opened),
		cmocka_unit_test_setup_teardown(a_port_has_its_list_before_workers_poll_it,
			make_lists, fixture_close),
		cmocka_unit_test_setup_teardown(a_reload_that_fails_leaves_the_lists, make_lists,
			fixture_close),
		cmocka_unit_test_setup_teardown(lists_that_would_do_nothing_are_refused, make_lists,
			fixture_close),
		cmocka_unit_test_setup_teardown(with_linux_the_tap_comes_and_goes_with_the_port,
			make_linux, fixture_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
