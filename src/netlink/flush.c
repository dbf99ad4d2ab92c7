// Applies changed places to the fib, one batch at a time. Control thread.
#include "base/bits.h"
#include "base/log.h"
#include "base/vector.h"
#include "netlink/routes_inside.h"

#include <errno.h>
#include <string.h>

enum { FULL_TRIES = 16, MOST_TOUCHED = 4 * ROUTES_BATCH };

struct builtin {
	uint8_t family, len;
	uint8_t addr[2];
};

// Linux forwards by its routes to all addresses but these: loopback, multicast, link-local of IPv6,
// and is_one_address.
static const struct builtin builtins[] = {
	{4, 8, {127}},
	{4, 4, {224}},
	{6, 10, {0xfe, 0x80}},
	{6, 8, {0xff}},
};

static bool is_within(const struct store_place *place, const struct builtin *builtin)
{
	uint16_t mask = 0xffff << (16 - builtin->len);
	uint16_t differs =
		(place->addr[0] ^ builtin->addr[0]) << 8 | (place->addr[1] ^ builtin->addr[1]);

	return place->is_ipv6 == (builtin->family == 6) && place->len >= builtin->len &&
	       !(differs & mask);
}

// 0.0.0.0, the limited broadcast address, ::1.
static bool is_one_address(const struct store_place *place)
{
	static const uint8_t loopback[16] = {[15] = 1};

	if (place->is_ipv6)
		return place->len == 128 && !memcmp(place->addr, loopback, sizeof(loopback));
	return place->len == 32 && load32(place->addr) + 1 <= 1;
}

bool routes_is_builtin(const struct store_place *place)
{
	if (is_one_address(place))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
		if (is_within(place, &builtins[i]))
			return true;
	return false;
}

static bool should_be_broad(const struct routes *routes, const struct store_place *place)
{
	uint32_t first = place->first;

	return first && routes->store.route[first].rank == RANK_LOCAL &&
	       place->len < (place->is_ipv6 ? 128 : 32) && !routes_is_builtin(place);
}

static void touch_all(struct routes *routes, uint16_t domain)
{
	for (uint32_t i = 1; i < routes->store.top_place; i++)
		if (routes->store.place[i].is_used && routes->store.place[i].domain == domain)
			store_touch(&routes->store, i);
}

static bool add_broad(struct routes *routes, uint32_t number)
{
	if (vector_reserve(&routes->broad, &routes->broad_capacity, routes->n_broad + 1,
		    sizeof(*routes->broad))) {
		routes->lacks_broad = true;
		routes_lost(routes, EVENT_ROUTE);
		return false;
	}
	routes->broad[routes->n_broad++] = number;
	return true;
}

// Everything under a broad local route depends on it, so all places are re-evaluated. This is rare.
void routes_poll_broad(struct routes *routes, uint32_t number)
{
	struct store_place *place = &routes->store.place[number];
	bool is_broad = should_be_broad(routes, place);
	uint32_t i = 0;

	if (place->is_broad == is_broad)
		return;
	if (is_broad) {
		if (!add_broad(routes, number))
			return;
	} else {
		while (routes->broad[i] != number)
			i++;
		routes->broad[i] = routes->broad[--routes->n_broad];
	}
	place->is_broad = is_broad;
	touch_all(routes, place->domain);
}

void routes_defer(struct routes *routes, uint32_t number)
{
	struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, number);

	hop_set->reason = HOP_SET_FULL;
	hop_set->hop = (struct fib_hop){.kind = FIB_LINUX, .iface = IFACE_NONE};
	if (hop_set->is_deferred)
		return;
	hop_set->is_deferred = true;
	hop_set->next_deferred = 0;
	if (routes->last_deferred)
		hop_sets_at(&routes->hop_sets, routes->last_deferred)->next_deferred = number;
	else
		routes->first_deferred = number;
	routes->last_deferred = number;
}

// Retries one next-hop set at a time.
void routes_retry(struct routes *routes)
{
	uint32_t number = routes->first_deferred;
	struct fib_usage usage;

	if (!number)
		return;
	fib_usage(routes->mirror->settings.fib, &usage);
	struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, number);
	if (usage.n_hops + HOP_SET_MAX_HOPS >= FIB_MAX_HOPS && hop_set->n_routes)
		return;
	routes->first_deferred = hop_set->next_deferred;
	if (!routes->first_deferred)
		routes->last_deferred = 0;
	hop_set->is_deferred = false;
	hop_set->is_resolved = false;
	if (hop_set->n_routes && routes_resolve(routes, number)->reason == HOP_SET_FULL)
		return; // moved to the end of the list again
	routes_stale(routes, number);
}

static uint32_t touch_some(struct routes *routes, struct hop_set *hop_set, uint32_t budget)
{
	uint32_t at = hop_set->cursor;

	for (; at && budget; budget--) {
		store_touch(&routes->store, routes->store.route[at].place);
		at = routes->store.route[at].hop_set_next;
	}
	hop_set->cursor = at;
	return budget;
}

