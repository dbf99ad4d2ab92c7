// The key `bridges`: its meaning, and the error message for each mistake.
#include "config/fake_file.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

// Port `up` has an address; the bridge is in line 6 of the file.
#define VXLAN(keys)                                                                                \
	PORTS "  - {name: up, device: net_null2, addresses: [10.0.0.1/24]}\n"                      \
	      "bridges:\n  - {name: br0, ports: [left], vxlan: {" keys "}}\n"

static const struct mistake mistakes[] = {
	{PORTS "bridges: yes", "f.yaml:4: bridges: found \"yes\", expected a list"},
	{PORTS "bridges: [br0]",
		"f.yaml:4: bridges[0]: found \"br0\", expected a map (key: value)"},
	{PORTS "bridges: [{name: br0}]",
		"f.yaml:4: bridges[0]: missing key \"ports\"; expected a name and ports"},
	{PORTS "bridges: [{ports: [left]}]",
		"f.yaml:4: bridges[0]: missing key \"name\"; expected a name and ports"},
	{PORTS "bridges: [{name: br0, ports: [left], agein: 3}]",
		"f.yaml:4: unknown key \"bridges[0].agein\"; did you mean \"ageing\"?"},
	{PORTS "bridges: [{name: br0, ports: [left, up]}]",
		"f.yaml:4: bridges[0].ports[1]: unknown port \"up\"; expected one of the names "
		"under ports"},
	{PORTS "bridges: [{name: br0, ports: [{port: up}]}]",
		"f.yaml:4: bridges[0].ports[0]: unknown port \"up\"; expected one of the names "
		"under ports"},
	{PORTS "bridges: [{name: br0, ports: [left, left]}]",
		"f.yaml:4: bridges[0].ports[1]: port \"left\" is in bridge \"br0\" already; remove "
		"it there or here"},
	{PORTS "bridges: [{name: br0, ports: [left]}, {name: br1, ports: [left]}]",
		"f.yaml:4: bridges[1].ports[0]: port \"left\" is in bridge \"br0\" already; remove "
		"it there or here"},
	{PORTS "bridges: [{name: br0, ports: [left]}, {name: br0, ports: [right]}]",
		"f.yaml:4: bridges[1]: duplicate bridge name \"br0\"; choose another"},
	{PORTS "  - {name: x, device: x, mode: xconnect, to: left}\n"
	       "bridges: [{name: br0, ports: [x]}]",
		"f.yaml:5: bridges[0].ports[0]: port \"x\" has mode: xconnect, and a port cannot "
		"be in a bridge, too; remove one of them"},
	{PORTS "  - {name: x, device: x, addresses: [10.0.0.1/8]}\n"
	       "bridges: [{name: br0, ports: [x]}]",
		"f.yaml:5: bridges[0].ports[0]: port \"x\" has addresses, but a port of a bridge "
		"does not route; remove them, or the port here"},
	{PORTS "bridges: [{name: br0, ports: [{port: left, hairpin: yes}]}]",
		"f.yaml:4: bridges[0].ports[0].hairpin: found \"yes\", expected one of off/on"},
	{PORTS "bridges: [{name: br0, ports: [left], macs: [{mac: 02:00, port: left}]}]",
		"f.yaml:4: bridges[0].macs[0].mac: found \"02:00\", expected a MAC address like "
		"02:00:00:00:00:01"},
	{PORTS "bridges: [{name: br0, ports: [left], macs: [{mac: 01:00:5e:00:00:01, port: "
	       "left}]}]",
		"f.yaml:4: bridges[0].macs[0].mac: found the multicast address 01:00:5e:00:00:01, "
		"expected a unicast MAC address"},
	{PORTS "bridges: [{name: br0, ports: [left], macs: [{mac: 02:00:00:00:00:01}]}]",
		"f.yaml:4: bridges[0].macs[0]: missing key \"port\"; expected mac and port"},
	{PORTS "bridges: [{name: br0, ports: [left], macs: [{mac: 02:00:00:00:00:01, port: "
	       "right}]}]",
		"f.yaml:4: bridges[0].macs[0]: port \"right\" is not in this bridge; expected one "
		"of its ports"},
	{PORTS "bridges: [{name: br0, ports: [left], macs: [{mac: 02:00:00:00:00:01, port: left}, "
	       "{mac: 02-00-00-00-00-01, port: left}]}]",
		"f.yaml:4: bridge \"br0\": macs has 02:00:00:00:00:01 twice; remove one"},
	{PORTS "bridges: [{name: br0, ports: [left], max_macs: 1, macs: [{mac: 02:00:00:00:00:01, "
	       "port: left}, {mac: 02:00:00:00:00:02, port: left}]}]",
		"f.yaml:4: bridges[0].macs[1]: more addresses than max_macs, 1; raise it, or "
		"remove some"},
	{PORTS "bridges: [{name: br0, ports: [left], storm: {broadcast: 0}}]",
		"f.yaml:4: bridges[0].storm.broadcast: found \"0\", expected a number from 1 to "
		"100000000"},
	{"ports:\n  - {name: left, device: net_null0, storm: {unknown: 0}}\n",
		"f.yaml:2: ports[0].storm.unknown: found \"0\", expected a number from 1 to "
		"100000000"},
	{PORTS "bridges: [{name: a, ports: [left], max_macs: 600000}, {name: b, ports: [right], "
	       "max_macs: 600000}]",
		"f.yaml:4: bridges: max_macs of all bridges are 1200000 together, expected at most "
		"1000000"},
	{PORTS "bridges: [{name: br0, ports: [left]}]\n"
	       "acl: {lists: {a: []}, use: [{interface: left, direction: in, list: a}]}",
		"f.yaml:5: acl: interface 'left' uses list 'a', but no list judges the frames of a "
		"port in a bridge"},
	{VXLAN("vni: 16777216, local: 10.0.0.1, remotes: [10.0.0.2]"),
		"f.yaml:6: bridges[0].vxlan.vni: found \"16777216\", expected a number from 1 to "
		"16777215"},
	{VXLAN("local: 10.0.0.1, remotes: [10.0.0.2]"),
		"f.yaml:6: bridges[0].vxlan: missing key \"vni\"; expected vni, local and remotes"},
	{VXLAN("vni: 1, local: 10.0.0.1"), "f.yaml:6: bridges[0].vxlan: missing key \"remotes\"; "
					   "expected vni, local and remotes"},
	{VXLAN("vni: 1, local: 10.0.0.9, remotes: [10.0.0.2]"),
		"f.yaml:6: bridges[0].vxlan.local: no port has this address; expected one of those "
		"under ports"},
	{VXLAN("vni: 1, local: here, remotes: [10.0.0.2]"),
		"f.yaml:6: bridges[0].vxlan: found \"here\", expected an address like 192.0.2.1 or "
		"2001:db8::1"},
	{VXLAN("vni: 1, local: 10.0.0.1, remotes: [2001:db8::1]"),
		"f.yaml:6: bridges[0].vxlan.remotes[0]: 2001:db8::1 is not of the family of local; "
		"expected one that is"},
	{VXLAN("vni: 1, local: 10.0.0.1, remotes: [10.0.0.1]"),
		"f.yaml:6: bridges[0].vxlan.remotes[0]: 10.0.0.1 is an address of the router "
		"itself; expected a remote end"},
	{VXLAN("vni: 1, local: 10.0.0.1, remotes: [10.0.0.2, 10.0.0.2]"),
		"f.yaml:6: bridges[0].vxlan.remotes[1]: 10.0.0.2 is there twice; remove one"},
	{VXLAN("vni: 1, local: 10.0.0.1, remotes: [10.0.0.2]") "  - {name: br1, ports: [right], "
							       "vxlan: {vni: 1, local: 10.0.0.1, "
							       "remotes: [10.0.0.2]}}",
		"f.yaml:7: bridges[1].vxlan: bridge \"br0\" has VNI 1 on UDP port 4789 already; "
		"use another one"},
	{PORTS "control: {socket: /run/x.sock}\nlinux:\nbridges: [{name: br0, ports: [left]}]",
		"f.yaml:6: key \"bridges\" cannot be used with \"linux:\"; configure it in Linux: "
		"ip -n x link add br0 type bridge"},
};

