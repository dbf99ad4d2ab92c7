// The key `linux`: its meaning, its conflicts, and the error message for each mistake.
#include "config/fake_file.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_NAME "a123456789a123456789a123456789a123456789a123456789a123456789abcd"

static const struct mistake mistakes[] = {
	{PORTS "linux: yes", "f.yaml:4: linux: found \"yes\", expected a map (key: value)"},
	{PORTS "linux: {nemaspace: a}",
		"f.yaml:4: unknown key \"linux.nemaspace\"; did you mean \"namespace\"?"},
	{PORTS "linux: {keep: maybe}",
		"f.yaml:4: linux.keep: found \"maybe\", expected one of false/true"},
	{PORTS "linux: {namespace: a/b}", "f.yaml:4: linux.namespace: found \"a/b\", expected a "
					  "name that \"ip netns\" lists, of 1 to 63 characters"},
	{PORTS "linux: {namespace: ..}", "f.yaml:4: linux.namespace: found \"..\", expected a name "
					 "that \"ip netns\" lists, of 1 to 63 characters"},
	{PORTS "linux: {namespace: }", "f.yaml:4: linux.namespace: found no value, expected a name "
				       "that \"ip netns\" lists, of 1 to 63 characters"},
	{PORTS "linux: {classes: {tll: {rate: 1}}}",
		"f.yaml:4: unknown key \"linux.classes.tll\"; did you mean \"ttl\"?"},
	{PORTS "linux: {classes: {ttl: 5}}",
		"f.yaml:4: linux.classes.ttl: found \"5\", expected a map (key: value)"},
	{PORTS "linux: {classes: {ttl: {rate: 10000001}}}",
		"f.yaml:4: linux.classes.ttl.rate: found \"10000001\", expected a number from 0 to "
		"10000000"},
	{PORTS "linux: {classes: {ttl: {burst: 0}}}", "f.yaml:4: linux.classes.ttl.burst: found "
						      "\"0\", expected a number from 1 to 65536"},
	{PORTS "linux: {classes: {ttl: {overflow: forward}}}",
		"f.yaml:4: linux.classes.ttl.overflow: found \"forward\", expected drop: workers "
		"can forward packets of class redirect only"},
	// Keys that are configured in Linux then, at any level.
	{PORTS "routes: [10.0.0.0/8 dev left]\nlinux:",
		"f.yaml:4: key \"routes\" cannot be used with \"linux:\"; configure it in Linux: "
		"ip -n dl3d route add PREFIX via ADDRESS"},
	{PORTS "linux:\nroute_files: [x]",
		"f.yaml:5: key \"route_files\" cannot be used with \"linux:\"; configure it in "
		"Linux: ip -n dl3d -batch FILE"},
	{PORTS "linux:\nneighbours: []",
		"f.yaml:5: key \"neighbours\" cannot be used with \"linux:\"; configure it in "
		"Linux: ip -n dl3d neigh add ADDRESS lladdr MAC dev PORT"},
	{PORTS "  - {name: a, device: x, addresses: [192.0.2.1/24]}\nlinux:",
		"f.yaml:4: key \"addresses\" cannot be used with \"linux:\"; configure it in "
		"Linux: ip -n dl3d address add ADDRESS/LENGTH dev a"},
	{PORTS "  - {name: a, device: x, peer: 02:00:00:00:00:01}\nlinux:",
		"f.yaml:4: ports[2]: \"peer\" cannot be used with \"linux:\"; configure it in "
		"Linux: ip -n dl3d neigh add ADDRESS lladdr MAC dev a"},
	{PORTS "  - {name: a, device: x, mode: xconnect, to: left}\nlinux:",
		"f.yaml:4: ports[2]: \"mode: xconnect\" cannot be used with \"linux:\"; "
		"cross-connect the port in a dl3d without \"linux:\""},
	{PORTS "  - {name: lo, device: x}\nlinux:",
		"f.yaml:4: ports[2].name: \"lo\" is reserved by Linux, so the TAP interface cannot "
		"have this name; choose another"},
	{PORTS "  - {name: .., device: x}\nlinux:",
		"f.yaml:4: ports[2].name: \"..\" is reserved by Linux, so the TAP interface cannot "
		"have this name; choose another"},
	// The namespace is named after the socket.
	{PORTS "control: {socket: /run/" LONG_NAME ".sock}\nlinux:",
		"f.yaml:5: control.socket: found "
		"\"/run/a123456789a123456789a123456789a123456789a123456789a1234\", but the "
		"namespace of the TAP interfaces is named after this file; expected a shorter path "
		"that ends in NAME.sock"},
	{PORTS "control: {socket: /run/...sock}\nlinux:",
		"f.yaml:5: control.socket: found \"/run/...sock\", but the namespace of the TAP "
		"interfaces is named after this file; expected a shorter path that ends in "
		"NAME.sock"},
};

static void answers_each_mistake_with_one_sentence(void **state)
{
	fake_check_mistakes(fake_read, mistakes, ARRAY_LEN(mistakes));
}

static void is_off_without_the_key(void **state)
{
	struct config *config = fake_take(PORTS);

	assert_false(config_taps(config)->is_on);
	config_free(config);
}

