// Tunnel devices and what Linux tells of tunnels: messages recorded from Linux 6.1
// (test/corpus/netlink), also with other values, and their decoded settings.
#include "netlink/decode_inside.h"

#include "netlink/corpus.h"

#include <linux/if_link.h>
#include <linux/if_tunnel.h>
#include <linux/ip6_tunnel.h>
#include <linux/rtnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ANY = IFACE_TUNNEL_IP4 | IFACE_TUNNEL_IP6 | IFACE_TUNNEL_MPLS };

// The value of an attribute inside of others; NULL: there is none.
static uint8_t *value_of(struct message *message, const uint16_t path[], unsigned depth)
{
	struct piece attrs;
	const struct nlattr *attr;

	assert_true(attrs_of((const void *)message->bytes, sizeof(struct ifinfomsg), &attrs));
	for (unsigned i = 0; i < depth; i++) {
		while ((attr = attrs_next(&attrs)) && attrs_type(attr) != path[i])
			continue;
		if (!attr)
			return NULL;
		attrs = attrs_value(attr);
	}
	return (uint8_t *)attrs.bytes;
}

static uint8_t *data_of(struct message *message, uint16_t type)
{
	const uint16_t path[] = {IFLA_LINKINFO, IFLA_INFO_DATA, type};
	uint8_t *value = value_of(message, path, 3);

	assert_non_null(value);
	return value;
}

static struct event_tunnel decoded(const struct message *message)
{
	struct event event;

	assert_int_equal(decode_route(message->bytes, message->n, &event), DECODE_EVENT);
	assert_int_equal(event.kind, EVENT_LINK);
	return event.iface.tunnel;
}

static struct event_tunnel recorded(const char *name)
{
	struct message message;

	load(&message, name);
	return decoded(&message);
}

static void assert_addr(const struct wire_addr *addr, const char *wanted)
{
	char text[WIRE_ADDR_TEXT];

	assert_string_equal(wire_addr_print(addr, text), wanted);
}

static void reads_gre(void **state)
{
	const struct event_tunnel tunnel = recorded("link_gre");
	const struct iface_tunnel *settings = &tunnel.settings;

	assert_true(tunnel.is_tunnel && tunnel.trouble == TUNNEL_FINE && !tunnel.link);
	assert_int_equal(settings->kind, IFACE_GRE);
	assert_addr(&settings->local, "10.1.1.1");
	assert_addr(&settings->remote, "192.0.2.1");
	assert_int_equal(settings->wanted_key, 7);
	assert_int_equal(settings->key, 8);
	assert_int_equal(settings->ttl, 20);
	assert_int_equal(settings->flags, ANY | IFACE_TUNNEL_KEY | IFACE_TUNNEL_WANTS_KEY |
						  IFACE_TUNNEL_WANTS_CHECKSUM | IFACE_TUNNEL_DF |
						  IFACE_TUNNEL_TOS | IFACE_TUNNEL_LINUX);
}

static void reads_frames_in_gre(void **state)
{
	const struct event_tunnel tunnel = recorded("link_gretap");
	const struct iface_tunnel *settings = &tunnel.settings;

	assert_true(tunnel.is_tunnel && tunnel.trouble == TUNNEL_FINE && !tunnel.learns);
	assert_int_equal(settings->kind, IFACE_GRETAP);
	assert_int_equal(settings->local.family, 4);
	assert_int_equal(settings->remote.family, 4);
	assert_int_equal(settings->ttl, 0);
	assert_int_equal(settings->flags,
		IFACE_TUNNEL_DF | IFACE_TUNNEL_INNER_DF | IFACE_TUNNEL_LINUX);
}

static void reads_ip_in_ip_and_in_udp(void **state)
{
	struct event_tunnel tunnel = recorded("link_ipip_fou");

	assert_int_equal(tunnel.trouble, TUNNEL_FINE);
	assert_int_equal(tunnel.settings.kind, IFACE_IPIP);
	assert_int_equal(tunnel.settings.dest_port, 5544);
	assert_int_equal(tunnel.settings.source_port, 0);
	assert_int_equal(tunnel.settings.flags, IFACE_TUNNEL_IP4 | IFACE_TUNNEL_MPLS |
							IFACE_TUNNEL_UDP | IFACE_TUNNEL_CHECKSUM |
							IFACE_TUNNEL_DF | IFACE_TUNNEL_LINUX);
	tunnel = recorded("link_sit");
	assert_int_equal(tunnel.trouble, TUNNEL_FINE);
	assert_int_equal(tunnel.settings.ttl, 64);
	assert_int_equal(tunnel.settings.flags, ANY | IFACE_TUNNEL_DF | IFACE_TUNNEL_LINUX);
}

