// The methods with Linux as the control plane: a real table, fake TAP interfaces and netlink.
#include "api/fixture.h"

#include "base/bits.h"
#include "base/wake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <unistd.h>

#define PORTS "ports:\n  - {name: left, device: x}\n  - {name: right, device: y, mtu: 9000}\n"

static struct wire_prefix prefix_of(const char *text)
{
	struct wire_prefix prefix;

	assert_int_equal(wire_prefix_parse(text, &prefix), 0);
	return prefix;
}

static void add(const char *prefix, uint16_t vrf, uint8_t kind, uint16_t iface)
{
	struct error error = {""};
	struct fib_change change = {FIB_ADD,
		{.prefix = prefix_of(prefix), .vrf = vrf, .hop = {.kind = kind, .iface = iface}}};

	if (kind == FIB_VIA)
		assert_int_equal(wire_addr_parse("192.0.2.2", &change.route.hop.via), 0);
	if (fib_change(ctx.fib, &change, 1, NULL, &error))
		fail_msg("%s: %s", prefix, error.text);
}

// Fills the table as netlink would.
static void fill(void)
{
	struct wire_addr neighbour;
	struct wire_mac mac = {{2, 0, 0, 0, 0, 2}};
	struct error error;

	assert_int_equal(wire_addr_parse("192.0.2.2", &neighbour), 0);
	assert_int_equal(fib_neighbour_set(ctx.fib, 0, &neighbour, &mac, &error), 0);
	add("10.0.0.0/8", 0, FIB_VIA, 0);
	add("11.0.0.0/8", 0, FIB_LINUX, IFACE_NONE);
	add("12.0.0.0/8", 0, FIB_UNREACHABLE, IFACE_NONE);
	add("13.0.0.0/8", 0, FIB_VIA, 1);
	assert_false(fib_is_synced(ctx.fib));
	fib_set_synced(ctx.fib, true);
}

static int make_ctx(void **state)
{
	int left = fixture_open(PORTS "linux:\n");

	ctx.taps = fake_taps();
	ctx.netlink = fake_sync();
	memcpy(fake.class, config_taps(ctx.config)->class, sizeof(fake.class));
	fill();
	return left;
}

static void the_account_counts_what_taps_took_and_did_not(void **state)
{
	fake_stat(0)->port[0].rx_packets = 100;
	fake_stat(0)->port[1].tx_packets = 65;
	fake_stat(0)->port[1].injected_packets = 10;
	fake_stat(1)->port[1].copied_packets = 5;
	fake_stat(0)->verdict[VERDICT_PUNT_RING_FULL] = 4;
	fake_stat(0)->handed[VERDICT_TTL_EXPIRED] = 30;
	fake_stat(1)->handed[VERDICT_TTL_EXPIRED] = 10;
	fake_stat(0)->handed[VERDICT_ARP] = 6;
	fake.taps.class[CLASS_TTL] =
		(struct stats_class){.punted = 20, .over_limit = 15, .refused = 1};
	fake.taps.class[CLASS_NEIGHBOUR].punted = 6;
	json_t *drops = call("drops", "{}");

	expect(drops, "received", "100");
	expect(drops, "injected", "10");
	expect(drops, "copied", "5");
	expect(drops, "punted", "26");
	expect(drops, "dropped", "20");
	expect(drops, "in_flight", "4"); // in the rings: punted by workers, outcome not counted yet
	for (size_t i = 0; i < N_VERDICTS; i++) {
		const json_t *row = json_array_get(json_object_get(drops, "verdicts"), i);

		expect(row, "handed",
			i == VERDICT_TTL_EXPIRED ? "40"
			: i == VERDICT_ARP       ? "6"
						 : "0");
		if (i == VERDICT_TTL_EXPIRED)
			expect(row, "class", "\"ttl\"");
		if (i == VERDICT_LOCAL)
			expect(row, "class", "\"content\"");
		if (i == VERDICT_BLACKHOLE)
			expect(row, "class", "null");
		if (i == VERDICT_PUNT_OVER_LIMIT)
			expect(row, "packets", "15");
		if (i == VERDICT_TAP_REFUSED)
			expect(row, "packets", "1");
	}
	json_decref(drops);
	check("status", "{}", "account.punted", "26");
	check("ports", "{}", "ports.1.injected_packets", "10");
}

