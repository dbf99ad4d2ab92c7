// Saving and loading flows as seen by a client: jobs, damaged files, names that changed.
#include "api/flows_fixture.h"

#include "api/flows.h"
#include "base/bits.h"
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <rte_hash_crc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void wait_for_job(const char *state)
{
	const uint64_t until_ns = clock_now_ns() + PATIENCE_S * 1000000000ull;

	for (bool runs = true; runs;) {
		poll_once();
		json_t *job = call("flows.job", "{}");
		runs = !strcmp(json_string_value(json_object_get(job, "state")), "running");
		json_decref(job);
		assert_true(clock_now_ns() < until_ns);
	}
	check("flows.job", "{}", "state", state);
}

static void delete_all(void)
{
	change("{\"op\": \"delete\", " KEY(1) "}, {\"op\": \"delete\", " KEY(2) "}, {\"op\": "
										"\"delete\", " KEY(
											3) "}",
		3);
	wait_for("flows", "{}", "actions", "0");
}

static void fill(void)
{
	change(ADD(1, VIA) ", " ADD(2,
		       "{\"do\": \"via\", \"dev\": \"right\"}") ", {\"op\": "
								"\"add\", " KEY(
									3) ", \"idle_s\": 300, "
									   "\"action\": {\"do\": "
									   "\"drop\"}}",
		3);
}

static void what_was_saved_is_loaded(void **state)
{
	fill();
	check("flows.save", "{}", "error", "null");
	wait_for_job("\"done\"");
	check("flows.job", "{}", "what", "\"save\"");
	check("flows.job", "{}", "done", "3");
	delete_all();
	check("flows.load", "{}", "error", "null");
	wait_for_job("\"done\"");
	check_all("flows.job", "{}",
		(struct wanted[]){
			{"what", "\"load\""},
			{"op", "\"replace\""},
			{"done", "3"},
			{"of", "3"},
			{"refused", "0"},
			{"reason", "null"},
			{NULL, NULL},
		});
	check("flows.find", "{" KEY(1) "}", "flow.action",
		"{\"do\": \"via\", \"via\": \"192.0.2.2\", \"dev\": \"left\", \"dscp\": 46, "
		"\"mirror\": \"right\", \"subscriber\": 12}");
	check("flows.find", "{" KEY(2) "}", "flow.action", "{\"do\": \"via\", \"dev\": \"right\"}");
	check("flows.find", "{" KEY(3) "}", "flow.idle_s", "300");
	check("flows.load", "{\"op\": \"delete\"}", "error", "null");
	wait_for_job("\"done\"");
	check("flows", "{}", "ipv4.flows", "0");
	wait_for("flows", "{}", "actions", "0");
	check("flows", "{}", "nexthops", "0");
}

static void loads_the_file_when_it_starts(void **state)
{
	fill();
	check("flows.save", "{}", "error", "null");
	wait_for_job("\"done\"");
	api_close_flows(&ctx);
	open_flows();
	check("flows.save", "{}", "error",
		"\"flows are loaded once the tables are complete; try again later\"");
	wait_for_job("\"done\"");
	check("flows", "{}", "ipv4.flows", "3");
}

static void without_a_file_nothing_is_loaded_at_start(void **state)
{
	poll_once();
	check("flows.job", "{}", "state", "\"none\"");
	check("flows.job", "{}", "what", "null");
}

// Bytes of the file that was saved by fill(): the header, three flows, then three actions.
enum { ACTION_AT = 64 * 4 };
static void damage_file(unsigned n_records, size_t at, const char *bytes, size_t n)
{
	uint8_t file_bytes[64 * 7];
	const size_t size = n_records * 64;
	int fd = open(flows_path, O_RDWR);

	assert_int_equal(read(fd, file_bytes, sizeof(file_bytes)), size);
	memcpy(file_bytes + at, bytes, n);
	// The checksums, as in the description of the file.
	uint32_t crc = ~rte_hash_crc(file_bytes + 64, size - 64, ~0u);
	memcpy(file_bytes + 32, &crc, sizeof(crc));
	crc = ~rte_hash_crc(file_bytes, 60, ~0u);
	memcpy(file_bytes + 60, &crc, sizeof(crc));
	assert_int_equal(pwrite(fd, file_bytes, size, 0), size);
	close(fd);
}

static void damage(size_t at, const char *bytes, size_t n)
{
	damage_file(7, at, bytes, n);
}

static void save_damaged(size_t at, const char *bytes, size_t n)
{
	check("flows.save", "{}", "error", "null");
	wait_for_job("\"done\"");
	damage(at, bytes, n);
}

