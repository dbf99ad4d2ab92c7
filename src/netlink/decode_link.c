// Decodes interfaces, their addresses, neighbours and settings into events. Pure.
#include "netlink/decode_inside.h"

#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define AT(noun, field) offsetof(struct event_##noun, field)

// A port of a bridge. Attributes of 1 byte are flags; those of newer kernels are not in if_link.h.
enum {
	PORT_MCAST_EHT_HOSTS_CNT = 38,
	PORT_MCAST_N_GROUPS = 41,
	PORT_MCAST_MAX_GROUPS = 42,
	PORT_NEIGH_VLAN_SUPPRESS = 43,
};

// Whether an attribute does not matter for frames that workers forward or flood.
static bool is_harmless(unsigned type)
{
	switch (type) {
	case IFLA_BRPORT_LEARNING_SYNC:
	case IFLA_BRPORT_GROUP_FWD_MASK:
	case IFLA_BRPORT_MCAST_EHT_HOSTS_LIMIT:
	case PORT_MCAST_EHT_HOSTS_CNT:
	case PORT_MCAST_N_GROUPS:
	case PORT_MCAST_MAX_GROUPS:
	// They change only where Linux floods ARP and ND, of which it gets all.
	case IFLA_BRPORT_PROXYARP_WIFI:
	case IFLA_BRPORT_NEIGH_SUPPRESS:
	case PORT_NEIGH_VLAN_SUPPRESS:
		return true;
	}
	return type <= IFLA_BRPORT_FAST_LEAVE ||
	       (type >= IFLA_BRPORT_ROOT_ID && type <= IFLA_BRPORT_PAD);
}

static void take_flag(struct event_bridge_port *port, unsigned type, bool is_set)
{
	switch (type) {
	case IFLA_BRPORT_LEARNING:
		port->learns = is_set;
		break;
	case IFLA_BRPORT_UNICAST_FLOOD:
		port->floods = is_set;
		break;
	case IFLA_BRPORT_BCAST_FLOOD:
		port->no_broadcasts = !is_set;
		break;
	case IFLA_BRPORT_MCAST_FLOOD:
		port->no_multicasts = !is_set;
		break;
	case IFLA_BRPORT_MODE:
		port->is_hairpin = is_set;
		break;
	case IFLA_BRPORT_ISOLATED:
		port->is_isolated = is_set;
		break;
	case IFLA_BRPORT_MCAST_TO_UCAST:
		port->to_unicast = is_set;
		break;
	case IFLA_BRPORT_PROXYARP:
		port->answers |= is_set;
		break;
	default:
		port->is_odd |= is_set && !is_harmless(type);
	}
}

static bool take_port(void *out, const struct piece *value)
{
	struct event_bridge_port *port = out;
	struct piece rest = *value;
	const struct nlattr *attr;

	port->is_known = true;
	while ((attr = attrs_next(&rest))) {
		const struct piece one = attrs_value(attr);
		const uint8_t *bytes = one.bytes;
		bool is_set = false;

		for (uint32_t i = 0; i < one.n; i++)
			is_set |= bytes[i] != 0;
		if (attrs_type(attr) == IFLA_BRPORT_STATE && one.n)
			port->state = bytes[0];
		else if (attrs_type(attr) == IFLA_BRPORT_MULTICAST_ROUTER && one.n)
			port->router = bytes[0];
		else
			take_flag(port, attrs_type(attr), is_set);
	}
	return rest.n == 0;
}

// The meaning of IFLA_INFO_DATA and IFLA_INFO_SLAVE_DATA depends on the kinds, which may come
// after them; IFLA_LINK is only valid if it is not accompanied by a namespace.
struct iface_draft {
	struct event_link iface; // first: filled in by the tables of link attributes
	struct piece data, slave_data;
	bool lower_is_elsewhere, carrier_is_reported;
};