static void shows_what_linux_has_beside_the_tables(void **state)
{
	check("ports", "{}", "ports.0.addresses", "[\"192.0.2.1/32\"]");
	check("ports", "{}", "ports.1.addresses", "[\"2001:db8::1/128\"]");
	json_t *routes = call("routes", "{}");

	expect(routes, "routes.0.prefix", "\"10.0.0.0/8\"");
	expect(routes, "routes.0.protocol", "\"bgp\"");
	expect(routes, "routes.0.metric", "20");
	expect(routes, "routes.1.protocol", "\"77\"");
	expect(routes, "routes.2.protocol", "null");
	json_decref(routes);
	check("neighbours", "{}", "neighbours.0.address", "\"192.0.2.2\"");
	check("neighbours", "{}", "neighbours.0.interface", "\"left\"");
	check("neighbours", "{}", "neighbours.0.vrf", "\"main\"");
	check("neighbours", "{}", "neighbours.0.mac", "\"02:00:00:00:00:02\"");
	check("neighbours", "{\"after\": 1048575}", "neighbours", "[]");
}

static void taps_tells_of_each_port_and_class(void **state)
{
	fake.taps.punted_by_port[1] = 9;
	fake_stat(0)->port[1].injected_packets = 3;
	fake_stat(0)->ring_full[CLASS_TTL] = 1;
	fake_stat(1)->ring_full[CLASS_TTL] = 1;
	fake.taps.class[CLASS_TTL].over_limit = 5;
	json_t *taps = call("taps", "{}");

	expect(taps, "namespace", "\"core\"");
	expect(taps, "namespace_is_own", "false");
	expect(taps, "keep", "true");
	expect(taps, "taps.1",
		"{\"port\": \"right\", \"name\": \"right\", \"ifindex\": 8, \"carrier\": false, "
		"\"adopted\": true, \"held\": true, \"punted\": 9, \"injected\": 3}");
	assert_int_equal(json_array_size(json_object_get(taps, "classes")), N_CLASSES);
	expect(taps, "classes.0.name", "\"routing\"");
	const json_t *ttl = json_array_get(json_object_get(taps, "classes"), CLASS_TTL);
	expect(ttl, "rate_pps", "1000");
	expect(ttl, "burst", "200");
	expect(ttl, "overflow", "\"drop\"");
	expect(ttl, "over_limit", "5");
	expect(ttl, "ring_full", "2");
	json_decref(taps);
}

static void mirror_tells_its_state_and_links(void **state)
{
	check_all("mirror", "{}",
		(struct wanted[]){
			{"state", "\"following\""},
			{"overruns", "2"},
			{"dumps_partial", "1"},
			{"last_dump_s", "1.5"},
			{"routes4", "1000000"},
			{"receive_buffer_bytes", "67108864"},
			{"interfaces.1.name", "\"right\""},
			{"interfaces.1.mtu", "9000"},
			{"interfaces.1.vlans", "[]"},
			{"interfaces.1.up", "true"},
			{"interfaces.2", "null"},
			{"vrfs", "[\"main\", \"blue\"]"},
			{"bursts.0.us", "2.5"},
			{"bursts.1.at_ns", "9500000"},
			{"bursts.1.messages", "1200"},
			{"bursts.2", "null"},
			{NULL, NULL},
		});
	check("status", "{}", "control", "\"linux\"");
	fake.is_dumping = true;
	check("status", "{}", "mirror", "\"dumping\"");
}

static void unsupported_is_a_list_with_an_end(void **state)
{
	check("unsupported", "{}", "unsupported", "[]");
	fake.n_unsupported = 2;
	check("unsupported", "{}", "unsupported.1",
		"{\"what\": \"nftables forward hook\", \"where\": \"table inet filter chain "
		"forward\", \"effect\": \"all transit packets are punted to Linux\", \"alike\": "
		"2}");
	fake.n_unsupported = 5000;
	check("unsupported", "{}", "found", "5000");
	check("unsupported", "{}", "unsupported.1999.alike", "2000");
	check("unsupported", "{}", "unsupported.2000", "null");
}

static void addresses_of_its_bridges_are_linuxs_to_flush(void **state)
{
	check("macs.flush", "{}", "error",
		"\"Linux has the addresses of its bridges: use 'ip link set dev BRIDGE type bridge "
		"fdb_flush' in the namespace of the TAP interfaces\"");
}

static void verify_lists_differences_up_to_its_limit(void **state)
{
	check("verify", "{}", "compared", "1000000");
	check("verify", "{}", "macs", "30");
	check("verify", "{}", "differences", "0");
	fake.n_differences = 5;
	check("verify", "{\"sample\": 50, \"limit\": 2}", "listed",
		"[\"10.0.0.0/32 differs\", \"10.0.0.1/32 differs\"]");
	assert_int_equal(fake.sample, 50);
	check("verify", "{\"sample\": 50, \"limit\": 2}", "differences", "5");
	check("verify", "{\"sample\": 0}", "error",
		"\"parameter \\\"sample\\\": expected a number from 1 to 2147483647\"");
	fake.is_dumping = true;
	check("verify", "{}", "error", "\"the mirror is still dumping; ask again\"");
}

