// Groups of equivalent routes within the list of a place, which is sorted in kernel order. Control
// thread.
#pragma once

#include "netlink/routes_inside.h"

// Routes with the same rank, TOS or source length, and metric.
struct peers {
	uint32_t place;
	uint8_t rank, narrow;
	uint32_t metric;
};

static inline struct store_route *peers_at(struct routes *routes, uint32_t number)
{
	return &routes->store.route[number];
}

static inline struct hop_set *peers_hop_set(struct routes *routes, uint32_t number)
{
	return hop_sets_at(&routes->hop_sets, peers_at(routes, number)->hop_set);
}

// The position of the first peer, or where it would be inserted. / The position after the last
// peer, searching from `iface` on.
uint32_t *peers_first(struct routes *routes, const struct peers *peers);
uint32_t *peers_end(struct routes *routes, uint32_t *iface, const struct peers *peers);
bool peers_has(struct routes *routes, uint32_t number, const struct peers *peers);
// The peer that uses this next-hop set, searching from `first` on; 0: none.
uint32_t peers_find_hop_set(struct routes *routes, uint32_t first, const struct peers *peers,
	uint32_t hop_set);
// Marks the route as reported by the kernel: the sweep after a dump keeps it.
void peers_seen(struct routes *routes, uint32_t route);
// Inserts a new route at `iface` that uses `hop_set`. If there is no space for it, the set is freed
// unless another route uses it.
void peers_put(struct routes *routes, const struct peers *peers, uint32_t hop_set, uint32_t *iface);
// The kernel deleted a route that we do not have, while another one is in its place: either the
// route was lost earlier without a notification, or our state is wrong.
void peers_missed(struct routes *routes, const struct peers *peers);
