// What Linux says of an IPv6 route: those of one prefix and metric that lead to gateways are one
// route with several next hops. Control thread.
#include "sync/hear.h"

#include <linux/rtnetlink.h>

// Whether IPv6 routes like this one join others of the same metric as one route.
static bool joins(const struct way_key *key, const struct way_hop *hops)
{
	return key->type == RTN_UNICAST && key->n_hops && hops[0].via.family &&
	       key->protocol != RTPROT_RA;
}

static bool has_src(const struct way *way, const struct way_key *key)
{
	return way->key.src_len == key->src_len && wire_addr_equal(&way->key.src, &key->src);
}

// The route that these hops join, or replace: 0: none.
static uint32_t find_joined(struct routes *routes, uint32_t first, const struct peers *peers,
	const struct way_wish *wish)
{
	for (; peers_has(routes, first, peers); first = peers_at(routes, first)->next) {
		const struct way *way = peers_way(routes, first);
		if (has_src(way, &wish->key) &&
			joins(&way->key, way->hops) == joins(&wish->key, wish->hops))
			return first;
	}
	return 0;
}

static uint32_t find_src(struct routes *routes, uint32_t first, const struct peers *peers,
	const struct way_key *key)
{
	while (peers_has(routes, first, peers) && !has_src(peers_way(routes, first), key))
		first = peers_at(routes, first)->next;
	return peers_has(routes, first, peers) ? first : 0;
}

void hear_add6(struct routes *routes, const struct peers *peers, uint32_t way,
	const struct event *event)
{
	const struct way_wish *wish = &routes->wish;
	uint32_t *first = peers_first(routes, peers);
	uint32_t old = peers_find_way(routes, *first, peers, way);

	if (!old && event->nl_flags & NLM_F_REPLACE) {
		old = find_joined(routes, *first, peers, wish);
		if (!old)
			old = find_src(routes, *first, peers, &wish->key);
	} else if (!old && joins(&wish->key, wish->hops)) {
		old = find_joined(routes, *first, peers, wish); // all its next hops were told
	}
	if (!old) {
		peers_put(routes, peers, way, peers_end(routes, first, peers));
		return;
	}
	peers_seen(routes, old);
	if (peers_at(routes, old)->way != way)
		routes_lead(routes, old, way);
}

static bool same_exit(const struct way_hop *a, const struct way_hop *b)
{
	return a->ifindex == b->ifindex && wire_addr_equal(&a->via, &b->via);
}

static bool is_told(const struct way_wish *wish, const struct way_hop *hop)
{
	for (unsigned i = 0; i < wish->key.n_hops; i++)
		if (same_exit(&wish->hops[i], hop))
			return true;
	return false;
}

// Takes the hops that were told from those of a route; with the last one the route goes.
static void subtract(struct routes *routes, uint32_t route, const struct peers *peers)
{
	const struct way *way = peers_way(routes, route);
	struct way_wish *rest = &routes->rest;

	rest->key = way->key;
	rest->key.n_hops = 0;
	for (unsigned i = 0; i < way->key.n_hops; i++)
		if (!is_told(&routes->wish, &way->hops[i]))
			rest->hops[rest->key.n_hops++] = way->hops[i];
	if (rest->key.n_hops == way->key.n_hops)
		peers_missed(routes, peers);
	else if (!rest->key.n_hops)
		routes_drop(routes, route);
	else
		routes_lead(routes, route, hear_way(routes, rest));
}

// A route that joins no other: the one that leaves in the same way.
static uint32_t find_alone(struct routes *routes, uint32_t first, const struct peers *peers)
{
	const struct way_wish *wish = &routes->wish;

	for (; peers_has(routes, first, peers); first = peers_at(routes, first)->next) {
		const struct way *way = peers_way(routes, first);
		if (has_src(way, &wish->key) && way->key.type == wish->key.type &&
			way->key.nh_id == wish->key.nh_id && !joins(&way->key, way->hops) &&
			way->key.n_hops == wish->key.n_hops &&
			(!way->key.n_hops || same_exit(way->hops, wish->hops)))
			return first;
	}
	return 0;
}

void hear_delete6(struct routes *routes, const struct peers *peers)
{
	const struct way_wish *wish = &routes->wish;
	uint32_t first = *peers_first(routes, peers);
	bool is_joined = joins(&wish->key, wish->hops);
	uint32_t old = is_joined ? find_joined(routes, first, peers, wish)
	                         : find_alone(routes, first, peers);

	if (!old)
		peers_missed(routes, peers);
	else if (is_joined)
		subtract(routes, old, peers);
	else
		routes_drop(routes, old);
}