static void reads_tunnels_over_ipv6(void **state)
{
	struct event_tunnel tunnel = recorded("link_ip6gre");

	assert_int_equal(tunnel.trouble, TUNNEL_FINE);
	assert_addr(&tunnel.settings.remote, "2001:db8::2");
	assert_int_equal(tunnel.settings.ttl, 9);
	assert_int_equal(tunnel.settings.tos, 0x48);
	assert_int_equal(tunnel.settings.limit, 4);
	assert_int_equal(tunnel.settings.flags, ANY | IFACE_TUNNEL_LIMIT | IFACE_TUNNEL_LINUX);
	tunnel = recorded("link_ip6tnl");
	assert_int_equal(tunnel.trouble, TUNNEL_FINE);
	assert_int_equal(tunnel.settings.limit, 0);
	assert_int_equal(tunnel.settings.flags, ANY | IFACE_TUNNEL_TOS | IFACE_TUNNEL_LINUX);
}

static void reads_mpls_over_udp(void **state)
{
	const struct event_tunnel tunnel = recorded("link_ipip_mpls");

	assert_int_equal(tunnel.trouble, TUNNEL_FINE);
	assert_int_equal(tunnel.settings.kind, IFACE_IPIP);
	assert_int_equal(tunnel.settings.dest_port, 6635);
	assert_int_equal(tunnel.settings.flags,
		IFACE_TUNNEL_MPLS | IFACE_TUNNEL_UDP | IFACE_TUNNEL_DF | IFACE_TUNNEL_LINUX);
}

// What a device carries: mode any, mplsip...
static void reads_what_is_in_packets(void **state)
{
	static const struct {
		const char *name;
		uint8_t proto;
		uint16_t flags;
	} rows[] = {
		{"link_ipip_fou", 0, IFACE_TUNNEL_IP4 | IFACE_TUNNEL_MPLS},
		{"link_ipip_fou", 4, IFACE_TUNNEL_IP4},
		{"link_ipip_fou", 137, IFACE_TUNNEL_MPLS},
		{"link_sit", 0, ANY},
		{"link_sit", 4, IFACE_TUNNEL_IP4},
		{"link_sit", 41, IFACE_TUNNEL_IP6},
		{"link_sit", 137, IFACE_TUNNEL_MPLS},
		{"link_ip6tnl", 0, ANY},
		{"link_ip6tnl", 41, IFACE_TUNNEL_IP6},
	};
	struct message message;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		load(&message, rows[i].name);
		*data_of(&message, IFLA_IPTUN_PROTO) = rows[i].proto;
		const struct event_tunnel tunnel = decoded(&message);
		assert_int_equal(tunnel.trouble, TUNNEL_FINE);
		assert_int_equal(tunnel.settings.flags & ANY, rows[i].flags);
	}
}

// What workers cannot do, by one byte of a message.
static void names_what_workers_cannot_do(void **state)
{
	static const struct {
		const char *name;
		uint16_t attr;
		uint8_t at, value;
		enum tunnel_trouble trouble;
	} rows[] = {
		{"link_gre", IFLA_GRE_OFLAGS, 0, 0x10, TUNNEL_SEQUENCE},
		{"link_gre", IFLA_GRE_IFLAGS, 0, 0x30, TUNNEL_SEQUENCE},
		{"link_gre", IFLA_GRE_REMOTE, 0, 239, TUNNEL_ENDS},
		{"link_gre", IFLA_GRE_IGNORE_DF, 0, 1, TUNNEL_IGNORES_DF},
		{"link_gre", IFLA_GRE_ENCAP_TYPE, 0, TUNNEL_ENCAP_FOU, TUNNEL_ENCAP},
		{"link_gre", IFLA_GRE_FWMARK, 3, 1, TUNNEL_MARK},
		{"link_ipip_fou", IFLA_IPTUN_ENCAP_TYPE, 0, TUNNEL_ENCAP_GUE, TUNNEL_ENCAP},
		{"link_ipip_fou", IFLA_IPTUN_ENCAP_FLAGS, 0, TUNNEL_ENCAP_FLAG_REMCSUM,
			TUNNEL_ENCAP},
		{"link_ipip_fou", IFLA_IPTUN_PROTO, 0, 47, TUNNEL_MODE},
		{"link_sit", IFLA_IPTUN_FLAGS, 0, SIT_ISATAP, TUNNEL_FLAGS},
		{"link_ip6gre", IFLA_GRE_FLOWINFO, 3, 1, TUNNEL_FLAGS},
		{"link_ip6tnl", IFLA_IPTUN_FLAGS, 0, IP6_TNL_F_RCV_DSCP_COPY, TUNNEL_FLAGS},
	};
	struct message message;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		load(&message, rows[i].name);
		data_of(&message, rows[i].attr)[rows[i].at] = rows[i].value;
		const struct event_tunnel tunnel = decoded(&message);
		assert_int_equal(tunnel.trouble, rows[i].trouble);
		assert_int_equal(tunnel.settings.kind, IFACE_NO_TUNNEL);
	}
	load(&message, "link_gre");
	memset(data_of(&message, IFLA_GRE_REMOTE), 0, 4);
	assert_int_equal(decoded(&message).trouble, TUNNEL_ENDS);
	memcpy(data_of(&message, IFLA_GRE_REMOTE), data_of(&message, IFLA_GRE_LOCAL), 4);
	assert_int_equal(decoded(&message).trouble, TUNNEL_ENDS);
}

