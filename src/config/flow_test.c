// The key `flow`: its meaning, and the error message for each mistake.
#include "config/fake_file.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const struct mistake mistakes[] = {
	{PORTS "flow: yes", "f.yaml:4: flow: found \"yes\", expected a map (key: value)"},
	{PORTS "flow:", "f.yaml:4: flow: no flows; expected \"ipv4\" or \"ipv6\" with how many "
			"there may be"},
	{PORTS "flow: {ipv4: 0, ipv6: 0}",
		"f.yaml:4: flow: no flows; expected \"ipv4\" or \"ipv6\" with how many there may "
		"be"},
	{PORTS "flow: {ipv5: 1}", "f.yaml:4: unknown key \"flow.ipv5\"; did you mean \"ipv4\"?"},
	{PORTS "flow:\n  ipv4: -1",
		"f.yaml:5: flow.ipv4: found \"-1\", expected a number from 0 to 67108863"},
	{PORTS "flow: {ipv4: 67108864}",
		"f.yaml:4: flow.ipv4: found \"67108864\", expected a number from 0 to 67108863"},
	{PORTS "flow:\n  ipv4: 67108863\n  ipv6: 1",
		"f.yaml:5: flow: ipv4 and ipv6 are 67108864 together, expected at most 67108863"},
	{PORTS "flow: {ipv4: 1, missing: punt}",
		"f.yaml:4: flow.missing: found \"punt\", expected one of route/drop"},
	{PORTS "flow: {ipv4: 1, timeouts: 30}",
		"f.yaml:4: flow.timeouts: found \"30\", expected a list"},
	{PORTS "flow:\n  ipv4: 1\n  timeouts:\n  - 30\n  - 0",
		"f.yaml:8: flow.timeouts[1]: found \"0\", expected a number of seconds from 1 to "
		"345600"},
	{PORTS "flow: {ipv4: 1, timeouts: [345601]}",
		"f.yaml:4: flow.timeouts[0]: found \"345601\", expected a number of seconds from "
		"1 to 345600"},
	{PORTS "flow: {ipv4: 1, timeouts: [1.5]}",
		"f.yaml:4: flow.timeouts[0]: found \"1.5\", expected a number of seconds from 1 "
		"to 345600"},
	{PORTS "flow: {ipv4: 1, timeouts: [30, 60, 30]}",
		"f.yaml:4: flow.timeouts[2]: 30 is the same as flow.timeouts[0]; remove one"},
	{PORTS "flow: {ipv4: 1, timeouts: [1, 2, 3, 4, 5, 6, 7, 8, 9]}",
		"f.yaml:4: flow.timeouts has more than 8 members; remove some"},
	{PORTS "flow: {ipv4: 1, file: }",
		"f.yaml:4: flow.file: found no value, expected text of 1 to 1023 characters"},
	{PORTS "flow: {ipv4: 1, ended_file: [a]}",
		"f.yaml:4: flow.ended_file: found a list, expected text of 1 to 1023 characters"},
	{PORTS "flow: {ipv4: 1, file: \"a\\nb\"}",
		"f.yaml:4: flow.file has a control character; remove it"},
	{PORTS "flow: {ipv4: 1, learn: 30}",
		"f.yaml:4: flow.learn: found \"30\", expected a map (key: value)"},
	{PORTS "flow: {ipv4: 1, timeouts: [30], learn: }",
		"f.yaml:4: flow.learn: missing \"timeout\"; expected one of flow.timeouts"},
	{PORTS "flow: {ipv4: 1, learn: {timeout: 30}, timeouts: [60, 300]}",
		"f.yaml:4: flow.learn.timeout is 30; expected one of flow.timeouts"},
	{PORTS "flow: {ipv4: 1, timeouts: [30], learn: {timeout: 30, rate: 0}}",
		"f.yaml:4: flow.learn.rate: found \"0\", expected a number from 1 to 1000000"},
	{PORTS "flow: {ipv4: 1, timeouts: [30], learn: {timeout: 30, per_port: 5}}",
		"f.yaml:4: unknown key \"flow.learn.per_port\"; did you mean \"per_vrf\"?"},
	{PORTS "flow: {ipv4: 1, file: /a, ended_file: /a}",
		"f.yaml:4: flow: \"file\" and \"ended_file\" are the same; expected two files"},
};

