// The parts of the mirror: interfaces, neighbours, routes. Control thread.
#pragma once

#include "netlink/mirror.h"

#include <assert.h>

struct ifaces;
struct neighbours;
struct routes;
struct bridges;
struct mpls;
struct mirror {
	struct mirror_settings settings;
	struct ifaces *ifaces; // interfaces, VRFs, addresses, settings, rules, foreign objects
	struct neighbours
		*neighbours;     // including those kept resolved by the kernel (NTF_EXT_MANAGED)
	struct routes *routes;   // and next hops
	struct bridges *bridges; // and their MAC addresses
	struct mpls *mpls;       // received labels
	bool has_all_routes;     // a dump has contained all of them
};

// Kernel interfaces as far as the mirror needs them: which ones are ours (TAP interfaces and VLANs
// on them), upper and lower devices, VRF devices and their tables, addresses, settings (netconf).

enum { IFACES_NO_VRF = 0xffff };

int ifaces_create(struct ifaces **out, struct mirror *mirror, struct error *error);
void ifaces_destroy(struct ifaces *ifaces);

// EVENT_LINK, _ADDRESS, _NETCONF, _RULE, _QDISC, _FILTER, _ACTION, _POLICY, _POLICY_DEFAULT,
// _CHAIN, _MROUTE, _BRIDGE_PORT
void ifaces_event(struct ifaces *ifaces, const struct event *event);
void ifaces_tap_changed(struct ifaces *ifaces, unsigned port, int ifindex);
void ifaces_port_added(struct ifaces *ifaces, unsigned port, const struct mirror_port *added);
void ifaces_port_removed(struct ifaces *ifaces, unsigned port);
void ifaces_dump_begins(struct ifaces *ifaces);
void ifaces_dump_lacks(struct ifaces *ifaces, enum event_kind kind);
void ifaces_dump_ends(struct ifaces *ifaces, uint32_t partial); // as mirror_dump_ends
// Publishes fib interface ids, VRF ids and settings to the fib, and port settings through the ops.
// Call before flushing neighbours and routes.
void ifaces_flush(struct ifaces *ifaces);
// Call after neighbours and routes have been updated for everything ifaces_flush did: released ids
// become free again. Returns true if ifaces_flush has more work to do.
bool ifaces_settled(struct ifaces *ifaces);
void ifaces_poll(struct ifaces *ifaces);                    // as mirror_poll
void filters_apply(struct ifaces *ifaces, uint64_t now_ns); // as mirror_apply_filters
// The same of the queues of interfaces.
void queues_apply(struct ifaces *ifaces, uint64_t now_ns);
// Has the classes of an interface dumped, if some are not known. Returns whether there was one.
bool queues_dump(struct ifaces *ifaces);
bool filters_dump(struct ifaces *ifaces);               // as mirror_dump_filters
void filters_dumped(struct ifaces *ifaces, bool whole); // as mirror_filters_dumped
void ifaces_unsupported(const struct ifaces *ifaces,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);
void ifaces_info(const struct ifaces *ifaces, struct netlink_info *out); // fills in its fields

// Interface state used by routes.
struct ifaces_state {
	bool is_known;                             // reported by the kernel
	bool is_up;                                // IFF_UP
	bool has_carrier;                          // IFF_LOWER_UP
	bool ignores_linkdown4, ignores_linkdown6; // ignore_routes_with_linkdown
	bool is_loopback;
	uint16_t iface; // fib interface id; IFACE_NONE: only Linux can send there (not our
	                // interface, or something on it is unsupported)
};
static_assert(sizeof(struct ifaces_state) == 8, "compared as bytes: no padding");
struct ifaces_state ifaces_state(const struct mirror *mirror, int ifindex);
const char *ifaces_name(const struct mirror *mirror, int ifindex); // "?": unknown
// Whether Linux takes frames with MPLS labels from it (net.mpls.conf.IF.input).
bool ifaces_take_labels(const struct mirror *mirror, int ifindex);

// The VRF of a kernel table; main, local and default (254, 255, 253) are VRF 0. IFACES_NO_VRF:
// workers have no such table. When a VRF is removed it becomes IFACES_NO_VRF at once, but its fib
// table stays open until routes have been flushed.
uint16_t ifaces_vrf_of_table(const struct mirror *mirror, uint32_t table);

