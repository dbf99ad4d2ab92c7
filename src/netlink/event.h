// Decoded netlink messages: produced by decode, consumed by the mirror. Plain data, no pointers.
// Internal to netlink.
#pragma once

#include "netlink/filter.h"
#include "netlink/queue.h"

#include "iface/iface.h"
#include "wire/addr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	EVENT_MAX_HOPS = 64,
	EVENT_NAME_MAX = 16,
	EVENT_KIND_MAX = 16, // of an interface: "vlan", "vrf", "tun", "macvlan"
	EVENT_MAX_GROUP = 64,
	EVENT_FOREIGN_MAX = 128,
	EVENT_MAX_LABELS = 3, // MPLS labels in front of a packet
};

enum event_kind {
	EVENT_LINK,
	EVENT_ADDRESS,
	EVENT_NEIGHBOUR,
	EVENT_ROUTE,
	EVENT_NEXTHOP,
	EVENT_NETCONF,
	EVENT_RULE,
	EVENT_QDISC,  // tc: a qdisc on an interface; also `queue`, of one that sends
	EVENT_CLASS,  // tc: only `queue`: a class of htb, or a filter that chooses one
	EVENT_FILTER, // tc: a filter of a qdisc `ingress` or `clsact`
	EVENT_ACTION, // tc: actions were changed, which filters may use: no further content,
	              // but filters are now reported differently
	EVENT_POLICY, // xfrm
	EVENT_POLICY_DEFAULT, // xfrm: for packets that match no policy
	EVENT_CHAIN,          // nftables base chain
	EVENT_MROUTE,         // multicast route
	EVENT_BRIDGE_PORT,    // attributes of a port of a bridge
	EVENT_VLANS,          // VLANs of a port of a bridge
	EVENT_FDB,            // a MAC address of a bridge
	EVENT_REMOTE,         // a MAC address of a VXLAN device, and a remote end
	EVENT_GROUPS,         // groups of a bridge, and its ports behind which there are routers
	EVENT_LABEL,          // a route of an MPLS label
	EVENT_DONE,           // end of a dump; error: of a dump or a request
	EVENT_ERROR,
	N_EVENT_KINDS
};

// Sets of kinds: 1 << enum event_kind each.
static inline bool event_kinds_have(uint32_t kinds, enum event_kind kind)
{
	return kinds >> kind & 1;
}

// How a bridge snoops. Index 0: IPv4, 1: IPv6. Times are in 1/100 s.
struct event_snooping {
	bool by_vlan;                  // each VLAN for itself
	bool is_querier;               // it asks hosts itself
	uint8_t router;                // MDB_RTR_TYPE_*, of its own interface
	bool sees_sources[2];          // it follows which senders hosts want (IGMPv3, MLDv2)
	bool has_address6;             // from which it has asked hosts
	uint64_t other_cs[2];          // until another querier is forgotten; 0: there is none
	uint64_t response_cs;          // within which hosts answer
	uint64_t query_cs, startup_cs; // between two queries; at first
};

// An interface of kind "bridge".
struct event_bridge {
	uint32_t ageing_cs; // in 1/100 s
	uint32_t stp;       // 0: it runs no spanning tree
	uint32_t max_macs;  // that it learns; 0: no limit
	bool filters_vlans;
	bool counts_vlans;      // Linux has counters for each
	uint16_t vlan_protocol; // EtherType of its tags, host order; 0: not reported
	bool is_odd; // it has a spanning tree for groups of VLANs, or an option that we do not know
	bool calls_hooks;     // its packets pass hooks of IP (nf_call_iptables and others)
	bool has_common_macs; // filtering, it looks its own addresses up in VLAN 0
	bool snoops;          // it learns from IGMP and MLD which ports want a group
	struct event_snooping snooping;
};

// An interface in a bridge.
struct event_bridge_port {
	bool is_known; // reported
	uint8_t state; // BR_STATE_*
	bool learns, floods, is_hairpin, is_isolated;
	bool no_broadcasts, no_multicasts; // frames to all, and to other groups, are not flooded to
	                                   // it
	bool answers;    // Linux answers ARP in place of hosts behind it, and floods
	                 // nothing to it (proxy_arp)
	bool to_unicast; // frames to groups are sent to each host that wants them
	uint8_t router;  // MDB_RTR_TYPE_*: whether there is a multicast router
	bool is_odd; // another attribute is set that acts on unicast frames, or that we do not know
};

