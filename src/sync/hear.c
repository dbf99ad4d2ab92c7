// What Linux says of a route goes into the store, as the kernel itself keeps it: IPv4 routes of one
// prefix, TOS and metric stand in a list of which the first counts; IPv6 routes of one prefix and
// metric that lead to gateways are one route with several next hops. Control thread.
#include "sync/routes_inside.h"

#include <linux/rtnetlink.h>
#include <string.h>

// The routes of one place with the same rank, TOS or source length, and metric: they stand
// together.
struct peers {
	uint32_t place;
	uint8_t rank, narrow;
	uint32_t metric;
};

static uint8_t rank_of(uint32_t table)
{
	return table == RT_TABLE_LOCAL     ? RANK_LOCAL
	       : table == RT_TABLE_DEFAULT ? RANK_DEFAULT
	                                   : RANK_MAIN;
}

static struct store_route *at(struct routes *routes, uint32_t number)
{
	return &routes->store.route[number];
}

static struct way *way_of(struct routes *routes, uint32_t number)
{
	return ways_at(&routes->ways, at(routes, number)->way);
}

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

// Where the first of the peers stands, or would stand.
static uint32_t *first_of(struct routes *routes, const struct peers *peers)
{
	uint32_t *link = &routes->store.place[peers->place].first;

	while (*link && compare(at(routes, *link), peers) < 0)
		link = &at(routes, *link)->next;
	return link;
}

static bool is_peer(struct routes *routes, uint32_t number, const struct peers *peers)
{
	return number && !compare(at(routes, number), peers);
}

static uint32_t *end_of(struct routes *routes, uint32_t *link, const struct peers *peers)
{
	while (is_peer(routes, *link, peers))
		link = &at(routes, *link)->next;
	return link;
}

static uint32_t find_way(struct routes *routes, uint32_t first, const struct peers *peers,
	uint32_t way)
{
	while (is_peer(routes, first, peers) && at(routes, first)->way != way)
		first = at(routes, first)->next;
	return is_peer(routes, first, peers) ? first : 0;
}

static bool is_error(uint8_t type)
{
	return type == RTN_BLACKHOLE || type == RTN_UNREACHABLE || type == RTN_PROHIBIT ||
	       type == RTN_THROW;
}

// IPv6: what the kernel tells such routes apart by is less than with IPv4.
static void fill_key(struct way_key *key, const struct event_route *told)
{
	bool is_ipv4 = told->prefix.addr.family == 4;

	memset(key, 0, sizeof(*key));
	key->family = told->prefix.addr.family;
	key->type = told->type;
	key->nh_id = told->nh_id;
	key->mtu = told->mtu;
	key->protocol = is_ipv4 || told->protocol == RTPROT_RA ? told->protocol : 0;
	key->has_too_many_hops = told->too_many_hops && !told->nh_id;
	if (is_ipv4) {
		key->scope = told->scope;
		key->prefsrc = told->prefsrc;
	} else {
		key->src = told->src;
		key->src_len = told->src_len;
	}
	if (told->nh_id && told->type == RTN_BLACKHOLE)
		key->type = RTN_UNICAST; // what the object is now
	if (!told->nh_id && !is_error(told->type))
		key->n_hops = told->n_hops;
	if (is_ipv4 && (key->n_hops > 1 || key->prefsrc.family)) { // what is lost apart
		key->table = told->table;
		key->metric = told->metric;
	}
}

static void fill_wish(struct way_wish *wish, const struct event_route *told)
{
	fill_key(&wish->key, told);
	for (unsigned i = 0; i < wish->key.n_hops; i++) {
		const struct event_hop *hop = &told->hop[i];
		wish->hops[i] = (struct way_hop){.via = hop->via,
			.has_encap = hop->has_encap,
			.is_onlink = hop->flags & RTNH_F_ONLINK,
			.is_dead = hop->flags & RTNH_F_DEAD,
			.ifindex = hop->ifindex,
			.weight = hop->weight};
	}
}

