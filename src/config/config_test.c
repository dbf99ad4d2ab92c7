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
	{"", "f.yaml: the file is empty; \"dl3d --example\" prints one to start from"},
	{"# nothing\n", "f.yaml: the file is empty; \"dl3d --example\" prints one to start from"},
	{"hello", "f.yaml:1: the file: found \"hello\", expected a map (key: value)"},
	{"[1]", "f.yaml:1: the file: found a list, expected a map (key: value)"},
	{"ports: [", "f.yaml:1: YAML syntax error: did not find expected node content"},
	{"ports:\n\t- a",
		"f.yaml:2: YAML syntax error: found character that cannot start any token (YAML "
		"needs spaces, not tabs, and quotes around text that starts with a sign)"},
	{PORTS "---\nports: []\n", "f.yaml:4: a second YAML document; expected one"},
	{"a: \"x\\0y\"", "f.yaml:1: text with a NUL byte; remove it"},
	{"\n\xff\xfe", "f.yaml:2: YAML syntax error: invalid leading UTF-8 octet"},
	{"[[[[[[[[[[[[[[[[[", "f.yaml:1: lists and maps nested deeper than 16; no key needs that"},
	{"{[a]: b}", "f.yaml:1: a key that is itself a list or map; expected a word"},
	{"a: *b", "f.yaml:1: no anchor before alias *b; expected &b"},
	{"a: &b [*b]", "f.yaml:1: an alias inside its own anchor; write the value out"},
	{"{*b: 1}", "f.yaml:1: an alias as key; expected a word"},
	// Keys.
	{PORTS "burts: 3", "f.yaml:4: unknown key \"burts\"; did you mean \"burst\"?"},
	{PORTS "zzz: 3",
		"f.yaml:4: unknown key \"zzz\"; expected one of ports, workers, burst, "
		"idle, memory, eal, control, routes, route_files, neighbours, linux, flow, acl, "
		"qos, bridges"},
	{"ports:\n  - nmae: a\n",
		"f.yaml:2: unknown key \"ports[0].nmae\"; did you mean \"name\"?"},
	{PORTS "memory:\n  hugepage: auto",
		"f.yaml:5: unknown key \"memory.hugepage\"; did you mean \"hugepages\"?"},
	{PORTS "burst: 1\nburst: 2",
		"f.yaml:5: duplicate key \"burst\" (first in line 4); remove one"},
	// Values.
	{PORTS "burst: many", "f.yaml:4: burst: found \"many\", expected a number from 1 to 64"},
	{PORTS "burst: 65", "f.yaml:4: burst: found \"65\", expected a number from 1 to 64"},
	{PORTS "burst: -1", "f.yaml:4: burst: found \"-1\", expected a number from 1 to 64"},
	{PORTS "burst: 99999999999999999999999999",
		"f.yaml:4: burst: found \"99999999999999999999999999\", expected a number from 1 "
		"to 64"},
	{PORTS "idle: doze", "f.yaml:4: idle: found \"doze\", expected one of sleep/poll"},
	{PORTS "workers: [{core: 1, idle: 3}]",
		"f.yaml:4: workers[0].idle: found \"3\", expected one of sleep/poll"},
	{PORTS "burst:", "f.yaml:4: burst: found no value, expected a number from 1 to 64"},
	{PORTS "burst: [1]", "f.yaml:4: burst: found a list, expected a number from 1 to 64"},
	{PORTS "memory: {hugepages: maybe}",
		"f.yaml:4: memory.hugepages: found \"maybe\", expected one of auto/require/never"},
	{PORTS "memory: {hugepages: }",
		"f.yaml:4: memory.hugepages: found no value, expected one of auto/require/never"},
	{PORTS "control: {socket: null}",
		"f.yaml:4: control.socket: found no value, expected text of 1 to 107 characters"},
	{PORTS "control: {group: ~}",
		"f.yaml:4: control.group: found no value, expected text of 1 to 32 characters"},
	{PORTS "control: {socket: \"/run/a\\nb\"}",
		"f.yaml:4: control.socket has a control character; remove it"},
	{PORTS "memory: [1]", "f.yaml:4: memory: found a list, expected a map (key: value)"},
	{PORTS "eal: {args: [[a]]}",
		"f.yaml:4: eal.args[0]: found a list, expected text of 1 to 255 characters"},
	{PORTS "eal: {args: a}", "f.yaml:4: eal.args: found \"a\", expected a list"},
	// Ports.
	{"burst: 1", "f.yaml:1: no ports; expected \"ports:\" with at least one name and device"},
	{"ports:", "f.yaml:1: ports: found none, expected at least one"},
	{"ports: []", "f.yaml:1: ports: found none, expected at least one"},
	{"ports: {a: b}", "f.yaml:1: ports: found a map, expected a list"},
	{"ports: [a]", "f.yaml:1: ports[0]: found \"a\", expected a map (key: value)"},
	{"ports: [{name: a}]",
		"f.yaml:1: ports[0]: missing key \"device\"; expected a name and a device"},
	{"ports: [{device: a}]",
		"f.yaml:1: ports[0]: missing key \"name\"; expected a name and a device"},
	{"ports: [{name: 12}]", "f.yaml:1: ports[0].name: found \"12\", expected 1 to 15 letters, "
				"digits and -_., not digits alone"},
	{"ports: [{name: a b}]", "f.yaml:1: ports[0].name: found \"a b\", expected 1 to 15 "
				 "letters, digits and -_., not digits alone"},
	{PORTS "  - {name: left, device: x}",
		"f.yaml:4: duplicate port name \"left\" (first used in line 2); choose another"},
	{PORTS "  - {name: a, device: 'net_null0,x=1'}",
		"f.yaml:4: duplicate device net_null0 (first used in line 2); choose another"},
	{PORTS "  - {name: a, device: [x]}",
		"f.yaml:4: ports[2].device: found a list, expected a PCI address or a DPDK device"},
	{PORTS "  - {name: a, device: x, mtu: 67}",
		"f.yaml:4: ports[2].mtu: found \"67\", expected a number from 68 to 9600"},
	{PORTS "  - {name: a, device: x, mac: up}",
		"f.yaml:4: ports[2].mac: found \"up\", expected a MAC address like "
		"02:00:00:00:00:01 or the word update"},
	{PORTS "  - {name: a, device: x, peer: 03:00:00:00:00:01}",
		"f.yaml:4: ports[2].peer: found the multicast address 03:00:00:00:00:01, expected "
		"a unicast MAC address"},
	{PORTS "  - {name: a, device: x, mac: '00:00:00:00:00:00'}",
		"f.yaml:4: ports[2].mac: found the zero address 00:00:00:00:00:00, expected a "
		"unicast MAC address"},
	{PORTS "  - {name: a, device: x, mode: bridge}",
		"f.yaml:4: ports[2].mode: found \"bridge\", expected one of route/xconnect"},
	{PORTS "  - {name: a, device: x, mode: xconnect}",
		"f.yaml:4: ports[2]: \"mode: xconnect\" without \"to\"; expected \"to: PORT\""},
	{PORTS "  - {name: a, device: x, mode: xconnect, to: b}",
		"f.yaml:4: ports[2].to: unknown port \"b\"; expected one of the names under ports"},
	{PORTS "  - {name: a, device: x, to: left}",
		"f.yaml:4: ports[2]: \"to\" without \"mode: xconnect\"; add that, or remove it"},
	{PORTS "  - {name: a, device: x, mac: update}",
		"f.yaml:4: ports[2]: \"mac: update\" without \"mode: xconnect\"; add that, or "
		"remove it"},
	{PORTS "  - {name: a, device: x, mode: xconnect, to: left, addresses: [192.0.2.1/24]}",
		"f.yaml:4: ports[2]: \"mode: xconnect\" with addresses; expected \"mode: route\""},
	{PORTS "  - {name: a, device: x, addresses: [192.0.2.1]}",
		"f.yaml:4: ports[2].addresses[0]: found \"192.0.2.1\", expected ADDRESS/LENGTH "
		"like 192.0.2.1/24 (length 1 to 32, IPv6 1 to 128)"},
	{PORTS "  - {name: a, device: x, addresses: [192.0.2.0/24]}",
		"f.yaml:4: ports[2].addresses[0]: found 192.0.2.0/24, the address of the prefix "
		"itself; expected the address of a host"},
	{PORTS "  - {name: a, device: x, addresses: [192.0.2.255/24]}",
		"f.yaml:4: ports[2].addresses[0]: found 192.0.2.255/24, the broadcast address of "
		"its prefix; expected the address of a host"},
	{PORTS "  - {name: a, device: x, addresses: [127.0.0.1/8]}",
		"f.yaml:4: ports[2].addresses[0]: found 127.0.0.1/8, which cannot be assigned to a "
		"host; expected the address of a host"},
	{PORTS "  - {name: a, device: x, addresses: [\"::1/128\"]}",
		"f.yaml:4: ports[2].addresses[0]: found ::1/128, which cannot be assigned to a "
		"host; expected the address of a host"},
	{PORTS "  - {name: a, device: x, addresses: [\"::/128\"]}",
		"f.yaml:4: ports[2].addresses[0]: found ::/128, which cannot be assigned to a "
		"host; expected the address of a host"},
	{PORTS "  - {name: a, device: x, addresses: [192.0.2.1/24, 192.0.2.1/25]}",
		"f.yaml:4: ports[2].addresses[1]: duplicate address 192.0.2.1/25 (first used in "
		"line 4); remove one"},
	{PORTS "  - {name: a, device: x, addresses: [192.0.2.1/24]}\n"
	       "  - {name: b, device: y, addresses: [192.0.2.2/24]}",
		"f.yaml:5: ports[3].addresses[0]: the prefix of 192.0.2.2/24 is already connected "
		"to another port (line 4); expected one port for each prefix"},
	{PORTS "  - {name: a, device: x, vhost: {socket: /run/a}}",
		"f.yaml:4: ports[2].vhost: the port has a device, too; expected one of both"},
	{PORTS "  - {name: a, vhost: {socket: /run/a}, device: x}",
		"f.yaml:4: ports[2].device: the port has the key vhost, too; expected one of both"},
	{PORTS "  - {name: a, vhost: {socket: a.sock}}",
		"f.yaml:4: ports[2].vhost.socket: found \"a.sock\", expected an absolute path "
		"without commas and brackets"},
	{PORTS "  - {name: a, vhost: {socket: '/run/a,tso=1'}}",
		"f.yaml:4: ports[2].vhost.socket: found \"/run/a,tso=1\", expected an absolute "
		"path without commas and brackets"},
	{PORTS "  - {name: a, vhost: {queues: 2}}",
		"f.yaml:4: ports[2].vhost.socket: found \"\", expected an absolute path without "
		"commas and brackets"},
	{PORTS "  - {name: a, vhost: {socket: /run/a, queues: 65}}",
		"f.yaml:4: ports[2].vhost.queues: found \"65\", expected a number from 1 to 64"},
	{PORTS "  - {name: a, vhost: {socket: /run/a, mode: peer}}",
		"f.yaml:4: ports[2].vhost.mode: found \"peer\", expected one of client/server"},
	{PORTS "  - {name: a, vhost: {socket: /run/a, mtu: 2000}, mtu: 1500}",
		"f.yaml:4: ports[2]: mtu is in vhost, too; expected it once"},
	// Workers.
	{PORTS "workers: [{}]",
		"f.yaml:4: workers[0]: missing key \"core\"; expected the number of a CPU"},
	{PORTS "workers: [{core: 1}, {core: 1}]", "f.yaml:4: workers[1]: core 1 is already "
						  "used by the worker in line 4; choose another"},
	{PORTS "workers: [{core: 1, receives: [left/0], queues: [left/0]}]",
		"f.yaml:4: workers[0].queues: \"queues\" is the former name of \"receives\"; give "
		"only the latter"},
	{PORTS "workers: [{core: 1, hands_to: [2, left]}]",
		"f.yaml:4: workers[0].hands_to[1]: found \"left\", expected the core of another "
		"worker, 0 to 4095"},
	{PORTS "workers: [{core: 1, receives: [left]}]",
		"f.yaml:4: workers[0].receives[0]: found \"left\", expected PORT/QUEUE like left/0 "
		"(queues 0 to 63)"},
	{PORTS "workers: [{core: 1, queues: [middle/0]}]",
		"f.yaml:4: workers[0].queues[0]: unknown port \"middle\"; expected one of the "
		"names under ports"},
	// Routes and neighbours: the messages themselves are tested with their parsers.
	{PORTS "routes:\n  - blackhole 10.0.0.0/8\n  - 10.0.0.1/24 dev left",
		"f.yaml:6: 10.0.0.1/24 has host bits; did you mean 10.0.0.0/24?"},
	{PORTS "routes: [[a]]", "f.yaml:4: routes[0]: found a list, expected a route like "
				"\"192.0.2.0/24 via 198.51.100.1 dev left\""},
	{PORTS "routes: [a: b]", "f.yaml:4: routes[0]: found a map, expected a route like "
				 "\"192.0.2.0/24 via 198.51.100.1 dev left\""},
	{PORTS "  - {name: a, device: x, addresses: [10.0.0.1/24]}\nroutes: [default via 10.0.0.1 "
	       "dev a]",
		"f.yaml:5: 10.0.0.1 is an address of the router itself; expected that of a "
		"neighbour"},
	{PORTS "  - {name: a, device: x, addresses: ['2001:db8::1/64']}\n"
	       "neighbours: ['2001:db8::1 lladdr 02:00:00:00:00:01 dev a']",
		"f.yaml:5: 2001:db8::1 is an address of the router itself; expected that of a "
		"neighbour"},
	{PORTS "neighbours: [192.0.2.2 dev left]",
		"f.yaml:4: invalid neighbour: expected \"ADDRESS lladdr MAC dev PORT\""},
	{PORTS "neighbours:\n"
	       "  - 192.0.2.2 lladdr 02:00:00:00:00:02 dev left\n"
	       "  - 192.0.2.2 lladdr 02:00:00:00:00:03 dev left\n",
		"f.yaml:6: neighbour 192.0.2.2 has MAC address 02:00:00:00:00:03 here and "
		"02:00:00:00:00:02 in f.yaml:5; remove one"},
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
			  "workers: [{core: 3, receives: [b/1, 0/0], hands_to: [4, 5]}]\n"
			  "eal: {args: [-x, y], plugins: [p.so]}\n"
			  "memory: {hugepages: never, mib: 512}\n"
			  "burst: 32\n"
			  "idle: sleep\n"
			  "ports:\n"
			  "  - {name: a, device: d, mtu: 9000, queues: 2, rx_descriptors: 64, "
			  "tx_descriptors: 128,\n"
			  "     mac: 02:00:00:00:00:0a, peer: 02:00:00:00:00:0b, martians: pass, "
			  "rpf6: loose, "
			  "mode: route,\n"
			  "     addresses: [10.0.0.1/8, 2001:db8::1/64]}\n"
			  "  - {name: b, device: e, mode: xconnect, to: a, mac: update}\n"
			  "  - {name: c, device: f, mode: xconnect, to: 0}\n");
	const struct port_settings *a = &config->ports.ports[0], *b = &config->ports.ports[1];

	assert_string_equal(config->socket, "/tmp/s");
	assert_int_equal(config->ports.workers[0].n_hands_to, 2);
	assert_int_equal(config->ports.workers[0].hands_to[1], 5);
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
	assert_int_equal(a->rpf6, 2);
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
	assert_non_null(strstr(error.text, "routes[0]: found a list"));
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
		"f.yaml:4: burst: found \"x\", expected a number from 1 to 64");
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

