// Filters recorded from Debian's kernel 6.1 (test/corpus/netlink/filter_*), in the words of access
// lists, and what is not understood; u32 beside a plain reading of its keys.
#include "netlink/event.h"

#include "netlink/corpus.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void load_filter(struct message *message, const char *name)
{
	char file[128];

	snprintf(file, sizeof(file), "filter_%s", name);
	load(message, file);
}

static struct event decoded_message(const struct message *message)
{
	struct event event;

	assert_int_equal(decode_route(message->bytes, message->n, &event), DECODE_EVENT);
	return event;
}

static struct event decoded(const char *name)
{
	struct message message;

	load_filter(&message, name);
	return decoded_message(&message);
}

// What an event says, as text: its rules, or its reason.
static const char *print(const struct event_filter *filter, char *text, size_t room)
{
	char rule[ACL_RULE_TEXT];
	size_t n = 0;

	if (filter->what == FILTER_TABLE)
		return "table";
	if (filter->what == FILTER_UNKNOWN)
		return filter->reason;
	snprintf(text, room, "nothing");
	for (unsigned i = 0; i < filter->n_rules; i++)
		n += snprintf(text + n, room - n, "%s%s", i ? "; " : "",
			acl_rule_print(&filter->rule[i], rule));
	return text;
}

static const struct {
	const char *name, *says;
} recorded[] = {
	{"u32_dst", "deny to 10.1.0.0/16"},
	{"u32_port", "ports, types or flags need match u16 0 0x1fff at 6: in later fragments they "
		     "are data"},
	{"u32_port_whole", "deny udp family ipv4 to_port 53"},
	{"u32_tcp_syn", "permit tcp family ipv4 tcp_flags syn,!ack fragment none"},
	{"u32_nexthdr", "key for byte 2 of the packet"},
	{"u32_ip6", "deny to 2001:db8:1::/48 dscp 46"},
	{"u32_ip6_proto", "key protocol of IPv6, which headers may precede"},
	{"u32_all", "deny"},
	{"u32_classid", "permit from 192.0.2.7/32"},
	{"u32_continue", "nothing"},
	{"u32_police", "permit from 192.0.2.7/32 police.rate 1Mbit/s police.burst 10240B "
		       "police.mtu 2040 police.bucket 1"},
	{"u32_mask", "key dst with a mask that is no prefix"},
	{"u32_tos", "permit family ipv4 dscp 46"},
	{"flower_dst", "deny to 10.1.0.0/16"},
	{"flower_any", "deny family ipv4"},
	{"flower_all", "permit"},
	{"flower_port", "deny tcp family ipv4 to_port 80 fragment none"},
	{"flower_port_mask", "deny udp family ipv4 from_port 1024-2047 fragment none"},
	{"flower_range", "deny udp family ipv4 to_port 1000-2000 fragment none"},
	{"flower_range_both",
		"deny tcp family ipv6 from_port 1-99 to_port 5000-5010 fragment none"},
	{"flower_sctp", "permit sctp family ipv4 to_port 9 fragment none"},
	{"flower_ip6", "permit from 2001:db8::/32 to 2001:db8:1::9/128"},
	{"flower_flags", "deny tcp family ipv4 tcp_flags syn,!ack fragment none"},
	{"flower_icmp", "deny icmp family ipv4 icmp_type 8 icmp_code 0 fragment none"},
	{"flower_icmp0", "deny icmp family ipv4 icmp_type 0 fragment none; deny icmp family ipv4 "
			 "fragment any"},
	{"flower_icmp6", "deny icmp6 family ipv6 icmp_type 128 fragment none"},
	{"flower_frag", "deny family ipv4 fragment any"},
	{"flower_nofrag", "deny family ipv4 fragment none"},
	{"flower_first", "deny family ipv4 fragment first"},
	{"flower_nofirst", "deny family ipv4 fragment later"},
	{"flower_tos", "deny family ipv4 dscp 46"},
	{"flower_ttl", "key ip_ttl"},
	{"flower_mac", "key dst_mac"},
	{"flower_vlan", "protocol 802.1Q or 802.1ad"},
	{"flower_arp", "nothing"},
	{"flower_skip_hw", "deny to 10.1.0.0/16"},
	{"flower_indev", "key indev"},
	{"flower_enc", "key enc_key_id"},
	{"flower_chain", "chain other than 0"},
	{"flower_goto", "action gact goto chain"},
	{"flower_continue", "action gact continue"},
	{"flower_classid", "permit to 10.1.0.0/16"},
	{"flower_random", "action gact random"},
	{"matchall_drop", "deny family ipv4"},
	{"matchall_all", "deny"},
	{"matchall_pass", "permit family ipv6"},
	{"matchall_police", "permit police.rate 1Mbit/s police.burst 10240B "
			    "police.mtu 2040 police.bucket 1"},
	{"matchall_mirred", "action mirred"},
	{"matchall_trap", "action gact trap"},
	{"matchall_reclassify", "action gact reclassify"},
	{"pedit_ip", "permit family ipv4 mark 46"},
	{"pedit_ip_pass", "permit family ipv4 mark 46"},
	{"pedit_ip_drop", "deny family ipv4"},
	{"pedit_default", "action pedit without csum ip, so that the checksum is wrong"},
	{"pedit_legacy", "permit to 10.1.0.0/16 mark 10"},
	{"pedit_nocsum", "action pedit without csum ip, so that the checksum is wrong"},
	{"pedit_ecn", "action pedit of more or less than the DSCP (retain 0xfc) of one protocol"},
	{"pedit_tos", "permit family ipv4 mark 46"},
	{"pedit_ip6", "permit family ipv6 mark 46"},
	{"pedit_ip6_tc", "permit from 2001:db8::/32 mark 10"},
	{"pedit_ttl", "action pedit of more or less than the DSCP (retain 0xfc) of one protocol"},
	{"pedit_offset", "permit family ipv4 mark 46"},
	{"pedit_csum_tcp", "action csum of more than ip"},
	{"skbedit", "action skbedit"},
	{"bpf_none", "kind basic"},
};

