// Decodes netlink messages into events: selects the reader for each message type. Pure: no socket,
// no state.
#include "netlink/decode_inside.h"

#include "wire/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <linux/xfrm.h>
#include <string.h>

enum decode_result read_attrs(const struct nlmsghdr *message, size_t header,
	const struct wants *wants, void *out)
{
	struct piece attrs;

	if (!attrs_of(message, header, &attrs) || !attrs_take(wants, &attrs, out))
		return DECODE_MALFORMED;
	return DECODE_EVENT;
}

// Meaning of a message type.
struct meaning {
	const struct reader *reader;
	bool is_delete;
};

static struct meaning route_meaning(uint16_t type)
{
	static const struct meaning meanings[] = {
		[RTM_NEWLINK] = {&read_iface, false},
		[RTM_DELLINK] = {&read_iface, true},
		[RTM_NEWADDR] = {&read_address, false},
		[RTM_DELADDR] = {&read_address, true},
		[RTM_NEWROUTE] = {&read_route, false},
		[RTM_DELROUTE] = {&read_route, true},
		[RTM_NEWNEIGH] = {&read_neighbour, false},
		[RTM_DELNEIGH] = {&read_neighbour, true},
		[RTM_NEWRULE] = {&read_rule, false},
		[RTM_DELRULE] = {&read_rule, true},
		[RTM_NEWQDISC] = {&read_qdisc, false},
		[RTM_DELQDISC] = {&read_qdisc, true},
		[RTM_NEWTCLASS] = {&read_htb_class, false},
		[RTM_DELTCLASS] = {&read_htb_class, true},
		[RTM_NEWTFILTER] = {&read_filter, false},
		[RTM_DELTFILTER] = {&read_filter, true},
		[RTM_NEWACTION] = {&read_action, false},
		[RTM_DELACTION] = {&read_action, true},
		[RTM_NEWNETCONF] = {&read_netconf, false},
		[RTM_DELNETCONF] = {&read_netconf, true},
		[RTM_NEWNEXTHOP] = {&read_nexthop, false},
		[RTM_DELNEXTHOP] = {&read_nexthop, true},
		[RTM_NEWVLAN] = {&read_vlans, false},
		[RTM_DELVLAN] = {&read_vlans, true},
		[RTM_NEWMDB] = {&read_groups, false},
		[RTM_DELMDB] = {&read_groups, true},
		[RTM_GETMDB] = {&read_groups, false}, // as the answers of a dump are called
	};
	static const struct meaning none;

	return type < sizeof(meanings) / sizeof(meanings[0]) ? meanings[type] : none;
}

static struct meaning netfilter_meaning(uint16_t type)
{
	switch (type) {
	case NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN:
		return (struct meaning){&read_chain, false};
	case NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELCHAIN:
		return (struct meaning){&read_chain, true};
	case NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWFLOWTABLE:
		return (struct meaning){&read_flowtable, false};
	case NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELFLOWTABLE:
		return (struct meaning){&read_flowtable, true};
	}
	return (struct meaning){.reader = NULL};
}

static struct meaning xfrm_meaning(uint16_t type)
{
	switch (type) {
	case XFRM_MSG_NEWPOLICY:
	case XFRM_MSG_UPDPOLICY:
		return (struct meaning){&read_policy, false};
	case XFRM_MSG_DELPOLICY:
	case XFRM_MSG_FLUSHPOLICY:
		return (struct meaning){&read_policy, true};
	case XFRM_MSG_GETDEFAULT: // also used in notifications
		return (struct meaning){&read_policy_default, false};
	}
	return (struct meaning){.reader = NULL};
}

// End of dump and errors, in all families. Both start with an error code; in NLMSG_DONE it may be
// missing.
static enum decode_result read_control(const struct nlmsghdr *message, struct event *out)
{
	out->kind = message->nlmsg_type == NLMSG_DONE ? EVENT_DONE : EVENT_ERROR;
	out->error = 0;
	if (message->nlmsg_type == NLMSG_NOOP)
		return DECODE_IGNORED;
	if (message->nlmsg_type == NLMSG_OVERRUN) {
		out->error = -ENOBUFS;
		return DECODE_EVENT;
	}
	if (message->nlmsg_len >= NLMSG_HDRLEN + sizeof(int))
		memcpy(&out->error, (const uint8_t *)message + NLMSG_HDRLEN, sizeof(int));
	else if (message->nlmsg_type == NLMSG_ERROR)
		return DECODE_MALFORMED;
	return DECODE_EVENT;
}

