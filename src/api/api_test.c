// The methods as seen by a client, with a real table and fake ports.
#include "api/fixture.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORTS                                                                                      \
	"ports:\n  - {name: left, device: x, addresses: [192.0.2.1/24]}\n"                         \
	"  - {name: right, device: 'y,z=1', peer: 02:00:00:00:00:99, mtu: 9000}\n"
#define FILE_TEXT                                                                                  \
	PORTS "routes:\n  - 10.0.0.0/8 via 192.0.2.2 dev left lladdr 02:00:00:00:00:02\n"          \
	      "  - 11.0.0.0 8 right\n  - blackhole 2001:db8::/32\n"

static int make_ctx(void **state)
{
	return fixture_open(FILE_TEXT);
}

#define SCHEMA_NAME(method, name, params, text) name,

static void each_row_of_the_schema_is_a_method_in_help(void **state)
{
	static const char *const names[] = {SCHEMA_METHODS(SCHEMA_NAME)};
	size_t n;
	const struct rpc_method *methods = api_table(&n);
	json_t *help = call("help", "{}");

	assert_int_equal(n, ARRAY_LEN(names));
	assert_int_equal(json_array_size(json_object_get(help, "methods")), n);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(methods[i].name, names[i]);
		assert_non_null(methods[i].run);
	}
	json_decref(help);
}

struct refusal {
	const char *method, *params, *sentence;
};

static void takes_exactly_its_parameters(void **state)
{
	static const struct refusal refusals[] = {
		{"status", "{\"a\": 1}",
			"unknown parameter \"a\"; the method 'help' lists the parameters"},
		{"stop", "{\"now\": true}",
			"unknown parameter \"now\"; the method 'help' lists the parameters"},
		{"routes", "{\"family\": 5}", "parameter \"family\" is 5; expected 4 or 6"},
		{"routes", "{\"family\": \"4\"}",
			"parameter \"family\": expected a number from 4 to 6"},
		{"routes", "{\"limit\": 0}",
			"parameter \"limit\": expected a number from 1 to 10000"},
		{"routes", "{\"limit\": 1.5}",
			"parameter \"limit\": expected a number from 1 to 10000"},
		{"routes", "{\"after\": \"x\"}",
			"parameter \"after\": expected ADDRESS/LENGTH without host bits"},
		{"routes", "{\"after\": \"::/0\"}",
			"parameter \"after\": expected an IPv4 prefix, as selected by \"family\""},
		{"route", "{}", "missing parameter \"address\""},
		{"route", "{\"address\": \"10.0.0\"}",
			"invalid address \"10.0.0\": expected an IPv4 or IPv6 address"},
		{"route", "{\"address\": 7}", "parameter \"address\": expected text in quotes"},
		{"nexthops", "{\"after\": -1}",
			"parameter \"after\": expected a number from 0 to 1048575"},
		{"route", "{\"address\": \"10.0.0.1\", \"vrf\": \"red\"}",
			"unknown VRF \"red\": VRFs require the key \"linux\" in the configuration "
			"file"},
		{"taps", "{}",
			"Linux is not the control plane: the configuration file has no key "
			"\"linux\""},
		{"verify", "{\"limit\": 0}",
			"parameter \"limit\": expected a number from 1 to 1000"},
		{"routes.change", "{}", "missing parameter \"changes\""},
		{"routes.change", "{\"changes\": 1}",
			"parameter \"changes\": expected a list of 0 to 100000 members"},
		{"routes.change", "{\"changes\": [1]}",
			"changes[0]: expected an object, {\"op\": ..., \"route\": ...}; nothing "
			"was changed"},
		{"routes.change", "{\"changes\": [{\"op\": \"add\"}]}",
			"changes[0]: missing parameter \"route\"; nothing was changed"},
		{"routes.change", "{\"changes\": [{\"op\": \"burn\", \"route\": \"10.0.0.0/8\"}]}",
			"changes[0]: \"op\" is \"burn\"; expected add, replace or delete; nothing "
			"was changed"},
		{"routes.change",
			"{\"changes\": [{\"op\": \"add\", \"route\": \"10.1.0.0/16 dev x\"}]}",
			"changes[0]: add \"10.1.0.0/16 dev x\": unknown port \"x\"; expected one "
			"of left, right; nothing was changed"},
		{"routes.change", "{\"changes\": [{\"op\": \"add\", \"route\": \"\"}]}",
			"changes[0]: add \"\": empty route; expected \"PREFIX via ADDRESS dev "
			"PORT\"; nothing was changed"},
	};

	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		json_t *reply = call(refusals[i].method, refusals[i].params);
		const char *said = json_string_value(json_object_get(reply, "error"));

		if (!said || strcmp(said, refusals[i].sentence))
			fail_msg("%s %s: %s", refusals[i].method, refusals[i].params, said);
		json_decref(reply);
	}
}

