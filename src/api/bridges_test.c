// Bridges: methods, reloads, links that go down.
#include "api/fixture.h"

#include "api/bridges.h"
#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define PORTS                                                                                      \
	"ports:\n  - {name: a, device: d0}\n  - {name: b, device: d1}\n  - {name: c, device: "     \
	"d2, addresses: [10.0.0.1/24]}\n"
#define BRIDGE                                                                                     \
	"bridges:\n  - name: br0\n    ports: [a, {port: b, isolated: on, max_macs: 5}]\n"          \
	"    macs: [{mac: 02:00:00:00:00:09, port: b}]\n    storm: {unknown: 7}\n"

static int open_bridge(void **state)
{
	return fixture_open(PORTS BRIDGE);
}

// As a worker that sees an address.
static void see(uint16_t port, uint8_t last)
{
	const struct mac_live *live = mac_live(ctx.bridges->table);
	const struct mac_view *view = mac_live_view(live);
	const uint8_t mac[8] = {2, 0, 0, 0, 1, last};
	const struct mac_told told = {.key = mac_key(view->port[port].domain, mac), .port = port};

	assert_true(mac_tell(live, 0, &told));
	bridges_poll(&ctx);
}

static void bridges_are_shown(void **state)
{
	see(0, 1);
	check_all("bridges", "{}",
		(struct wanted[]){{"bridges.0.name", "\"br0\""}, {"bridges.0.ageing_s", "300"},
			{"bridges.0.max_macs", "8192"}, {"bridges.0.static_macs", "1"},
			{"bridges.0.learnt_macs", "1"}, {"bridges.0.storm.unknown", "7"},
			{"bridges.0.storm.broadcast", "null"}, {"bridges.0.ports.0.port", "\"a\""},
			{"bridges.0.ports.0.learnt_macs", "1"},
			{"bridges.0.ports.1.isolated", "true"}, {"bridges.0.ports.1.max_macs", "5"},
			{"bridges.0.ports.0.broadcast_flood", "true"},
			{"bridges.0.ports.0.storm.unknown", "null"}, {"guarded", "null"},
			{"bridges.0.vlans", "null"}, {"bridges.0.vxlans", "[]"}, {NULL, NULL}});
	assert_true(fake_state(0)->is_bridged && fake_state(1)->is_bridged);
	assert_false(fake_state(2)->is_bridged);
	assert_true(fake.is_promiscuous[0] && fake.is_promiscuous[1]);
	assert_false(fake.is_promiscuous[2]);
}

static void addresses_are_listed_by_bridge_and_port(void **state)
{
	see(0, 1);
	check_all("macs", "{\"port\": \"a\"}",
		(struct wanted[]){{"macs.0.mac", "\"02:00:00:00:01:01\""},
			{"macs.0.bridge", "\"br0\""}, {"macs.0.port", "\"a\""},
			{"macs.0.kind", "\"learnt\""}, {"macs.1", "null"}, {"next", "null"},
			{NULL, NULL}});
	check_all("macs", "{\"bridge\": \"br0\", \"port\": \"b\"}",
		(struct wanted[]){{"macs.0.kind", "\"static\""}, {"macs.0.idle_s", "null"},
			{NULL, NULL}});
	check("macs", "{\"bridge\": \"no\"}", "error",
		"\"unknown bridge \\\"no\\\"; 'bridges' lists those that there are\"");
	check("macs", "{\"port\": \"no\"}", "error",
		"\"unknown port \\\"no\\\"; 'ports' lists those that there are\"");
	json_t *page = call("macs", "{\"limit\": 1}");
	assert_true(json_integer_value(json_object_get(page, "next")) > 0);
	json_decref(page);
}

static void flush_forgets_what_was_learnt(void **state)
{
	see(0, 1);
	check("macs.flush", "{\"port\": \"b\"}", "flushed", "0");
	check("macs.flush", "{}", "flushed", "1");
	check("bridges", "{}", "bridges.0.learnt_macs", "0");
	check("bridges", "{}", "bridges.0.static_macs", "1");
}

static void a_link_that_goes_down_has_its_addresses_forgotten(void **state)
{
	fake_state(0)->up = true;
	see(0, 1);
	check("bridges", "{}", "bridges.0.learnt_macs", "1");
	fake_state(0)->up = false;
	bridges_poll(&ctx);
	check("bridges", "{}", "bridges.0.learnt_macs", "0");
}

static void a_reload_changes_bridges(void **state)
{
	see(0, 1);
	write_file(PORTS
		"bridges:\n  - {name: new, ports: [b]}\n  - {name: br0, ports: [a], ageing: 60}\n");
	check("reload", "{}", "error", "null");
	check_all("bridges", "{}",
		(struct wanted[]){{"bridges.0.name", "\"br0\""}, {"bridges.0.ageing_s", "60"},
			{"bridges.0.learnt_macs", "1"}, {"bridges.0.static_macs", "0"},
			{"bridges.0.ports.1", "null"}, {"bridges.1.name", "\"new\""},
			{NULL, NULL}});
	write_file(PORTS);
	check("reload", "{}", "error", "null");
	check("bridges", "{}", "bridges.0", "null");
	assert_false(fake_state(0)->is_bridged || fake_state(1)->is_bridged);
}

static void a_reload_that_fails_leaves_bridges_as_they_are(void **state)
{
	see(0, 1);
	fake.refuse_change_of = 0;
	write_file("ports:\n  - {name: a, device: d0, mtu: 1400}\n  - {name: b, device: d1}\n  - "
		   "{name: c, device: d2}\n");
	json_t *reply = call("reload", "{}");
	assert_non_null(json_object_get(reply, "error"));
	json_decref(reply);
	check("bridges", "{}", "bridges.0.learnt_macs", "1");
	assert_true(fake_state(0)->is_bridged);
}

static void a_port_of_a_bridge_is_not_removed(void **state)
{
	check("ports.remove", "{\"name\": \"a\"}", "error",
		"\"port \\\"a\\\" is in bridge \\\"br0\\\"; remove it from the bridge in the file, "
		"and reload\"");
	check("ports.remove", "{\"name\": \"c\"}", "error", "null");
	check("bridges", "{}", "bridges.0.ports.1.port", "\"b\"");
}

// Its number may be another than its place in the file.
static void a_port_joins_by_its_name(void **state)
{
	check("ports.remove", "{\"name\": \"c\"}", "error", "null");
	write_file("ports:\n  - {name: d, device: d3}\n  - {name: b, device: d1}\n  - {name: a, "
		   "device: d0}\nbridges:\n  - {name: br0, ports: [d, b], macs: [{mac: "
		   "02:00:00:00:00:09, port: d}]}\n");
	check("reload", "{}", "error", "null");
	check_all("bridges", "{}",
		(struct wanted[]){{"bridges.0.ports.0.port", "\"b\""},
			{"bridges.0.ports.1.port", "\"d\""}, {"bridges.0.ports.2", "null"},
			{NULL, NULL}});
	check("macs", "{}", "macs.0.port", "\"d\"");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_bridge, fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bridges_are_shown),
		TEST(addresses_are_listed_by_bridge_and_port),
		TEST(flush_forgets_what_was_learnt),
		TEST(a_link_that_goes_down_has_its_addresses_forgotten),
		TEST(a_reload_changes_bridges),
		TEST(a_reload_that_fails_leaves_bridges_as_they_are),
		TEST(a_port_of_a_bridge_is_not_removed),
		TEST(a_port_joins_by_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
