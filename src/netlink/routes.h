// Linux's routes and next-hop objects, of all tables and metrics, as they were told; the best one
// of each prefix is what the fib gets. The kernel does not announce all that it drops: these calls
// say when it does. Inside the mirror. Control thread.
#pragma once

#include "netlink/mirror.h"

struct routes;
int routes_open(struct routes **out, struct mirror *mirror, struct error *error);
void routes_close(struct routes *routes);

void routes_event(struct routes *routes, const struct event *event);         // EVENT_ROUTE
void routes_nexthop_event(struct routes *routes, const struct event *event); // EVENT_NEXTHOP
void routes_dump_begins(struct routes *routes);
void routes_dump_ends(struct routes *routes, uint32_t partial); // as mirror_dump_ends
bool routes_flush(struct routes *routes);                       // as mirror_flush
void routes_poll(struct routes *routes);                        // as mirror_poll

// Told by links, after ifaces_state() says so.
void routes_iface_changed(struct routes *routes,
	int ifindex); // up, down, carrier, link id, settings
void routes_iface_gone(struct routes *routes, int ifindex);
// An IPv4 address is no longer local in a VRF (no interface has it any more): routes that prefer it
// as source go. / Linux drops all IPv4 routes over an interface, those for its own addresses too:
// the last of these is gone, or it went into a VRF or out of one.
void routes_address_gone(struct routes *routes, uint8_t vrf, const struct wire_addr *local);
void routes_ip4_gone(struct routes *routes, int ifindex);
// An interface got an IPv4 address: next hops that died with its last one live again.
void routes_address_came(struct routes *routes, int ifindex);
// Its VRF came (after fib_vrf_open), or went: what stood in the fib's table counts as gone, as
// fib_vrf_close leaves it.
void routes_vrf_changed(struct routes *routes, uint32_t table);

// Routes that cannot be expressed, summed up by reason and interface.
void routes_unsupported(struct routes *routes,
	bool (*tell)(void *arg, const struct netlink_unsupported *one), void *arg);
void routes_info(const struct routes *routes, struct netlink_info *out); // its fields
