// The methods of flows as seen by a client: changes, pages, ended flows, reloads; with a real table
// and fake ports.
#include "api/flows_fixture.h"

#include "api/flow_ended_file.h"
#include "api/flows.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void a_flow_is_found_as_it_was_added(void **state)
{
	change(ADD(1, VIA), 1);
	json_t *reply = call("flows.find", "{" KEY(1) "}");
	expect(reply, "found", "true");
	expect(reply, "flow.action",
		"{\"do\": \"via\", \"via\": \"192.0.2.2\", \"dev\": \"left\", \"dscp\": 46, "
		"\"mirror\": \"right\", \"subscriber\": 12}");
	expect(reply, "flow.src", "\"10.0.0.1\"");
	expect(reply, "flow.dst", "\"10.1.0.1\"");
	expect(reply, "flow.protocol", "\"udp\"");
	expect(reply, "flow.src_port", "7");
	expect(reply, "flow.dst_port", "53");
	expect(reply, "flow.vrf", "\"main\"");
	expect(reply, "flow.packets", "0");
	json_decref(reply);
	check("flows.find", "{" KEY(2) "}", "found", "false");
	change(ADD(2, "{\"do\": \"via\", \"dev\": \"right\"}"), 1); // to the peer
	check("flows.find", "{" KEY(2) "}", "flow.action", "{\"do\": \"via\", \"dev\": \"right\"}");
	change("{\"op\": \"replace\", " KEY(2) ", \"idle_s\": 300, \"action\": {\"do\": "
					       "\"drop\"}}",
		1);
	check("flows.find", "{" KEY(2) "}", "flow.action", "{\"do\": \"drop\"}");
	check("flows.find", "{" KEY(2) "}", "flow.idle_s", "300");
	change("{\"op\": \"delete\", " KEY(2) "}", 1);
	check("flows.find", "{" KEY(2) "}", "found", "false");
}

static void tells_of_the_table(void **state)
{
	change(ADD(1, VIA) ", " ADD(2, VIA) ", " ADD(3, "{\"do\": \"punt\"}"), 3);
	check_all("flows", "{}",
		(struct wanted[]){
			{"ipv4.flows", "3"},
			{"ipv4.max", "1000"},
			{"ipv6.flows", "0"},
			{"ipv6.max", "100"},
			{"actions", "2"},
			{"nexthops", "1"},
			{"added", "3"},
			{"missing", "\"route\""},
			{"timeouts_s", "[30, 300]"},
			{NULL, NULL},
		});
	json_t *status = call("status", "{}");
	assert_true(json_integer_value(json_object_get(json_object_get(status, "table"),
			    "flow_bytes")) > 1000 * 50);
	json_decref(status);
}

// What the last user of an action leaves behind.
static void a_next_hop_is_released_with_the_last_flow_that_has_it(void **state)
{
	change(ADD(1, VIA) ", " ADD(2, VIA) ", " ADD(3, "{\"do\": \"via\", \"via\": "
							"\"192.0.2.2\", \"dev\": \"left\"}"),
		3);
	check("flows", "{}", "nexthops", "1");
	check("flows", "{}", "actions", "2");
	change("{\"op\": \"delete\", " KEY(1) "}, {\"op\": \"delete\", " KEY(3) "}", 2);
	wait_for("flows", "{}", "actions", "1");
	check("flows", "{}", "nexthops", "1");
	change("{\"op\": \"delete\", " KEY(2) "}", 1);
	wait_for("flows", "{}", "nexthops", "0");
	check("flows", "{}", "actions", "0");
	change(ADD(1, VIA), 1);
	check("flows", "{}", "nexthops", "1");
}

struct refusal {
	const char *change, *reason;
};

#define NO_ACTION "{\"op\": \"add\", " KEY(9)
#define DO(action) NO_ACTION ", \"action\": " action "}"

