// VXLAN devices and entries of their tables: messages recorded from Linux 6.18
// (test/corpus/netlink), and what is decoded of them.
#include "netlink/decode_inside.h"

#include "netlink/corpus.h"

#include <string.h>

static struct event decoded(const char *name)
{
	struct message message;
	struct event event;

	load(&message, name);
	assert_int_equal(decode_route(message.bytes, message.n, &event), DECODE_EVENT);
	return event;
}

static struct event_tunnel device(const char *name)
{
	const struct event event = decoded(name);

	assert_int_equal(event.kind, EVENT_LINK);
	assert_string_equal(event.iface.kind, "vxlan");
	assert_true(event.iface.tunnel.is_tunnel);
	return event.iface.tunnel;
}

static void assert_addr(const struct wire_addr *addr, const char *wanted)
{
	char text[WIRE_ADDR_TEXT];

	assert_string_equal(wire_addr_print(addr, text), wanted);
}

static void reads_a_device_as_it_is_made_by_default(void **state)
{
	const struct event_tunnel tunnel = device("vxlan_link");
	const struct iface_tunnel *is = &tunnel.settings;

	assert_int_equal(tunnel.trouble, TUNNEL_FINE);
	assert_true(tunnel.learns && tunnel.ageing_s == 300 && !tunnel.link);
	assert_int_equal(is->kind, IFACE_VXLAN);
	assert_addr(&is->local, "192.0.2.1");
	assert_int_equal(is->remote.family, 0);
	assert_int_equal(is->key, 100);
	assert_int_equal(is->dest_port, 4789);
	assert_int_equal(is->source_port, 0);
	assert_int_equal(is->ttl, 64);
	assert_int_equal(is->tos, 0);
	assert_int_equal(is->flags, IFACE_TUNNEL_LINUX | IFACE_TUNNEL_CHECKSUM);
}

// Linux chooses from 1000 to 1999 here.
static void reads_what_outer_headers_take_from_inner_ones(void **state)
{
	const struct event_tunnel tunnel = device("vxlan_link_inherit");
	const struct iface_tunnel *is = &tunnel.settings;

	assert_int_equal(tunnel.trouble, TUNNEL_FINE);
	assert_false(tunnel.learns);
	assert_int_equal(is->ttl, 0);
	assert_int_equal(is->flags, IFACE_TUNNEL_LINUX | IFACE_TUNNEL_TOS | IFACE_TUNNEL_INNER_DF);
	assert_int_equal(is->source_port, 1000);
	assert_int_equal(is->last_source_port, 1999);
}

static void reads_a_device_of_ipv6(void **state)
{
	const struct event_tunnel tunnel = device("vxlan_link6");
	const struct iface_tunnel *is = &tunnel.settings;

	assert_int_equal(tunnel.trouble, TUNNEL_FINE);
	assert_int_equal(tunnel.ageing_s, 20);
	assert_addr(&is->local, "2001:db8::1");
	assert_int_equal(is->ttl, 5);
	assert_int_equal(is->tos, 0xb8);
	assert_int_equal(is->flags, IFACE_TUNNEL_LINUX | IFACE_TUNNEL_ZERO_CHECKSUM);
}

static void names_what_workers_do_not_do(void **state)
{
	static const struct {
		const char *name;
		enum tunnel_trouble trouble;
	} row[] = {{"vxlan_link_nolocal", TUNNEL_VXLAN_SOURCE},
		{"vxlan_link_external", TUNNEL_EXTERNAL},
		{"vxlan_link_elsewhere", TUNNEL_ELSEWHERE}, {"vxlan_link_gbp", TUNNEL_VXLAN_HEADER},
		{"vxlan_link_label", TUNNEL_FLAGS}, {"vxlan_link_proxy", TUNNEL_VXLAN_ANSWERS}};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		const struct event_tunnel tunnel = device(row[i].name);

		assert_int_equal(tunnel.trouble, row[i].trouble);
		assert_int_equal(tunnel.settings.kind, IFACE_NO_TUNNEL);
	}
}

static void reads_where_a_device_floods(void **state)
{
	const struct event event = decoded("vxlan_flood");
	const struct event_remote *is = &event.remote;
	static const struct wire_mac all;

	assert_int_equal(event.kind, EVENT_REMOTE);
	assert_true(is->ifindex > 0 && wire_mac_equal(&is->mac, &all));
	assert_addr(&is->addr, "192.0.2.3");
	assert_int_equal(is->udp_port, 4800);
	assert_true(is->has_vni && is->vni == 7 && !is->is_learnt && !is->link);
	assert_true(decoded("vxlan_flood_gone").is_delete);
}

static void reads_where_addresses_are(void **state)
{
	const struct event learnt = decoded("vxlan_mac"), evpn = decoded("vxlan_mac_evpn");
	const struct event bound = decoded("vxlan_mac_static"), hop = decoded("vxlan_mac_nexthop");

	assert_int_equal(learnt.kind, EVENT_REMOTE);
	assert_addr(&learnt.remote.addr, "192.0.2.4");
	assert_true(learnt.remote.is_learnt && !learnt.remote.has_vni && !learnt.remote.udp_port);
	assert_addr(&evpn.remote.addr, "2001:db8::2");
	assert_false(evpn.remote.is_learnt);
	assert_int_equal(bound.remote.link, 1);
	assert_false(bound.remote.is_learnt);
	assert_int_equal(hop.remote.nexthop, 10);
	assert_int_equal(hop.remote.addr.family, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_device_as_it_is_made_by_default),
		cmocka_unit_test(reads_what_outer_headers_take_from_inner_ones),
		cmocka_unit_test(reads_a_device_of_ipv6),
		cmocka_unit_test(names_what_workers_do_not_do),
		cmocka_unit_test(reads_where_a_device_floods),
		cmocka_unit_test(reads_where_addresses_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
