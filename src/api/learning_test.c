// Flows that are learnt: from what workers tell to entries, limits, and the time that a turn of the
// control loop takes; with a real table, and the test as the worker.
#include "api/fixture.h"

#include "api/flows.h"
#include "base/bits.h"
#include "base/clock.h"
#include "rcu/rcu_fast.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 60, LEFT = 0, RIGHT = 1 };
// So many TSC cycles are a second: time passes a hundred times as fast; so slowly that no flow ends
// during a test.
static const uint64_t FAST_HZ = 20000000, SLOW_HZ = 2000000000000;
static const uint64_t SECOND_NS = 1000000000;

#define PORTS                                                                                      \
	"ports:\n  - {name: left, device: x, addresses: [192.0.2.1/24]}\n"                         \
	"  - {name: right, device: y, peer: 02:00:00:00:00:99}\n"                                  \
	"neighbours: [192.0.2.2 lladdr 02:00:00:00:00:07 dev left, 192.0.2.3 lladdr "              \
	"02:00:00:00:00:08 dev left]\n"                                                            \
	"routes:\n  - 10.1.0.0/16 via 192.0.2.2 dev left\n"                                        \
	"  - 10.2.0.0/16 nexthop via 192.0.2.2 dev left nexthop via 192.0.2.3 dev left\n"          \
	"  - 2001:db8::/32 via fd00::2 dev left lladdr 02:00:00:00:00:07\n"
#define FLOW "flow: {ipv4: 1000, ipv6: 100, timeouts: [300, 30]"

static uint32_t tick;
static uint64_t hz = SLOW_HZ;

static void poll_once(void)
{
	struct error error = {""};

	assert_int_equal(api_poll(&ctx, &error), 0);
}

static void open_until_ready(const char *learn)
{
	char text[2 * PATH_MAX];
	struct error error = {""};

	snprintf(text, sizeof(text), PORTS FLOW "%s}\n", learn);
	fixture_open(text);
	if (api_open_flows(&ctx, hz, &error))
		fail_msg("refused: %s", error.text);
	api_has_become_ready(&ctx);
}

// The file, if there is one, has been loaded.
static void open_with(const char *learn)
{
	open_until_ready(learn);
	poll_once();
}

static int close_ctx(void **state)
{
	api_close_flows(&ctx);
	hz = SLOW_HZ;
	return fixture_close(state);
}

static struct flow_tuple tuple_of(const char *dst, uint16_t port)
{
	struct flow_tuple tuple = {.proto = 17, .src_port = port, .dst_port = 53};

	assert_int_equal(wire_addr_parse(dst, &tuple.dst), 0);
	tuple.src = tuple.dst;
	return tuple;
}

static struct flow_key key_of(const struct flow_tuple *tuple)
{
	struct flow_key key;

	assert_int_equal(flow_key_set(&key, tuple, NULL), 0);
	return key;
}

// As a worker: received on this interface, sent to this hop.
static bool tell(const struct flow_tuple *tuple, uint16_t iface, uint32_t hop)
{
	const struct flow_key key = key_of(tuple);
	const struct flow_learn_from from = {.worker = 1, .tick = tick};
	struct flow_unknown unknown = {.iface = iface, .hop = hop, .family = key.family};

	if (key.family == 6)
		unknown.six = key.six;
	else
		unknown.four = key.four;
	return !flow_learn_put(flow_view(ctx.flows->table),
		flow_learning_rings(ctx.flows->learning), &from, &unknown, 1);
}

static void tell_of(const char *dst, unsigned n, uint16_t iface)
{
	for (unsigned i = 0; i < n; i++) {
		const struct flow_tuple tuple = tuple_of(dst, i + 1);
		assert_true(tell(&tuple, iface, 0));
	}
}

static void expect_learning(const char *key, unsigned n)
{
	char path[64], wanted[16];

	snprintf(path, sizeof(path), "learning.%s", key);
	snprintf(wanted, sizeof(wanted), "%u", n);
	check("flows", "{}", path, wanted);
}

static unsigned learning_of(const char *key)
{
	json_t *reply = call("flows", "{}");
	const unsigned n =
		json_integer_value(json_object_get(json_object_get(reply, "learning"), key));

	json_decref(reply);
	return n;
}

