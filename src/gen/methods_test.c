// The generator's methods as seen by a client; workers are threads, senders only count.
#include "gen/fake_ctx.h"

#include "base/bits.h"
#include "base/clock.h"
#include "gen/per_flow.h"

#include <errno.h>
#include <math.h>
#include <rte_cycles.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ONE_WAY                                                                                    \
	"{\"name\": \"east\", \"from\": \"left\", \"to\": \"right\", \"dst_mac\": "                \
	"\"02:00:00:00:00:99\", \"rate\": \"max\", \"frames\": 100}"
#define ENDLESS                                                                                    \
	"{\"from\": \"left\", \"to\": \"left\", \"dst_mac\": \"02:00:00:00:00:99\", "              \
	"\"rate\": \"1 Mpps\"}"

static struct gen_ctx ctx;
static json_t *streams;

static int make_ctx(void **state)
{
	streams = json_loads("[" ONE_WAY "]", 0, NULL);
	assert_non_null(streams);
	ctx = (struct gen_ctx){.gen = fake_load(streams),
		.settings = &fake_settings,
		.file = "gen.yaml",
		.started_ns = clock_now_ns(),
		.born = clock_pair_take(rte_rdtsc)};
	assert_int_equal(gen_start(ctx.gen, NULL), 0);
	return 0;
}

static int break_ctx(void **state)
{
	gen_stop(ctx.gen);
	gen_close(ctx.gen);
	json_decref(streams);
	assert_int_equal(fake.n_senders, 0);
	assert_int_equal(fake.n_wrong, 0);
	return 0;
}

// The result of a method, or {"error": message}. Owner: caller.
static json_t *call(const char *method, const char *params)
{
	size_t n;
	const struct rpc_method *methods = gen_methods(&n);
	json_t *given = json_loads(params, 0, NULL), *reply = NULL;
	struct error error = {""};

	assert_non_null(given);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(methods[i].name, method))
			reply = methods[i].run(&ctx, given, &error);
	json_decref(given);
	return reply ? reply : json_pack("{s:s}", "error", error.text);
}

// The value at a path such as "streams.0.name".
static const json_t *at(const json_t *json, const char *path)
{
	char *copy = strdup(path), *rest = copy;

	for (char *word = strsep(&rest, "."); word; word = strsep(&rest, "."))
		json = json_is_array(json) ? json_array_get(json, atoi(word))
		                           : json_object_get(json, word);
	free(copy);
	return json;
}

