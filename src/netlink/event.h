// What netlink says, in our words: the reader makes these of bytes, the mirror acts on them. Inside
// sync. Plain data, no pointers.
#pragma once

#include "wire/addr.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	EVENT_MAX_HOPS = 64,
	EVENT_NAME_MAX = 16,
	EVENT_KIND_MAX = 16, // of a link: "vlan", "vrf", "tun", "macvlan"
	EVENT_MAX_GROUP = 64,
	EVENT_FOREIGN_MAX = 128,
};

enum event_kind {
	EVENT_LINK,
	EVENT_ADDRESS,
	EVENT_NEIGHBOUR,
	EVENT_ROUTE,
	EVENT_NEXTHOP,
	EVENT_NETCONF,
	EVENT_RULE,
	EVENT_QDISC,          // tc: a qdisc or filter on an interface
	EVENT_POLICY,         // xfrm
	EVENT_POLICY_DEFAULT, // xfrm: for packets that no policy is about
	EVENT_CHAIN,          // nftables base chain
	EVENT_MROUTE,         // multicast route
	EVENT_DONE,           // end of a dump; error: of a dump or a request
	EVENT_ERROR,
	N_EVENT_KINDS
};

// Sets of kinds: 1 << enum event_kind each.
static inline bool event_kinds_have(uint32_t kinds, enum event_kind kind)
{
	return kinds >> kind & 1;
}

struct event_link {
	int ifindex, master;
	int lower;      // IFLA_LINK: of a VLAN, macvlan, tunnel; 0: none, or in another namespace
	                // (IFLA_LINK_NETNSID)
	uint32_t flags; // IFF_UP, IFF_LOWER_UP...
	uint32_t mtu;
	struct wire_mac mac;
	char name[EVENT_NAME_MAX], kind[EVENT_KIND_MAX], slave_kind[EVENT_KIND_MAX];
	uint16_t vlan_id, vlan_protocol; // host order; kind "vlan"
	bool sets_priorities;            // the same: by a map from Linux's own (egress-qos-map)
	uint32_t vrf_table;              // kind "vrf"
	int ring[3];                     // kind "hsr": what is in it, none of which has a master
	uint8_t operstate;
	bool carrier;
	bool has_xdp;
};

struct event_address {
	int ifindex;
	struct wire_prefix prefix; // as written: with host bits
	struct wire_addr local;    // IFA_LOCAL
	uint32_t flags;            // IFA_F_TENTATIVE...
	uint8_t scope;
};

struct event_neighbour {
	int ifindex;
	struct wire_addr addr;
	struct wire_mac mac;
	bool has_mac;
	uint16_t state;     // NUD_*
	uint8_t flags;      // NTF_*
	uint32_t ext_flags; // NTF_EXT_*
	uint8_t protocol;   // NDA_PROTOCOL
};

struct event_hop {
	struct wire_addr via; // family 0: on link; may be of the other family
	int ifindex;
	uint16_t weight; // 1 to 256 (kernel: rtnh_hops + 1); 65535: next-hop groups of 16 bit
	uint8_t flags;   // RTNH_F_DEAD, RTNH_F_LINKDOWN, RTNH_F_ONLINK...
	bool has_encap;  // MPLS, SRv6...: not for workers
};