static void a_bad_action_changes_nothing(void **state)
{
	static const struct {
		size_t at; // in the record of the first action
		const char *bytes;
		size_t n;
		const char *sentence;
	} rows[] = {
		{0, "\x04", 1, "action 0: unknown action 0x04"},
		{1, "\x41", 1, "action 0: DSCP 65: expected 0 to 63, or 64 to keep it"},
		{2, "\x05", 1, "action 0: family 5 of the next hop: expected 0, 4 or 6"},
		{3, "\x01", 1, "action 0: bytes that are not used are not 0"},
		{12, "\x01", 1, "action 0: bytes that are not used are not 0"},
		{63, "\x01", 1, "action 0: bytes that are not used are not 0"},
		{24, "0123456789abcdef", 16,
			"action 0: the name of an interface is not 1 to 15 characters followed by "
			"zeros"},
		{30, "x", 1,
			"action 0: the name of an interface is not 1 to 15 characters followed by "
			"zeros"},
		{0, "\x80", 1, "action 0: unknown action 0x80"},
	};

	fill();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char wanted[256];
		save_damaged(ACTION_AT + rows[i].at, rows[i].bytes, rows[i].n);
		check("flows.load", "{}", "error", "null");
		wait_for_job("\"failed\"");
		snprintf(wanted, sizeof(wanted), "\"%s: %s\"", flows_path, rows[i].sentence);
		check("flows.job", "{}", "reason", wanted);
		check("flows.job", "{}", "done", "0");
		check("flows", "{}", "actions", "3");
	}
}

// Three flows, of which one has the action that is damaged.
static void only_flows_whose_interface_is_unknown_are_refused(void **state)
{
	static const struct {
		size_t at; // in the record of the first action
		const char *bytes;
		size_t n;
		const char *sentence;
	} rows[] = {
		{24, "lost", 5,
			"\"action 0: dev: unknown interface \\\"lost\\\"; 'dl3 show ports' lists "
			"them\""},
		{40, "up\0\0\0", 5,
			"\"action 0: mirror: unknown interface \\\"up\\\"; 'dl3 show ports' lists "
			"them\""},
		{8, "\xc0\x00\x02\x01", 4,
			"\"action 0: via: 192.0.2.1 is an address of the router itself; expected "
			"that "
			"of a neighbour\""},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		api_close_flows(&ctx);
		open_flows();
		poll_once();
		fill();
		save_damaged(ACTION_AT + rows[i].at, rows[i].bytes, rows[i].n);
		delete_all();
		check("flows.load", "{}", "error", "null");
		wait_for_job("\"done\"");
		check("flows.job", "{}", "refused", "1");
		check("flows.job", "{}", "first_refused", "1");
		check("flows.job", "{}", "done", "3");
		check("flows.job", "{}", "reason", rows[i].sentence);
		check("flows.find", "{" KEY(1) "}", "found", "false");
		check("flows.find", "{" KEY(2) "}", "found", "true");
		check("flows", "{}", "actions", "2");
		assert_int_equal(unlink(flows_path), 0);
	}
}

// A port is removed after a slice of the file's actions has been read.
static void names_may_change_while_a_file_is_loaded(void **state)
{
	enum { N = 300, IN_A_SLICE = 256 };

	char params[512], wanted[16];
	struct error error;

	for (unsigned i = 0; i < N; i++) {
		snprintf(params, sizeof(params),
			"{\"op\": \"add\", \"src\": \"10.0.%u.%u\", \"dst\": \"10.1.0.1\", "
			"\"protocol\": 200, \"action\": {\"do\": \"route\", \"mirror\": \"right\", "
			"\"subscriber\": %u}}",
			i / 256, i % 256, i + 1);
		change(params, 1);
	}
	check("flows.save", "{}", "error", "null");
	wait_for_job("\"done\"");
	api_close_flows(&ctx);
	open_flows();
	ctx.flows->was_loaded = true;
	struct flow_job *job = &ctx.flows->job;
	check("flows.load", "{}", "error", "null");
	while (flow_load_check(job->load, &error) > 0)
		continue;
	assert_int_equal(flow_resolve_begin(&ctx, job, &error), 0);
	assert_int_equal(flow_resolve_step(&ctx, job, &error), 0);
	assert_int_equal(job->n_resolved, IN_A_SLICE);
	check("ports.remove", "{\"name\": \"right\"}", "error", "null");
	wait_for_job("\"done\"");
	snprintf(wanted, sizeof(wanted), "%u", N - IN_A_SLICE);
	check("flows.job", "{}", "refused", wanted);
}