static void the_account_adds_up_over_workers(void **state)
{
	fake_stat(0)->port[0].rx_packets = 100;
	fake_stat(1)->port[1].rx_packets = 50;
	fake_stat(0)->port[1].tx_packets = 120;
	fake_stat(0)->port[1].tx_bytes = 12000;
	fake_stat(0)->verdict[VERDICT_FORWARD] = 120;
	fake_stat(0)->verdict[VERDICT_TTL_EXPIRED] = 20;
	fake_stat(1)->verdict[VERDICT_TTL_EXPIRED] = 7;
	fake_stat(0)->starved_loops = 1;
	fake_stat(1)->starved_loops = 2;
	json_t *drops = call("drops", "{}");

	expect(drops, "received", "150");
	expect(drops, "sent", "120");
	expect(drops, "dropped", "27");
	expect(drops, "in_flight", "3");
	assert_int_equal(json_array_size(json_object_get(drops, "verdicts")), N_VERDICTS);
	expect(drops, "verdicts.0.name", "\"forward\"");
	expect(drops, "verdicts.0.packets", "120");
	expect(drops, "wire",
		"{\"rx_errors\": 7, \"rx_missed\": 10, \"rx_no_mbuf\": 12, "
		"\"starved_loops\": 3}");
	json_decref(drops);
	check("status", "{}", "account.received", "150");
	check("status", "{}", "control", "\"static\"");
	assert_true(api_has_become_ready(&ctx));
	check("status", "{}", "ready", "true");
	check("status", "{}", "mirror", "null");
	check("status", "{}", "capturing", "false");
	check("status", "{}", "exporting", "false");
	check("ports", "{}", "ports.1.tx_bytes", "12000");
	check("ports", "{}", "ports.0.rx_errors", "7");
	check("ports", "{}", "ports.1.rx_errors", "null");
	check("ports", "{}", "ports.1.rx_missed", "5");
	check("ports", "{}", "ports.0.tx_errors", "null");
	check("workers", "{}", "workers.1.verdicts.ttl_expired", "7");
}