static enum decode_result decode(struct meaning (*meaning_of)(uint16_t type), const void *bytes,
	size_t n, struct event *out)
{
	const struct nlmsghdr *message = bytes;
	struct meaning meaning;

	if (n < NLMSG_HDRLEN || message->nlmsg_len < NLMSG_HDRLEN || message->nlmsg_len > n)
		return DECODE_MALFORMED;
	memset(out, 0, offsetof(struct event, iface));
	out->nl_flags = message->nlmsg_flags;
	out->sequence = message->nlmsg_seq;
	out->port_id = message->nlmsg_pid;
	out->is_dump = message->nlmsg_flags & NLM_F_MULTI;
	if (message->nlmsg_type < NLMSG_MIN_TYPE)
		return read_control(message, out);
	meaning = meaning_of(message->nlmsg_type);
	if (!meaning.reader)
		return DECODE_IGNORED;
	if (message->nlmsg_len < sizeof(*message) + meaning.reader->header)
		return DECODE_MALFORMED;
	out->kind = meaning.reader->kind;
	out->is_delete = meaning.is_delete;
	memset(&out->iface, 0, meaning.reader->clear);
	return meaning.reader->read(message, out);
}

enum decode_result decode_route(const void *message, size_t bytes, struct event *out)
{
	return decode(route_meaning, message, bytes, out);
}

enum decode_result decode_netfilter(const void *message, size_t bytes, struct event *out)
{
	return decode(netfilter_meaning, message, bytes, out);
}

enum decode_result decode_xfrm(const void *message, size_t bytes, struct event *out)
{
	return decode(xfrm_meaning, message, bytes, out);
}

// Table-driven attribute parser. Pure: accepts arbitrary bytes, no state.

const struct nlattr *attrs_next(struct piece *rest)
{
	const struct nlattr *attr = rest->bytes;
	uint32_t step;

	if (rest->n < NLA_HDRLEN || attr->nla_len < NLA_HDRLEN || attr->nla_len > rest->n)
		return NULL;
	step = NLA_ALIGN(attr->nla_len);
	if (step > rest->n)
		step = rest->n;
	*rest = (struct piece){(const uint8_t *)rest->bytes + step, rest->n - step};
	return attr;
}

bool attrs_of(const struct nlmsghdr *message, size_t header, struct piece *out)
{
	size_t skip = NLMSG_HDRLEN + NLMSG_ALIGN(header);

	if (message->nlmsg_len < NLMSG_HDRLEN + header)
		return false;
	if (skip > message->nlmsg_len)
		skip = message->nlmsg_len;
	*out = (struct piece){(const uint8_t *)message + skip, message->nlmsg_len - skip};
	return true;
}

static bool take_addr(struct wire_addr *out, const struct piece *value)
{
	if (value->n != 4 && value->n != 16)
		return false;
	*out = (struct wire_addr){.family = value->n == 4 ? 4 : 6};
	memcpy(out->bytes, value->bytes, value->n);
	return true;
}

static bool take_number(void *out, const struct piece *value, size_t size)
{
	if (value->n < size)
		return false;
	memcpy(out, value->bytes, size);
	return true;
}

static bool take_u16_be(uint16_t *out, const struct piece *value)
{
	if (!take_number(out, value, sizeof(*out)))
		return false;
	*out = ntohs(*out);
	return true;
}

static bool take_text(char *out, const struct piece *value)
{
	size_t n = strnlen(value->bytes, value->n);

	if (n > 15)
		n = 15;
	memcpy(out, value->bytes, n);
	out[n] = 0;
	return true;
}

static bool take_bool(bool *out, const struct piece *value)
{
	if (!value->n)
		return false;
	*out = *(const uint8_t *)value->bytes != 0;
	return true;
}

static bool take_one(const struct want *want, const struct piece *value, void *out)
{
	void *to = (uint8_t *)out + want->at;

	switch (want->form) {
	case WANT_U8:
		return take_number(to, value, 1);
	case WANT_U16:
		return take_number(to, value, 2);
	case WANT_U16_BE:
		return take_u16_be(to, value);
	case WANT_U32:
		return take_number(to, value, 4);
	case WANT_TEXT:
		return take_text(to, value);
	case WANT_ADDR:
		return take_addr(to, value);
	case WANT_MAC:
		return value->n != sizeof(struct wire_mac) || take_number(to, value, 6);
	case WANT_BOOL:
		return take_bool(to, value);
	case WANT_THERE:
		*(bool *)to = true;
		return true;
	case WANT_INSIDE:
		return attrs_take(want->inside, value, out);
	case WANT_TAKE:
		return want->take(out, value);
	}
	return true;
}

bool attrs_take(const struct wants *wants, const struct piece *attrs, void *out)
{
	struct piece rest = *attrs;
	const struct nlattr *attr;

	while ((attr = attrs_next(&rest))) {
		struct piece value = attrs_value(attr);
		unsigned type = attrs_type(attr);

		if (type < wants->n && !take_one(&wants->row[type], &value, out))
			return false;
	}
	return rest.n == 0;
}