// So that nothing is lost: the file has the only copy.
static void a_file_that_was_not_loaded_at_start_is_not_replaced(void **state)
{
	char wanted[512], params[128];

	fill();
	check("flows.save", "{}", "error", "null");
	wait_for_job("\"done\"");
	snprintf(wanted, sizeof(wanted),
		"\"not all flows of %s could be loaded at start, and saving would replace them; "
		"expected another \\\"path\\\", or \\\"force\\\": true\"",
		flows_path);
	// An unknown interface, an unknown action.
	for (unsigned i = 0; i < 2; i++) {
		damage(ACTION_AT + (i ? 0 : 24), i ? "\x44" : "lost", i ? 1 : 5);
		api_close_flows(&ctx);
		open_flows();
		poll_once();
		wait_for_job(i ? "\"failed\"" : "\"done\"");
		check("flows.save", "{}", "error", wanted);
		snprintf(params, sizeof(params), "{\"path\": \"%s\"}", flows_path);
		check("flows.save", params, "error", wanted);
		snprintf(params, sizeof(params), "{\"path\": \"%s2\"}", flows_path);
		check("flows.save", params, "error", "null");
		wait_for_job("\"done\"");
	}
	check("flows.save", "{\"force\": true}", "error", "null");
	wait_for_job("\"done\"");
	check("flows.save", "{}", "error", "null");
	wait_for_job("\"done\"");
}

// One that is no file of flows at all is not even a job.
static void a_file_that_cannot_be_opened_at_start_is_not_replaced(void **state)
{
	fill();
	check("flows.save", "{}", "error", "null");
	wait_for_job("\"done\"");
	assert_int_equal(truncate(flows_path, 100), 0);
	api_close_flows(&ctx);
	open_flows();
	poll_once();
	check("flows.job", "{}", "state", "\"none\"");
	json_t *reply = call("flows.save", "{}");
	const char *text = json_string_value(json_object_get(reply, "error"));
	assert_non_null(text);
	assert_non_null(strstr(text, "could be loaded at start"));
	json_decref(reply);
}

static void a_file_with_too_many_vrfs_is_refused(void **state)
{
	enum { N = 4096 };
	char wanted[256];
	uint8_t header[64], record[64] = {0x80};
	FILE *to;

	fill();
	change("{\"op\": \"delete\", " KEY(1) "}, {\"op\": \"delete\", " KEY(
		       2) "}, {\"op\": \"delete\", " KEY(3) "}",
		3);
	check("flows.save", "{}", "error", "null");
	wait_for_job("\"done\"");
	to = fopen(flows_path, "r+");
	assert_int_equal(fread(header, 64, 1, to), 1);
	uint32_t crc = ~0u;
	memcpy(header + 12, &(uint32_t){N}, 4);
	record[4] = 1;
	strcpy((char *)record + 24, "blue");
	for (unsigned i = 0; i < N; i++)
		crc = rte_hash_crc(record, sizeof(record), crc);
	memcpy(header + 32, &(uint32_t){~crc}, 4);
	memcpy(header + 60, &(uint32_t){~rte_hash_crc(header, 60, ~0u)}, 4);
	rewind(to);
	fwrite(header, 64, 1, to);
	for (unsigned i = 0; i < N; i++)
		fwrite(record, sizeof(record), 1, to);
	assert_int_equal(fclose(to), 0);
	check("flows.load", "{}", "error", "null");
	wait_for_job("\"failed\"");
	snprintf(wanted, sizeof(wanted), "\"%s has more than 4095 records of VRFs\"", flows_path);
	check("flows.job", "{}", "reason", wanted);
}

static void a_file_with_other_timeouts_or_vrfs_is_refused(void **state)
{
	char wanted[256];

	fill();
	check("flows.save", "{}", "error", "null");
	wait_for_job("\"done\"");
	damage(64 + 39, "\x03", 1);
	check("flows.load", "{}", "error", "null");
	wait_for_job("\"failed\"");
	snprintf(wanted, sizeof(wanted),
		"\"%s: flows have idle timeout 3, but the configuration file has fewer (flow: "
		"timeouts)\"",
		flows_path);
	check("flows.job", "{}", "reason", wanted);
	damage(64 + 36, "\x05\0\0\0", 2);
	check("flows.load", "{}", "error", "null");
	wait_for_job("\"failed\"");
	snprintf(wanted, sizeof(wanted),
		"\"%s: flows have VRF 5, but there is no record with its name\"", flows_path);
	check("flows.job", "{}", "reason", wanted);
}

