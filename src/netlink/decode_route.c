// Decodes routes, next-hop objects and rules into events; names of route types. Pure.
#include "netlink/decode_inside.h"

#include "base/bits.h"
#include "netlink/netlink.h"

#include <assert.h>
#include <linux/fib_rules.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define AT(noun, field) offsetof(struct event_##noun, field)

bool read_via(struct wire_addr *out, const struct piece *value)
{
	const struct rtvia *via = value->bytes;
	size_t bytes = value->n - sizeof(via->rtvia_family);

	if (value->n < sizeof(via->rtvia_family))
		return false;
	out->family = read_family(via->rtvia_family);
	if (bytes != (out->family == 4 ? 4 : 16) || !out->family)
		return false;
	memset(out->bytes, 0, sizeof(out->bytes));
	memcpy(out->bytes, via->rtvia_addr, bytes);
	return true;
}

static bool take_hop_via(void *out, const struct piece *value)
{
	return read_via(&((struct event_hop *)out)->via, value);
}

static const struct want want_hop[] = {
	[RTA_GATEWAY] = {WANT_ADDR, .at = AT(hop, via)},
	[RTA_VIA] = {WANT_TAKE, .take = take_hop_via},
	[RTA_ENCAP] = {WANT_TAKE, .take = labels_take_encap},
	[RTA_ENCAP_TYPE] = {WANT_U16, .at = AT(hop, encap_type)},
	[RTA_NEWDST] = {WANT_THERE, .at = AT(hop, has_encap)},
};
static const struct wants wants_hop = WANTS(want_hop);

// While attributes are parsed, a route's single hop is kept apart from those of RTA_MULTIPATH.
struct route_draft {
	struct event_route *route;
	struct event_hop single;
	uint32_t table, metric, nh_id, mtu, metrics;
	int32_t expires;
	struct wire_addr dst, src, prefsrc;
};
#define DRAFT(field) offsetof(struct route_draft, field)

bool read_hops(const struct piece *value, const struct wants *wants, struct hop_list *list)
{
	struct piece rest = *value;

	while (rest.n >= sizeof(struct rtnexthop)) {
		const struct rtnexthop *one = rest.bytes;
		uint32_t step = RTNH_ALIGN(one->rtnh_len);
		struct piece attrs = {RTNH_DATA(one), one->rtnh_len - sizeof(*one)};
		struct event_hop hop = {.ifindex = one->rtnh_ifindex,
			.flags = one->rtnh_flags,
			.weight = one->rtnh_hops + 1};

		if (one->rtnh_len < sizeof(*one) || one->rtnh_len > rest.n ||
			!attrs_take(wants, &attrs, &hop))
			return false;
		if (*list->n < EVENT_MAX_HOPS)
			list->hop[(*list->n)++] = hop;
		else
			*list->too_many = true;
		step = step < rest.n ? step : rest.n;
		rest = (struct piece){(const uint8_t *)one + step, rest.n - step};
	}
	return rest.n == 0;
}

static bool take_multipath(void *out, const struct piece *value)
{
	struct event_route *route = ((struct route_draft *)out)->route;
	struct hop_list list = {route->hop, &route->n_hops, &route->too_many_hops};

	if (!read_hops(value, &wants_hop, &list))
		return false;
	for (unsigned i = 0; i < route->n_hops; i++)
		labels_settle(&route->hop[i]);
	return true;
}

static bool take_route_via(void *out, const struct piece *value)
{
	return read_via(&((struct route_draft *)out)->single.via, value);
}

static const struct want want_metrics[] = {[RTAX_MTU] = {WANT_U32, .at = DRAFT(mtu)}};
static const struct wants wants_metrics = WANTS(want_metrics);

static bool take_route_encap(void *out, const struct piece *value)
{
	return labels_take_encap(&((struct route_draft *)out)->single, value);
}

static bool take_metrics(void *out, const struct piece *value)
{
	struct route_draft *draft = out;

	for (uint32_t i = 0; i < value->n; i++) // FNV-1a
		draft->metrics = (draft->metrics ^ ((const uint8_t *)value->bytes)[i]) * 16777619u;
	return attrs_take(&wants_metrics, value, draft);
}