static const struct refusal refusals[] = {
	{"1", "changes[1]: expected an object, {\"op\": ...}"},
	{"{}", "changes[1]: missing parameter \"src\""},
	{"{\"op\": \"burn\", " KEY(9) "}",
		"changes[1]: \"op\" is \"burn\"; expected add, replace or delete"},
	{NO_ACTION "}", "changes[1]: missing parameter \"action\""},
	{NO_ACTION ", \"colour\": 1}",
		"changes[1]: unknown parameter \"colour\"; the method 'help' lists the "
		"parameters"},
	{DO("5"), "changes[1]: action: expected an object, {\"do\": ...}"},
	{DO("{}"), "changes[1]: action: missing parameter \"do\""},
	{DO("{\"do\": \"burn\"}"),
		"changes[1]: action: \"do\" is \"burn\"; expected route, via, drop or punt"},
	{DO("{\"do\": \"drop\", \"dscp\": 4}"),
		"changes[1]: action: \"dscp\" and \"mirror\" are for packets that are forwarded; "
		"\"do\" is \"drop\""},
	{DO("{\"do\": \"route\", \"dev\": \"left\"}"),
		"changes[1]: action: \"via\" and \"dev\" are for \"do\": \"via\", not \"route\""},
	{DO("{\"do\": \"route\", \"dscp\": 64}"),
		"changes[1]: action: parameter \"dscp\": expected a number from 0 to 63"},
	{DO("{\"do\": \"route\", \"mirror\": \"up\"}"),
		"changes[1]: action: mirror: unknown interface \"up\"; 'dl3 show ports' lists "
		"them"},
	{DO("{\"do\": \"route\", \"subscriber\": 4294967296}"),
		"changes[1]: action: parameter \"subscriber\": expected a number from 0 to "
		"4294967295"},
	{DO("{\"do\": \"via\", \"via\": \"192.0.2.2\"}"),
		"changes[1]: action: missing \"dev\": expected the interface of the next hop"},
	{DO("{\"do\": \"via\", \"via\": \"192.0.2\", \"dev\": \"left\"}"),
		"changes[1]: action: via: invalid address \"192.0.2\": expected an IPv4 or IPv6 "
		"address"},
	{DO("{\"do\": \"via\", \"via\": \"192.0.2.2\", \"dev\": \"\"}"),
		"changes[1]: action: missing \"dev\": expected the interface of the next hop"},
	{DO("{\"do\": \"via\", \"via\": \"192.0.2.2\", \"dev\": \"left.7\"}"),
		"changes[1]: action: dev: unknown interface \"left.7\"; 'dl3 show ports' lists "
		"them"},
	{DO("{\"do\": \"via\", \"dev\": \"left\"}"),
		"changes[1]: action: missing \"via\": interface left has no peer; expected the "
		"address of a neighbour"},
	{DO("{\"do\": \"via\", \"via\": \"192.0.2.1\", \"dev\": \"left\"}"),
		"changes[1]: action: via: 192.0.2.1 is an address of the router itself; expected "
		"that of a neighbour"},
	{DO("{\"do\": \"via\", \"via\": \"224.0.0.1\", \"dev\": \"left\"}"),
		"changes[1]: action: via: 224.0.0.1 cannot be the address of a neighbour"},
	{NO_ACTION ", \"action\": {\"do\": \"drop\"}, \"idle_s\": 31}",
		"changes[1]: parameter \"idle_s\" is 31; expected one of the timeouts in the "
		"configuration file: 30, 300"},
	{NO_ACTION ", \"action\": {\"do\": \"drop\"}, \"idle_s\": 30, \"ends_s\": 5}",
		"changes[1]: \"idle_s\" and \"ends_s\" are both given; expected one of them"},
	{NO_ACTION ", \"action\": {\"do\": \"drop\"}, \"ends_s\": 345601}",
		"changes[1]: parameter \"ends_s\": expected a number from 0 to 345600"},
	{"{\"op\": \"delete\", \"src\": \"10.0.0\", \"dst\": \"10.1.0.1\", \"protocol\": 6}",
		"changes[1]: parameter \"src\": invalid address \"10.0.0\": expected an IPv4 or "
		"IPv6 address"},
	{"{\"op\": \"delete\", \"src\": \"10.0.0.1\", \"dst\": \"10.1.0.1\", \"protocol\": 256}",
		"changes[1]: parameter \"protocol\": expected a number from 0 to 255, or tcp, udp, "
		"icmp, icmpv6, sctp, dccp, udplite, gre, esp"},
	{"{\"op\": \"delete\", \"src\": \"10.0.0.1\", \"dst\": \"10.1.0.1\", \"protocol\": "
	 "\"tpc\"}",
		"changes[1]: parameter \"protocol\": expected a number from 0 to 255, or tcp, udp, "
		"icmp, icmpv6, sctp, dccp, udplite, gre, esp"},
	{"{\"op\": \"delete\", " KEY(9) ", \"vrf\": \"red\"}",
		"changes[1]: unknown VRF \"red\": VRFs require the key \"linux\" in the "
		"configuration file"},
	{"{\"op\": \"delete\", " KEY(9) "}", "changes[1]: there is no such flow"},
	{ADD(1, "{\"do\": \"drop\"}"),
		"changes[1]: the flow exists already; use \"replace\" (dl3 flow change)"},
};

