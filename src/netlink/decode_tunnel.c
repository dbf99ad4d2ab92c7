// Decodes tunnel devices of Linux into the settings of workers' tunnels, and the UDP ports on which
// Linux receives them (FOU); their paths. Pure. What a device sends: ip_tunnel_xmit in
// net/ipv4/ip_tunnel.c, ip6_tnl_xmit in net/ipv6/ip6_tunnel.c, ipip6_tunnel_xmit in net/ipv6/sit.c.
#include "netlink/decode_inside.h"

#include "base/bits.h"
#include "wire/headers.h"

#include <endian.h>
#include <linux/fou.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/if_tunnel.h>
#include <linux/ip6_tunnel.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <string.h>

enum { GRE_HAS_CHECKSUM = 0x8000, GRE_HAS_KEY = 0x2000, GRE_HAS_SEQUENCE = 0x1000 };
enum { TOS_INHERIT = 1, DSCP = 0xfc, FLOW_LABEL = 0xfffff, CLASS_SHIFT = 20 };
enum { PROTO_ANY = 0 };
// Flags of ip6tnl and ip6gre that workers know, and those that the kernel has for itself.
enum {
	FLAGS_KNOWN = IP6_TNL_F_IGN_ENCAP_LIMIT | IP6_TNL_F_USE_ORIG_TCLASS |
	              IP6_TNL_F_USE_ORIG_FWMARK | IP6_TNL_F_ALLOW_LOCAL_REMOTE,
	FLAGS_OF_KERNEL = 0x70000,
};

// Attributes as they are; numbers that are big-endian there still are.
struct draft {
	struct wire_addr local, remote;
	uint32_t link, flags, in_key_be, out_key_be, mark, flow_be;
	uint16_t in_flags, out_flags, encap, encap_flags, source_port, dest_port;
	uint8_t ttl, tos, limit, proto;
	bool has_df, is_external, ignores_df;
};
#define AT(field) offsetof(struct draft, field)

// 2 bytes of sit, 4 of others.
static bool take_flags(void *out, const struct piece *value)
{
	memcpy(&((struct draft *)out)->flags, value->bytes, MIN_OF(value->n, sizeof(uint32_t)));
	return true;
}

static const struct want want_ip[] = {
	[IFLA_IPTUN_LINK] = {WANT_U32, .at = AT(link)},
	[IFLA_IPTUN_LOCAL] = {WANT_ADDR, .at = AT(local)},
	[IFLA_IPTUN_REMOTE] = {WANT_ADDR, .at = AT(remote)},
	[IFLA_IPTUN_TTL] = {WANT_U8, .at = AT(ttl)},
	[IFLA_IPTUN_TOS] = {WANT_U8, .at = AT(tos)},
	[IFLA_IPTUN_ENCAP_LIMIT] = {WANT_U8, .at = AT(limit)},
	[IFLA_IPTUN_FLOWINFO] = {WANT_U32, .at = AT(flow_be)},
	[IFLA_IPTUN_FLAGS] = {WANT_TAKE, .take = take_flags},
	[IFLA_IPTUN_PROTO] = {WANT_U8, .at = AT(proto)},
	[IFLA_IPTUN_PMTUDISC] = {WANT_BOOL, .at = AT(has_df)},
	[IFLA_IPTUN_ENCAP_TYPE] = {WANT_U16, .at = AT(encap)},
	[IFLA_IPTUN_ENCAP_FLAGS] = {WANT_U16, .at = AT(encap_flags)},
	[IFLA_IPTUN_ENCAP_SPORT] = {WANT_U16_BE, .at = AT(source_port)},
	[IFLA_IPTUN_ENCAP_DPORT] = {WANT_U16_BE, .at = AT(dest_port)},
	[IFLA_IPTUN_COLLECT_METADATA] = {WANT_THERE, .at = AT(is_external)},
	[IFLA_IPTUN_FWMARK] = {WANT_U32, .at = AT(mark)},
};
static const struct want want_gre[] = {
	[IFLA_GRE_LINK] = {WANT_U32, .at = AT(link)},
	[IFLA_GRE_IFLAGS] = {WANT_U16_BE, .at = AT(in_flags)},
	[IFLA_GRE_OFLAGS] = {WANT_U16_BE, .at = AT(out_flags)},
	[IFLA_GRE_IKEY] = {WANT_U32, .at = AT(in_key_be)},
	[IFLA_GRE_OKEY] = {WANT_U32, .at = AT(out_key_be)},
	[IFLA_GRE_LOCAL] = {WANT_ADDR, .at = AT(local)},
	[IFLA_GRE_REMOTE] = {WANT_ADDR, .at = AT(remote)},
	[IFLA_GRE_TTL] = {WANT_U8, .at = AT(ttl)},
	[IFLA_GRE_TOS] = {WANT_U8, .at = AT(tos)},
	[IFLA_GRE_PMTUDISC] = {WANT_BOOL, .at = AT(has_df)},
	[IFLA_GRE_ENCAP_LIMIT] = {WANT_U8, .at = AT(limit)},
	[IFLA_GRE_FLOWINFO] = {WANT_U32, .at = AT(flow_be)},
	[IFLA_GRE_FLAGS] = {WANT_TAKE, .take = take_flags},
	[IFLA_GRE_ENCAP_TYPE] = {WANT_U16, .at = AT(encap)},
	[IFLA_GRE_COLLECT_METADATA] = {WANT_THERE, .at = AT(is_external)},
	[IFLA_GRE_IGNORE_DF] = {WANT_BOOL, .at = AT(ignores_df)},
	[IFLA_GRE_FWMARK] = {WANT_U32, .at = AT(mark)},
};
static const struct wants wants_ip = WANTS(want_ip), wants_gre = WANTS(want_gre);

