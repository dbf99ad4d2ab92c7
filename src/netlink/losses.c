// What Linux drops without a notification when an interface goes down or loses its carrier or its
// addresses, or a next-hop object is removed (observed on Linux 6.18; net/ipv4/fib_semantics.c,
// nexthop.c). Control thread.
#include "base/vector.h"
#include "netlink/routes_inside.h"

#include <linux/rtnetlink.h>
#include <string.h>

enum { KIND_4 = 1, KIND_6 = 2 };

static bool leads_over(const struct hop_set *hop_set, int ifindex)
{
	for (unsigned i = 0; i < hop_set->key.n_hops; i++)
		if (hop_set->hops[i].ifindex == ifindex)
			return true;
	return false;
}

static bool is_over(const struct nexthop *nexthop, int ifindex)
{
	return nexthop->is_known && !nexthop->is_group && !nexthop->is_blackhole &&
	       nexthop->hop.ifindex == ifindex;
}

// Objects require an interface that is up and has a carrier. Returns true if there were any.
static bool lose_nexthops(struct routes *routes, int ifindex)
{
	struct nexthop *at = nexthops_next(&routes->nexthops, NULL);
	bool has_lost = false;

	while (at) {
		bool is_lost = is_over(at, ifindex);
		if (is_lost)
			routes_nexthop_lost(routes, at);
		has_lost |= is_lost;
		at = nexthops_next(&routes->nexthops, is_lost ? NULL : at); // groups may be
		                                                            // removed, too
	}
	return has_lost;
}

static void refresh_nexthops(struct routes *routes, int ifindex)
{
	struct nexthop *at = NULL;

	while ((at = nexthops_next(&routes->nexthops, at)))
		if (is_over(at, ifindex))
			routes_nexthop_changed(routes, at);
}

// Next hops over the interface die; if none is left alive, the routes are removed.
static void kill_hop_set(struct routes *routes, uint32_t number, int ifindex)
{
	struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, number);
	unsigned n_dead = 0;

	for (unsigned i = 0; i < hop_set->key.n_hops; i++) {
		hop_set->hops[i].is_dead |= hop_set->hops[i].ifindex == ifindex;
		n_dead += hop_set->hops[i].is_dead;
	}
	routes_stale(routes, number);
	if (n_dead == hop_set->key.n_hops)
		routes_drop_hop_set(routes, number);
}

// IPv4 addresses remain local when their interface is down (routes of scope host). All IPv6 routes
// are removed, and not reported with skip_notify_on_dev_down.
static bool outlives_down(const struct hop_set *hop_set)
{
	return hop_set->key.family == 4 && hop_set->key.scope == RT_SCOPE_HOST;
}

static void lose_iface(struct routes *routes, int ifindex)
{
	lose_nexthops(routes, ifindex);
	for (uint32_t i = 1; i < routes->hop_sets.n; i++) {
		const struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, i);
		if (hop_set && leads_over(hop_set, ifindex) && !outlives_down(hop_set))
			kill_hop_set(routes, i, ifindex);
	}
}

static void revive(struct routes *routes, int ifindex, unsigned kinds)
{
	for (uint32_t i = 1; i < routes->hop_sets.n; i++) {
		struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, i);
		if (!hop_set || !leads_over(hop_set, ifindex) ||
			!(kinds & (hop_set->key.family == 4 ? KIND_4 : KIND_6)))
			continue;
		for (unsigned k = 0; k < hop_set->key.n_hops; k++)
			hop_set->hops[k].is_dead &= hop_set->hops[k].ifindex != ifindex;
		routes_stale(routes, i);
	}
}

static void refresh(struct routes *routes, int ifindex)
{
	for (uint32_t i = 1; i < routes->hop_sets.n; i++)
		if (hop_sets_at(&routes->hop_sets, i) &&
			leads_over(hop_sets_at(&routes->hop_sets, i), ifindex))
			routes_stale(routes, i);
	refresh_nexthops(routes, ifindex);
}

// The state of a new interface.
static const struct routes_seen unseen = {.is_up = true, .has_carrier = true};

