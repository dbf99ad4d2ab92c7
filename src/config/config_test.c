// Reading the whole file: what is accepted, and the error message for each mistake.
#include "config/fake_file.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct mistake mistakes[] = {
	// YAML syntax.
	{"", "f.yaml: is empty; \"dl3d --example\" prints a file to start from"},
	{"# nothing\n", "f.yaml: is empty; \"dl3d --example\" prints a file to start from"},
	{"hello", "f.yaml:1: the file is \"hello\"; a map (key: value) is wanted"},
	{"[1]", "f.yaml:1: the file is a list; a map (key: value) is wanted"},
	{"ports: [", "f.yaml:1: not YAML: did not find expected node content"},
	{"ports:\n\t- a",
		"f.yaml:2: not YAML: found character that cannot start any token (YAML wants "
		"spaces, not tabs, and quotes around text that starts with a sign)"},
	{PORTS "---\nports: []\n", "f.yaml:4: a second YAML document; one is wanted"},
	{"a: \"x\\0y\"", "f.yaml:1: text with a NUL byte; remove it"},
	{"\n\xff\xfe", "f.yaml:2: not YAML: invalid leading UTF-8 octet"},
	{"[[[[[[[[[[[[[[[[[", "f.yaml:1: lists and maps nested deeper than 16; no key needs that"},
	{"{[a]: b}", "f.yaml:1: a key that is itself a list or map; a word is wanted"},
	{"a: *b", "f.yaml:1: alias *b names no anchor before it; wanted is &b"},
	{"a: &b [*b]", "f.yaml:1: an alias inside of what it names; write the value out"},
	{"{*b: 1}", "f.yaml:1: an alias as key; a word is wanted"},
	// Keys.
	{PORTS "burts: 3", "f.yaml:4: unknown key \"burts\"; did you mean \"burst\"?"},
	{PORTS "zzz: 3", "f.yaml:4: unknown key \"zzz\"; known here are ports, workers, burst, "
			 "idle, memory, "
			 "eal, control, routes, route_files, neighbours, linux"},
	{"ports:\n  - nmae: a\n",
		"f.yaml:2: unknown key \"ports[0].nmae\"; did you mean \"name\"?"},
	{PORTS "memory:\n  hugepage: auto",
		"f.yaml:5: unknown key \"memory.hugepage\"; did you mean \"hugepages\"?"},
	{PORTS "burst: 1\nburst: 2",
		"f.yaml:5: key \"burst\" for the second time; it stands in line 4 already"},
	// Values.
	{PORTS "burst: many", "f.yaml:4: burst is \"many\"; a number from 1 to 64 is wanted"},
	{PORTS "burst: 65", "f.yaml:4: burst is \"65\"; a number from 1 to 64 is wanted"},
	{PORTS "burst: -1", "f.yaml:4: burst is \"-1\"; a number from 1 to 64 is wanted"},
	{PORTS "burst: 99999999999999999999999999",
		"f.yaml:4: burst is \"99999999999999999999999999\"; a number from 1 to 64 is "
		"wanted"},
	{PORTS "idle: doze", "f.yaml:4: idle is \"doze\"; one of sleep/poll is wanted"},
	{PORTS "workers: [{core: 1, idle: 3}]",
		"f.yaml:4: workers[0].idle is \"3\"; one of sleep/poll is wanted"},
	{PORTS "burst:", "f.yaml:4: burst is empty; a number from 1 to 64 is wanted"},
	{PORTS "burst: [1]", "f.yaml:4: burst is a list; a number from 1 to 64 is wanted"},
	{PORTS "memory: {hugepages: maybe}",
		"f.yaml:4: memory.hugepages is \"maybe\"; one of auto/require/never is wanted"},
	{PORTS "memory: {hugepages: }",
		"f.yaml:4: memory.hugepages is empty; one of auto/require/never is wanted"},
	{PORTS "control: {socket: null}", "f.yaml:4: control.socket is empty; text of 1 to 107 "
					  "characters is wanted"},
	{PORTS "control: {group: ~}", "f.yaml:4: control.group is empty; text of 1 to 32 "
				      "characters is wanted"},
	{PORTS "control: {socket: \"/run/a\\nb\"}",
		"f.yaml:4: control.socket has a control character; remove it"},
	{PORTS "memory: [1]", "f.yaml:4: memory is a list; a map (key: value) is wanted"},
	{PORTS "eal: {args: [[a]]}",
		"f.yaml:4: eal.args[0] is a list; text of 1 to 255 characters is wanted"},
	{PORTS "eal: {args: a}", "f.yaml:4: eal.args is \"a\"; a list is wanted"},
	// Ports.
	{"burst: 1", "f.yaml:1: no ports; \"ports:\" with at least one name and device is wanted"},
	{"ports:", "f.yaml:1: ports is empty; at least one port is wanted"},
	{"ports: []", "f.yaml:1: ports is empty; at least one port is wanted"},
	{"ports: {a: b}", "f.yaml:1: ports is a map; a list is wanted"},
	{"ports: [a]", "f.yaml:1: ports[0] is \"a\"; a map (key: value) is wanted"},
	{"ports: [{name: a}]", "f.yaml:1: ports[0] has no device; it is wanted"},
	{"ports: [{device: a}]", "f.yaml:1: ports[0] has no name; it is wanted"},
	{"ports: [{name: 12}]",
		"f.yaml:1: ports[0].name is \"12\"; 1 to 15 letters, digits and -_. are "
		"wanted, not digits alone"},
	{"ports: [{name: a b}]",
		"f.yaml:1: ports[0].name is \"a b\"; 1 to 15 letters, digits and -_. are "
		"wanted, not digits alone"},
	{PORTS "  - {name: left, device: x}",
		"f.yaml:4: port name \"left\" is taken by the port in line 2; choose another"},
	{PORTS "  - {name: a, device: 'net_null0,x=1'}",
		"f.yaml:4: device net_null0 is taken by the port in line 2; choose another"},
	{PORTS "  - {name: a, device: [x]}",
		"f.yaml:4: ports[2].device is a list; a PCI address or a DPDK device is wanted"},
	{PORTS "  - {name: a, device: x, mtu: 67}",
		"f.yaml:4: ports[2].mtu is \"67\"; a number from 68 to 9600 is wanted"},
	{PORTS "  - {name: a, device: x, mac: up}",
		"f.yaml:4: ports[2].mac is \"up\"; a MAC address like "
		"02:00:00:00:00:01 or the word update is wanted"},
	{PORTS "  - {name: a, device: x, peer: 03:00:00:00:00:01}",
		"f.yaml:4: ports[2].peer is the group address 03:00:00:00:00:01; the MAC address "
		"of one box "
		"is wanted"},
	{PORTS "  - {name: a, device: x, mac: '00:00:00:00:00:00'}",
		"f.yaml:4: ports[2].mac is the null address 00:00:00:00:00:00; the MAC address of "
		"one box is wanted"},
	{PORTS "  - {name: a, device: x, mode: bridge}",
		"f.yaml:4: ports[2].mode is \"bridge\"; one of route/xconnect is wanted"},
	{PORTS "  - {name: a, device: x, mode: xconnect}",
		"f.yaml:4: ports[2] is cross-connected to no port; \"to: PORT\" is wanted"},
	{PORTS "  - {name: a, device: x, mode: xconnect, to: b}",
		"f.yaml:4: ports[2] is cross-connected to unknown port \"b\"; one of the names "
		"under ports is "
		"wanted"},
	{PORTS "  - {name: a, device: x, to: left}", "f.yaml:4: ports[2] has \"to\", which means "
						     "something with \"mode: xconnect\" only"},
	{PORTS "  - {name: a, device: x, mac: update}",
		"f.yaml:4: ports[2] has \"mac: update\", which means something with \"mode: "
		"xconnect\" only"},
	{PORTS "  - {name: a, device: x, mode: xconnect, to: left, addresses: [192.0.2.1/24]}",
		"f.yaml:4: ports[2] is cross-connected and has addresses; \"mode: route\" is "
		"wanted for them"},
	{PORTS "  - {name: a, device: x, addresses: [192.0.2.1]}",
		"f.yaml:4: ports[2].addresses[0] is \"192.0.2.1\"; an address with its length like "
		"192.0.2.1/24 is wanted"},
	{PORTS "  - {name: a, device: x, addresses: [192.0.2.0/24]}",
		"f.yaml:4: ports[2].addresses[0] is 192.0.2.0/24, the prefix itself; the address "
		"of the port "
		"in it is wanted"},
	{PORTS "  - {name: a, device: x, addresses: [192.0.2.255/24]}",
		"f.yaml:4: ports[2].addresses[0] is 192.0.2.255/24, the broadcast address of its "
		"prefix; the "
		"address of the port in it is wanted"},
	{PORTS "  - {name: a, device: x, addresses: [127.0.0.1/8]}",
		"f.yaml:4: ports[2].addresses[0] is 127.0.0.1/8, an address that no host may have; "
		"the address "
		"of the port in it is wanted"},
	{PORTS "  - {name: a, device: x, addresses: [\"::1/128\"]}",
		"f.yaml:4: ports[2].addresses[0] is ::1/128, an address that no host may have; the "
		"address of the port in it is wanted"},
	{PORTS "  - {name: a, device: x, addresses: [\"::/128\"]}",
		"f.yaml:4: ports[2].addresses[0] is ::/128, an address that no host may have; the "
		"address of the port in it is wanted"},
	{PORTS "  - {name: a, device: x, addresses: [192.0.2.1/24, 192.0.2.1/25]}",
		"f.yaml:4: ports[2].addresses[1] is 192.0.2.1/25 for the second time; it stands in "
		"line 4 "
		"already"},
	{PORTS "  - {name: a, device: x, addresses: [192.0.2.1/24]}\n"
	       "  - {name: b, device: y, addresses: [192.0.2.2/24]}",
		"f.yaml:5: ports[3].addresses[0] is 192.0.2.2/24, but its prefix is connected to "
		"another port "
		"in line 4; one port is wanted"},
	// Workers.
	{PORTS "workers: [{}]", "f.yaml:4: workers[0] has no core; the number of a CPU is wanted"},
	{PORTS "workers: [{core: 1}, {core: 1}]",
		"f.yaml:4: workers[1] is on core 1, as is the worker in line 4; choose another"},
	{PORTS "workers: [{core: 1, queues: [left]}]",
		"f.yaml:4: workers[0].queues[0] is \"left\"; PORT/QUEUE like left/0 is wanted, "
		"queues from 0 to "
		"63"},
	{PORTS "workers: [{core: 1, queues: [middle/0]}]",
		"f.yaml:4: workers[0].queues[0] names unknown port \"middle\"; one of the names "
		"under ports is "
		"wanted"},
	// Routes and neighbours: the messages themselves are tested with their parsers.
	{PORTS "routes:\n  - blackhole 10.0.0.0/8\n  - 10.0.0.1/24 dev left",
		"f.yaml:6: 10.0.0.1/24 has host bits; did you mean 10.0.0.0/24?"},
	{PORTS "routes: [[a]]", "f.yaml:4: routes[0] is a list; a route like \"192.0.2.0/24 via "
				"198.51.100.1 dev left\" is wanted"},
	{PORTS "routes: [a: b]", "f.yaml:4: routes[0] is a map; a route like \"192.0.2.0/24 via "
				 "198.51.100.1 dev left\" is wanted"},
	{PORTS "  - {name: a, device: x, addresses: [10.0.0.1/24]}\nroutes: [default via 10.0.0.1 "
	       "dev a]",
		"f.yaml:5: 10.0.0.1 is an address of our own; that of a neighbour is wanted"},
	{PORTS "  - {name: a, device: x, addresses: ['2001:db8::1/64']}\n"
	       "neighbours: ['2001:db8::1 lladdr 02:00:00:00:00:01 dev a']",
		"f.yaml:5: 2001:db8::1 is an address of our own; that of a neighbour is wanted"},
	{PORTS "neighbours: [192.0.2.2 dev left]",
		"f.yaml:4: a neighbour needs a MAC address and a port: "
		"\"ADDRESS lladdr MAC dev PORT\""},
	{PORTS "neighbours:\n"
	       "  - 192.0.2.2 lladdr 02:00:00:00:00:02 dev left\n"
	       "  - 192.0.2.2 lladdr 02:00:00:00:00:03 dev left\n",
		"f.yaml:6: neighbour 192.0.2.2 has MAC address 02:00:00:00:00:03 here and "
		"02:00:00:00:00:02 "
		"in f.yaml:5; one is wanted"},
};

