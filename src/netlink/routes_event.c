// Handlers of route events: each updates the store in the way the kernel updates its own tables,
// which differs between IPv4 and IPv6. Control thread.
#include "netlink/routes_inside.h"

#include "base/bits.h"
#include "base/clock.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>

// The kernel reports a lifetime that ends within the current tick as none, hence the margin. Dumps
// triggered by lifetimes are rate limited; an expired route is checked again until the kernel has
// collected it.
static const uint64_t TICK_NS = 10000000, MARGIN_NS = 200000000;
static const uint64_t SOON_NS = 1000000000, LATER_NS = 5000000000;

static uint8_t rank_of(uint32_t table)
{
	return table == RT_TABLE_LOCAL     ? RANK_LOCAL
	       : table == RT_TABLE_DEFAULT ? RANK_DEFAULT
	                                   : RANK_MAIN;
}

static bool is_error(uint8_t type)
{
	return type == RTN_BLACKHOLE || type == RTN_UNREACHABLE || type == RTN_PROHIBIT ||
	       type == RTN_THROW;
}

// For IPv6 the kernel compares fewer fields than for IPv4.
static void fill_key(struct hop_set_key *key, const struct event_route *reported)
{
	bool is_ipv4 = reported->prefix.addr.family == 4;

	memset(key, 0, sizeof(*key));
	key->family = reported->prefix.addr.family;
	key->type = reported->type;
	key->nh_id = reported->nh_id;
	key->mtu = reported->mtu;
	key->protocol = is_ipv4 || reported->protocol == RTPROT_RA ? reported->protocol : 0;
	key->has_too_many_hops = reported->too_many_hops && !reported->nh_id;
	if (is_ipv4) {
		key->scope = reported->scope;
		key->metrics = reported->metrics;
		key->prefsrc = reported->prefsrc;
	} else {
		key->src = reported->src;
		key->src_len = reported->src_len;
	}
	if (reported->nh_id && reported->type == RTN_BLACKHOLE)
		key->type = RTN_UNICAST; // current content of the object
	if (!reported->nh_id && !is_error(reported->type))
		key->n_hops = reported->n_hops;
	if (is_ipv4 && (key->n_hops > 1 || key->prefsrc.family)) { // removed separately
		key->table = reported->table;
		key->metric = reported->metric;
	}
}

// The kernel also marks hops dead that it only ignores for lack of a carrier. That is derived from
// the interface state here, because there are no route notifications when the carrier returns. Hops
// on an interface without addresses look the same, although it has a carrier.
static bool is_dead(const struct routes *routes, const struct event_hop *hop, uint8_t family)
{
	if (!(hop->flags & RTNH_F_DEAD))
		return false;
	const struct ifaces_state state = ifaces_state(routes->mirror, hop->ifindex);
	bool is_ignored = family == 4 ? state.ignores_linkdown4 : state.ignores_linkdown6;

	return !(hop->flags & RTNH_F_LINKDOWN && state.is_up && !state.has_carrier && is_ignored);
}

static void fill_request(struct routes *routes, const struct event_route *reported)
{
	struct hop_set_request *request = &routes->request;

	fill_key(&request->key, reported);
	for (unsigned i = 0; i < request->key.n_hops; i++) {
		const struct event_hop *hop = &reported->hop[i];
		request->hops[i] = (struct hop_set_hop){.via = hop->via,
			.has_encap = hop->has_encap,
			.n_labels = hop->n_labels,
			.label_ttl = hop->label_ttl,
			.is_onlink = hop->flags & RTNH_F_ONLINK,
			.is_dead = is_dead(routes, hop, request->key.family),
			.ifindex = hop->ifindex,
			.weight = hop->weight};
		memcpy(request->hops[i].label, hop->label, sizeof(hop->label));
	}
}

// Next hops die and revive without changing the key of the set.
static void take_deaths(struct routes *routes, uint32_t number,
	const struct hop_set_request *request)
{
	struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, number);
	bool has_changed = false;

	for (unsigned i = 0; i < hop_set->key.n_hops; i++) {
		has_changed |= hop_set->hops[i].is_dead != request->hops[i].is_dead;
		hop_set->hops[i].is_dead = request->hops[i].is_dead;
	}
	if (has_changed)
		routes_stale(routes, number);
}

uint32_t read_hop_set(struct routes *routes, const struct hop_set_request *request)
{
	uint32_t number = hop_sets_get(&routes->hop_sets, request);

	if (!number) {
		routes_lost(routes, EVENT_ROUTE);
		return 0;
	}
	struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, number);
	if (!hop_set->n_routes && !hop_set->is_stale && !hop_set->is_deferred &&
		request->key.nh_id) {
		struct nexthop *nexthop = nexthops_get(&routes->nexthops, request->key.nh_id);
		if (!nexthop) {
			hop_sets_free(&routes->hop_sets, number);
			routes_lost(routes, EVENT_ROUTE);
			return 0;
		}
		hop_set->next_of_nexthop = nexthop->first_hop_set;
		nexthop->first_hop_set = number;
	}
	take_deaths(routes, number, request);
	return number;
}