static void answers_each_mistake_with_one_sentence(void **state)
{
	fake_check_mistakes(fake_read, mistakes, ARRAY_LEN(mistakes));
}

static void without_the_key_there_are_no_bridges(void **state)
{
	struct config *config = fake_take(PORTS);
	unsigned n = 1;

	config_bridges(config, &n);
	assert_int_equal(n, 0);
	assert_null(config_bridge_of(config, 0));
	config_free(config);
}

static void the_limits_of_a_port_are_its_own(void **state)
{
	struct config *config = fake_take("ports:\n  - {name: left, device: net_null0, storm: "
					  "{multicast: 7}}\n  - {name: right, device: net_null1}\n"
					  "bridges: [{name: br0, ports: [left, right]}]\n");
	unsigned n;
	const struct mac_bridge *bridge = config_bridges(config, &n);

	assert_int_equal(config_ports(config)->ports[0].storm_pps[MAC_MULTICAST], 7);
	assert_int_equal(bridge->member[0].storm_pps[MAC_BROADCAST], 0);
	assert_int_equal(bridge->member[0].storm_pps[MAC_MULTICAST], 7);
	assert_int_equal(bridge->member[1].storm_pps[MAC_MULTICAST], 0);
	config_free(config);
}

static void reads_each_key(void **state)
{
	struct config *config = fake_take(PORTS
		"bridges:\n"
		"  - {name: br0, ageing: 60, max_macs: 100, storm: {broadcast: 1, multicast: "
		"2, unknown: 3},\n"
		"     ports: [left, {port: 1, learning: off, flood: off, isolated: on, hairpin: "
		"on, max_macs: 9}],\n"
		"     macs: [{mac: 02:00:00:00:00:02, port: right}, {mac: 02:00:00:00:00:01, "
		"port: left}]}\n");
	unsigned n;
	const struct mac_bridge *bridge = config_bridges(config, &n);

	assert_int_equal(n, 1);
	assert_string_equal(bridge->name, "br0");
	assert_int_equal(bridge->ageing_s, 60);
	assert_int_equal(bridge->max, 100);
	assert_int_equal(bridge->storm_pps[MAC_BROADCAST], 1);
	assert_int_equal(bridge->storm_pps[MAC_MULTICAST], 2);
	assert_int_equal(bridge->storm_pps[MAC_UNKNOWN], 3);
	assert_int_equal(bridge->n_members, 2);
	assert_int_equal(bridge->member[0].flags, MAC_LEARNS | MAC_FLOODS);
	assert_int_equal(bridge->member[1].port, 1);
	assert_int_equal(bridge->member[1].flags, MAC_ISOLATED | MAC_HAIRPIN);
	assert_int_equal(bridge->member[1].max, 9);
	assert_int_equal(bridge->n_fixed, 2);
	assert_int_equal(bridge->fixed[0].mac.bytes[5], 1);
	assert_int_equal(bridge->fixed[0].port, 0);
	assert_string_equal(config_bridge_of(config, 1), "br0");
	config_free(config);
}

