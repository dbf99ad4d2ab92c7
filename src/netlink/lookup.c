// Kernel state for display in addition to the forwarding tables: names, addresses of ports, and who
// installed a route. Control thread.
#include "netlink/ifaces_inside.h"
#include "netlink/inside.h"
#include "netlink/routes_inside.h"

#include <string.h>

const char *netlink_iface_name(const struct netlink *netlink, uint16_t iface)
{
	int ifindex = ifaces_ifindex(netlink->mirror, iface);

	return ifindex ? ifaces_name(netlink->mirror, ifindex) : NULL;
}

const char *netlink_vrf_name(const struct netlink *netlink, uint16_t vrf)
{
	return ifaces_vrf_name(netlink->mirror, vrf);
}

int netlink_vrf_find(const struct netlink *netlink, const char *name)
{
	return ifaces_vrf_find(netlink->mirror, name);
}

unsigned netlink_addresses(const struct netlink *netlink, unsigned port, struct wire_prefix out[],
	unsigned max)
{
	const struct mirror *mirror = netlink->mirror;
	const int ifindex = mirror->settings.tap[port];

	return ifindex ? addresses_of(&mirror->ifaces->addresses, ifindex, out, max) : 0;
}

// The domain of a VRF's table, without creating it. Returns false if there is none yet.
static bool find_domain(const struct store *store, uint32_t table, uint16_t *out)
{
	for (uint32_t i = 0; i < store->n_domains; i++)
		if (store->domain[i].table == table) {
			*out = i;
			return true;
		}
	return false;
}

// The place of a prefix in a VRF's table; 0: none.
static uint32_t find_place(const struct routes *routes, uint16_t vrf,
	const struct wire_prefix *prefix)
{
	uint16_t domain;

	if (!find_domain(&routes->store, ifaces_table_of_vrf(routes->mirror, vrf), &domain))
		return 0;
	return store_find(&routes->store, domain, prefix);
}

// Whether other routes of the prefix have the metric of the one chosen.
static bool has_equals(const struct routes *routes, uint32_t number,
	const struct routes_choice *choice)
{
	const struct store_route *best = NULL;
	unsigned n = 0;

	for (uint32_t i = routes->store.place[number].first; i; i = routes->store.route[i].next) {
		const struct store_route *route = &routes->store.route[i];

		if (!best && route->hop_set == choice->hop_set)
			best = route;
		n += best && route->rank == best->rank && route->metric == best->metric;
	}
	return n > 1;
}

enum lookup_worth routes_lookup_worth(struct routes *routes, uint16_t vrf,
	const struct wire_prefix *prefix)
{
	uint32_t number = find_place(routes, vrf, prefix);
	struct routes_choice choice = {.is_nothing = true};

	if (number)
		routes_choose(routes, number, &choice);
	if (choice.is_nothing)
		return LOOKUP_ROUTE;
	switch (choice.reason) {
	case HOP_SET_SOURCE:
	case HOP_SET_TYPE: // of `throw`, after which Linux continues with the next table
	case HOP_SET_TOS:
	case HOP_SET_UNDER_LOCAL:
	case HOP_SET_LAST_TABLE:
	case HOP_SET_SAME_METRIC: // of which one may reject the packet: Linux then only says so
		return LOOKUP_NOTHING;
	}
	if (prefix->addr.family == 6)
		return hop_sets_at(&routes->hop_sets, choice.hop_set)->key.nh_id ? LOOKUP_NEXT_HOP
		                                                                 : LOOKUP_ROUTE;
	return !prefix->len && has_equals(routes, number, &choice) ? LOOKUP_PREFIX : LOOKUP_ROUTE;
}

bool netlink_route_origin(const struct netlink *netlink, uint16_t vrf,
	const struct wire_prefix *prefix, struct netlink_origin *out)
{
	struct routes *routes = netlink->mirror->routes;
	uint32_t number = find_place(routes, vrf, prefix);

	if (!number)
		return false;
	struct routes_choice choice;
	uint32_t route = routes->store.place[number].first;

	routes_choose(routes, number, &choice);
	while (route && routes->store.route[route].hop_set != choice.hop_set)
		route = routes->store.route[route].next;
	if (!route || choice.is_nothing)
		return false;
	const struct hop_set *set = hop_sets_at(&routes->hop_sets, choice.hop_set);

	*out = (struct netlink_origin){.protocol = set->key.protocol,
		.metric = routes->store.route[route].metric};
	return true;
}
