// Loads and exports in parts, without threads: what is displayed meanwhile, what a mistake takes
// back, what changes beside an export. Tests only.
#include "qos/qos.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { HZ = 64000000, N_IFACES = 4, N_MANY = 3000, TEXT_BYTES = 1 << 20 };

static struct qos *qos;
static struct error why;
static const char *iface_names[N_IFACES] = {"east", "west"};

static const char *iface_name(void *ctx, unsigned iface)
{
	return iface_names[iface];
}

static int open_one(void **state)
{
	const struct qos_settings settings = {.n_workers = 1,
		.hz = HZ,
		.n_ifaces = N_IFACES,
		.iface_name = iface_name};

	return qos_open(&qos, &settings, &why);
}

static int close_one(void **state)
{
	qos_close(qos);
	return 0;
}

static void change(const char *text)
{
	qos_begin(qos);
	if (qos_stage(qos, text, false, &why) || qos_prepare(qos, &why))
		fail_msg("%s", why.text);
	qos_commit(qos, 0);
}

// All there is, as text. Owner: caller.
static char *all(void)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	assert_true(qos_export(qos, out));
	fclose(out);
	return text;
}

static struct qos_load *begin(const char *text)
{
	char path[] = "/tmp/qos_load_XXXXXX";
	const int fd = mkstemp(path);
	const size_t n = strlen(text);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(write(fd, text, n), n);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	struct qos_load *load = qos_load_open(qos, fd, "file", &why);

	assert_non_null(load);
	return load;
}

static int finish(struct qos_load *load, unsigned most)
{
	int result;

	do
		result = qos_load_some(load, most, 0, &why);
	while (result > 0);
	qos_load_close(load);
	return result;
}

static enum qos_load_phase phase(const struct qos_load *load)
{
	uint64_t n_lines;

	return qos_load_phase(load, &n_lines);
}

static void expect_all(const char *before)
{
	char *now = all();

	assert_string_equal(now, before);
	free(now);
}

// Many subscribers, with prefix lengths that come into use late.
static char *many(const char *last)
{
	char *text = malloc(TEXT_BYTES);
	size_t n = 0;

	assert_non_null(text);
	n += sprintf(text, "profile p rate 8kbit/s\nprofile q rate 9kbit/s # another one\n\n");
	for (unsigned i = 0; i < N_MANY; i++)
		n += sprintf(text + n,
			"s%u up p address 10.0.%u.%u address 2001:db8:%x:100::/64\r\n", i, i >> 8,
			i & 255, i);
	for (unsigned i = 0; i < N_MANY / 4; i++)
		n += sprintf(text + n, "t%u down q address 11.0.%u.0/24 address 2001:db9:%x::/48\n",
			i, i & 255, i);
	for (unsigned i = 256; i < N_MANY / 4; i++)
		n += sprintf(text + n, "t%u down q address 12.%u.%u.0/24\n", i, i >> 8, i & 255);
	sprintf(text + n, "%s", last);
	return text;
}

static void parts_do_what_one_batch_does(void **state)
{
	char *text = many("s7 up q\nremove s8\nno-profile none-such");
	char *mistake = strstr(text, "no-profile");

	// 11.0.x.0/24 repeat after 256: those are the mistake of this file.
	assert_int_equal(finish(begin(text), 7), -EEXIST);
	assert_non_null(strstr(why.text, "overlaps with one of subscriber 't0'"));
	*mistake = 0;
	char *wrong = strstr(text, "t256 ");
	char *right = strstr(wrong, "t256 down q address 12.");

	memmove(wrong, right, strlen(right) + 1);
	qos_begin(qos);
	char *copy = strdup(text);
	if (qos_stage_lines(qos, "file", copy, strlen(copy), false, &why) || qos_prepare(qos, &why))
		fail_msg("%s", why.text);
	qos_commit(qos, 0);
	free(copy);
	char *expected = all();

	assert_null(strstr(expected, "\ns8 "));
	close_one(NULL);
	assert_int_equal(open_one(NULL), 0);
	if (finish(begin(text), 3))
		fail_msg("%s", why.text);
	expect_all(expected);
	free(expected);
	free(text);
}

