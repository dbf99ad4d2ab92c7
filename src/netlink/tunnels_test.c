// Tunnel devices in the mirror: which of them become tunnels of workers, and how routes lead into
// them. Synthetic events, a real fib. Tests only.
#include "netlink/fake_linux.h"

#include "netlink/ifaces_inside.h"

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

enum { GRE = 30, OTHER = 31, RED = 50, TABLE_RED = 10, PORT = FAKE_TAP };

static unsigned n_ports, path_mtu;
static struct mirror_udp_port port[TUNNELS_PORTS];

static int udp_ports(void *ops, struct mirror_udp_port out[], unsigned most)
{
	memcpy(out, port, n_ports * sizeof(port[0]));
	return n_ports;
}

static uint32_t mtu_of_path(void *ops, const struct wire_addr *addr, int ifindex)
{
	return path_mtu;
}

static void add_route(const char *prefix, const char *via, int ifindex)
{
	struct event event = {.kind = EVENT_ROUTE, .nl_flags = NLM_F_CREATE | NLM_F_EXCL};
	struct event_route *route = &event.route;

	route->table = RT_TABLE_MAIN;
	route->type = RTN_UNICAST;
	route->protocol = RTPROT_STATIC;
	route->n_hops = 1;
	assert_int_equal(wire_prefix_parse(prefix, &route->prefix), 0);
	if (via)
		route->hop[0].via = fake_addr(via);
	route->hop[0].ifindex = ifindex;
	route->hop[0].weight = 1;
	mirror_event(fake.mirror, &event);
}

// A device with one end here and the other behind 10.0.0.2.
static struct event_link device(int ifindex, const char *remote)
{
	char name[16];

	snprintf(name, sizeof(name), "gre%d", ifindex);
	struct event_link link = fake_device(ifindex, name, "gre");
	link.mtu = 1476;
	link.tunnel = (struct event_tunnel){.is_tunnel = true};
	link.tunnel.settings = (struct iface_tunnel){.local = fake_addr("10.0.0.1"),
		.remote = fake_addr(remote),
		.kind = IFACE_GRE,
		.ttl = 64,
		.flags = IFACE_TUNNEL_IP4 | IFACE_TUNNEL_IP6 | IFACE_TUNNEL_LINUX};
	return link;
}

static void add(struct event_link link)
{
	fake_router(&fake, &link);
	fake_flush(&fake);
}

static int open_underlay(void **state)
{
	n_ports = path_mtu = 0;
	fake_setup(state);
	fake.mirror->settings.ops.udp_ports = udp_ports;
	fake.mirror->settings.ops.path_mtu = mtu_of_path;
	fake_address(&fake, PORT, "10.0.0.1/24", false);
	add_route("10.0.0.0/24", NULL, PORT);
	add_route("192.0.2.0/24", "10.0.0.2", PORT);
	fake_neighbour(&fake, PORT, "10.0.0.2", (struct fake_seen){2, NUD_REACHABLE});
	return 0;
}

static struct fib_answer look(const char *text)
{
	const struct wire_addr addr = fake_addr(text);
	struct fib_answer answer;

	fake_flush(&fake);
	rib_lookup(fake.fib, 0, &addr, &answer);
	return answer;
}

static void leads_routes_into_a_device(void **state)
{
	add(device(GRE, "192.0.2.1"));
	const struct iface *iface = fake_fib_iface(&fake, GRE);
	assert_non_null(iface);
	assert_true(iface_is_tunnel(iface) && iface->has_peer);
	assert_int_equal(iface->mtu, 1476);
	assert_int_equal(iface->port, 0);
	add_route("10.60.0.0/16", NULL, GRE);
	add_route("10.61.0.0/16", "10.60.0.7", GRE);
	assert_int_equal(look("10.60.1.1").hop.kind, FIB_PEER);
	assert_int_equal(look("10.60.1.1").verdict, VERDICT_FORWARD);
	assert_int_equal(look("10.61.1.1").verdict, VERDICT_FORWARD);
	assert_false(fake.port[0].promiscuous);
	fake_iface_gone(&fake, GRE);
	fake_flush(&fake);
	assert_null(fake_fib_iface(&fake, GRE));
	assert_int_not_equal(look("10.60.1.1").verdict, VERDICT_FORWARD);
}

static void leaves_troubled_devices_to_linux(void **state)
{
	struct event_link link = device(GRE, "192.0.2.1");
	char where[64];

	link.tunnel = (struct event_tunnel){.is_tunnel = true, .trouble = TUNNEL_SEQUENCE};
	add(link);
	add_route("10.60.0.0/16", NULL, GRE);
	assert_null(fake_fib_iface(&fake, GRE));
	assert_int_equal(look("10.60.1.1").verdict, VERDICT_LINUX);
	assert_int_equal(fake_unsupported(&fake, "tunnel with sequence numbers (seq)", where), 1);
	assert_string_equal(where, "gre30");
	link.flags = 0; // what is down has no packets
	add(link);
	assert_int_equal(fake_unsupported(&fake, "tunnel with sequence numbers (seq)", where), 0);
	add(device(GRE, "192.0.2.1"));
	add_route("10.60.0.0/16", NULL, GRE);
	assert_int_equal(look("10.60.1.1").verdict, VERDICT_FORWARD);
}

