// Shared by the files behind netlink.h. Control thread.
#pragma once

#include "netlink/guard.h"
#include "netlink/listen.h"
#include "netlink/mirror.h"
#include "netlink/netlink.h"
#include "netlink/tunnel_facts.h"
#include "tap/tap.h"

#include <stdbool.h>
#include <stdint.h>

struct neigh_refresh;
struct audit;

struct netlink {
	struct netlink_ctx ctx;
	struct mirror *mirror;
	struct listen *listen;
	struct neigh_refresh *refresh;
	struct audit *audit;
	struct guard *guard;
	struct tunnel_facts facts;
	int epoll, timer;
	uint64_t n_changes; // number of events that affect routes
	bool is_flushing;   // not all changes are in the fib yet
};

// Neighbour refresh: keeps neighbours used by workers resolved, by marking them managed in the
// kernel or by probing them.
int neigh_refresh_open(struct neigh_refresh **out, struct netlink *netlink, struct error *error);
void neigh_refresh_close(struct neigh_refresh *refresh); // clears the managed flag of our entries
// A bounded amount of work, about ten times a second.
void neigh_refresh_poll(struct neigh_refresh *refresh);
uint64_t neigh_refresh_n_managed(const struct neigh_refresh *refresh);

// As dump_classes of struct mirror_ops; `netlink` is a struct netlink.
int classes_ask(void *netlink, int ifindex, void (*take)(void *arg, const struct event *event),
	void *arg);

// Tells Linux that these hosts behind ports of its bridges were seen, as their frames would.
void macs_refresh(struct netlink *netlink, const struct mirror_seen seen[], unsigned n);

// The slow audit: checks some routes per second while no dump is running.
int audit_open(struct audit **out, struct netlink *netlink, struct error *error);
void audit_close(struct audit *audit);
void audit_poll(struct audit *audit);
void audit_info(const struct audit *audit, struct netlink_info *out);

// Network sysctls in the namespace of the TAP interfaces: set if the namespace is our own,
// otherwise only compared with what workers do. Each call enters the namespace itself.

// Applies router settings; only in our own namespace. Settings that this kernel lacks are skipped.
void sysctl_prepare(struct tap_table *taps);
// Settings of one TAP interface.
void sysctl_prepare_tap(struct tap_table *taps, const char *interface);
// Whether legacy iptables tables exist: their rules are not nftables chains, and there are no
// notifications for them.
bool sysctl_has_old_tables(struct tap_table *taps, uint8_t family);
// enum mirror_filters
uint8_t sysctl_bridge_filters(struct tap_table *taps);
// Lists the settings that workers do not follow; stops when `cb` returns false.
void sysctl_unsupported(struct tap_table *taps,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);

// Whether Linux would send redirects for packets forwarded out of their input interface.
bool sysctl_sends_redirects(struct tap_table *taps, const char *interface, uint8_t family);
// Whether Linux does not report the IPv6 routes that it removes together with an interface.
bool sysctl_hides_lost_routes(struct tap_table *taps);
// fib_multipath_hash_policy: the fields by which Linux distributes the packets of a family over
// several next hops: 0 layer 3, 1 layer 4, 2 layer 3 of the innermost packet, 3
// fib_multipath_hash_fields. -errno if it cannot be read.
int sysctl_hash_policy(struct tap_table *taps, uint8_t family);
// The settings of MPLS; false: this kernel has none.
bool sysctl_mpls(struct tap_table *taps, struct mirror_mpls *out);
bool sysctl_disables_ipv6(struct tap_table *taps, const char *interface);
unsigned sysctl_mtu6(struct tap_table *taps, const char *interface); // 0: IPv6 is not available

// Programs attached to an interface by tcx (Linux 6.6): equivalent to tc filters, but without a
// qdisc and without netlink notifications.

// The sides (enum event_side) of an interface, in the namespace of the TAP interfaces, with
// programs attached.
uint8_t tcx_sides(const struct tap_table *taps, int ifindex);

// Compares a kernel route with what workers do.

enum { COMPARE_TEXT = 120 };

// Queries the kernel's route for an address in a VRF (RTM_GETROUTE with fib match). Returns 0 or
// the kernel's error: -ENETUNREACH, -EHOSTUNREACH...
int compare_ask(struct netlink *netlink, uint16_t vrf, const struct wire_addr *addr,
	struct event_route *out);

// Linux's next-hop objects, as it has them now: the object `id` and the members of a group, or all.
// Returns 0 or -errno.
struct nexthops;
int compare_ask_nexthop(struct netlink *netlink, uint32_t id, struct nexthops *out);
int compare_dump_nexthops(struct netlink *netlink, struct nexthops *out);

// The next hops of a kernel route that are not dead, with the weights that workers use for them.
struct compare_hop {
	struct wire_addr via; // family 0: on link
	int ifindex;
	uint32_t weight; // 1 to 255
};
struct compare_hops {
	uint8_t family; // of the route
	unsigned n;
	struct compare_hop hop[EVENT_MAX_HOPS];
};
// `nexthops` has the objects of a route by nh_id; not used for others.
void compare_hops_of(const struct netlink *netlink, const struct event_route *route,
	const struct nexthops *nexthops, struct compare_hops *out);

// Whether a fib hop forwards as the kernel route does, or leaves the packet to Linux. `addr` is the
// destination for which a CONNECTED route was resolved, NULL if none was. If false, `differs`
// describes the difference.
struct comparison {
	const struct event_route *kernel;
	const struct nexthops *nexthops; // as for compare_hops_of
	const struct fib_hop *hop;
	const struct wire_addr *addr;
	bool is_cached; // only one next hop of the kernel's is certain: see LOOKUP_NEXT_HOP
	char differs[COMPARE_TEXT];
};
bool compare_hop(struct netlink *netlink, struct comparison *comparison);

// The parts of a verification.

// Returns the number of next hops for which workers and Linux disagree, each reported through `how`
// (NULL: not reported), or -errno. Includes entries that are changing at this moment: check again.
int verify_neighbours(struct netlink *netlink, const struct netlink_verification *how);
// The same for the bridges that workers serve: VLANs and MAC addresses.
int verify_macs(struct netlink *netlink, const struct netlink_verification *how);
// The same for received MPLS labels.
int verify_labels(struct netlink *netlink, const struct netlink_verification *how);
