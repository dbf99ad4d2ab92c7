// The generator's file: what is accepted, and the error message for each mistake.
#include "config/fake_file.h"

#include "base/bits.h"
#include "gen/gen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESSES(list) "ports: [{name: a, device: x, addresses: " list "}]"
#define GATEWAY(list, gateway)                                                                     \
	"ports: [{name: a, device: x, addresses: " list ", gateway: " gateway "}]"

static void answers_each_mistake_with_one_sentence(void **state)
{
	static const struct mistake mistakes[] = {
		{"", "g.yaml: the file is empty; \"dl3gen --example\" prints one to start from"},
		{PORTS "neighbours: []",
			"g.yaml:4: unknown key \"neighbours\"; expected one of ports, workers, "
			"burst, idle, memory, eal, control, streams"},
		{PORTS "stream: []", "g.yaml:4: unknown key \"stream\"; did you mean \"streams\"?"},
		{"ports: [{name: a, device: x, queues: 2}]",
			"g.yaml:1: unknown key \"ports[0].queues\"; expected one of name, device, "
			"mtu, rx_descriptors, tx_descriptors, mac, line_rate, addresses, gateway"},
		{ADDRESSES("[10.0.0.1]"),
			"g.yaml:1: ports[0].addresses[0]: found \"10.0.0.1\", expected "
			"ADDRESS/LENGTH like 192.0.2.1/24 (length 1 to 32, IPv6 1 to 128)"},
		{ADDRESSES("10.0.0.1/24"),
			"g.yaml:1: ports[0].addresses: found \"10.0.0.1/24\", expected a list"},
		{ADDRESSES("[10.0.0.1/24, 10.0.0.1/8]"),
			"g.yaml:1: ports[0].addresses[1]: duplicate address 10.0.0.1/8; expected "
			"it once in all ports"},
		{ADDRESSES("[10.0.0.0/24]"),
			"g.yaml:1: ports[0].addresses[0]: found 10.0.0.0/24, the address of the "
			"prefix itself; expected the address of a host"},
		{GATEWAY("[]", "10.0.0.1"),
			"g.yaml:1: ports[0]: no address in the network of gateway 10.0.0.1; "
			"expected one in \"addresses: [ADDRESS/LENGTH]\""},
		{GATEWAY("[10.0.0.1/24]", "10.0.0.1"),
			"g.yaml:1: ports[0]: no address in the network of gateway 10.0.0.1; "
			"expected one in \"addresses: [ADDRESS/LENGTH]\""},
		{GATEWAY("[10.0.0.1/24]", "\"fe80::1\""),
			"g.yaml:1: ports[0]: no address in the network of gateway fe80::1; "
			"expected one in \"addresses: [ADDRESS/LENGTH]\""},
		{GATEWAY("[10.0.0.1/24]", "router"),
			"g.yaml:1: ports[0].gateway: found \"router\", expected an address like "
			"192.0.2.254 or 2001:db8::fe, or a list with one of each family"},
		{GATEWAY("[10.0.0.1/24]", "[10.0.0.2, 10.0.0.3]"),
			"g.yaml:1: ports[0].gateway[1]: found 10.0.0.3, a second IPv4 gateway; "
			"expected one of each family"},
		{"ports: [{name: a, device: x}]\nworkers: [{core: 0, queues: [a/1]}]",
			"g.yaml:2: workers[0].queues[0]: found \"a/1\", expected PORT/QUEUE like "
			"left/0 (queues 0 to 0)"},
		{"ports: [{name: a, device: x, mac: update}]",
			"g.yaml:1: ports[0].mac: found \"update\", expected a MAC address like "
			"02:00:00:00:00:01"},
		{"ports: [{name: a, device: x, line_rate: fast}]",
			"g.yaml:1: ports[0].line_rate: found \"fast\", expected a rate like 100 "
			"Gbit/s (1 Mbit/s to 10 Tbit/s)"},
		{"ports: [{name: a, device: x, line_rate: 100 Gbit/s l2}]",
			"g.yaml:1: ports[0].line_rate: found \"100 Gbit/s l2\", expected a rate "
			"like 100 Gbit/s (1 Mbit/s to 10 Tbit/s)"},
		{"ports: [{name: a, device: x, line_rate: 999 kbit/s}]",
			"g.yaml:1: ports[0].line_rate: found \"999 kbit/s\", expected a rate like "
			"100 Gbit/s (1 Mbit/s to 10 Tbit/s)"},
		{"ports: [{name: a, device: x, line_rate: 100}]",
			"g.yaml:1: ports[0].line_rate: found \"100\", expected a rate like 100 "
			"Gbit/s (1 Mbit/s to 10 Tbit/s)"},
		{PORTS "streams: {from: left}", "g.yaml:4: streams: found a map, expected a list"},
		{PORTS "streams: all", "g.yaml:4: streams: found \"all\", expected a list"},
		{PORTS "streams:\n  - from: left\n    from: right\n",
			"g.yaml:6: duplicate key \"from\" in one stream; remove one"},
		{PORTS "streams: [[[[[[[[a]]]]]]]]",
			"g.yaml:4: streams are nested too deeply or have "
			"more than 16384 values; remove some"},
	};

	fake_check_mistakes(fake_read_generator, mistakes, ARRAY_LEN(mistakes));
}