static bool take_data(void *out, const struct piece *value)
{
	((struct iface_draft *)out)->data = *value;
	return true;
}

static bool take_slave_data(void *out, const struct piece *value)
{
	((struct iface_draft *)out)->slave_data = *value;
	return true;
}

static bool take_carrier(void *out, const struct piece *value)
{
	struct iface_draft *draft = out;

	if (!value->n)
		return false;
	draft->carrier_is_reported = true;
	draft->iface.carrier = *(const uint8_t *)value->bytes != 0;
	return true;
}

static const struct want want_info[] = {
	[IFLA_INFO_KIND] = {WANT_TEXT, .at = AT(link, kind)},
	[IFLA_INFO_SLAVE_KIND] = {WANT_TEXT, .at = AT(link, slave_kind)},
	[IFLA_INFO_DATA] = {WANT_TAKE, .take = take_data},
	[IFLA_INFO_SLAVE_DATA] = {WANT_TAKE, .take = take_slave_data},
};
static const struct want want_xdp[] = {
	[IFLA_XDP_ATTACHED] = {WANT_BOOL, .at = AT(link, has_xdp)},
};
static const struct wants wants_info = WANTS(want_info), wants_xdp = WANTS(want_xdp);
static const struct want want_iface[] = {
	[IFLA_ADDRESS] = {WANT_MAC, .at = AT(link, mac)},
	[IFLA_IFNAME] = {WANT_TEXT, .at = AT(link, name)},
	[IFLA_MTU] = {WANT_U32, .at = AT(link, mtu)},
	[IFLA_LINK] = {WANT_U32, .at = AT(link, lower)},
	[IFLA_MASTER] = {WANT_U32, .at = AT(link, master)},
	[IFLA_PROMISCUITY] = {WANT_U32, .at = AT(link, promiscuity)},
	[IFLA_TXQLEN] = {WANT_U32, .at = AT(link, queue_packets)},
	[IFLA_OPERSTATE] = {WANT_U8, .at = AT(link, operstate)},
	[IFLA_LINKINFO] = {WANT_INSIDE, .inside = &wants_info},
	[IFLA_CARRIER] = {WANT_TAKE, .take = take_carrier},
	[IFLA_LINK_NETNSID] = {WANT_THERE, .at = offsetof(struct iface_draft, lower_is_elsewhere)},
	[IFLA_XDP] = {WANT_INSIDE, .inside = &wants_xdp},
};
static const struct wants wants_iface = WANTS(want_iface);

static const struct want want_vlan[] = {
	[IFLA_VLAN_ID] = {WANT_U16, .at = AT(link, vlan_id)},
	[IFLA_VLAN_EGRESS_QOS] = {WANT_THERE, .at = AT(link, sets_priorities)},
	[IFLA_VLAN_PROTOCOL] = {WANT_U16_BE, .at = AT(link, vlan_protocol)},
};
static const struct want want_vrf[] = {[IFLA_VRF_TABLE] = {WANT_U32, .at = AT(link, vrf_table)}};
enum { HSR_INTERLINK = 8 }; // IFLA_HSR_INTERLINK, missing in headers before Linux 6.10
static const struct want want_hsr[] = {
	[IFLA_HSR_SLAVE1] = {WANT_U32, .at = AT(link, ring[0])},
	[IFLA_HSR_SLAVE2] = {WANT_U32, .at = AT(link, ring[1])},
	[HSR_INTERLINK] = {WANT_U32, .at = AT(link, ring[2])},
};
static const struct wants wants_vlan = WANTS(want_vlan), wants_vrf = WANTS(want_vrf),
			  wants_hsr = WANTS(want_hsr);

static bool take_call(void *out, const struct piece *value)
{
	bool calls = false;

	if (!value->n)
		return false;
	calls = *(const uint8_t *)value->bytes != 0;
	((struct event_link *)out)->bridge.calls_hooks |= calls;
	return true;
}