static void reads_what_debian_reports(void **state)
{
	char text[2 * ACL_RULE_TEXT];
	bool is_wrong = false;

	for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++) {
		const struct event event = decoded(recorded[i].name);
		const char *says = print(&event.filter, text, sizeof(text));

		assert_int_equal(event.kind, EVENT_FILTER);
		if (strcmp(says, recorded[i].says)) {
			print_error("%s: %s\n", recorded[i].name, says);
			is_wrong = true;
		}
	}
	assert_false(is_wrong);
}

static void tells_which_filter_it_is(void **state)
{
	struct event event = decoded("notified");
	char text[2 * ACL_RULE_TEXT];

	assert_int_equal(event.filter.ifindex, 2);
	assert_int_equal(event.filter.side, EVENT_INGRESS);
	assert_int_equal(event.filter.priority, 9);
	assert_int_equal(event.filter.protocol, ETH_P_IP);
	assert_int_equal(event.filter.chain, 0);
	assert_int_equal(event.filter.handle, 0x80000800);
	assert_string_equal(event.filter.kind, "u32");
	assert_string_equal(print(&event.filter, text, sizeof(text)), "deny to 10.0.0.0/8");
	assert_int_equal(decoded("matchall_pass").filter.side, EVENT_EGRESS);
	assert_int_equal(decoded("flower_chain").filter.chain, 3);
	event = decoded("deleted");
	assert_true(event.is_delete);
	assert_int_equal(event.filter.handle, 0x80000800);
	assert_int_equal(event.filter.what, FILTER_UNKNOWN);
	assert_string_equal(event.filter.reason, "");
	event = decoded("deleted_all");
	assert_true(event.is_delete);
	assert_int_equal(event.filter.priority, 9);
	assert_int_equal(event.filter.handle, 0);
}

static void a_priority_and_a_hash_table_are_no_filters(void **state)
{
	assert_int_equal(decoded("priority").filter.what, FILTER_TABLE);
	assert_int_equal(decoded("priority").filter.handle, 0);
	assert_int_equal(decoded("table").filter.what, FILTER_TABLE);
	assert_int_equal(decoded("table").filter.handle, 0x80000000);
}

static void a_block_has_no_interface(void **state)
{
	const struct event event = decoded("shared_block");

	assert_int_equal(event.filter.ifindex, FILTER_BLOCK);
	assert_int_equal(event.filter.what, FILTER_UNKNOWN);
	assert_string_equal(event.filter.reason, "shared block");
}

// Filters refer to actions by number: a change of one is a change of all its filters.
static void tells_that_actions_were_changed(void **state)
{
	assert_int_equal(decoded("action_added").kind, EVENT_ACTION);
	assert_int_equal(decoded("action_changed").kind, EVENT_ACTION);
	assert_true(decoded("action_deleted").is_delete);
}

static void filters_of_other_qdiscs_choose_a_class(void **state)
{
	struct message message;
	struct event event;

	load_filter(&message, "notified");
	((struct tcmsg *)NLMSG_DATA(message.bytes))->tcm_parent = TC_H_MAKE(1 << 16, 0);
	assert_int_equal(decode_route(message.bytes, message.n, &event), DECODE_EVENT);
	assert_int_equal(event.kind, EVENT_CLASS);
	assert_int_equal(event.queue.what, QUEUE_FILTER);
	assert_int_equal(event.queue.parent, TC_H_MAKE(1 << 16, 0));
	((struct nlmsghdr *)message.bytes)->nlmsg_type = RTM_DELTFILTER;
	assert_int_equal(decode_route(message.bytes, message.n, &event), DECODE_EVENT);
	assert_int_equal(event.queue.what, QUEUE_FILTER);
	assert_true(event.is_delete);
}

static void a_filter_cut_anywhere_is_malformed(void **state)
{
	struct message message;
	struct event event;

	load_filter(&message, "notified");
	for (size_t n = 0; n < message.n; n++)
		assert_int_equal(decode_route(message.bytes, n, &event), DECODE_MALFORMED);
}

// Filters that no `tc` of Debian 12 makes: attributes written here.
struct writer {
	struct message message;
	size_t options; // where they begin
};

static void *put(struct writer *writer, uint16_t type, const void *value, uint16_t n)
{
	struct nlattr *attr = (void *)(writer->message.bytes + writer->message.n);

	assert_true(writer->message.n + NLA_ALIGN(NLA_HDRLEN + n) < MESSAGE_MAX);
	*attr = (struct nlattr){NLA_HDRLEN + n, type};
	memset(attr + 1, 0, NLA_ALIGN(n));
	memcpy(attr + 1, value, n);
	writer->message.n += NLA_ALIGN(attr->nla_len);
	return attr;
}

