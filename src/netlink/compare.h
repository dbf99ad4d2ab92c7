// Compares a kernel route with what workers do. Internal to netlink. Control thread.
#pragma once

#include "netlink/inside.h"

enum { COMPARE_TEXT = 120 };

// Queries the kernel's route for an address in a VRF (RTM_GETROUTE with fib match). Returns 0 or
// the kernel's error: -ENETUNREACH, -EHOSTUNREACH...
int compare_ask(struct netlink *netlink, uint8_t vrf, const struct wire_addr *addr,
	struct event_route *out);

// Whether a fib hop forwards as the kernel route does, or leaves the packet to Linux. `addr` is the
// destination for which a CONNECTED route was resolved, NULL if none was. If false, `differs`
// describes the difference.
struct comparison {
	const struct event_route *kernel;
	const struct fib_hop *hop;
	const struct wire_addr *addr;
	char differs[COMPARE_TEXT];
};
bool compare_hop(struct netlink *netlink, struct comparison *comparison);
// Whether a next hop of a kernel route is not dead.
bool compare_is_alive(struct netlink *netlink, const struct event_hop *hop, uint8_t family);