static bool take_cacheinfo(void *out, const struct piece *value)
{
	struct rta_cacheinfo info;

	if (value->n < sizeof(info))
		return false;
	memcpy(&info, value->bytes, sizeof(info));
	((struct route_draft *)out)->expires = info.rta_expires;
	return true;
}

static const struct want want_route[] = {
	[RTA_DST] = {WANT_ADDR, .at = DRAFT(dst)},
	[RTA_SRC] = {WANT_ADDR, .at = DRAFT(src)},
	[RTA_OIF] = {WANT_U32, .at = DRAFT(single.ifindex)},
	[RTA_GATEWAY] = {WANT_ADDR, .at = DRAFT(single.via)},
	[RTA_VIA] = {WANT_TAKE, .take = take_route_via},
	[RTA_PRIORITY] = {WANT_U32, .at = DRAFT(metric)},
	[RTA_PREFSRC] = {WANT_ADDR, .at = DRAFT(prefsrc)},
	[RTA_METRICS] = {WANT_TAKE, .take = take_metrics},
	[RTA_MULTIPATH] = {WANT_TAKE, .take = take_multipath},
	[RTA_CACHEINFO] = {WANT_TAKE, .take = take_cacheinfo},
	[RTA_TABLE] = {WANT_U32, .at = DRAFT(table)},
	[RTA_ENCAP] = {WANT_TAKE, .take = take_route_encap},
	[RTA_ENCAP_TYPE] = {WANT_U16, .at = DRAFT(single.encap_type)},
	[RTA_NH_ID] = {WANT_U32, .at = DRAFT(nh_id)},
};
static const struct wants wants_route = WANTS(want_route);

static void take_head(struct event_route *route, const struct rtmsg *head)
{
	route->src_len = head->rtm_src_len;
	route->flags = head->rtm_flags;
	route->type = head->rtm_type;
	route->protocol = head->rtm_protocol;
	route->scope = head->rtm_scope;
	route->tos = head->rtm_tos;
}

static void take_draft(struct event_route *route, const struct route_draft *draft)
{
	route->table = draft->table;
	route->metric = draft->metric;
	route->nh_id = draft->nh_id;
	route->mtu = draft->mtu;
	route->metrics = draft->metrics;
	route->expires = draft->expires;
	route->prefsrc = draft->prefsrc;
	route->src = draft->src;
	if (!route->n_hops && (draft->single.ifindex || draft->single.via.family)) {
		route->hop[0] = draft->single;
		labels_settle(&route->hop[0]);
		route->hop[0].flags = route->flags & RTNH_COMPARE_MASK;
		route->n_hops = 1;
	}
}

// A prefix of the route's family with host bits cleared, as the workers' tables require.
static bool take_prefix(struct wire_prefix *prefix, const struct wire_addr *addr, uint8_t len,
	uint8_t family)
{
	*prefix = (struct wire_prefix){*addr, len};
	if (!prefix->addr.family)
		prefix->addr.family = family;
	if (prefix->addr.family != family || len > (family == 4 ? 32 : 128))
		return false;
	if (!addr->family && len)
		return false;
	wire_prefix_mask(prefix);
	return true;
}

static enum decode_result route_read(const struct nlmsghdr *message, struct event *out)
{
	const struct rtmsg *head = NLMSG_DATA(message);
	struct route_draft draft = {.route = &out->route,
		.table = head->rtm_table,
		.single = {.weight = 1}};
	uint8_t family = read_family(head->rtm_family);

	if (head->rtm_family == RTNL_FAMILY_IPMR || head->rtm_family == RTNL_FAMILY_IP6MR)
		return read_mroute(message, out);
	if (head->rtm_family == AF_MPLS)
		return read_label(message, out);
	// Cloned routes (cache entries, exceptions) are lookup results, not routes.
	if (!family || head->rtm_flags & RTM_F_CLONED)
		return DECODE_IGNORED;
	take_head(&out->route, head);
	if (read_attrs(message, sizeof(*head), &wants_route, &draft) != DECODE_EVENT ||
		!take_prefix(&out->route.prefix, &draft.dst, head->rtm_dst_len, family) ||
		(draft.src.family && draft.src.family != family) ||
		head->rtm_src_len > (family == 4 ? 32 : 128))
		return DECODE_MALFORMED;
	take_draft(&out->route, &draft);
	return DECODE_EVENT;
}
const struct reader read_route = {sizeof(struct rtmsg), EVENT_ROUTE, AT(route, hop), route_read};

