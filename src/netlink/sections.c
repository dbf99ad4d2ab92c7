// What a dump asks for, part by part. Pure.
#include "netlink/sections.h"

#include "netlink/event.h"

#include <assert.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <linux/xfrm.h>
#include <string.h>
#include <sys/socket.h>

#define NFT(message) (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_##message)

// Whatever may keep workers from forwarding comes before the routes.
const struct section sections[] = {
	{"interfaces", PROTO_ROUTE, AF_UNSPEC, RTM_GETLINK, sizeof(struct ifinfomsg), EVENT_LINK,
		0},
	{"addresses", PROTO_ROUTE, AF_UNSPEC, RTM_GETADDR, sizeof(struct ifaddrmsg), EVENT_ADDRESS,
		0},
	{"IPv4 settings", PROTO_ROUTE, AF_INET, RTM_GETNETCONF, sizeof(struct netconfmsg),
		EVENT_NETCONF, 0},
	{"IPv6 settings", PROTO_ROUTE, AF_INET6, RTM_GETNETCONF, sizeof(struct netconfmsg),
		EVENT_NETCONF, SECTION_MAY_LACK},
	{"IPv4 rules", PROTO_ROUTE, AF_INET, RTM_GETRULE, sizeof(struct fib_rule_hdr), EVENT_RULE,
		SECTION_MAY_LACK},
	{"IPv6 rules", PROTO_ROUTE, AF_INET6, RTM_GETRULE, sizeof(struct fib_rule_hdr), EVENT_RULE,
		SECTION_MAY_LACK},
	{"qdiscs", PROTO_ROUTE, AF_UNSPEC, RTM_GETQDISC, sizeof(struct tcmsg), EVENT_QDISC,
		SECTION_MAY_LACK},
	{"nftables chains", PROTO_NETFILTER, AF_UNSPEC, NFT(GETCHAIN), sizeof(struct nfgenmsg),
		EVENT_CHAIN, SECTION_MAY_LACK},
	{"nftables flowtables", PROTO_NETFILTER, AF_UNSPEC, NFT(GETFLOWTABLE),
		sizeof(struct nfgenmsg), EVENT_CHAIN, SECTION_MAY_LACK},
	{"xfrm policies", PROTO_XFRM, AF_UNSPEC, XFRM_MSG_GETPOLICY,
		sizeof(struct xfrm_userpolicy_id), EVENT_POLICY, SECTION_MAY_LACK},
	{"default xfrm policy", PROTO_XFRM, AF_UNSPEC, XFRM_MSG_GETDEFAULT,
		sizeof(struct xfrm_userpolicy_default), EVENT_POLICY_DEFAULT,
		SECTION_MAY_LACK | SECTION_ONE},
	{"neighbours", PROTO_ROUTE, AF_UNSPEC, RTM_GETNEIGH, sizeof(struct ndmsg), EVENT_NEIGHBOUR,
		SECTION_FRAGILE},
	{"next hops", PROTO_ROUTE, AF_UNSPEC, RTM_GETNEXTHOP, sizeof(struct nhmsg), EVENT_NEXTHOP,
		0},
	{"IPv4 routes", PROTO_ROUTE, AF_INET, RTM_GETROUTE, sizeof(struct rtmsg), EVENT_ROUTE, 0},
	{"IPv6 routes", PROTO_ROUTE, AF_INET6, RTM_GETROUTE, sizeof(struct rtmsg), EVENT_ROUTE,
		SECTION_FRAGILE | SECTION_MAY_LACK},
	{"IPv4 multicast routes", PROTO_ROUTE, RTNL_FAMILY_IPMR, RTM_GETROUTE, sizeof(struct rtmsg),
		EVENT_MROUTE, SECTION_MAY_LACK},
	{"IPv6 multicast routes", PROTO_ROUTE, RTNL_FAMILY_IP6MR, RTM_GETROUTE,
		sizeof(struct rtmsg), EVENT_MROUTE, SECTION_MAY_LACK},
};
static_assert(sizeof(sections) / sizeof(sections[0]) <= 32, "a bit each");
const unsigned n_sections = sizeof(sections) / sizeof(sections[0]);

// Counters of interfaces are of no use here and long.
static size_t add_iface_filter(uint8_t *out)
{
	struct nlattr attr = {NLA_HDRLEN + sizeof(uint32_t), IFLA_EXT_MASK};
	uint32_t mask = RTEXT_FILTER_SKIP_STATS;

	memcpy(out, &attr, sizeof(attr));
	memcpy(out + NLA_HDRLEN, &mask, sizeof(mask));
	return attr.nla_len;
}

size_t section_request(const struct section *section, uint32_t sequence,
	uint8_t out[SECTION_REQUEST_BYTES])
{
	struct nlmsghdr head = {.nlmsg_type = section->type,
		.nlmsg_flags =
			NLM_F_REQUEST | (section->flags & SECTION_ONE ? NLM_F_ACK : NLM_F_DUMP),
		.nlmsg_seq = sequence};

	memset(out, 0, SECTION_REQUEST_BYTES);
	head.nlmsg_len = NLMSG_HDRLEN + NLMSG_ALIGN(section->header);
	// All these headers begin with the family but that of xfrm, which wants none.
	if (section->protocol != PROTO_XFRM)
		out[NLMSG_HDRLEN] = section->family;
	if (section->kind == EVENT_LINK)
		head.nlmsg_len += add_iface_filter(out + head.nlmsg_len);
	memcpy(out, &head, sizeof(head));
	return head.nlmsg_len;
}
