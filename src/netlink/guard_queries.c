// What the guard asks nftables; see guard_messages.h.
#include "netlink/guard_messages.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>

enum { QUESTION_BYTES = 256, PIECE_BYTES = 32 << 10 };

// Looks at each message of the answer.
struct inquiry {
	void (*look)(struct inquiry *inquiry, const struct nlmsghdr *message);
	void (*take)(void *arg, const char *name);
	void *arg;
	bool is_found;
	uint64_t n;
};

static struct nlmsghdr *ask_for(void *at, uint16_t message, uint16_t flags)
{
	return guard_put_header(at, NFNL_SUBSYS_NFTABLES << 8 | message, flags, NFPROTO_BRIDGE);
}

// 0 or -errno.
static int ask(struct guard_messages *messages, struct nlmsghdr *question, struct inquiry *inquiry)
{
	uint8_t bytes[PIECE_BYTES] __attribute__((aligned(8)));

	question->nlmsg_seq = messages->sequence++;
	if (mnl_socket_sendto(messages->socket, question, question->nlmsg_len) < 0)
		return -errno;
	for (;;) {
		int n = (int)mnl_socket_recvfrom(messages->socket, bytes, sizeof(bytes));
		const struct nlmsghdr *head = (const void *)bytes;

		if (n < 0)
			return -errno;
		for (; mnl_nlmsg_ok(head, n); head = mnl_nlmsg_next(head, &n)) {
			const struct nlmsgerr *answer = mnl_nlmsg_get_payload(head);

			if (head->nlmsg_seq != question->nlmsg_seq)
				continue;
			if (head->nlmsg_type == NLMSG_ERROR)
				return mnl_nlmsg_get_payload_len(head) < sizeof(answer->error)
				               ? -EBADMSG
				               : answer->error;
			if (head->nlmsg_type == NLMSG_DONE)
				return 0;
			inquiry->look(inquiry, head);
		}
	}
}

// The attribute of a message; NULL: it has none.
static const struct nlattr *find(const struct nlmsghdr *message, uint16_t type)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, message,
		sizeof(struct nfgenmsg)) if (mnl_attr_get_type(attr) == type) return attr;
	return NULL;
}

static const struct nlattr *find_inside(const struct nlattr *outer, uint16_t type)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, outer) if (mnl_attr_get_type(attr) == type) return attr;
	return NULL;
}

static void look_at_chain(struct inquiry *inquiry, const struct nlmsghdr *message)
{
	const struct nlattr *hook = find(message, NFTA_CHAIN_HOOK);
	const struct nlattr *number = hook ? find_inside(hook, NFTA_HOOK_HOOKNUM) : NULL;

	inquiry->is_found = number && mnl_attr_get_payload_len(number) >= sizeof(uint32_t) &&
	                    ntohl(mnl_attr_get_u32(number)) == NF_INET_FORWARD;
}

bool guard_messages_has_chain(struct guard_messages *messages)
{
	uint8_t bytes[QUESTION_BYTES] __attribute__((aligned(8)));
	struct nlmsghdr *head = ask_for(bytes, NFT_MSG_GETCHAIN, NLM_F_ACK);
	struct inquiry inquiry = {.look = look_at_chain};

	mnl_attr_put_strz(head, NFTA_CHAIN_TABLE, GUARD_TABLE);
	mnl_attr_put_strz(head, NFTA_CHAIN_NAME, GUARD_CHAIN);
	return !ask(messages, head, &inquiry) && inquiry.is_found;
}

static void look_at_names(struct inquiry *inquiry, const struct nlmsghdr *message)
{
	const struct nlattr *list = find(message, NFTA_SET_ELEM_LIST_ELEMENTS), *element;

	if (!list)
		return;
	mnl_attr_for_each_nested(element, list)
	{
		const struct nlattr *key = find_inside(element, NFTA_SET_ELEM_KEY);
		const struct nlattr *value = key ? find_inside(key, NFTA_DATA_VALUE) : NULL;
		char name[EVENT_NAME_MAX] = "";

		if (!value || mnl_attr_get_payload_len(value) != sizeof(name))
			continue;
		memcpy(name, mnl_attr_get_payload(value), sizeof(name));
		inquiry->take(inquiry->arg, name);
	}
}

void guard_messages_names(struct guard_messages *messages, unsigned set,
	void (*take)(void *arg, const char *name), void *arg)
{
	uint8_t bytes[QUESTION_BYTES] __attribute__((aligned(8)));
	struct nlmsghdr *head = ask_for(bytes, NFT_MSG_GETSETELEM, NLM_F_DUMP);
	struct inquiry inquiry = {.look = look_at_names, .take = take, .arg = arg};

	mnl_attr_put_strz(head, NFTA_SET_ELEM_LIST_TABLE, GUARD_TABLE);
	mnl_attr_put_strz(head, NFTA_SET_ELEM_LIST_SET, guard_sets[set]);
	ask(messages, head, &inquiry); // without an answer there are none
}

static void look_at_counter(struct inquiry *inquiry, const struct nlmsghdr *message)
{
	const struct nlattr *data = find(message, NFTA_OBJ_DATA);
	const struct nlattr *packets = data ? find_inside(data, NFTA_COUNTER_PACKETS) : NULL;

	inquiry->is_found = packets && mnl_attr_get_payload_len(packets) >= sizeof(uint64_t);
	if (inquiry->is_found)
		inquiry->n = be64toh(mnl_attr_get_u64(packets));
}

bool guard_messages_count(struct guard_messages *messages, uint64_t *n)
{
	uint8_t bytes[QUESTION_BYTES] __attribute__((aligned(8)));
	struct nlmsghdr *head = ask_for(bytes, NFT_MSG_GETOBJ, NLM_F_ACK);
	struct inquiry inquiry = {.look = look_at_counter};

	mnl_attr_put_strz(head, NFTA_OBJ_TABLE, GUARD_TABLE);
	mnl_attr_put_strz(head, NFTA_OBJ_NAME, GUARD_COUNTER);
	mnl_attr_put_u32(head, NFTA_OBJ_TYPE, htonl(NFT_OBJECT_COUNTER));
	if (ask(messages, head, &inquiry) || !inquiry.is_found)
		return false;
	*n = inquiry.n;
	return true;
}