// Next hops die and come back to life without a change of what the way is.
static void take_deaths(struct routes *routes, uint32_t number, const struct way_wish *wish)
{
	struct way *way = ways_at(&routes->ways, number);
	bool has_changed = false;

	for (unsigned i = 0; i < way->key.n_hops; i++) {
		has_changed |= way->hops[i].is_dead != wish->hops[i].is_dead;
		way->hops[i].is_dead = wish->hops[i].is_dead;
	}
	if (has_changed)
		routes_stale(routes, number);
}

static uint32_t get_way(struct routes *routes, const struct way_wish *wish)
{
	uint32_t number = ways_get(&routes->ways, wish);

	if (!number)
		return 0;
	struct way *way = ways_at(&routes->ways, number);
	if (!way->n_routes && !way->is_stale && !way->is_starved && wish->key.nh_id) {
		struct nexthop *nexthop = nexthops_get(&routes->nexthops, wish->key.nh_id);
		if (!nexthop) {
			ways_free(&routes->ways, number);
			return 0;
		}
		way->next_of_nexthop = nexthop->first_way;
		nexthop->first_way = number;
	}
	take_deaths(routes, number, wish);
	return number;
}

static void seen(struct routes *routes, uint32_t route)
{
	at(routes, route)->generation = routes->generation;
}

static void put(struct routes *routes, const struct peers *peers, uint32_t way, uint32_t *link)
{
	uint32_t number = store_insert(&routes->store, peers->place, link);

	if (!number) {
		routes->n_lost++;
		store_touch(&routes->store, peers->place);
		routes_free_way(routes, way);
		return;
	}
	at(routes, number)->rank = peers->rank;
	at(routes, number)->narrow = peers->narrow;
	at(routes, number)->metric = peers->metric;
	seen(routes, number);
	routes_lead(routes, number, way);
	routes_tend_broad(routes, peers->place);
}

// A dump lists routes in the kernel's order: each one goes behind those that were listed before.
static void move_to_end(struct routes *routes, uint32_t number, const struct peers *peers)
{
	uint32_t *link = first_of(routes, peers);

	if (!is_peer(routes, at(routes, number)->next, peers))
		return;
	while (*link != number)
		link = &at(routes, *link)->next;
	*link = at(routes, number)->next;
	link = end_of(routes, link, peers);
	at(routes, number)->next = *link;
	*link = number;
	store_touch(&routes->store, peers->place);
}

static void add4(struct routes *routes, const struct peers *peers, uint32_t way,
	const struct event *event)
{
	uint32_t *first = first_of(routes, peers);
	uint32_t same = find_way(routes, *first, peers, way);

	if (same) {
		seen(routes, same);
		if (event->is_dump)
			move_to_end(routes, same, peers);
	} else if (event->nl_flags & NLM_F_REPLACE && is_peer(routes, *first, peers)) {
		seen(routes, *first);
		routes_lead(routes, *first, way);
	} else if (event->nl_flags & NLM_F_APPEND || event->is_dump) {
		put(routes, peers, way, end_of(routes, first, peers));
	} else {
		put(routes, peers, way, first);
	}
}

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
	for (; is_peer(routes, first, peers); first = at(routes, first)->next) {
		const struct way *way = way_of(routes, first);
		if (has_src(way, &wish->key) &&
			joins(&way->key, way->hops) == joins(&wish->key, wish->hops))
			return first;
	}
	return 0;
}

static uint32_t find_src(struct routes *routes, uint32_t first, const struct peers *peers,
	const struct way_key *key)
{
	while (is_peer(routes, first, peers) && !has_src(way_of(routes, first), key))
		first = at(routes, first)->next;
	return is_peer(routes, first, peers) ? first : 0;
}

static void add6(struct routes *routes, const struct peers *peers, uint32_t way,
	const struct event *event)
{
	const struct way_wish *wish = &routes->wish;
	uint32_t *first = first_of(routes, peers);
	uint32_t old = find_way(routes, *first, peers, way);

	if (!old && event->nl_flags & NLM_F_REPLACE) {
		old = find_joined(routes, *first, peers, wish);
		if (!old)
			old = find_src(routes, *first, peers, &wish->key);
	} else if (!old && joins(&wish->key, wish->hops)) {
		old = find_joined(routes, *first, peers, wish); // all its next hops were told
	}
	if (!old) {
		put(routes, peers, way, end_of(routes, first, peers));
		return;
	}
	seen(routes, old);
	if (at(routes, old)->way != way)
		routes_lead(routes, old, way);
}

