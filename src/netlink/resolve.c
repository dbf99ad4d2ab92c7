// Resolves next-hop sets to fib hops, and selects the best route of a prefix. Control thread.
#include "base/bits.h"
#include "netlink/routes_inside.h"

#include <linux/rtnetlink.h>
#include <string.h>

enum { GROUP_MAX = 64 };

// Collects the live next hops of a set.
struct members {
	struct fib_member member[GROUP_MAX];
	uint32_t weight[GROUP_MAX];
	unsigned n;
};

static const struct fib_hop TO_LINUX = {.kind = FIB_LINUX, .iface = IFACE_NONE};

static void leave_to_linux(struct hop_set *hop_set, enum hop_set_reason reason, int ifindex)
{
	if (hop_set->reason != HOP_SET_OK)
		return; // the first reason is kept
	hop_set->reason = reason;
	hop_set->blame = ifindex;
	hop_set->hop = TO_LINUX;
	hop_set->is_usable = true;
	hop_set->is_group = false;
}

static void lead_to(struct hop_set *hop_set, enum fib_kind kind)
{
	hop_set->hop = (struct fib_hop){.kind = kind, .iface = IFACE_NONE};
	hop_set->is_usable = true;
}

static bool is_dead(const struct hop_set *hop_set, const struct hop_set_hop *hop,
	const struct ifaces_state *state)
{
	bool ignores_linkdown =
		hop_set->key.family == 4 ? state->ignores_linkdown4 : state->ignores_linkdown6;

	if (hop->is_dead)
		return true;
	return state->is_known && (!state->is_up || (!state->has_carrier && ignores_linkdown));
}

// The labels that a hop pushes.
static void take_labels(const struct routes *routes, const struct hop_set_hop *hop,
	struct fib_hop *out)
{
	out->n_labels = hop->n_labels;
	out->label_ttl = hop->label_ttl < 0 ? routes->label_ttl : hop->label_ttl;
	memcpy(out->label, hop->label, sizeof(out->label));
}

static void collect_hop(struct routes *routes, struct hop_set *hop_set,
	const struct hop_set_hop *hop, struct members *members)
{
	const struct ifaces_state state = ifaces_state(routes->mirror, hop->ifindex);

	if (is_dead(hop_set, hop, &state))
		return;
	const struct iface *iface = state.iface == IFACE_NONE
	                                    ? NULL
	                                    : fib_iface(routes->mirror->settings.fib, state.iface);
	const bool is_tunnel = iface && iface_is_tunnel(iface);
	const bool takes_labels =
		is_tunnel ? iface->tunnel.flags & IFACE_TUNNEL_MPLS : hop->via.family != 0;
	if (hop->has_encap || (hop->n_labels && !takes_labels))
		leave_to_linux(hop_set, HOP_SET_ENCAP, hop->ifindex);
	else if (!state.is_known)
		leave_to_linux(hop_set, HOP_SET_UNKNOWN_LINK, hop->ifindex);
	else if (!iface)
		leave_to_linux(hop_set, HOP_SET_FOREIGN_LINK, hop->ifindex);
	else if (hop_set->key.mtu && hop_set->key.mtu < iface->mtu)
		leave_to_linux(hop_set, HOP_SET_MTU, hop->ifindex);
	else if (members->n == GROUP_MAX)
		leave_to_linux(hop_set, HOP_SET_MANY, hop->ifindex);
	if (hop_set->reason != HOP_SET_OK)
		return;
	struct fib_hop *out = &members->member[members->n].hop;
	*out = (struct fib_hop){.iface = state.iface,
		.kind = is_tunnel         ? FIB_PEER
	                : hop->via.family ? FIB_VIA
	                                  : FIB_CONNECTED};
	if (out->kind == FIB_VIA)
		out->via = hop->via;
	take_labels(routes, hop, out);
	members->weight[members->n++] = hop->weight;
}

static void collect_group(struct routes *routes, struct hop_set *hop_set,
	const struct nexthop *group, struct members *members)
{
	for (unsigned i = 0; i < group->n_members; i++) {
		const struct nexthop *one = nexthops_find(&routes->nexthops, group->member[i].id);
		if (!one->is_known) {
			leave_to_linux(hop_set, HOP_SET_UNKNOWN_NEXTHOP, 0);
		} else if (one->is_blackhole && group->n_members == 1) {
			lead_to(hop_set, FIB_BLACKHOLE);
		} else if (one->is_group || one->is_fdb || one->is_blackhole) {
			leave_to_linux(hop_set, HOP_SET_TYPE, 0);
		} else {
			struct hop_set_hop hop = one->hop;
			hop.weight = group->member[i].weight;
			collect_hop(routes, hop_set, &hop, members);
		}
	}
}

