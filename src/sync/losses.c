// What Linux drops without a word when an interface goes down, loses its carrier or its addresses,
// or a next-hop object goes (seen on Linux 6.18; net/ipv4/fib_semantics.c, nexthop.c). Control
// thread.
#include "sync/routes_inside.h"

#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_4 = 1, KIND_6 = 2 };

static bool leads_over(const struct way *way, int ifindex)
{
	for (unsigned i = 0; i < way->key.n_hops; i++)
		if (way->hops[i].ifindex == ifindex)
			return true;
	return false;
}

static bool is_over(const struct nexthop *nexthop, int ifindex)
{
	return nexthop->is_known && !nexthop->is_group && !nexthop->is_blackhole &&
	       nexthop->hop.ifindex == ifindex;
}

// Objects need an interface that is up and has a carrier. True: there were some.
static bool lose_nexthops(struct routes *routes, int ifindex)
{
	struct nexthop *at = nexthops_next(&routes->nexthops, NULL);
	bool has_lost = false;

	while (at) {
		bool is_lost = is_over(at, ifindex);
		if (is_lost)
			routes_nexthop_lost(routes, at);
		has_lost |= is_lost;
		at = nexthops_next(&routes->nexthops, is_lost ? NULL : at); // groups go, too
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

// Next hops over the interface die; where none is left alive, the routes go.
static void kill_way(struct routes *routes, uint32_t number, int ifindex)
{
	struct way *way = ways_at(&routes->ways, number);
	unsigned n_dead = 0;

	for (unsigned i = 0; i < way->key.n_hops; i++) {
		way->hops[i].is_dead |= way->hops[i].ifindex == ifindex;
		n_dead += way->hops[i].is_dead;
	}
	routes_stale(routes, number);
	if (n_dead == way->key.n_hops)
		routes_drop_way(routes, number);
}

// Addresses of the host outlive its interface's being down (IPv4: routes of scope host; IPv6: the
// kernel tells of each one that goes).
static bool outlives_down(const struct way *way)
{
	return way->key.family == 4 ? way->key.scope == RT_SCOPE_HOST
	                            : way->key.type != RTN_UNICAST;
}

static void lose_link(struct routes *routes, int ifindex)
{
	lose_nexthops(routes, ifindex);
	for (uint32_t i = 1; i < routes->ways.n; i++) {
		const struct way *way = ways_at(&routes->ways, i);
		if (way && leads_over(way, ifindex) && !outlives_down(way))
			kill_way(routes, i, ifindex);
	}
}

static void revive(struct routes *routes, int ifindex, unsigned kinds)
{
	for (uint32_t i = 1; i < routes->ways.n; i++) {
		struct way *way = ways_at(&routes->ways, i);
		if (!way || !leads_over(way, ifindex) ||
			!(kinds & (way->key.family == 4 ? KIND_4 : KIND_6)))
			continue;
		for (unsigned k = 0; k < way->key.n_hops; k++)
			way->hops[k].is_dead &= way->hops[k].ifindex != ifindex;
		routes_stale(routes, i);
	}
}

static void refresh(struct routes *routes, int ifindex)
{
	for (uint32_t i = 1; i < routes->ways.n; i++)
		if (ways_at(&routes->ways, i) && leads_over(ways_at(&routes->ways, i), ifindex))
			routes_stale(routes, i);
	refresh_nexthops(routes, ifindex);
}

// NULL: no memory; then as if it were always new.
static struct routes_seen *seen_of(struct routes *routes, int ifindex)
{
	for (uint32_t i = 0; i < routes->n_seen; i++)
		if (routes->seen[i].ifindex == ifindex)
			return &routes->seen[i];
	if (routes->n_seen == routes->room_seen) {
		uint32_t room = routes->room_seen ? 2 * routes->room_seen : 16;
		struct routes_seen *more = realloc(routes->seen, room * sizeof(*more));
		if (!more)
			return NULL;
		routes->seen = more;
		routes->room_seen = room;
	}
	routes->seen[routes->n_seen] =
		(struct routes_seen){.ifindex = ifindex, .is_up = true, .has_carrier = true};
	return &routes->seen[routes->n_seen++];
}

// Linux drops next-hop objects a little after the carrier goes; if it is back by then, not at all.
static void doubt(struct routes *routes, struct routes_seen *seen)
{
	const struct mirror_hands *hands = &routes->mirror->settings.hands;

	if (seen->has_lost_nexthops && !routes->is_dumping)
		hands->dump_again(hands->hands);
	seen->has_lost_nexthops = false;
}

void routes_link_changed(struct routes *routes, int ifindex)
{
	const struct links_state now = links_state(routes->mirror, ifindex);
	struct routes_seen none = {0}, *seen = seen_of(routes, ifindex);

	if (!seen)
		seen = &none;
	if (seen->is_up && !now.is_up)
		lose_link(routes, ifindex);
	else if (seen->has_carrier && !now.has_carrier)
		seen->has_lost_nexthops |= lose_nexthops(routes, ifindex);
	else if (!seen->has_carrier && now.has_carrier)
		doubt(routes, seen);
	if (!seen->is_up && now.is_up)
		revive(routes, ifindex, KIND_4);
	// Of IPv6 what died when the link was set down stays dead until it is up with a carrier.
	if (now.is_up && now.has_carrier && !(seen->is_up && seen->has_carrier))
		revive(routes, ifindex, KIND_6);
	seen->is_up = now.is_up;
	seen->has_carrier = now.has_carrier;
	refresh(routes, ifindex);
}

// An IPv4 route goes as a whole when one of its interfaces does; of IPv6 routes the kernel tells.
void routes_link_gone(struct routes *routes, int ifindex)
{
	const struct mirror_hands *hands = &routes->mirror->settings.hands;
	bool is_in_doubt = false;

	lose_nexthops(routes, ifindex);
	for (uint32_t i = 1; i < routes->ways.n; i++) {
		const struct way *way = ways_at(&routes->ways, i);
		if (!way || !way->n_routes || !leads_over(way, ifindex))
			continue;
		if (way->key.family == 4 || way->key.n_hops == 1)
			routes_drop_way(routes, i);
		else
			is_in_doubt = true;
	}
	refresh(routes, ifindex);
	for (uint32_t i = 0; i < routes->n_seen; i++)
		if (routes->seen[i].ifindex == ifindex)
			routes->seen[i] = routes->seen[--routes->n_seen];
	if (is_in_doubt && !routes->is_dumping)
		hands->dump_again(hands->hands);
}

void routes_ip4_gone(struct routes *routes, int ifindex)
{
	for (uint32_t i = 1; i < routes->ways.n; i++) {
		const struct way *way = ways_at(&routes->ways, i);
		if (way && way->key.family == 4 && leads_over(way, ifindex))
			kill_way(routes, i, ifindex);
	}
}

void routes_address_came(struct routes *routes, int ifindex)
{
	if (links_state(routes->mirror, ifindex).is_up)
		revive(routes, ifindex, KIND_4);
}

// Only in the table that the interface's addresses belong to.
void routes_address_gone(struct routes *routes, uint8_t vrf, const struct wire_addr *local)
{
	for (uint32_t i = 1; i < routes->ways.n; i++) {
		const struct way *way = ways_at(&routes->ways, i);
		if (way && way->key.prefsrc.family && way->key.table != RT_TABLE_LOCAL &&
			way->key.table != RT_TABLE_DEFAULT &&
			wire_addr_equal(&way->key.prefsrc, local) &&
			links_vrf_of_table(routes->mirror, way->key.table) == vrf)
			routes_drop_way(routes, i);
	}
}

static void stale_ways(struct routes *routes, const struct nexthop *nexthop)
{
	for (uint32_t i = nexthop->first_way; i; i = ways_at(&routes->ways, i)->next_of_nexthop)
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

	stale_ways(routes, nexthop);
	while (nexthop->n_groups && (at = nexthops_next(&routes->nexthops, at)))
		if (is_member(at, nexthop->id))
			stale_ways(routes, at);
}

// A way of the object that routes lead, 0: none.
static uint32_t way_with_routes(struct routes *routes, uint32_t id)
{
	const struct nexthop *nexthop = nexthops_find(&routes->nexthops, id);
	uint32_t way = nexthop ? nexthop->first_way : 0;

	while (way && !ways_at(&routes->ways, way)->n_routes)
		way = ways_at(&routes->ways, way)->next_of_nexthop;
	return way;
}

// A group that a member leaves: the first one found, NULL: none.
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
	uint32_t id = nexthop->id, way;
	struct nexthop *group;
	bool is_in_groups = nexthop->n_groups;

	nexthops_forget(&routes->nexthops, nexthop);
	while ((way = way_with_routes(routes, id)))
		routes_drop_way(routes, way);
	while (is_in_groups && (group = group_with(routes, id))) {
		stale_ways(routes, group);
		if (nexthops_leave(&routes->nexthops, group, id))
			routes_nexthop_lost(routes, group);
	}
}

void routes_nexthop_event(struct routes *routes, const struct event *event)
{
	const struct event_nexthop *told = &event->nexthop;
	struct nexthop *nexthop = event->is_delete ? nexthops_find(&routes->nexthops, told->id)
	                                           : nexthops_get(&routes->nexthops, told->id);

	if (!nexthop || !told->id)
		return;
	if (event->is_delete) {
		if (nexthop->is_known)
			routes_nexthop_lost(routes, nexthop);
		return;
	}
	nexthop->generation = routes->generation;
	nexthops_set(&routes->nexthops, nexthop, told);
	routes_nexthop_changed(routes, nexthop);
}