// Turns of the control loop until so many keys were learnt or refused: a turn ends after some
// time, whatever it has done.
static void poll_until_judged(unsigned n)
{
	static const char *const keys[] = {"learnt", "over_rate", "over_vrf", "over_interface",
		"unroutable", "full", "invalid"};
	const uint64_t until_ns = clock_now_ns() + PATIENCE_S * SECOND_NS;
	unsigned n_judged = 0;

	while (n_judged != n && clock_now_ns() < until_ns) {
		poll_once();
		n_judged = 0;
		for (unsigned i = 0; i < ARRAY_LEN(keys); i++)
			n_judged += learning_of(keys[i]);
	}
	assert_int_equal(n_judged, n);
}

static bool find(const struct flow_tuple *tuple, struct flow_info *info)
{
	const struct flow_key key = key_of(tuple);

	return flow_find(ctx.flows->table, &key, 0, info);
}

// The address of the next hop of a learnt flow; "": it is by route.
static void expect_via(const struct flow_tuple *tuple, const char *via)
{
	char text[WIRE_ADDR_TEXT];
	struct flow_info info;
	struct fib_hop hop;

	assert_true(find(tuple, &info));
	assert_int_equal(info.life, 2); // 30 s
	const struct flow_action *action = flow_action_of(ctx.flows->table, info.action);
	assert_int_equal(action->effect, via[0] ? FLOW_TO_HOP : FLOW_BY_ROUTE);
	assert_int_equal(action->dscp, FLOW_KEEP_DSCP);
	assert_int_equal(action->mirror, FLOW_NO_MIRROR);
	if (!via[0])
		return;
	assert_true(fib_held_hop(ctx.fib, action->held, &hop));
	assert_string_equal(wire_addr_print(&hop.via, text), via);
}

static void a_flow_goes_where_its_route_goes(void **state)
{
	static const char *const dsts[] = {"10.1.0.1", "2001:db8::1"};
	static const char *const vias[] = {"192.0.2.2", "fd00::2"};

	open_with(", learn: {timeout: 30}");
	for (unsigned i = 0; i < ARRAY_LEN(dsts); i++) {
		const struct flow_tuple tuple = tuple_of(dsts[i], 7);
		assert_true(tell(&tuple, LEFT, 0));
		poll_until_judged(i + 1);
		expect_via(&tuple, vias[i]);
	}
	expect_learning("flows", 2);
	expect_learning("learnt", 2);
	check("flows", "{}", "nexthops", "2");
	check("flows", "{}", "learning.on", "true");
}

// Of a group, the member that the worker has selected, as long as it is one.
static void of_several_next_hops_it_keeps_that_of_the_first_packet(void **state)
{
	const struct flow_tuple tuples[] = {tuple_of("10.2.0.1", 1), tuple_of("10.2.0.1", 2),
		tuple_of("10.2.0.1", 3)};
	struct fib_hop_info info;
	uint32_t first = 0, second = 0, most = 0;

	open_with(", learn: {timeout: 30}");
	for (uint32_t id = 1; id < 1000; id++) {
		if (!fib_hop_info(ctx.fib, id, &info))
			continue;
		most = id;
		if (info.hop.kind == FIB_VIA && info.hop.via.bytes[3] == 2)
			first = id;
		if (info.hop.kind == FIB_VIA && info.hop.via.bytes[3] == 3)
			second = id;
	}
	assert_true(first && second);
	assert_true(tell(&tuples[0], LEFT, first));
	assert_true(tell(&tuples[1], LEFT, second));
	assert_true(tell(&tuples[2], LEFT, most + 1));
	poll_until_judged(3);
	expect_via(&tuples[0], "192.0.2.2");
	expect_via(&tuples[1], "192.0.2.3");
	expect_via(&tuples[2], "");
}