static void collect_nexthop(struct routes *routes, struct hop_set *hop_set, struct members *members)
{
	const struct nexthop *nexthop = nexthops_find(&routes->nexthops, hop_set->key.nh_id);

	if (!nexthop || !nexthop->is_known)
		leave_to_linux(hop_set, HOP_SET_UNKNOWN_NEXTHOP, 0);
	else if (nexthop->is_fdb)
		leave_to_linux(hop_set, HOP_SET_TYPE, 0);
	else if (nexthop->has_too_many_members)
		leave_to_linux(hop_set, HOP_SET_MANY, 0);
	else if (nexthop->is_blackhole)
		lead_to(hop_set, FIB_BLACKHOLE);
	else if (nexthop->is_group)
		collect_group(routes, hop_set, nexthop, members);
	else
		collect_hop(routes, hop_set, &nexthop->hop, members);
}

static void scale_weights(struct members *members)
{
	hop_sets_scale_weights(members->weight, members->n);
	for (unsigned i = 0; i < members->n; i++)
		members->member[i].weight = members->weight[i];
}

// The object of a set if it is a resilient group; NULL: any other set.
static const struct nexthop *resilient_of(const struct routes *routes,
	const struct hop_set *hop_set)
{
	const struct nexthop *nexthop =
		hop_set->key.nh_id ? nexthops_find(&routes->nexthops, hop_set->key.nh_id) : NULL;

	return nexthop && nexthop->is_group && nexthop->is_resilient ? nexthop : NULL;
}

// Families may differ in which members are usable, so each has its own buckets.
static int make_group(struct routes *routes, struct hop_set *hop_set, const struct members *members)
{
	struct fib *fib = routes->mirror->settings.fib;
	const struct nexthop *resilient = resilient_of(routes, hop_set);

	if (!resilient)
		return fib_group(fib, members->member, members->n, &hop_set->hop, NULL);
	const struct fib_resilience resilience = {
		.key = (uint64_t)hop_set->key.family << 32 | resilient->id,
		.idle_ms = resilient->idle_ms,
		.unbalanced_ms = resilient->unbalanced_ms,
	};
	return fib_resilient_group(fib, &resilience, members->member, members->n, &hop_set->hop,
		NULL);
}

static void join(struct routes *routes, struct hop_set *hop_set, struct members *members)
{
	for (unsigned i = 0; i < members->n; i++)
		if (members->member[i].hop.kind == FIB_CONNECTED)
			leave_to_linux(hop_set, HOP_SET_MIXED, 0);
	if (routes->hash_policy[hop_set->key.family == 6] > HASH_LAYER4)
		leave_to_linux(hop_set, HOP_SET_HASH, 0);
	if (hop_set->reason != HOP_SET_OK)
		return;
	scale_weights(members);
	hop_set->is_usable = hop_set->is_group = true;
	hop_set->batch = routes->batch;
	if (make_group(routes, hop_set, members))
		leave_to_linux(hop_set, HOP_SET_FULL, 0);
}

// A resilient group with one member, too: when it gets further ones, buckets in use must not move.
static bool needs_group(const struct routes *routes, const struct hop_set *hop_set,
	const struct members *members)
{
	if (members->n > 1)
		return true;
	return resilient_of(routes, hop_set) && members->member[0].hop.kind != FIB_CONNECTED &&
	       routes->hash_policy[hop_set->key.family == 6] <= HASH_LAYER4;
}

static void resolve_unicast(struct routes *routes, struct hop_set *hop_set)
{
	struct members members;

	members.n = 0;
	if (hop_set->key.src_len)
		leave_to_linux(hop_set, HOP_SET_SOURCE, 0);
	else if (hop_set->key.has_too_many_hops)
		leave_to_linux(hop_set, HOP_SET_MANY, 0);
	else if (hop_set->key.nh_id)
		collect_nexthop(routes, hop_set, &members);
	for (unsigned i = 0; i < hop_set->key.n_hops && hop_set->reason == HOP_SET_OK; i++)
		collect_hop(routes, hop_set, &hop_set->hops[i], &members);
	if (hop_set->reason != HOP_SET_OK || !members.n)
		return;
	if (needs_group(routes, hop_set, &members)) {
		join(routes, hop_set, &members);
		return;
	}
	hop_set->hop = members.member[0].hop;
	hop_set->is_usable = true;
}

