// Linux's routes and next hops: what is heard goes into the store, what is best of each prefix into
// the fib. Here: how routes hang together, and the dump's mark and sweep. Control thread.
#include "sync/routes_inside.h"

#include <errno.h>
#include <stdlib.h>

int routes_open(struct routes **out, struct mirror *mirror, struct complaint *why)
{
	struct routes *routes = calloc(1, sizeof(*routes));

	if (!routes)
		return complain(why, -ENOMEM, "no memory for Linux's routes; free some");
	routes->mirror = mirror;
	routes->changes = malloc(ROUTES_BATCH * sizeof(*routes->changes));
	routes->changed = malloc(ROUTES_BATCH * sizeof(*routes->changed));
	routes->changed_way = malloc(ROUTES_BATCH * sizeof(*routes->changed_way));
	if (routes->changes && routes->changed && routes->changed_way &&
		!store_open(&routes->store) && !ways_open(&routes->ways) &&
		!nexthops_open(&routes->nexthops)) {
		*out = routes;
		return 0;
	}
	routes_close(routes);
	return complain(why, -ENOMEM, "no memory for Linux's routes; free some");
}

void routes_close(struct routes *routes)
{
	store_close(&routes->store);
	ways_close(&routes->ways);
	nexthops_close(&routes->nexthops);
	free(routes->broad);
	free(routes->seen);
	free(routes->changes);
	free(routes->changed);
	free(routes->changed_way);
	free(routes);
}

void routes_stale(struct routes *routes, uint32_t number)
{
	struct way *way = ways_at(&routes->ways, number);

	way->is_resolved = false;
	way->cursor = way->first;
	if (way->is_stale)
		return;
	way->is_stale = true;
	way->next_stale = routes->first_stale;
	routes->first_stale = number;
}

static void leave_nexthop(struct routes *routes, uint32_t number)
{
	struct way *way = ways_at(&routes->ways, number);
	struct nexthop *nexthop = nexthops_find(&routes->nexthops, way->key.nh_id);

	if (!way->key.nh_id || !nexthop)
		return;
	uint32_t *link = &nexthop->first_way;
	while (*link != number)
		link = &ways_at(&routes->ways, *link)->next_of_nexthop;
	*link = way->next_of_nexthop;
	nexthops_release(&routes->nexthops, nexthop);
}

void routes_free_way(struct routes *routes, uint32_t number)
{
	const struct way *way = ways_at(&routes->ways, number);

	if (way->n_routes || way->is_stale || way->is_starved)
		return; // who takes it off that list frees it
	leave_nexthop(routes, number);
	ways_free(&routes->ways, number);
}

static void leave_way(struct routes *routes, uint32_t number)
{
	struct store_route *route = &routes->store.route[number];
	struct way *way = ways_at(&routes->ways, route->way);

	if (way->cursor == number)
		way->cursor = route->way_next;
	if (route->way_prev)
		routes->store.route[route->way_prev].way_next = route->way_next;
	else
		way->first = route->way_next;
	if (route->way_next)
		routes->store.route[route->way_next].way_prev = route->way_prev;
	way->n_routes--;
	routes_free_way(routes, route->way);
}

void routes_lead(struct routes *routes, uint32_t number, uint32_t to)
{
	struct store_route *route = &routes->store.route[number];
	struct way *way = ways_at(&routes->ways, to);

	way->n_routes++; // first, lest it be freed
	if (route->way)
		leave_way(routes, number);
	route->way = to;
	route->way_prev = 0;
	route->way_next = way->first;
	if (way->first)
		routes->store.route[way->first].way_prev = number;
	way->first = number;
	store_touch(&routes->store, route->place);
}

void routes_drop(struct routes *routes, uint32_t number)
{
	uint32_t place = routes->store.route[number].place;

	leave_way(routes, number);
	store_remove(&routes->store, number);
	store_touch(&routes->store, place);
	routes_tend_broad(routes, place);
}

void routes_drop_way(struct routes *routes, uint32_t number)
{
	struct way *way = ways_at(&routes->ways, number);

	for (uint32_t n = way->n_routes; n; n--) // with the last one the way goes
		routes_drop(routes, way->first);
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
	store->domain[domain].vrf = links_vrf_of_table(routes->mirror, table);
	for (uint32_t i = 1; i < store->top_place && store->domain[domain].n_places; i++) {
		struct store_place *place = &store->place[i];
		if (place->domain != domain || !place->is_used)
			continue;
		place->is_in_fib = false;
		store_touch(store, i);
	}
}

void routes_info(const struct routes *routes, struct sync_info *out)
{
	out->routes4 = routes->store.n_routes[0];
	out->routes6 = routes->store.n_routes[1];
	out->nexthops = routes->nexthops.n_known;
	out->control_bytes += store_bytes(&routes->store) + routes->ways.bytes +
	                      routes->nexthops.bytes + ROUTES_BATCH * sizeof(*routes->changes);
}