static void tells_of_ports_and_workers(void **state)
{
	fake_stat(0)->queue[0].rx_packets = 9;
	fake_stat(0)->timed_packets = 64;
	fake_stat(0)->step_cycles[1] = 160;
	fake_stat(0)->loops = 8;
	fake_stat(0)->empty_loops = 2;
	fake_stat(0)->ring_full[N_CLASSES - 1] = 4;
	json_t *ports = call("ports", "{}"), *workers = call("workers", "{}");

	expect(ports, "ports.0.name", "\"left\"");
	expect(ports, "ports.0.mac", "\"02:00:00:00:00:0a\"");
	expect(ports, "ports.0.peer", "null");
	expect(ports, "ports.0.addresses", "[\"192.0.2.1/24\"]");
	expect(ports, "ports.1.speed_mbps", "null");
	expect(ports, "ports.1.device", "\"y,z=1\"");
	expect(ports, "ports.1.peer", "\"02:00:00:00:00:99\"");
	expect(ports, "ports.1.link_up", "false");
	expect(workers, "workers.0.core", "3");
	expect(workers, "workers.0.queues",
		"[{\"port\": \"right\", \"queue\": 0, \"rx_packets\": 9}]");
	expect(workers, "workers.0.cycles_per_packet.lookup", "2.5");
	expect(workers, "workers.1.cycles_per_packet", "null");
	expect(workers, "workers.0.empty_share", "0.25");
	json_t *lists = json_object_get(json_array_get(json_object_get(workers, "workers"), 0),
		"counter_lists");
	json_t *full = json_object_get(lists, "ring_full");
	assert_int_equal(json_array_size(full), N_CLASSES);
	assert_int_equal(json_integer_value(json_array_get(full, N_CLASSES - 1)), 4);
	json_decref(ports);
	json_decref(workers);
	check("status", "{}", "routes", "{\"ip4\": 6, \"ip6\": 1}");
	fake_stat(0)->hop[1] = 3;
	fake_stat(1)->hop[1] = 4;
	check("nexthops", "{}", "nexthops.0.packets", "7");
}

// Its id in the table, from the method route.
static unsigned hop_of(const char *params)
{
	json_t *route = call("route", params);
	unsigned id = json_integer_value(json_object_get(route, "nexthop"));

	json_decref(route);
	return id;
}

static void change(const char *op, const char *route)
{
	char params[256];

	snprintf(params, sizeof(params), "{\"changes\": [{\"op\": \"%s\", \"route\": \"%s\"}]}", op,
		route);
	check("routes.change", params, "changed", "1");
}

static void a_next_hop_does_not_inherit_the_packets_of_another(void **state)
{
	char page[64];

	change("add", "20.0.0.0/8 via 192.0.2.77 dev left");
	unsigned id = hop_of("{\"address\": \"20.0.0.1\"}");
	snprintf(page, sizeof(page), "{\"after\": %u, \"limit\": 1}", id - 1);
	fake_stat(0)->hop[id] = 5;
	check("nexthops", page, "nexthops.0.packets", "5");
	change("delete", "20.0.0.0/8");
	rcu_poll(ctx.rcu);
	change("add", "20.0.0.0/8 via 192.0.2.78 dev left");
	assert_int_equal(hop_of("{\"address\": \"20.0.0.1\"}"), id);
	check("nexthops", page, "nexthops.0.packets", "0");
	fake_stat(1)->hop[id] = 2;
	check("nexthops", page, "nexthops.0.packets", "2");
	fake_stat(0)->hop[1] = 7;
	check("nexthops", "{}", "nexthops.0.packets", "7");
	check("reload", "{}", "reloads", "1");
	check("nexthops", "{}", "nexthops.0.packets", "0");
}

