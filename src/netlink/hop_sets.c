// The table of next-hop sets. Control thread.
#include "netlink/hop_sets.h"

#include "base/bits.h"
#include "base/vector.h"

#include <assert.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_HOP_SETS = 1024, FIRST_NEXTHOPS = 256, MOST_WEIGHT = 255 };

static_assert(offsetof(struct hop_set, node) == 0, "the table returns nodes as entries");

int hop_sets_open(struct hop_sets *hop_sets)
{
	memset(hop_sets, 0, sizeof(*hop_sets));
	hop_sets->n = 1;
	return hash_table_init(&hop_sets->by_key, FIRST_HOP_SETS);
}

void hop_sets_close(struct hop_sets *hop_sets)
{
	hash_table_free(&hop_sets->by_key, free);
	free(hop_sets->hop_set);
	free(hop_sets->idle);
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

static uint32_t hash_of(const struct hop_set_request *request)
{
	uint64_t hash = mix(1469598103934665603ull, &request->key, sizeof(request->key));

	for (unsigned i = 0; i < request->key.n_hops; i++) {
		const struct hop_set_hop *hop = &request->hops[i];

		hash = mix(hash, hop->via.bytes, sizeof(hop->via.bytes));
		hash = mix(hash, &hop->ifindex, sizeof(hop->ifindex));
		hash = mix(hash, hop->label, hop->n_labels * sizeof(hop->label[0]));
	}
	return (uint32_t)(hash ^ hash >> 29);
}

static bool same_hops(const struct hop_set_hop *a, const struct hop_set_hop *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!wire_addr_equal(&a[i].via, &b[i].via) || a[i].ifindex != b[i].ifindex ||
			a[i].weight != b[i].weight || a[i].has_encap != b[i].has_encap ||
			a[i].is_onlink != b[i].is_onlink || a[i].n_labels != b[i].n_labels ||
			a[i].label_ttl != b[i].label_ttl ||
			memcmp(a[i].label, b[i].label, sizeof(a[i].label)) != 0)
			return false;
	return true;
}

static uint32_t find(const struct hop_sets *hop_sets, const struct hop_set_request *request,
	uint32_t hash)
{
	const struct hop_set *hop_set = hash_table_find(&hop_sets->by_key, hash);

	while (hop_set && (memcmp(&hop_set->key, &request->key, sizeof(request->key)) ||
				  !same_hops(hop_set->hops, request->hops, request->key.n_hops)))
		hop_set = hash_table_find_next(&hop_set->node);
	return hop_set ? hop_set->number : 0;
}

uint32_t hop_sets_find(const struct hop_sets *hop_sets, const struct hop_set_request *request)
{
	return find(hop_sets, request, hash_of(request));
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
	uint32_t hash = hash_of(request), number = find(hop_sets, request, hash);

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
	hop_set->key = request->key;
	hop_set->number = number;
	memcpy(hop_set->hops, request->hops, request->key.n_hops * sizeof(*request->hops));
	hash_table_insert(&hop_sets->by_key, &hop_set->node, hash);
	hop_sets->hop_set[number] = hop_set;
	hop_sets->bytes += hop_set_bytes(&request->key);
	return number;
}

void hop_sets_free(struct hop_sets *hop_sets, uint32_t number)
{
	struct hop_set *hop_set = hop_sets->hop_set[number];

	hash_table_remove(&hop_sets->by_key, &hop_set->node);
	hop_sets->bytes -= hop_set_bytes(&hop_set->key);
	free(hop_set);
	hop_sets->hop_set[number] = NULL;
	hop_sets->idle[number] = hop_sets->free;
	hop_sets->free = number;
}

void hop_sets_scale_weights(uint32_t weight[], unsigned n)
{
	uint32_t most = 1;

	for (unsigned i = 0; i < n; i++)
		most = MAX_OF(most, weight[i]);
	for (unsigned i = 0; i < n; i++) {
		if (most > MOST_WEIGHT)
			weight[i] = (weight[i] * MOST_WEIGHT + most / 2) / most;
		weight[i] = MAX_OF(weight[i], 1u);
	}
}

// The table of next-hop objects.

static_assert(offsetof(struct nexthop, node) == 0, "the table returns nodes as entries");

static uint32_t hash_of_id(uint32_t id)
{
	uint32_t mixed = id * 0x9e3779b1u; // 2^32 / golden ratio

	return mixed ^ mixed >> 16;
}

int nexthops_open(struct nexthops *nexthops)
{
	memset(nexthops, 0, sizeof(*nexthops));
	return hash_table_init(&nexthops->by_id, FIRST_NEXTHOPS);
}

static void free_nexthop(void *entry)
{
	struct nexthop *nexthop = entry;

	free(nexthop->member);
	free(nexthop);
}

void nexthops_close(struct nexthops *nexthops)
{
	hash_table_free(&nexthops->by_id, free_nexthop);
}

struct nexthop *nexthops_find(const struct nexthops *nexthops, uint32_t id)
{
	struct nexthop *at = hash_table_find(&nexthops->by_id, hash_of_id(id));

	while (at && at->id != id)
		at = hash_table_find_next(&at->node);
	return at;
}

struct nexthop *nexthops_get(struct nexthops *nexthops, uint32_t id)
{
	struct nexthop *nexthop = nexthops_find(nexthops, id);

	if (nexthop)
		return nexthop;
	nexthop = calloc(1, sizeof(*nexthop));
	nexthops->is_short |= !nexthop;
	if (!nexthop)
		return NULL;
	nexthop->id = id;
	hash_table_insert(&nexthops->by_id, &nexthop->node, hash_of_id(id));
	nexthops->bytes += sizeof(*nexthop);
	return nexthop;
}

void nexthops_release(struct nexthops *nexthops, struct nexthop *nexthop)
{
	if (nexthop->is_known || nexthop->first_hop_set || nexthop->n_groups)
		return;
	hash_table_remove(&nexthops->by_id, &nexthop->node);
	nexthops->bytes -= sizeof(*nexthop);
	free_nexthop(nexthop);
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

	nexthops->is_short |= !member;
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

int nexthops_set(struct nexthops *nexthops, struct nexthop *nexthop,
	const struct event_nexthop *reported)
{
	nexthops->n_known += !nexthop->is_known;
	nexthop->is_known = true; // set before its old members are released: they may be its only
	                          // reference
	drop_members(nexthops, nexthop);
	nexthop->is_blackhole = reported->is_blackhole;
	nexthop->is_group = reported->is_group;
	nexthop->is_resilient = reported->is_resilient;
	nexthop->idle_ms = reported->resilient.idle_cs * 10ull;
	nexthop->unbalanced_ms = reported->resilient.unbalanced_cs * 10ull;
	nexthop->is_fdb = reported->is_fdb;
	nexthop->has_too_many_members = reported->too_many_members;
	nexthop->hop = (struct hop_set_hop){.via = reported->hop.via,
		.has_encap = reported->hop.has_encap,
		.n_labels = reported->hop.n_labels,
		.label_ttl = reported->hop.label_ttl,
		.ifindex = reported->hop.ifindex,
		.weight = 1};
	memcpy(nexthop->hop.label, reported->hop.label, sizeof(nexthop->hop.label));
	if (!reported->n_members || !take_members(nexthops, nexthop, reported))
		return 0;
	nexthop->has_too_many_members = true;
	return -ENOMEM;
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
	return hash_table_next(&nexthops->by_id, after ? &after->node : NULL);
}