// One without its neighbour, which the worker has selected nevertheless.
static void a_member_that_is_not_resolved_is_not_kept(void **state)
{
	const struct flow_tuple tuple = tuple_of("10.2.0.1", 1);
	char *text = strdup(PORTS FLOW ", learn: {timeout: 30}}\n");
	char *gone = strstr(text, "192.0.2.2 lladdr 02:00:00:00:00:07 dev left, ");
	struct fib_hop_info info;
	uint32_t dead = 0;

	open_with(", learn: {timeout: 30}");
	memset(gone, ' ', strlen("192.0.2.2 lladdr 02:00:00:00:00:07 dev left, "));
	write_file(text);
	json_decref(call("reload", "{}"));
	for (uint32_t id = 1; id < 1000 && !dead; id++)
		if (fib_hop_info(ctx.fib, id, &info) && info.hop.kind == FIB_VIA &&
			info.hop.via.family == 4 && info.hop.via.bytes[3] == 2)
			dead = id;
	assert_true(dead && info.verdict != VERDICT_FORWARD);
	assert_true(tell(&tuple, LEFT, dead));
	poll_until_judged(1);
	expect_via(&tuple, "");
	free(text);
}

// All errors between two hosts have one key.
static void icmp_without_an_identifier_stays_by_route(void **state)
{
	struct flow_tuple tuple = {.proto = 1, .src_port = 7};

	open_with(", learn: {timeout: 30}");
	assert_int_equal(wire_addr_parse("10.1.0.1", &tuple.dst), 0);
	tuple.src = tuple.dst;
	assert_true(tell(&tuple, LEFT, 0));
	poll_until_judged(1);
	expect_via(&tuple, "192.0.2.2");
	tuple.src_port = 0;
	assert_true(tell(&tuple, LEFT, 0));
	poll_until_judged(2);
	expect_via(&tuple, "");
}

static void without_a_route_nothing_is_learnt(void **state)
{
	open_with(", learn: {timeout: 30}");
	tell_of("10.99.0.1", 2, LEFT);
	tell_of("127.0.0.1", 1, LEFT);
	tell_of("192.0.2.1", 1, LEFT); // ours
	poll_until_judged(4);
	expect_learning("learnt", 0);
	expect_learning("unroutable", 4);
	check("flows", "{}", "actions", "0");
}

// As workers read keys from packets, whatever these have.
static void tell_raw(struct flow_unknown unknown)
{
	const struct flow_learn_from from = {.worker = 1, .tick = tick};

	assert_int_equal(flow_learn_put(flow_view(ctx.flows->table),
				 flow_learning_rings(ctx.flows->learning), &from, &unknown, 1),
		0);
}

static void absolute_path(char path[PATH_MAX], const char *name)
{
	assert_non_null(getcwd(path, PATH_MAX / 2));
	strcat(strcat(path, "/"), name);
}

static void run_job(const char *method, const char *path)
{
	const uint64_t until_ns = clock_now_ns() + PATIENCE_S * SECOND_NS;
	bool is_running = true;
	char params[128];

	snprintf(params, sizeof(params), "{\"path\": \"%s\"}", path);
	json_decref(call(method, params));
	while (is_running && clock_now_ns() < until_ns) {
		poll_once();
		json_t *job = call("flows.job", "{}");
		is_running = !strcmp(json_string_value(json_object_get(job, "state")), "running");
		json_decref(job);
	}
	check("flows.job", "{}", "state", "\"done\"");
}

// ICMPv6 in IPv4, ICMP in IPv6, an IPv4-mapped address: a file with such a flow cannot be loaded.
static void what_no_flow_can_have_is_not_learnt(void **state)
{
	static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 10, 1, 0, 1};
	const struct flow_tuple good = tuple_of("10.1.0.1", 7);
	const struct flow_key key = key_of(&good);
	struct flow_unknown four = {.iface = LEFT, .family = 4, .four = key.four};
	struct flow_unknown six = {.iface = LEFT, .family = 6, .six = {.proto = 1}};
	char absolute[PATH_MAX];

	open_with(", learn: {timeout: 30}");
	tell_raw(four);
	four.four = (struct flow_key4){.kind = flow_kind4(0, 58),
		.src_be = key.four.src_be,
		.dst_be = key.four.dst_be};
	tell_raw(four);
	memcpy(six.six.dst, (uint8_t[]){0x20, 0x01, 0x0d, 0xb8}, 4);
	tell_raw(six);
	six.six.proto = 17;
	memcpy(six.six.dst, mapped, sizeof(mapped));
	tell_raw(six);
	poll_until_judged(4);
	expect_learning("invalid", 3);
	expect_learning("flows", 1);
	absolute_path(absolute, "learning_test.flows");
	run_job("flows.save", absolute);
	run_job("flows.load", absolute);
	unlink(absolute);
	check("flows.list", "{}", "flows.0.action.do", "\"route\"");
}