static void resolve(struct routes *routes, struct hop_set *hop_set)
{
	hop_set->is_resolved = true;
	hop_set->is_usable = hop_set->is_group = false;
	hop_set->reason = HOP_SET_OK;
	hop_set->blame = 0;
	switch (hop_set->key.type) {
	case RTN_UNICAST:
		resolve_unicast(routes, hop_set);
		return;
	case RTN_LOCAL:
	case RTN_BROADCAST:
	case RTN_ANYCAST:
		lead_to(hop_set, FIB_LOCAL);
		return;
	case RTN_MULTICAST:
		lead_to(hop_set, FIB_MULTICAST);
		return;
	case RTN_BLACKHOLE:
		lead_to(hop_set, FIB_BLACKHOLE);
		return;
	case RTN_UNREACHABLE:
		lead_to(hop_set, FIB_UNREACHABLE);
		return;
	case RTN_PROHIBIT:
		lead_to(hop_set, FIB_PROHIBIT);
		return;
	default:
		leave_to_linux(hop_set, HOP_SET_TYPE, 0);
	}
}

// A group survives a batch only if routes use it, so it is requested again in each batch.
const struct hop_set *routes_resolve(struct routes *routes, uint32_t number)
{
	struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, number);

	if (hop_set->is_deferred)
		return hop_set;
	if (!hop_set->is_resolved || (hop_set->is_group && hop_set->batch != routes->batch))
		resolve(routes, hop_set);
	if (hop_set->reason == HOP_SET_FULL)
		routes_defer(routes, number);
	return hop_set;
}

static bool pushes_labels(const struct hop_set *hop_set)
{
	for (unsigned i = 0; i < hop_set->key.n_hops; i++)
		if (hop_set->hops[i].n_labels)
			return true;
	return hop_set->key.nh_id;
}

void routes_label_ttl_changed(struct routes *routes, uint8_t ttl)
{
	routes->label_ttl = ttl;
	for (uint32_t i = 1; i < routes->hop_sets.n; i++) {
		const struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, i);

		if (hop_set && pushes_labels(hop_set))
			routes_stale(routes, i);
	}
}

// The sets with several next hops are resolved again.
static void hash_policy_changed(struct routes *routes, uint8_t family)
{
	for (uint32_t i = 1; i < routes->hop_sets.n; i++) {
		const struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, i);

		if (hop_set && hop_set->key.family == family &&
			(hop_set->is_group || hop_set->reason == HOP_SET_HASH))
			routes_stale(routes, i);
	}
}

void routes_follow_hash_policy(struct routes *routes)
{
	const struct mirror_ops *ops = &routes->mirror->settings.ops;

	for (uint8_t family = 4; ops->hash_policy && family <= 6; family += 2) {
		int policy = ops->hash_policy(ops->ops, family);
		uint8_t *known = &routes->hash_policy[family == 6], before = *known;

		if (policy < 0 || policy == before)
			continue;
		*known = policy;
		if (policy <= HASH_LAYER4)
			fib_set_layer3_hash(routes->mirror->settings.fib, family,
				policy == HASH_LAYER3);
		if (policy > HASH_LAYER4 || before > HASH_LAYER4)
			hash_policy_changed(routes, family);
	}
}

static bool covers(const struct store_place *broad, const struct store_place *place)
{
	unsigned whole = broad->len / 8, rest = broad->len % 8;

	if (broad->len >= place->len || broad->is_ipv6 != place->is_ipv6 ||
		broad->domain != place->domain || memcmp(broad->addr, place->addr, whole))
		return false;
	return !rest || !((broad->addr[whole] ^ place->addr[whole]) >> (8 - rest));
}

// IPv6, and IPv4 with custom rules: the local table is looked up first, so its shorter prefix wins.
// IPv4 without custom rules uses the longest match of both tables.
static bool is_under_local(const struct routes *routes, const struct store_place *place)
{
	for (uint32_t i = 0; i < routes->n_broad; i++)
		if (covers(&routes->store.place[routes->broad[i]], place))
			return true;
	return false;
}

// Another IPv6 route with the same metric and a different next hop: the kernel may use either.
static bool has_rival(struct routes *routes, const struct store_route *best,
	const struct fib_hop *hop)
{
	for (uint32_t i = best->next; i; i = routes->store.route[i].next) {
		const struct store_route *other = &routes->store.route[i];
		if (other->rank != best->rank || other->metric != best->metric)
			return false;
		const struct hop_set *hop_set = routes_resolve(routes, other->hop_set);
		if (hop_set->is_usable && memcmp(&hop_set->hop, hop, sizeof(*hop)))
			return true;
	}
	return false;
}