// The changes before and after it are applied.
static void each_change_is_refused_by_itself(void **state)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		char params[2048];
		snprintf(params, sizeof(params), "{\"changes\": [%s, %s, %s]}",
			ADD(1, "{\"do\": \"drop\"}"), refusals[i].change,
			ADD(2, "{\"do\": \"route\"}"));
		json_t *reply = call("flows.change", params);
		const json_t *first = json_array_get(json_object_get(reply, "results"), 0);
		const char *said = json_string_value(json_object_get(first, "reason"));
		if (!said || strcmp(said, refusals[i].reason)) {
			print_error("for:  %s\nsaid: %s\nnot:  %s\n\n", refusals[i].change, said,
				refusals[i].reason);
			wrong++;
		}
		expect(reply, "applied", "2");
		expect(reply, "refused", "1");
		expect(reply, "results.0.index", "1");
		json_decref(reply);
		change("{\"op\": \"delete\", " KEY(1) "}, {\"op\": \"delete\", " KEY(2) "}", 2);
	}
	assert_int_equal(wrong, 0);
	wait_for("flows", "{}", "actions", "0"); // nothing is left in use
	check("flows", "{}", "nexthops", "0");
}

// One more than there may be, so that the control loop is not held up.
static void a_batch_has_a_limit(void **state)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < 1001; i++)
		json_array_append_new(list, json_object());
	json_t *params = json_pack("{s:o}", "changes", list);
	struct error error;
	assert_null(method_flows_change(&ctx, params, &error));
	assert_string_equal(error.text,
		"parameter \"changes\": expected a list of 0 to 1000 members");
	json_array_remove(list, 1000);
	json_t *reply = method_flows_change(&ctx, params, &error);
	assert_int_equal(json_array_size(json_object_get(reply, "results")), 1000);
	json_decref(reply);
	json_decref(params);
}

static void without_the_key_each_method_says_so(void **state)
{
	static const char *const methods[][2] = {{"flows", "{}"},
		{"flows.change", "{\"changes\": []}"}, {"flows.find", "{" KEY(1) "}"},
		{"flows.list", "{}"}, {"flows.load", "{}"}, {"flows.save", "{}"},
		{"flows.job", "{}"}, {"flows.ended", "{}"}};

	api_close_flows(&ctx);
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		check(methods[i][0], methods[i][1], "error",
			"\"there is no flow table: the configuration file has no key "
			"\\\"flow\\\"\"");
	check("status", "{}", "table.flow_bytes", "null");
}