// Debian's kernel has none.
static void names_bareudp(void **state)
{
	static const char kind[] = "bareudp";
	struct message message;

	load(&message, "link_gretap");
	uint8_t *value = value_of(&message, (const uint16_t[]){IFLA_LINKINFO, IFLA_INFO_KIND}, 2);
	assert_non_null(value);
	assert_string_equal((const char *)value, "gretap"); // it has one byte of padding
	memcpy(value, kind, sizeof(kind));
	((struct nlattr *)(value - NLA_HDRLEN))->nla_len++;
	assert_true(decoded(&message).is_tunnel);
	assert_int_equal(decoded(&message).trouble, TUNNEL_BAREUDP);
}

// Every prefix of a message, with its length mended, and every byte of it changed: no crash.
static void survives_any_bytes(void **state)
{
	static const char *const names[] = {"link_gre", "link_ipip_fou", "link_sit", "link_ip6gre",
		"link_ip6tnl", "link_gretap", "link_ipip_mpls"};
	struct message message;
	struct event event;
	struct mirror_udp_port port;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		load(&message, names[i]);
		for (size_t at = NLMSG_HDRLEN; at < message.n; at++) {
			const uint8_t before = message.bytes[at];

			message.bytes[at] = ~before;
			decode_route(message.bytes, message.n, &event);
			message.bytes[at] = before;
		}
		for (uint32_t n = message.n; n > NLMSG_HDRLEN; n--) {
			memcpy(message.bytes, &n, sizeof(n));
			decode_route(message.bytes, n, &event);
			decode_udp_port((const void *)message.bytes, &port);
			decode_family((const void *)message.bytes);
			decode_route_mtu((const void *)message.bytes);
		}
	}
}

static void reads_udp_ports(void **state)
{
	static const struct {
		const char *name;
		struct mirror_udp_port port;
	} rows[] = {{"fou", {5544, 4, false, true}}, {"fou_ip6", {5545, 41, true, true}},
		{"fou_local", {5546, 4, false, false}}, {"fou_gue", {6080, 0, false, false}},
		{"fou_mpls", {6635, 137, false, true}}};
	struct mirror_udp_port port;
	struct message message;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		load(&message, rows[i].name);
		assert_true(decode_udp_port((const void *)message.bytes, &port));
		assert_int_equal(port.port, rows[i].port.port);
		assert_int_equal(port.protocol, rows[i].port.protocol);
		assert_int_equal(port.is_ip6, rows[i].port.is_ip6);
		assert_int_equal(port.is_plain, rows[i].port.is_plain);
	}
	load(&message, "genl_family");
	assert_int_equal(decode_family((const void *)message.bytes), 0x20);
	load(&message, "route_mtu");
	assert_int_equal(decode_route_mtu((const void *)message.bytes), 1400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_gre),
		cmocka_unit_test(reads_frames_in_gre),
		cmocka_unit_test(reads_ip_in_ip_and_in_udp),
		cmocka_unit_test(reads_tunnels_over_ipv6),
		cmocka_unit_test(reads_what_is_in_packets),
		cmocka_unit_test(reads_mpls_over_udp),
		cmocka_unit_test(names_what_workers_cannot_do),
		cmocka_unit_test(names_bareudp),
		cmocka_unit_test(survives_any_bytes),
		cmocka_unit_test(reads_udp_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