static void a_flow_that_exists_stays_as_it_is(void **state)
{
	const struct flow_tuple tuple = tuple_of("10.1.0.1", 7);
	struct flow_info info;

	open_with(", learn: {timeout: 30}");
	check("flows.change",
		"{\"changes\": [{\"op\": \"add\", \"src\": \"10.1.0.1\", \"dst\": \"10.1.0.1\", "
		"\"protocol\": \"udp\", \"src_port\": 7, \"dst_port\": 53, \"action\": {\"do\": "
		"\"drop\"}}]}",
		"applied", "1");
	assert_true(tell(&tuple, LEFT, 0));
	tell_of("10.99.0.1", 1, LEFT); // after it
	poll_until_judged(1);
	assert_true(find(&tuple, &info));
	assert_int_equal(flow_action_of(ctx.flows->table, info.action)->effect, FLOW_DROP);
	expect_learning("unroutable", 1);
}

static void wait_for_flows(unsigned n)
{
	const uint64_t until_ns = clock_now_ns() + PATIENCE_S * SECOND_NS;

	while (learning_of("flows") != n && clock_now_ns() < until_ns)
		poll_once();
	expect_learning("flows", n);
}

// Deletes the flow of the first key of tell_of().
static void delete_first(void)
{
	check("flows.change",
		"{\"changes\": [{\"op\": \"delete\", \"src\": \"10.1.0.1\", \"dst\": \"10.1.0.1\", "
		"\"protocol\": \"udp\", \"src_port\": 1, \"dst_port\": 53}]}",
		"applied", "1");
}

// Without the neighbour the flow ends, and the next packet takes the route of that time. Files do
// not have next hops that were learnt.
static void a_flow_ends_without_its_next_hop(void **state)
{
	const struct flow_tuple tuple = tuple_of("10.1.0.1", 7);
	char *text = strdup(PORTS FLOW ", learn: {timeout: 30}}\n");
	char *gone = strstr(text, "192.0.2.2 lladdr 02:00:00:00:00:07 dev left, ");
	char *route = strstr(text, "10.1.0.0/16 via 192.0.2.2");

	open_with(", learn: {timeout: 30}");
	assert_true(tell(&tuple, LEFT, 0));
	poll_until_judged(1);
	expect_via(&tuple, "192.0.2.2");
	route[strlen("10.1.0.0/16 via 192.0.2.")] = '3';
	write_file(text);
	json_decref(call("reload", "{}"));
	poll_once();
	expect_via(&tuple, "192.0.2.2"); // as long as it is there
	memset(gone, ' ', strlen("192.0.2.2 lladdr 02:00:00:00:00:07 dev left, "));
	write_file(text);
	json_decref(call("reload", "{}"));
	wait_for_flows(0);
	tick++;
	assert_true(tell(&tuple, LEFT, 0));
	poll_until_judged(2);
	expect_via(&tuple, "192.0.2.3");
	free(text);
}

// Ended flows make space for others, by whatever they ended.
static void limits_hold_by_interface_and_vrf(void **state)
{
	open_with(", learn: {timeout: 30, per_interface: 5, per_vrf: 8}");
	tell_of("10.1.0.1", 9, LEFT);
	tell_of("10.1.0.2", 9, RIGHT);
	poll_until_judged(18);
	expect_learning("learnt", 8);
	expect_learning("over_interface", 4);
	expect_learning("over_vrf", 6);
	expect_learning("flows", 8);
	delete_first();
	wait_for_flows(7);
	tick++;
	tell_of("10.1.0.1", 9, LEFT);
	poll_until_judged(27); // limits are asked before it is looked for
	expect_learning("learnt", 9);
	expect_learning("flows", 8);
}

static void an_idle_flow_makes_space_for_another_one(void **state)
{
	hz = FAST_HZ;
	open_with(", learn: {timeout: 30, per_interface: 1}");
	for (unsigned i = 1; i < 4; i++) {
		tick++;
		tell_of("10.1.0.1", 1, LEFT);
		poll_until_judged(i);
		expect_learning("learnt", i);
		wait_for_flows(0);
		check("flows", "{}", "nexthops", "0");
	}
}