static void a_mistake_takes_all_back(void **state)
{
	static const struct {
		const char *last, *sentence;
	} rows[] = {
		{"x up gold", "file:3754: subscriber 'x': up: there is no profile \"gold\"; add it "
			      "first; nothing was changed"},
		{"x address 2001:db8::/32", "file:3754: subscriber 'x': address 2001:db8::/32 "
					    "overlaps with one of subscriber "},
		{"x address 10.0.1.7", "file:3754: subscriber 'x': address 10.0.1.7/32 overlaps "
				       "with one of subscriber 's263'"},
		{"alice address 10.9.0.0/16 number 1048577", "file:3754: subscriber 'alice': "
							     "number is \"1048577\""},
	};
	char *before;

	change("profile p rate 1Mbit/s");
	change("add alice up p address 10.200.0.0/16 interface east");
	change("add s5 up p address 10.0.2.2 number 40");
	before = all();
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		char *text = many(rows[i].last);
		char *wrong = strstr(text, "t256 ");
		char *right = strstr(wrong, "t256 down q address 12.");

		memmove(wrong, right, strlen(right) + 1);
		assert_int_not_equal(finish(begin(text), 5), 0);
		if (strncmp(why.text, rows[i].sentence, strlen(rows[i].sentence)))
			fail_msg("%s", why.text);
		expect_all(before);
		free(text);
	}
	change("set alice down p"); // and goes on
	free(before);
}

static const char *profile_of(const char *name)
{
	struct qos_info info;

	if (!qos_find_name(qos, name, &info))
		return NULL;
	return info.profile[QOS_UP] ? info.profile[QOS_UP] : "none";
}

static void what_was_there_is_shown_until_it_is_applied(void **state)
{
	struct qos_usage usage;

	change("profile p rate 1Mbit/s");
	change("profile old rate 2Mbit/s");
	change("add alice up p address 10.0.0.1 number 5");
	change("add bob up old address 10.0.0.2");
	struct qos_load *load = begin("profile q rate 3Mbit/s\nalice up q number 9\nremove bob\n"
				      "no-profile old\nprofile new rate 1Mbit/s\ncarol up new "
				      "address 10.0.0.2\n");
	char *before = all();

	for (int result = 1; result > 0 && phase(load) < QOS_LOAD_APPLIES;) {
		expect_all(before);
		assert_string_equal(profile_of("alice"), "p");
		assert_string_equal(profile_of("bob"), "old");
		assert_null(profile_of("carol"));
		qos_usage(qos, &usage);
		assert_int_equal(usage.n_subscribers, 2);
		assert_int_equal(usage.n_profiles, 2);
		result = qos_load_some(load, 1, 0, &why);
	}
	for (int result = 1; result > 0; result = qos_load_some(load, 1, 0, &why)) {
		const char *of_bob = profile_of("bob");

		assert_true(!of_bob || !strcmp(of_bob, "old"));
	}
	qos_load_close(load);
	assert_string_equal(profile_of("alice"), "q");
	assert_string_equal(profile_of("carol"), "new");
	assert_null(profile_of("bob"));
	free(before);
}

// A load that is closed at any time has changed nothing, or all.
static void one_that_is_closed_is_taken_back(void **state)
{
	const char *text = "profile q rate 3Mbit/s\nalice up q\nbob address 10.0.0.0/24\n";
	unsigned n_parts = 0;
	int result = 1;

	change("profile p rate 1Mbit/s");
	change("add alice up p address 11.0.0.1");
	char *before = all();

	for (unsigned n = 0; result > 0; n++) {
		struct qos_load *load = begin(text);

		for (unsigned i = 0; i < n && result > 0; i++)
			result = qos_load_some(load, 1, 0, &why);
		if (phase(load) >= QOS_LOAD_APPLIES)
			result = 0;
		qos_load_close(load);
		if (result > 0)
			expect_all(before);
		n_parts = n;
	}
	assert_int_equal(result, 0);
	assert_true(n_parts > 6);
	assert_string_equal(profile_of("alice"), "q");
	free(before);
}

static uint32_t of_iface(unsigned iface)
{
	return qos_of_iface(&qos_live(qos)->view, iface);
}

static void interfaces_that_appear_meanwhile_are_bound(void **state)
{
	change("profile p rate 1Mbit/s");
	change("add alice interface east interface south number 1");
	struct qos_load *load = begin("alice interface east interface south\n"
				      "bob interface north number 2\n");

	while (phase(load) < QOS_LOAD_CHECKS)
		assert_true(qos_load_some(load, 1, 0, &why) > 0);
	qos_bind(qos, 1, NULL);
	iface_names[2] = "south";
	qos_bind(qos, 2, "south");
	iface_names[3] = "north";
	qos_bind(qos, 3, "north");
	assert_int_equal(of_iface(0), 0);
	assert_int_equal(of_iface(2), 0); // alice stays
	assert_int_equal(of_iface(3), QOS_NONE);
	assert_int_equal(finish(load, 1), 0);
	assert_int_equal(of_iface(2), 0);
	assert_int_equal(of_iface(3), 1);
	load = begin("bob number 2\nmallory up none-such\n");
	while (phase(load) != QOS_LOAD_TAKES_BACK)
		assert_true(qos_load_some(load, 1, 0, &why) > 0);
	qos_bind(qos, 3, "north");
	assert_int_equal(of_iface(3), QOS_NONE);
	assert_int_equal(finish(load, 1), -EINVAL);
	assert_int_equal(of_iface(3), 1);
	iface_names[2] = iface_names[3] = NULL;
}