static void a_full_table_refuses_and_keeps_what_it_has(void **state)
{
	char params[256];

	for (unsigned i = 0; i < 1001; i++) {
		snprintf(params, sizeof(params),
			"{\"changes\": [{\"op\": \"add\", \"src\": \"10.2.%u.%u\", \"dst\": "
			"\"10.1.0.1\", \"protocol\": 6, \"action\": {\"do\": \"drop\"}}]}",
			i / 256, i % 256);
		check("flows.change", params, "applied", i < 1000 ? "1" : "0");
	}
	check("flows.change", params, "results.0.reason", "\"changes[0]: the table is full\"");
	check("flows", "{}", "ipv4.flows", "1000");
	check("flows", "{}", "ipv4.refused", "2");
}

static void turns_pages(void **state)
{
	change(ADD(1, VIA) ", " ADD(2, VIA) ", " ADD(3, VIA), 3);
	change("{\"op\": \"add\", \"src\": \"2001:db8::1\", \"dst\": \"2001:db8::2\", "
	       "\"protocol\": 58, \"src_port\": 77, \"action\": {\"do\": \"route\"}}",
		1);
	assert_int_equal(count_pages("", 1), 4);
	assert_int_equal(count_pages("", 3), 4);
	assert_int_equal(count_pages(", \"vrf\": \"main\"", 1000), 4);
	check("flows.list", "{\"after\": 3}", "flows.0.protocol", "\"icmpv6\"");
	check("flows.list", "{\"after\": 67108863}", "flows", "[]");
	check("flows.list", "{\"limit\": 0}", "error",
		"\"parameter \\\"limit\\\": expected a number from 1 to 1000\"");
}

static void flows_end_and_are_told_in_order(void **state)
{
	change("{\"op\": \"add\", " KEY(
		       1) ", \"idle_s\": 30, \"action\": {\"do\": \"drop\", "
			  "\"subscriber\": 9}}, {\"op\": \"add\", " KEY(
				  2) ", \"ends_s\": 10, \"action\": "
				     "{\"do\": \"route\"}}, " ADD(3, "{\"do\": \"punt\"}"),
		3);
	wait_for("flows", "{}", "reached_end", "1");
	wait_for("flows", "{}", "idle", "1");
	change("{\"op\": \"delete\", " KEY(3) "}", 1);
	wait_for("flows.ended", "{}", "next", "3");
	check_all("flows.ended", "{}",
		(struct wanted[]){
			{"ended.0.seq", "1"},
			{"ended.0.reason", "\"end\""},
			{"ended.0.src", "\"10.0.0.2\""},
			{"ended.1.reason", "\"idle\""},
			{"ended.1.subscriber", "9"},
			{"ended.1.do", "\"drop\""},
			{"ended.1.vrf", "\"main\""},
			{"ended.2.reason", "\"deleted\""},
			{"ended.2.packets", "0"},
			{"lost", "0"},
			{"more", "false"},
			{NULL, NULL},
		});
	check("flows.ended", "{\"after\": 1, \"limit\": 1}", "ended.0.seq", "2");
	check("flows.ended", "{\"after\": 1, \"limit\": 1}", "more", "true");
	check("flows.ended", "{\"after\": 1, \"limit\": 1}", "next", "2");
	check("flows.ended", "{\"after\": 3}", "ended", "[]");
	check("flows.ended", "{\"after\": 3}", "next", "3");
	check("flows.ended", "{\"after\": 9000}", "next", "9000");
}

static void each_ended_flow_is_a_line_of_the_file(void **state)
{
	char line[1024];
	unsigned n = 0;

	for (unsigned i = 0; i < 300; i++)
		change(ADD(1, "{\"do\": \"drop\"}") ", {\"op\": \"delete\", " KEY(1) "}", 2);
	wait_for("flows", "{}", "deleted", "300");
	wait_for("flows.ended", "{\"after\": 300}", "next", "300");
	api_close_flows(&ctx);
	FILE *lines = fopen(ended_path, "r");
	assert_non_null(lines);
	while (fgets(line, sizeof(line), lines)) {
		json_t *json = json_loads(line, 0, NULL);
		assert_non_null(json);
		assert_int_equal(json_integer_value(json_object_get(json, "seq")), ++n);
		expect(json, "src", "\"10.0.0.1\"");
		expect(json, "protocol", "\"udp\"");
		expect(json, "reason", "\"deleted\"");
		json_decref(json);
	}
	fclose(lines);
	assert_int_equal(n, 300);
}