// Kinds of devices. Those without attributes are never taken: trouble.
struct kind {
	const char *name;
	const struct wants *wants;
	uint8_t kind;   // enum iface_tunnel_kind
	uint8_t family; // of outer packets
	uint8_t proto;  // of a device that does not say: what is in its packets
	enum tunnel_trouble trouble;
};

static const struct kind kinds[] = {
	{"gre", &wants_gre, IFACE_GRE, 4, PROTO_ANY, TUNNEL_FINE},
	{"ip6gre", &wants_gre, IFACE_GRE, 6, PROTO_ANY, TUNNEL_FINE},
	{"ipip", &wants_ip, IFACE_IPIP, 4, WIRE_PROTO_IP4, TUNNEL_FINE},
	{"sit", &wants_ip, IFACE_IPIP, 4, WIRE_PROTO_IP6, TUNNEL_FINE},
	{"ip6tnl", &wants_ip, IFACE_IPIP, 6, PROTO_ANY, TUNNEL_FINE},
	{"gretap", &wants_gre, IFACE_GRETAP, 4, PROTO_ANY, TUNNEL_FINE},
	{"ip6gretap", &wants_gre, IFACE_GRETAP, 6, PROTO_ANY, TUNNEL_FINE},
	{.name = "erspan", .trouble = TUNNEL_KIND},
	{.name = "ip6erspan", .trouble = TUNNEL_KIND},
	{.name = "vti", .trouble = TUNNEL_KIND},
	{.name = "vti6", .trouble = TUNNEL_KIND},
	{.name = "bareudp", .trouble = TUNNEL_BAREUDP},
};

static bool is_host(const struct wire_addr *addr, uint8_t family)
{
	static const uint8_t none[sizeof(addr->bytes)];
	const bool is_group =
		family == 4 ? (addr->bytes[0] & 0xf0) == 0xe0 : addr->bytes[0] == 0xff;

	return addr->family == family && !is_group && memcmp(addr->bytes, none, sizeof(none)) != 0;
}

static enum tunnel_trouble find_trouble(const struct kind *kind, const struct draft *draft)
{
	const bool is_gre = kind->kind != IFACE_IPIP, is_ip6 = kind->family == 6;
	const struct {
		bool is_so;
		enum tunnel_trouble trouble;
	} rows[] = {
		{draft->is_external, TUNNEL_EXTERNAL},
		{!is_host(&draft->local, kind->family) || !is_host(&draft->remote, kind->family) ||
				wire_addr_equal(&draft->local, &draft->remote),
			TUNNEL_ENDS},
		{(draft->in_flags | draft->out_flags) & GRE_HAS_SEQUENCE, TUNNEL_SEQUENCE},
		{draft->encap > TUNNEL_ENCAP_FOU || (draft->encap && is_gre) ||
				draft->encap_flags & TUNNEL_ENCAP_FLAG_REMCSUM ||
				(draft->encap && !draft->dest_port),
			TUNNEL_ENCAP},
		{is_ip6 && (be32toh(draft->flow_be) & FLOW_LABEL ||
				   draft->flags & ~(uint32_t)(FLAGS_KNOWN | FLAGS_OF_KERNEL)),
			TUNNEL_FLAGS},
		{!is_ip6 && draft->flags, TUNNEL_FLAGS},
		{draft->mark, TUNNEL_MARK},
		{draft->ignores_df, TUNNEL_IGNORES_DF},
		{!is_gre && draft->proto != PROTO_ANY && draft->proto != WIRE_PROTO_IP4 &&
				draft->proto != WIRE_PROTO_IP6 && draft->proto != WIRE_PROTO_MPLS,
			TUNNEL_MODE},
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].is_so)
			return rows[i].trouble;
	return TUNNEL_FINE;
}

