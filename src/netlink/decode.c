// Netlink bytes -> events: which reader takes which message. Pure: no socket, no state.
#include "netlink/decode.h"

#include "netlink/kinds.h"

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

// What a message's type means.
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
		[RTM_NEWNETCONF] = {&read_netconf, false},
		[RTM_DELNETCONF] = {&read_netconf, true},
		[RTM_NEWNEXTHOP] = {&read_nexthop, false},
		[RTM_DELNEXTHOP] = {&read_nexthop, true},
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
	case XFRM_MSG_GETDEFAULT: // so it is called when it is told, too
		return (struct meaning){&read_policy_default, false};
	}
	return (struct meaning){.reader = NULL};
}

// Ends and errors of all families. Both begin with an error; that of NLMSG_DONE may be missing.
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