static void expect(const json_t *reply, const char *path, const char *wanted)
{
	const json_t *found = at(reply, path);
	char *text = found ? json_dumps(found, JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;

	if (!text || strcmp(text, wanted) != 0) {
		char *whole = json_dumps(reply, 0);

		fail_msg("%s is %s, wanted %s in %s", path, text ? text : "nothing", wanted, whole);
	}
	free(text);
}

static void check(const char *method, const char *params, const char *path, const char *wanted)
{
	json_t *reply = call(method, params);

	expect(reply, path, wanted);
	json_decref(reply);
}

static void await_done(void)
{
	uint64_t start_ns = clock_now_ns();

	while (gen_state(ctx.gen) != GEN_DONE) {
		assert_true(clock_now_ns() - start_ns < 60000000000);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

static struct sink_counters *received(unsigned stream)
{
	return &ctx.gen->current->received[stream]->counters;
}

static void each_row_of_the_schema_is_a_method_in_help(void **state)
{
	size_t n;
	const struct rpc_method *methods = gen_methods(&n);
	json_t *help = call("help", "{}");

	assert_int_equal(json_array_size(json_object_get(help, "methods")), n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(methods[i].name,
			json_string_value(
				json_object_get(json_array_get(json_object_get(help, "methods"), i),
					"name")));
	json_decref(help);
}

static void takes_exactly_its_parameters(void **state)
{
	static const char *const plain[] = {"help", "status", "ports", "streams", "halt", "stop"};

	for (unsigned i = 0; i < ARRAY_LEN(plain); i++)
		check(plain[i], "{\"a\": 1}", "error",
			"\"unknown parameter \\\"a\\\"; the method 'help' lists the parameters\"");
	check("results", "{\"histograms\": 1}", "error",
		"\"parameter \\\"histograms\\\": expected true or false\"");
	check("send", "{\"seconds\": \"1\"}", "error",
		"\"parameter \\\"seconds\\\": expected a number from 0 to 86400\"");
	check("send", "{\"seconds\": 0}", "error",
		"\"parameter \\\"seconds\\\" is 0; expected a number from 0.001 to 86400\"");
	check("send", "{\"delay\": 61}", "error",
		"\"parameter \\\"delay\\\": expected a number from 0 to 60\"");
	check("send", "{\"streams\": {}}", "error",
		"\"parameter \\\"streams\\\": expected a list of 1 to 64 members\"");
	assert_false(ctx.stop);
	assert_int_equal(ctx.gen->current->number, 0);
}

static void tells_of_the_file_and_of_no_run_yet(void **state)
{
	check("status", "{}", "state", "\"idle\"");
	check("status", "{}", "config", "\"gen.yaml\"");
	check("streams", "{}", "streams.0.name", "\"east\"");
	check("results", "{}", "run", "0");
	check("results", "{}", "state", "\"idle\"");
	check("results", "{}", "streams", "[]");
	check("ports", "{}", "ports.1.name", "\"right\"");
	check("ports", "{}", "ports.1.mac", "\"02:00:00:00:00:01\"");
	check("ports", "{}", "ports.1.has_backpressure", "true");
	check("ports", "{}", "ports.1.line_bps", "1000000000.0");
	check("ports", "{}", "ports.1.mtu", "1500");
	check("halt", "{}", "run", "0");
}

static void sends_the_streams_of_the_file(void **state)
{
	json_t *started = call("send", "{}");

	expect(started, "run", "1");
	expect(started, "streams.0.from_port", "\"left\"");
	expect(started, "streams.0.to_port", "\"right\"");
	expect(started, "streams.0.frames", "100");
	expect(started, "streams.0.pps", "0.0");
	json_decref(started);
	await_done();
	json_t *results = call("results", "{}");
	expect(results, "state", "\"done\"");
	expect(results, "streams.0.sent", "100");
	expect(results, "streams.0.received", "0");
	expect(results, "streams.0.lost", "100");
	expect(results, "streams.0.lost_by_gaps", "100");
	expect(results, "streams.0.latency.n", "0");
	expect(results, "streams.0.latency.p99_999", "0.0");
	json_decref(results);
	check("send", "{}", "run", "2");
	await_done();
	check("results", "{}", "streams.0.sent", "100");
}

static void counts_what_the_sink_has_seen(void **state)
{
	json_decref(call("send", "{}"));
	await_done();
	*received(0) = (struct sink_counters){.received = 90,
		.received_bytes = 5760,
		.highest = 98,
		.missing = 8,
		.duplicated = 3,
		.n_jitter = 10,
		.jitter_sum = 200,
		.jitter_max = 50};
	for (unsigned i = 0; i < 90; i++)
		histogram_add(&ctx.gen->current->received[0]->due, 1000);
	ctx.gen->current->port[1].counters.late_polls = 2;
	ctx.gen->current->port[1].counters.longest_gap = 5000;
	json_t *results = call("results", "{\"histograms\": true}");
	expect(results, "streams.0.lost", "10");
	expect(results, "streams.0.lost_by_gaps", "10");
	expect(results, "streams.0.duplicated", "3");
	expect(results, "streams.0.reordered_per", "\"flow\"");
	expect(results, "streams.0.jitter.mean", "20.0");
	expect(results, "streams.0.latency.min", "1000.0");
	expect(results, "streams.0.latency.mean", "1000.0");
	expect(results, "streams.0.latency.histogram.0.2", "90");
	expect(results, "ports.1.late_polls", "2");
	expect(results, "ports.1.longest_gap_us", "5.0");
	json_decref(results);
}

// The first of 100 frames, due every 1000 cycles, was sent when the twentieth was due.
static void a_late_first_frame_makes_no_higher_rate(void **state)
{
	json_decref(call("send", "{}"));
	await_done();
	struct run *run = ctx.gen->current;
	struct sender_counters *sent = (struct sender_counters *)sender_counters(run->sender[0]);
	sent->first_tsc = run->start + 19 * 1000;
	sent->last_tsc = run->start + 99 * 1000;
	json_t *results = call("results", "{}");
	assert_true(json_real_value(at(results, "streams.0.offered_pps")) > FAKE_HZ / 1000 * 1.2);
	json_decref(results);
	run->streams.stream[0].pps = FAKE_HZ / 1000;
	results = call("results", "{}");
	double pps = json_real_value(at(results, "streams.0.offered_pps"));
	assert_true(fabs(pps - FAKE_HZ / 1000) < 1);
	json_decref(results);
}

static void tells_when_those_frames_were_due_that_are_lost(void **state)
{
	check("results", "{\"timeline\": true}", "timeline", "null");
	json_decref(call("send", "{}"));
	await_done();
	struct run *run = ctx.gen->current;
	run->lines[0]->sent.count[1] = 100;
	run->lines[0]->sent.count[3] = 50;
	run->lines[1]->received.count[1] = 93;
	run->lines[1]->received.count[2] = 1;
	json_t *results = call("results", "{\"timeline\": true}");
	expect(results, "timeline.sent", "[0, 100, 0, 50]");
	expect(results, "timeline.received", "[0, 93, 1, 0]");
	uint64_t start_ns = json_integer_value(at(results, "timeline.start_ns"));
	assert_true(clock_now_ns() - start_ns < 60000000000);
	assert_true(json_integer_value(at(results, "timeline.bucket_ns")) > 0);
	json_decref(results);
	check("results", "{}", "run", "1");
}

static void forgets_what_the_device_missed_before(void **state)
{
	fake.missed = 7;
	json_decref(call("send", "{}"));
	fake.missed = 9;
	check("results", "{}", "ports.0.rx_missed", "2");
	await_done();
}

static void refuses_a_second_run_until_the_first_is_over(void **state)
{
	check("send", "{\"streams\": [" ENDLESS "], \"seconds\": 3600}", "run", "1");
	check("results", "{}", "state", "\"sending\"");
	check("send", "{}", "error",
		"\"run 1 is still sending; wait until it ends, or call the method halt\"");
	check("halt", "{}", "run", "1");
	await_done();
	check("results", "{}", "state", "\"done\"");
	check("send", "{}", "run", "2");
	await_done();
}

// A burst can arrive before its sender has counted it.
static void what_arrives_was_sent(void **state)
{
	json_decref(call("send", "{\"streams\": [" ENDLESS "], \"seconds\": 3600}"));
	*received(0) = (struct sink_counters){.received = 999999999999990,
		.highest = 1000000000000000,
		.missing = 10};
	ctx.gen->current->lines[0]->received.count[1] = 5;
	json_t *results = call("results", "{\"timeline\": true}");
	expect(results, "state", "\"sending\"");
	expect(results, "timeline.sent", "[0, 5]");
	expect(results, "timeline.received", "[0, 5]");
	expect(results, "streams.0.sent", "1000000000000000");
	expect(results, "streams.0.lost", "10");
	expect(results, "streams.0.lost_by_gaps", "10");
	json_decref(results);
	json_decref(call("halt", "{}"));
	await_done();
}

static void a_refusal_changes_nothing(void **state)
{
	check("send", "{}", "run", "1");
	await_done();
	fake.is_down[1] = true;
	check("send", "{}", "error",
		"\"port right of stream east has no link; connect the cable, or start the program "
		"at the other end, then send again\"");
	check("send", "{\"streams\": [" ENDLESS "]}", "error",
		"\"stream stream0 would never end; specify seconds, or frames in the stream\"");
	check("send", "{\"streams\": [{\"to\": \"left\"}]}", "error",
		"\"all streams are only received, so the run would end at once; specify seconds\"");
	json_t *reply = call("send", "{\"streams\": [{\"to\": \"nowhere\"}], \"seconds\": 1}");
	assert_non_null(strstr(json_string_value(json_object_get(reply, "error")), "streams[0]"));
	json_decref(reply);
	check("send",
		"{\"streams\": [{\"from\": \"left\", \"to\": \"left\", \"dst_mac\": "
		"\"02:00:00:00:00:99\", \"rate\": \"max\", \"burst\": 64}], \"seconds\": 1}",
		"error", "\"stream stream0: not enough memory for its frames\"");
	check("results", "{}", "run", "1");
	check("results", "{}", "streams.0.sent", "100");
	assert_int_equal(fake.n_senders, 1);
}

static void says_when_there_is_nothing_to_send(void **state)
{
	ctx.gen->streams = NULL;
	check("send", "{}", "error",
		"\"no streams: the configuration file has none; add them there, or pass them to "
		"the method\"");
	check("streams", "{}", "streams", "[]");
	ctx.gen->streams = streams;
}

static void receives_only_for_as_long_as_it_is_told(void **state)
{
	check("send", "{\"streams\": [{\"to\": \"left\", \"id\": 9}], \"seconds\": 0.005}",
		"streams.0.receive_only", "true");
	await_done();
	*received(0) = (struct sink_counters){.received = 5, .highest = 7, .missing = 2};
	json_t *results = call("results", "{}");
	expect(results, "streams.0.id", "9");
	expect(results, "streams.0.from_port", "\"\"");
	expect(results, "streams.0.sent", "7");
	expect(results, "streams.0.lost", "2");
	json_decref(results);
}

static void stop_only_raises_the_flag(void **state)
{
	check("stop", "{}", "stopping", "true");
	assert_true(ctx.stop);
}

static void a_worker_or_a_device_that_ends_is_a_failure(void **state)
{
	struct error error = {""};

	assert_int_equal(gen_poll(&ctx, &error), 0);
	fake.worker_has_ended = true;
	assert_int_equal(gen_poll(&ctx, &error), -EIO);
	assert_string_equal(error.text, "a worker terminated unexpectedly; stopping");
	fake.device_is_gone = true;
	assert_int_equal(gen_poll(&ctx, &error), -ENODEV);
}

#define COUNTED                                                                                    \
	"{\"name\": \"flows\", \"from\": \"left\", \"to\": \"right\", \"dst_mac\": "               \
	"\"02:00:00:00:00:99\", \"rate\": \"max\", \"frames\": 100, \"dst_port\": {\"first\": 1, " \
	"\"count\": 4}, \"count_flows\": true, \"expect\": {\"secret\": 1, \"dscps\": [0, 46]}}"

static void tells_what_it_expected_and_what_it_found(void **state)
{
	check("send", "{\"streams\": [" COUNTED "]}", "streams.0.count_flows", "true");
	await_done();
	struct per_flow *p = ctx.gen->current->received[0]->per_flow;
	check("results", "{}", "streams.0.expect.first_wrong", "null");
	p->counters = (struct per_flow_counters){90, 1, 2, 3, 5, 4};
	p->wrong = (struct per_flow_wrong){70, 2, {0, 63}, GEN_VXLAN, 9, true};
	struct expect_action action = expect_action(&p->stream->expect, 1, 2);
	json_t *results = call("results", "{}");
	expect(results, "streams.0.expect.checked", "90");
	expect(results, "streams.0.expect.alternative", "1");
	expect(results, "streams.0.expect.wrong_port", "2");
	expect(results, "streams.0.expect.wrong_dscp", "3");
	expect(results, "streams.0.expect.wrong_encap", "5");
	expect(results, "streams.0.expect.wrong_tuple", "4");
	expect(results, "streams.0.expect.first_wrong.sequence", "70");
	expect(results, "streams.0.expect.first_wrong.flow", "2");
	expect(results, "streams.0.expect.first_wrong.found", "{\"dscp\": 63, \"port\": \"left\"}");
	expect(results, "streams.0.expect.first_wrong.encap", "\"vxlan\"");
	expect(results, "streams.0.expect.first_wrong.encap_id", "9");
	expect(results, "streams.0.expect.first_wrong.expected",
		action.dscp ? "{\"dscp\": 46, \"port\": \"right\"}"
			    : "{\"dscp\": 0, \"port\": \"right\"}");
	json_decref(results);
	check("send", "{}", "streams.0.count_flows", "false");
	await_done();
	results = call("results", "{}");
	assert_null(at(results, "streams.0.expect"));
	json_decref(results);
}

static void writes_the_counters_of_flows_to_a_file(void **state)
{
	char path[] = "/tmp/dl3-flow-counts-XXXXXX", params[128];
	uint32_t found[5];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	check("flow_counts", "{\"stream\": \"flows\", \"path\": \"/tmp/a\"}", "error",
		"\"the latest run has no stream flows\"");
	check("send", "{\"streams\": [" COUNTED ", {\"to\": \"left\"}]}", "run", "1");
	await_done();
	for (uint32_t i = 0; i < 4; i++)
		ctx.gen->current->received[0]->per_flow->received[i] = 10 + i;
	snprintf(params, sizeof(params), "{\"stream\": \"flows\", \"path\": \"%s\"}", path);
	json_t *reply = call("flow_counts", params);
	expect(reply, "run", "1");
	expect(reply, "flows", "4");
	expect(reply, "received", "46");
	json_decref(reply);
	close(fd);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fread(found, sizeof(found[0]), ARRAY_LEN(found), file), 4);
	fclose(file);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(found[i], 10 + i);
	assert_int_equal(remove(path), 0);
	check("flow_counts", "{\"stream\": \"stream1\", \"path\": \"/tmp/a\"}", "error",
		"\"the flows of stream stream1 are not counted; add \\\"count_flows: true\\\" to "
		"it\"");
	check("flow_counts", "{\"stream\": \"flows\", \"path\": \"a\"}", "error",
		"\"path \\\"a\\\": expected an absolute path\"");
	check("flow_counts", "{\"stream\": \"flows\", \"path\": \"/nowhere/a\"}", "error",
		"\"cannot write /nowhere/a: No such file or directory\"");
}

#define LOGGED                                                                                     \
	"{\"name\": \"flows\", \"from\": \"left\", \"to\": \"right\", \"dst_mac\": "               \
	"\"02:00:00:00:00:99\", \"rate\": \"max\", \"frames\": 100, \"dscp\": 46, "                \
	"\"log_arrivals\": 3}"

static void writes_the_arrivals_of_a_stream_to_a_file(void **state)
{
	char path[] = "/tmp/dl3-arrivals-XXXXXX", params[128];
	struct arrivals_record found[3];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	check("send", "{\"streams\": [" LOGGED ", {\"to\": \"left\"}]}", "streams.0.log_arrivals",
		"3");
	await_done();
	const struct run *run = ctx.gen->current;
	const uint64_t now = run->start + 3 * run->hz;
	const uint64_t since[] = {run->hz, 0};
	const struct whole frames = {.n = 2, .bytes = {64, 9622}};
	arrivals_add(run->received[0]->per_flow->arrivals, &frames, (uint32_t[]){7, 8}, since, now);
	arrivals_add(run->received[0]->per_flow->arrivals, &frames, (uint32_t[]){9, 10}, since,
		now);
	snprintf(params, sizeof(params), "{\"stream\": \"flows\", \"path\": \"%s\"}", path);
	json_t *reply = call("arrivals", params);
	expect(reply, "frames", "3");
	expect(reply, "missed", "1");
	json_decref(reply);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fread(found, sizeof(found[0]), 3, file), 3);
	assert_int_equal(fgetc(file), EOF);
	fclose(file);
	assert_int_equal(remove(path), 0);
	assert_int_equal(found[0].at_ns, 3000000000);
	assert_in_range(found[0].delay_ns, 999999900, 1000000000);
	assert_int_equal(found[1].delay_ns, 0);
	assert_int_equal(found[1].bytes, 9622);
	assert_int_equal(found[2].flow, 9);
	check("arrivals", "{\"stream\": \"stream1\", \"path\": \"/tmp/a\"}", "error",
		"\"the arrivals of stream stream1 are not logged; add \\\"log_arrivals: N\\\" to "
		"it\"");
	check("arrivals", "{\"stream\": \"flows\", \"path\": \"a\"}", "error",
		"\"path \\\"a\\\": expected an absolute path\"");
	check("arrivals", "{\"stream\": \"flows\", \"path\": \"/nowhere/a\"}", "error",
		"\"cannot write /nowhere/a: No such file or directory\"");
}

static void one_worker_receives_all_frames_of_a_stream(void **state)
{
	check("send",
		"{\"streams\": [{\"name\": \"a\", \"to\": \"left\", \"expect\": {\"secret\": 1, "
		"\"ports\": [\"left\", \"right\"]}}], \"seconds\": 1}",
		"error",
		"\"stream a: its frames are expected on ports left and right, which are polled by "
		"workers 0 and 1; let one worker poll both\"");
}

static void a_port_where_frames_are_expected_needs_a_link(void **state)
{
	fake.is_down[1] = true;
	check("send",
		"{\"streams\": [{\"name\": \"a\", \"to\": \"left\", \"expect\": {\"secret\": 1, "
		"\"ports\": [\"left\", \"right\"]}}], \"seconds\": 1}",
		"error",
		"\"port right of stream a has no link; connect the cable, or start the program at "
		"the other end, then send again\"");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_ctx, break_ctx)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_row_of_the_schema_is_a_method_in_help),
		TEST(takes_exactly_its_parameters),
		TEST(tells_of_the_file_and_of_no_run_yet),
		TEST(sends_the_streams_of_the_file),
		TEST(counts_what_the_sink_has_seen),
		TEST(a_late_first_frame_makes_no_higher_rate),
		TEST(tells_when_those_frames_were_due_that_are_lost),
		TEST(forgets_what_the_device_missed_before),
		TEST(refuses_a_second_run_until_the_first_is_over),
		TEST(what_arrives_was_sent),
		TEST(a_refusal_changes_nothing),
		TEST(says_when_there_is_nothing_to_send),
		TEST(receives_only_for_as_long_as_it_is_told),
		TEST(tells_what_it_expected_and_what_it_found),
		TEST(writes_the_counters_of_flows_to_a_file),
		TEST(writes_the_arrivals_of_a_stream_to_a_file),
		TEST(one_worker_receives_all_frames_of_a_stream),
		TEST(a_port_where_frames_are_expected_needs_a_link),
		TEST(stop_only_raises_the_flag),
		TEST(a_worker_or_a_device_that_ends_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