static struct routes_seen *find_seen(struct routes *routes, int ifindex)
{
	for (uint32_t i = 0; i < routes->n_seen; i++)
		if (routes->seen[i].ifindex == ifindex)
			return &routes->seen[i];
	return NULL;
}

// NULL: out of memory; the interface is then treated as new each time, until a dump.
static struct routes_seen *seen_of(struct routes *routes, int ifindex)
{
	struct routes_seen *known = find_seen(routes, ifindex);

	if (known)
		return known;
	if (vector_reserve(&routes->seen, &routes->seen_capacity, routes->n_seen + 1,
		    sizeof(*routes->seen))) {
		routes->lacks_seen = true;
		routes_lost(routes, EVENT_ROUTE);
		return NULL;
	}
	routes->seen[routes->n_seen] = unseen;
	routes->seen[routes->n_seen].ifindex = ifindex;
	return &routes->seen[routes->n_seen++];
}

static void see_as_it_is(struct routes *routes, int ifindex)
{
	const struct ifaces_state now = ifaces_state(routes->mirror, ifindex);
	struct routes_seen *seen = find_seen(routes, ifindex) ? NULL : seen_of(routes, ifindex);

	if (!seen)
		return;
	seen->is_up = now.is_up;
	seen->has_carrier = now.has_carrier;
}

void routes_see_all(struct routes *routes)
{
	routes->lacks_seen = false;
	for (uint32_t i = 1; i < routes->hop_sets.n; i++) {
		const struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, i);

		for (unsigned k = 0; hop_set && k < hop_set->key.n_hops; k++)
			see_as_it_is(routes, hop_set->hops[k].ifindex);
	}
}

// Linux drops next-hop objects shortly after the carrier is lost; if it is back by then, it does
// not.
static void doubt(struct routes *routes, struct routes_seen *seen)
{
	const struct mirror_ops *ops = &routes->mirror->settings.ops;

	if (seen->has_lost_nexthops && !routes->is_dumping)
		ops->dump_again(ops->ops);
	seen->has_lost_nexthops = false;
}

void routes_iface_changed(struct routes *routes, int ifindex)
{
	const struct ifaces_state now = ifaces_state(routes->mirror, ifindex);
	struct routes_seen none = unseen, *seen = seen_of(routes, ifindex);

	if (!seen)
		seen = &none;
	if (seen->is_up && !now.is_up)
		lose_iface(routes, ifindex);
	else if (seen->has_carrier && !now.has_carrier)
		seen->has_lost_nexthops |= lose_nexthops(routes, ifindex);
	else if (!seen->has_carrier && now.has_carrier)
		doubt(routes, seen);
	if (!seen->is_up && now.is_up)
		revive(routes, ifindex, KIND_4);
	// IPv6 hops that died when the interface was set down stay dead until it is up with a
	// carrier.
	if (now.is_up && now.has_carrier && !(seen->is_up && seen->has_carrier))
		revive(routes, ifindex, KIND_6);
	seen->is_up = now.is_up;
	seen->has_carrier = now.has_carrier;
	refresh(routes, ifindex);
}

// An IPv4 route is removed as a whole with any of its interfaces; IPv6 routes are reported.
void routes_iface_gone(struct routes *routes, int ifindex)
{
	const struct mirror_ops *ops = &routes->mirror->settings.ops;
	bool is_in_doubt = false;

	lose_nexthops(routes, ifindex);
	for (uint32_t i = 1; i < routes->hop_sets.n; i++) {
		const struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, i);
		if (!hop_set || !hop_set->n_routes || !leads_over(hop_set, ifindex))
			continue;
		if (hop_set->key.family == 4 || hop_set->key.n_hops == 1)
			routes_drop_hop_set(routes, i);
		else
			is_in_doubt = true;
	}
	refresh(routes, ifindex);
	for (uint32_t i = 0; i < routes->n_seen; i++)
		if (routes->seen[i].ifindex == ifindex)
			routes->seen[i] = routes->seen[--routes->n_seen];
	if (is_in_doubt && !routes->is_dumping)
		ops->dump_again(ops->ops);
}

void routes_ip4_gone(struct routes *routes, int ifindex)
{
	for (uint32_t i = 1; i < routes->hop_sets.n; i++) {
		const struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, i);
		if (hop_set && hop_set->key.family == 4 && leads_over(hop_set, ifindex))
			kill_hop_set(routes, i, ifindex);
	}
}