// Linux took a route away that we do not have so, while another one stands in its place: either it
// was among those that went without a word, or we are wrong.
static void missed(struct routes *routes, const struct peers *peers)
{
	const struct mirror_hands *hands = &routes->mirror->settings.hands;

	if (!routes->is_dumping && is_peer(routes, *first_of(routes, peers), peers))
		hands->dump_again(hands->hands);
}

static void delete4(struct routes *routes, const struct peers *peers)
{
	uint32_t way = ways_find(&routes->ways, &routes->wish);
	uint32_t old = way ? find_way(routes, *first_of(routes, peers), peers, way) : 0;

	if (old)
		routes_drop(routes, old);
	else
		missed(routes, peers);
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
	const struct way *way = way_of(routes, route);
	struct way_wish *rest = &routes->rest;

	rest->key = way->key;
	rest->key.n_hops = 0;
	for (unsigned i = 0; i < way->key.n_hops; i++)
		if (!is_told(&routes->wish, &way->hops[i]))
			rest->hops[rest->key.n_hops++] = way->hops[i];
	if (rest->key.n_hops == way->key.n_hops)
		missed(routes, peers);
	else if (!rest->key.n_hops)
		routes_drop(routes, route);
	else
		routes_lead(routes, route, get_way(routes, rest));
}

// A route that joins no other: the one that leaves in the same way.
static uint32_t find_alone(struct routes *routes, uint32_t first, const struct peers *peers)
{
	const struct way_wish *wish = &routes->wish;

	for (; is_peer(routes, first, peers); first = at(routes, first)->next) {
		const struct way *way = way_of(routes, first);
		if (has_src(way, &wish->key) && way->key.type == wish->key.type &&
			way->key.nh_id == wish->key.nh_id && !joins(&way->key, way->hops) &&
			way->key.n_hops == wish->key.n_hops &&
			(!way->key.n_hops || same_exit(way->hops, wish->hops)))
			return first;
	}
	return 0;
}

static void delete6(struct routes *routes, const struct peers *peers)
{
	const struct way_wish *wish = &routes->wish;
	uint32_t first = *first_of(routes, peers);
	bool is_joined = joins(&wish->key, wish->hops);
	uint32_t old = is_joined ? find_joined(routes, first, peers, wish)
	                         : find_alone(routes, first, peers);

	if (!old)
		missed(routes, peers);
	else if (is_joined)
		subtract(routes, old, peers);
	else
		routes_drop(routes, old);
}

static void forget(struct routes *routes, const struct peers *peers, bool is_ipv4)
{
	if (!peers->place)
		return;
	if (is_ipv4)
		delete4(routes, peers);
	else
		delete6(routes, peers);
}

static int domain_of(struct routes *routes, uint32_t table)
{
	struct store *store = &routes->store;
	uint32_t n_before = store->n_domains;
	int domain = store_domain(store, table);

	if (domain >= 0 && store->n_domains != n_before)
		store->domain[domain].vrf =
			links_vrf_of_table(routes->mirror, store->domain[domain].table);
	return domain;
}

void routes_event(struct routes *routes, const struct event *event)
{
	const struct event_route *told = &event->route;
	bool is_ipv4 = told->prefix.addr.family == 4;
	int domain = domain_of(routes, told->table);

	if (told->flags & RTM_F_CLONED || domain < 0)
		return;
	struct peers peers = {.rank = rank_of(told->table),
		.narrow = is_ipv4 ? told->tos : told->src_len,
		.metric = told->metric};
	fill_wish(&routes->wish, told);
	if (event->is_delete) {
		peers.place = store_find(&routes->store, domain, &told->prefix);
		forget(routes, &peers, is_ipv4);
		return;
	}
	uint32_t way = get_way(routes, &routes->wish);
	peers.place = way ? store_place(&routes->store, domain, &told->prefix) : 0;
	if (!peers.place) {
		routes->n_lost++;
		if (way)
			routes_free_way(routes, way);
	} else if (is_ipv4) {
		add4(routes, &peers, way, event);
	} else {
		add6(routes, &peers, way, event);
	}
}
