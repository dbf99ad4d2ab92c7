// The kernel's routes and next-hop objects, of all tables and metrics; the best route of each
// prefix goes into the fib. The kernel does not announce every route that it drops; the calls below
// report the events that cause it. Internal to the mirror. Control thread.
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

// Called by ifaces, after ifaces_state() has been updated.
void routes_iface_changed(struct routes *routes,
	int ifindex); // up, down, carrier, fib interface id, settings
void routes_iface_gone(struct routes *routes, int ifindex);
// An IPv4 address is no longer local in a VRF (no interface has it any more): routes that prefer it
// as source are removed. / The kernel drops all IPv4 routes over an interface, including those for
// its own addresses: its last address was removed, or it was moved into or out of a VRF.
void routes_address_gone(struct routes *routes, uint8_t vrf, const struct wire_addr *local);
void routes_ip4_gone(struct routes *routes, int ifindex);
// An interface got an IPv4 address: next hops that died with its last address are alive again.
void routes_address_came(struct routes *routes, int ifindex);
// Its VRF was added (after fib_vrf_open) or removed: the contents of the fib table count as
// deleted, as fib_vrf_close leaves it.
void routes_vrf_changed(struct routes *routes, uint32_t table);

// Routes that cannot be represented, summarised by reason and interface.
void routes_unsupported(struct routes *routes,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);
void routes_info(const struct routes *routes, struct netlink_info *out); // fills in its fields