static void explains_a_packet_that_workers_forward(void **state)
{
	fake.route_check = (struct netlink_route_check){.answered = true,
		.prefix = prefix_of("10.0.0.0/8"),
		.table = RT_TABLE_MAIN,
		.metric = 20,
		.type = RTN_UNICAST,
		.interface = "left",
		.agrees = true};
	assert_int_equal(wire_addr_parse("192.0.2.2", &fake.route_check.via), 0);
	check_all("route", "{\"address\": \"10.1.2.3\"}",
		(struct wanted[]){
			{"vrf", "\"main\""},
			{"prefix", "\"10.0.0.0/8\""},
			{"interface", "\"left\""},
			{"port", "\"left\""},
			{"mac", "\"02:00:00:00:00:02\""},
			{"source_mac", "\"02:00:00:00:00:0a\""},
			{"vlans", "[]"},
			{"verdict", "\"forward\""},
			{"class", "null"},
			{"linux.agrees", "true"},
			{"linux.differs", "null"},
			{"linux.error", "null"},
			{"linux.prefix", "\"10.0.0.0/8\""},
			{"linux.table", "254"},
			{"linux.metric", "20"},
			{"linux.type", "\"unicast\""},
			{"linux.via", "\"192.0.2.2\""},
			{"linux.interface", "\"left\""},
			{NULL, NULL},
		});
}

static void names_no_route_that_linux_does_not_tell(void **state)
{
	fake.route_check = (struct netlink_route_check){.answered = true,
		.type = RTN_UNICAST,
		.interface = "left",
		.agrees = true};
	check("route", "{\"address\": \"10.1.2.3\"}", "linux",
		"{\"agrees\": true, \"differs\": null, \"error\": null, \"prefix\": null, "
		"\"table\": null, \"metric\": null, \"type\": \"unicast\", \"via\": null, "
		"\"interface\": \"left\"}");
}

static void explains_a_packet_that_is_left_to_linux(void **state)
{
	fake.route_check = (struct netlink_route_check){.error = -ENETUNREACH,
		.differs = "Linux has no route"};
	check("route", "{\"address\": \"11.1.2.3\"}", "verdict", "\"linux\"");
	check("route", "{\"address\": \"11.1.2.3\"}", "route_kind", "\"linux\"");
	check("route", "{\"address\": \"11.1.2.3\"}", "class", "\"linux\"");
	check("route", "{\"address\": \"12.1.2.3\"}", "class", "\"unreachable\"");
	check("route", "{\"address\": \"13.1.2.3\"}", "class", "\"unresolved\"");
	check("route", "{\"address\": \"14.1.2.3\"}", "class", "\"unreachable\"");
	check("route", "{\"address\": \"11.1.2.3\"}", "linux",
		"{\"agrees\": false, \"differs\": \"Linux has no route\", \"error\": \"Network is "
		"unreachable\", \"prefix\": null}");
	fake.is_dumping = true;
	check("route", "{\"address\": \"11.1.2.3\"}", "linux",
		"{\"agrees\": null, \"error\": \"the mirror is still dumping; ask again\"}");
}

static void a_vrf_is_one_that_linux_has(void **state)
{
	static const char *const methods[] = {"route", "routes", "nexthops"};

	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		check(methods[i],
			i ? "{\"vrf\": \"red\"}" : "{\"address\": \"10.0.0.1\", \"vrf\": \"red\"}",
			"error",
			"\"unknown VRF \\\"red\\\": no VRF device in the namespace of the TAP "
			"interfaces has this name; 'dl3 show mirror' lists them\"");
	check("routes", "{\"vrf\": \"main\"}", "routes.0.prefix", "\"10.0.0.0/8\"");
	check("routes", "{\"vrf\": \"blue\"}", "routes", "[]");
	check("nexthops", "{\"vrf\": \"main\"}", "nexthops.0.interface", "\"left\"");
	check("routes", "{\"port\": \"right\"}", "routes.0.prefix", "\"13.0.0.0/8\"");
	check("routes", "{\"port\": \"left.9\"}", "error",
		"\"parameter \\\"port\\\": expected the name of a port or VLAN interface; 'dl3 "
		"show mirror' lists them\"");
}

