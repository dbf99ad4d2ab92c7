// Objects not supported by workers (tc, nftables, xfrm, multicast routes): their existence and a
// name. Pure.
#include "netlink/decode_inside.h"
#include "netlink/guard.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/xfrm.h>
#include <stdio.h>
#include <string.h>

#define AT(noun, field) offsetof(struct event_##noun, field)

struct tc_draft {
	char kind[EVENT_NAME_MAX];
	bool has_block;
};

static const struct want want_tc[] = {
	[TCA_KIND] = {WANT_TEXT, .at = offsetof(struct tc_draft, kind)},
	[TCA_INGRESS_BLOCK] = {WANT_THERE, .at = offsetof(struct tc_draft, has_block)},
	[TCA_EGRESS_BLOCK] = {WANT_THERE, .at = offsetof(struct tc_draft, has_block)},
};
static const struct wants wants_tc = WANTS(want_tc);

// Default qdiscs of interfaces: they only queue, and never modify or selectively drop packets.
static bool qdisc_is_plain(const char *kind)
{
	static const char *const plain[] = {"noqueue", "pfifo_fast", "pfifo", "bfifo", "mq", "fq",
		"fq_codel"};

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!strcmp(kind, plain[i]))
			return true;
	return false;
}

static enum decode_result qdisc_read(const struct nlmsghdr *message, struct event *out)
{
	const struct tcmsg *head = NLMSG_DATA(message);
	struct tc_draft draft = {.has_block = false};

	if (read_attrs(message, sizeof(*head), &wants_tc, &draft) != DECODE_EVENT)
		return DECODE_MALFORMED;
	out->foreign.ifindex = head->tcm_ifindex;
	out->foreign.has_block = draft.has_block;
	out->foreign.is_harmless = qdisc_is_plain(draft.kind);
	out->queue.what = QUEUE_NONE;
	out->foreign.sides = !strcmp(draft.kind, "clsact")    ? EVENT_INGRESS | EVENT_EGRESS
	                     : !strcmp(draft.kind, "ingress") ? EVENT_INGRESS
	                                                      : EVENT_EGRESS;
	snprintf(out->foreign.name, sizeof(out->foreign.name), "qdisc %s %x: parent %x:%x",
		draft.kind, TC_H_MAJ(head->tcm_handle) >> 16, TC_H_MAJ(head->tcm_parent) >> 16,
		TC_H_MIN(head->tcm_parent));
	if (out->foreign.sides == EVENT_EGRESS &&
		!queue_read(message, draft.kind, out->is_delete, &out->queue))
		return DECODE_MALFORMED;
	return DECODE_EVENT;
}
const struct reader read_qdisc = {sizeof(struct tcmsg), EVENT_QDISC, sizeof(struct event_foreign),
	qdisc_read};

// A chain or flowtable; names are up to NFT_NAME_MAXLEN long.
struct nft_draft {
	struct piece table, name;
	uint64_t handle_be;
	uint32_t hook_be;
	bool has_hook;
};
#define DRAFT(field) offsetof(struct nft_draft, field)

static bool take_table(void *out, const struct piece *value)
{
	((struct nft_draft *)out)->table = *value;
	return true;
}

static bool take_name(void *out, const struct piece *value)
{
	((struct nft_draft *)out)->name = *value;
	return true;
}

static bool take_handle(void *out, const struct piece *value)
{
	if (value->n < sizeof(uint64_t))
		return false;
	memcpy(&((struct nft_draft *)out)->handle_be, value->bytes, sizeof(uint64_t));
	return true;
}

static const struct want want_hook[] = {[NFTA_HOOK_HOOKNUM] = {WANT_U32, .at = DRAFT(hook_be)}};
static const struct wants wants_hook = WANTS(want_hook);

static bool take_hook(void *out, const struct piece *value)
{
	((struct nft_draft *)out)->has_hook = true;
	return attrs_take(&wants_hook, value, out);
}

static const struct want want_chain[] = {
	[NFTA_CHAIN_TABLE] = {WANT_TAKE, .take = take_table},
	[NFTA_CHAIN_HANDLE] = {WANT_TAKE, .take = take_handle},
	[NFTA_CHAIN_NAME] = {WANT_TAKE, .take = take_name},
	[NFTA_CHAIN_HOOK] = {WANT_TAKE, .take = take_hook},
};
static const struct wants wants_chain = WANTS(want_chain);
static const struct want want_flowtable[] = {
	[NFTA_FLOWTABLE_TABLE] = {WANT_TAKE, .take = take_table},
	[NFTA_FLOWTABLE_NAME] = {WANT_TAKE, .take = take_name},
	[NFTA_FLOWTABLE_HANDLE] = {WANT_TAKE, .take = take_handle},
};
static const struct wants wants_flowtable = WANTS(want_flowtable);

