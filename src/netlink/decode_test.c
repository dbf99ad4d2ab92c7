// Messages recorded from this kernel series (test/corpus/netlink), and their decoded events.
#include "netlink/event.h"

#include "netlink/corpus.h"

#include <linux/if_bridge.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <linux/xfrm.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

typedef enum decode_result decoder(const void *message, size_t bytes, struct event *out);

static struct event decoded(decoder *decode, const char *name)
{
	struct message message;
	struct event event;

	load(&message, name);
	assert_int_equal(decode(message.bytes, message.n, &event), DECODE_EVENT);
	return event;
}

static void assert_ignored(decoder *decode, const char *name)
{
	struct message message;
	struct event event;

	load(&message, name);
	assert_int_equal(decode(message.bytes, message.n, &event), DECODE_IGNORED);
}

static void assert_addr(const struct wire_addr *addr, const char *wanted)
{
	char text[WIRE_ADDR_TEXT];

	assert_string_equal(wire_addr_print(addr, text), wanted);
}

static void assert_prefix(const struct wire_prefix *prefix, const char *wanted)
{
	char text[WIRE_PREFIX_TEXT];

	assert_string_equal(wire_prefix_print(prefix, text), wanted);
}

static void reads_labels(void **state)
{
	struct event event = decoded(decode_route, "label_swap");
	const struct event_hop *hop = event.label.hop;

	assert_int_equal(event.kind, EVENT_LABEL);
	assert_false(event.is_delete);
	assert_int_equal(event.label.label, 100);
	assert_int_equal(event.label.propagates, 0);
	assert_int_equal(event.label.n_hops, 1);
	assert_addr(&hop->via, "10.0.0.2");
	assert_int_equal(hop->ifindex, 5);
	assert_int_equal(hop->n_labels, 2);
	assert_true(hop->label[0] == 200 && hop->label[1] == 201);
	assert_true(decoded(decode_route, "label_delete").is_delete);
	event = decoded(decode_route, "label_deep");
	assert_int_equal(event.label.label, 1048575);
	assert_int_equal(event.label.propagates, -1);
	assert_true(hop->has_encap && !hop->n_labels);
	assert_true(decoded(decode_route, "label_mac").label.hop[0].has_encap);
	event = decoded(decode_route, "label_multipath");
	assert_int_equal(event.label.n_hops, 2);
	assert_int_equal(hop[0].label[0], 300);
	assert_int_equal(hop[1].n_labels, 0);
	assert_int_equal(hop[1].weight, 3);
	assert_addr(&hop[1].via, "2001:db8::2");
	event = decoded(decode_route, "netconf_mpls");
	assert_int_equal(event.netconf.family, EVENT_MPLS);
	assert_int_equal(event.netconf.input, 1);
}

static void reads_routes_that_push_labels(void **state)
{
	struct event event = decoded(decode_route, "route4_mpls");
	const struct event_hop *hop = event.route.hop;

	assert_false(hop->has_encap);
	assert_int_equal(hop->n_labels, 2);
	assert_true(hop->label[0] == 401 && hop->label[1] == 402);
	assert_int_equal(hop->label_ttl, 17);
	event = decoded(decode_route, "route4_mpls_multipath");
	assert_int_equal(hop[0].n_labels, 2);
	assert_false(hop[1].n_labels || hop[1].has_encap);
	event = decoded(decode_route, "nexthop_mpls");
	assert_int_equal(event.nexthop.hop.n_labels, 1);
	assert_int_equal(event.nexthop.hop.label_ttl, -1);
	assert_false(event.nexthop.hop.has_encap);
}

static void reads_ifaces(void **state)
{
	struct event event = decoded(decode_route, "link");

	assert_int_equal(event.kind, EVENT_LINK);
	assert_string_equal(event.iface.name, "va");
	assert_string_equal(event.iface.kind, "veth");
	assert_int_equal(event.iface.mtu, 1500);
	assert_true(event.iface.carrier);
	event = decoded(decode_route, "link_in_bridge");
	assert_string_equal(event.iface.slave_kind, "bridge");
	assert_int_equal(event.iface.master, 4);
	event = decoded(decode_route, "link_macvlan");
	assert_string_equal(event.iface.kind, "macvlan");
	assert_int_equal(event.iface.lower, 3);
	event = decoded(decode_route, "link_hsr"); // built like net/hsr/hsr_netlink.c does
	assert_string_equal(event.iface.kind, "hsr");
	assert_int_equal(event.iface.ring[0], 3);
	assert_int_equal(event.iface.ring[1], 5);
	assert_int_equal(event.iface.ring[2], 7);
}