// Whether Linux looks routes up by rules other than the default ones, or lacks one of these: then
// its answer for a destination may come from another table.
bool ifaces_has_own_rules(const struct mirror *mirror, uint8_t family, uint16_t vrf);

// The VRF of a VRF device; IFACES_NO_VRF: it is none, or workers have no such table.
uint16_t ifaces_vrf_of_device(const struct mirror *mirror, int ifindex);

// For display and for neighbour refresh.
int ifaces_ifindex(const struct mirror *mirror, uint16_t iface);         // 0: no such interface
const char *ifaces_vrf_name(const struct mirror *mirror, uint16_t vrf);  // NULL: not open
int ifaces_vrf_find(const struct mirror *mirror, const char *name);      // -ENOENT
uint32_t ifaces_table_of_vrf(const struct mirror *mirror, uint16_t vrf); // 0: not open

// All neighbours known to the kernel; those that are usable and on our interfaces are in the fib.

int neighbours_open(struct neighbours **out, struct mirror *mirror, struct error *error);
void neighbours_close(struct neighbours *neighbours);

void neighbours_event(struct neighbours *neighbours, const struct event *event); // EVENT_NEIGHBOUR
void neighbours_dump_begins(struct neighbours *neighbours);
void neighbours_dump_ends(struct neighbours *neighbours);
void neighbours_flush(struct neighbours *neighbours);

// Called by ifaces: the interface has a new fib interface id (all its neighbours are re-evaluated
// at the next flush), or was removed with all its neighbours.
void neighbours_iface_changed(struct neighbours *neighbours, int ifindex);
void neighbours_iface_gone(struct neighbours *neighbours, int ifindex);
void neighbours_unsupported(const struct neighbours *neighbours,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);
void neighbours_info(const struct neighbours *neighbours,
	struct netlink_info *out); // fills in its fields

// One neighbour as last reported, for neighbour refresh.
struct neighbour {
	int ifindex;
	struct wire_addr addr;
	struct wire_mac mac; // zero: none
	uint16_t iface;      // its interface in the fib; IFACE_NONE: not in the fib
	uint16_t state;      // NUD_*
	uint8_t flags;       // NTF_*
	uint8_t protocol;    // NDA_PROTOCOL: who created it
	uint32_t ext_flags;  // NTF_EXT_*
};
// Returns false if the kernel has not reported it.
bool neighbours_find(const struct neighbours *neighbours, int ifindex, const struct wire_addr *addr,
	struct neighbour *out);
// Iterates over all neighbours; *at starts at 0. Entries added or removed meanwhile may be missed
// or returned twice. Returns false at the end, with *at reset to 0. (To find the gateways used by
// routes, iterate with fib_hop_info: a FIB_VIA hop with routes gives the interface (ifaces_ifindex)
// and the address.)
bool neighbours_next(const struct neighbours *neighbours, uint32_t *at, struct neighbour *out);

// The kernel's routes and next-hop objects, of all tables and metrics; the best route of each
// prefix goes into the fib. The kernel does not announce every route that it drops; the calls below
// report the events that cause it.

int routes_open(struct routes **out, struct mirror *mirror, struct error *error);
void routes_close(struct routes *routes);

void routes_event(struct routes *routes, const struct event *event);         // EVENT_ROUTE
void routes_nexthop_event(struct routes *routes, const struct event *event); // EVENT_NEXTHOP
void routes_dump_begins(struct routes *routes);
void routes_dump_ends(struct routes *routes, uint32_t partial); // as mirror_dump_ends
bool routes_flush(struct routes *routes);                       // as mirror_flush
void routes_poll(struct routes *routes);                        // as mirror_poll

// Called by ifaces, after ifaces_state() has been updated.
void routes_iface_changed(struct routes *routes,
	int ifindex); // up, down, carrier, fib interface id, settings