static const char *nft_family(uint8_t family)
{
	switch (family) {
	case NFPROTO_INET:
		return "inet";
	case NFPROTO_IPV4:
		return "ip";
	case NFPROTO_IPV6:
		return "ip6";
	case NFPROTO_ARP:
		return "arp";
	case NFPROTO_NETDEV:
		return "netdev";
	case NFPROTO_BRIDGE:
		return "bridge";
	}
	return "?";
}

// "table inet filter chain forward"; a name that is too long ends in the handle, to distinguish it
// from others with the same beginning.
static bool name_nft(struct event_foreign *out, const struct nfgenmsg *head,
	const struct nft_draft *draft, const char *noun)
{
	uint32_t handle = ntohl((uint32_t)(draft->handle_be >> 32)); // lower half
	char tail[32];
	int n;

	if (!draft->table.n || !draft->name.n || draft->table.n > NFT_NAME_MAXLEN ||
		draft->name.n > NFT_NAME_MAXLEN)
		return false;
	n = snprintf(out->name, sizeof(out->name), "table %s %.*s %s %.*s",
		nft_family(head->nfgen_family), (int)draft->table.n,
		(const char *)draft->table.bytes, noun, (int)draft->name.n,
		(const char *)draft->name.bytes);
	if (n >= (int)sizeof(out->name)) {
		n = snprintf(tail, sizeof(tail), "... handle %u", handle);
		memcpy(out->name + sizeof(out->name) - 1 - n, tail, n + 1);
	}
	return true;
}

static uint8_t nft_wire_family(uint8_t family)
{
	return family == NFPROTO_IPV4 ? 4 : family == NFPROTO_IPV6 ? 6 : 0;
}

// Forwarded packets do not pass hooks for local input and output, or of ARP. Those of bridges have
// the numbers of IP.
static bool hook_is_harmless(uint8_t family, uint32_t hook)
{
	if (family == NFPROTO_ARP)
		return true;
	return family != NFPROTO_NETDEV && (hook == NF_INET_LOCAL_IN || hook == NF_INET_LOCAL_OUT);
}

// Family netdev counts from 0: ingress, egress; NF_INET_INGRESS follows the five IP hooks.
static uint8_t inet_hook(uint8_t family, uint32_t hook)
{
	return family == NFPROTO_NETDEV ? NF_INET_INGRESS + (hook != 0) : hook;
}

// What it drops, workers forward.
static bool is_guard(uint8_t family, const struct nft_draft *draft)
{
	static const char name[] = GUARD_TABLE;

	return family == NFPROTO_BRIDGE &&
	       strnlen((const char *)draft->table.bytes, draft->table.n) == strlen(name) &&
	       !memcmp(draft->table.bytes, name, strlen(name));
}

static enum decode_result chain_read(const struct nlmsghdr *message, struct event *out)
{
	const struct nfgenmsg *head = NLMSG_DATA(message);
	struct nft_draft draft = {.has_hook = false};

	if (read_attrs(message, sizeof(*head), &wants_chain, &draft) != DECODE_EVENT ||
		!name_nft(&out->foreign, head, &draft, "chain"))
		return DECODE_MALFORMED;
	// Only base chains have a hook. A delete carries one if devices are removed from a chain
	// that remains, and always before Linux 6.4.
	if (!out->is_delete && !draft.has_hook)
		return DECODE_IGNORED;
	out->foreign.is_part = out->is_delete && draft.has_hook;
	out->foreign.family = nft_wire_family(head->nfgen_family);
	out->foreign.hook = inet_hook(head->nfgen_family, ntohl(draft.hook_be));
	out->foreign.is_bridge = head->nfgen_family == NFPROTO_BRIDGE;
	out->foreign.is_harmless =
		!out->is_delete && (hook_is_harmless(head->nfgen_family, ntohl(draft.hook_be)) ||
					   is_guard(head->nfgen_family, &draft));
	return DECODE_EVENT;
}
const struct reader read_chain = {sizeof(struct nfgenmsg), EVENT_CHAIN,
	sizeof(struct event_foreign), chain_read};

static enum decode_result flowtable_read(const struct nlmsghdr *message, struct event *out)
{
	const struct nfgenmsg *head = NLMSG_DATA(message);
	struct nft_draft draft = {.has_hook = false};

	if (read_attrs(message, sizeof(*head), &wants_flowtable, &draft) != DECODE_EVENT ||
		!name_nft(&out->foreign, head, &draft, "flowtable"))
		return DECODE_MALFORMED;
	out->foreign.family = nft_wire_family(head->nfgen_family);
	out->foreign.hook = NF_INET_INGRESS;
	return DECODE_EVENT;
}
const struct reader read_flowtable = {sizeof(struct nfgenmsg), EVENT_CHAIN,
	sizeof(struct event_foreign), flowtable_read};