// A device of IP in IPv4 that takes any protocol takes IPv4 and MPLS.
static uint16_t families_of(const struct kind *kind, const struct draft *draft)
{
	if (kind->kind == IFACE_GRETAP)
		return 0;
	if (kind->kind == IFACE_GRE)
		return IFACE_TUNNEL_IP4 | IFACE_TUNNEL_IP6 | IFACE_TUNNEL_MPLS;
	switch (draft->proto) {
	case WIRE_PROTO_IP4:
		return IFACE_TUNNEL_IP4;
	case WIRE_PROTO_IP6:
		return IFACE_TUNNEL_IP6;
	case WIRE_PROTO_MPLS:
		return IFACE_TUNNEL_MPLS;
	}
	return IFACE_TUNNEL_MPLS | IFACE_TUNNEL_IP4 |
	       (kind->proto == WIRE_PROTO_IP4 ? 0 : IFACE_TUNNEL_IP6);
}

static uint16_t flags_of(const struct kind *kind, const struct draft *draft)
{
	const bool is_ip6 = kind->family == 6, is_gre = kind->kind != IFACE_IPIP;
	const bool is_udp = draft->encap == TUNNEL_ENCAP_FOU;
	const uint16_t checksum = is_ip6 ? TUNNEL_ENCAP_FLAG_CSUM6 : TUNNEL_ENCAP_FLAG_CSUM;
	const struct {
		bool is_set;
		uint16_t flag;
	} rows[] = {
		{is_udp, IFACE_TUNNEL_UDP},
		{is_gre ? draft->out_flags & GRE_HAS_CHECKSUM
			: is_udp && draft->encap_flags & checksum,
			IFACE_TUNNEL_CHECKSUM},
		{draft->in_flags & GRE_HAS_CHECKSUM, IFACE_TUNNEL_WANTS_CHECKSUM},
		{draft->out_flags & GRE_HAS_KEY, IFACE_TUNNEL_KEY},
		{draft->in_flags & GRE_HAS_KEY, IFACE_TUNNEL_WANTS_KEY},
		{!is_ip6 && draft->has_df, IFACE_TUNNEL_DF},
		{kind->kind == IFACE_GRETAP && !is_ip6, IFACE_TUNNEL_INNER_DF},
		{is_ip6 ? draft->flags & IP6_TNL_F_USE_ORIG_TCLASS : draft->tos & TOS_INHERIT,
			IFACE_TUNNEL_TOS},
		{is_ip6 && !(draft->flags & IP6_TNL_F_IGN_ENCAP_LIMIT), IFACE_TUNNEL_LIMIT},
	};
	uint16_t flags = IFACE_TUNNEL_LINUX | families_of(kind, draft);

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		flags |= rows[i].is_set ? rows[i].flag : 0;
	return flags;
}

static void translate(const struct kind *kind, const struct draft *draft, struct iface_tunnel *out)
{
	const bool is_ip6 = kind->family == 6;

	out->local = draft->local;
	out->remote = draft->remote;
	out->kind = kind->kind;
	out->ttl = draft->ttl;
	out->tos = (is_ip6 ? be32toh(draft->flow_be) >> CLASS_SHIFT : draft->tos) & DSCP;
	out->flags = flags_of(kind, draft);
	if (out->flags & IFACE_TUNNEL_TOS)
		out->tos = 0;
	if (out->flags & IFACE_TUNNEL_LIMIT)
		out->limit = draft->limit;
	if (out->flags & IFACE_TUNNEL_UDP) {
		out->source_port = draft->source_port;
		out->dest_port = draft->dest_port;
	}
	if (out->flags & IFACE_TUNNEL_KEY)
		out->key = be32toh(draft->out_key_be);
	if (out->flags & IFACE_TUNNEL_WANTS_KEY)
		out->wanted_key = be32toh(draft->in_key_be);
}

