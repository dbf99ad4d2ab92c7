// Where a way leads in the fib's terms, and which route of a prefix counts. Control thread.
#include "base/bits.h"
#include "sync/routes_inside.h"

#include <linux/rtnetlink.h>
#include <string.h>

enum { MOST_WEIGHT = 255, GROUP_MAX = 64 };

// The next hops of a way that are alive, as they are collected.
struct members {
	struct fib_member member[GROUP_MAX];
	uint32_t weight[GROUP_MAX];
	unsigned n;
};

static const struct fib_hop TO_LINUX = {.kind = FIB_LINUX, .link = FIB_NO_LINK};

static void leave_to_linux(struct way *way, enum way_reason reason, int ifindex)
{
	if (way->reason != WAY_OK)
		return; // the first reason counts
	way->reason = reason;
	way->blame = ifindex;
	way->hop = TO_LINUX;
	way->is_usable = true;
	way->is_group = false;
}

static void lead_to(struct way *way, enum fib_kind kind)
{
	way->hop = (struct fib_hop){.kind = kind, .link = FIB_NO_LINK};
	way->is_usable = true;
}

static bool is_dead(const struct way *way, const struct way_hop *hop,
	const struct links_state *state)
{
	bool ignores_linkdown =
		way->key.family == 4 ? state->ignores_linkdown4 : state->ignores_linkdown6;

	if (hop->is_dead)
		return true;
	return state->is_known && (!state->is_up || (!state->has_carrier && ignores_linkdown));
}

static void collect_hop(struct routes *routes, struct way *way, const struct way_hop *hop,
	struct members *members)
{
	const struct links_state state = links_state(routes->mirror, hop->ifindex);

	if (is_dead(way, hop, &state))
		return;
	const struct fib_link *link = state.link == FIB_NO_LINK
	                                      ? NULL
	                                      : fib_link(routes->mirror->settings.fib, state.link);
	if (hop->has_encap)
		leave_to_linux(way, WAY_ENCAP, hop->ifindex);
	else if (!state.is_known)
		leave_to_linux(way, WAY_UNKNOWN_LINK, hop->ifindex);
	else if (!link)
		leave_to_linux(way, WAY_FOREIGN_LINK, hop->ifindex);
	else if (way->key.mtu && way->key.mtu < link->mtu)
		leave_to_linux(way, WAY_MTU, hop->ifindex);
	else if (members->n == GROUP_MAX)
		leave_to_linux(way, WAY_MANY, hop->ifindex);
	if (way->reason != WAY_OK)
		return;
	struct fib_hop *out = &members->member[members->n].hop;
	*out = (struct fib_hop){.via = hop->via,
		.link = state.link,
		.kind = hop->via.family ? FIB_VIA : FIB_CONNECTED};
	members->weight[members->n++] = hop->weight;
}

static void collect_group(struct routes *routes, struct way *way, const struct nexthop *group,
	struct members *members)
{
	for (unsigned i = 0; i < group->n_members; i++) {
		const struct nexthop *one = nexthops_find(&routes->nexthops, group->member[i].id);
		if (!one->is_known) {
			leave_to_linux(way, WAY_UNKNOWN_NEXTHOP, 0);
		} else if (one->is_blackhole && group->n_members == 1) {
			lead_to(way, FIB_BLACKHOLE);
		} else if (one->is_group || one->is_fdb || one->is_blackhole) {
			leave_to_linux(way, WAY_TYPE, 0);
		} else {
			struct way_hop hop = one->hop;
			hop.weight = group->member[i].weight;
			collect_hop(routes, way, &hop, members);
		}
	}
}

static void collect_nexthop(struct routes *routes, struct way *way, struct members *members)
{
	const struct nexthop *nexthop = nexthops_find(&routes->nexthops, way->key.nh_id);

	if (!nexthop || !nexthop->is_known)
		leave_to_linux(way, WAY_UNKNOWN_NEXTHOP, 0);
	else if (nexthop->is_fdb)
		leave_to_linux(way, WAY_TYPE, 0);
	else if (nexthop->has_too_many_members)
		leave_to_linux(way, WAY_MANY, 0);
	else if (nexthop->is_blackhole)
		lead_to(way, FIB_BLACKHOLE);
	else if (nexthop->is_group)
		collect_group(routes, way, nexthop, members);
	else
		collect_hop(routes, way, &nexthop->hop, members);
}

// Linux's weights go up to 65536, the fib's to 255.
static void scale_weights(struct members *members)
{
	uint32_t most = 1;

	for (unsigned i = 0; i < members->n; i++)
		most = MAX_OF(most, members->weight[i]);
	for (unsigned i = 0; i < members->n; i++) {
		uint32_t weight = members->weight[i];
		if (most > MOST_WEIGHT)
			weight = (weight * MOST_WEIGHT + most / 2) / most;
		members->member[i].weight = MAX_OF(weight, 1u);
	}
}

static void join(struct routes *routes, struct way *way, struct members *members)
{
	for (unsigned i = 0; i < members->n; i++)
		if (members->member[i].hop.kind != FIB_VIA)
			leave_to_linux(way, WAY_MIXED, 0);
	if (way->reason != WAY_OK)
		return;
	scale_weights(members);
	way->is_usable = way->is_group = true;
	way->batch = routes->batch;
	if (fib_group(routes->mirror->settings.fib, members->member, members->n, &way->hop, NULL))
		leave_to_linux(way, WAY_FULL, 0);
}