static long number_in(const char *method, const char *params, const char *key)
{
	json_t *reply = call(method, params);
	const long number = json_integer_value(json_object_get(reply, key));

	json_decref(reply);
	return number;
}

static void end_one(const char *next)
{
	change(ADD(1, "{\"do\": \"drop\"}") ", {\"op\": \"delete\", " KEY(1) "}", 2);
	wait_for("flows.ended", "{}", "next", next);
}

// A reader notices that sequence numbers begin anew.
static void sequence_numbers_belong_to_a_start(void **state)
{
	char params[128];

	end_one("1");
	end_one("2");
	end_one("3");
	const long start = number_in("flows.ended", "{}", "start");
	assert_true(start > 0);
	snprintf(params, sizeof(params), "{\"after\": 2, \"start\": %ld}", start);
	check("flows.ended", params, "ended.0.seq", "3");
	api_close_flows(&ctx);
	while (clock_wall_ms() <= (uint64_t)start)
		continue;
	open_flows();
	end_one("1");
	assert_int_not_equal(number_in("flows.ended", "{}", "start"), start);
	check("flows.ended", params, "ended.0.seq", "1");
	check("flows.ended", params, "lost", "0");
	check("flows.ended", params, "next", "1");
}

static void the_file_of_ended_flows_is_never_replaced(void **state)
{
	char params[256], wanted[512], text[1024];

	for (unsigned i = 0; i < 2; i++) { // itself, another name of it
		snprintf(params, sizeof(params), "{\"path\": \"%s%s\"}", ended_path, i ? "2" : "");
		snprintf(text, sizeof(text), "%s2", ended_path);
		assert_true(!i || !link(ended_path, text));
		snprintf(wanted, sizeof(wanted),
			"\"saving to %s%s would replace the file of ended flows (flow: "
			"ended_file); expected another \\\"path\\\"\"",
			ended_path, i ? "2" : "");
		check("flows.save", params, "error", wanted);
	}
	snprintf(text, sizeof(text),
		PORTS "flow: {ipv4: 1000, ipv6: 100, file: %s, ended_file: %s2}\n", ended_path,
		ended_path);
	write_file(text);
	snprintf(wanted, sizeof(wanted),
		"\"flow: ended_file: %s2 is the file of the key \\\"file\\\", too; expected "
		"another one\"",
		ended_path);
	check("reload", "{}", "error", wanted);
}

static void a_line_that_was_cut_off_is_ended_first(void **state)
{
	char line[1024];

	api_close_flows(&ctx);
	FILE *lines = fopen(ended_path, "a");
	fputs("{\"seq\": 3", lines);
	fclose(lines);
	open_flows();
	change("{\"op\": \"add\", \"src\": \"2001:db8::1\", \"dst\": \"::5\", \"protocol\": 200, "
	       "\"action\": {\"do\": \"punt\", \"subscriber\": 4294967295}}, {\"op\": \"delete\", "
	       "\"src\": \"2001:db8::1\", \"dst\": \"::5\", \"protocol\": 200}",
		2);
	wait_for("flows.ended", "{}", "next", "1");
	api_close_flows(&ctx);
	lines = fopen(ended_path, "r");
	assert_non_null(fgets(line, sizeof(line), lines));
	assert_string_equal(line, "{\"seq\": 3\n");
	assert_non_null(fgets(line, sizeof(line), lines));
	json_t *json = json_loads(line, 0, NULL);
	assert_non_null(json);
	json_object_del(json, "start");
	json_object_del(json, "ended_ms");
	json_object_del(json, "idle_for_s");
	json_t *whole = json_pack("{s:O}", "row", json);
	expect(whole, "row",
		"{\"seq\": 1, \"reason\": \"deleted\", \"src\": \"2001:db8::1\", \"dst\": \"::5\", "
		"\"protocol\": 200, \"src_port\": 0, \"dst_port\": 0, \"vrf\": \"main\", \"do\": "
		"\"punt\", \"subscriber\": 4294967295, \"packets\": 0, \"bytes\": 0}");
	json_decref(whole);
	json_decref(json);
	fclose(lines);
}

