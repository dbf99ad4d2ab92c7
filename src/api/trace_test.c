// What the method trace tells of a packet, and what it refuses.
#include "api/fixture.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT                                                                                       \
	"ports:\n"                                                                                 \
	"  - {name: left, device: x, addresses: [192.0.2.1/24]}\n"                                 \
	"  - {name: right, device: y, addresses: [198.51.100.1/24]}\n"                             \
	"neighbours:\n  - 198.51.100.2 lladdr 02:00:00:00:00:03 dev right\n"                       \
	"routes:\n  - 10.0.0.0/8 via 198.51.100.2 dev right\n"                                     \
	"acl:\n  lists:\n    edge: {rules: [], default: deny}\n"                                   \
	"  use:\n    - {interface: left, direction: in, list: edge}\n"

static struct trace trace;
static uint8_t sent[4] = {0xde, 0xad, 0x00, 0x0f};

static int make_ctx(void **state)
{
	fixture_open(TEXT);
	trace = (struct trace){.n_received = 3,
		.n_steps = 2,
		.step = {0, 1},
		.dscp = TRACE_KEEP_DSCP,
		.mirror = IFACE_NONE};
	fake.trace = &trace;
	return 0;
}

// A packet to 10.1.2.3 that is forwarded.
static void set_forwarded(void)
{
	const struct acl_view *view = acl_live_view(acl_live(ctx.acls));

	trace.is_parsed = trace.has_hop = true;
	trace.ttl = 64;
	trace.dst4 = 0x0a010203;
	trace.hop = trace.first_hop =
		fib_lookup(ctx.fib, 0, &(struct wire_addr){.bytes = {10, 1, 2, 3}, .family = 4});
	trace.n_rules = 1;
	trace.rule[0] = (struct trace_rule){.list = acl_view_list(view, ACL_IN, 0),
		.step = 1,
		.direction = ACL_IN};
	trace.n_ends = 3;
	for (unsigned i = 0; i < 3; i++)
		trace.end[i] = (struct trace_end){.kind = TRACE_SENT,
			.step = 1,
			.class = CLASS_NONE,
			.port = 1,
			.n_bytes = i == 1 ? 2 : 4,
			.bytes = sent};
	trace.account = (struct stats_account){.received = 1, .copied = 2, .sent = 3};
}

static void a_forwarded_packet_has_its_route_rules_and_bytes(void **state)
{
	set_forwarded();
	check_all("trace", "{\"port\": \"left\", \"frame\": \"01 02:FF\"}",
		(struct wanted[]){{"port", "\"left\""}, {"cut_to", "null"},
			{"steps", "[\"rx\", \"lookup\"]"}, {"bridge", "null"}, {"family", "4"},
			{"interface", "\"left\""}, {"vrf", "\"main\""}, {"ttl", "64"},
			{"vlans", "[]"}, {"flow", "null"},
			{"route", "{\"prefix\": \"10.0.0.0/8\", \"kind\": \"via\", "
				  "\"workers_agree\": true}"},
			{"next_hop.via", "\"198.51.100.2\""}, {"next_hop.interface", "\"right\""},
			{"next_hop.mac", "\"02:00:00:00:00:03\""}, {"next_hop.members", "0"},
			{"rules.0.list", "\"edge\""}, {"rules.0.number", "0"},
			{"rules.0.do", "\"deny\""}, {"rules.0.rule", "null"},
			{"rules.0.police", "null"}, {"rules.0.direction", "\"in\""},
			{"ends.0.do", "\"send\""}, {"ends.0.port", "\"right\""},
			{"ends.0.verdict", "\"forward\""}, {"ends.0.frame", "0"},
			{"ends.1.frame", "1"}, {"ends.2.frame", "0"},
			{"frames", "[\"dead000f\", \"dead\"]"},
			{"account", "{\"received\": 1, \"copied\": 2, \"sent\": 3, \"punted\": 0, "
				    "\"dropped\": 0}"},
			{NULL, NULL}});
	assert_int_equal(fake.n_traced, 3);
	assert_memory_equal(fake.traced, ((uint8_t[]){1, 2, 0xff}), 3);
	assert_int_equal(fake.traced_port, 0);
}

