// Which changes of the file require a restart, and the key reported for each.
#include "config/fake_file.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define BASE                                                                                       \
	"workers: [{core: 1, queues: [a/0]}]\nmemory: {mib: 64}\neal: {args: [-v], plugins: "      \
	"[p]}\n"                                                                                   \
	"control: {socket: /s, group: g}\nflow: {ipv4: 64, timeouts: [30]}\nburst: 32\nroutes: "   \
	"[10.0.0.0/8 dev a]\n"                                                                     \
	"ports:\n  - {name: a, device: x, mtu: 1500, queues: 1, rx_descriptors: 64, "              \
	"tx_descriptors: 64}\n"                                                                    \
	"  - {name: b, device: y, mode: xconnect, to: a}\n"

static const struct config_numbers none;

struct example {
	const char *old, *new, *key;
};

static const struct example rows[] = {
	// Takes effect at run time.
	{"10.0.0.0/8", "11.0.0.0/8", NULL},
	{"routes:", "neighbours: [10.0.0.1 lladdr 02:00:00:00:00:01 dev a]\nroutes:", NULL},
	{"mtu: 1500", "mtu: 9000", NULL},
	{"mtu: 1500", "peer: 02:00:00:00:00:01", NULL},
	{"mtu: 1500", "martians: pass", NULL},
	{"mtu: 1500", "rpf6: strict", NULL},
	{"mtu: 1500", "storm: {unknown: 5}", NULL},
	{"mtu: 1500", "addresses: [192.0.2.1/24]", NULL},
	{"[30]", "[30, 300]", NULL},
	{"[30]", "[60]", NULL},
	{"ipv4: 64", "ipv4: 64, missing: drop, file: f, ended_file: e", NULL},
	// Requires a restart.
	{"name: a, device", "name: c, device", "ports[0].name"},
	{"device: y", "device: z", "ports[1].device"},
	{"device: y", "vhost: {socket: /run/y}", "ports[1].device"},
	{"mtu: 1500", "mac: 02:00:00:00:00:01", "ports[0].mac"},
	{"to: a", "to: a, mac: update", "ports[1].mac"},
	{"mode: xconnect, to: a", "mode: route", "ports[1].mode"},
	{"to: a", "to: b", "ports[1].to"},
	{", queues: 1", ", queues: 2", "ports[0].queues"},
	{"rx_descriptors: 64", "rx_descriptors: 128", "ports[0].rx_descriptors"},
	{"tx_descriptors: 64", "tx_descriptors: 128", "ports[0].tx_descriptors"},
	// Ports are added and removed.
	{"ports:\n", "ports:\n  - {name: n, device: n}\n", NULL},
	{"\n  - {name: b, device: y, mode: xconnect, to: a}", "", NULL},
	{"b, device: y, mode", "c, device: z, mode", NULL},
	{"b, device: y, mode", "c, device: y, mode", "ports[1].name"},
	{"core: 1", "core: 2", "workers[0].core"},
	{"[a/0]", "[a/1]", "workers[0].receives"},
	{"[a/0]", "[a/0, a/1]", "workers[0].receives"},
	{"[a/0]", "[a/0], hands_to: [2]", "workers[0].hands_to"},
	{"[a/0]}]", "[a/0], shapes: on}]\nqos: {held_packets: 64}", "workers[0].shapes"},
	{"[{core: 1, queues: [a/0]}]", "[]", "workers"},
	{"burst: 32", "burst: 33", "burst"},
	{"burst: 32", "burst: 32\nidle: poll", "workers[0].idle"},
	{"core: 1", "core: 1, idle: poll", "workers[0].idle"},
	{"workers: [{core: 1, queues: [a/0]}]", "idle: poll", "workers"},
	{"mib: 64", "mib: 65", "memory.mib"},
	{"mib: 64", "mib: 64, hugepages: never", "memory.hugepages"},
	{"[-v]", "[-w]", "eal.args"},
	{"[-v]", "[-v, -w]", "eal.args"},
	{"[p]", "[q]", "eal.plugins"},
	{"[p]", "[]", "eal.plugins"},
	{"/s", "/t", "control.socket"},
	{"group: g", "group: h", "control.group"},
	{"ipv4: 64", "ipv4: 65", "flow.ipv4"},
	{"ipv4: 64", "ipv4: 64, ipv6: 1", "flow.ipv6"},
	{"flow: {ipv4: 64, timeouts: [30]}\n", "", "flow.ipv4"},
};

// The base file with `old`, which it must contain, replaced.
static struct config *changed(const struct example *row)
{
	char text[2048];
	const char *at = strstr(BASE, row->old);

	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - BASE), BASE, row->new,
		at + strlen(row->old));
	// A renamed port is renamed everywhere.
	for (char *p = text;
		row->key && !strcmp(row->key, "ports[0].name") && (p = strstr(p, "dev a")); p++)
		p[4] = 'c';
	for (char *p = text;
		row->key && !strcmp(row->key, "ports[0].name") && (p = strstr(p, "a/0")); p++)
		p[0] = 'c';
	for (char *p = text;
		row->key && !strcmp(row->key, "ports[0].name") && (p = strstr(p, "to: a")); p++)
		p[4] = 'c';
	return fake_take(text);
}

static void names_the_key_that_needs_a_restart(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct config *now = fake_take(BASE), *next = changed(&rows[i]);

		assert_int_equal(numbers_place(next, now, &none, NULL), 0);
		const char *key = config_needs_restart(now, next);

		if (!key != !rows[i].key || (key && strcmp(key, rows[i].key)))
			fail_msg("%s -> %s: %s, not %s", rows[i].old, rows[i].new, key,
				rows[i].key);
		config_free(now);
		config_free(next);
	}
}

// A forgotten key would be accepted silently and have no effect.
static void each_key_of_a_port_has_a_row_here(void **state)
{
	char needle[64];

	for (size_t k = 0; k < forwarder_port.n; k++) {
		bool found = false;

		snprintf(needle, sizeof(needle), "%s", forwarder_port.rows[k].key);
		for (size_t i = 0; i < ARRAY_LEN(rows) && !found; i++)
			found = strstr(rows[i].new, needle) ||
			        (rows[i].key && strstr(rows[i].key, needle));
		if (!found)
			fail_msg("no row for %s", needle);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_the_key_that_needs_a_restart),
		cmocka_unit_test(each_key_of_a_port_has_a_row_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