// Why workers cannot serve a tunnel device.
enum tunnel_trouble {
	TUNNEL_FINE,
	TUNNEL_KIND,
	TUNNEL_BAREUDP,
	TUNNEL_EXTERNAL,
	TUNNEL_ENDS,
	TUNNEL_SEQUENCE,
	TUNNEL_ENCAP,
	TUNNEL_FLAGS,
	TUNNEL_MARK,
	TUNNEL_IGNORES_DF,
	TUNNEL_MODE,
	TUNNEL_VXLAN_SOURCE,
	TUNNEL_VXLAN_HEADER,
	TUNNEL_VXLAN_ANSWERS,
	TUNNEL_VXLAN_OPTION,
	TUNNEL_ELSEWHERE,
	TUNNEL_LOCAL, // from here on: because of other devices
	TUNNEL_LINK,
	TUNNEL_TWIN,
	TUNNEL_VXLAN_TWIN,
	TUNNEL_NO_NUMBER,
	TUNNEL_VXLAN_PORT,
	N_TUNNEL_TROUBLES
};

// A tunnel device.
struct event_tunnel {
	bool is_tunnel;
	uint8_t trouble; // enum tunnel_trouble
	int link;        // it sends by this interface, or in the VRF of this device; 0: any
	struct iface_tunnel settings; // without trouble: all but link, path_mtu, vrf and vxlan
	bool learns;                  // VXLAN: behind which remote ends addresses are
	uint32_t ageing_s;            // after which it forgets them
};

struct event_link {
	int ifindex, master;
	int lower;      // IFLA_LINK of a VLAN, macvlan or tunnel; 0: none, or in another namespace
	                // (IFLA_LINK_NETNSID)
	uint32_t flags; // IFF_UP, IFF_LOWER_UP...
	uint32_t mtu;
	uint32_t promiscuity;   // how many want all frames
	uint32_t queue_packets; // that a queue without a limit of its own holds (txqueuelen)
	struct wire_mac mac;
	char name[EVENT_NAME_MAX], kind[EVENT_KIND_MAX], slave_kind[EVENT_KIND_MAX];
	uint16_t vlan_id, vlan_protocol; // host order; kind "vlan"
	bool sets_priorities;            // likewise, by a map from the kernel's own priority
	                                 // (egress-qos-map)
	uint32_t vrf_table;              // kind "vrf"
	int ring[3];                     // kind "hsr": its ports, none of which has a master
	uint8_t operstate;
	bool carrier;
	bool has_xdp;
	struct event_bridge bridge;    // kind "bridge"
	struct event_bridge_port port; // slave_kind "bridge"
	struct event_tunnel tunnel;
};

struct event_port {
	int ifindex, master;
	struct event_bridge_port port;
};

// Some VLANs of a port of a bridge, or of a bridge itself, whether it filters by them or not. A bit
// for each.
enum { EVENT_VIDS = 4096 };
struct event_vlans {
	int ifindex;
	uint16_t pvid;                      // one of `has`; 0: none of them is the PVID
	uint64_t has[EVENT_VIDS / 64];      // those that are told of
	uint64_t untagged[EVENT_VIDS / 64]; // of these
	uint64_t odd[EVENT_VIDS / 64]; // of these: they do not forward, or do what workers do not
};

struct event_fdb {
	int ifindex, bridge; // the same: an address of the bridge itself
	struct wire_mac mac;
	uint16_t vlan; // 0: none
	bool is_plain; // frames to it are just forwarded to that port
};

// A remote end of a VXLAN device: where the device sends frames to `mac`, or, if that is 0, those
// that it floods. There may be several for 0 and for groups.
struct event_remote {
	int ifindex; // of the device
	struct wire_mac mac;
	struct wire_addr addr; // family 0: `nexthop` says where
	uint32_t nexthop;      // id of a next-hop object; 0: none
	uint32_t vni;          // with has_vni: other than the device's
	int link;              // by this interface only; 0: any
	uint16_t udp_port;     // 0: the device's
	bool has_vni;
	bool is_learnt; // by the device, which forgets it, too
};

// A group that is wanted at a port of a bridge, or by the bridge's own interface.
struct event_group {
	int ifindex;
	uint16_t vlan;  // 0: none
	uint8_t family; // 4, 6; 0: a MAC address
	bool has_source;
	bool is_odd; // what is sent by some is wanted, or by all but some
	uint8_t addr[16], source[16];
};