static void begin(struct writer *writer, const char *kind, uint16_t protocol)
{
	struct nlmsghdr *head = (void *)writer->message.bytes;
	struct tcmsg *tc = NLMSG_DATA(head);

	*head = (struct nlmsghdr){.nlmsg_type = RTM_NEWTFILTER};
	*tc = (struct tcmsg){.tcm_ifindex = 3,
		.tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS),
		.tcm_handle = strcmp(kind, "u32") ? 1 : 0x80000800,
		.tcm_info = 7 << 16 | htons(protocol)};
	writer->message.n = NLMSG_LENGTH(sizeof(*tc));
	put(writer, TCA_KIND, kind, strlen(kind) + 1);
	writer->options = writer->message.n;
	put(writer, TCA_OPTIONS, "", 0);
}

// The action drop, as iproute2 and the kernel write it.
static void put_drop(struct writer *writer, uint16_t type)
{
	static const int parms[5] = {1, 0, TC_ACT_SHOT, 1, 1};
	struct nlattr *list, *one, *options;

	list = put(writer, type, "", 0);
	one = put(writer, 1, "", 0);
	put(writer, TCA_ACT_KIND, "gact", 5);
	options = put(writer, TCA_ACT_OPTIONS, "", 0);
	put(writer, 2, parms, sizeof(parms)); // TCA_GACT_PARMS
	uint8_t *end = writer->message.bytes + writer->message.n;
	options->nla_len = end - (uint8_t *)options;
	one->nla_len = end - (uint8_t *)one;
	list->nla_len = end - (uint8_t *)list;
}

static struct event end(struct writer *writer)
{
	struct nlattr *options = (void *)(writer->message.bytes + writer->options);

	options->nla_len = writer->message.n - writer->options;
	((struct nlmsghdr *)writer->message.bytes)->nlmsg_len = writer->message.n;
	return decoded_message(&writer->message);
}

// A key of flower in numbers of the network's byte order.
struct flower_key {
	uint16_t type;
	uint8_t bytes, value[16];
};