static void an_export_is_as_it_began(void **state)
{
	static const char *const changes[] = {"remove s2", "add s2 address 10.0.0.2 number 3",
		"set s9 up q without 10.0.0.9", "put s1 address 10.0.0.9", "remove s8",
		"no-profile p", "profile q rate 3Mbit/s", "profile p rate 4Mbit/s",
		"add last up p"};
	char text[64];

	change("profile q rate 2Mbit/s");
	change("profile p rate 1Mbit/s");
	for (unsigned i = 0; i < 10; i++) {
		snprintf(text, sizeof(text), "add s%u address 10.0.0.%u number %u", i, i, i + 1);
		change(text);
	}
	char *before = all();

	// Profiles take as many parts as there may be of them.
	for (unsigned n = 0; n < 16; n++) {
		char *written = NULL;
		size_t bytes;
		FILE *out = open_memstream(&written, &bytes);
		struct qos_export *export = qos_export_open(qos, out, &why);

		if (n) {
			while (!qos_export_n(export))
				assert_true(qos_export_some(export, 1));
			qos_export_some(export, n - 1);
		}
		for (unsigned i = 0; i < ARRAY_LEN(changes); i++)
			change(changes[i]);
		while (qos_export_some(export, 3))
			continue;
		qos_export_close(export);
		fclose(out);
		assert_int_equal(bytes, strlen(before));
		for (char *line = strtok(written, "\n"); line; line = strtok(NULL, "\n"))
			assert_non_null(strstr(before, line));
		free(written);
		close_one(NULL);
		assert_int_equal(open_one(NULL), 0);
		char *copy = strdup(before);

		qos_begin(qos);
		assert_int_equal(qos_stage_lines(qos, "file", copy, strlen(copy), false, &why), 0);
		assert_int_equal(qos_prepare(qos, &why), 0);
		qos_commit(qos, 0);
		free(copy);
	}
	free(before);
}

// With as many profiles as there may be, a new one gets the id of one that the same batch removes.
static void an_export_knows_profiles_whose_ids_others_get(void **state)
{
	enum { MOST_PROFILES = QOS_PROFILES / 2 - 1 };
	static const char *const changes[] = {"set alice up none", "no-profile p7",
		"profile new rate 1Mbit/s"};
	char *written = NULL, text[64];
	size_t bytes;

	(void)state;
	qos_begin(qos);
	for (unsigned i = 0; i < MOST_PROFILES; i++) {
		snprintf(text, sizeof(text), "profile p%u rate 1Mbit/s", i);
		assert_int_equal(qos_stage(qos, text, false, &why), 0);
	}
	assert_int_equal(qos_stage(qos, "add alice up p7", false, &why), 0);
	assert_int_equal(qos_prepare(qos, &why), 0);
	qos_commit(qos, 0);
	FILE *out = open_memstream(&written, &bytes);
	struct qos_export *export = qos_export_open(qos, out, &why);

	qos_begin(qos);
	for (unsigned i = 0; i < ARRAY_LEN(changes); i++)
		assert_int_equal(qos_stage(qos, changes[i], false, &why), 0);
	assert_int_equal(qos_prepare(qos, &why), 0);
	qos_commit(qos, 0);
	while (qos_export_some(export, 1000))
		continue;
	qos_export_close(export);
	fclose(out);
	assert_non_null(strstr(written, "\nalice number 1 up p7 #"));
	assert_non_null(strstr(written, "\nprofile p7 "));
	assert_null(strstr(written, "profile new"));
	free(written);
}

static void bytes_that_are_no_lines_are_refused(void **state)
{
	char *text = malloc(TEXT_BYTES);
	const int fd = open("/dev/null", 0);

	assert_null(qos_load_open(qos, fd, "/dev/null", &why));
	assert_string_equal(why.text, "/dev/null: expected a regular file of at most 1 GiB");
	memset(text, 'a', 70000);
	strcpy(text + 70000, "\n");
	assert_int_equal(finish(begin(text), 9), -EINVAL);
	assert_string_equal(why.text, "file:1: a line of more than 65536 bytes; expected at most "
				      "4091; nothing was changed");
	strcpy(text, "alice\nbob\n");
	struct qos_load *load = begin(text);
	assert_int_equal(finish(load, 9), 0);
	free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_one, close_one)
	const struct CMUnitTest tests[] = {
		TEST(parts_do_what_one_batch_does),
		TEST(a_mistake_takes_all_back),
		TEST(what_was_there_is_shown_until_it_is_applied),
		TEST(one_that_is_closed_is_taken_back),
		TEST(interfaces_that_appear_meanwhile_are_bound),
		TEST(an_export_is_as_it_began),
		TEST(an_export_knows_profiles_whose_ids_others_get),
		TEST(bytes_that_are_no_lines_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