// Users' flows do not count for limits; they need not know what was learnt.
static void a_user_may_take_over_what_was_learnt(void **state)
{
	enum { N = 4 };
	static const char *const ops[N] = {"add", "replace", "add", "add"};
	static const unsigned applied[N] = {1, 1, 1, 0};
	static const unsigned port[N] = {1, 2, 3, 3};
	char absolute[PATH_MAX];

	open_with(", learn: {timeout: 30, per_interface: 5}");
	tell_of("10.1.0.1", 5, LEFT);
	poll_until_judged(5);
	for (unsigned i = 0; i < N; i++) {
		char text[400], n[2] = {'0' + applied[i]};

		snprintf(text, sizeof(text),
			"{\"changes\": [{\"op\": \"%s\", \"src\": \"10.1.0.1\", \"dst\": "
			"\"10.1.0.1\", \"protocol\": \"udp\", \"src_port\": %u, \"dst_port\": 53, "
			"\"action\": {\"do\": \"drop\"}}]}",
			ops[i], port[i]);
		check("flows.change", text, "applied", n);
	}
	expect_learning("flows", 2);
	absolute_path(absolute, "learning_test.flows");
	run_job("flows.save", absolute);
	run_job("flows.load", absolute);
	unlink(absolute);
	expect_learning("flows", 0);
	check("flows", "{}", "ipv4.flows", "5");
	tick++;
	tell_of("10.1.0.2", 6, LEFT);
	poll_until_judged(11);
	expect_learning("learnt", 10);
	expect_learning("over_interface", 1);
}

// Flows of the file come first.
static void nothing_is_learnt_before_the_file_is_loaded(void **state)
{
	const struct flow_tuple tuple = tuple_of("10.1.0.1", 1);
	char absolute[PATH_MAX], learn[PATH_MAX + 64];

	absolute_path(absolute, "learning_test.flows");
	open_with(", learn: {timeout: 30}");
	tell_of("10.1.0.1", 1, LEFT);
	poll_until_judged(1);
	run_job("flows.save", absolute);
	close_ctx(state);
	snprintf(learn, sizeof(learn), ", file: \"%s\", learn: {timeout: 30}", absolute);
	open_until_ready(learn);
	while (!ctx.flows->was_loaded || !ctx.flows->job.ended_ns) {
		assert_false(flow_learn_is_on(flow_learning_rings(ctx.flows->learning)));
		assert_false(tell(&tuple, LEFT, 0));
		poll_once();
	}
	unlink(absolute);
	check("flows", "{}", "ipv4.flows", "1");
	poll_once();
	assert_true(flow_learn_is_on(flow_learning_rings(ctx.flows->learning)));
}

static void reload_with(const char *learn)
{
	char text[2048];

	snprintf(text, sizeof(text), PORTS FLOW "%s}\n", learn);
	write_file(text);
	json_t *reply = call("reload", "{}");
	assert_null(json_object_get(reply, "error"));
	json_decref(reply);
}

// Workers leave out what may not be learnt, until there is space again.
static void workers_know_which_limits_are_reached(void **state)
{
	const struct flow_learn *rings;

	open_with(", learn: {timeout: 30, per_interface: 5, per_vrf: 8}");
	rings = flow_learning_rings(ctx.flows->learning);
	tell_of("10.1.0.1", 5, LEFT);
	poll_until_judged(5);
	assert_true(flow_learn_is_over(rings, LEFT, 0));
	assert_false(flow_learn_is_over(rings, RIGHT, 0));
	tell_of("10.1.0.2", 3, RIGHT);
	poll_until_judged(8);
	assert_true(flow_learn_is_over(rings, RIGHT, 0)); // by VRF
	assert_false(flow_learn_is_over(rings, RIGHT, 1));
	reload_with(", learn: {timeout: 30, per_interface: 5, per_vrf: 9}");
	assert_false(flow_learn_is_over(rings, RIGHT, 0));
	assert_true(flow_learn_is_over(rings, LEFT, 1));
	delete_first();
	wait_for_flows(7);
	assert_false(flow_learn_is_over(rings, LEFT, 0));
	fake_stat(1)->flow_learn_over = 4;
	expect_learning("at_limit", 4);
}