// struct nexthop_grp in wire format. The name of the high byte depends on the headers: Linux 6.12
// and distribution backports define it where others have a reserved byte.
struct group_member {
	uint32_t id;
	uint8_t weight, weight_high;
	uint16_t unused;
};
static_assert(sizeof(struct group_member) == sizeof(struct nexthop_grp), "as the kernel has it");

static bool take_group(void *out, const struct piece *value)
{
	struct event_nexthop *nexthop = out;
	const struct group_member *member = value->bytes;
	size_t n = value->n / sizeof(*member);

	if (value->n % sizeof(*member))
		return false;
	nexthop->is_group = true;
	nexthop->too_many_members = n > EVENT_MAX_GROUP;
	nexthop->n_members = n > EVENT_MAX_GROUP ? EVENT_MAX_GROUP : n;
	for (size_t i = 0; i < nexthop->n_members; i++) {
		uint32_t weight = (member[i].weight_high << 8 | member[i].weight) + 1;

		nexthop->member[i].id = member[i].id;
		nexthop->member[i].weight = weight > UINT16_MAX ? UINT16_MAX : weight;
	}
	return true;
}

static bool take_group_type(void *out, const struct piece *value)
{
	uint16_t type;

	if (value->n < sizeof(type))
		return false;
	memcpy(&type, value->bytes, sizeof(type));
	((struct event_nexthop *)out)->is_resilient = type == NEXTHOP_GRP_TYPE_RES;
	return true;
}

static const struct want want_resilient[] = {
	[NHA_RES_GROUP_IDLE_TIMER] = {WANT_U32, .at = AT(nexthop, resilient.idle_cs)},
	[NHA_RES_GROUP_UNBALANCED_TIMER] = {WANT_U32, .at = AT(nexthop, resilient.unbalanced_cs)},
};
static const struct wants wants_resilient = WANTS(want_resilient);

static bool take_nexthop_encap(void *out, const struct piece *value)
{
	return labels_take_encap(&((struct event_nexthop *)out)->hop, value);
}

static const struct want want_nexthop[] = {
	[NHA_ID] = {WANT_U32, .at = AT(nexthop, id)},
	[NHA_GROUP] = {WANT_TAKE, .take = take_group},
	[NHA_GROUP_TYPE] = {WANT_TAKE, .take = take_group_type},
	[NHA_BLACKHOLE] = {WANT_THERE, .at = AT(nexthop, is_blackhole)},
	[NHA_OIF] = {WANT_U32, .at = AT(nexthop, hop.ifindex)},
	[NHA_GATEWAY] = {WANT_ADDR, .at = AT(nexthop, hop.via)},
	[NHA_ENCAP] = {WANT_TAKE, .take = take_nexthop_encap},
	[NHA_ENCAP_TYPE] = {WANT_U16, .at = AT(nexthop, hop.encap_type)},
	[NHA_FDB] = {WANT_THERE, .at = AT(nexthop, is_fdb)},
	[NHA_RES_GROUP] = {WANT_INSIDE, .inside = &wants_resilient},
};
static const struct wants wants_nexthop = WANTS(want_nexthop);

static enum decode_result nexthop_read(const struct nlmsghdr *message, struct event *out)
{
	const struct nhmsg *head = NLMSG_DATA(message);
	struct event_nexthop *nexthop = &out->nexthop;

	nexthop->family = read_family(head->nh_family);
	nexthop->protocol = head->nh_protocol;
	nexthop->hop.flags = head->nh_flags & RTNH_COMPARE_MASK;
	nexthop->hop.weight = 1;
	if (read_attrs(message, sizeof(*head), &wants_nexthop, nexthop) != DECODE_EVENT ||
		!nexthop->id)
		return DECODE_MALFORMED;
	labels_settle(&nexthop->hop);
	return DECODE_EVENT;
}
const struct reader read_nexthop = {sizeof(struct nhmsg), EVENT_NEXTHOP,
	sizeof(struct event_nexthop), nexthop_read};