static void turns_pages_of_routes(void **state)
{
	static const char *const prefixes[] = {"10.0.0.0/8", "11.0.0.0/8", "192.0.2.0/24",
		"192.0.2.0/32", "192.0.2.1/32", "192.0.2.255/32"};
	char params[128] = "{\"limit\": 1}";

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		json_t *page = call("routes", params);
		const char *next = json_string_value(json_object_get(page, "next"));
		char wanted[64];

		snprintf(wanted, sizeof(wanted), "\"%s\"", prefixes[i]);
		expect(page, "routes.0.prefix", wanted);
		assert_int_equal(json_array_size(json_object_get(page, "routes")), 1);
		assert_int_equal(!next, i + 1 == ARRAY_LEN(prefixes));
		snprintf(params, sizeof(params), "{\"limit\": 1, \"after\": \"%s\"}",
			next ? next : "");
		json_decref(page);
	}
	check("routes", "{\"family\": 6}", "routes.0.kind", "\"blackhole\"");
	check("routes", "{\"within\": \"192.0.2.0/24\", \"limit\": 1}", "routes.0.prefix",
		"\"192.0.2.0/24\"");
	check("routes", "{\"within\": \"192.0.2.0/24\", \"limit\": 1}", "next", "\"192.0.2.0/24\"");
	check("routes", "{\"within\": \"192.0.2.0/31\"}", "routes.1.prefix", "\"192.0.2.1/32\"");
	check("routes", "{\"within\": \"192.0.2.0/31\"}", "next", "null");
	check("routes", "{\"within\": \"192.0.2.0/31\"}", "routes.2", "null");
	check("routes", "{\"within\": \"192.0.2.0/31\", \"after\": \"0.0.0.0/0\"}",
		"routes.1.prefix", "\"192.0.2.1/32\"");
	check("routes", "{\"within\": \"192.0.2.0/31\", \"after\": \"192.0.2.0/32\"}",
		"routes.0.prefix", "\"192.0.2.1/32\"");
	check("routes", "{\"within\": \"192.0.2.0/31\", \"after\": \"193.0.0.0/8\"}", "routes",
		"[]");
	check("routes", "{\"within\": \"12.0.0.0/8\"}", "routes", "[]");
	check("routes", "{\"within\": \"0.0.0.0/0\"}", "routes.5.prefix", "\"192.0.2.255/32\"");
	check("routes", "{\"within\": \"2001:db8::/31\"}", "error",
		"\"parameter \\\"within\\\": expected an IPv4 prefix, as selected by "
		"\\\"family\\\"\"");
	check("routes", "{\"within\": \"2001:db8::/16\"}", "error",
		"\"parameter \\\"within\\\": expected ADDRESS/LENGTH without host bits\"");
	check("routes", "{\"port\": \"right\"}", "routes.0.prefix", "\"11.0.0.0/8\"");
	check("routes", "{\"port\": \"right\"}", "routes.1", "null");
	check("routes", "{\"port\": \"middle\"}", "error",
		"\"parameter \\\"port\\\": expected the name of a port; 'dl3 show ports' lists "
		"them\"");
	check("routes", "{\"limit\": 6}", "next", "null");
	check("routes", "{\"after\": \"192.0.2.255/32\"}", "routes", "[]");
}

static void turns_pages_of_next_hops(void **state)
{
	unsigned seen = 0;
	char params[64] = "{\"limit\": 1}";
	json_t *all = call("nexthops", "{}");

	while (true) {
		json_t *page = call("nexthops", params);
		const json_t *next = json_object_get(page, "next");

		seen += json_array_size(json_object_get(page, "nexthops"));
		if (!json_is_integer(next)) {
			json_decref(page);
			break;
		}
		snprintf(params, sizeof(params), "{\"limit\": 1, \"after\": %d}",
			(int)json_integer_value(next));
		json_decref(page);
	}
	assert_int_equal(seen, json_array_size(json_object_get(all, "nexthops")));
	assert_true(seen >= 4);
	json_decref(all);
}

static void explains_where_a_packet_goes(void **state)
{
	check_all("route", "{\"address\": \"10.1.2.3\"}",
		(struct wanted[]){
			{"prefix", "\"10.0.0.0/8\""},
			{"kind", "\"via\""},
			{"via", "\"192.0.2.2\""},
			{"port", "\"left\""},
			{"mac", "\"02:00:00:00:00:02\""},
			{"verdict", "\"forward\""},
			{"workers_agree", "true"},
			{NULL, NULL},
		});
	check("route", "{\"address\": \"11.1.2.3\"}", "mac", "\"02:00:00:00:00:99\"");
	check("route", "{\"address\": \"12.1.2.3\"}", "verdict", "\"no_route\"");
	check("route", "{\"address\": \"12.1.2.3\"}", "found", "false");
	check("route", "{\"address\": \"192.0.2.1\"}", "verdict", "\"local\"");
	check("route", "{\"address\": \"2001:db8::7\"}", "verdict", "\"blackhole\"");
}

#define CHANGE(op, route) "{\"op\": \"" op "\", \"route\": \"" route "\"}"