static void answers_each_mistake_with_one_sentence(void **state)
{
	fake_check_mistakes(fake_read, mistakes, ARRAY_LEN(mistakes));
}

static void takes_two_ports_and_two_routes(void **state)
{
	struct config *config =
		fake_take(PORTS "routes:\n"
				"  - 10.0.0.0/8 via 192.0.2.2 dev right lladdr 02:00:00:00:00:02\n"
				"  - default dev 0\n");
	const struct port_table_settings *ports = config_ports(config);

	assert_int_equal(ports->n_ports, 2);
	assert_string_equal(ports->ports[1].device, "net_null1");
	assert_int_equal(ports->ports[1].mtu, 1500);
	assert_int_equal(ports->burst, 64);
	assert_string_equal(config_socket(config), "/run/dl3d.sock");
	assert_null(config_socket_group(config));
	assert_int_equal(config->routes.n, 2);
	assert_int_equal(config->routes.n_neighbours, 1);
	assert_int_equal(config->routes.spot[1].line, 6);
	config_free(config);
}

static void a_key_without_a_value_is_a_key_left_out(void **state)
{
	static const char *const values[] = {"", " # mib: 1", " ~", " null", " {}"};
	char text[200];

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		snprintf(text, sizeof(text),
			PORTS "memory:%s\neal:%s\ncontrol:%s\nworkers: ~\n"
			      "routes: null\n",
			values[i], values[i], values[i]);
		struct config *config = fake_take(text);

		assert_string_equal(config_socket(config), "/run/dl3d.sock");
		assert_int_equal(config_ports(config)->memory_mib, 0);
		assert_int_equal(config->routes.n, 0);
		config_free(config);
	}
	struct config *config = fake_take("ports: [{name: \"null\", device: x}]");
	assert_string_equal(config_ports(config)->ports[0].name, "null");
	config_free(config);
}