static void reads_bridges_and_their_ports(void **state)
{
	struct event event = decoded(decode_route, "link_bridge");

	assert_string_equal(event.iface.kind, "bridge");
	assert_int_equal(event.iface.bridge.ageing_cs, 2000);
	assert_int_equal(event.iface.bridge.stp, 0);
	assert_false(event.iface.bridge.filters_vlans || event.iface.bridge.calls_hooks);
	assert_false(event.iface.port.is_known);
	event = decoded(decode_route, "link_bridge_port_locked");
	assert_true(event.iface.port.is_known && event.iface.port.is_odd);
	assert_true(event.iface.port.is_isolated && !event.iface.port.answers); // neigh_suppress
	assert_int_equal(event.iface.port.state, 3);                            // forwarding
}

// The bridge tells of a port by a message of its own family.
static void reads_changes_of_the_ports_of_bridges(void **state)
{
	struct event event = decoded(decode_route, "bridge_port_changed");
	struct message message;

	assert_int_equal(event.kind, EVENT_BRIDGE_PORT);
	assert_int_equal(event.port.ifindex, 3);
	assert_int_equal(event.port.master, 4);
	assert_true(event.port.port.is_known && event.port.port.is_isolated);
	assert_true(event.port.port.is_hairpin && event.port.port.floods);
	assert_false(event.port.port.learns || event.port.port.answers || event.port.port.is_odd);
	load(&message, "bridge_port_changed");
	((struct nlmsghdr *)message.bytes)->nlmsg_type = RTM_DELLINK; // it left, or the bridge goes
	assert_int_equal(decode_route(message.bytes, message.n, &event), DECODE_IGNORED);
}

// What Linux tells of VLANs 5 (PVID) and 10 to 12, which are untagged or blocked.
struct vlan_message {
	struct nlmsghdr head;
	struct br_vlan_msg bridge;
	struct nlattr first, info;
	struct bridge_vlan_info one;
	struct nlattr state;
	uint8_t is[4];
	struct nlattr second, other_info;
	struct bridge_vlan_info other;
	struct nlattr range;
	uint16_t last[2];
};

static struct vlan_message vlan_message(void)
{
	return (struct vlan_message){{sizeof(struct vlan_message), RTM_NEWVLAN, 0, 0, 0},
		{.family = AF_BRIDGE, .ifindex = 3},
		{NLA_HDRLEN + 16, BRIDGE_VLANDB_ENTRY | NLA_F_NESTED},
		{NLA_HDRLEN + 4, BRIDGE_VLANDB_ENTRY_INFO}, {BRIDGE_VLAN_INFO_PVID, 5},
		{NLA_HDRLEN + 1, BRIDGE_VLANDB_ENTRY_STATE}, {BR_STATE_FORWARDING},
		{NLA_HDRLEN + 16, BRIDGE_VLANDB_ENTRY | NLA_F_NESTED},
		{NLA_HDRLEN + 4, BRIDGE_VLANDB_ENTRY_INFO}, {BRIDGE_VLAN_INFO_UNTAGGED, 10},
		{NLA_HDRLEN + 2, BRIDGE_VLANDB_ENTRY_RANGE}, {12}};
}

static void reads_vlans_of_a_port(void **state)
{
	struct vlan_message message = vlan_message();
	struct event event;

	assert_int_equal(decode_route(&message, sizeof(message), &event), DECODE_EVENT);
	assert_int_equal(event.kind, EVENT_VLANS);
	assert_int_equal(event.vlans.ifindex, 3);
	assert_int_equal(event.vlans.pvid, 5);
	assert_int_equal(event.vlans.has[0], 1 << 5 | 7 << 10);
	assert_int_equal(event.vlans.untagged[0], 7 << 10);
	assert_int_equal(event.vlans.odd[0], 0);
	message.is[0] = BR_STATE_BLOCKING;
	assert_int_equal(decode_route(&message, sizeof(message), &event), DECODE_EVENT);
	assert_int_equal(event.vlans.odd[0], 1 << 5);
	message.state.nla_type = BRIDGE_VLANDB_ENTRY_STATS; // does not matter
	assert_int_equal(decode_route(&message, sizeof(message), &event), DECODE_EVENT);
	assert_int_equal(event.vlans.odd[0], 0);
	message.state.nla_type = 60; // of a newer kernel
	assert_int_equal(decode_route(&message, sizeof(message), &event), DECODE_EVENT);
	assert_int_equal(event.vlans.odd[0], 1 << 5);
	message.head.nlmsg_type = RTM_DELVLAN;
	assert_int_equal(decode_route(&message, sizeof(message), &event), DECODE_EVENT);
	assert_true(event.is_delete);
	message.first.nla_type = message.second.nla_type = BRIDGE_VLANDB_GLOBAL_OPTIONS;
	assert_int_equal(decode_route(&message, sizeof(message), &event), DECODE_IGNORED);
}