static void forget(struct routes *routes, const struct peers *peers, bool is_ipv4)
{
	if (!peers->place)
		return;
	if (is_ipv4)
		handle_delete4(routes, peers);
	else
		handle_delete6(routes, peers);
}

static int domain_of(struct routes *routes, uint32_t table)
{
	struct store *store = &routes->store;
	uint32_t n_before = store->n_domains;
	int domain = store_domain(store, table);

	if (domain >= 0 && store->n_domains != n_before)
		store->domain[domain].vrf =
			ifaces_vrf_of_table(routes->mirror, store->domain[domain].table);
	return domain;
}

// An expired route counts as deleted, however long the kernel keeps it. When the next lifetime
// ends, the kernel is queried again, because the lifetime may have been extended without a
// notification. Returns true if the route has expired.
static bool has_expired(struct routes *routes, const struct event_route *reported)
{
	uint64_t left_ns = LATER_NS;

	if (!reported->expires)
		return false;
	if (reported->expires > 0)
		left_ns = MAX_OF(reported->expires * TICK_NS + MARGIN_NS, SOON_NS);
	const uint64_t at_ns = clock_now_ns() + left_ns;
	if (!routes->look_again_ns || at_ns < routes->look_again_ns)
		routes->look_again_ns = at_ns;
	return reported->expires < 0;
}

void routes_poll(struct routes *routes)
{
	const struct mirror_ops *ops = &routes->mirror->settings.ops;

	routes_follow_hash_policy(routes);
	if (!routes->look_again_ns || routes->is_dumping || clock_now_ns() < routes->look_again_ns)
		return;
	routes->look_again_ns = 0; // the dump sets the next time
	ops->dump_again(ops->ops);
}

static void repeat(struct routes *routes, const struct peers *peers);

void routes_event(struct routes *routes, const struct event *event)
{
	const struct event_route *reported = &event->route;
	bool is_ipv4 = reported->prefix.addr.family == 4;
	int domain = domain_of(routes, reported->table);

	if (domain == -ENOMEM)
		routes_lost(routes, EVENT_ROUTE);
	if (reported->flags & RTM_F_CLONED || domain < 0)
		return;
	if (!event->is_delete && has_expired(routes, reported))
		return;
	struct peers peers = {.rank = rank_of(reported->table),
		.narrow = is_ipv4 ? reported->tos : reported->src_len,
		.metric = reported->metric};
	fill_request(routes, reported);
	if (event->is_delete) {
		peers.place = store_find(&routes->store, domain, &reported->prefix);
		forget(routes, &peers, is_ipv4);
		return;
	}
	if (!event->is_dump && !event->nl_flags) {
		peers.place = store_find(&routes->store, domain, &reported->prefix);
		repeat(routes, &peers);
		return;
	}
	uint32_t hop_set = read_hop_set(routes, &routes->request);
	if (!hop_set)
		return;
	peers.place = store_place(&routes->store, domain, &reported->prefix);
	if (!peers.place) {
		routes->n_lost++;
		routes_free_hop_set(routes, hop_set);
	} else if (is_ipv4) {
		handle_add4(routes, &peers, hop_set, event);
	} else {
		handle_add6(routes, &peers, hop_set, event);
	}
}

// IPv4 routes: those of one prefix, TOS and metric form a list, of which the first one is used.

// A dump returns routes in kernel order: each one goes after those already dumped.
static void move_to_end(struct routes *routes, uint32_t number, const struct peers *peers)
{
	uint32_t *iface = peers_first(routes, peers);

	if (!peers_has(routes, peers_at(routes, number)->next, peers))
		return;
	while (*iface != number)
		iface = &peers_at(routes, *iface)->next;
	*iface = peers_at(routes, number)->next;
	iface = peers_end(routes, iface, peers);
	peers_at(routes, number)->next = *iface;
	*iface = number;
	store_touch(&routes->store, peers->place);
}

void handle_add4(struct routes *routes, const struct peers *peers, uint32_t hop_set,
	const struct event *event)
{
	uint32_t *first = peers_first(routes, peers);
	uint32_t same = peers_find_hop_set(routes, *first, peers, hop_set);

	if (same) {
		peers_seen(routes, same);
		if (event->is_dump)
			move_to_end(routes, same, peers);
	} else if (event->nl_flags & NLM_F_REPLACE && peers_has(routes, *first, peers)) {
		peers_seen(routes, *first);
		routes_lead(routes, *first, hop_set);
	} else if (event->nl_flags & NLM_F_APPEND || event->is_dump) {
		peers_put(routes, peers, hop_set, peers_end(routes, first, peers));
	} else {
		peers_put(routes, peers, hop_set, first);
	}
}

// The route with the requested next-hop set.
static uint32_t find_equal(struct routes *routes, uint32_t first, const struct peers *peers)
{
	uint32_t hop_set = hop_sets_find(&routes->hop_sets, &routes->request);

	return hop_set ? peers_find_hop_set(routes, first, peers, hop_set) : 0;
}

void handle_delete4(struct routes *routes, const struct peers *peers)
{
	uint32_t old = find_equal(routes, *peers_first(routes, peers), peers);

	if (old)
		routes_drop(routes, old);
	else
		peers_missed(routes, peers);
}

