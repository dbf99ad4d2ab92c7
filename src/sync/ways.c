// The table of ways. Control thread.
#include "sync/ways.h"

#include "base/bits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ways_open(struct ways *ways)
{
	memset(ways, 0, sizeof(*ways));
	ways->n = 1;
	ways->bucket = calloc(WAYS_BUCKETS, sizeof(*ways->bucket));
	return ways->bucket ? 0 : -ENOMEM;
}

void ways_close(struct ways *ways)
{
	for (uint32_t i = 1; i < ways->n; i++)
		free(ways->way[i]);
	free(ways->way);
	free(ways->idle);
	free(ways->bucket);
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	for (; n >= sizeof(uint64_t); n -= sizeof(uint64_t), at += sizeof(uint64_t)) {
		hash = (hash ^ load64(at)) * 0x9e3779b97f4a7c15ull; // 2^64 / golden ratio
		hash ^= hash >> 32;
	}
	for (; n; n--, at++)
		hash = (hash ^ *at) * 1099511628211ull; // FNV-1a's prime
	return hash;
}

static uint32_t *bucket_of(const struct ways *ways, const struct way_key *key,
	const struct way_hop *hops)
{
	uint64_t hash = mix(1469598103934665603ull, key, sizeof(*key));

	for (unsigned i = 0; i < key->n_hops; i++) {
		hash = mix(hash, hops[i].via.bytes, sizeof(hops[i].via.bytes));
		hash = mix(hash, &hops[i].ifindex, sizeof(hops[i].ifindex));
	}
	return &ways->bucket[(hash ^ hash >> 29) % WAYS_BUCKETS];
}

static bool same_hops(const struct way_hop *a, const struct way_hop *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!wire_addr_equal(&a[i].via, &b[i].via) || a[i].ifindex != b[i].ifindex ||
			a[i].weight != b[i].weight || a[i].has_encap != b[i].has_encap ||
			a[i].is_onlink != b[i].is_onlink)
			return false;
	return true;
}

uint32_t ways_find(const struct ways *ways, const struct way_wish *wish)
{
	uint32_t number = *bucket_of(ways, &wish->key, wish->hops);

	for (; number; number = ways->way[number]->chain) {
		const struct way *way = ways->way[number];
		if (!memcmp(&way->key, &wish->key, sizeof(wish->key)) &&
			same_hops(way->hops, wish->hops, wish->key.n_hops))
			break;
	}
	return number;
}

static int grow(struct ways *ways)
{
	uint32_t room = ways->room ? 2 * ways->room : 256;
	struct way **way = realloc(ways->way, room * sizeof(struct way *));

	if (!way)
		return -ENOMEM;
	ways->way = way;
	uint32_t *idle = realloc(ways->idle, room * sizeof(*idle));
	if (!idle)
		return -ENOMEM;
	ways->idle = idle;
	ways->room = room;
	return 0;
}

static uint32_t take_number(struct ways *ways)
{
	uint32_t number = ways->free;

	if (number) {
		ways->free = ways->idle[number];
		return number;
	}
	return ways->n < ways->room || !grow(ways) ? ways->n++ : 0;
}

static size_t way_bytes(const struct way_key *key)
{
	return sizeof(struct way) + key->n_hops * sizeof(struct way_hop);
}

uint32_t ways_get(struct ways *ways, const struct way_wish *wish)
{
	uint32_t number = ways_find(ways, wish);

	if (number)
		return number;
	struct way *way = calloc(1, way_bytes(&wish->key));
	if (!way)
		return 0;
	number = take_number(ways);
	if (!number) {
		free(way);
		return 0;
	}
	uint32_t *bucket = bucket_of(ways, &wish->key, wish->hops);
	way->key = wish->key;
	memcpy(way->hops, wish->hops, wish->key.n_hops * sizeof(*wish->hops));
	way->chain = *bucket;
	*bucket = number;
	ways->way[number] = way;
	ways->bytes += way_bytes(&wish->key);
	ways->n_used++;
	return number;
}

void ways_free(struct ways *ways, uint32_t number)
{
	struct way *way = ways->way[number];
	uint32_t *link = bucket_of(ways, &way->key, way->hops);

	while (*link != number)
		link = &ways->way[*link]->chain;
	*link = way->chain;
	ways->bytes -= way_bytes(&way->key);
	ways->n_used--;
	free(way);
	ways->way[number] = NULL;
	ways->idle[number] = ways->free;
	ways->free = number;
}
