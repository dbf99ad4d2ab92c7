// The table of next-hop sets. Control thread.
#include "netlink/hop_sets.h"

#include "base/bits.h"
#include "base/vector.h"
#include "netlink/nexthops.h"

#include <assert.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

int hop_sets_open(struct hop_sets *hop_sets)
{
	memset(hop_sets, 0, sizeof(*hop_sets));
	hop_sets->n = 1;
	hop_sets->bucket = calloc(HOP_SETS_BUCKETS, sizeof(*hop_sets->bucket));
	return hop_sets->bucket ? 0 : -ENOMEM;
}

void hop_sets_close(struct hop_sets *hop_sets)
{
	for (uint32_t i = 1; i < hop_sets->n; i++)
		free(hop_sets->hop_set[i]);
	free(hop_sets->hop_set);
	free(hop_sets->idle);
	free(hop_sets->bucket);
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

static uint32_t *bucket_of(const struct hop_sets *hop_sets, const struct hop_set_key *key,
	const struct hop_set_hop *hops)
{
	uint64_t hash = mix(1469598103934665603ull, key, sizeof(*key));

	for (unsigned i = 0; i < key->n_hops; i++) {
		hash = mix(hash, hops[i].via.bytes, sizeof(hops[i].via.bytes));
		hash = mix(hash, &hops[i].ifindex, sizeof(hops[i].ifindex));
	}
	return &hop_sets->bucket[(hash ^ hash >> 29) % HOP_SETS_BUCKETS];
}

static bool same_hops(const struct hop_set_hop *a, const struct hop_set_hop *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!wire_addr_equal(&a[i].via, &b[i].via) || a[i].ifindex != b[i].ifindex ||
			a[i].weight != b[i].weight || a[i].has_encap != b[i].has_encap ||
			a[i].is_onlink != b[i].is_onlink)
			return false;
	return true;
}

uint32_t hop_sets_find(const struct hop_sets *hop_sets, const struct hop_set_request *request)
{
	uint32_t number = *bucket_of(hop_sets, &request->key, request->hops);

	for (; number; number = hop_sets->hop_set[number]->chain) {
		const struct hop_set *hop_set = hop_sets->hop_set[number];
		if (!memcmp(&hop_set->key, &request->key, sizeof(request->key)) &&
			same_hops(hop_set->hops, request->hops, request->key.n_hops))
			break;
	}
	return number;
}

// Space for one more number.
static int reserve(struct hop_sets *hop_sets)
{
	size_t wanted = hop_sets->n + 1, capacity = hop_sets->capacity;

	if (vector_reserve(&hop_sets->hop_set, &capacity, wanted, sizeof(struct hop_set *)))
		return -ENOMEM;
	return vector_reserve(&hop_sets->idle, &hop_sets->capacity, wanted,
		sizeof(*hop_sets->idle));
}

static uint32_t take_number(struct hop_sets *hop_sets)
{
	uint32_t number = hop_sets->free;

	if (number) {
		hop_sets->free = hop_sets->idle[number];
		return number;
	}
	return reserve(hop_sets) ? 0 : hop_sets->n++;
}

static size_t hop_set_bytes(const struct hop_set_key *key)
{
	return sizeof(struct hop_set) + key->n_hops * sizeof(struct hop_set_hop);
}

uint32_t hop_sets_get(struct hop_sets *hop_sets, const struct hop_set_request *request)
{
	uint32_t number = hop_sets_find(hop_sets, request);

	if (number)
		return number;
	struct hop_set *hop_set = calloc(1, hop_set_bytes(&request->key));
	if (!hop_set)
		return 0;
	number = take_number(hop_sets);
	if (!number) {
		free(hop_set);
		return 0;
	}
	uint32_t *bucket = bucket_of(hop_sets, &request->key, request->hops);
	hop_set->key = request->key;
	memcpy(hop_set->hops, request->hops, request->key.n_hops * sizeof(*request->hops));
	hop_set->chain = *bucket;
	*bucket = number;
	hop_sets->hop_set[number] = hop_set;
	hop_sets->bytes += hop_set_bytes(&request->key);
	hop_sets->n_used++;
	return number;
}

void hop_sets_free(struct hop_sets *hop_sets, uint32_t number)
{
	struct hop_set *hop_set = hop_sets->hop_set[number];
	uint32_t *iface = bucket_of(hop_sets, &hop_set->key, hop_set->hops);

	while (*iface != number)
		iface = &hop_sets->hop_set[*iface]->chain;
	*iface = hop_set->chain;
	hop_sets->bytes -= hop_set_bytes(&hop_set->key);
	hop_sets->n_used--;
	free(hop_set);
	hop_sets->hop_set[number] = NULL;
	hop_sets->idle[number] = hop_sets->free;
	hop_sets->free = number;
}

// The table of next-hop objects.

static uint32_t id_bucket(uint32_t id)
{
	return id * 0x9e3779b1u >> 20; // 2^32 / golden ratio; keep 12 bits
}

