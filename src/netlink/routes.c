// The kernel's routes and next hops: events update the store, and the best route of each prefix
// goes into the fib. Here: the relations between routes and next-hop sets, and mark and sweep
// around dumps. Control thread.
#include "base/bits.h"
#include "netlink/routes_inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int routes_open(struct routes **out, struct mirror *mirror, struct error *error)
{
	struct routes *routes = calloc(1, sizeof(*routes));

	if (!routes)
		return error_set(error, -ENOMEM, "not enough memory for Linux's routes; free some");
	routes->mirror = mirror;
	routes->changes = malloc(ROUTES_BATCH * sizeof(*routes->changes));
	routes->changed = malloc(ROUTES_BATCH * sizeof(*routes->changed));
	routes->changed_hop_set = malloc(ROUTES_BATCH * sizeof(*routes->changed_hop_set));
	if (routes->changes && routes->changed && routes->changed_hop_set &&
		!store_open(&routes->store) && !hop_sets_open(&routes->hop_sets) &&
		!nexthops_open(&routes->nexthops)) {
		routes->hash_policy[0] = routes->hash_policy[1] = HASH_LAYER4;
		routes_follow_hash_policy(routes);
		*out = routes;
		return 0;
	}
	routes_close(routes);
	return error_set(error, -ENOMEM, "not enough memory for Linux's routes; free some");
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

void routes_lost(const struct routes *routes, enum event_kind kind)
{
	const struct mirror_ops *ops = &routes->mirror->settings.ops;

	ops->lost(ops->ops, kind);
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
		return; // freed when it is taken off that list
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

	hop_set->n_routes++; // first, so that it is not freed
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

	for (uint32_t n = hop_set->n_routes; n; n--) // the set is freed with its last route
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
			at = NULL; // other routes may have been removed with it
		}
		next = nexthops_next(&routes->nexthops, at);
	}
}

static void list_all_broad(struct routes *routes)
{
	routes->lacks_broad = false;
	for (uint32_t i = 1; i < routes->store.top_place; i++)
		if (routes->store.place[i].is_used)
			routes_poll_broad(routes, i);
}

void routes_dump_ends(struct routes *routes, uint32_t partial)
{
	if (!routes->is_dumping)
		return;
	routes->is_dumping = false;
	if (routes->lacks_broad)
		list_all_broad(routes);
	if (routes->lacks_seen)
		routes_see_all(routes);
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

// Routes that workers leave to Linux, summarised by reason and interface for display.

enum { MOST_SUMS = 64 };

static const char *const what_of[N_HOP_SET_REASONS] = {
	[HOP_SET_UNKNOWN_LINK] = "route via an interface not yet reported by Linux",
	[HOP_SET_UNKNOWN_NEXTHOP] = "route via a next-hop object not yet reported by Linux",
	[HOP_SET_FOREIGN_LINK] = "route via an interface that is not a port",
	[HOP_SET_ENCAP] = "route with lwtunnel encapsulation",
	[HOP_SET_SOURCE] = "source-specific route",
	[HOP_SET_TYPE] = "route of an unsupported type",
	[HOP_SET_MTU] = "route with an MTU below that of its interface",
	[HOP_SET_MANY] = "route with more than 64 next hops",
	[HOP_SET_MIXED] = "multipath route with an on-link next hop",
	[HOP_SET_HASH] = "multipath route by hash policy 2 or 3",
	[HOP_SET_FULL] = "route beyond the capacity of the next-hop tables",
	[HOP_SET_TOS] = "TOS-specific route",
	[HOP_SET_UNDER_LOCAL] = "route within a shorter local route",
	[HOP_SET_LAST_TABLE] = "route in the table \"default\"",
	[HOP_SET_SAME_METRIC] = "several IPv6 routes with the same metric",
	[HOP_SET_LEAKED] = "on-link route into another VRF",
};

// One line of the summary.
struct sum {
	uint8_t reason;
	int ifindex;
	uint64_t n;
	uint32_t place; // the first place
};

static void add(struct sum *sums, unsigned *n_sums, const struct sum *one)
{
	for (unsigned i = 0; i < *n_sums; i++)
		if (sums[i].reason == one->reason && sums[i].ifindex == one->ifindex) {
			sums[i].n++;
			return;
		}
	if (*n_sums < MOST_SUMS)
		sums[(*n_sums)++] = *one;
	else
		sums[MOST_SUMS - 1].n++;
}

static unsigned sum_up(struct routes *routes, struct sum *sums)
{
	struct routes_choice choice;
	unsigned n_sums = 0;

	for (uint32_t i = 1; i < routes->store.top_place; i++) {
		if (!routes->store.place[i].is_linux)
			continue;
		routes_choose(routes, i, &choice);
		if (choice.is_nothing || choice.reason == HOP_SET_OK)
			continue; // changed since the last flush
		const struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, choice.hop_set);
		add(sums, &n_sums,
			&(struct sum){.reason = choice.reason,
				.ifindex = choice.reason < HOP_SET_TOS ? hop_set->blame : 0,
				.n = 1,
				.place = i});
	}
	return n_sums;
}

static void print(struct routes *routes, const struct sum *sum, struct netlink_unsupported *out)
{
	struct wire_prefix prefix = store_prefix(&routes->store.place[sum->place]);
	char text[WIRE_PREFIX_TEXT];

	*out = (struct netlink_unsupported){.n = sum->n};
	snprintf(out->what, sizeof(out->what), "%s", what_of[sum->reason]);
	wire_prefix_print(&prefix, text);
	if (sum->ifindex)
		snprintf(out->where, sizeof(out->where), "%.43s dev %.15s", text,
			ifaces_name(routes->mirror, sum->ifindex));
	else
		snprintf(out->where, sizeof(out->where), "%s", text);
	snprintf(out->effect, sizeof(out->effect),
		"Linux forwards packets to it, up to the rate of class linux");
}

static void print_lost(const struct routes *routes, struct netlink_unsupported *out)
{
	*out = (struct netlink_unsupported){.n = routes->n_refused + routes->n_lost};
	snprintf(out->what, sizeof(out->what), "route beyond the capacity of the table");
	snprintf(out->where, sizeof(out->where), "more than %u routes", STORE_MAX - 1);
	snprintf(out->effect, sizeof(out->effect),
		"workers do not have it and use the next shorter prefix");
}

void routes_unsupported(struct routes *routes,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	struct sum sums[MOST_SUMS];
	struct netlink_unsupported one;
	unsigned n = sum_up(routes, sums);

	for (unsigned i = 0; i < n; i++) {
		print(routes, &sums[i], &one);
		if (!cb(arg, &one))
			return;
	}
	if (routes->n_refused + routes->n_lost) {
		print_lost(routes, &one);
		cb(arg, &one);
	}
}