// A spanning tree for groups of VLANs (BR_BOOLOPT_MST_ENABLE), and options of newer kernels; all
// others concern groups only, or addresses of the bridge itself.
enum { OPTION_COMMON_MACS = 1 << 4 };    // BR_BOOLOPT_FDB_LOCAL_VLAN_0
enum { OPTION_SNOOPS_BY_VLAN = 1 << 1 }; // BR_BOOLOPT_MCAST_VLAN_SNOOPING
enum { OPTIONS_HARMLESS = 1 << 0 | OPTION_SNOOPS_BY_VLAN | 1 << 3 | OPTION_COMMON_MACS };

static bool take_options(void *out, const struct piece *value)
{
	struct br_boolopt_multi options;

	if (value->n < sizeof(options))
		return false;
	memcpy(&options, value->bytes, sizeof(options));
	((struct event_link *)out)->bridge.is_odd = options.optval & ~(uint32_t)OPTIONS_HARMLESS;
	((struct event_link *)out)->bridge.has_common_macs = options.optval & OPTION_COMMON_MACS;
	((struct event_link *)out)->bridge.snooping.by_vlan =
		options.optval & OPTION_SNOOPS_BY_VLAN;
	return true;
}

enum { BR_FDB_MAX_LEARNED = 49 }; // IFLA_BR_FDB_MAX_LEARNED, missing in headers before Linux 6.7
static const struct want want_bridge[] = {
	[IFLA_BR_AGEING_TIME] = {WANT_U32, .at = AT(link, bridge.ageing_cs)},
	[IFLA_BR_STP_STATE] = {WANT_U32, .at = AT(link, bridge.stp)},
	[IFLA_BR_MCAST_SNOOPING] = {WANT_BOOL, .at = AT(link, bridge.snoops)},
	[IFLA_BR_VLAN_FILTERING] = {WANT_BOOL, .at = AT(link, bridge.filters_vlans)},
	[IFLA_BR_VLAN_STATS_ENABLED] = {WANT_BOOL, .at = AT(link, bridge.counts_vlans)},
	[IFLA_BR_VLAN_PROTOCOL] = {WANT_U16_BE, .at = AT(link, bridge.vlan_protocol)},
	[IFLA_BR_MULTI_BOOLOPT] = {WANT_TAKE, .take = take_options},
	[BR_FDB_MAX_LEARNED] = {WANT_U32, .at = AT(link, bridge.max_macs)},
	[IFLA_BR_NF_CALL_IPTABLES] = {WANT_TAKE, .take = take_call},
	[IFLA_BR_NF_CALL_IP6TABLES] = {WANT_TAKE, .take = take_call},
	[IFLA_BR_NF_CALL_ARPTABLES] = {WANT_TAKE, .take = take_call},
};
static const struct wants wants_bridge = WANTS(want_bridge);

static bool take_iface_data(struct iface_draft *draft)
{
	if (!strcmp(draft->iface.slave_kind, "bridge") && draft->slave_data.n &&
		!take_port(&draft->iface.port, &draft->slave_data))
		return false;
	if (!strcmp(draft->iface.kind, "bridge"))
		return attrs_take(&wants_bridge, &draft->data, draft) &&
		       read_snooping(&draft->data, &draft->iface.bridge.snooping);
	if (!strcmp(draft->iface.kind, "vlan"))
		return attrs_take(&wants_vlan, &draft->data, draft);
	if (!strcmp(draft->iface.kind, "vrf"))
		return attrs_take(&wants_vrf, &draft->data, draft);
	if (!strcmp(draft->iface.kind, "hsr"))
		return attrs_take(&wants_hsr, &draft->data, draft);
	if (!strcmp(draft->iface.kind, "vxlan"))
		return vxlan_take_data(&draft->iface, &draft->data);
	return tunnel_take_data(&draft->iface, &draft->data);
}