static void resolve_unicast(struct routes *routes, struct way *way)
{
	struct members members;

	members.n = 0;
	if (way->key.src_len)
		leave_to_linux(way, WAY_SOURCE, 0);
	else if (way->key.has_too_many_hops)
		leave_to_linux(way, WAY_MANY, 0);
	else if (way->key.nh_id)
		collect_nexthop(routes, way, &members);
	for (unsigned i = 0; i < way->key.n_hops && way->reason == WAY_OK; i++)
		collect_hop(routes, way, &way->hops[i], &members);
	if (way->reason != WAY_OK || !members.n)
		return;
	if (members.n > 1) {
		join(routes, way, &members);
		return;
	}
	way->hop = members.member[0].hop;
	way->is_usable = true;
}

static void resolve(struct routes *routes, struct way *way)
{
	way->is_resolved = true;
	way->is_usable = way->is_group = false;
	way->reason = WAY_OK;
	way->blame = 0;
	switch (way->key.type) {
	case RTN_UNICAST:
		resolve_unicast(routes, way);
		return;
	case RTN_LOCAL:
	case RTN_BROADCAST:
	case RTN_ANYCAST:
		lead_to(way, FIB_LOCAL);
		return;
	case RTN_MULTICAST:
		lead_to(way, FIB_MULTICAST);
		return;
	case RTN_BLACKHOLE:
		lead_to(way, FIB_BLACKHOLE);
		return;
	case RTN_UNREACHABLE:
		lead_to(way, FIB_UNREACHABLE);
		return;
	case RTN_PROHIBIT:
		lead_to(way, FIB_PROHIBIT);
		return;
	default:
		leave_to_linux(way, WAY_TYPE, 0);
	}
}

// A group lives from one batch to the next only while routes lead there: asked for anew.
const struct way *routes_resolve(struct routes *routes, uint32_t number)
{
	struct way *way = ways_at(&routes->ways, number);

	if (way->is_starved)
		return way;
	if (!way->is_resolved || (way->is_group && way->batch != routes->batch))
		resolve(routes, way);
	if (way->reason == WAY_FULL)
		routes_starve(routes, number);
	return way;
}

static bool covers(const struct store_place *broad, const struct store_place *place)
{
	unsigned whole = broad->len / 8, rest = broad->len % 8;

	if (broad->len >= place->len || broad->is_ipv6 != place->is_ipv6 ||
		broad->domain != place->domain || memcmp(broad->addr, place->addr, whole))
		return false;
	return !rest || !((broad->addr[whole] ^ place->addr[whole]) >> (8 - rest));
}

// IPv6 and, with rules of one's own, IPv4: the local table is searched first, and its shorter
// prefix wins. IPv4 without such rules takes the longest of both.
static bool is_under_local(const struct routes *routes, const struct store_place *place)
{
	for (uint32_t i = 0; i < routes->n_broad; i++)
		if (covers(&routes->store.place[routes->broad[i]], place))
			return true;
	return false;
}

// Another IPv6 route of the same metric that leads elsewhere: Linux chooses as it likes.
static bool has_rival(struct routes *routes, const struct store_route *best,
	const struct fib_hop *hop)
{
	for (uint32_t i = best->next; i; i = routes->store.route[i].next) {
		const struct store_route *other = &routes->store.route[i];
		if (other->rank != best->rank || other->metric != best->metric)
			return false;
		const struct way *way = routes_resolve(routes, other->way);
		if (way->is_usable && memcmp(&way->hop, hop, sizeof(*hop)))
			return true;
	}
	return false;
}

// On link in another VRF: lanes find neighbours in the link's own VRF only.
static bool is_leaked(const struct routes *routes, const struct store_place *place,
	const struct fib_hop *hop)
{
	return hop->kind == FIB_CONNECTED &&
	       fib_link(routes->mirror->settings.fib, hop->link)->vrf !=
	               routes->store.domain[place->domain].vrf;
}

static enum way_reason find_reason(struct routes *routes, const struct store_place *place,
	const struct store_route *best, const struct way *way)
{
	if (way->reason != WAY_OK)
		return way->reason;
	if (best->narrow)
		return place->is_ipv6 ? WAY_SOURCE : WAY_TOS;
	if (best->rank == RANK_DEFAULT)
		return WAY_LAST_TABLE;
	if (best->rank != RANK_LOCAL && is_under_local(routes, place))
		return WAY_UNDER_LOCAL;
	if (place->is_ipv6 && has_rival(routes, best, &way->hop))
		return WAY_SAME_METRIC;
	return is_leaked(routes, place, &way->hop) ? WAY_LEAKED : WAY_OK;
}

void routes_choose(struct routes *routes, uint32_t number, struct routes_choice *out)
{
	const struct store_place *place = &routes->store.place[number];
	uint32_t i = place->first;

	while (i && !routes_resolve(routes, routes->store.route[i].way)->is_usable)
		i = routes->store.route[i].next;
	*out = (struct routes_choice){.is_nothing = !i};
	if (!i)
		return;
	const struct store_route *best = &routes->store.route[i];
	const struct way *way = ways_at(&routes->ways, best->way);
	out->way = best->way;
	out->reason = find_reason(routes, place, best, way);
	out->hop = out->reason == WAY_OK ? way->hop : TO_LINUX;
}