static void answers_each_mistake_with_one_sentence(void **state)
{
	fake_check_mistakes(fake_read, mistakes, ARRAY_LEN(mistakes));
}

static void without_the_key_there_is_no_table(void **state)
{
	struct config *config = fake_take(PORTS);

	assert_null(config_flow(config));
	config_free(config);
}

static void takes_each_key(void **state)
{
	struct config *config = fake_take(PORTS
		"flow: {ipv4: 1000, ipv6: 20, missing: drop, timeouts: [300, 30], file: /var/f, "
		"ended_file: e}\n");
	const struct config_flow *flow = config_flow(config);

	assert_non_null(flow);
	assert_int_equal(flow->max4, 1000);
	assert_int_equal(flow->max6, 20);
	assert_true(flow->drops_missing);
	assert_int_equal(flow->timeout_s[0], 300);
	assert_int_equal(flow->timeout_s[1], 30);
	assert_int_equal(flow->timeout_s[2], 0);
	assert_string_equal(flow->file, "/var/f");
	assert_string_equal(flow->ended_file, "./e"); // beside f.yaml
	config_free(config);
}

static void packets_without_a_flow_are_routed_unless_it_says_drop(void **state)
{
	struct config *config = fake_take(PORTS "flow: {ipv6: 1}\n");

	assert_false(config_flow(config)->drops_missing);
	assert_string_equal(config_flow(config)->file, "");
	assert_int_equal(config_flow(config)->timeout_s[0], 0);
	config_free(config);
}

static void flows_are_learnt_if_it_says_so(void **state)
{
	struct config *config =
		fake_take(PORTS "flow: {ipv4: 1, timeouts: [300, 30], learn: {timeout: 30}}\n");
	const struct config_learn *learn = &config_flow(config)->learn;

	assert_int_equal(learn->timeout_s, 30);
	assert_int_equal(learn->rate, 100000);
	assert_int_equal(learn->per_vrf, 0);
	config_free(config);
	config = fake_take(PORTS "flow: {ipv4: 1, timeouts: [30], learn: {timeout: 30, rate: 7, "
				 "per_vrf: 8, per_interface: 9}}\n");
	learn = &config_flow(config)->learn;
	assert_int_equal(learn->rate, 7);
	assert_int_equal(learn->per_vrf, 8);
	assert_int_equal(learn->per_interface, 9);
	config_free(config);
	config = fake_take(PORTS "flow: {ipv4: 1, timeouts: [30]}\n");
	assert_int_equal(config_flow(config)->learn.timeout_s, 0);
	config_free(config);
}

static void refuses_a_path_that_is_too_long_with_its_folder(void **state)
{
	char text[CONFIG_PATH_MAX + 128];
	struct config *config;
	struct error error = {""};

	snprintf(text, sizeof(text), PORTS "flow: {ipv4: 1, file: %0*d}\n", CONFIG_PATH_MAX - 2, 1);
	assert_int_not_equal(fake_read(&config, text, &error), 0);
	assert_string_equal(error.text,
		"f.yaml:4: flow.file: the path is longer than 1023 characters with the folder of "
		"this file; expected a shorter one");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_each_mistake_with_one_sentence),
		cmocka_unit_test(without_the_key_there_is_no_table),
		cmocka_unit_test(takes_each_key),
		cmocka_unit_test(packets_without_a_flow_are_routed_unless_it_says_drop),
		cmocka_unit_test(flows_are_learnt_if_it_says_so),
		cmocka_unit_test(refuses_a_path_that_is_too_long_with_its_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