static bool take_suppress(void *out, const struct piece *value)
{
	int32_t len;

	if (value->n < sizeof(len))
		return false;
	memcpy(&len, value->bytes, sizeof(len));
	if (len != -1)
		((struct event_rule *)out)->has_selector = true;
	return true;
}

static bool take_ignored(void *out, const struct piece *value)
{
	return true;
}

// Attributes not listed here are treated as selectors, so that new ones are not missed.
static const struct want want_rule[] = {
	[FRA_PRIORITY] = {WANT_U32, .at = AT(rule, priority)},
	[FRA_TABLE] = {WANT_U32, .at = AT(rule, table)},
	[FRA_SUPPRESS_PREFIXLEN] = {WANT_TAKE, .take = take_suppress},
	[FRA_SUPPRESS_IFGROUP] = {WANT_TAKE, .take = take_suppress},
	[FRA_L3MDEV] = {WANT_BOOL, .at = AT(rule, is_l3mdev)},
	[FRA_PROTOCOL] = {WANT_TAKE, .take = take_ignored},
	[FRA_PAD] = {WANT_TAKE, .take = take_ignored},
};
static const struct wants wants_rule = WANTS(want_rule);

static bool has_other_attrs(const struct nlmsghdr *message, size_t header)
{
	const struct nlattr *attr;
	struct piece rest;

	attrs_of(message, header, &rest);
	while ((attr = attrs_next(&rest)))
		if (attrs_type(attr) >= wants_rule.n || !want_rule[attrs_type(attr)].form)
			return true;
	return false;
}

static enum decode_result rule_read(const struct nlmsghdr *message, struct event *out)
{
	const struct fib_rule_hdr *head = NLMSG_DATA(message);
	struct event_rule *rule = &out->rule;

	rule->family = read_family(head->family);
	rule->table = head->table;
	rule->action = head->action;
	if (!rule->family)
		return DECODE_IGNORED;
	if (read_attrs(message, sizeof(*head), &wants_rule, rule) != DECODE_EVENT)
		return DECODE_MALFORMED;
	if (head->src_len || head->dst_len || head->tos || head->flags & FIB_RULE_INVERT ||
		has_other_attrs(message, sizeof(*head)))
		rule->has_selector = true;
	return DECODE_EVENT;
}
const struct reader read_rule = {sizeof(struct fib_rule_hdr), EVENT_RULE, sizeof(struct event_rule),
	rule_read};

// Names of route types and protocols.

const char *netlink_type_name(unsigned type)
{
	static const char *const names[] = {[RTN_UNICAST] = "unicast",
		[RTN_LOCAL] = "local",
		[RTN_BROADCAST] = "broadcast",
		[RTN_ANYCAST] = "anycast",
		[RTN_MULTICAST] = "multicast",
		[RTN_BLACKHOLE] = "blackhole",
		[RTN_UNREACHABLE] = "unreachable",
		[RTN_PROHIBIT] = "prohibit",
		[RTN_THROW] = "throw"};

	return type < ARRAY_LEN(names) ? names[type] : NULL;
}

const char *netlink_protocol_name(unsigned protocol)
{
	static const char *const names[] = {[RTPROT_REDIRECT] = "redirect",
		[RTPROT_KERNEL] = "kernel",
		[RTPROT_BOOT] = "boot",
		[RTPROT_STATIC] = "static",
		[RTPROT_GATED] = "gated",
		[RTPROT_RA] = "ra",
		[RTPROT_ZEBRA] = "zebra",
		[RTPROT_BIRD] = "bird",
		[RTPROT_DHCP] = "dhcp",
		[RTPROT_KEEPALIVED] = "keepalived",
		[RTPROT_BABEL] = "babel",
		[RTPROT_BGP] = "bgp",
		[RTPROT_ISIS] = "isis",
		[RTPROT_OSPF] = "ospf",
		[RTPROT_RIP] = "rip",
		[RTPROT_EIGRP] = "eigrp"};

	return protocol < ARRAY_LEN(names) ? names[protocol] : NULL;
}