// The bucket has a tenth of a second: 10 at once, and then 100 in a second.
static void the_rate_is_limited(void **state)
{
	enum { RATE = 100, DEPTH = RATE / 10, KEYS = 60 };

	open_with(", learn: {timeout: 30, rate: 100}");
	for (unsigned i = 0; i < 2; i++) {
		const unsigned n_before = i ? learning_of("learnt") : 0;
		const uint64_t from_ns = clock_now_ns();

		tick += i;
		tell_of(i ? "10.1.0.2" : "10.1.0.1", KEYS, LEFT);
		poll_until_judged(KEYS * (i + 1));
		const uint64_t filled = (clock_now_ns() - from_ns) * RATE / SECOND_NS;
		const unsigned n = learning_of("learnt") - n_before;
		assert_in_range(n, DEPTH, MIN_OF(DEPTH + filled + 1, KEYS));
		const uint64_t full_ns = clock_now_ns() + SECOND_NS * DEPTH / RATE;
		while (clock_now_ns() < full_ns)
			poll_once();
	}
	assert_int_equal(learning_of("learnt") + learning_of("over_rate"), 2 * KEYS);
}

static void a_full_table_refuses(void **state)
{
	open_with(", learn: {timeout: 30}");
	tell_of("2001:db8::1", 110, LEFT);
	poll_until_judged(110);
	expect_learning("learnt", 100);
	expect_learning("full", 10);
	check("flows", "{}", "ipv6.flows", "100");
}

// The numbers of flows that have ended are free once workers have passed; this one never does.
static void learning_does_not_wait_for_workers(void **state)
{
	const struct rcu_readers *workers;

	open_with(", learn: {timeout: 30}");
	workers = rcu_readers(ctx.rcu);
	tell_of("2001:db8::1", 100, LEFT);
	poll_until_judged(100);
	rcu_reader_online(workers, 0);
	check("flows.change",
		"{\"changes\": [{\"op\": \"delete\", \"src\": \"2001:db8::1\", \"dst\": "
		"\"2001:db8::1\", \"protocol\": \"udp\", \"src_port\": 1, \"dst_port\": 53}]}",
		"applied", "1");
	tick++;
	tell_of("2001:db8::2", 1, LEFT);
	poll_until_judged(101);
	expect_learning("full", 1);
	rcu_reader_offline(workers, 0);
	tick++;
	wait_for_flows(99);
	tell_of("2001:db8::2", 1, LEFT);
	poll_until_judged(102);
	expect_learning("learnt", 101);
}

static void what_workers_could_not_tell_is_counted(void **state)
{
	open_with(", learn: {timeout: 30}");
	expect_learning("lost", 0);
	fake_stat(0)->flow_learn_lost = 3;
	fake_stat(1)->flow_learn_lost = 4;
	expect_learning("lost", 7);
}

static void a_reload_starts_and_stops_it(void **state)
{
	const struct flow_learn *rings;

	open_with("");
	rings = flow_learning_rings(ctx.flows->learning);
	assert_false(flow_learn_is_on(rings));
	check("flows", "{}", "learning.on", "false");
	reload_with(", learn: {timeout: 30, per_vrf: 2}");
	assert_true(flow_learn_is_on(rings));
	tell_of("10.1.0.1", 3, LEFT);
	poll_until_judged(3);
	expect_learning("learnt", 2);
	reload_with(", learn: {timeout: 30, per_vrf: 3}");
	tell_of("10.1.0.2", 3, LEFT);
	poll_until_judged(6);
	expect_learning("learnt", 3);
	tell_of("10.1.0.3", 3, LEFT);
	reload_with("");
	poll_once();
	assert_false(flow_learn_is_on(rings));
	expect_learning("learnt", 3);
	expect_learning("flows", 3); // they stay until they are idle
}

// The rings, and two bytes for each flow.
static void its_memory_is_shown_while_it_is_on(void **state)
{
	unsigned n;
	json_int_t bytes[2];

	for (unsigned i = 0; i < 2; i++) {
		open_with(i ? ", learn: {timeout: 30}" : "");
		json_t *reply = call("flows", "{}");
		bytes[i] = json_integer_value(json_object_get(reply, "bytes"));
		json_decref(reply);
		if (!i)
			close_ctx(state);
	}
	n = port_n_workers(ctx.ports);
	assert_int_equal(bytes[1] - bytes[0], 2 * 1101 + flow_learn_bytes(n));
	assert_in_range(flow_learn_bytes(n), 512 * 1024 * n, 544 * 1024 * n);
}