static void vxlan_has_these_settings_and_keeps_its_number(void **state)
{
	struct config *now = fake_take(VXLAN("vni: 100, local: 10.0.0.1, remotes: [10.0.0.2, "
					     "10.0.0.3], port: 8472, ttl: 9, udp_checksum: off"));
	struct config *next = fake_take(PORTS
		"  - {name: up, device: net_null2, addresses: [10.0.0.1/24]}\n"
		"bridges:\n  - {name: br1, ports: [right], vxlan: {vni: 7, local: 10.0.0.1, "
		"remotes: [10.0.0.2]}}\n"
		"  - {name: br0, ports: [left], vxlan: {vni: 8, local: 10.0.0.1, remotes: []}}\n");
	const struct config_vxlan *vxlan = config_vxlan(now, 0);

	assert_int_equal(vxlan->tunnel.key, 100);
	assert_int_equal(vxlan->tunnel.dest_port, 8472);
	assert_int_equal(vxlan->tunnel.ttl, 9);
	assert_int_equal(vxlan->tunnel.flags, IFACE_TUNNEL_ONLY_LOCAL);
	assert_int_equal(vxlan->n_remotes, 2);
	assert_int_equal(vxlan->remote[1].bytes[3], 3);
	vxlans_place(&next->bridges, &now->bridges);
	assert_int_equal(config_vxlan(next, 1)->tunnel.vxlan, vxlan->tunnel.vxlan);
	assert_int_not_equal(config_vxlan(next, 0)->tunnel.vxlan, vxlan->tunnel.vxlan);
	assert_int_equal(config_vxlan(next, 1)->n_remotes, 0);
	assert_int_equal(config_vxlan(next, 1)->tunnel.flags,
		IFACE_TUNNEL_ONLY_LOCAL | IFACE_TUNNEL_CHECKSUM);
	config_free(now);
	config_free(next);
}

static void a_seventeenth_udp_port_is_refused(void **state)
{
	char text[4096], wanted[200];
	size_t n = snprintf(text, sizeof(text),
		PORTS "  - {name: up, device: net_null2, addresses: [10.0.0.1/24]}\nbridges:\n");

	for (unsigned i = 0; i < 17; i++)
		n += snprintf(text + n, sizeof(text) - n,
			"  - {name: br%u, ports: [], vxlan: {vni: 9, local: 10.0.0.1, remotes: [], "
			"port: %u}}\n",
			i, 5000 + i);
	snprintf(wanted, sizeof(wanted),
		"f.yaml:22: bridges[16].vxlan.port: 5016 is one more UDP port than the 16 that can "
		"be received on; use that of another bridge");
	const struct mistake mistake = {text, wanted};
	fake_check_mistakes(fake_read, &mistake, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_each_mistake_with_one_sentence),
		cmocka_unit_test(without_the_key_there_are_no_bridges),
		cmocka_unit_test(the_limits_of_a_port_are_its_own),
		cmocka_unit_test(reads_each_key),
		cmocka_unit_test(vxlan_has_these_settings_and_keeps_its_number),
		cmocka_unit_test(a_seventeenth_udp_port_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
