// A route as Linux has it against what workers do. Inside sync. Control thread.
#pragma once

#include "netlink/inside.h"

enum { COMPARE_TEXT = 120 };

// Asks Linux for the route that it takes for an address in a VRF (RTM_GETROUTE, fib match). 0, or
// what Linux said: -ENETUNREACH, -EHOSTUNREACH...
int compare_ask(struct netlink *netlink, uint8_t vrf, const struct wire_addr *addr,
	struct event_route *out);

// Whether a hop of the fib leads where Linux's route leads, or leaves the choice to Linux. `addr`:
// whose CONNECTED route was resolved, NULL: none was. Else false, and `differs` says how.
struct comparison {
	const struct event_route *kernel;
	const struct fib_hop *hop;
	const struct wire_addr *addr;
	char differs[COMPARE_TEXT];
};
bool compare_hop(struct netlink *netlink, struct comparison *comparison);
// A next hop of Linux's route that is not dead.
bool compare_is_alive(struct netlink *netlink, const struct event_hop *hop, uint8_t family);