static const struct {
	uint16_t protocol;
	struct flower_key key[7];
	const char *says;
} written[] = {
	{ETH_P_IP, {{TCA_FLOWER_KEY_ETH_TYPE, 2, {0x86, 0xdd}}}, "nothing"},
	{ETH_P_ALL, {{TCA_FLOWER_KEY_ETH_TYPE, 2, {0x08, 0x00}}}, "deny family ipv4"},
	{ETH_P_ALL, {{TCA_FLOWER_KEY_ETH_TYPE, 2, {0x08, 0x06}}}, "nothing"},
	{ETH_P_ALL, {{TCA_FLOWER_KEY_ETH_TYPE, 2, {0x81, 0x00}}}, "key vlan_ethtype"},
	{ETH_P_ALL, {{TCA_FLOWER_KEY_IP_PROTO, 1, {6}}}, "key ip_proto or ip_tos without a family"},
	{ETH_P_IPV6, {{TCA_FLOWER_KEY_IPV4_DST, 4, {10}}},
		"key dst_ip of the other or of no family"},
	{ETH_P_ALL, {{TCA_FLOWER_KEY_IPV4_SRC, 4, {10}}},
		"key src_ip of the other or of no family"},
	{ETH_P_IP, {{200, 1, {1}}}, "key number 200 of flower"},
	{ETH_P_IP, {{TCA_FLOWER_KEY_IPV4_DST, 4, {10, 0, 0, 9}}}, "deny to 10.0.0.9/32"},
	{ETH_P_IP,
		{{TCA_FLOWER_KEY_IPV4_DST, 4, {10, 0, 0, 9}},
			{TCA_FLOWER_KEY_IPV4_DST_MASK, 4, {255, 0, 0, 255}}},
		"key dst_ip with a mask that is no prefix"},
	{ETH_P_IP,
		{{TCA_FLOWER_KEY_IPV4_DST, 4, {10, 0, 0, 9}},
			{TCA_FLOWER_KEY_IPV4_DST_MASK, 4, {0, 0, 0, 0}}},
		"deny family ipv4"},
	{ETH_P_IP, {{TCA_FLOWER_KEY_IP_TOS, 1, {0xb8}}, {TCA_FLOWER_KEY_IP_TOS_MASK, 1, {0xff}}},
		"key ip_tos with a mask that is no range of DSCPs"},
	{ETH_P_IP, {{TCA_FLOWER_KEY_IP_TOS, 1, {0xb8}}, {TCA_FLOWER_KEY_IP_TOS_MASK, 1, {0xe0}}},
		"deny family ipv4 dscp 40-47"},
	// Fragments have no ports, but a range may begin at 0.
	{ETH_P_IP,
		{{TCA_FLOWER_KEY_IP_PROTO, 1, {17}}, {TCA_FLOWER_KEY_PORT_DST_MIN, 2, {0, 0}},
			{TCA_FLOWER_KEY_PORT_DST_MAX, 2, {0, 99}}},
		"deny udp family ipv4 to_port 0-99 fragment none; deny udp family ipv4 fragment "
		"any"},
	{ETH_P_IP,
		{{TCA_FLOWER_KEY_IP_PROTO, 1, {17}}, {TCA_FLOWER_KEY_UDP_SRC, 2, {0, 3}},
			{TCA_FLOWER_KEY_UDP_SRC_MASK, 2, {0xff, 0xfc}}},
		"deny udp family ipv4 from_port 0-3 fragment none; deny udp family ipv4 fragment "
		"any"},
	{ETH_P_IP,
		{{TCA_FLOWER_KEY_IP_PROTO, 1, {17}}, {TCA_FLOWER_KEY_UDP_SRC, 2, {0, 3}},
			{TCA_FLOWER_KEY_UDP_SRC_MASK, 2, {0x00, 0xff}}},
		"key src_port with a mask that is no range"},
	{ETH_P_IP,
		{{TCA_FLOWER_KEY_IP_PROTO, 1, {17}}, {TCA_FLOWER_KEY_PORT_DST_MIN, 2, {0, 9}},
			{TCA_FLOWER_KEY_PORT_DST_MAX, 2, {0, 8}}},
		"nothing"},
	{ETH_P_IP,
		{{TCA_FLOWER_KEY_IP_PROTO, 1, {17}}, {TCA_FLOWER_KEY_UDP_DST, 2, {0, 9}},
			{TCA_FLOWER_KEY_FLAGS, 4, {0, 0, 0, 1}},
			{TCA_FLOWER_KEY_FLAGS_MASK, 4, {0, 0, 0, 1}}},
		"nothing"},
	{ETH_P_IP,
		{{TCA_FLOWER_KEY_IP_PROTO, 1, {6}}, {TCA_FLOWER_KEY_TCP_FLAGS, 2, {0, 0}},
			{TCA_FLOWER_KEY_TCP_FLAGS_MASK, 2, {0, 0x17}}},
		"deny tcp family ipv4 tcp_flags !fin,!syn,!rst,!ack fragment none; "
		"deny tcp family ipv4 fragment any"},
	{ETH_P_IP,
		{{TCA_FLOWER_KEY_IP_PROTO, 1, {6}}, {TCA_FLOWER_KEY_TCP_FLAGS, 2, {1, 0}},
			{TCA_FLOWER_KEY_TCP_FLAGS_MASK, 2, {1, 0}}},
		"key tcp_flags beyond cwr"},
	{ETH_P_IP,
		{{TCA_FLOWER_KEY_FLAGS, 4, {0, 0, 0, 2}},
			{TCA_FLOWER_KEY_FLAGS_MASK, 4, {0, 0, 0, 3}}},
		"nothing"},
	{ETH_P_IP,
		{{TCA_FLOWER_KEY_FLAGS, 4, {0, 0, 0, 4}},
			{TCA_FLOWER_KEY_FLAGS_MASK, 4, {0, 0, 0, 4}}},
		"key ip_flags other than frag and firstfrag"},
	{ETH_P_IP,
		{{TCA_FLOWER_KEY_FLAGS, 4, {0, 0, 0, 0}},
			{TCA_FLOWER_KEY_FLAGS_MASK, 4, {0, 0, 0, 2}}},
		"deny family ipv4 fragment none; deny family ipv4 fragment later"},
	{ETH_P_IP, {{TCA_FLOWER_FLAGS, 4, {TCA_CLS_FLAGS_SKIP_SW}}}, "nothing"},
	{ETH_P_ARP, {{TCA_FLOWER_KEY_ARP_OP, 1, {1}}}, "nothing"},
	{ETH_P_8021Q, {{TCA_FLOWER_KEY_VLAN_ID, 2, {1}}}, "protocol 802.1Q or 802.1ad"},
	{ETH_P_MPLS_UC, {{0}}, "protocol mpls_uc"},
	{ETH_P_ALL, {{TCA_FLOWER_KEY_ETH_TYPE, 2, {0x88, 0x47}}}, "protocol mpls_uc"},
	{ETH_P_IP, {{TCA_FLOWER_KEY_ETH_TYPE, 2, {0x88, 0x47}}}, "nothing"},
};

static void reads_keys_of_flower_that_tc_does_not_write(void **state)
{
	char text[2 * ACL_RULE_TEXT];
	bool is_wrong = false;

	for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
		struct writer writer;

		begin(&writer, "flower", written[i].protocol);
		for (const struct flower_key *key = written[i].key; key->type; key++)
			put(&writer, key->type, key->value, key->bytes);
		put_drop(&writer, TCA_FLOWER_ACT);
		const struct event event = end(&writer);
		const char *says = print(&event.filter, text, sizeof(text));

		if (strcmp(says, written[i].says)) {
			print_error("%s, not %s\n", says, written[i].says);
			is_wrong = true;
		}
	}
	assert_false(is_wrong);
}

// Random packets that workers forward: IPv4 without options, IPv6 with or without a fragment
// header.
struct packet {
	uint8_t frame[14 + 80];
	uint8_t family;
	uint8_t *ip, *transport;
	bool is_fragment, is_first;
};