static void refuses_vlans_that_there_cannot_be(void **state)
{
	static const struct {
		uint16_t first, last;
	} row[] = {{0, 0}, {0, 5}, {4095, 0}, {10, 9}, {4000, 4095}, {1, 65535}};
	struct vlan_message message;
	struct event event;

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		message = vlan_message();
		message.other.vid = row[i].first;
		message.last[0] = row[i].last;
		assert_int_equal(decode_route(&message, sizeof(message), &event), DECODE_MALFORMED);
	}
	message = vlan_message();
	message.last[0] = 4094;
	assert_int_equal(decode_route(&message, sizeof(message), &event), DECODE_EVENT);
	assert_int_equal(event.vlans.has[EVENT_VIDS / 64 - 1], ~0ull >> 1);
	message.range.nla_len = 9; // beyond the end
	assert_int_equal(decode_route(&message, sizeof(message), &event), DECODE_MALFORMED);
	message = vlan_message();
	message.bridge.ifindex = 0;
	assert_int_equal(decode_route(&message, sizeof(message), &event), DECODE_MALFORMED);
}

// Attributes of newer kernels count if they are set.
static void takes_an_unknown_attribute_of_a_port_for_odd(void **state)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg link;
		struct nlattr protinfo, learning;
		uint8_t learns[4];
		struct nlattr unknown;
		uint8_t value[4];
	} message = {{sizeof(message), RTM_NEWLINK, 0, 0, 0},
		{.ifi_family = AF_BRIDGE, .ifi_index = 3},
		{NLA_HDRLEN + 16, IFLA_PROTINFO | NLA_F_NESTED}, {NLA_HDRLEN + 1, 8}, {1},
		{NLA_HDRLEN + 1, 99}, {0}};
	struct event event;

	assert_int_equal(decode_route(&message, sizeof(message), &event), DECODE_EVENT);
	assert_true(event.port.port.learns);
	assert_false(event.port.port.is_odd);
	message.value[0] = 1;
	assert_int_equal(decode_route(&message, sizeof(message), &event), DECODE_EVENT);
	assert_true(event.port.port.is_odd);
	message.unknown.nla_len = 9; // beyond the end
	assert_int_equal(decode_route(&message, sizeof(message), &event), DECODE_MALFORMED);
}

static void reads_the_addresses_of_bridges(void **state)
{
	struct event event = decoded(decode_route, "fdb_learnt");

	assert_int_equal(event.kind, EVENT_FDB);
	assert_int_equal(event.fdb.ifindex, 3);
	assert_int_equal(event.fdb.bridge, 4);
	assert_int_equal(event.fdb.mac.bytes[5], 9);
	assert_int_equal(event.fdb.vlan, 0);
	assert_true(event.fdb.is_plain);
	assert_true(decoded(decode_route, "fdb_gone").is_delete);
	assert_false(decoded(decode_route, "fdb_local").fdb.is_plain); // the bridge's own
	assert_ignored(decode_route, "fdb_self");                      // of the device's filter
}

static void reads_addresses(void **state)
{
	struct event event = decoded(decode_route, "address4");

	assert_prefix(&event.address.prefix, "10.0.0.1/24");
	assert_addr(&event.address.local, "10.0.0.1");
	event = decoded(decode_route, "address6");
	assert_addr(&event.address.local, "2001:db8::1");
}

static void reads_neighbours(void **state)
{
	struct event event = decoded(decode_route, "neighbour");

	assert_addr(&event.neighbour.addr, "10.0.0.9");
	assert_true(event.neighbour.has_mac);
	assert_int_equal(event.neighbour.mac.bytes[5], 9);
	assert_int_equal(event.neighbour.state, NUD_PERMANENT);
}