static void gives_ports_addresses_and_gateways_of_both_families(void **state)
{
	struct config *config = fake_take_generator(
		"ports:\n  - {name: a, device: x, addresses: [10.0.0.2/24, \"2001:db8::2/64\"], "
		"gateway: [10.0.0.1, \"fe80::1\"]}\n"
		"  - {name: b, device: y, addresses: [10.0.0.3/24], gateway: 10.0.0.1}\n");
	const struct port_settings *port = config_ports(config)->ports;
	char text[WIRE_PREFIX_TEXT];

	assert_int_equal(port[0].n_addresses, 2);
	assert_string_equal(wire_prefix_print(&port[0].addresses[0], text), "10.0.0.2/24");
	assert_string_equal(wire_prefix_print(&port[0].addresses[1], text), "2001:db8::2/64");
	assert_string_equal(wire_addr_print(&port[0].gateway[1], text), "fe80::1");
	assert_int_equal(port[1].n_addresses, 1);
	assert_string_equal(wire_addr_print(&port[1].gateway[0], text), "10.0.0.1");
	assert_int_equal(port[1].gateway[1].family, 0);
	config_free(config);
}

static void gives_each_port_one_queue_and_its_line_rate(void **state)
{
	struct config *config =
		fake_take_generator("ports:\n  - {name: a, device: x}\n"
				    "  - {name: b, device: y, line_rate: 2.5Gbit/s, mac: "
				    "02:00:00:00:00:07, mtu: 9000, rx_descriptors: 64}\n");
	const struct port_table_settings *ports = config_ports(config);

	assert_int_equal(ports->n_ports, 2);
	assert_int_equal(ports->ports[0].n_queues, 1);
	assert_int_equal(ports->ports[1].n_queues, 1);
	assert_true(ports->ports[0].line_bps == 0);
	assert_true(ports->ports[1].line_bps == 2.5e9);
	assert_true(ports->ports[1].has_mac);
	assert_int_equal(ports->ports[1].mtu, 9000);
	assert_int_equal(ports->ports[1].n_rx_descriptors, 64);
	assert_string_equal(config_socket(config), "/run/dl3gen.sock");
	assert_null(config_streams(config));
	config_free(config);
}

// An unquoted YAML number becomes a JSON number; quotes keep it a string.
static void turns_streams_into_json(void **state)
{
	struct config *config = fake_take_generator(
		PORTS "streams:\n"
		      "  - {from: left, size: 64, rate: 1.5, ttl: '9', dst_mac: "
		      "02:00:00:00:00:01}\n"
		      "  - dst_ip: {first: 198.19.0.1, count: 10, random: true}\n"
		      "    size: [64, {size: 128, weight: 2}]\n"
		      "    frames: 99999999999999999999\n"
		      "    rate:\n");
	char *text = json_dumps(config_streams(config), JSON_COMPACT);

	assert_string_equal(text, "[{\"from\":\"left\",\"size\":64,\"rate\":1.5,\"ttl\":\"9\","
				  "\"dst_mac\":\"02:00:00:00:00:01\"},"
				  "{\"dst_ip\":{\"first\":\"198.19.0.1\",\"count\":10,\"random\":"
				  "true},\"size\":[64,{\"size\":128,\"weight\":2}],"
				  "\"frames\":\"99999999999999999999\",\"rate\":null}]");
	free(text);
	config_free(config);
}