static uint8_t some(const uint8_t *values, unsigned n)
{
	return values[random() % n];
}
#define SOME(...) some((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void make_transport(struct packet *packet, uint8_t proto)
{
	uint8_t *transport = packet->transport;

	for (int i = 0; i < 4; i++)
		transport[i] = SOME(0, 0, 0, 1, 8, 53, 128);
	transport[12] = 0x50;
	transport[13] = SOME(0, 2, 16, 18);
	(void)proto;
}

static void make_packet4(struct packet *packet, uint8_t proto)
{
	static const uint16_t fragments[] = {0, 0, 0x4000, 0x2000, 0x2001, 0x00b9};
	const uint16_t fragment = fragments[random() % 6];
	uint8_t *ip = packet->ip;

	ip[0] = 0x45;
	ip[1] = SOME(0, 0xb8, 0xb9, 0x28);
	ip[3] = 80;
	ip[6] = fragment >> 8;
	ip[7] = fragment;
	ip[8] = 64;
	ip[9] = proto;
	for (int i = 12; i < 20; i++)
		ip[i] = SOME(10, 10, 10, 1);
	packet->transport = ip + 20;
	packet->is_fragment = fragment & 0x3fff;
	packet->is_first = (fragment & 0x3fff) == 0x2000;
}

static void make_packet6(struct packet *packet, uint8_t proto)
{
	uint8_t *ip = packet->ip;

	ip[0] = 0x60 | SOME(0, 0xb, 2);
	ip[1] = SOME(0, 0x80, 0x90);
	ip[5] = 40;
	ip[6] = proto;
	ip[7] = 64;
	for (int i = 8; i < 40; i++)
		ip[i] = SOME(10, 10, 10, 1);
	packet->transport = ip + 40;
	if (random() % 2)
		return;
	ip[6] = 44;
	ip[40] = proto;
	ip[42] = SOME(0, 1);
	ip[43] = ip[42] ? SOME(0, 1) : 1;
	packet->transport += 8;
	packet->is_fragment = true;
	packet->is_first = !ip[42];
}

static void make_packet(struct packet *packet, uint8_t family)
{
	const uint8_t proto = SOME(6, 17, 132, 1, 58, 50);

	memset(packet, 0, sizeof(*packet));
	packet->family = family;
	packet->ip = packet->frame + 14;
	packet->frame[12] = family == 4 ? 0x08 : 0x86;
	packet->frame[13] = family == 4 ? 0x00 : 0xdd;
	if (family == 4)
		make_packet4(packet, proto);
	else
		make_packet6(packet, proto);
	make_transport(packet, proto);
}

static bool is_matched(const struct event_filter *filter, const struct packet *packet)
{
	struct acl_packet words;
	struct error error;

	assert_int_equal(acl_packet_read(&words, packet->frame, sizeof(packet->frame), &error), 0);
	for (unsigned i = 0; i < filter->n_rules; i++)
		if (!acl_rule_mismatch(&filter->rule[i], &words))
			return true;
	return false;
}

static bool is_judgeable(const struct packet *packet)
{
	struct acl_packet words;
	struct error error;

	return !acl_packet_read(&words, packet->frame, sizeof(packet->frame), &error);
}

struct u32_choice {
	int16_t at;
	uint32_t mask;
};

// What u32 compares.
static bool u32_matches(const struct tc_u32_key key[], unsigned n, const struct packet *packet)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t word;

		memcpy(&word, packet->ip + key[i].off, sizeof(word));
		if ((word ^ key[i].val) & key[i].mask)
			return false;
	}
	return true;
}

static struct event u32_filter(struct tc_u32_key key[], unsigned n, uint8_t family)
{
	const struct tc_u32_sel head = {.flags = TC_U32_TERMINAL, .nkeys = n};
	uint8_t selector[sizeof(head) + 4 * sizeof(*key)];
	struct writer writer;

	memcpy(selector, &head, sizeof(head));
	memcpy(selector + sizeof(head), key, n * sizeof(*key));
	begin(&writer, "u32", family == 4 ? ETH_P_IP : ETH_P_IPV6);
	put(&writer, TCA_U32_SEL, selector, sizeof(head) + n * sizeof(*key));
	put_drop(&writer, TCA_U32_ACT);
	return end(&writer);
}

// Keys whose values are those of a packet, so that some match.
static unsigned make_u32_keys(struct tc_u32_key key[], const struct packet *packet)
{
	static const struct u32_choice choices[2][14] = {
		{{0, 0x00fc0000}, {0, 0xff000000}, {4, 0x1fff}, {4, 0x1fff}, {4, 0x3fff},
			{4, 0x2000}, {8, 0x00ff0000}, {8, 0x00ff0000}, {12, 0xffff0000},
			{16, 0xff000000}, {20, 0xffff}, {20, 0xffff0000}, {20, 0xfff8},
			{32, 0x00120000}},
		{{0, 0x0fc00000}, {0, 0xf0000000}, {0, 0x0f000000}, {4, 0xff00}, {4, 0},
			{8, 0xffff0000}, {8, 0xffffffff}, {12, 0xffffffff}, {16, 0xffffffff},
			{20, 0xffffffff}, {24, 0xff000000}, {28, 0x1}, {36, 0xff}, {40, 0xffff}},
	};
	static const uint8_t usual[] = {3, 7, 10,
		13}; // offset of fragments, protocol, ports, flags
	const bool is_usual = packet->family == 4 && random() % 3 == 0;
	const unsigned n = is_usual ? 3 + random() % 2 : 1 + random() % 4;

	for (unsigned i = 0; i < n; i++) {
		const struct u32_choice *choice =
			&choices[packet->family == 6][is_usual ? usual[i] : random() % 14];
		uint32_t word;

		memcpy(&word, packet->ip + choice->at, sizeof(word));
		key[i] = (struct tc_u32_key){.mask = htonl(choice->mask),
			.val = word & htonl(choice->mask),
			.off = choice->at};
	}
	return n;
}

