// Loading and exporting subscribers in turns of the control loop, as a client sees it.
#include "api/fixture.h"

#include "api/subscribers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_LINES = 5000 };

static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER; // locked: the disk is slow
static unsigned syncs;                                   // atomic

int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
	(void)fd;
	__atomic_add_fetch(&syncs, 1, __ATOMIC_RELEASE);
	pthread_mutex_lock(&disk);
	pthread_mutex_unlock(&disk);
	return 0;
}

static unsigned n_syncs(void)
{
	return __atomic_load_n(&syncs, __ATOMIC_ACQUIRE);
}

static void set_disk_slow(bool is_slow)
{
	if (is_slow) {
		__atomic_store_n(&syncs, 0, __ATOMIC_RELEASE);
		pthread_mutex_lock(&disk);
	} else {
		pthread_mutex_unlock(&disk);
	}
}

static char folder[] = "/tmp/subscribers_test_XXXXXX", path[64], other[64], params[128];
static const char text[] =
	"ports:\n  - {name: left, device: x}\nqos:\n  profiles:\n    - slow rate "
	"8kbit/s\n  subscribers:\n    - alice down slow address 10.0.0.1\n    - "
	"bob up slow interface left\n";

static int make_ctx(void **state)
{
	struct error error;

	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	if (fixture_open(text) || !mkdtemp(folder) || api_open_subscribers(&ctx, FAKE_HZ, &error))
		return -1;
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	return 0;
}

static int close_ctx(void **state)
{
	api_close_subscribers(&ctx);
	unlink(path);
	unlink(other);
	assert_int_equal(rmdir(folder), 0); // nothing else was left
	return fixture_close(state);
}

static void write_lines(const char *where, unsigned n, const char *last)
{
	FILE *out = fopen(where, "w");

	assert_non_null(out);
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "c%u down slow address 11.0.%u.%u address 2001:db8:%x::/48\n", i,
			i >> 8, i & 255, i);
	fputs(last, out);
	assert_int_equal(fclose(out), 0);
}

static const char *with_path(const char *where, const char *more)
{
	snprintf(params, sizeof(params), "{\"path\": \"%s\"%s}", where, more);
	return params;
}

static void start(const char *method, const char *where, const char *more)
{
	check(method, with_path(where, more), "error", "null");
	check("subscribers.job", "{}", "state", "\"running\"");
}

static void finish(const char *state)
{
	while (subscribers_poll(&ctx) || subscribers_job_waits(&ctx))
		continue;
	check("subscribers.job", "{}", "state", state);
	check("subscribers.job", "{}", "phase", "null");
}

static void expect_refused(const char *method, const char *given, const char *sentence)
{
	json_t *reply = call(method, given);
	const char *why = json_string_value(json_object_get(reply, "error"));

	if (!why || !strstr(why, sentence))
		fail_msg("%s: %s", method, why ? why : "not refused");
	json_decref(reply);
}

static void a_load_takes_turns_and_others_are_refused_meanwhile(void **state)
{
	write_lines(path, N_LINES, "");
	write_lines(other, 1, "");
	start("subscribers.load", path, "");
	for (bool runs = true; runs;) {
		expect_refused("subscribers.change", "{\"changes\": [\"remove bob\"]}",
			"is not finished; try again later");
		expect_refused("subscribers.load", with_path(other, ""), "loading /tmp/");
		expect_refused("subscribers.export", with_path(other, ", \"overwrite\": true"),
			"is not finished; try again later");
		expect_refused("reload", "{}", "is not finished; try again later");
		check("subscribers.find", "{\"name\": \"alice\"}", "number", "1");
		check("subscribers.find", "{\"name\": \"bob\"}", "up.profile", "\"slow\"");
		subscribers_poll(&ctx);
		json_t *job = call("subscribers.job", "{}");
		runs = !strcmp(json_string_value(json_object_get(job, "state")), "running");
		json_decref(job);
	}
	finish("\"done\"");
	check("subscribers.job", "{}", "done", "5000");
	check("subscribers.job", "{}", "subscribers", "5002");
	check("subscribers.change", "{\"changes\": [\"remove bob\"]}", "applied", "1");
	check("reload", "{}", "reloads", "1");
	check("subscribers", "{}", "subscribers", "5002"); // bob is that of the file
}

