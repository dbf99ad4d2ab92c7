// What Linux says of an IPv6 route: those of one prefix and metric that lead to gateways are one
// route with several next hops. Control thread.
#include "netlink/hear.h"

#include <linux/rtnetlink.h>

// Whether IPv6 routes like this one join others of the same metric as one route.
static bool joins(const struct hop_set_key *key, const struct hop_set_hop *hops)
{
	return key->type == RTN_UNICAST && key->n_hops && hops[0].via.family &&
	       key->protocol != RTPROT_RA;
}

static bool has_src(const struct hop_set *hop_set, const struct hop_set_key *key)
{
	return hop_set->key.src_len == key->src_len &&
	       wire_addr_equal(&hop_set->key.src, &key->src);
}

// The route that these hops join, or replace: 0: none.
static uint32_t find_joined(struct routes *routes, uint32_t first, const struct peers *peers,
	const struct hop_set_request *request)
{
	for (; peers_has(routes, first, peers); first = peers_at(routes, first)->next) {
		const struct hop_set *hop_set = peers_hop_set(routes, first);
		if (has_src(hop_set, &request->key) &&
			joins(&hop_set->key, hop_set->hops) == joins(&request->key, request->hops))
			return first;
	}
	return 0;
}

static uint32_t find_src(struct routes *routes, uint32_t first, const struct peers *peers,
	const struct hop_set_key *key)
{
	while (peers_has(routes, first, peers) && !has_src(peers_hop_set(routes, first), key))
		first = peers_at(routes, first)->next;
	return peers_has(routes, first, peers) ? first : 0;
}

void hear_add6(struct routes *routes, const struct peers *peers, uint32_t hop_set,
	const struct event *event)
{
	const struct hop_set_request *request = &routes->request;
	uint32_t *first = peers_first(routes, peers);
	uint32_t old = peers_find_hop_set(routes, *first, peers, hop_set);

	if (!old && event->nl_flags & NLM_F_REPLACE) {
		old = find_joined(routes, *first, peers, request);
		if (!old)
			old = find_src(routes, *first, peers, &request->key);
	} else if (!old && joins(&request->key, request->hops)) {
		old = find_joined(routes, *first, peers, request); // all its next hops were told
	}
	if (!old) {
		peers_put(routes, peers, hop_set, peers_end(routes, first, peers));
		return;
	}
	peers_seen(routes, old);
	if (peers_at(routes, old)->hop_set != hop_set)
		routes_lead(routes, old, hop_set);
}

static bool same_exit(const struct hop_set_hop *a, const struct hop_set_hop *b)
{
	return a->ifindex == b->ifindex && wire_addr_equal(&a->via, &b->via);
}

static bool is_told(const struct hop_set_request *request, const struct hop_set_hop *hop)
{
	for (unsigned i = 0; i < request->key.n_hops; i++)
		if (same_exit(&request->hops[i], hop))
			return true;
	return false;
}

// Takes the hops that were told from those of a route; with the last one the route goes.
static void subtract(struct routes *routes, uint32_t route, const struct peers *peers)
{
	const struct hop_set *hop_set = peers_hop_set(routes, route);
	struct hop_set_request *rest = &routes->rest;

	rest->key = hop_set->key;
	rest->key.n_hops = 0;
	for (unsigned i = 0; i < hop_set->key.n_hops; i++)
		if (!is_told(&routes->request, &hop_set->hops[i]))
			rest->hops[rest->key.n_hops++] = hop_set->hops[i];
	if (rest->key.n_hops == hop_set->key.n_hops)
		peers_missed(routes, peers);
	else if (!rest->key.n_hops)
		routes_drop(routes, route);
	else
		routes_lead(routes, route, read_hop_set(routes, rest));
}

// A route that joins no other: the one that leaves in the same way.
static uint32_t find_alone(struct routes *routes, uint32_t first, const struct peers *peers)
{
	const struct hop_set_request *request = &routes->request;

	for (; peers_has(routes, first, peers); first = peers_at(routes, first)->next) {
		const struct hop_set *hop_set = peers_hop_set(routes, first);
		if (has_src(hop_set, &request->key) && hop_set->key.type == request->key.type &&
			hop_set->key.nh_id == request->key.nh_id &&
			!joins(&hop_set->key, hop_set->hops) &&
			hop_set->key.n_hops == request->key.n_hops &&
			(!hop_set->key.n_hops || same_exit(hop_set->hops, request->hops)))
			return first;
	}
	return 0;
}

void hear_delete6(struct routes *routes, const struct peers *peers)
{
	const struct hop_set_request *request = &routes->request;
	uint32_t first = *peers_first(routes, peers);
	bool is_joined = joins(&request->key, request->hops);
	uint32_t old = is_joined ? find_joined(routes, first, peers, request)
	                         : find_alone(routes, first, peers);

	if (!old)
		peers_missed(routes, peers);
	else if (is_joined)
		subtract(routes, old, peers);
	else
		routes_drop(routes, old);
}
