// Routes of one place that stand together in its list, which is sorted as the kernel sorts it.
// Control thread.
#pragma once

#include "netlink/routes_inside.h"

// Those with the same rank, TOS or source length, and metric.
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

// Where the first of the peers stands, or would stand. / What is behind the last one, from `link`
// on.
uint32_t *peers_first(struct routes *routes, const struct peers *peers);
uint32_t *peers_end(struct routes *routes, uint32_t *iface, const struct peers *peers);
bool peers_has(struct routes *routes, uint32_t number, const struct peers *peers);
// The peer that leads this way, from `first` on; 0: none.
uint32_t peers_find_hop_set(struct routes *routes, uint32_t first, const struct peers *peers,
	uint32_t hop_set);
// Linux has told of the route: the sweep after a dump leaves it.
void peers_seen(struct routes *routes, uint32_t route);
// A new one at `link`, which leads `way`; without room for it the way is freed if nothing leads it.
void peers_put(struct routes *routes, const struct peers *peers, uint32_t hop_set, uint32_t *iface);
// Linux took a route away that we do not have so, while another one stands in its place: either it
// was among those that went without a word, or we are wrong.
void peers_missed(struct routes *routes, const struct peers *peers);