static void a_frame_that_is_no_packet_has_no_route(void **state)
{
	trace.n_ends = 1;
	trace.end[0] = (struct trace_end){.kind = TRACE_DROPPED,
		.verdict = VERDICT_RUNT,
		.class = CLASS_NONE,
		.n_bytes = 2,
		.bytes = sent};
	trace.n_received = 2;
	check_all("trace", "{\"port\": \"right\", \"frame\": \"0102ff\"}",
		(struct wanted[]){{"cut_to", "2"}, {"family", "null"}, {"route", "null"},
			{"next_hop", "null"}, {"ends.0.do", "\"drop\""},
			{"ends.0.verdict", "\"runt\""},
			{"ends.0.text", "\"shorter than its headers indicate\""}, {NULL, NULL}});
	assert_int_equal(fake.traced_port, 1);
}

static void expect_refusal(const char *params, const char *reason)
{
	json_t *reply = call("trace", params);
	const char *text = json_string_value(json_object_get(reply, "error"));

	if (!text || !strstr(text, reason))
		fail_msg("%s: %s, not '%s'", params, text ? text : "accepted", reason);
	json_decref(reply);
}

static void bad_parameters_get_one_sentence(void **state)
{
	static const char *const rows[][2] = {
		{"{}", "port"},
		{"{\"port\": \"left\"}", "frame"},
		{"{\"port\": 1, \"frame\": \"00\"}", "port"},
		{"{\"port\": \"left\", \"frame\": 7}", "frame"},
		{"{\"port\": \"up\", \"frame\": \"00\"}", "there is no port 'up'"},
		{"{\"port\": \"left\", \"frame\": \"\"}", "1 to 9216"},
		{"{\"port\": \"left\", \"frame\": \" : \"}", "1 to 9216"},
		{"{\"port\": \"left\", \"frame\": \"0\"}", "1 to 9216"},
		{"{\"port\": \"left\", \"frame\": \"0x00\"}", "1 to 9216"},
		{"{\"port\": \"left\", \"frame\": \"00\", \"more\": 1}", "more"},
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		expect_refusal(rows[i][0], rows[i][1]);
	assert_int_equal(fake.n_traced, 0);
	fake.trace = NULL;
	expect_refusal("{\"port\": \"left\", \"frame\": \"00\"}", "not enough memory");
}

static void the_longest_frame_is_read_and_no_longer_one(void **state)
{
	static char digits[2 * (TRACE_FRAME_MAX + 1) + 1], params[sizeof(digits) + 64];

	for (unsigned n = TRACE_FRAME_MAX; n <= TRACE_FRAME_MAX + 1; n++) {
		memset(digits, 'a', 2 * n);
		snprintf(params, sizeof(params), "{\"port\": \"left\", \"frame\": \"%s\"}", digits);
		if (n <= TRACE_FRAME_MAX)
			json_decref(call("trace", params));
		else
			expect_refusal(params, "1 to 9216");
		assert_int_equal(fake.n_traced, TRACE_FRAME_MAX);
	}
}

// Hex is read as what it is, or refused.
static void random_text_is_read_or_refused(void **state)
{
	static const char some[] = "0123456789abcdefABCDEF :xg-\x7f";
	char text[40], params[100];

	srand(1);
	for (unsigned i = 0; i < 3000; i++) {
		const unsigned n = rand() % (sizeof(text) - 1), few = rand() % 2 ? 22 : 24;

		for (unsigned k = 0; k < n; k++)
			text[k] = some[rand() % (rand() % 30 ? few : sizeof(some) - 1)];
		text[n] = 0;
		snprintf(params, sizeof(params), "{\"port\": \"left\", \"frame\": \"%s\"}", text);
		fake.n_traced = 0;
		json_t *reply = call("trace", params);
		const bool is_refused = json_object_get(reply, "error");

		assert_int_equal(is_refused, fake.n_traced == 0);
		assert_in_range(fake.n_traced, 0, n / 2);
		json_decref(reply);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_ctx, fixture_close)
	const struct CMUnitTest tests[] = {
		TEST(a_forwarded_packet_has_its_route_rules_and_bytes),
		TEST(a_frame_that_is_no_packet_has_no_route),
		TEST(bad_parameters_get_one_sentence),
		TEST(the_longest_frame_is_read_and_no_longer_one),
		TEST(random_text_is_read_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