static void a_vhost_is_short_for_its_device(void **state)
{
	static const struct {
		const char *keys, *device;
		uint16_t mtu;
	} ports[] = {
		{"vhost: {socket: /run/a}", "net_vhost0_p,iface=/run/a,queues=1,client=1", 1500},
		{"vhost: {socket: /run/a, mode: client, queues: 4, mtu: 9000}",
			"net_vhost0_p,iface=/run/a,queues=4,client=1", 9000},
		{"vhost: {socket: /run/a, offloads: off}",
			"net_vhost0_p,iface=/run/a,queues=1,client=1", 1500},
		{"vhost: {socket: /run/a, offloads: on}",
			"net_vhost0_p,iface=/run/a,queues=1,client=1,tso=1", 1500},
		{"vhost: {mode: server, socket: /run/a}, mtu: 1400",
			"net_vhost0_p,iface=/run/a,queues=1,client=0", 1400},
	};

	for (unsigned i = 0; i < ARRAY_LEN(ports); i++) {
		char text[160];

		snprintf(text, sizeof(text), "ports:\n  - {%s, name: p}\n", ports[i].keys);
		struct config *config = fake_take(text);
		const struct port_settings *port = &config_ports(config)->ports[0];

		assert_string_equal(port->device, ports[i].device);
		assert_int_equal(port->mtu, ports[i].mtu);
		config_free(config);
	}
}

static void names_a_file_that_cannot_be_read(void **state)
{
	struct config *config;
	struct error error;

	assert_int_not_equal(config_load(&config, "/nonexistent/f.yaml", &error), 0);
	assert_string_equal(error.text,
		"/nonexistent/f.yaml: cannot read the file: No such file or directory");
	assert_int_not_equal(config_load(&config, "/", &error), 0);
	assert_string_equal(error.text, "/: cannot read the file: Is a directory");
	assert_int_not_equal(config_load(&config, "/dev/null", &error), 0);
	assert_string_equal(error.text,
		"/dev/null: the file is empty; \"dl3d --example\" prints one to start from");
	assert_int_not_equal(config_load(&config, "/dev/zero", &error), 0);
	assert_string_equal(error.text,
		"/dev/zero: larger than 64 MiB; move routes to route files");
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
		cmocka_unit_test(a_vhost_is_short_for_its_device),
		cmocka_unit_test(names_a_file_that_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