static void takes_every_key(void **state)
{
	struct config *config =
		fake_take("control: {socket: /tmp/s, group: net}\n"
			  "workers: [{core: 3, queues: [b/1, 0/0]}]\n"
			  "eal: {args: [-x, y], plugins: [p.so]}\n"
			  "memory: {hugepages: never, mib: 512}\n"
			  "burst: 32\n"
			  "idle: sleep\n"
			  "ports:\n"
			  "  - {name: a, device: d, mtu: 9000, queues: 2, rx_descriptors: 64, "
			  "tx_descriptors: 128,\n"
			  "     mac: 02:00:00:00:00:0a, peer: 02:00:00:00:00:0b, martians: pass, "
			  "mode: route,\n"
			  "     addresses: [10.0.0.1/8, 2001:db8::1/64]}\n"
			  "  - {name: b, device: e, mode: xconnect, to: a, mac: update}\n"
			  "  - {name: c, device: f, mode: xconnect, to: 0}\n");
	const struct port_settings *a = &config->ports.ports[0], *b = &config->ports.ports[1];

	assert_string_equal(config->socket, "/tmp/s");
	assert_string_equal(config_socket_group(config), "net");
	assert_int_equal(config->ports.workers[0].core, 3);
	assert_int_equal(config->ports.workers[0].idle, PORT_IDLE_SLEEP);
	assert_int_equal(config->ports.workers[0].n_queues, 2);
	assert_string_equal(config->ports.workers[0].queues[1].port, "a");
	assert_int_equal(config->ports.workers[0].queues[0].queue, 1);
	assert_string_equal(config->ports.eal_args[1], "y");
	assert_string_equal(config->ports.plugins[0], "p.so");
	assert_int_equal(config->ports.huge, PORT_HUGE_NEVER);
	assert_int_equal(config->ports.memory_mib, 512);
	assert_int_equal(config->ports.burst, 32);
	assert_int_equal(a->mtu, 9000);
	assert_int_equal(a->n_queues, 2);
	assert_int_equal(a->n_rx_descriptors, 64);
	assert_int_equal(a->n_tx_descriptors, 128);
	assert_true(a->has_mac && a->has_peer && a->pass_martians && !a->mac_update);
	assert_int_equal(a->peer.bytes[5], 0x0b);
	assert_int_equal(config->n_own, 2);
	assert_int_equal(config->own[1].prefix.len, 64);
	assert_int_equal(b->mode, PORT_XCONNECT);
	assert_true(b->mac_update && !b->has_mac);
	assert_string_equal(b->xconnect, "a");
	assert_string_equal(config->ports.ports[2].xconnect, "a");
	config_free(config);
}