int nexthops_open(struct nexthops *nexthops)
{
	static_assert(NEXTHOPS_BUCKETS == 1 << 12, "as many as id_bucket tells apart");
	memset(nexthops, 0, sizeof(*nexthops));
	nexthops->bucket = calloc(NEXTHOPS_BUCKETS, sizeof(struct nexthop *));
	return nexthops->bucket ? 0 : -ENOMEM;
}

void nexthops_close(struct nexthops *nexthops)
{
	for (unsigned i = 0; i < NEXTHOPS_BUCKETS; i++)
		for (struct nexthop *at = nexthops->bucket[i], *next; at; at = next) {
			next = at->next;
			free(at->member);
			free(at);
		}
	free(nexthops->bucket);
}

struct nexthop *nexthops_find(const struct nexthops *nexthops, uint32_t id)
{
	struct nexthop *at = nexthops->bucket[id_bucket(id)];

	while (at && at->id != id)
		at = at->next;
	return at;
}

struct nexthop *nexthops_get(struct nexthops *nexthops, uint32_t id)
{
	struct nexthop *nexthop = nexthops_find(nexthops, id);

	if (nexthop)
		return nexthop;
	nexthop = calloc(1, sizeof(*nexthop));
	if (!nexthop)
		return NULL;
	nexthop->id = id;
	nexthop->next = nexthops->bucket[id_bucket(id)];
	nexthops->bucket[id_bucket(id)] = nexthop;
	nexthops->bytes += sizeof(*nexthop);
	return nexthop;
}

void nexthops_release(struct nexthops *nexthops, struct nexthop *nexthop)
{
	struct nexthop **iface = &nexthops->bucket[id_bucket(nexthop->id)];

	if (nexthop->is_known || nexthop->first_hop_set || nexthop->n_groups)
		return;
	while (*iface != nexthop)
		iface = &(*iface)->next;
	*iface = nexthop->next;
	nexthops->bytes -= sizeof(*nexthop);
	free(nexthop->member);
	free(nexthop);
}

static void drop_members(struct nexthops *nexthops, struct nexthop *nexthop)
{
	for (unsigned i = 0; i < nexthop->n_members; i++) {
		struct nexthop *member = nexthops_find(nexthops, nexthop->member[i].id);
		member->n_groups--;
		nexthops_release(nexthops, member);
	}
	nexthops->bytes -= nexthop->n_members * sizeof(*nexthop->member);
	nexthop->n_members = 0;
}

static int take_members(struct nexthops *nexthops, struct nexthop *nexthop,
	const struct event_nexthop *reported)
{
	struct nexthop_member *member =
		realloc(nexthop->member, reported->n_members * sizeof(*member));

	if (!member)
		return -ENOMEM;
	nexthop->member = member;
	for (unsigned i = 0; i < reported->n_members; i++) {
		struct nexthop *one = nexthops_get(nexthops, reported->member[i].id);
		if (!one)
			return -ENOMEM;
		one->n_groups++;
		member[nexthop->n_members++] =
			(struct nexthop_member){reported->member[i].id, reported->member[i].weight};
		nexthops->bytes += sizeof(*member);
	}
	return 0;
}

void nexthops_set(struct nexthops *nexthops, struct nexthop *nexthop,
	const struct event_nexthop *reported)
{
	nexthops->n_known += !nexthop->is_known;
	nexthop->is_known = true; // set before its old members are released: they may be its only
	                          // reference
	drop_members(nexthops, nexthop);
	nexthop->is_blackhole = reported->is_blackhole;
	nexthop->is_group = reported->is_group;
	nexthop->is_fdb = reported->is_fdb;
	nexthop->has_too_many_members = reported->too_many_members;
	nexthop->hop = (struct hop_set_hop){.via = reported->hop.via,
		.has_encap = reported->hop.has_encap,
		.ifindex = reported->hop.ifindex,
		.weight = 1};
	if (reported->n_members && take_members(nexthops, nexthop, reported))
		nexthop->has_too_many_members = true;
}

void nexthops_forget(struct nexthops *nexthops, struct nexthop *nexthop)
{
	nexthops->n_known -= nexthop->is_known;
	drop_members(nexthops, nexthop);
	nexthop->is_known = false;
	nexthops_release(nexthops, nexthop);
}

bool nexthops_leave(struct nexthops *nexthops, struct nexthop *group, uint32_t id)
{
	for (unsigned i = 0; i < group->n_members; i++) {
		if (group->member[i].id != id)
			continue;
		struct nexthop *member = nexthops_find(nexthops, id);
		group->member[i] = group->member[--group->n_members];
		nexthops->bytes -= sizeof(*group->member);
		member->n_groups--;
		nexthops_release(nexthops, member);
		return !group->n_members;
	}
	return false;
}

struct nexthop *nexthops_next(const struct nexthops *nexthops, const struct nexthop *after)
{
	if (after && after->next)
		return after->next;
	for (uint32_t i = after ? id_bucket(after->id) + 1 : 0; i < NEXTHOPS_BUCKETS; i++)
		if (nexthops->bucket[i])
			return nexthops->bucket[i];
	return NULL;
}
