// Places and routes in arrays that never move, with hash lookup. Control thread.
#include "netlink/routes_inside.h"

#include "base/bits.h"
#include "base/pages.h"
#include "base/vector.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

enum { FEWEST_BUCKETS = 1 << 10 };

int store_open(struct store *store)
{
	memset(store, 0, sizeof(*store));
	store->top_place = store->top_route = 1;
	store->n_buckets = FEWEST_BUCKETS;
	store->bucket = pages_alloc(FEWEST_BUCKETS * sizeof(*store->bucket));
	store->place = pages_alloc(STORE_MAX * sizeof(*store->place));
	store->route = pages_alloc(STORE_MAX * sizeof(*store->route));
	if (store->bucket && store->place && store->route)
		return 0;
	store_close(store);
	return -ENOMEM;
}

void store_close(struct store *store)
{
	pages_free(store->bucket, store->n_buckets * sizeof(*store->bucket));
	pages_free(store->place, STORE_MAX * sizeof(*store->place));
	pages_free(store->route, STORE_MAX * sizeof(*store->route));
	free(store->domain);
	memset(store, 0, sizeof(*store)); // may be closed again, by who opened what it is part of
}

size_t store_bytes(const struct store *store)
{
	return store->top_place * sizeof(*store->place) + store->top_route * sizeof(*store->route) +
	       store->n_buckets * sizeof(*store->bucket) +
	       store->domain_capacity * sizeof(*store->domain);
}

static int add_domain(struct store *store, uint32_t table)
{
	if (store->n_domains == STORE_MAX_DOMAINS)
		return -ENOSPC;
	if (vector_reserve(&store->domain, &store->domain_capacity, store->n_domains + 1,
		    sizeof(*store->domain)))
		return -ENOMEM;
	store->domain[store->n_domains] = (struct store_domain){table, 0, IFACES_NO_VRF};
	return store->last_domain = store->n_domains++;
}

int store_domain(struct store *store, uint32_t table)
{
	if (table == RT_TABLE_LOCAL || table == RT_TABLE_DEFAULT)
		table = RT_TABLE_MAIN;
	if (store->n_domains && store->domain[store->last_domain].table == table)
		return store->last_domain;
	for (uint32_t i = 0; i < store->n_domains; i++)
		if (store->domain[i].table == table)
			return store->last_domain = i;
	return add_domain(store, table);
}

static uint32_t *bucket_of(const struct store *store, const struct store_place *place)
{
	uint64_t hash = load64(place->addr) * 0x9e3779b97f4a7c15ull; // 2^64 / golden ratio

	hash = (hash ^ hash >> 29 ^ load64(place->addr + 8)) * 0xbf58476d1ce4e5b9ull;
	hash ^= (uint64_t)place->domain << 9 ^ place->len << 1 ^ place->is_ipv6;
	hash = (hash ^ hash >> 32) * 0x94d049bb133111ebull; // splitmix64's
	return &store->bucket[(hash ^ hash >> 31) & (store->n_buckets - 1)];
}

static struct store_place wanted(uint16_t domain, const struct wire_prefix *prefix)
{
	struct store_place place = {.domain = domain,
		.len = prefix->len,
		.is_ipv6 = prefix->addr.family == 6};

	memcpy(place.addr, prefix->addr.bytes, prefix->addr.family == 6 ? 16 : 4);
	return place;
}

static bool is_same(const struct store_place *a, const struct store_place *b)
{
	return !memcmp(a->addr, b->addr, sizeof(a->addr)) && a->len == b->len &&
	       a->domain == b->domain && a->is_ipv6 == b->is_ipv6;
}

static uint32_t find(const struct store *store, const struct store_place *request)
{
	uint32_t at = *bucket_of(store, request);

	while (at && !is_same(&store->place[at], request))
		at = store->place[at].chain;
	return at;
}