static void rules_of_u32_match_what_its_keys_match(void **state)
{
	unsigned n_matched = 0, n_ports = 0;

	for (unsigned i = 0; i < 20000; i++) {
		struct tc_u32_key key[4];
		struct packet packet;

		make_packet(&packet, random() % 2 ? 4 : 6);
		const unsigned n = make_u32_keys(key, &packet);
		const struct event event = u32_filter(key, n, packet.family);

		if (event.filter.what != FILTER_RULES)
			continue;
		n_ports += event.filter.rule[0].to_port.is_set;
		for (unsigned k = 0; k < 20; k++) {
			if (is_judgeable(&packet)) {
				const bool matches = u32_matches(key, n, &packet);

				n_matched += matches;
				assert_int_equal(is_matched(&event.filter, &packet), matches);
			}
			make_packet(&packet, packet.family);
		}
	}
	assert_true(n_matched > 1000 && n_ports > 100);
}

// A packet without this word leaves the priority, unless another key did not match before.
static void keys_behind_the_ip_header_need_the_protocol_first(void **state)
{
	struct tc_u32_key first[] = {
		{.off = 4, .mask = htonl(0x1fff)},
		{.off = 8, .mask = htonl(0xff0000), .val = htonl(17 << 16)},
		{.off = 20, .mask = htonl(0xffff), .val = htonl(53)},
	};
	struct tc_u32_key later[] = {first[0], first[2], first[1]};
	const struct event known = u32_filter(first, 3, 4), refused = u32_filter(later, 3, 4);

	assert_int_equal(known.filter.what, FILTER_RULES);
	assert_int_equal(refused.filter.what, FILTER_UNKNOWN);
	assert_string_equal(refused.filter.reason, "key at offset 20 before one for the protocol");
}

// What the flow dissector of the kernel finds for a key.
static void dissect(const struct packet *packet, uint16_t type, uint8_t out[16])
{
	const bool is_ip4 = packet->family == 4;
	const uint8_t *ip = packet->ip, *transport = packet->transport;
	const uint8_t proto = is_ip4 ? ip[9] : ip[6] == 44 ? ip[40] : ip[6];
	const uint8_t tos = is_ip4 ? ip[1] : ip[0] << 4 | ip[1] >> 4;
	const bool has_transport = !packet->is_fragment;

	memset(out, 0, 16);
	if (type == TCA_FLOWER_KEY_IPV4_SRC || type == TCA_FLOWER_KEY_IPV4_DST)
		memcpy(out, ip + (type == TCA_FLOWER_KEY_IPV4_SRC ? 12 : 16), 4);
	else if (type == TCA_FLOWER_KEY_IPV6_SRC || type == TCA_FLOWER_KEY_IPV6_DST)
		memcpy(out, ip + (type == TCA_FLOWER_KEY_IPV6_SRC ? 8 : 24), 16);
	else if (type == TCA_FLOWER_KEY_IP_PROTO)
		out[0] = proto;
	else if (type == TCA_FLOWER_KEY_IP_TOS)
		out[0] = tos;
	else if (type == TCA_FLOWER_KEY_FLAGS)
		out[3] = packet->is_fragment | packet->is_first << 1;
	else if (!has_transport)
		return;
	else if (type == TCA_FLOWER_KEY_TCP_SRC || type == TCA_FLOWER_KEY_UDP_SRC)
		memcpy(out, transport, 2);
	else if (type == TCA_FLOWER_KEY_TCP_DST || type == TCA_FLOWER_KEY_UDP_DST)
		memcpy(out, transport + 2, 2);
	else if (type == TCA_FLOWER_KEY_TCP_FLAGS)
		out[1] = transport[13];
	else if (type == TCA_FLOWER_KEY_ICMPV4_TYPE || type == TCA_FLOWER_KEY_ICMPV6_TYPE)
		out[0] = transport[0];
}

// A key, its mask, and of which protocol the kernel asks for it; 0: of all.
struct flower_choice {
	struct flower_key mask;
	uint16_t type;
	uint8_t proto, family;
};