static bool take_protinfo(void *out, const struct piece *value)
{
	return take_port(&((struct event_port *)out)->port, value);
}

static const struct want want_port[] = {
	[IFLA_MASTER] = {WANT_U32, .at = AT(port, master)},
	[IFLA_PROTINFO] = {WANT_TAKE, .take = take_protinfo},
};
static const struct wants wants_port = WANTS(want_port);

// What a bridge tells of a port when its attributes change. RTM_DELLINK: it leaves the bridge, as
// the interface's own message says, too.
static enum decode_result port_read(const struct nlmsghdr *message, struct event *out)
{
	const struct ifinfomsg *head = NLMSG_DATA(message);
	struct event_port port = {.ifindex = head->ifi_index};

	if (out->is_delete)
		return DECODE_IGNORED;
	if (head->ifi_index <= 0 ||
		read_attrs(message, sizeof(*head), &wants_port, &port) != DECODE_EVENT)
		return DECODE_MALFORMED;
	if (!port.port.is_known)
		return DECODE_IGNORED;
	out->kind = EVENT_BRIDGE_PORT;
	out->port = port;
	return DECODE_EVENT;
}

// What is below it, or what a tunnel sends by, is in another network namespace.
static void leave_elsewhere(struct event_link *link)
{
	link->lower = 0;
	if (!link->tunnel.is_tunnel)
		return;
	link->tunnel.trouble = TUNNEL_ELSEWHERE;
	link->tunnel.settings = (struct iface_tunnel){.kind = 0};
}

static enum decode_result iface_read(const struct nlmsghdr *message, struct event *out)
{
	const struct ifinfomsg *head = NLMSG_DATA(message);
	struct iface_draft draft = {
		.iface = {.ifindex = head->ifi_index, .flags = head->ifi_flags}};

	if (head->ifi_family == AF_BRIDGE)
		return port_read(message, out);
	// In AF_INET6 the same message describes nothing that we use.
	if (head->ifi_family != AF_UNSPEC)
		return DECODE_IGNORED;
	if (head->ifi_index <= 0)
		return DECODE_MALFORMED;
	if (read_attrs(message, sizeof(*head), &wants_iface, &draft) != DECODE_EVENT ||
		!take_iface_data(&draft))
		return DECODE_MALFORMED;
	if (!draft.carrier_is_reported)
		draft.iface.carrier = head->ifi_flags & IFF_LOWER_UP;
	if (draft.lower_is_elsewhere)
		leave_elsewhere(&draft.iface);
	out->iface = draft.iface;
	return DECODE_EVENT;
}
const struct reader read_iface = {sizeof(struct ifinfomsg), EVENT_LINK, sizeof(struct event_link),
	iface_read};

static const struct want want_address[] = {
	[IFA_ADDRESS] = {WANT_ADDR, .at = AT(address, prefix.addr)},
	[IFA_LOCAL] = {WANT_ADDR, .at = AT(address, local)},
	[IFA_FLAGS] = {WANT_U32, .at = AT(address, flags)},
};
static const struct wants wants_address = WANTS(want_address);

static enum decode_result address_read(const struct nlmsghdr *message, struct event *out)
{
	const struct ifaddrmsg *head = NLMSG_DATA(message);
	struct event_address *address = &out->address;
	uint8_t family = read_family(head->ifa_family);

	if (!family)
		return DECODE_IGNORED;
	address->ifindex = head->ifa_index;
	address->prefix.len = head->ifa_prefixlen;
	address->flags = head->ifa_flags;
	address->scope = head->ifa_scope;
	if (read_attrs(message, sizeof(*head), &wants_address, address) != DECODE_EVENT)
		return DECODE_MALFORMED;
	// For IPv4, IFA_ADDRESS is the peer; IPv6 sends IFA_LOCAL only if there is a peer.
	if (!address->local.family)
		address->local = address->prefix.addr;
	if (!address->prefix.addr.family)
		address->prefix.addr = address->local;
	if (address->local.family != family || address->prefix.addr.family != family ||
		address->prefix.len > (family == 4 ? 32 : 128))
		return DECODE_MALFORMED;
	return DECODE_EVENT;
}
const struct reader read_address = {sizeof(struct ifaddrmsg), EVENT_ADDRESS,
	sizeof(struct event_address), address_read};