// What the kernel (6.18; seen by trying) tells of routes, in order of what happened:
// - IPv4. Routes of the same prefix, TOS and metric are an ordered list of which the first counts.
//   NLM_F_REPLACE in nl_flags: in place of the list's first. NLM_F_APPEND: a further one at the
//   end. NLM_F_CREATE alone: a further one at the front (`ip route prepend`). NLM_F_CREATE |
//   NLM_F_EXCL: the list was empty. Delete: of the one that is the same in hops, type, protocol...
//   A dump tells a list in its order. Not told at all: what goes with a link set down, an address
//   or a next-hop object (but `connected` routes of an address that goes are told).
// - IPv6. Routes of the same prefix and metric via gateways are one route with several hops; each
//   message for it that is no delete has ALL its hops as they are now (append, prepend, replace,
//   add alike). A delete has those that went: the only hop, or all of them, or one of several, and
//   then the rest stays without a word. Routes without gateway (on link) and those by nh_id never
//   join: they stand beside the others as in IPv4, appended with NLM_F_APPEND; the first counts.
//   NLM_F_REPLACE is in place of all hops of the route that is replaced. A link set down takes its
//   hop out of a route of several without a word (RTNH_F_DEAD in the next dump); routes whose only
//   hop it was are told as deleted.
// - A route by nh_id comes with the hops that it has now; when its next-hop object or group changes
//   it is told again with NLM_F_REPLACE (sysctl nexthop_compat_mode, 1 by default), with the
//   sequence and the port ID of the object's own message, which comes before.
// - Next-hop objects: those on a link that is set down or loses its carrier go without a word, and
//   IPv4 routes by them with them; deleting one tells the groups that it was in (as deleted when
//   they are empty now), no route.
// - An IPv6 route with a lifetime (router advertisements; `expires`) counts no more once that is
//   over. The kernel tells of it up to a minute later, when it has collected it, and tells nothing
//   when an advertisement makes the lifetime longer.
// - While a dump runs, what is told (dumped or not) is never older than what was told before.
struct event_route {
	struct wire_prefix prefix;
	struct wire_addr prefsrc, src; // src.family != 0: a source-specific route
	uint8_t src_len;
	uint32_t table, metric, flags, nh_id; // flags: RTM_F_*; nh_id 0: none
	uint32_t mtu;                         // RTAX_MTU, 0: none
	uint32_t metrics;                     // a hash of all RTAX_*, 0: none
	int32_t expires;                      // in so many 1/100 s; negative: so long ago; 0: never
	uint8_t type, protocol, scope, tos;
	uint16_t n_hops;
	bool too_many_hops; // more than EVENT_MAX_HOPS: the rest is not here
	struct event_hop hop[EVENT_MAX_HOPS];
};

struct event_nexthop {
	uint32_t id;
	struct event_hop hop; // when it is no group
	bool is_blackhole, is_group, is_resilient, is_fdb;
	uint8_t family, protocol;
	uint16_t n_members;
	bool too_many_members;
	struct {
		uint32_t id;
		uint16_t weight; // 1 to 65536 as 0xffff at most
	} member[EVENT_MAX_GROUP];
};

// One interface's (or "all": -1, "default": -2) settings; -1: not told.
struct event_netconf {
	int ifindex;
	uint8_t family; // 4, 6
	int forwarding, rp_filter, ignore_linkdown, proxy_neigh, mc_forwarding;
};

struct event_rule {
	uint8_t family;
	uint32_t priority, table;
	uint8_t action;
	bool is_l3mdev;    // the rule that VRF devices need
	bool has_selector; // anything but "from all"
};

enum event_side { EVENT_INGRESS = 1, EVENT_EGRESS = 2 };

// tc, xfrm, nftables, multicast: only that there is something, and what to call it. Kind, ifindex
// and name are what a deletion finds it by; one with an empty name takes all of its kind.
struct event_foreign {
	int ifindex;    // 0: concerns all
	uint8_t family; // 4, 6; 0: both
	uint8_t hook;   // nftables: NF_INET_*, also for family netdev (NF_INET_INGRESS, egress: 6);
	                // not told by a deletion
	uint8_t sides;  // qdisc: enum event_side; "clsact" is both
	char name[EVENT_FOREIGN_MAX]; // "table inet filter chain forward"
	bool is_part;                 // a deletion: of some of its devices only, perhaps
	bool is_harmless; // e.g. the qdisc that every interface has; a hook for local packets only
};

struct event {
	uint8_t kind; // enum event_kind
	bool is_delete;
	bool is_dump;               // answers a dump of ours
	uint16_t nl_flags;          // NLM_F_REPLACE, NLM_F_APPEND, NLM_F_CREATE...
	uint32_t sequence, port_id; // of the request that this answers or that caused it
	int error;                  // EVENT_ERROR, EVENT_DONE: 0 or -errno
	union {
		struct event_link iface;
		struct event_address address;
		struct event_neighbour neighbour;
		struct event_route route;
		struct event_nexthop nexthop;
		struct event_netconf netconf;
		struct event_rule rule;
		struct event_foreign foreign;
	};
};