static void a_load_that_fails_changes_nothing(void **state)
{
	write_lines(path, N_LINES, "alice down fast\n");
	start("subscribers.load", path, "");
	finish("\"failed\"");
	json_t *job = call("subscribers.job", "{}");
	const char *reason = json_string_value(json_object_get(job, "reason"));

	assert_non_null(strstr(reason, "file:5001: subscriber 'alice': down: there is no profile "
				       "\"fast\"; add it first; nothing was changed"));
	json_decref(job);
	check("subscribers", "{}", "subscribers", "2");
	check("subscribers", "{}", "addresses", "1");
	expect_refused("subscribers.find", "{\"name\": \"c0\"}", "there is no subscriber");
	check("subscribers.change", "{\"changes\": [\"add carol address 11.0.0.1\"]}", "applied",
		"1");
	expect_refused("subscribers.load", with_path(folder, ""), "expected a regular file");
	expect_refused("subscribers.load", with_path("file", ""), "expected an absolute path");
	expect_refused("subscribers.load", with_path("/none/such", ""), "No such file");
}

static void an_export_is_as_it_began_whatever_changes(void **state)
{
	write_lines(path, N_LINES, "");
	start("subscribers.load", path, "");
	finish("\"done\"");
	expect_refused("subscribers.export", with_path(path, ""),
		"exists and is not an export of subscribers; expected another \"path\", or "
		"\"overwrite\": true");
	start("subscribers.export", other, "");
	expect_refused("subscribers.load", with_path(path, ""), "exporting to /tmp/");
	expect_refused("subscribers.export", with_path(other, ""), "exporting to /tmp/");
	check("subscribers.change",
		"{\"changes\": [\"remove c4999\", \"add dora address 11.0.19.135\"]}", "applied",
		"2");
	assert_int_equal(access(other, F_OK), -1); // until it is complete
	finish("\"done\"");
	check("subscribers.job", "{}", "done", "5002");
	start("subscribers.load", other, "");
	finish("\"failed\""); // dora has the address of c4999 now
	check("subscribers.change", "{\"changes\": [\"remove dora\"]}", "applied", "1");
	start("subscribers.load", other, "");
	finish("\"done\"");
	check("subscribers", "{}", "subscribers", "5002");
	start("subscribers.export", other, ""); // replaces an export
	finish("\"done\"");
	start("subscribers.export", path, ", \"overwrite\": true");
	finish("\"done\"");
}

// The disk takes its time: it is not waited for, and the old file stays until the new one is there.
static void an_export_waits_for_no_disk(void **state)
{
	static const char old[] = QOS_EXPORT_HEAD "\n";
	FILE *out = fopen(other, "w");
	struct stat status;

	assert_non_null(out);
	fputs(old, out);
	assert_int_equal(fclose(out), 0);
	set_disk_slow(true);
	start("subscribers.export", other, "");
	while (n_syncs() == 0)
		subscribers_poll(&ctx);
	for (unsigned i = 0; i < 1000; i++)
		assert_false(subscribers_poll(&ctx));
	assert_true(subscribers_job_waits(&ctx));
	check("subscribers.job", "{}", "state", "\"running\"");
	check("subscribers.change", "{\"changes\": [\"remove alice\"]}", "applied", "1");
	assert_int_equal(stat(other, &status), 0);
	assert_int_equal(status.st_size, sizeof(old) - 1);
	set_disk_slow(false);
	finish("\"done\"");
	assert_int_equal(stat(other, &status), 0);
	assert_true(status.st_size > (off_t)sizeof(old));
	assert_int_equal(n_syncs(), 1);
}

static void a_job_may_run_when_the_program_ends(void **state)
{
	write_lines(path, N_LINES, "");
	start("subscribers.load", path, "");
	subscribers_poll(&ctx);
	api_close_subscribers(&ctx);
	struct error error;

	assert_int_equal(api_open_subscribers(&ctx, FAKE_HZ, &error), 0);
	start("subscribers.export", other, "");
	subscribers_poll(&ctx);
}

static void an_export_that_cannot_be_written_says_so(void **state)
{
	char beside[80], sentence[240];

	snprintf(beside, sizeof(beside), "%s.new", other);
	write_lines(beside, 1, "");
	expect_refused("subscribers.export", with_path("/missing/file", ""),
		"cannot write /missing/file: No such file or directory");
	snprintf(sentence, sizeof(sentence),
		"cannot write %s, which exists: another export writes it, or has left it there; "
		"remove it, or name another file",
		beside);
	expect_refused("subscribers.export", with_path(other, ""), sentence);
	check("subscribers.job", "{}", "state", "\"none\"");
	unlink(beside);
	start("subscribers.export", other, "");
	unlink(beside); // its name cannot be given to it
	finish("\"failed\"");
	check("subscribers.change", "{\"changes\": [\"remove alice\"]}", "applied", "1");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_ctx, close_ctx)
	const struct CMUnitTest tests[] = {
		TEST(a_load_takes_turns_and_others_are_refused_meanwhile),
		TEST(a_load_that_fails_changes_nothing),
		TEST(an_export_is_as_it_began_whatever_changes),
		TEST(an_export_waits_for_no_disk),
		TEST(a_job_may_run_when_the_program_ends),
		TEST(an_export_that_cannot_be_written_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