// In the file it is VRF 5; here it is VRF 3.
static void flows_follow_the_name_of_their_vrf(void **state)
{
	ctx.netlink = fake_sync();
	change("{\"op\": \"add\", " KEY(1) ", \"vrf\": \"blue\", \"action\": {\"do\": \"drop\"}}",
		1);
	check("flows.find", "{" KEY(1) "}", "found", "false");
	check("flows.find", "{" KEY(1) ", \"vrf\": \"blue\"}", "flow.vrf", "\"blue\"");
	assert_int_equal(count_pages(", \"vrf\": \"main\"", 10), 0);
	assert_int_equal(count_pages(", \"vrf\": \"blue\"", 10), 1);
	check("flows.save", "{}", "error", "null");
	wait_for_job("\"done\"");
	damage_file(4, 64 + 36, "\x05", 1);
	damage_file(4, 3 * 64 + 4, "\x05", 1);
	change("{\"op\": \"delete\", " KEY(1) ", \"vrf\": \"blue\"}", 1);
	check("flows.load", "{}", "error", "null");
	wait_for_job("\"done\"");
	check("flows.find", "{" KEY(1) ", \"vrf\": \"blue\"}", "found", "true");
	damage_file(4, 3 * 64 + 24, "red\0", 4);
	change("{\"op\": \"delete\", " KEY(1) ", \"vrf\": \"blue\"}", 1);
	check("flows.load", "{}", "error", "null");
	wait_for_job("\"done\"");
	check_all("flows.job", "{}",
		(struct wanted[]){
			{"refused", "1"},
			{"first_refused", "1"},
			{"reason",
				"\"unknown VRF \\\"red\\\": no VRF device in the namespace of "
				"the TAP interfaces has this name; 'dl3 show mirror' lists them\""},
			{NULL, NULL},
		});
	check("flows", "{}", "ipv4.flows", "0");
	ctx.netlink = NULL;
}

static void paths_are_checked(void **state)
{
	char params[128], wanted[256];

	check("flows.load", "{\"path\": \"flows\"}", "error",
		"\"parameter \\\"path\\\": expected an absolute path of at most 1023 characters\"");
	check("flows.load", "{\"path\": \"/nonexistent\"}", "error",
		"\"cannot open /nonexistent: No such file or directory\"");
	check("flows.load", "{\"path\": \"/dev/zero\"}", "error",
		"\"/dev/zero is not a file of flows\"");
	check("flows.load", "{\"op\": \"add\"}", "error",
		"\"\\\"op\\\" is \\\"add\\\"; expected replace or delete\"");
	check("flows.save", "{\"path\": \"/nonexistent/flows\"}", "error",
		"\"cannot create /nonexistent/flows.new: No such file or directory\"");
	// Not a file of flows: the configuration itself.
	snprintf(params, sizeof(params), "{\"path\": \"%s\"}", file);
	snprintf(wanted, sizeof(wanted),
		"\"%s exists and is not a file of flows; remove it first\"", file);
	check("flows.save", params, "error", wanted);
	snprintf(params, sizeof(params), "{\"path\": \"%s\"}", flows_path);
	assert_int_equal(mkfifo(flows_path, 0600), 0);
	snprintf(wanted, sizeof(wanted), "\"%s is not a file of flows\"", flows_path);
	check("flows.load", params, "error", wanted);
	snprintf(wanted, sizeof(wanted),
		"\"%s exists and is not a file of flows; remove it first\"", flows_path);
	check("flows.save", params, "error", wanted);
	check("flows.job", "{}", "state", "\"none\"");
}

static void one_job_at_a_time(void **state)
{
	char wanted[128];

	fill();
	check("flows.save", "{}", "error", "null");
	snprintf(wanted, sizeof(wanted), "\"saving to %s is not finished; try again later\"",
		flows_path);
	check("flows.load", "{}", "error", wanted);
	check("flows.save", "{}", "error", wanted);
	check("flows.job", "{}", "state", "\"running\"");
	wait_for_job("\"done\"");
}

// The job ends with the table.
static void the_program_may_end_during_a_job(void **state)
{
	fill();
	check("flows.save", "{}", "error", "null");
	api_close_flows(&ctx);
	open_flows();
	char path[80];
	snprintf(path, sizeof(path), "%s.new", flows_path);
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_saved_is_loaded),
		TEST(loads_the_file_when_it_starts),
		TEST(without_a_file_nothing_is_loaded_at_start),
		TEST(a_bad_action_changes_nothing),
		TEST(only_flows_whose_interface_is_unknown_are_refused),
		TEST(names_may_change_while_a_file_is_loaded),
		TEST(a_file_that_was_not_loaded_at_start_is_not_replaced),
		TEST(a_file_that_cannot_be_opened_at_start_is_not_replaced),
		TEST(a_file_with_too_many_vrfs_is_refused),
		TEST(a_file_with_other_timeouts_or_vrfs_is_refused),
		TEST(flows_follow_the_name_of_their_vrf),
		TEST(paths_are_checked),
		TEST(one_job_at_a_time),
		TEST(the_program_may_end_during_a_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