static void a_reload_keeps_flows_and_their_next_hops(void **state)
{
	char text[1024];

	change(ADD(1, VIA) ", {\"op\": \"add\", " KEY(2) ", \"idle_s\": 300, \"action\": {\"do\": "
							 "\"drop\"}}",
		2);
	// Another order, a port more, another timeout.
	snprintf(text, sizeof(text),
		"ports:\n  - {name: new, device: z}\n  - {name: right, device: y, peer: "
		"02:00:00:00:00:99}\n  - {name: left, device: x, addresses: [192.0.2.1/24]}\n"
		"neighbours: [192.0.2.2 lladdr 02:00:00:00:00:07 dev left]\n"
		"flow: {ipv4: 1000, ipv6: 100, timeouts: [30, 600, 5], missing: drop, ended_file: "
		"%s}\n",
		ended_path);
	write_file(text);
	check("reload", "{}", "reloads", "1");
	check("flows.find", "{" KEY(1) "}", "flow.action",
		"{\"do\": \"via\", \"via\": \"192.0.2.2\", \"dev\": \"left\", \"dscp\": 46, "
		"\"mirror\": \"right\", \"subscriber\": 12}");
	check("flows.find", "{" KEY(2) "}", "flow.idle_s", "600");
	check("flows", "{}", "missing", "\"drop\"");
	check("flows", "{}", "nexthops", "1");
	assert_true(ctx.flows->drops_missing);
	assert_int_equal(access(ended_path, F_OK), 0);
	change("{\"op\": \"delete\", " KEY(1) "}", 1);
	wait_for("flows", "{}", "nexthops", "0");
}

static void a_reload_that_fails_keeps_all_settings(void **state)
{
	write_file(PORTS "flow: {ipv4: 1000, ipv6: 100, missing: drop, ended_file: "
			 "/nonexistent/ended}\n");
	check("reload", "{}", "error",
		"\"flow: ended_file: cannot open /nonexistent/ended: No such file or directory\"");
	check("flows", "{}", "missing", "\"route\"");
	write_file(PORTS "flow: {ipv4: 2000, ipv6: 100, missing: drop}\n");
	check("reload", "{}", "error", "\"needs a restart: flow.ipv4; nothing was changed\"");
	check("flows", "{}", "timeouts_s", "[30, 300]");
}

static void the_number_of_an_interface_is_kept_while_actions_have_it(void **state)
{
	assert_null(flows_iface_kept(&ctx, 0));
	change(ADD(1, VIA) ", " ADD(2, VIA), 2);
	assert_string_equal(flows_iface_kept(&ctx, 0), "left");
	assert_string_equal(flows_iface_kept(&ctx, 1), "right"); // mirrors
	flows_iface_named(&ctx, 0, "renamed");
	assert_string_equal(flows_iface_kept(&ctx, 0), "renamed");
	flows_iface_named(&ctx, 0, NULL);
	change("{\"op\": \"delete\", " KEY(1) "}", 1);
	poll_once();
	assert_string_equal(flows_iface_kept(&ctx, 0), "renamed");
	change("{\"op\": \"delete\", " KEY(2) "}", 1);
	wait_for("flows", "{}", "actions", "0");
	assert_null(flows_iface_kept(&ctx, 0));
	assert_null(flows_iface_kept(&ctx, 1));
}