static void reads_ipv4_routes(void **state)
{
	struct event event = decoded(decode_route, "route4");

	assert_prefix(&event.route.prefix, "10.1.0.0/16");
	assert_int_equal(event.route.metric, 7);
	assert_int_equal(event.route.mtu, 1400);
	assert_int_equal(event.route.table, RT_TABLE_MAIN);
	assert_int_equal(event.route.n_hops, 1);
	assert_addr(&event.route.hop[0].via, "10.0.0.2");
	assert_true(event.nl_flags & NLM_F_EXCL);
	event = decoded(decode_route, "route4_replace");
	assert_true(event.nl_flags & NLM_F_REPLACE);
	event = decoded(decode_route, "route4_blackhole");
	assert_int_equal(event.route.type, RTN_BLACKHOLE);
	assert_int_equal(event.route.n_hops, 0);
	event = decoded(decode_route, "route4_via6");
	assert_addr(&event.route.hop[0].via, "2001:db8::2");
}

static void reads_routes_of_several_hops(void **state)
{
	struct event event = decoded(decode_route, "route4_multipath");

	assert_int_equal(event.route.n_hops, 2);
	assert_int_equal(event.route.hop[0].weight, 3);
	assert_addr(&event.route.hop[1].via, "10.0.0.3");
	event = decoded(decode_route, "route4_nexthop");
	assert_int_equal(event.route.nh_id, 10);
	assert_int_equal(event.route.hop[1].weight, 250);
	event = decoded(decode_route, "route6_append");
	assert_true(event.nl_flags & NLM_F_APPEND);
	assert_int_equal(event.route.n_hops, 3);
	event = decoded(decode_route, "route6_delete_one");
	assert_true(event.is_delete);
	assert_int_equal(event.route.n_hops, 1);
	assert_addr(&event.route.hop[0].via, "2001:db8::b");
	event = decoded(decode_route, "route6_encap");
	assert_true(event.route.hop[0].has_encap);
	assert_int_equal(event.route.expires, 0);
	event = decoded(decode_route, "route6_lifetime"); // 500 s
	assert_int_equal(event.route.expires, 50000);
}

static void ignores_cached_routes(void **state)
{
	struct message message;
	struct event event;

	load(&message, "route4");
	((struct rtmsg *)(message.bytes + NLMSG_HDRLEN))->rtm_flags |= RTM_F_CLONED;
	assert_int_equal(decode_route(message.bytes, message.n, &event), DECODE_IGNORED);
}

static void reads_next_hops_and_groups(void **state)
{
	struct event event = decoded(decode_route, "nexthop");
	struct message message;

	assert_int_equal(event.nexthop.id, 1);
	assert_false(event.nexthop.is_group);
	assert_addr(&event.nexthop.hop.via, "10.0.0.2");
	event = decoded(decode_route, "nexthop_group");
	assert_true(event.nexthop.is_group);
	assert_int_equal(event.nexthop.n_members, 2);
	assert_int_equal(event.nexthop.member[1].id, 2);
	assert_int_equal(event.nexthop.member[1].weight, 250);
	load(&message, "nexthop_group");
	uint8_t *last = memmem(message.bytes, message.n, (uint8_t[]){2, 0, 0, 0, 249, 0}, 6);
	assert_non_null(last);
	last[5] = 1; // high byte of the weight
	assert_int_equal(decode_route(message.bytes, message.n, &event), DECODE_EVENT);
	assert_int_equal(event.nexthop.member[1].weight, 256 + 250);
	event = decoded(decode_route, "nexthop_resilient");
	assert_true(event.nexthop.is_resilient);
	assert_int_equal(event.nexthop.resilient.idle_cs, 12000);
	assert_int_equal(event.nexthop.resilient.unbalanced_cs, 0);
	assert_true(decoded(decode_route, "nexthop_delete").is_delete);
}

static void reads_settings_and_tells_what_was_not_told(void **state)
{
	struct event event = decoded(decode_route, "netconf");

	assert_int_equal(event.netconf.family, 4);
	assert_int_equal(event.netconf.rp_filter, 2);
	assert_int_equal(event.netconf.forwarding, -1);
	assert_int_equal(decoded(decode_route, "netconf_new").netconf.forwarding, 0);
}