static void routes_are_changed_in_linux(void **state)
{
	check("routes.change",
		"{\"changes\": [{\"op\": \"add\", \"route\": \"20.0.0.0/8 dev left\"}]}", "error",
		"\"Linux is the control plane; configure routes there: ip -n NAMESPACE route add "
		"PREFIX via ADDRESS\"");
}

static void a_reload_changes_limits_and_leaves_the_table(void **state)
{
	const struct fib *before = ctx.fib;

	write_file(PORTS "linux: {classes: {ttl: {rate: 7, burst: 3}}}\n");
	check("reload", "{}", "reloads", "1");
	check("taps", "{}", "classes.6.rate_pps", "7");
	assert_ptr_equal(ctx.fib, before);
	assert_int_equal(fake.n_restored, 1);
	assert_int_equal(fake.n_changes, 0);
	check("route", "{\"address\": \"10.1.2.3\"}", "found", "true");
}

// Linux may have changed the MTU of the port meanwhile.
static void a_reload_leaves_the_mtu_to_linux(void **state)
{
	write_file("ports:\n  - {name: left, device: x}\n"
		   "  - {name: right, device: y, mtu: 9000, martians: pass}\nlinux:\n");
	check("reload", "{}", "reloads", "1");
	assert_int_equal(fake.n_changes, 1);
	assert_int_equal(fake.mtu[1], 1500); // as returned by port_info
}

static void a_reload_whose_taps_cannot_be_made_changes_nothing(void **state)
{
	fake.refuse_restore = true;
	write_file(PORTS "linux: {classes: {ttl: {rate: 7}}}\n");
	check("reload", "{}", "error", "\"left: its name is taken\"");
	check("taps", "{}", "classes.6.rate_pps", "1000");
	write_file(PORTS);
	check("reload", "{}", "error", "\"needs a restart: linux; nothing was changed\"");
}

static void the_modules_of_linux_open_in_order(void **state)
{
	struct error error = {""};

	ctx.netlink = NULL;
	ctx.wake = wake_open(&error);
	fake.refuse_start = true;
	assert_int_equal(api_follow(&ctx, &error), -EAGAIN);
	assert_null(ctx.netlink);
	fake.refuse_start = false;
	assert_int_equal(api_follow(&ctx, &error), 0);
	assert_ptr_equal(ctx.netlink, fake_sync());
	api_unfollow(&ctx);
	api_unfollow(&ctx);
	assert_string_equal(fake.calls, "ttsS");
	assert_null(ctx.netlink);
	close(ctx.wake);
}

static void the_loop_comes_back_at_once_while_the_mirror_has_more(void **state)
{
	struct error error;

	fake.netlink_has_more = true;
	assert_int_equal(api_poll(&ctx, &error), 0);
	assert_true(ctx.is_busy);
	fake.netlink_has_more = false;
	assert_int_equal(api_poll(&ctx, &error), 0);
	assert_false(ctx.is_busy);
	assert_int_equal(fake.n_steps, 2);
	assert_int_equal(fake.n_taps_polled, 1);
}

static void is_ready_once_the_tables_are_complete(void **state)
{
	fib_set_synced(ctx.fib, false); // as before netlink has filled them
	assert_false(api_has_become_ready(&ctx));
	check("status", "{}", "ready", "false");
	check("status", "{}", "ready_after_s", "null");
	fib_set_synced(ctx.fib, true);
	assert_true(api_has_become_ready(&ctx));
	assert_false(api_has_become_ready(&ctx)); // said once
	check("status", "{}", "ready", "true");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_ctx, fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_account_counts_what_taps_took_and_did_not),
		TEST(shows_what_linux_has_beside_the_tables),
		TEST(taps_tells_of_each_port_and_class),
		TEST(mirror_tells_its_state_and_links),
		TEST(unsupported_is_a_list_with_an_end),
		TEST(addresses_of_its_bridges_are_linuxs_to_flush),
		TEST(verify_lists_differences_up_to_its_limit),
		TEST(explains_a_packet_that_workers_forward),
		TEST(names_no_route_that_linux_does_not_tell),
		TEST(explains_a_packet_that_is_left_to_linux),
		TEST(a_vrf_is_one_that_linux_has),
		TEST(routes_are_changed_in_linux),
		TEST(a_reload_changes_limits_and_leaves_the_table),
		TEST(a_reload_leaves_the_mtu_to_linux),
		TEST(a_reload_whose_taps_cannot_be_made_changes_nothing),
		TEST(the_modules_of_linux_open_in_order),
		TEST(the_loop_comes_back_at_once_while_the_mirror_has_more),
		TEST(is_ready_once_the_tables_are_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
