// The key `qos`: what is staged of it, and the error message for each mistake.
#include "config/fake_file.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static const struct mistake mistakes[] = {
	{PORTS "qos: yes", "f.yaml:4: qos: found \"yes\", expected a map (key: value)"},
	{PORTS "qos: {profile: []}", "f.yaml:4: unknown key \"qos.profile\"; did you mean "
				     "\"profiles\"?"},
	{PORTS "qos: {profiles: gold}", "f.yaml:4: profiles: found \"gold\", expected a list"},
	{PORTS "qos:\n  subscribers:\n  - {name: a}",
		"f.yaml:6: subscribers[0]: found a map, expected text"},
	{PORTS "qos: {file: []}", "f.yaml:4: qos.file: found a list, expected the name of a file"},
	{PORTS "workers: [{core: 1, shapes: yes}]",
		"f.yaml:4: workers[0].shapes: found \"yes\", expected one of off/on"},
	{PORTS "workers: [{core: 1}, {core: 2, shapes: on}]",
		"f.yaml:4: workers[1].shapes: nothing is shaped without qos.held_packets; add it, "
		"or remove shapes"},
};

static void answers_each_mistake_with_one_sentence(void **state)
{
	(void)state;
	fake_check_mistakes(fake_read, mistakes, ARRAY_LEN(mistakes));
}

static const char *no_name(void *ctx, unsigned iface)
{
	(void)ctx;
	(void)iface;
	return NULL;
}

static struct qos *open_one(void)
{
	const struct qos_settings settings = {.hz = 1000000000,
		.n_ifaces = 1,
		.iface_name = no_name};
	struct error error;
	struct qos *qos = NULL;

	assert_int_equal(qos_open(&qos, &settings, &error), 0);
	return qos;
}

static int stage(const struct config *config, struct qos *qos, struct error *error)
{
	qos_begin(qos);
	int err = config_stage_qos(config, qos, error);

	if (!err)
		err = qos_prepare(qos, error);
	if (err)
		qos_abort(qos);
	else
		qos_commit(qos, 0);
	return err;
}

// Profiles first, whatever the order; what the next file does not name is gone.
static void stages_what_the_file_says(void **state)
{
	struct config *config = fake_take(PORTS "qos:\n  subscribers:\n  - a up p\n  - b\n  "
						"profiles: [p rate 1Mbit/s]\n");
	struct qos *qos = open_one();
	uint8_t shapers[QOS_MOST_SHAPERS];
	struct qos_info info;
	struct error error;

	(void)state;
	assert_true(config_has_qos(config));
	assert_int_equal(stage(config, qos, &error), 0);
	assert_true(qos_find_name(qos, "a", &info) && info.is_of_file);
	assert_string_equal(info.profile[QOS_UP], "p");
	config_free(config);
	config = fake_take(PORTS "qos: {subscribers: [b, c]}\n");
	assert_int_equal(stage(config, qos, &error), 0);
	assert_false(qos_find_name(qos, "a", &info));
	assert_true(qos_find_name(qos, "c", &info));
	config_free(config);
	config = fake_take(PORTS "qos:\n  subscribers:\n  - d\n  - e up gold\n");
	assert_int_not_equal(stage(config, qos, &error), 0);
	assert_string_equal(error.text,
		"f.yaml:7: qos: subscriber 'e': up: there is no profile \"gold\"; add it first");
	assert_true(qos_find_name(qos, "c", &info));
	assert_false(qos_find_name(qos, "d", &info));
	config_free(config);
	config =
		fake_take(PORTS "workers: [{core: 1, shapes: on}, {core: 2}, {core: 3, shapes: on}]"
				"\nqos: {held_packets: 64}\n");
	assert_int_equal(config_shapers(config, shapers), 2);
	assert_int_equal(shapers[0], 0);
	assert_int_equal(shapers[1], 2);
	config_free(config);
	config = fake_take(PORTS);
	assert_int_equal(config_shapers(config, shapers), 0);
	assert_false(config_has_qos(config));
	config_free(config);
	qos_close(qos);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_each_mistake_with_one_sentence),
		cmocka_unit_test(stages_what_the_file_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