uint32_t store_find(const struct store *store, uint16_t domain, const struct wire_prefix *prefix)
{
	const struct store_place request = wanted(domain, prefix);

	return find(store, &request);
}

// As many buckets as places; if there is no memory for more, chains get longer.
static void grow_buckets(struct store *store)
{
	uint32_t n_old = store->n_buckets, *old = store->bucket;
	uint32_t *bucket = pages_alloc(2ul * n_old * sizeof(*bucket));

	if (!bucket)
		return;
	store->bucket = bucket;
	store->n_buckets = 2 * n_old;
	for (uint32_t i = 0; i < n_old; i++)
		for (uint32_t at = old[i], next; at; at = next) {
			next = store->place[at].chain;
			uint32_t *to = bucket_of(store, &store->place[at]);
			store->place[at].chain = *to;
			*to = at;
		}
	pages_free(old, n_old * sizeof(*old));
}

uint32_t store_place(struct store *store, uint16_t domain, const struct wire_prefix *prefix)
{
	const struct store_place request = wanted(domain, prefix);
	uint32_t at = find(store, &request);

	if (at)
		return at;
	if (store->n_places >= store->n_buckets)
		grow_buckets(store);
	at = store->idle_place;
	if (at)
		store->idle_place = store->place[at].chain;
	else if (store->top_place < STORE_MAX)
		at = store->top_place++;
	else
		return 0;
	uint32_t *bucket = bucket_of(store, &request);
	store->place[at] = request;
	store->place[at].is_used = true;
	store->place[at].chain = *bucket;
	*bucket = at;
	store->n_places++;
	store->domain[domain].n_places++;
	return at;
}

void store_free_place(struct store *store, uint32_t number)
{
	struct store_place *place = &store->place[number];
	uint32_t *iface = bucket_of(store, place);

	while (*iface != number)
		iface = &store->place[*iface].chain;
	*iface = place->chain;
	store->n_places--;
	store->domain[place->domain].n_places--;
	place->is_used = false;
	place->chain = store->idle_place;
	store->idle_place = number;
}

struct wire_prefix store_prefix(const struct store_place *place)
{
	struct wire_prefix prefix = {.len = place->len};

	prefix.addr.family = place->is_ipv6 ? 6 : 4;
	memcpy(prefix.addr.bytes, place->addr, sizeof(place->addr));
	return prefix;
}

uint32_t store_insert(struct store *store, uint32_t place, uint32_t *iface)
{
	uint32_t at = store->idle_route;

	if (at)
		store->idle_route = store->route[at].next;
	else if (store->top_route < STORE_MAX)
		at = store->top_route++;
	else
		return 0;
	store->route[at] = (struct store_route){.place = place, .next = *iface};
	*iface = at;
	store->n_routes[store->place[place].is_ipv6]++;
	return at;
}

void store_remove(struct store *store, uint32_t number)
{
	struct store_route *route = &store->route[number];
	uint32_t *iface = &store->place[route->place].first;

	while (*iface != number)
		iface = &store->route[*iface].next;
	*iface = route->next;
	store->n_routes[store->place[route->place].is_ipv6]--;
	route->place = 0;
	route->next = store->idle_route;
	store->idle_route = number;
}

void store_touch(struct store *store, uint32_t number)
{
	struct store_place *place = &store->place[number];

	if (place->is_dirty)
		return;
	place->is_dirty = true;
	place->next_dirty = 0;
	if (store->last_dirty)
		store->place[store->last_dirty].next_dirty = number;
	else
		store->first_dirty = number;
	store->last_dirty = number;
	store->n_dirty++;
}

uint32_t store_next_dirty(struct store *store)
{
	uint32_t number = store->first_dirty;

	if (!number)
		return 0;
	struct store_place *place = &store->place[number];
	place->is_dirty = false;
	store->first_dirty = place->next_dirty;
	if (!store->first_dirty)
		store->last_dirty = 0;
	store->n_dirty--;
	return number;
}