void routes_iface_gone(struct routes *routes, int ifindex);
// An IPv4 address is no longer local in a VRF (no interface has it any more): routes that prefer it
// as source are removed. / The kernel drops all IPv4 routes over an interface, including those for
// its own addresses: its last address was removed, or it was moved into or out of a VRF.
void routes_address_gone(struct routes *routes, uint16_t vrf, const struct wire_addr *local);
void routes_ip4_gone(struct routes *routes, int ifindex);
// An interface got an IPv4 address: next hops that died with its last address are alive again.
void routes_address_came(struct routes *routes, int ifindex);
// Its VRF was added (after fib_vrf_open) or removed: the contents of the fib table count as
// deleted, as fib_vrf_close leaves it.
void routes_vrf_changed(struct routes *routes, uint32_t table);

// net.mpls.ip_ttl_propagate and default_ttl: the TTL of labels for which no other is given; 0: that
// of the packet.
void routes_label_ttl_changed(struct routes *routes, uint8_t ttl);

// What Linux's answer to a lookup for a destination of a prefix says about the route that workers
// use for it.
enum lookup_worth {
	LOOKUP_ROUTE, // what becomes of the packet
	// IPv6 via a next-hop object: the object's entry in the route cache answers, and all its
	// routes share it. One next hop of the answer is right; its prefix, table, metric and other
	// next hops may be those of another route. "Network is unreachable" (-ENETUNREACH) also
	// means that the entry's own route was deleted.
	LOOKUP_NEXT_HOP,
	// Only the prefix: of several IPv4 default routes with the same metric, packets that Linux
	// forwards take the first, as those of workers do, but the lookup, as for packets of
	// Linux's own, takes one with a reachable neighbour (fib_select_default, net/ipv4).
	LOOKUP_PREFIX,
	// Nothing: there are routes for a TOS or a source only, another table decides, or Linux may
	// use either of two.
	LOOKUP_NOTHING,
};
enum lookup_worth routes_lookup_worth(struct routes *routes, uint16_t vrf,
	const struct wire_prefix *prefix);
// Routes that cannot be represented, summarised by reason and interface.
void routes_unsupported(struct routes *routes,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);
void routes_info(const struct routes *routes, struct netlink_info *out); // fills in its fields

// The routes of received MPLS labels. Explicit null, which Linux does not report, is a label if
// net.mpls.platform_labels has it.

int mpls_open(struct mpls **out, struct mirror *mirror, struct error *error);
void mpls_close(struct mpls *mpls);
void mpls_event(struct mpls *mpls, const struct event *event); // EVENT_LABEL
void mpls_dump_begins(struct mpls *mpls);
void mpls_dump_ends(struct mpls *mpls);
// Called by ifaces: the state of some interface or VRF has changed. `mpls` may be NULL.
void mpls_ifaces_changed(struct mpls *mpls);
bool mpls_flush(struct mpls *mpls); // as mirror_flush; call after ifaces_flush
// What workers are to do with a label for which Linux has this route, by the interfaces as they are
// now; false: leave it to Linux. `out` is valid until the next fib_change. / Whether the kernel has
// MPLS.
bool mpls_wanted(const struct mpls *mpls, const struct event_label *reported,
	struct fib_label *out);
bool mpls_is_known(const struct mpls *mpls);
void mpls_poll(struct mpls *mpls); // as mirror_poll
void mpls_unsupported(const struct mpls *mpls,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);

// Bridges of Linux: workers forward frames between addresses that Linux knows behind their ports.

int bridges_open(struct bridges **out, struct mirror *mirror, struct error *error);
void bridges_close(struct bridges *bridges);
// EVENT_FDB, EVENT_REMOTE, EVENT_GROUPS, EVENT_LINK
void bridges_event(struct bridges *bridges, const struct event *event);
void bridges_dump_begins(struct bridges *bridges);
void bridges_dump_ends(struct bridges *bridges, uint32_t partial);
void bridges_port_removed(struct bridges *bridges, unsigned port);
// Call about ten times a second: re-reads what nobody tells of.
void bridges_look_again(struct bridges *bridges);
void bridges_info(const struct bridges *bridges, struct netlink_info *out);
// Whether workers have remote ends of a VXLAN device with this number, or it in a bridge.
bool remotes_use(const struct bridges *bridges, uint16_t number);
// Call after ifaces_flush. Returns true if there is more to do.
bool bridges_flush(struct bridges *bridges);