static void wants_the_local_address(void **state)
{
	static const char *const what = "tunnel whose local address the router does not have";
	char where[64];

	add(device(GRE, "192.0.2.1"));
	fake_address(&fake, PORT, "10.0.0.1/24", true);
	fake_flush(&fake);
	assert_null(fake_fib_iface(&fake, GRE));
	assert_int_equal(fake_unsupported(&fake, what, where), 1);
	fake_address(&fake, PORT, "10.0.0.1/24", false);
	fake_flush(&fake);
	assert_non_null(fake_fib_iface(&fake, GRE));
	assert_int_equal(fake_unsupported(&fake, what, where), 0);
}

static void leaves_devices_with_the_same_ends_to_linux(void **state)
{
	struct event_link other = device(OTHER, "192.0.2.1");
	char where[64];

	add(device(GRE, "192.0.2.1"));
	add(other);
	assert_null(fake_fib_iface(&fake, GRE));
	assert_null(fake_fib_iface(&fake, OTHER));
	assert_int_equal(fake_unsupported(&fake, "several tunnels with the same ends", where), 2);
	other.tunnel.settings.flags |= IFACE_TUNNEL_WANTS_KEY;
	add(other);
	assert_non_null(fake_fib_iface(&fake, GRE));
	assert_non_null(fake_fib_iface(&fake, OTHER));
}

static void binds_a_device_to_an_interface_or_a_vrf(void **state)
{
	struct event_link link = device(GRE, "192.0.2.1");
	struct event_link red = fake_vrf(RED, "red", TABLE_RED);

	link.tunnel.link = PORT;
	add(link);
	add_route("10.60.0.0/16", NULL, GRE);
	assert_int_equal(look("10.60.1.1").verdict, VERDICT_FORWARD);
	link.tunnel.link = PORT + 1; // the route leads elsewhere
	add(link);
	assert_int_equal(fake_fib_iface(&fake, GRE)->tunnel.link, 1);
	assert_int_equal(look("10.60.1.1").verdict, VERDICT_LINUX);
	add(red);
	link.tunnel.link = RED;
	link.master = 0;
	add(link);
	assert_int_equal(fake_fib_iface(&fake, GRE)->tunnel.vrf, 1);
	assert_int_equal(fake_fib_iface(&fake, GRE)->vrf, 0);
	link.tunnel.link = 99;
	add(link);
	assert_null(fake_fib_iface(&fake, GRE));
}

static void follows_the_mtu_of_the_path(void **state)
{
	struct fib_answer answer;

	add(device(GRE, "192.0.2.1"));
	add_route("10.60.0.0/16", NULL, GRE);
	path_mtu = 1400;
	mirror_poll(fake.mirror);
	answer = look("10.60.1.1");
	assert_int_equal(fake_fib_iface(&fake, GRE)->tunnel.path_mtu, 1400);
	assert_int_equal(answer.verdict, VERDICT_FORWARD);
	path_mtu = 0;
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	assert_int_equal(fake_fib_iface(&fake, GRE)->tunnel.path_mtu, 0);
}

static void leads_routes_with_labels_into_a_device_that_has_them(void **state)
{
	struct event_link link = device(GRE, "192.0.2.1");
	struct event event = {.kind = EVENT_ROUTE, .nl_flags = NLM_F_CREATE | NLM_F_EXCL};

	event.route = (struct event_route){.table = RT_TABLE_MAIN,
		.type = RTN_UNICAST,
		.protocol = RTPROT_STATIC,
		.n_hops = 1,
		.hop = {{.ifindex = GRE, .weight = 1, .n_labels = 2, .label = {100, 200}}}};
	assert_int_equal(wire_prefix_parse("10.60.0.0/16", &event.route.prefix), 0);
	add(link);
	mirror_event(fake.mirror, &event);
	assert_int_equal(look("10.60.1.1").verdict, VERDICT_LINUX);
	link.tunnel.settings.flags |= IFACE_TUNNEL_MPLS;
	add(link);
	assert_int_equal(look("10.60.1.1").verdict, VERDICT_FORWARD);
	assert_int_equal(look("10.60.1.1").hop.n_labels, 2);
	assert_int_equal(look("10.60.1.1").hop.kind, FIB_PEER);
	link.tunnel.settings.flags &= ~IFACE_TUNNEL_MPLS;
	add(link);
	assert_int_equal(look("10.60.1.1").verdict, VERDICT_LINUX);
}