void routes_address_came(struct routes *routes, int ifindex)
{
	if (ifaces_state(routes->mirror, ifindex).is_up)
		revive(routes, ifindex, KIND_4);
}

// Only in the table of the interface's addresses.
void routes_address_gone(struct routes *routes, uint16_t vrf, const struct wire_addr *local)
{
	for (uint32_t i = 1; i < routes->hop_sets.n; i++) {
		const struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, i);
		if (hop_set && hop_set->key.prefsrc.family &&
			hop_set->key.table != RT_TABLE_LOCAL &&
			hop_set->key.table != RT_TABLE_DEFAULT &&
			wire_addr_equal(&hop_set->key.prefsrc, local) &&
			ifaces_vrf_of_table(routes->mirror, hop_set->key.table) == vrf)
			routes_drop_hop_set(routes, i);
	}
}

static void stale_hop_sets(struct routes *routes, const struct nexthop *nexthop)
{
	for (uint32_t i = nexthop->first_hop_set; i;
		i = hop_sets_at(&routes->hop_sets, i)->next_of_nexthop)
		routes_stale(routes, i);
}

static bool is_member(const struct nexthop *group, uint32_t id)
{
	for (unsigned i = 0; i < group->n_members; i++)
		if (group->member[i].id == id)
			return true;
	return false;
}

void routes_nexthop_changed(struct routes *routes, struct nexthop *nexthop)
{
	struct nexthop *at = NULL;

	stale_hop_sets(routes, nexthop);
	while (nexthop->n_groups && (at = nexthops_next(&routes->nexthops, at)))
		if (is_member(at, nexthop->id))
			stale_hop_sets(routes, at);
}

// A set of the object that is used by routes, 0: none.
static uint32_t hop_set_with_routes(struct routes *routes, uint32_t id)
{
	const struct nexthop *nexthop = nexthops_find(&routes->nexthops, id);
	uint32_t hop_set = nexthop ? nexthop->first_hop_set : 0;

	while (hop_set && !hop_sets_at(&routes->hop_sets, hop_set)->n_routes)
		hop_set = hop_sets_at(&routes->hop_sets, hop_set)->next_of_nexthop;
	return hop_set;
}

// The first group that contains this member, NULL: none.
static struct nexthop *group_with(struct routes *routes, uint32_t id)
{
	struct nexthop *at = NULL;

	while ((at = nexthops_next(&routes->nexthops, at)))
		if (is_member(at, id))
			break;
	return at;
}

void routes_nexthop_lost(struct routes *routes, struct nexthop *nexthop)
{
	uint32_t id = nexthop->id, hop_set;
	struct nexthop *group;
	bool is_in_groups = nexthop->n_groups;

	nexthops_forget(&routes->nexthops, nexthop);
	while ((hop_set = hop_set_with_routes(routes, id)))
		routes_drop_hop_set(routes, hop_set);
	while (is_in_groups && (group = group_with(routes, id))) {
		stale_hop_sets(routes, group);
		if (nexthops_leave(&routes->nexthops, group, id))
			routes_nexthop_lost(routes, group);
	}
}

void routes_nexthop_event(struct routes *routes, const struct event *event)
{
	const struct event_nexthop *reported = &event->nexthop;
	struct nexthop *nexthop = event->is_delete ? nexthops_find(&routes->nexthops, reported->id)
	                                           : nexthops_get(&routes->nexthops, reported->id);

	routes->nexthop_sequence = event->sequence;
	routes->nexthop_port_id = event->port_id;
	if (!event->is_delete && !nexthop)
		routes_lost(routes, EVENT_NEXTHOP);
	if (!nexthop || !reported->id)
		return;
	if (event->is_delete) {
		if (nexthop->is_known)
			routes_nexthop_lost(routes, nexthop);
		return;
	}
	nexthop->generation = routes->generation;
	if (nexthops_set(&routes->nexthops, nexthop, reported))
		routes_lost(routes, EVENT_NEXTHOP);
	routes_nexthop_changed(routes, nexthop);
}