static const struct flower_choice flower_choices[] = {
	{{TCA_FLOWER_KEY_IPV4_SRC_MASK, 4, {255, 255}}, TCA_FLOWER_KEY_IPV4_SRC, 0, 4},
	{{TCA_FLOWER_KEY_IPV4_DST_MASK, 4, {255, 255, 255, 252}}, TCA_FLOWER_KEY_IPV4_DST, 0, 4},
	{{TCA_FLOWER_KEY_IPV6_SRC_MASK, 16, {255}}, TCA_FLOWER_KEY_IPV6_SRC, 0, 6},
	{{TCA_FLOWER_KEY_IPV6_DST_MASK, 16, {255, 240}}, TCA_FLOWER_KEY_IPV6_DST, 0, 6},
	{{TCA_FLOWER_KEY_IP_TOS_MASK, 1, {0xfc}}, TCA_FLOWER_KEY_IP_TOS, 0, 0},
	{{TCA_FLOWER_KEY_FLAGS_MASK, 4, {0, 0, 0, 1}}, TCA_FLOWER_KEY_FLAGS, 0, 0},
	{{TCA_FLOWER_KEY_FLAGS_MASK, 4, {0, 0, 0, 2}}, TCA_FLOWER_KEY_FLAGS, 0, 0},
	{{TCA_FLOWER_KEY_TCP_SRC_MASK, 2, {255, 255}}, TCA_FLOWER_KEY_TCP_SRC, 6, 0},
	{{TCA_FLOWER_KEY_TCP_DST_MASK, 2, {255, 240}}, TCA_FLOWER_KEY_TCP_DST, 6, 0},
	{{TCA_FLOWER_KEY_UDP_SRC_MASK, 2, {255, 0}}, TCA_FLOWER_KEY_UDP_SRC, 17, 0},
	{{TCA_FLOWER_KEY_UDP_DST_MASK, 2, {255, 255}}, TCA_FLOWER_KEY_UDP_DST, 17, 0},
	{{TCA_FLOWER_KEY_TCP_FLAGS_MASK, 2, {0, 0x12}}, TCA_FLOWER_KEY_TCP_FLAGS, 6, 0},
	{{TCA_FLOWER_KEY_ICMPV4_TYPE_MASK, 1, {255}}, TCA_FLOWER_KEY_ICMPV4_TYPE, 1, 4},
	{{TCA_FLOWER_KEY_ICMPV6_TYPE_MASK, 1, {255}}, TCA_FLOWER_KEY_ICMPV6_TYPE, 58, 6},
};
enum { N_CHOICES = sizeof(flower_choices) / sizeof(flower_choices[0]) };

struct flower_filter {
	struct event event;
	uint8_t proto, value[N_CHOICES][16];
	bool asks[N_CHOICES];
};

// Keys of some of the choices, each once, with values of a packet.
static void make_flower(struct flower_filter *filter, const struct packet *packet)
{
	struct writer writer;
	uint8_t proto[16];

	dissect(packet, TCA_FLOWER_KEY_IP_PROTO, proto);
	filter->proto = random() % 4 ? proto[0] : 0;
	begin(&writer, "flower", packet->family == 4 ? ETH_P_IP : ETH_P_IPV6);
	if (filter->proto)
		put(&writer, TCA_FLOWER_KEY_IP_PROTO, proto, 1);
	for (unsigned i = 0; i < N_CHOICES; i++) {
		const struct flower_choice *choice = &flower_choices[i];

		filter->asks[i] = random() % 3 == 0 &&
		                  (!choice->proto || choice->proto == filter->proto) &&
		                  (!choice->family || choice->family == packet->family) &&
		                  !(i && choice->type == choice[-1].type && filter->asks[i - 1]);
		if (!filter->asks[i])
			continue;
		dissect(packet, choice->type, filter->value[i]);
		put(&writer, choice->type, filter->value[i], choice->mask.bytes);
		put(&writer, choice->mask.type, choice->mask.value, choice->mask.bytes);
	}
	put_drop(&writer, TCA_FLOWER_ACT);
	filter->event = end(&writer);
}

static bool flower_matches(const struct flower_filter *filter, const struct packet *packet)
{
	uint8_t found[16];

	dissect(packet, TCA_FLOWER_KEY_IP_PROTO, found);
	if (filter->proto && found[0] != filter->proto)
		return false;
	for (unsigned i = 0; i < N_CHOICES; i++) {
		if (!filter->asks[i])
			continue;
		dissect(packet, flower_choices[i].type, found);
		for (unsigned k = 0; k < 16; k++)
			if ((found[k] ^ filter->value[i][k]) & flower_choices[i].mask.value[k])
				return false;
	}
	return true;
}

static void rules_of_flower_match_what_its_keys_match(void **state)
{
	unsigned n_matched = 0, n_split = 0;

	for (unsigned i = 0; i < 20000; i++) {
		struct flower_filter filter;
		struct packet packet;

		make_packet(&packet, random() % 2 ? 4 : 6);
		make_flower(&filter, &packet);
		assert_int_equal(filter.event.filter.what, FILTER_RULES);
		n_split += filter.event.filter.n_rules == 2;
		for (unsigned k = 0; k < 20; k++) {
			if (is_judgeable(&packet)) {
				const bool matches = flower_matches(&filter, &packet);

				n_matched += matches;
				assert_int_equal(is_matched(&filter.event.filter, &packet),
					matches);
			}
			make_packet(&packet, packet.family);
		}
	}
	assert_true(n_matched > 1000 && n_split > 100);
}

// What Debian's kernel 6.1 found in a veth pair: its filters, whose verdict was `continue` so that
// each one saw each packet and is `drop` here, and the packets that each one matched. Numbers are
// little-endian: the number of frames (16 bits), their lengths (16) and bytes; and to the end of
// the file, the length of a filter (16), the filter, and a bit for each frame that it matched (64).
enum { MAX_FRAMES = 64, FRAME_ROOM = 128 };

