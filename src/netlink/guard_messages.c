// See guard_messages.h.
#include "netlink/guard_messages.h"

#include "wire/headers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter_bridge.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

// A set of all ports takes 36 KiB. TYPE_IFNAME is what nft(8) shows of a set's keys.
enum { BATCH_BYTES = 128 << 10, PIECE_BYTES = 16 << 10, TYPE_IFNAME = 41, PRIORITY = -300 };

const char *const guard_sets[2] = {"broadcast", "multicast"};

struct batch {
	uint8_t bytes[BATCH_BYTES] __attribute__((aligned(8)));
	size_t n;
	uint32_t sequence;
	struct nlmsghdr *last;
};

int guard_messages_open(struct guard_messages *messages)
{
	const struct timeval second = {.tv_sec = 1};

	messages->socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (!messages->socket)
		return -errno;
	if (mnl_socket_bind(messages->socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		const int err = -errno;

		guard_messages_close(messages);
		return err;
	}
	setsockopt(mnl_socket_get_fd(messages->socket), SOL_SOCKET, SO_RCVTIMEO, &second,
		sizeof(second));
	return 0;
}

void guard_messages_close(struct guard_messages *messages)
{
	if (messages->socket)
		mnl_socket_close(messages->socket);
	messages->socket = NULL;
}

struct nlmsghdr *guard_put_header(void *at, uint16_t type, uint16_t flags, uint8_t family)
{
	struct nlmsghdr *head = mnl_nlmsg_put_header(at);
	struct nfgenmsg *more = mnl_nlmsg_put_extra_header(head, sizeof(*more));

	head->nlmsg_type = type;
	head->nlmsg_flags = NLM_F_REQUEST | flags;
	more->nfgen_family = family;
	more->version = NFNETLINK_V0;
	more->res_id = type < NLMSG_MIN_TYPE + 2 ? htons(NFNL_SUBSYS_NFTABLES) : 0;
	return head;
}

static uint16_t nft_type(uint16_t message)
{
	return NFNL_SUBSYS_NFTABLES << 8 | message;
}

// The message before it is complete.
static void end(struct batch *batch)
{
	if (batch->last)
		batch->n += NLMSG_ALIGN(batch->last->nlmsg_len);
	batch->last = NULL;
}

static struct nlmsghdr *begin(struct batch *batch, uint16_t type, uint16_t flags, uint8_t family)
{
	end(batch);
	batch->last = guard_put_header(batch->bytes + batch->n, type, flags, family);
	batch->last->nlmsg_seq = batch->sequence++;
	return batch->last;
}

static struct nlmsghdr *begin_nft(struct batch *batch, uint16_t message, uint16_t flags)
{
	return begin(batch, nft_type(message), flags, NFPROTO_BRIDGE);
}

static void put_be32(struct nlmsghdr *head, uint16_t type, uint32_t value)
{
	mnl_attr_put_u32(head, type, htonl(value));
}

static void add_table(struct batch *batch)
{
	struct nlmsghdr *head = begin_nft(batch, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);

	mnl_attr_put_strz(head, NFTA_TABLE_NAME, GUARD_TABLE);
	put_be32(head, NFTA_TABLE_FLAGS, NFT_TABLE_F_OWNER);
}

static void add_counter(struct batch *batch)
{
	struct nlmsghdr *head = begin_nft(batch, NFT_MSG_NEWOBJ, NLM_F_CREATE);
	struct nlattr *data;

	mnl_attr_put_strz(head, NFTA_OBJ_TABLE, GUARD_TABLE);
	mnl_attr_put_strz(head, NFTA_OBJ_NAME, GUARD_COUNTER);
	put_be32(head, NFTA_OBJ_TYPE, NFT_OBJECT_COUNTER);
	data = mnl_attr_nest_start(head, NFTA_OBJ_DATA);
	mnl_attr_put_u64(head, NFTA_COUNTER_PACKETS, 0);
	mnl_attr_nest_end(head, data);
}

// What nft(8) needs to show names: the key's byte order (type 0, of 4 bytes) is the host's (1).
static const uint8_t host_endian[] = {0, 4, 1, 0, 0, 0};

static void add_set(struct batch *batch, unsigned set)
{
	struct nlmsghdr *head = begin_nft(batch, NFT_MSG_NEWSET, NLM_F_CREATE);

	mnl_attr_put_strz(head, NFTA_SET_TABLE, GUARD_TABLE);
	mnl_attr_put_strz(head, NFTA_SET_NAME, guard_sets[set]);
	put_be32(head, NFTA_SET_KEY_TYPE, TYPE_IFNAME);
	put_be32(head, NFTA_SET_KEY_LEN, EVENT_NAME_MAX);
	put_be32(head, NFTA_SET_ID, set + 1);
	mnl_attr_put(head, NFTA_SET_USERDATA, sizeof(host_endian), host_endian);
}

static void add_chain(struct batch *batch)
{
	struct nlmsghdr *head = begin_nft(batch, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	struct nlattr *hook;

	mnl_attr_put_strz(head, NFTA_CHAIN_TABLE, GUARD_TABLE);
	mnl_attr_put_strz(head, NFTA_CHAIN_NAME, GUARD_CHAIN);
	hook = mnl_attr_nest_start(head, NFTA_CHAIN_HOOK);
	put_be32(head, NFTA_HOOK_HOOKNUM, NF_BR_FORWARD);
	put_be32(head, NFTA_HOOK_PRIORITY, (uint32_t)PRIORITY);
	mnl_attr_nest_end(head, hook);
	put_be32(head, NFTA_CHAIN_POLICY, NF_ACCEPT);
	mnl_attr_put_strz(head, NFTA_CHAIN_TYPE, "filter");
}

// A rule while it is written: its message, and the list of its expressions.
struct rule {
	struct nlmsghdr *head;
	struct nlattr *list;
};

static struct rule begin_rule(struct batch *batch)
{
	struct rule rule = {.head = begin_nft(batch, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND)};

	mnl_attr_put_strz(rule.head, NFTA_RULE_TABLE, GUARD_TABLE);
	mnl_attr_put_strz(rule.head, NFTA_RULE_CHAIN, GUARD_CHAIN);
	rule.list = mnl_attr_nest_start(rule.head, NFTA_RULE_EXPRESSIONS);
	return rule;
}

// An expression of this name with attributes of its own, between begin and end.
struct expression {
	struct nlattr *item, *data;
};

static struct expression begin_expression(const struct rule *rule, const char *name)
{
	struct expression expression = {mnl_attr_nest_start(rule->head, NFTA_LIST_ELEM), NULL};

	mnl_attr_put_strz(rule->head, NFTA_EXPR_NAME, name);
	expression.data = mnl_attr_nest_start(rule->head, NFTA_EXPR_DATA);
	return expression;
}

static void end_expression(const struct rule *rule, const struct expression *expression)
{
	mnl_attr_nest_end(rule->head, expression->data);
	mnl_attr_nest_end(rule->head, expression->item);
}

static void put_value(const struct rule *rule, uint16_t type, const void *bytes, size_t n)
{
	struct nlattr *nest = mnl_attr_nest_start(rule->head, type);

	mnl_attr_put(rule->head, NFTA_DATA_VALUE, n, bytes);
	mnl_attr_nest_end(rule->head, nest);
}

static void load_meta(const struct rule *rule, uint32_t key)
{
	const struct expression meta = begin_expression(rule, "meta");

	put_be32(rule->head, NFTA_META_KEY, key);
	put_be32(rule->head, NFTA_META_DREG, NFT_REG_1);
	end_expression(rule, &meta);
}

static void load_bytes(const struct rule *rule, uint32_t base, uint32_t offset, uint32_t n)
{
	const struct expression payload = begin_expression(rule, "payload");

	put_be32(rule->head, NFTA_PAYLOAD_DREG, NFT_REG_1);
	put_be32(rule->head, NFTA_PAYLOAD_BASE, base);
	put_be32(rule->head, NFTA_PAYLOAD_OFFSET, offset);
	put_be32(rule->head, NFTA_PAYLOAD_LEN, n);
	end_expression(rule, &payload);
}

static void mask(const struct rule *rule, const void *bytes, size_t n)
{
	static const uint8_t zero[8];
	const struct expression bitwise = begin_expression(rule, "bitwise");

	put_be32(rule->head, NFTA_BITWISE_SREG, NFT_REG_1);
	put_be32(rule->head, NFTA_BITWISE_DREG, NFT_REG_1);
	put_be32(rule->head, NFTA_BITWISE_LEN, n);
	put_value(rule, NFTA_BITWISE_MASK, bytes, n);
	put_value(rule, NFTA_BITWISE_XOR, zero, n);
	end_expression(rule, &bitwise);
}

static void compare(const struct rule *rule, enum nft_cmp_ops op, const void *bytes, size_t n)
{
	const struct expression cmp = begin_expression(rule, "cmp");

	put_be32(rule->head, NFTA_CMP_SREG, NFT_REG_1);
	put_be32(rule->head, NFTA_CMP_OP, op);
	put_value(rule, NFTA_CMP_DATA, bytes, n);
	end_expression(rule, &cmp);
}

static void look_up(const struct rule *rule, unsigned set)
{
	const struct expression lookup = begin_expression(rule, "lookup");

	mnl_attr_put_strz(rule->head, NFTA_LOOKUP_SET, guard_sets[set]);
	put_be32(rule->head, NFTA_LOOKUP_SREG, NFT_REG_1);
	put_be32(rule->head, NFTA_LOOKUP_SET_ID, set + 1);
	end_expression(rule, &lookup);
}

static void count(const struct rule *rule)
{
	const struct expression objref = begin_expression(rule, "objref");

	put_be32(rule->head, NFTA_OBJREF_IMM_TYPE, NFT_OBJECT_COUNTER);
	mnl_attr_put_strz(rule->head, NFTA_OBJREF_IMM_NAME, GUARD_COUNTER);
	end_expression(rule, &objref);
}

static void end_rule(const struct rule *rule, uint32_t verdict)
{
	const struct expression immediate = begin_expression(rule, "immediate");
	struct nlattr *data, *code;

	put_be32(rule->head, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = mnl_attr_nest_start(rule->head, NFTA_IMMEDIATE_DATA);
	code = mnl_attr_nest_start(rule->head, NFTA_DATA_VERDICT);
	put_be32(rule->head, NFTA_VERDICT_CODE, verdict);
	mnl_attr_nest_end(rule->head, code);
	mnl_attr_nest_end(rule->head, data);
	end_expression(rule, &immediate);
	mnl_attr_nest_end(rule->head, rule->list);
}

// Frames whose destination is `value` under the mask.
static void accept_address(struct batch *batch, const uint8_t under[6], const uint8_t value[6])
{
	const struct rule rule = begin_rule(batch);

	load_bytes(&rule, NFT_PAYLOAD_LL_HEADER, 0, 6);
	mask(&rule, under, 6);
	compare(&rule, NFT_CMP_EQ, value, 6);
	end_rule(&rule, NF_ACCEPT);
}

// Packets of this EtherType, after a tag, with this byte at an offset; -1: with any.
static void accept_type(struct batch *batch, uint16_t type, int offset, uint8_t byte)
{
	const struct rule rule = begin_rule(batch);
	const uint16_t type_be = htons(type);

	load_meta(&rule, NFT_META_PROTOCOL);
	compare(&rule, NFT_CMP_EQ, &type_be, sizeof(type_be));
	if (offset >= 0) {
		load_bytes(&rule, NFT_PAYLOAD_NETWORK_HEADER, (uint32_t)offset, 1);
		compare(&rule, NFT_CMP_EQ, &byte, 1);
	}
	end_rule(&rule, NF_ACCEPT);
}

static void drop_between(struct batch *batch, unsigned set)
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	const struct rule rule = begin_rule(batch);

	load_bytes(&rule, NFT_PAYLOAD_LL_HEADER, 0, 6);
	compare(&rule, set ? NFT_CMP_NEQ : NFT_CMP_EQ, broadcast, sizeof(broadcast));
	load_meta(&rule, NFT_META_IIFNAME);
	look_up(&rule, set);
	load_meta(&rule, NFT_META_OIFNAME);
	look_up(&rule, set);
	count(&rule);
	end_rule(&rule, NF_DROP);
}

static void add_rules(struct batch *batch)
{
	enum { IP4_PROTOCOL = 9, IP6_NEXT_HEADER = 6 };
	static const uint8_t group[6] = {1}, none[6];
	static const uint8_t block[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xf0};
	static const uint8_t reserved[6] = {0x01, 0x80, 0xc2};

	accept_address(batch, group, none);
	accept_address(batch, block, reserved);
	accept_type(batch, WIRE_ETHERTYPE_ARP, -1, 0);
	accept_type(batch, WIRE_ETHERTYPE_RARP, -1, 0);
	accept_type(batch, WIRE_ETHERTYPE_IP4, IP4_PROTOCOL, WIRE_PROTO_IGMP);
	accept_type(batch, WIRE_ETHERTYPE_IP4, IP4_PROTOCOL, WIRE_PROTO_PIM);
	accept_type(batch, WIRE_ETHERTYPE_IP6, IP6_NEXT_HEADER, WIRE_PROTO_HOP_BY_HOP);
	accept_type(batch, WIRE_ETHERTYPE_IP6, IP6_NEXT_HEADER, WIRE_PROTO_ICMP6);
	for (unsigned set = 0; set < 2; set++)
		drop_between(batch, set);
}

static void clear_set(struct batch *batch, unsigned set)
{
	struct nlmsghdr *head = begin_nft(batch, NFT_MSG_DELSETELEM, 0);

	mnl_attr_put_strz(head, NFTA_SET_ELEM_LIST_TABLE, GUARD_TABLE);
	mnl_attr_put_strz(head, NFTA_SET_ELEM_LIST_SET, guard_sets[set]);
}

static void fill_set(struct batch *batch, unsigned set, const struct guard_port port[], unsigned n)
{
	struct nlmsghdr *head = begin_nft(batch, NFT_MSG_NEWSETELEM, NLM_F_CREATE);
	struct nlattr *list;

	mnl_attr_put_strz(head, NFTA_SET_ELEM_LIST_TABLE, GUARD_TABLE);
	mnl_attr_put_strz(head, NFTA_SET_ELEM_LIST_SET, guard_sets[set]);
	list = mnl_attr_nest_start(head, NFTA_SET_ELEM_LIST_ELEMENTS);
	for (unsigned i = 0; i < n; i++) {
		struct rule item = {.head = head};
		struct nlattr *element;

		if (set && !port[i].has_multicasts)
			continue;
		element = mnl_attr_nest_start(head, NFTA_LIST_ELEM);
		put_value(&item, NFTA_SET_ELEM_KEY, port[i].name, sizeof(port[i].name));
		mnl_attr_nest_end(head, element);
	}
	mnl_attr_nest_end(head, list);
}

static void fill_sets(struct batch *batch, bool is_new, const struct guard_port port[], unsigned n)
{
	for (unsigned set = 0; set < 2; set++) {
		bool is_empty = true;

		for (unsigned i = 0; i < n; i++)
			is_empty &= set && !port[i].has_multicasts;
		if (!is_new)
			clear_set(batch, set);
		if (!is_empty)
			fill_set(batch, set, port, n);
	}
}

// Reads answers from that to message `first` on until that to `last`. Returns the first error.
static int wait_for(struct guard_messages *messages, uint32_t first, uint32_t last)
{
	uint8_t bytes[PIECE_BYTES] __attribute__((aligned(8)));
	int err = 0;

	for (;;) {
		int n = (int)mnl_socket_recvfrom(messages->socket, bytes, sizeof(bytes));
		const struct nlmsghdr *head = (const void *)bytes;

		if (n < 0)
			return err ? err : -errno;
		for (; mnl_nlmsg_ok(head, n); head = mnl_nlmsg_next(head, &n)) {
			const struct nlmsgerr *answer = mnl_nlmsg_get_payload(head);

			if (head->nlmsg_type != NLMSG_ERROR ||
				mnl_nlmsg_get_payload_len(head) < sizeof(answer->error) ||
				head->nlmsg_seq - first > last - first)
				continue;
			err = err ? err : answer->error;
			if (head->nlmsg_seq == last)
				return err;
		}
	}
}

static int send_batch(struct guard_messages *messages, struct batch *batch)
{
	const uint32_t first = messages->sequence, last = batch->sequence - 1;

	batch->last->nlmsg_flags |= NLM_F_ACK;
	begin(batch, NFNL_MSG_BATCH_END, 0, AF_UNSPEC);
	end(batch);
	messages->sequence = batch->sequence;
	if (mnl_socket_sendto(messages->socket, batch->bytes, batch->n) < 0)
		return -errno;
	return wait_for(messages, first, last);
}

int guard_messages_set(struct guard_messages *messages, bool is_new, const struct guard_port port[],
	unsigned n)
{
	struct batch *batch = calloc(1, sizeof(*batch));
	int err = -ENOMEM;

	if (!batch)
		return err;
	batch->sequence = messages->sequence;
	begin(batch, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC);
	if (is_new) {
		add_table(batch);
		add_counter(batch);
		for (unsigned set = 0; set < 2; set++)
			add_set(batch, set);
		add_chain(batch);
		add_rules(batch);
	}
	fill_sets(batch, is_new, port, n);
	err = send_batch(messages, batch);
	free(batch);
	return err;
}