static void a_batch_is_all_or_nothing(void **state)
{
	check("routes.change",
		"{\"changes\": [" CHANGE("add",
			"12.0.0.0/8 via 192.0.2.2 dev left") ", " CHANGE("replace",
			"10.0.0.0/8 dev right") ", " CHANGE("delete", "11.0.0.0/8") "]}",
		"changed", "3");
	check("route", "{\"address\": \"12.1.2.3\"}", "verdict", "\"forward\"");
	check("route", "{\"address\": \"11.1.2.3\"}", "found", "false");
	json_t *reply = call("routes.change",
		"{\"changes\": [" CHANGE("delete", "12.0.0.0/8") ", " CHANGE("add",
			"10.0.0.0/8 dev left") "]}");
	const char *said = json_string_value(json_object_get(reply, "error"));
	assert_non_null(said);
	assert_non_null(strstr(said, "changes[1]: "));
	assert_non_null(strstr(said, "10.0.0.0/8"));
	json_decref(reply);
	check("route", "{\"address\": \"12.1.2.3\"}", "verdict", "\"forward\"");
	check("routes.change", "{\"changes\": []}", "changed", "0");
}

static void a_delete_takes_a_prefix_as_a_route_begins_with_it(void **state)
{
	change("replace", "default via 192.0.2.2 dev left");
	change("add", "203.0.113.9 via 192.0.2.2 dev left");
	check("route", "{\"address\": \"203.0.113.9\"}", "prefix", "\"203.0.113.9/32\"");
	change("delete", "203.0.113.9");
	check("route", "{\"address\": \"203.0.113.9\"}", "prefix", "\"0.0.0.0/0\"");
	change("delete", "default");
	check("route", "{\"address\": \"203.0.113.9\"}", "found", "false");
}

static void a_group_shows_its_members(void **state)
{
	check("routes.change",
		"{\"changes\": [" CHANGE("add", "15.0.0.0/8 nexthop via 192.0.2.2 dev left weight "
						"2 nexthop via 198.51.100.2 dev right") "]}",
		"changed", "1");
	json_t *route = call("route", "{\"address\": \"15.1.2.3\"}");
	expect(route, "kind", "\"group\"");
	expect(route, "verdict", "\"forward\"");
	expect(route, "mac", "null");
	assert_int_equal(json_array_size(json_object_get(route, "members")), 2);
	json_decref(route);
}

// The table has space for 4096 groups.
static void a_refused_batch_leaves_no_group_behind(void **state)
{
	char params[512];
	struct error error;

	for (int i = 0; i < 5000; i++) {
		const char *second =
			i % 2 ? CHANGE("add", "10.0.0.0/8 dev left") : CHANGE("add", "nonsense");

		snprintf(params, sizeof(params),
			"{\"changes\": [{\"op\": \"add\", \"route\": \"15.0.0.0/8 nexthop via "
			"192.0.2.2 dev left weight %d nexthop via 198.51.100.2 dev right "
			"weight %d\"}, %s]}",
			i % 250 + 1, i / 250 + 1, second);
		json_t *reply = call("routes.change", params);
		const char *said = json_string_value(json_object_get(reply, "error"));
		if (!said || !strstr(said, "changes[1]: "))
			fail_msg("%d: %s", i, said);
		json_decref(reply);
		api_poll(&ctx, &error);
	}
}

static void a_reload_takes_over_what_is_live(void **state)
{
	write_file("ports:\n  - {name: left, device: x, addresses: [192.0.2.1/24], mtu: 1400}\n"
		   "  - {name: right, device: 'y,z=1'}\nroutes: [13.0.0.0/8 dev left]\n");
	check("reload", "{}", "reloads", "1");
	check("route", "{\"address\": \"10.1.2.3\"}", "found", "false");
	check("route", "{\"address\": \"13.1.2.3\"}", "found", "true");
	assert_int_equal(fake.n_changes, 2);
	assert_int_equal(fake.mtu[0], 1400);
	assert_int_equal(fake.mtu[1], 1500);
}