static void reads_rules_and_sees_selectors(void **state)
{
	struct event event = decoded(decode_route, "rule");

	assert_int_equal(event.rule.table, 101);
	assert_false(event.rule.has_selector);
	assert_true(decoded(decode_route, "rule_iif").rule.has_selector);
	event = decoded(decode_route, "rule_delete");
	assert_true(event.is_delete && event.rule.has_selector);
}

static void names_what_is_foreign(void **state)
{
	struct event event = decoded(decode_route, "qdisc_clsact");

	assert_int_equal(event.foreign.sides, EVENT_INGRESS | EVENT_EGRESS);
	assert_false(event.foreign.is_harmless);
	assert_true(decoded(decode_route, "qdisc_delete").foreign.is_harmless);
	event = decoded(decode_netfilter, "chain_forward");
	assert_string_equal(event.foreign.name, "table inet filter chain forward");
	assert_int_equal(event.foreign.hook, NF_INET_FORWARD);
	assert_false(event.foreign.is_harmless);
	assert_true(decoded(decode_netfilter, "chain_input").foreign.is_harmless);
	assert_ignored(decode_netfilter, "chain_plain");
	event = decoded(decode_netfilter, "chain_netdev");
	assert_int_equal(event.foreign.hook, NF_INET_INGRESS);
	event = decoded(decode_netfilter, "chain_delete");
	assert_true(event.is_delete);
	assert_string_equal(event.foreign.name, "table inet filter chain forward");
	assert_false(event.foreign.is_part);
}

// Removed devices are reported like a new chain, with the hook.
static void a_chain_that_loses_devices_is_told_apart(void **state)
{
	struct message message;
	struct event event;

	load(&message, "chain_netdev");
	((struct nlmsghdr *)message.bytes)->nlmsg_type =
		NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELCHAIN;
	assert_int_equal(decode_netfilter(message.bytes, message.n, &event), DECODE_EVENT);
	assert_true(event.is_delete && event.foreign.is_part);
	assert_int_equal(event.foreign.hook, NF_INET_INGRESS);
	assert_string_equal(event.foreign.name,
		decoded(decode_netfilter, "chain_netdev").foreign.name);
}

static void a_policy_and_its_deletion_have_one_name(void **state)
{
	struct event made = decoded(decode_xfrm, "policy_forward");
	struct event gone = decoded(decode_xfrm, "policy_delete");

	assert_true(gone.is_delete);
	assert_string_equal(made.foreign.name, gone.foreign.name);
	assert_false(made.foreign.is_harmless);
	assert_true(decoded(decode_xfrm, "policy_in").foreign.is_harmless);
	gone = decoded(decode_xfrm, "policy_flush");
	assert_true(gone.is_delete);
	assert_string_equal(gone.foreign.name, "");
}

static void a_default_policy_matters_when_it_blocks_what_is_forwarded(void **state)
{
	struct event event = decoded(decode_xfrm, "policy_default");
	struct xfrm_userpolicy_default *reported;
	struct message message;

	assert_int_equal(event.kind, EVENT_POLICY_DEFAULT);
	assert_int_equal(event.foreign.family, 0);
	assert_string_equal(event.foreign.name, "default of fwd or out is block");
	assert_false(event.foreign.is_harmless);
	load(&message, "policy_default");
	reported = NLMSG_DATA(message.bytes);
	*reported = (struct xfrm_userpolicy_default){XFRM_USERPOLICY_BLOCK, XFRM_USERPOLICY_ACCEPT,
		XFRM_USERPOLICY_UNSPEC};
	assert_int_equal(decode_xfrm(message.bytes, message.n, &event), DECODE_EVENT);
	assert_true(event.foreign.is_harmless);
	reported->out = XFRM_USERPOLICY_BLOCK;
	assert_int_equal(decode_xfrm(message.bytes, message.n, &event), DECODE_EVENT);
	assert_false(event.foreign.is_harmless);
}

static const struct {
	decoder *decode;
	const char *name;
} samples[] = {{decode_route, "link"}, {decode_route, "route6_append"},
	{decode_route, "route4_multipath"}, {decode_route, "nexthop_group"},
	{decode_route, "neighbour"}, {decode_route, "rule_iif"},
	{decode_netfilter, "chain_forward"}, {decode_xfrm, "policy_forward"}};