// Its number is not given to another port, so that the flow cannot lead there.
static void a_port_that_is_removed_and_comes_back(void **state)
{
	const char *with_others =
		"ports:\n  - {name: right, device: y, peer: 02:00:00:00:00:99}\n  - {name: new, "
		"device: z}\nflow: {ipv4: 1000, ipv6: 100}\n";

	change(ADD(1, "{\"do\": \"via\", \"via\": \"192.0.2.2\", \"dev\": \"left\"}"), 1);
	write_file(with_others);
	check("reload", "{}", "error", "null");
	check("flows.find", "{" KEY(1) "}", "flow.action.dev", "\"left\"");
	check("ports", "{}", "ports.0.name", "\"right\"");
	const struct port_table_settings *ports = config_ports(ctx.config);
	assert_string_equal(ports->ports[0].name, "left");
	assert_true(ports->ports[0].is_removed);
	write_file(PORTS "flow: {ipv4: 1000, ipv6: 100}\n");
	check("reload", "{}", "error", "null");
	check("flows.find", "{" KEY(1) "}", "flow.action.dev", "\"left\"");
	assert_false(config_ports(ctx.config)->ports[0].is_removed);
}

// It may be the table of a dl3d which runs with this file: a warning.
static void memory_that_others_have_is_no_mistake_of_the_file(void **state)
{
	const uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	const uint64_t wanted = (all + pages_available()) / 2;
	const unsigned n_workers = MIN_OF(wanted / (FLOW_MAX * 16ull) + 1, 128ull);
	const uint64_t n_flows = wanted / (37 + 16 * n_workers);
	struct config *config;
	struct error error = {""};
	char text[512];

	if (n_flows > FLOW_MAX || wanted <= pages_available() + (64 << 20))
		skip(); // a machine with more memory than a table can have, or without other
		        // programs
	snprintf(text, sizeof(text), PORTS "flow: {ipv4: %llu}\n", (unsigned long long)n_flows);
	write_file(text);
	assert_int_equal(config_load(&config, file, &error), 0);
	assert_int_equal(api_check_flows(config, n_workers, &error), 0);
	assert_non_null(strstr(error.text, " of memory are available"));
	config_free(config);
}

static void memory_that_is_short_is_told_before_anything_starts(void **state)
{
	struct config *config;
	struct error error = {""};

	write_file(PORTS "flow: {ipv4: 67108863}\n");
	assert_int_equal(config_load(&config, file, &error), 0);
	assert_int_not_equal(api_check_flows(config, 128, &error), 0);
	assert_non_null(strstr(error.text, "a table for 67108863 flows takes "));
	config_free(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_flow_is_found_as_it_was_added),
		TEST(tells_of_the_table),
		TEST(a_next_hop_is_released_with_the_last_flow_that_has_it),
		TEST(each_change_is_refused_by_itself),
		TEST(a_batch_has_a_limit),
		TEST(without_the_key_each_method_says_so),
		TEST(a_full_table_refuses_and_keeps_what_it_has),
		TEST(turns_pages),
		TEST(flows_end_and_are_told_in_order),
		cmocka_unit_test_setup_teardown(each_ended_flow_is_a_line_of_the_file,
			make_ctx_with_ended_file, close_ctx),
		TEST(sequence_numbers_belong_to_a_start),
		cmocka_unit_test_setup_teardown(the_file_of_ended_flows_is_never_replaced,
			make_ctx_with_ended_file, close_ctx),
		cmocka_unit_test_setup_teardown(a_line_that_was_cut_off_is_ended_first,
			make_ctx_with_ended_file, close_ctx),
		TEST(a_reload_keeps_flows_and_their_next_hops),
		TEST(a_reload_that_fails_keeps_all_settings),
		TEST(the_number_of_an_interface_is_kept_while_actions_have_it),
		TEST(a_port_that_is_removed_and_comes_back),
		TEST(memory_that_is_short_is_told_before_anything_starts),
		TEST(memory_that_others_have_is_no_mistake_of_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