static void expect_nothing_changed(void)
{
	check("route", "{\"address\": \"10.1.2.3\"}", "verdict", "\"forward\"");
	check("status", "{}", "reloads", "0");
	check("ports", "{}", "ports.1.peer", "\"02:00:00:00:00:99\"");
}

static void a_reload_that_fails_changes_nothing(void **state)
{
	char wanted[128];

	write_file(PORTS "routes: [14.0.0.0/8 dev nowhere]\n");
	snprintf(wanted, sizeof(wanted),
		"\"%s:4: unknown port \\\"nowhere\\\"; expected one of left, right\"", file);
	check("reload", "{}", "error", wanted);
	expect_nothing_changed();
	write_file(PORTS "burst: 32\n");
	check("reload", "{}", "error", "\"needs a restart: burst; nothing was changed\"");
	expect_nothing_changed();
	write_file(PORTS "routes: [14.0.0.0/8 dev left, 14.0.0.0/8 dev right]\n");
	json_decref(call("reload", "{}"));
	expect_nothing_changed();
	unlink(file);
	json_decref(call("reload", "{}"));
	expect_nothing_changed();
	assert_int_equal(fake.n_changes, 0);
}

static void a_port_that_refuses_takes_the_others_back(void **state)
{
	write_file("ports:\n  - {name: left, device: x, mtu: 1400}\n  - {name: right, device: "
		   "'y,z=1', mtu: 9600}\n");
	fake.refuse_change_of = 1;
	check("reload", "{}", "error", "\"the device of right takes no MTU of 9600\"");
	assert_int_equal(fake.mtu[0], 1500);
	expect_nothing_changed();
}

static void stop_only_raises_the_flag(void **state)
{
	check("stop", "{}", "stopping", "true");
	assert_true(ctx.stop);
}

static void a_worker_that_ends_by_itself_is_a_failure(void **state)
{
	struct error error = {""};

	assert_int_equal(api_poll(&ctx, &error), 0);
	assert_int_equal(fake.n_polled, 1);
	assert_int_equal(api_poll(&ctx, &error), 0); // devices are polled less often
	assert_int_equal(fake.n_polled, 1);
	fake.worker_has_ended = true;
	assert_int_not_equal(api_poll(&ctx, &error), 0);
	assert_string_equal(error.text, "a worker terminated unexpectedly; stopping");
}

static void a_device_that_has_vanished_is_told_of_and_tried_again_by_a_reload(void **state)
{
	fake.device_is_gone = true;
	check("ports", "{}", "ports.0.device_present", "false");
	check("ports", "{}", "ports.0.device_losses", "1");
	write_file(PORTS);
	json_decref(call("reload", "{}"));
	assert_int_equal(fake.n_ports_restored, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_ctx, fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_row_of_the_schema_is_a_method_in_help),
		TEST(takes_exactly_its_parameters),
		TEST(the_account_adds_up_over_workers),
		TEST(tells_of_ports_and_workers),
		TEST(a_next_hop_does_not_inherit_the_packets_of_another),
		TEST(turns_pages_of_routes),
		TEST(turns_pages_of_next_hops),
		TEST(explains_where_a_packet_goes),
		TEST(a_batch_is_all_or_nothing),
		TEST(a_delete_takes_a_prefix_as_a_route_begins_with_it),
		TEST(a_group_shows_its_members),
		TEST(a_refused_batch_leaves_no_group_behind),
		TEST(a_reload_takes_over_what_is_live),
		TEST(a_reload_that_fails_changes_nothing),
		TEST(a_port_that_refuses_takes_the_others_back),
		TEST(stop_only_raises_the_flag),
		TEST(a_worker_that_ends_by_itself_is_a_failure),
		TEST(a_device_that_has_vanished_is_told_of_and_tried_again_by_a_reload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