// On link in another VRF: workers look up neighbours in the interface's own VRF only.
static bool is_leaked(const struct routes *routes, const struct store_place *place,
	const struct fib_hop *hop)
{
	return hop->kind == FIB_CONNECTED &&
	       fib_iface(routes->mirror->settings.fib, hop->iface)->vrf !=
	               routes->store.domain[place->domain].vrf;
}

static enum hop_set_reason find_reason(struct routes *routes, const struct store_place *place,
	const struct store_route *best, const struct hop_set *hop_set)
{
	if (hop_set->reason != HOP_SET_OK) // Linux may use another route, which workers support
		return place->is_ipv6 && !best->narrow && has_rival(routes, best, &hop_set->hop)
		               ? HOP_SET_SAME_METRIC
		               : hop_set->reason;
	if (best->narrow)
		return place->is_ipv6 ? HOP_SET_SOURCE : HOP_SET_TOS;
	if (best->rank == RANK_DEFAULT)
		return HOP_SET_LAST_TABLE;
	if (best->rank != RANK_LOCAL && is_under_local(routes, place))
		return HOP_SET_UNDER_LOCAL;
	if (place->is_ipv6 && has_rival(routes, best, &hop_set->hop))
		return HOP_SET_SAME_METRIC;
	return is_leaked(routes, place, &hop_set->hop) ? HOP_SET_LEAKED : HOP_SET_OK;
}

void routes_choose(struct routes *routes, uint32_t number, struct routes_choice *out)
{
	const struct store_place *place = &routes->store.place[number];
	uint32_t i = place->first;

	while (i && !routes_resolve(routes, routes->store.route[i].hop_set)->is_usable)
		i = routes->store.route[i].next;
	*out = (struct routes_choice){.is_nothing = !i};
	if (!i)
		return;
	const struct store_route *best = &routes->store.route[i];
	const struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, best->hop_set);
	out->hop_set = best->hop_set;
	out->reason = find_reason(routes, place, best, hop_set);
	out->hop = out->reason == HOP_SET_OK ? hop_set->hop : TO_LINUX;
}

// Order of routes: lower rank first, then the more specific one, then the lower metric.
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

uint32_t *peers_first(struct routes *routes, const struct peers *peers)
{
	uint32_t *iface = &routes->store.place[peers->place].first;

	while (*iface && compare(peers_at(routes, *iface), peers) < 0)
		iface = &peers_at(routes, *iface)->next;
	return iface;
}

bool peers_has(struct routes *routes, uint32_t number, const struct peers *peers)
{
	return number && !compare(peers_at(routes, number), peers);
}

uint32_t *peers_end(struct routes *routes, uint32_t *iface, const struct peers *peers)
{
	while (peers_has(routes, *iface, peers))
		iface = &peers_at(routes, *iface)->next;
	return iface;
}

uint32_t peers_find_hop_set(struct routes *routes, uint32_t first, const struct peers *peers,
	uint32_t hop_set)
{
	while (peers_has(routes, first, peers) && peers_at(routes, first)->hop_set != hop_set)
		first = peers_at(routes, first)->next;
	return peers_has(routes, first, peers) ? first : 0;
}

void peers_seen(struct routes *routes, uint32_t route)
{
	peers_at(routes, route)->generation = routes->generation;
}

uint32_t peers_put(struct routes *routes, const struct peers *peers, uint32_t hop_set,
	uint32_t *iface)
{
	uint32_t number = store_insert(&routes->store, peers->place, iface);

	if (!number) {
		routes->n_lost++;
		store_touch(&routes->store, peers->place);
		routes_free_hop_set(routes, hop_set);
		return 0;
	}
	peers_at(routes, number)->rank = peers->rank;
	peers_at(routes, number)->narrow = peers->narrow;
	peers_at(routes, number)->metric = peers->metric;
	peers_seen(routes, number);
	routes_lead(routes, number, hop_set);
	routes_poll_broad(routes, peers->place);
	return number;
}

// The deleted route used interfaces that are down: it was removed when Linux reported them down.
static bool went_with_its_ifaces(const struct routes *routes)
{
	const struct hop_set_request *request = &routes->request;

	for (unsigned i = 0; i < request->key.n_hops; i++)
		if (ifaces_state(routes->mirror, request->hops[i].ifindex).is_up)
			return false;
	return request->key.n_hops > 0;
}

void peers_missed(struct routes *routes, const struct peers *peers)
{
	const struct mirror_ops *ops = &routes->mirror->settings.ops;

	if (!routes->is_dumping && peers_has(routes, *peers_first(routes, peers), peers) &&
		!went_with_its_ifaces(routes))
		ops->dump_again(ops->ops);
}