static void places_an_error_about_a_stream_at_its_line(void **state)
{
	static const struct {
		const char *said, *placed;
	} places[] = {
		{"streams[0]: size 3: too small", "g.yaml:6: streams[0]: size 3: too small"},
		{"streams[1] (b): rate: missing", "g.yaml:8: streams[1] (b): rate: missing"},
		{"streams[1] (b): dst_ip.count 0: x",
			"g.yaml:10: streams[1] (b): dst_ip.count 0: x"},
		{"streams[1] (b): size[1] 3: x", "g.yaml:9: streams[1] (b): size[1] 3: x"},
		{"streams[7]: size 3: x", "g.yaml: streams[7]: size 3: x"},
		{"streams: 0 of them", "g.yaml: streams: 0 of them"},
	};
	struct config *config =
		fake_take_generator(PORTS "streams:\n"
					  "  - from: left\n"
					  "    size: 3\n"
					  "\n"
					  "  - name: b\n"
					  "    size: [64, 3]\n"
					  "    dst_ip: {first: 198.19.0.1, count: 0}\n");

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct error error;

		error_set(&error, 0, "%s", places[i].said);
		config_place_stream(config, &error);
		assert_string_equal(error.text, places[i].placed);
	}
	config_free(config);
}

static void takes_no_streams_from_aliases_of_aliases(void **state)
{
	char text[4096] = PORTS "streams:\n  - &a0 [x, x, x, x, x, x, x, x, x]\n";
	struct error error;
	struct config *config = NULL;
	size_t used = strlen(text);

	for (int i = 1; i < 12; i++)
		used += sprintf(text + used,
			"  - &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i,
			i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	assert_int_not_equal(fake_read_generator(&config, text, &error), 0);
	assert_non_null(strstr(error.text, "streams are nested too deeply"));
}

// The deepest that a stream can be: the range of a label that is expected.
static void takes_the_deepest_stream(void **state)
{
	struct error error = {""};
	struct config *config = NULL;

	if (fake_read_generator(&config,
		    PORTS "streams:\n  - expect: {encap: {labels: [1, {first: 2, count: 3}]}}\n",
		    &error))
		fail_msg("%s", error.text);
	config_free(config);
}

static void takes_no_endless_list_of_sizes(void **state)
{
	struct error error;
	struct config *config = NULL;
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	fputs(PORTS "streams:\n  - size: [64", out);
	for (int i = 0; i < 17000; i++)
		fputs(",64", out);
	fputs("]\n", out);
	fclose(out);
	assert_int_not_equal(fake_read_generator(&config, text, &error), 0);
	assert_non_null(strstr(error.text, "streams are nested too deeply"));
	free(text);
}

static void accepts_its_own_example(void **state)
{
	char *text = fake_example(config_print_generator_example);
	struct config *config = fake_take_generator(text);

	struct error error = {""};

	assert_int_equal(json_array_size(config_streams(config)), 2);
	if (gen_check(config_ports(config), config_streams(config), &error))
		fail_msg("the reader of streams says: %s", error.text);
	assert_true(config_ports(config)->ports[1].line_bps == 1e11);
	config_free(config);
	free(text);
}

static void the_example_shows_every_key(void **state)
{
	char *text = fake_example(config_print_generator_example);

	fake_check_keys(&program_generator, text);
	free(text);
}

// The stream parser lists its keys if one is unknown.
static void the_example_shows_every_key_of_a_stream(void **state)
{
	struct config *config =
		fake_take_generator(PORTS "streams: [{to: left, neither_known_nor_near: 1}]");
	char *text = fake_example(config_print_generator_example), key[64];
	struct error error = {""};

	assert_int_not_equal(gen_check(config_ports(config), config_streams(config), &error), 0);
	char *keys = strstr(error.text, "expected one of ");
	assert_non_null(keys);
	unsigned n = 0;
	for (char *name = strtok(keys + 16, ", "); name; name = strtok(NULL, ", "), n++) {
		snprintf(key, sizeof(key), "%s: ", name);
		if (!strstr(text, key))
			fail_msg("%s is not in the example", name);
	}
	assert_int_equal(n, 30);
	config_free(config);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_each_mistake_with_one_sentence),
		cmocka_unit_test(gives_ports_addresses_and_gateways_of_both_families),
		cmocka_unit_test(gives_each_port_one_queue_and_its_line_rate),
		cmocka_unit_test(turns_streams_into_json),
		cmocka_unit_test(places_an_error_about_a_stream_at_its_line),
		cmocka_unit_test(takes_no_streams_from_aliases_of_aliases),
		cmocka_unit_test(takes_the_deepest_stream),
		cmocka_unit_test(takes_no_endless_list_of_sizes),
		cmocka_unit_test(accepts_its_own_example),
		cmocka_unit_test(the_example_shows_every_key),
		cmocka_unit_test(the_example_shows_every_key_of_a_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