static void a_message_cut_anywhere_is_malformed(void **state)
{
	struct message message;
	struct event event;

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		load(&message, samples[i].name);
		for (size_t n = 0; n < message.n; n++)
			assert_int_equal(samples[i].decode(message.bytes, n, &event),
				DECODE_MALFORMED);
	}
}

// Makes each attribute in turn longer than the message.
static void an_oversized_attribute_is_malformed(void **state)
{
	struct message message;
	struct event event;
	uint16_t length;

	load(&message, "route4");
	for (size_t at = NLMSG_LENGTH(sizeof(struct rtmsg)); at < message.n; at += length) {
		uint16_t more = message.n - at + 1;

		memcpy(&length, message.bytes + at, sizeof(length));
		memcpy(message.bytes + at, &more, sizeof(more));
		assert_int_equal(decode_route(message.bytes, message.n, &event), DECODE_MALFORMED);
		memcpy(message.bytes + at, &length, sizeof(length));
		length = NLMSG_ALIGN(length);
	}
	assert_int_equal(decode_route(message.bytes, message.n, &event), DECODE_EVENT);
}

static void a_hop_longer_than_its_route_is_malformed(void **state)
{
	struct message message;
	struct event event;
	struct rtnexthop *hop;

	load(&message, "route4_multipath");
	// The last hop: its header and one gateway.
	hop = (void *)(message.bytes + message.n - sizeof(*hop) - 8);
	assert_int_equal(hop->rtnh_len, sizeof(*hop) + 8);
	hop->rtnh_len++;
	assert_int_equal(decode_route(message.bytes, message.n, &event), DECODE_MALFORMED);
	hop->rtnh_len = 3;
	assert_int_equal(decode_route(message.bytes, message.n, &event), DECODE_MALFORMED);
}

static void ends_and_errors_tell_their_reason(void **state)
{
	struct {
		struct nlmsghdr head;
		int error;
	} message = {{sizeof(message), NLMSG_ERROR, 0, 7, 0}, -101};
	struct event event;

	assert_int_equal(decode_route(&message, sizeof(message), &event), DECODE_EVENT);
	assert_int_equal(event.kind, EVENT_ERROR);
	assert_int_equal(event.error, -101);
	assert_int_equal(event.sequence, 7);
	message.head.nlmsg_type = NLMSG_DONE;
	assert_int_equal(decode_xfrm(&message, sizeof(message), &event), DECODE_EVENT);
	assert_int_equal(event.kind, EVENT_DONE);
	message.head.nlmsg_type = NLMSG_OVERRUN;
	assert_int_equal(decode_route(&message, sizeof(message), &event), DECODE_EVENT);
	assert_int_equal(event.kind, EVENT_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_labels),
		cmocka_unit_test(reads_routes_that_push_labels),
		cmocka_unit_test(reads_ifaces),
		cmocka_unit_test(reads_bridges_and_their_ports),
		cmocka_unit_test(reads_changes_of_the_ports_of_bridges),
		cmocka_unit_test(reads_vlans_of_a_port),
		cmocka_unit_test(refuses_vlans_that_there_cannot_be),
		cmocka_unit_test(takes_an_unknown_attribute_of_a_port_for_odd),
		cmocka_unit_test(reads_the_addresses_of_bridges),
		cmocka_unit_test(reads_addresses),
		cmocka_unit_test(reads_neighbours),
		cmocka_unit_test(reads_ipv4_routes),
		cmocka_unit_test(reads_routes_of_several_hops),
		cmocka_unit_test(ignores_cached_routes),
		cmocka_unit_test(reads_next_hops_and_groups),
		cmocka_unit_test(reads_settings_and_tells_what_was_not_told),
		cmocka_unit_test(reads_rules_and_sees_selectors),
		cmocka_unit_test(names_what_is_foreign),
		cmocka_unit_test(a_chain_that_loses_devices_is_told_apart),
		cmocka_unit_test(a_policy_and_its_deletion_have_one_name),
		cmocka_unit_test(a_default_policy_matters_when_it_blocks_what_is_forwarded),
		cmocka_unit_test(a_message_cut_anywhere_is_malformed),
		cmocka_unit_test(an_oversized_attribute_is_malformed),
		cmocka_unit_test(a_hop_longer_than_its_route_is_malformed),
		cmocka_unit_test(ends_and_errors_tell_their_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
