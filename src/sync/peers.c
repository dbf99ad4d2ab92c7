// Control thread.
#include "sync/peers.h"

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
	uint32_t *link = &routes->store.place[peers->place].first;

	while (*link && compare(peers_at(routes, *link), peers) < 0)
		link = &peers_at(routes, *link)->next;
	return link;
}

bool peers_has(struct routes *routes, uint32_t number, const struct peers *peers)
{
	return number && !compare(peers_at(routes, number), peers);
}

uint32_t *peers_end(struct routes *routes, uint32_t *link, const struct peers *peers)
{
	while (peers_has(routes, *link, peers))
		link = &peers_at(routes, *link)->next;
	return link;
}

uint32_t peers_find_way(struct routes *routes, uint32_t first, const struct peers *peers,
	uint32_t way)
{
	while (peers_has(routes, first, peers) && peers_at(routes, first)->way != way)
		first = peers_at(routes, first)->next;
	return peers_has(routes, first, peers) ? first : 0;
}

void peers_seen(struct routes *routes, uint32_t route)
{
	peers_at(routes, route)->generation = routes->generation;
}

void peers_put(struct routes *routes, const struct peers *peers, uint32_t way, uint32_t *link)
{
	uint32_t number = store_insert(&routes->store, peers->place, link);

	if (!number) {
		routes->n_lost++;
		store_touch(&routes->store, peers->place);
		routes_free_way(routes, way);
		return;
	}
	peers_at(routes, number)->rank = peers->rank;
	peers_at(routes, number)->narrow = peers->narrow;
	peers_at(routes, number)->metric = peers->metric;
	peers_seen(routes, number);
	routes_lead(routes, number, way);
	routes_tend_broad(routes, peers->place);
}

// What was told led over links that are down: it was dropped when Linux told of them.
static bool went_with_its_links(const struct routes *routes)
{
	const struct way_wish *wish = &routes->wish;

	for (unsigned i = 0; i < wish->key.n_hops; i++)
		if (links_state(routes->mirror, wish->hops[i].ifindex).is_up)
			return false;
	return wish->key.n_hops > 0;
}

void peers_missed(struct routes *routes, const struct peers *peers)
{
	const struct mirror_hands *hands = &routes->mirror->settings.hands;

	if (!routes->is_dumping && peers_has(routes, *peers_first(routes, peers), peers) &&
		!went_with_its_links(routes))
		hands->dump_again(hands->hands);
}