struct judged {
	FILE *file;
	unsigned n_frames;
	size_t bytes[MAX_FRAMES];
	uint8_t frame[MAX_FRAMES][FRAME_ROOM];
};

static uint16_t read16(FILE *file)
{
	uint8_t bytes[2];

	return fread(bytes, 1, 2, file) == 2 ? bytes[0] | bytes[1] << 8 : 0;
}

static void open_judged(struct judged *judged)
{
	judged->file = fopen(NETLINK_CORPUS "_judged/debian-6.1", "r");
	assert_non_null(judged->file);
	judged->n_frames = read16(judged->file);
	assert_in_range(judged->n_frames, 1, MAX_FRAMES);
	for (unsigned i = 0; i < judged->n_frames; i++) {
		judged->bytes[i] = read16(judged->file);
		assert_in_range(judged->bytes[i], 1, FRAME_ROOM);
		assert_int_equal(fread(judged->frame[i], 1, judged->bytes[i], judged->file),
			judged->bytes[i]);
	}
}

// False: no more.
static bool next_judged(struct judged *judged, struct message *filter, uint64_t *matched)
{
	filter->n = read16(judged->file);
	if (!filter->n)
		return false;
	assert_in_range(filter->n, 1, MESSAGE_MAX);
	assert_int_equal(fread(filter->bytes, 1, filter->n, judged->file), filter->n);
	assert_int_equal(fread(matched, 1, sizeof(*matched), judged->file), sizeof(*matched));
	return true;
}

// The frames that rules match; `judgeable` becomes those that lists can judge.
static uint64_t matches_of(const struct event_filter *filter, const struct judged *judged,
	uint64_t *judgeable)
{
	uint64_t found = 0;

	*judgeable = 0;
	for (unsigned i = 0; i < judged->n_frames; i++) {
		struct acl_packet words;
		struct error error;

		if (acl_packet_read(&words, judged->frame[i], judged->bytes[i], &error))
			continue; // a second fragment of TCP at offset 8
		assert_true(acl_is_alike(judged->frame[i] + 14, judged->bytes[i] - 14,
			words.src.family == 6));
		*judgeable |= 1ull << i;
		for (unsigned k = 0; k < filter->n_rules; k++)
			found |= (uint64_t)!acl_rule_mismatch(&filter->rule[k], &words) << i;
	}
	return found;
}

static void rules_match_what_the_kernel_matched(void **state)
{
	static struct judged judged;
	struct message message;
	uint64_t matched, judgeable, all = 0;
	unsigned n_understood = 0;
	char text[2 * ACL_RULE_TEXT];

	open_judged(&judged);
	while (next_judged(&judged, &message, &matched)) {
		const struct event event = decoded_message(&message);

		if (event.filter.what != FILTER_RULES)
			continue;
		const uint64_t found = matches_of(&event.filter, &judged, &judgeable);

		n_understood++;
		all |= found;
		assert_true(__builtin_popcountll(judgeable) > 50);
		if (found != (matched & judgeable))
			fail_msg("%s", print(&event.filter, text, sizeof(text)));
	}
	fclose(judged.file);
	assert_true(n_understood > 70 && __builtin_popcountll(all) > 50);
}

// Bytes changed at random give a filter that is whole, or none.
static void changed_bytes_give_whole_filters_or_none(void **state)
{
	static const char *const names[] = {"pedit_ip_pass", "flower_range", "u32_port_whole",
		"flower_random", "shared_block"};
	unsigned n_read = 0;

	for (unsigned i = 0; i < 200000; i++) {
		static struct message message;
		struct event event;
		struct error error;

		if (i % 10000 == 0)
			load_filter(&message, names[i / 10000 % 5]);
		struct message changed = message;
		for (unsigned k = random() % 4; k > 0; k--)
			changed.bytes[NLMSG_HDRLEN + random() % (changed.n - NLMSG_HDRLEN)] =
				random();
		if (decode_route(changed.bytes, changed.n, &event) != DECODE_EVENT)
			continue;
		n_read++;
		assert_true(strnlen(event.filter.reason, FILTER_REASON_MAX) < FILTER_REASON_MAX);
		assert_true(event.filter.n_rules <= FILTER_MAX_RULES);
		for (unsigned k = 0; k < event.filter.n_rules; k++)
			assert_int_equal(acl_rule_end(&event.filter.rule[k], &error), 0);
	}
	assert_true(n_read > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_debian_reports),
		cmocka_unit_test(tells_which_filter_it_is),
		cmocka_unit_test(a_priority_and_a_hash_table_are_no_filters),
		cmocka_unit_test(a_block_has_no_interface),
		cmocka_unit_test(tells_that_actions_were_changed),
		cmocka_unit_test(filters_of_other_qdiscs_choose_a_class),
		cmocka_unit_test(a_filter_cut_anywhere_is_malformed),
		cmocka_unit_test(reads_keys_of_flower_that_tc_does_not_write),
		cmocka_unit_test(rules_of_u32_match_what_its_keys_match),
		cmocka_unit_test(keys_behind_the_ip_header_need_the_protocol_first),
		cmocka_unit_test(rules_of_flower_match_what_its_keys_match),
		cmocka_unit_test(rules_match_what_the_kernel_matched),
		cmocka_unit_test(changed_bytes_give_whole_filters_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