static void an_empty_key_means_the_defaults(void **state)
{
	static const char *const empty[] = {PORTS "linux:", PORTS "linux: {}",
		PORTS "linux: {classes: }", PORTS "linux: null", PORTS "linux: {classes: ~}"};
	struct tap_settings wanted;

	tap_settings_default(&wanted);
	for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
		struct config *config = fake_take(empty[i]);
		const struct tap_settings *found = config_taps(config);

		assert_true(found->is_on);
		assert_true(found->keep);
		assert_string_equal(found->namespace_name, "");
		assert_string_equal(found->own_namespace, "dl3d");
		assert_string_equal(found->hold_socket, "/run/dl3d.hold");
		assert_memory_equal(found->class, wanted.class, sizeof(wanted.class));
		config_free(config);
	}
}

static void reads_what_is_said(void **state)
{
	struct config *config =
		fake_take(PORTS "linux:\n  namespace: core\n  keep: false\n  classes:\n"
				"    ttl: {rate: 0, burst: 65536}\n"
				"    redirect: {rate: 10000000, overflow: drop}\n"
				"control: {socket: /run/a.b/west}\n");
	const struct tap_settings *found = config_taps(config);

	assert_false(found->keep);
	assert_string_equal(found->namespace_name, "core");
	assert_string_equal(found->own_namespace, "west");
	assert_string_equal(found->hold_socket, "/run/a.b/west.hold");
	assert_int_equal(found->class[CLASS_TTL].rate, 0);
	assert_int_equal(found->class[CLASS_TTL].burst, 65536);
	assert_int_equal(found->class[CLASS_REDIRECT].rate, 10000000);
	assert_int_equal(found->class[CLASS_REDIRECT].burst, class_row(CLASS_REDIRECT)->burst);
	assert_false(found->class[CLASS_REDIRECT].forwards);
	config_free(config);
}

static void a_table_has_the_ports_and_nothing_else(void **state)
{
	const struct wire_mac macs[PORT_MAX] = {{{2, 0, 0, 0, 0, 0xa}}, {{2, 0, 0, 0, 0, 0xb}}};
	struct config *config = fake_take(PORTS "linux:");
	struct error error;
	struct fib *fib = fib_create(&error);
	struct fib_route route;

	assert_int_equal(config_fill(config, macs, fib, &error), 0);
	assert_int_equal(fib_iface(fib, 1)->mac.bytes[5], 0xb);
	assert_int_equal(fib_iface(fib, 1)->mtu, 1500);
	assert_null(fib_iface(fib, 2));
	assert_false(fib_next(fib, &(struct fib_walk){.family = 4}, &route));
	assert_false(fib_next(fib, &(struct fib_walk){.family = 6}, &route));
	fib_destroy(fib);
	config_free(config);
}

static void names_what_needs_a_restart(void **state)
{
	static const struct {
		const char *now, *next, *key;
	} rows[] = {
		{PORTS, PORTS "linux:", "linux"},
		{PORTS "linux:", PORTS, "linux"},
		{PORTS "linux:", PORTS "linux: {namespace: b}", "linux.namespace"},
		{PORTS "linux:", PORTS "linux: {keep: false}", "linux.keep"},
		{PORTS "linux:", PORTS "linux: {classes: {ttl: {rate: 1}}}", NULL},
		{PORTS "linux:", PORTS "linux: {classes: {redirect: {overflow: drop}}}", NULL},
		{"ports: [{name: a, device: x}]\nlinux:",
			"ports: [{name: a, device: x, martians: pass}]\nlinux:", NULL},
		{"ports: [{name: a, device: x}]\nlinux:",
			"ports: [{name: a, device: x, mtu: 9000}]\nlinux:",
			"ports[0].mtu (or ip link set a mtu 9000)"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct config *now = fake_take(rows[i].now), *next = fake_take(rows[i].next);
		const char *key = config_needs_restart(now, next);

		if (!key != !rows[i].key || (key && strcmp(key, rows[i].key)))
			fail_msg("%s -> %s: %s", rows[i].now, rows[i].next, key);
		config_free(now);
		config_free(next);
	}
}

// The block of the example that starts with "# KEY:", without its comment characters. Owner:
// caller.
static char *uncommented(const char *key)
{
	char *text = fake_example(config_print_example), *out = calloc(1, strlen(text) + 1);

	for (char *line = strstr(text, key), *end; line[0] == '#'; line = end + 1) {
		end = strchr(line, '\n');
		strncat(out, line + 2, end + 1 - (line + 2));
	}
	free(text);
	return out;
}

static void the_example_shows_the_defaults(void **state)
{
	char *block = uncommented("# linux:"), *text;
	struct tap_settings wanted;

	assert_true(asprintf(&text, PORTS "%s", block) > 0);
	struct config *config = fake_take(text);
	const struct tap_settings *found = config_taps(config);
	tap_settings_default(&wanted);
	assert_true(found->keep == wanted.keep);
	assert_string_equal(found->namespace_name, "core");
	assert_memory_equal(found->class, wanted.class, sizeof(wanted.class));
	config_free(config);
	free(text);
	free(block);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_each_mistake_with_one_sentence),
		cmocka_unit_test(is_off_without_the_key),
		cmocka_unit_test(an_empty_key_means_the_defaults),
		cmocka_unit_test(reads_what_is_said),
		cmocka_unit_test(a_table_has_the_ports_and_nothing_else),
		cmocka_unit_test(names_what_needs_a_restart),
		cmocka_unit_test(the_example_shows_the_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