// A ring would be full long before the next turn.
static void many_keys_are_asked_for_again_soon(void **state)
{
	const uint64_t until_ns = clock_now_ns() + PATIENCE_S * SECOND_NS;
	bool is_soon = false;

	open_with(", learn: {timeout: 30, rate: 1000000, per_interface: 1}");
	assert_int_equal(api_wait_ms(&ctx), 50);
	tell_of("10.1.0.1", FLOW_LEARN_RING, LEFT);
	while (learning_of("over_interface") < FLOW_LEARN_RING - 1 && clock_now_ns() < until_ns) {
		poll_once();
		is_soon |= api_wait_ms(&ctx) <= 5;
	}
	assert_true(is_soon);
	poll_once();
	assert_int_equal(api_wait_ms(&ctx), 50);
}

// CPU time, so that other programs do not matter.
static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * (int64_t)SECOND_NS + now.tv_nsec;
}

static void flood(unsigned round)
{
	enum { FLOOD = 8192 };

	tick++;
	for (unsigned i = 0; i < FLOOD; i++) {
		const struct flow_tuple tuple = tuple_of("10.1.0.1", round * FLOOD + i);
		tell(&tuple, LEFT, 0);
	}
}

// A ring full of random keys in each turn, with and without flows to be learnt of them. The median
// counts: what a hypervisor takes away is CPU time, too.
static void a_flood_does_not_stop_the_loop(void **state)
{
	enum { ROUNDS = 20, STEP_NS = 5 * 1000 * 1000, TURN_NS = 20 * 1000 * 1000 };
	static const char *const learn[] = {", learn: {timeout: 30, rate: 1000000}",
		", learn: {timeout: 30, rate: 1000000, per_vrf: 1}"};

	for (unsigned i = 0; i < ARRAY_LEN(learn); i++) {
		unsigned n_late = 0;

		open_with(learn[i]);
		const uint64_t until_ns = clock_now_ns() + PATIENCE_S * SECOND_NS;
		for (unsigned round = 0; round < ROUNDS; round += 2) {
			flood(round);
			const int64_t from_ns = cpu_ns();
			flow_learning_step(&ctx);
			n_late += cpu_ns() - from_ns >= STEP_NS;
			flood(round + 1);
			const int64_t turn_ns = cpu_ns();
			poll_once();
			n_late += cpu_ns() - turn_ns >= TURN_NS;
		}
		assert_in_range(n_late, 0, ROUNDS / 4);
		// A slow machine learns few in a turn.
		while (!(learning_of("full") + learning_of("over_vrf")) &&
			clock_now_ns() < until_ns)
			poll_once();
		assert_true(learning_of("full") + learning_of("over_vrf") > 0);
		close_ctx(state);
	}
	open_with("");
}

#define TEST(name) cmocka_unit_test_teardown(name, close_ctx)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_flow_goes_where_its_route_goes),
		TEST(of_several_next_hops_it_keeps_that_of_the_first_packet),
		TEST(a_member_that_is_not_resolved_is_not_kept),
		TEST(icmp_without_an_identifier_stays_by_route),
		TEST(without_a_route_nothing_is_learnt),
		TEST(what_no_flow_can_have_is_not_learnt),
		TEST(a_flow_that_exists_stays_as_it_is),
		TEST(a_flow_ends_without_its_next_hop),
		TEST(limits_hold_by_interface_and_vrf),
		TEST(an_idle_flow_makes_space_for_another_one),
		TEST(a_user_may_take_over_what_was_learnt),
		TEST(nothing_is_learnt_before_the_file_is_loaded),
		TEST(workers_know_which_limits_are_reached),
		TEST(the_rate_is_limited),
		TEST(a_full_table_refuses),
		TEST(learning_does_not_wait_for_workers),
		TEST(what_workers_could_not_tell_is_counted),
		TEST(a_reload_starts_and_stops_it),
		TEST(many_keys_are_asked_for_again_soon),
		TEST(its_memory_is_shown_while_it_is_on),
		TEST(a_flood_does_not_stop_the_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