static bool name_policy(struct event_foreign *out, const struct xfrm_selector *selector,
	uint32_t index, uint8_t dir)
{
	static const char *const dirs[] = {"in", "out", "fwd"};
	struct wire_addr src = {.family = out->family}, dst = {.family = out->family};
	char text[2][WIRE_ADDR_TEXT];
	size_t bytes = out->family == 4 ? 4 : 16;

	if (dir >= sizeof(dirs) / sizeof(dirs[0]))
		return false;
	memcpy(src.bytes, &selector->saddr, bytes);
	memcpy(dst.bytes, &selector->daddr, bytes);
	snprintf(out->name, sizeof(out->name), "policy %s %u %s/%u > %s/%u", dirs[dir], index,
		wire_addr_print(&src, text[0]), selector->prefixlen_s,
		wire_addr_print(&dst, text[1]), selector->prefixlen_d);
	return true;
}

// The header of a deletion contains the request's selector; the policy itself is in an attribute.
static bool find_policy(const struct nlmsghdr *message, bool is_delete,
	struct xfrm_userpolicy_info *out)
{
	struct piece rest, found = {0};
	const struct nlattr *attr;

	if (!is_delete && message->nlmsg_len >= NLMSG_HDRLEN + sizeof(*out))
		found = (struct piece){NLMSG_DATA(message), sizeof(*out)};
	if (is_delete && attrs_of(message, sizeof(struct xfrm_userpolicy_id), &rest))
		while ((attr = attrs_next(&rest)))
			if (attrs_type(attr) == XFRMA_POLICY)
				found = attrs_value(attr);
	if (found.n < sizeof(*out))
		return false;
	memcpy(out, found.bytes, sizeof(*out)); // its 64-bit fields may be unaligned
	return true;
}

// XFRM_MSG_FLUSHPOLICY has no header that we need: the empty name matches all.
static enum decode_result policy_read(const struct nlmsghdr *message, struct event *out)
{
	struct xfrm_userpolicy_info info;

	if (message->nlmsg_type == XFRM_MSG_FLUSHPOLICY)
		return DECODE_EVENT;
	if (!find_policy(message, out->is_delete, &info))
		return DECODE_MALFORMED;
	// A selector for both families is an IPv4 or IPv6 selector without any other match.
	out->foreign.ifindex = info.sel.ifindex;
	out->foreign.family = read_family(info.sel.family);
	out->foreign.is_harmless = info.dir == XFRM_POLICY_IN;
	return name_policy(&out->foreign, &info.sel, info.index, info.dir) ? DECODE_EVENT
	                                                                   : DECODE_IGNORED;
}
const struct reader read_policy = {0, EVENT_POLICY, sizeof(struct event_foreign), policy_read};

// Default action for packets that match no policy. The one for local input is irrelevant.
static enum decode_result policy_default_read(const struct nlmsghdr *message, struct event *out)
{
	const struct xfrm_userpolicy_default *reported = NLMSG_DATA(message);

	out->foreign.is_harmless =
		reported->fwd != XFRM_USERPOLICY_BLOCK && reported->out != XFRM_USERPOLICY_BLOCK;
	snprintf(out->foreign.name, sizeof(out->foreign.name), "default of fwd or out is block");
	return DECODE_EVENT;
}
const struct reader read_policy_default = {sizeof(struct xfrm_userpolicy_default),
	EVENT_POLICY_DEFAULT, sizeof(struct event_foreign), policy_default_read};

struct mroute_draft {
	struct wire_addr group, source;
	int ifindex;
};
static const struct want want_mroute[] = {
	[RTA_DST] = {WANT_ADDR, .at = offsetof(struct mroute_draft, group)},
	[RTA_SRC] = {WANT_ADDR, .at = offsetof(struct mroute_draft, source)},
	[RTA_IIF] = {WANT_U32, .at = offsetof(struct mroute_draft, ifindex)},
};
static const struct wants wants_mroute = WANTS(want_mroute);

// Workers punt all multicast packets to Linux, which forwards them: only speed is lost.
enum decode_result read_mroute(const struct nlmsghdr *message, struct event *out)
{
	const struct rtmsg *head = NLMSG_DATA(message);
	struct mroute_draft draft = {.ifindex = 0};
	char group[WIRE_ADDR_TEXT], source[WIRE_ADDR_TEXT];

	memset(&out->foreign, 0, sizeof(out->foreign));
	out->kind = EVENT_MROUTE;
	if (read_attrs(message, sizeof(*head), &wants_mroute, &draft) != DECODE_EVENT ||
		!draft.group.family)
		return DECODE_MALFORMED;
	out->foreign.family = head->rtm_family == RTNL_FAMILY_IPMR ? 4 : 6;
	out->foreign.is_harmless = true;
	snprintf(out->foreign.name, sizeof(out->foreign.name), "%s from %s",
		wire_addr_print(&draft.group, group),
		draft.source.family ? wire_addr_print(&draft.source, source) : "any");
	return DECODE_EVENT;
}