bool tunnel_take_data(struct event_link *link, const struct piece *data)
{
	struct draft draft = {.ttl = 0};

	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
		const struct kind *kind = &kinds[i];
		struct event_tunnel *out = &link->tunnel;

		if (strcmp(link->kind, kind->name) != 0)
			continue;
		out->is_tunnel = true;
		out->trouble = kind->trouble;
		if (!kind->wants)
			return true;
		draft.proto = kind->proto;
		if (!attrs_take(kind->wants, data, &draft))
			return false;
		out->link = draft.link;
		out->trouble = find_trouble(kind, &draft);
		if (out->trouble == TUNNEL_FINE)
			translate(kind, &draft, &out->settings);
		return true;
	}
	return true;
}

// --- FOU, over generic netlink

struct udp_draft {
	uint16_t port;
	uint8_t family, protocol, type;
	struct wire_addr local4, local6, peer4, peer6;
	uint32_t ifindex;
};
#define UDP_AT(field) offsetof(struct udp_draft, field)

static const struct want want_udp[] = {
	[FOU_ATTR_PORT] = {WANT_U16_BE, .at = UDP_AT(port)},
	[FOU_ATTR_AF] = {WANT_U8, .at = UDP_AT(family)},
	[FOU_ATTR_IPPROTO] = {WANT_U8, .at = UDP_AT(protocol)},
	[FOU_ATTR_TYPE] = {WANT_U8, .at = UDP_AT(type)},
	[FOU_ATTR_LOCAL_V4] = {WANT_ADDR, .at = UDP_AT(local4)},
	[FOU_ATTR_LOCAL_V6] = {WANT_ADDR, .at = UDP_AT(local6)},
	[FOU_ATTR_PEER_V4] = {WANT_ADDR, .at = UDP_AT(peer4)},
	[FOU_ATTR_PEER_V6] = {WANT_ADDR, .at = UDP_AT(peer6)},
	[FOU_ATTR_IFINDEX] = {WANT_U32, .at = UDP_AT(ifindex)},
};
static const struct wants wants_udp = WANTS(want_udp);

static bool is_all(const struct wire_addr *addr)
{
	static const uint8_t none[sizeof(addr->bytes)];

	return !memcmp(addr->bytes, none, sizeof(none));
}

bool decode_udp_port(const struct nlmsghdr *message, struct mirror_udp_port *out)
{
	struct udp_draft draft = {0};
	struct piece attrs;

	if (!attrs_of(message, sizeof(struct genlmsghdr), &attrs) ||
		!attrs_take(&wants_udp, &attrs, &draft) || !draft.port ||
		!read_family(draft.family))
		return false;
	*out = (struct mirror_udp_port){.port = draft.port,
		.is_ip6 = draft.family == AF_INET6,
		.protocol = draft.protocol};
	out->is_plain =
		draft.type == FOU_ENCAP_DIRECT && is_all(&draft.local4) && is_all(&draft.local6) &&
		is_all(&draft.peer4) && is_all(&draft.peer6) && !draft.ifindex &&
		(draft.protocol == WIRE_PROTO_IP4 || draft.protocol == WIRE_PROTO_IP6 ||
			draft.protocol == WIRE_PROTO_MPLS || draft.protocol == WIRE_PROTO_GRE);
	return true;
}

static const struct want want_family[] = {[CTRL_ATTR_FAMILY_ID] = {WANT_U16, .at = 0}};
static const struct wants wants_family = WANTS(want_family);

uint16_t decode_family(const struct nlmsghdr *message)
{
	struct piece attrs;
	uint16_t id = 0;

	if (!attrs_of(message, sizeof(struct genlmsghdr), &attrs) ||
		!attrs_take(&wants_family, &attrs, &id))
		return 0;
	return id;
}

static const struct want want_metric[] = {[RTAX_MTU] = {WANT_U32, .at = 0}};
static const struct wants wants_metric = WANTS(want_metric);
static const struct want want_path[] = {[RTA_METRICS] = {WANT_INSIDE, .inside = &wants_metric}};
static const struct wants wants_path = WANTS(want_path);

uint32_t decode_route_mtu(const struct nlmsghdr *message)
{
	struct piece attrs;
	uint32_t mtu = 0;

	if (!attrs_of(message, sizeof(struct rtmsg), &attrs) ||
		!attrs_take(&wants_path, &attrs, &mtu))
		return 0;
	return mtu;
}
