// Linux's routes and next hops: what is heard goes into the store, what is best of each prefix into
// the fib. Here: how routes hang together, and the dump's mark and sweep. Control thread.
#include "netlink/routes_inside.h"

#include <errno.h>
#include <stdlib.h>

int routes_open(struct routes **out, struct mirror *mirror, struct error *error)
{
	struct routes *routes = calloc(1, sizeof(*routes));

	if (!routes)
		return error_set(error, -ENOMEM, "no memory for Linux's routes; free some");
	routes->mirror = mirror;
	routes->changes = malloc(ROUTES_BATCH * sizeof(*routes->changes));
	routes->changed = malloc(ROUTES_BATCH * sizeof(*routes->changed));
	routes->changed_hop_set = malloc(ROUTES_BATCH * sizeof(*routes->changed_hop_set));
	if (routes->changes && routes->changed && routes->changed_hop_set &&
		!store_open(&routes->store) && !hop_sets_open(&routes->hop_sets) &&
		!nexthops_open(&routes->nexthops)) {
		*out = routes;
		return 0;
	}
	routes_close(routes);
	return error_set(error, -ENOMEM, "no memory for Linux's routes; free some");
}

void routes_close(struct routes *routes)
{
	store_close(&routes->store);
	hop_sets_close(&routes->hop_sets);
	nexthops_close(&routes->nexthops);
	free(routes->broad);
	free(routes->seen);
	free(routes->changes);
	free(routes->changed);
	free(routes->changed_hop_set);
	free(routes);
}

void routes_stale(struct routes *routes, uint32_t number)
{
	struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, number);

	hop_set->is_resolved = false;
	hop_set->cursor = hop_set->first;
	if (hop_set->is_stale)
		return;
	hop_set->is_stale = true;
	hop_set->next_stale = routes->first_stale;
	routes->first_stale = number;
}

static void leave_nexthop(struct routes *routes, uint32_t number)
{
	struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, number);
	struct nexthop *nexthop = nexthops_find(&routes->nexthops, hop_set->key.nh_id);

	if (!hop_set->key.nh_id || !nexthop)
		return;
	uint32_t *iface = &nexthop->first_hop_set;
	while (*iface != number)
		iface = &hop_sets_at(&routes->hop_sets, *iface)->next_of_nexthop;
	*iface = hop_set->next_of_nexthop;
	nexthops_release(&routes->nexthops, nexthop);
}

void routes_free_hop_set(struct routes *routes, uint32_t number)
{
	const struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, number);

	if (hop_set->n_routes || hop_set->is_stale || hop_set->is_deferred)
		return; // who takes it off that list frees it
	leave_nexthop(routes, number);
	hop_sets_free(&routes->hop_sets, number);
}

static void leave_hop_set(struct routes *routes, uint32_t number)
{
	struct store_route *route = &routes->store.route[number];
	struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, route->hop_set);

	if (hop_set->cursor == number)
		hop_set->cursor = route->hop_set_next;
	if (route->hop_set_prev)
		routes->store.route[route->hop_set_prev].hop_set_next = route->hop_set_next;
	else
		hop_set->first = route->hop_set_next;
	if (route->hop_set_next)
		routes->store.route[route->hop_set_next].hop_set_prev = route->hop_set_prev;
	hop_set->n_routes--;
	routes_free_hop_set(routes, route->hop_set);
}

void routes_lead(struct routes *routes, uint32_t number, uint32_t to)
{
	struct store_route *route = &routes->store.route[number];
	struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, to);

	hop_set->n_routes++; // first, lest it be freed
	if (route->hop_set)
		leave_hop_set(routes, number);
	route->hop_set = to;
	route->hop_set_prev = 0;
	route->hop_set_next = hop_set->first;
	if (hop_set->first)
		routes->store.route[hop_set->first].hop_set_prev = number;
	hop_set->first = number;
	store_touch(&routes->store, route->place);
}

void routes_drop(struct routes *routes, uint32_t number)
{
	uint32_t place = routes->store.route[number].place;

	leave_hop_set(routes, number);
	store_remove(&routes->store, number);
	store_touch(&routes->store, place);
	routes_poll_broad(routes, place);
}

void routes_drop_hop_set(struct routes *routes, uint32_t number)
{
	struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, number);

	for (uint32_t n = hop_set->n_routes; n; n--) // with the last one the way goes
		routes_drop(routes, hop_set->first);
}

void routes_dump_begins(struct routes *routes)
{
	routes->generation++;
	routes->is_dumping = true;
}

static void sweep_routes(struct routes *routes)
{
	struct store *store = &routes->store;

	for (uint32_t i = 1; i < store->top_route; i++)
		if (store->route[i].place && store->route[i].generation != routes->generation)
			routes_drop(routes, i);
}

static void sweep_nexthops(struct routes *routes)
{
	struct nexthop *at = nexthops_next(&routes->nexthops, NULL);

	for (struct nexthop *next; at; at = next) {
		if (at->is_known && at->generation != routes->generation) {
			routes_nexthop_lost(routes, at);
			at = NULL; // others may have gone with it
		}
		next = nexthops_next(&routes->nexthops, at);
	}
}

void routes_dump_ends(struct routes *routes, uint32_t partial)
{
	if (!routes->is_dumping)
		return;
	routes->is_dumping = false;
	if (!event_kinds_have(partial, EVENT_ROUTE))
		sweep_routes(routes);
	if (!event_kinds_have(partial, EVENT_NEXTHOP))
		sweep_nexthops(routes);
}

void routes_vrf_changed(struct routes *routes, uint32_t table)
{
	struct store *store = &routes->store;
	int domain = store_domain(store, table);

	if (domain < 0)
		return;
	store->domain[domain].vrf = ifaces_vrf_of_table(routes->mirror, table);
	for (uint32_t i = 1; i < store->top_place && store->domain[domain].n_places; i++) {
		struct store_place *place = &store->place[i];
		if (place->domain != domain || !place->is_used)
			continue;
		place->is_in_fib = false;
		store_touch(store, i);
	}
}

void routes_info(const struct routes *routes, struct netlink_info *out)
{
	out->routes4 = routes->store.n_routes[0];
	out->routes6 = routes->store.n_routes[1];
	out->nexthops = routes->nexthops.n_known;
	out->control_bytes += store_bytes(&routes->store) + routes->hop_sets.bytes +
	                      routes->nexthops.bytes + ROUTES_BATCH * sizeof(*routes->changes);
}
