// The key `acl`: its meaning, and the error message for each mistake.
#include "config/fake_file.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct mistake mistakes[] = {
	{PORTS "acl: yes", "f.yaml:4: acl: found \"yes\", expected a map (key: value)"},
	{PORTS "acl: {list: 1}", "f.yaml:4: unknown key \"acl.list\"; did you mean \"lists\"?"},
	{PORTS "acl: {lists: [a]}", "f.yaml:4: acl.lists: expected a map of lists"},
	{PORTS "acl:\n  lists:\n    a: deny",
		"f.yaml:6: acl.lists.a: expected a list of rules, or a map with rules or file, and "
		"default"},
	{PORTS "acl:\n  lists:\n    a:\n    - deny\n    - deny tcp from 10.0.0.1/8",
		"f.yaml:8: acl.lists.a[1]: invalid from \"10.0.0.1/8\": expected ADDRESS, "
		"ADDRESS/LENGTH or any"},
	{PORTS "acl:\n  lists:\n    a:\n    - do: deny\n      port: 80",
		"f.yaml:8: acl.lists.a[0]: unknown key 'port' of a rule"},
	{PORTS "acl:\n  lists:\n    a:\n    - {do: deny, to_port: 80}",
		"f.yaml:7: acl.lists.a[0]: ports need a protocol that has them: add protocol tcp, "
		"udp, sctp, dccp or udplite"},
	{PORTS "acl:\n  lists:\n    a:\n    - {do: deny, do: deny}",
		"f.yaml:7: acl.lists.a[0]: duplicate key \"do\"; remove one"},
	{PORTS "acl: {lists: {a: {default: deny}}}",
		"f.yaml:4: acl.lists.a: expected either rules or file"},
	{PORTS "acl: {lists: {a: {rules: [], default: drop}}}",
		"f.yaml:4: acl.lists.a.default: found \"drop\", expected one of permit/deny"},
	{PORTS "acl: {use: [{interface: left, direction: in, list: a}]}",
		"f.yaml:4: acl: interface 'left' uses list 'a', which does not exist"},
	{PORTS "  - {name: x, device: x, mode: xconnect, to: left}\n"
	       "acl: {lists: {a: []}, use: [{interface: x, direction: in, list: a}]}",
		"f.yaml:5: acl: interface 'x' uses list 'a', but no list judges the frames of a "
		"port with mode: xconnect"},
	{PORTS "acl: {lists: {a: [permit, permit mirror left.10]}}",
		"f.yaml:4: acl: list 'a', rule 2: mirror: there is no port 'left.10'; copies leave "
		"by ports, not by VLANs"},
	{PORTS "acl: {lists: {a: []}, use: [{interface: left, list: a}]}",
		"f.yaml:4: acl.use[0]: expected interface, direction and list"},
	{PORTS "acl:\n  lists:\n    a:\n    - do: permit\n      police: {rate: 10, burst: 64 kB}",
		"f.yaml:8: acl.lists.a[0]: invalid police.rate \"10\": expected 8 kbit/s to 400 "
		"Gbit/s, or 1 to 50,000,000,000 packets/s"},
	{PORTS "acl:\n  lists:\n    a:\n    - do: permit\n      police:\n        rate: 1 Mbit/s\n"
	       "        rate: 2 Mbit/s",
		"f.yaml:9: acl.lists.a[0]: duplicate key \"rate\"; remove one"},
	{PORTS "acl:\n  lists:\n    a:\n    - do: permit\n      police:\n        rate: [1]",
		"f.yaml:9: acl.lists.a[0]: police.rate: expected a word or a number"},
	{PORTS "acl:\n  lists:\n    a:\n    - {do: permit, police: 10 Mbit/s}",
		"f.yaml:7: acl.lists.a[0]: unknown key 'police' of a rule"},
	{PORTS "acl:\n  lists:\n    a:\n    - {do: permit, police: {}}",
		"f.yaml:7: acl.lists.a[0]: police: expected its keys, such as police.rate"},
	{PORTS "acl:\n  lists:\n    a:\n    - {do: permit, police: {depth: 1}}",
		"f.yaml:7: acl.lists.a[0]: unknown key 'police.depth' of a rule"},
	{PORTS "acl: {lists: {a: [permit police.rate 1Mbit/s police.bucket x, permit police.rate "
	       "2Mbit/s police.bucket x]}}",
		"f.yaml:4: acl: police.bucket 'x': list 'a', rule 1 and list 'a', rule 2 have "
		"different rates or bursts; give them the same"},
	{PORTS "acl: {lists: {a: [], a: []}}", "f.yaml:4: acl: two lists have the name 'a'"},
};

static void answers_each_mistake_with_one_sentence(void **state)
{
	fake_check_mistakes(fake_read, mistakes, ARRAY_LEN(mistakes));
}

static void without_the_key_there_are_no_lists(void **state)
{
	struct config *config = fake_take(PORTS);

	assert_int_equal(config_acl(config)->n_lists, 0);
	config_free(config);
}

static void takes_rules_as_maps_and_as_text(void **state)
{
	struct config *config = fake_take(PORTS
		"acl:\n"
		"  lists:\n"
		"    edge:\n"
		"    - {name: no-telnet, do: deny, protocol: tcp, to: 10.0.0.0/8, to_port: 23}\n"
		"    - deny tcp to 10.0.0.0/8 port 23 name no-telnet-2\n"
		"    rest: {rules: [permit icmp local], default: deny}\n"
		"    slow:\n"
		"    - {do: permit, police: {rate: 10 Mbit/s, burst: 64 kB, bucket: all}}\n"
		"  use:\n"
		"  - {interface: left, direction: in, list: edge}\n"
		"  - {interface: left, direction: out, list: rest}\n");
	const struct acl_set *set = config_acl(config);
	char text[ACL_RULE_TEXT];

	assert_int_equal(set->n_lists, 3);
	assert_string_equal(acl_rule_print(&set->list[2].rule[0], text),
		"permit police.rate 10Mbit/s police.burst 64kB police.bucket all");
	assert_string_equal(set->list[0].name, "edge");
	assert_int_equal(set->list[0].n, 2);
	for (unsigned i = 0; i < 2; i++)
		assert_string_equal(acl_rule_print(&set->list[0].rule[i], text),
			"deny tcp to 10.0.0.0/8 to_port 23");
	assert_string_equal(set->list[0].rule[0].name, "no-telnet");
	assert_false(set->list[0].denies_rest);
	assert_true(set->list[1].denies_rest);
	assert_int_equal(set->n_uses, 2);
	assert_int_equal(set->use[0].direction, ACL_IN);
	assert_int_equal(set->use[1].direction, ACL_OUT);
	assert_string_equal(set->use[1].list, "rest");
	config_free(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_each_mistake_with_one_sentence),
		cmocka_unit_test(without_the_key_there_are_no_lists),
		cmocka_unit_test(takes_rules_as_maps_and_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