static void resolves_aliases_without_copying_what_they_name(void **state)
{
	char text[4096] = PORTS "memory: &m0 {mib: 1}\n";
	struct error error;
	struct config *config = NULL;
	size_t used = strlen(text);

	// Would expand to 9^12 values.
	used += sprintf(text + used, "routes:\n  - &a0 [x, x, x]\n");
	for (int i = 1; i < 12; i++)
		used += sprintf(text + used,
			"  - &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i,
			i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	assert_int_not_equal(fake_read(&config, text, &error), 0);
	assert_non_null(strstr(error.text, "routes[0] is a list"));
	config = fake_take("ports: [{name: a, device: x, to: &d a, mode: &m xconnect}, {name: b, "
			   "device: y, to: *d, mode: *m}]");
	assert_string_equal(config->ports.ports[1].xconnect, "a");
	config_free(config);
}

// Some editors write a UTF-8 byte order mark.
static void takes_a_file_that_begins_with_the_mark_of_utf8(void **state)
{
	struct error error;
	struct config *config = fake_take("\xef\xbb\xbf" PORTS);

	assert_int_equal(config->ports.n_ports, 2);
	config_free(config);
	assert_int_not_equal(fake_read(&config, "\xef\xbb\xbf" PORTS "burst: x", &error), 0);
	assert_string_equal(error.text,
		"f.yaml:4: burst is \"x\"; a number from 1 to 64 is wanted");
	assert_int_not_equal(fake_read(&config, "\xef\xbb\xbf", &error), 0);
	assert_non_null(strstr(error.text, "is empty"));
}

static void accepts_its_own_example(void **state)
{
	char *text = fake_example(config_print_example);
	struct config *config = fake_take(text);

	assert_int_equal(config->routes.n, 8);
	config_free(config);
	free(text);
}

// Including everything that is commented out.
static void the_example_shows_every_key(void **state)
{
	char *text = fake_example(config_print_example);

	fake_check_keys(&program_forwarder, text);
	free(text);
}

static void names_a_file_that_cannot_be_read(void **state)
{
	struct config *config;
	struct error error;

	assert_int_not_equal(config_load(&config, "/nonexistent/f.yaml", &error), 0);
	assert_string_equal(error.text,
		"/nonexistent/f.yaml: cannot be read: No such file or directory");
	assert_int_not_equal(config_load(&config, "/", &error), 0);
	assert_string_equal(error.text, "/: cannot be read: Is a directory");
	assert_int_not_equal(config_load(&config, "/dev/null", &error), 0);
	assert_string_equal(error.text,
		"/dev/null: is empty; \"dl3d --example\" prints a file to start from");
	assert_int_not_equal(config_load(&config, "/dev/zero", &error), 0);
	assert_string_equal(error.text,
		"/dev/zero: larger than 64 MiB; put routes into files of their own");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_each_mistake_with_one_sentence),
		cmocka_unit_test(takes_two_ports_and_two_routes),
		cmocka_unit_test(a_key_without_a_value_is_a_key_left_out),
		cmocka_unit_test(takes_every_key),
		cmocka_unit_test(resolves_aliases_without_copying_what_they_name),
		cmocka_unit_test(takes_a_file_that_begins_with_the_mark_of_utf8),
		cmocka_unit_test(accepts_its_own_example),
		cmocka_unit_test(the_example_shows_every_key),
		cmocka_unit_test(names_a_file_that_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