// A port behind which there is a multicast router. Only a dump says of which families; a message
// about a change says neither.
struct event_router {
	int ifindex; // 0: none
	bool for4, for6, has_vlan;
};

// A message of a dump has less than 32 KiB, and thus never too many.
enum { EVENT_MAX_GROUPS = 1024, EVENT_MAX_ROUTERS = 1024 };
struct event_groups {
	int bridge;
	uint16_t n, n_routers;
	bool too_many; // the excess is dropped
	struct event_router router[EVENT_MAX_ROUTERS];
	struct event_group group[EVENT_MAX_GROUPS];
};

struct event_address {
	int ifindex;
	struct wire_prefix prefix; // as received: host bits not cleared
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
	uint16_t weight; // 1 to 256 (kernel: rtnh_hops + 1); up to 65535 with 16-bit next-hop
	                 // groups
	uint8_t flags;   // RTNH_F_DEAD, RTNH_F_LINKDOWN, RTNH_F_ONLINK...
	bool has_encap;  // SRv6, more than EVENT_MAX_LABELS labels...: not supported by workers
	// MPLS labels that are pushed, the outermost first, and their TTL: 0: that of the packet,
	// -1: as set for all (net.mpls.ip_ttl_propagate).
	uint8_t n_labels;
	int16_t label_ttl;
	uint16_t encap_type; // LWTUNNEL_ENCAP_*
	uint32_t label[EVENT_MAX_LABELS];
};

// A route of a received MPLS label: it is popped, and its hops push others.
struct event_label {
	uint32_t label;
	int propagates;     // its TTL to the packet: 0, 1; -1: as set for all
	uint16_t n_hops;    // at most EVENT_MAX_HOPS
	bool too_many_hops; // the excess is dropped
	struct event_hop hop[EVENT_MAX_HOPS];
};

// What the kernel notifies about routes, in the order of the changes (observed on 6.18):
// - IPv4. Routes of the same prefix, TOS and metric form an ordered list; the first one is used.
//   nl_flags: NLM_F_REPLACE replaces the first in the list. NLM_F_APPEND adds at the end.
//   NLM_F_CREATE alone adds at the front (`ip route prepend`). NLM_F_CREATE | NLM_F_EXCL: the list
//   was empty. A delete removes the route with the same hops, type, protocol... A dump returns a
//   list in its order. There is no notification for routes lost because an interface was set down
//   or an address or next-hop object was removed (except for `connected` routes of a removed
//   address).
// - IPv6. Routes of the same prefix and metric via gateways form one multipath route. Every message
//   that is not a delete carries ALL its hops as they are now (append, prepend, replace, add
//   alike). A delete carries the hops that were removed: the only hop, all of them, or one of
//   several, in which case the remaining hops are not reported. Routes without a gateway (on link)
//   and routes by nh_id are never merged: they stay separate as in IPv4, appended with
//   NLM_F_APPEND; the first one is used. NLM_F_REPLACE replaces all hops of the replaced route.
//   Setting an interface down removes its hop from a multipath route without a notification
//   (RTNH_F_DEAD in the next dump); routes whose only hop it was are reported as deleted.
// - A route by nh_id carries its current hops. When its next-hop object or group changes, the route
//   is reported again with NLM_F_REPLACE (sysctl nexthop_compat_mode, 1 by default), with the
//   sequence number and port ID of the object's own message, which precedes it.
// - Next-hop objects on an interface that is set down or loses its carrier are removed without a
//   notification, and so are IPv4 routes that use them. Deleting an object reports the groups that
//   contained it (as deleted if they are now empty), but no route.
// - An IPv6 route with a lifetime (router advertisements; `expires`) is no longer used once it has
//   expired. The kernel reports it up to a minute later, when it garbage-collects the route, and
//   sends nothing when an advertisement extends the lifetime.
// - Sysctls change what is reported. nexthop_compat_mode 0: a route by nh_id carries no hops, is
// not
//   reported again when its object changes, nor (IPv6) when it is removed with its object.
//   ipv6.route.skip_notify_on_dev_down 1: no IPv6 route removed with an interface is reported: set
//   down, deleted, moved into or out of a VRF, MTU below 1280, disable_ipv6.
//   fib_notify_on_flag_change (both families): a route is repeated, without nl_flags, when a driver
//   has offloaded it; such a message may be older than the deletion received before it.
// - During a dump, no message (dumped or not) is older than the messages received before it.
struct event_route {
	struct wire_prefix prefix;
	struct wire_addr prefsrc, src; // src.family != 0: a source-specific route
	uint8_t src_len;
	uint32_t table, metric, flags, nh_id; // flags: RTM_F_*; nh_id 0: none
	uint32_t mtu;                         // RTAX_MTU, 0: none
	uint32_t metrics;                     // hash of all RTAX_*, 0: none
	int32_t expires;                      // remaining, in 1/100 s; negative: expired; 0: none
	uint8_t type, protocol, scope, tos;
	uint16_t n_hops;
	bool too_many_hops; // more than EVENT_MAX_HOPS; the excess is dropped
	struct event_hop hop[EVENT_MAX_HOPS];
};