// IPv6 routes: those of one prefix and metric via gateways form one multipath route.

// Whether such IPv6 routes are merged with others of the same metric into one route.
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

// The route that these hops are merged with or replace; 0: none.
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

// Whether the event only reports a change of the route's next-hop object.
static bool is_nexthop_change(const struct routes *routes, const struct event *event)
{
	return event->route.nh_id && event->sequence == routes->nexthop_sequence &&
	       event->port_id == routes->nexthop_port_id;
}

// The route with this next-hop set. There may be several (see an event with NLM_F_REPLACE), of
// which a dump reports one after another.
static uint32_t find_same6(struct routes *routes, const struct peers *peers, uint32_t hop_set,
	const struct event *event)
{
	uint32_t same = *peers_first(routes, peers);

	if (!event->is_dump)
		return peers_find_hop_set(routes, same, peers, hop_set);
	if (event->sequence != routes->pass_sequence)
		routes->pass++;
	routes->pass_sequence = event->sequence;
	while ((same = peers_find_hop_set(routes, same, peers, hop_set)) &&
		peers_at(routes, same)->pass == routes->pass)
		same = peers_at(routes, same)->next;
	if (same)
		peers_at(routes, same)->pass = routes->pass;
	return same;
}

void handle_add6(struct routes *routes, const struct peers *peers, uint32_t hop_set,
	const struct event *event)
{
	const struct hop_set_request *request = &routes->request;
	uint32_t *first = peers_first(routes, peers);
	uint32_t old = find_same6(routes, peers, hop_set, event);

	if (event->nl_flags & NLM_F_REPLACE && !(old && is_nexthop_change(routes, event))) {
		// The first route of its kind is replaced, even if an equal route already exists:
		// then there are two equal routes.
		old = find_joined(routes, *first, peers, request);
		if (!old)
			old = find_src(routes, *first, peers, &request->key);
	} else if (!old && joins(&request->key, request->hops)) {
		old = find_joined(routes, *first, peers, request); // all its next hops were
		                                                   // reported
	}
	if (!old) {
		old = peers_put(routes, peers, hop_set, peers_end(routes, first, peers));
		if (old)
			peers_at(routes, old)->pass = routes->pass - !event->is_dump;
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

static bool is_reported(const struct hop_set_request *request, const struct hop_set_hop *hop)
{
	for (unsigned i = 0; i < request->key.n_hops; i++)
		if (same_exit(&request->hops[i], hop))
			return true;
	return false;
}

// Without memory for what is left, the route stays as it is until the next dump.
static void lead_to_rest(struct routes *routes, uint32_t route)
{
	uint32_t hop_set = read_hop_set(routes, &routes->rest);

	if (hop_set)
		routes_lead(routes, route, hop_set);
}

// Removes the reported hops from a route; with the last hop the route is removed.
static void subtract(struct routes *routes, uint32_t route, const struct peers *peers)
{
	const struct hop_set *hop_set = peers_hop_set(routes, route);
	struct hop_set_request *rest = &routes->rest;

	rest->key = hop_set->key;
	rest->key.n_hops = 0;
	for (unsigned i = 0; i < hop_set->key.n_hops; i++)
		if (!is_reported(&routes->request, &hop_set->hops[i]))
			rest->hops[rest->key.n_hops++] = hop_set->hops[i];
	if (rest->key.n_hops == hop_set->key.n_hops)
		peers_missed(routes, peers);
	else if (!rest->key.n_hops)
		routes_drop(routes, route);
	else
		lead_to_rest(routes, route);
}

// For a route that is not merged: the one with the same next-hop set.
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

// The route that the request is, or is a part of.
static uint32_t find_like6(struct routes *routes, uint32_t first, const struct peers *peers)
{
	const struct hop_set_request *request = &routes->request;

	return joins(&request->key, request->hops) ? find_joined(routes, first, peers, request)
	                                           : find_alone(routes, first, peers);
}

void handle_delete6(struct routes *routes, const struct peers *peers)
{
	const struct hop_set_request *request = &routes->request;
	bool is_joined = joins(&request->key, request->hops);
	uint32_t old = find_like6(routes, *peers_first(routes, peers), peers);

	if (!old)
		peers_missed(routes, peers);
	else if (is_joined)
		subtract(routes, old, peers);
	else
		routes_drop(routes, old);
}

// With fib_notify_on_flag_change the kernel repeats a route, without flags, when a driver has
// offloaded it. If it is unknown here, either its deletion has overtaken the message or our state
// is wrong.
static void repeat(struct routes *routes, const struct peers *peers)
{
	const struct mirror_ops *ops = &routes->mirror->settings.ops;
	uint32_t first = peers->place ? *peers_first(routes, peers) : 0;
	uint32_t known = routes->request.key.family == 4 ? find_equal(routes, first, peers)
	                                                 : find_like6(routes, first, peers);

	if (known)
		peers_seen(routes, known);
	else if (!routes->is_dumping) // the dump contains it, if it exists
		ops->dump_again(ops->ops);
}