static bool take_mac(void *out, const struct piece *value)
{
	struct event_neighbour *neighbour = out;

	neighbour->has_mac = value->n == sizeof(neighbour->mac);
	if (neighbour->has_mac)
		memcpy(&neighbour->mac, value->bytes, sizeof(neighbour->mac));
	return true;
}

static const struct want want_neighbour[] = {
	[NDA_DST] = {WANT_ADDR, .at = AT(neighbour, addr)},
	[NDA_LLADDR] = {WANT_TAKE, .take = take_mac},
	[NDA_PROTOCOL] = {WANT_U8, .at = AT(neighbour, protocol)},
	[NDA_FLAGS_EXT] = {WANT_U32, .at = AT(neighbour, ext_flags)},
};
static const struct wants wants_neighbour = WANTS(want_neighbour);

static enum decode_result neighbour_read(const struct nlmsghdr *message, struct event *out)
{
	const struct ndmsg *head = NLMSG_DATA(message);
	struct event_neighbour *neighbour = &out->neighbour;
	uint8_t family = read_family(head->ndm_family);

	if (head->ndm_family == AF_BRIDGE)
		return fdb_read(message, out);
	if (!family)
		return DECODE_IGNORED;
	neighbour->ifindex = head->ndm_ifindex;
	neighbour->state = head->ndm_state;
	neighbour->flags = head->ndm_flags;
	if (read_attrs(message, sizeof(*head), &wants_neighbour, neighbour) != DECODE_EVENT ||
		neighbour->addr.family != family)
		return DECODE_MALFORMED;
	return DECODE_EVENT;
}
const struct reader read_neighbour = {sizeof(struct ndmsg), EVENT_NEIGHBOUR,
	sizeof(struct event_neighbour), neighbour_read};

static const struct want want_netconf[] = {
	[NETCONFA_IFINDEX] = {WANT_U32, .at = AT(netconf, ifindex)},
	[NETCONFA_FORWARDING] = {WANT_U32, .at = AT(netconf, forwarding)},
	[NETCONFA_RP_FILTER] = {WANT_U32, .at = AT(netconf, rp_filter)},
	[NETCONFA_MC_FORWARDING] = {WANT_U32, .at = AT(netconf, mc_forwarding)},
	[NETCONFA_PROXY_NEIGH] = {WANT_U32, .at = AT(netconf, proxy_neigh)},
	[NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN] = {WANT_U32, .at = AT(netconf, ignore_linkdown)},
	[NETCONFA_INPUT] = {WANT_U32, .at = AT(netconf, input)},
};
static const struct wants wants_netconf = WANTS(want_netconf);

static enum decode_result netconf_read(const struct nlmsghdr *message, struct event *out)
{
	const struct netconfmsg *head = NLMSG_DATA(message);
	struct event_netconf *netconf = &out->netconf;

	*netconf = (struct event_netconf){0, read_family(head->ncm_family), -1, -1, -1, -1, -1, -1};
	if (head->ncm_family == AF_MPLS)
		netconf->family = EVENT_MPLS;
	if (!netconf->family)
		return DECODE_IGNORED;
	if (read_attrs(message, sizeof(*head), &wants_netconf, netconf) != DECODE_EVENT ||
		!netconf->ifindex)
		return DECODE_MALFORMED;
	return DECODE_EVENT;
}
const struct reader read_netconf = {sizeof(struct netconfmsg), EVENT_NETCONF,
	sizeof(struct event_netconf), netconf_read};