// Bounded number of routes per call; routes added to the set meanwhile are updated anyway.
static void settle_stale(struct routes *routes)
{
	uint32_t budget = MOST_TOUCHED;

	while (routes->first_stale) {
		uint32_t number = routes->first_stale;
		struct hop_set *hop_set = hop_sets_at(&routes->hop_sets, number);
		budget = touch_some(routes, hop_set, budget);
		if (hop_set->cursor)
			return;
		routes->first_stale = hop_set->next_stale;
		hop_set->is_stale = false;
		routes_free_hop_set(routes, number);
	}
}

static void free_if_empty(struct routes *routes, uint32_t number)
{
	const struct store_place *place = &routes->store.place[number];

	if (!place->first && !place->is_in_fib && !place->is_dirty)
		store_free_place(&routes->store, number);
}

// The change to apply to the fib for a place. Returns false if there is none.
static bool make_change(struct routes *routes, uint32_t number, size_t at)
{
	struct store_place *place = &routes->store.place[number];
	uint16_t vrf = routes->store.domain[place->domain].vrf;
	struct fib_change *change = &routes->changes[at];
	struct routes_choice choice;

	if (vrf == IFACES_NO_VRF || !fib_vrf_is_open(routes->mirror->settings.fib, vrf)) {
		place->is_in_fib = place->is_linux = false; // removed together with the table
		return false;
	}
	if (routes_is_builtin(place))
		return false;
	routes_choose(routes, number, &choice);
	if (choice.is_nothing && !place->is_in_fib)
		return false;
	*change = (struct fib_change){.op = choice.is_nothing ? FIB_DELETE : FIB_REPLACE,
		.route = {.prefix = store_prefix(place), .vrf = vrf, .hop = choice.hop}};
	routes->changed[at] = number;
	routes->changed_hop_set[at] = choice.hop_set;
	return true;
}

static size_t collect(struct routes *routes)
{
	const size_t most = routes->is_short ? FIB_SMALL_BATCH : ROUTES_BATCH;
	size_t n = 0;
	uint32_t number;

	for (unsigned looked = 0; looked < 4 * ROUTES_BATCH && n < most; looked++) {
		number = store_next_dirty(&routes->store);
		if (!number)
			break;
		if (make_change(routes, number, n))
			n++;
		else
			free_if_empty(routes, number);
	}
	return n;
}

static bool same_hop(const struct fib_hop *a, const struct fib_hop *b)
{
	return a->kind == b->kind && a->iface == b->iface && wire_addr_equal(&a->via, &b->via);
}

// No space for a next hop: all routes of the batch that use it are left to Linux; after a few
// attempts, all routes that use any.
static void leave_to_linux(struct routes *routes, size_t n, size_t bad, bool all)
{
	const struct fib_hop hop = routes->changes[bad].route.hop;

	for (size_t i = 0; i < n; i++) {
		struct fib_change *change = &routes->changes[i];
		bool leads_out = change->op != FIB_DELETE && change->route.hop.kind <= FIB_GROUP;
		if (!leads_out || !(all || same_hop(&change->route.hop, &hop)))
			continue;
		routes_defer(routes, routes->changed_hop_set[i]);
		change->route.hop = (struct fib_hop){.kind = FIB_LINUX, .iface = IFACE_NONE};
	}
}

// The fib rejects this change permanently: it keeps its current entry.
static size_t refuse(struct routes *routes, size_t n, size_t bad, const struct error *error)
{
	if (!routes->n_refused++)
		log_warn("cannot add a route of Linux to the workers' table: %s", error->text);
	n--;
	routes->changes[bad] = routes->changes[n];
	routes->changed[bad] = routes->changed[n];
	routes->changed_hop_set[bad] = routes->changed_hop_set[n];
	return n;
}

// Nothing is lost: the places are updated in batches that need no memory, and in large ones again
// once all of them are.
static size_t put_back(struct routes *routes, size_t n)
{
	routes->is_short = true;
	for (size_t i = 0; i < n; i++)
		store_touch(&routes->store, routes->changed[i]);
	return 0;
}

static size_t apply(struct routes *routes, size_t n)
{
	struct error error;
	size_t bad;

	for (unsigned tries = 0; n; tries++) {
		int err =
			fib_change(routes->mirror->settings.fib, routes->changes, n, &bad, &error);
		if (!err)
			break;
		if (err == -ENOMEM)
			return put_back(routes, n);
		const struct fib_change *change = &routes->changes[bad];
		bool leads_out = change->op != FIB_DELETE && change->route.hop.kind <= FIB_GROUP;
		if (err == -ENOSPC && leads_out)
			leave_to_linux(routes, n, bad, tries >= FULL_TRIES);
		else
			n = refuse(routes, n, bad, &error);
	}
	return n;
}

bool routes_flush(struct routes *routes)
{
	routes->batch++;
	routes_retry(routes);
	settle_stale(routes);
	size_t n = apply(routes, collect(routes));
	for (size_t i = 0; i < n; i++) {
		struct store_place *place = &routes->store.place[routes->changed[i]];
		place->is_in_fib = routes->changes[i].op != FIB_DELETE;
		place->is_linux =
			place->is_in_fib && routes->changes[i].route.hop.kind == FIB_LINUX;
		free_if_empty(routes, routes->changed[i]);
	}
	routes->is_short &= routes->store.n_dirty > 0;
	return routes->store.n_dirty || routes->first_stale;
}