struct event_nexthop {
	uint32_t id;
	struct event_hop hop; // if not a group
	bool is_blackhole, is_group, is_resilient, is_fdb;
	uint8_t family, protocol;
	struct {
		uint32_t idle_cs, unbalanced_cs; // in 1/100 s; unbalanced_cs 0: never force a move
	} resilient;
	uint16_t n_members;
	bool too_many_members;
	struct {
		uint32_t id;
		uint16_t weight; // 1 to 65536, capped at 0xffff
	} member[EVENT_MAX_GROUP];
};

// Settings of one interface (or "all": -1, "default": -2); -1: not reported.
struct event_netconf {
	int ifindex;
	uint8_t family; // 4, 6, EVENT_MPLS
	int forwarding, rp_filter, ignore_linkdown, proxy_neigh, mc_forwarding;
	int input; // EVENT_MPLS: frames with labels are taken
};
enum { EVENT_MPLS = 28 }; // AF_MPLS

struct event_rule {
	uint8_t family;
	uint32_t priority, table;
	uint8_t action;
	bool is_l3mdev;    // the rule required by VRF devices
	bool has_selector; // anything other than "from all"
};

enum event_side { EVENT_INGRESS = 1, EVENT_EGRESS = 2 };

// tc, xfrm, nftables, multicast routes: only that an object exists, and its name. A deletion is
// matched by kind, ifindex and name; an empty name matches all of its kind.
struct event_foreign {
	int ifindex;    // 0: applies to all
	uint8_t family; // 4, 6; 0: both
	uint8_t hook;   // nftables: NF_INET_*, also for family netdev (NF_INET_INGRESS, egress: 6);
	                // absent in a deletion
	bool is_bridge; // nftables: of family bridge
	uint8_t sides;  // qdisc: enum event_side; "clsact" is both
	bool has_block; // qdisc: its filters are in a block that has a number, and is thus shared
	char name[EVENT_FOREIGN_MAX]; // "table inet filter chain forward"
	bool is_part;                 // deletion: possibly of some of its devices only
	bool is_harmless; // e.g. the default qdisc of an interface; a hook for local packets only
};

struct event {
	uint8_t kind; // enum event_kind
	bool is_delete;
	bool is_dump;               // part of a dump we requested
	uint16_t nl_flags;          // NLM_F_REPLACE, NLM_F_APPEND, NLM_F_CREATE...
	uint32_t sequence, port_id; // of the request answered by, or causing, this message
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
		struct event_filter filter;
		struct event_port port;
		struct event_vlans vlans;
		struct event_fdb fdb;
		struct event_remote remote;
		struct event_groups groups;
		struct event_label label;
	};
	struct event_queue queue;
};

// Decodes netlink messages into events, using attribute tables. Pure: no socket, no state; fuzzed.
//
// Decodes one netlink message. It starts with struct nlmsghdr; `bytes` is the space left in the
// buffer.
enum decode_result {
	DECODE_EVENT,     // *out is filled in
	DECODE_IGNORED,   // valid, but of a kind we do not use
	DECODE_MALFORMED, // truncated, oversized or invalid: do not use *out
};
enum decode_result decode_route(const void *message, size_t bytes,
	struct event *out); // NETLINK_ROUTE
enum decode_result decode_netfilter(const void *message, size_t bytes,
	struct event *out); // NETLINK_NETFILTER
enum decode_result decode_xfrm(const void *message, size_t bytes,
	struct event *out); // NETLINK_XFRM