static void put_route_of_vrf(const char *prefix, const struct event_hop *hop)
{
	struct event event = {.kind = EVENT_ROUTE, .nl_flags = NLM_F_CREATE | NLM_F_EXCL};

	event.route = (struct event_route){.table = TABLE_RED,
		.type = RTN_UNICAST,
		.protocol = RTPROT_BGP,
		.n_hops = 1,
		.hop = {*hop}};
	assert_int_equal(wire_prefix_parse(prefix, &event.route.prefix), 0);
	mirror_event(fake.mirror, &event);
}

// The data plane of a VPN: hosts of a VRF reach those of other routers by labels in a tunnel of the
// main table. One route is written as by ip, the other one as by FRR.
static void a_vrf_reaches_others_by_labels_in_a_tunnel(void **state)
{
	static const char *const hosts[] = {"10.60.1.1", "10.61.1.1"};
	const struct event_hop by_ip = {.ifindex = GRE, .weight = 1, .n_labels = 1, .label = {600}};
	struct event_hop by_frr = by_ip;
	struct event_link link = device(GRE, "192.0.2.1"), guest = fake_tap(1);

	link.tunnel.settings.flags |= IFACE_TUNNEL_MPLS;
	by_frr.via = fake_addr("10.9.0.2");
	by_frr.flags = RTNH_F_ONLINK;
	add(fake_vrf(RED, "red", TABLE_RED));
	guest.master = RED;
	fake_iface(&fake, &guest);
	add(link);
	put_route_of_vrf("10.60.0.0/16", &by_ip);
	put_route_of_vrf("10.61.0.0/16", &by_frr);
	fake_flush(&fake);
	const uint16_t vrf = fake_fib_iface(&fake, guest.ifindex)->vrf;
	assert_int_not_equal(vrf, 0);
	for (unsigned i = 0; i < 2; i++) {
		const struct wire_addr addr = fake_addr(hosts[i]);
		struct fib_answer answer;

		rib_lookup(fake.fib, vrf, &addr, &answer);
		assert_int_equal(answer.verdict, VERDICT_FORWARD);
		assert_int_equal(answer.hop.kind, FIB_PEER);
		assert_int_equal(answer.hop.label[0], 600);
		assert_int_not_equal(look(hosts[i]).verdict, VERDICT_FORWARD);
	}
}

// Devices of two kinds may have the same ends, if what is in their packets differs.
static void tells_devices_apart_by_what_is_in_them(void **state)
{
	struct event_link ip = device(GRE, "192.0.2.1"), labels = device(OTHER, "192.0.2.1");
	char where[64];

	ip.tunnel.settings.kind = labels.tunnel.settings.kind = IFACE_IPIP;
	ip.tunnel.settings.flags = IFACE_TUNNEL_IP4 | IFACE_TUNNEL_LINUX;
	labels.tunnel.settings.flags = IFACE_TUNNEL_MPLS | IFACE_TUNNEL_LINUX;
	add(ip);
	add(labels);
	assert_non_null(fake_fib_iface(&fake, GRE));
	assert_non_null(fake_fib_iface(&fake, OTHER));
	ip.tunnel.settings.flags |= IFACE_TUNNEL_MPLS;
	add(ip);
	assert_null(fake_fib_iface(&fake, GRE));
	assert_null(fake_fib_iface(&fake, OTHER));
	assert_int_equal(fake_unsupported(&fake, "several tunnels with the same ends", where), 2);
}

static void names_ports_that_workers_do_not_receive_on(void **state)
{
	static const char *const what = "UDP port of tunnels (fou)";
	char where[64];

	port[0] = (struct mirror_udp_port){5544, 4, false, true};
	port[1] = (struct mirror_udp_port){6080, 0, false, false};
	n_ports = 2;
	mirror_poll(fake.mirror); // nobody asks without a tunnel
	assert_int_equal(fake_unsupported(&fake, what, where), 0);
	add(device(GRE, "192.0.2.1"));
	mirror_poll(fake.mirror);
	assert_int_equal(fake_unsupported(&fake, what, where), 1);
	assert_string_equal(where, "port 6080 of IPv4");
	port[1] = (struct mirror_udp_port){5544, 4, false, false}; // the same port, at one address
	mirror_poll(fake.mirror);
	assert_int_equal(fake_unsupported(&fake, what, where), 2);
	n_ports = 0;
	mirror_poll(fake.mirror);
	assert_int_equal(fake_unsupported(&fake, what, where), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_underlay, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(leads_routes_into_a_device),
		TEST(leaves_troubled_devices_to_linux),
		TEST(wants_the_local_address),
		TEST(leaves_devices_with_the_same_ends_to_linux),
		TEST(binds_a_device_to_an_interface_or_a_vrf),
		TEST(follows_the_mtu_of_the_path),
		TEST(leads_routes_with_labels_into_a_device_that_has_them),
		TEST(a_vrf_reaches_others_by_labels_in_a_tunnel),
		TEST(tells_devices_apart_by_what_is_in_them),
		TEST(names_ports_that_workers_do_not_receive_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
