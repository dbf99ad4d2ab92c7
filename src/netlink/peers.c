// Control thread.
#include "netlink/peers.h"

// Which comes first: the lower rank, the narrower, the lower metric.
static int compare(const struct store_route *route, const struct peers *peers)
{
	if (route->rank != peers->rank)
		return route->rank < peers->rank ? -1 : 1;
	if (route->narrow != peers->narrow)
		return route->narrow > peers->narrow ? -1 : 1;
	if (route->metric != peers->metric)
		return route->metric < peers->metric ? -1 : 1;
	return 0;
}

uint32_t *peers_first(struct routes *routes, const struct peers *peers)
{
	uint32_t *iface = &routes->store.place[peers->place].first;

	while (*iface && compare(peers_at(routes, *iface), peers) < 0)
		iface = &peers_at(routes, *iface)->next;
	return iface;
}

bool peers_has(struct routes *routes, uint32_t number, const struct peers *peers)
{
	return number && !compare(peers_at(routes, number), peers);
}

uint32_t *peers_end(struct routes *routes, uint32_t *iface, const struct peers *peers)
{
	while (peers_has(routes, *iface, peers))
		iface = &peers_at(routes, *iface)->next;
	return iface;
}

uint32_t peers_find_hop_set(struct routes *routes, uint32_t first, const struct peers *peers,
	uint32_t hop_set)
{
	while (peers_has(routes, first, peers) && peers_at(routes, first)->hop_set != hop_set)
		first = peers_at(routes, first)->next;
	return peers_has(routes, first, peers) ? first : 0;
}

void peers_seen(struct routes *routes, uint32_t route)
{
	peers_at(routes, route)->generation = routes->generation;
}

void peers_put(struct routes *routes, const struct peers *peers, uint32_t hop_set, uint32_t *iface)
{
	uint32_t number = store_insert(&routes->store, peers->place, iface);

	if (!number) {
		routes->n_lost++;
		store_touch(&routes->store, peers->place);
		routes_free_hop_set(routes, hop_set);
		return;
	}
	peers_at(routes, number)->rank = peers->rank;
	peers_at(routes, number)->narrow = peers->narrow;
	peers_at(routes, number)->metric = peers->metric;
	peers_seen(routes, number);
	routes_lead(routes, number, hop_set);
	routes_poll_broad(routes, peers->place);
}

// What was told led over links that are down: it was dropped when Linux told of them.
static bool went_with_its_ifaces(const struct routes *routes)
{
	const struct hop_set_request *request = &routes->request;

	for (unsigned i = 0; i < request->key.n_hops; i++)
		if (ifaces_state(routes->mirror, request->hops[i].ifindex).is_up)
			return false;
	return request->key.n_hops > 0;
}

void peers_missed(struct routes *routes, const struct peers *peers)
{
	const struct mirror_ops *ops = &routes->mirror->settings.ops;

	if (!routes->is_dumping && peers_has(routes, *peers_first(routes, peers), peers) &&
		!went_with_its_ifaces(routes))
		ops->dump_again(ops->ops);
}
