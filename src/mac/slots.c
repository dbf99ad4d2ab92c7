// The table of addresses: buckets of four, two choices for each address, entries that move to make
// space (cuckoo hashing). Control thread; workers read meanwhile.
#include "mac/inside.h"

#include "base/pages.h"
#include "base/word16.h"

#include <stdlib.h>

// PERCENT: of the slots that may be in use, so that most addresses are in their first bucket.
// NODES: buckets that are searched for a free slot.
enum { PERCENT = 60, LEAST_BUCKETS = 16, NODES = 256 };

static uint32_t buckets_for(uint32_t max)
{
	return MAX_OF((uint64_t)max * 100 / PERCENT / MAC_SLOTS + 1, LEAST_BUCKETS);
}

uint64_t mac_bytes(uint32_t max)
{
	return (uint64_t)buckets_for(max) * sizeof(struct mac_bucket);
}

struct mac_slots *macs_alloc(uint32_t max, const uint64_t secret[4])
{
	struct mac_slots *slots = aligned_alloc(CACHE_LINE_BYTES, sizeof(*slots));

	if (!slots)
		return NULL;
	*slots = (struct mac_slots){.n_buckets = buckets_for(max)};
	memcpy(slots->secret, secret, sizeof(slots->secret));
	slots->bucket = pages_alloc(mac_bytes(max));
	if (slots->bucket)
		return slots;
	free(slots);
	return NULL;
}

void macs_free(struct mac_slots *slots)
{
	if (!slots)
		return;
	pages_free(slots->bucket, slots->n_buckets * sizeof(struct mac_bucket));
	free(slots);
}

uint32_t macs_n_places(const struct mac_slots *slots)
{
	return slots->n_buckets * MAC_SLOTS;
}

struct mac_slot *macs_at(const struct mac_slots *slots, uint32_t place)
{
	return &slots->bucket[place / MAC_SLOTS].slot[place % MAC_SLOTS];
}

struct mac_slot *macs_find(const struct mac_slots *slots, uint64_t key)
{
	struct mac_found found;

	mac_lookup(slots, &key, 1, &found);
	return found.slot;
}

struct mac_slot macs_get(const struct mac_slot *slot)
{
	const word16 word = word16_load(slot);
	struct mac_slot value;

	memcpy(&value, &word, sizeof(value));
	return value;
}

void macs_set(struct mac_slot *slot, const struct mac_slot *value)
{
	word16 word;

	memcpy(&word, value, sizeof(word));
	word16_store(slot, word);
}

void macs_clear(struct mac_slot *slot)
{
	macs_set(slot, &(struct mac_slot){.key = 0});
}

static struct mac_slot *free_slot(struct mac_bucket *bucket)
{
	for (unsigned i = 0; i < MAC_SLOTS; i++)
		if (!bucket->slot[i].key)
			return &bucket->slot[i];
	return NULL;
}

// A full bucket of the search: the entry `slot` of bucket `parent` could move to it.
struct node {
	uint32_t bucket;
	uint16_t parent;
	uint8_t slot;
};
enum { ROOT = UINT16_MAX };

static uint32_t other_bucket(const struct mac_slots *slots, uint64_t key, uint32_t bucket)
{
	const uint64_t hash = macs_hash(slots->secret, key);
	const uint32_t first = macs_first(slots, hash);

	return bucket == first ? macs_second(slots, hash) : first;
}

// Moves entries along the path from `node`, whose bucket has the free slot, to a root. Returns the
// slot of the root that is free then.
static struct mac_slot *shift(struct mac_slots *slots, const struct node node[], unsigned i,
	struct mac_slot *to)
{
	for (; node[i].parent != ROOT; i = node[i].parent) {
		struct mac_slot *from =
			&slots->bucket[node[node[i].parent].bucket].slot[node[i].slot];
		const struct mac_slot value = macs_get(from);

		macs_set(to, &value);
		// Pairs with the loads in lookup.c.
		__atomic_store_n(&slots->version, slots->version + 1, __ATOMIC_RELEASE);
		macs_clear(from);
		to = from;
	}
	return to;
}

// Whether the path from this node to its root has the bucket: then an entry would be moved twice.
static bool is_on_path(const struct node node[], unsigned i, uint32_t bucket)
{
	while (node[i].bucket != bucket && node[i].parent != ROOT)
		i = node[i].parent;
	return node[i].bucket == bucket;
}

// Breadth first, so that few entries move.
static struct mac_slot *make_space(struct mac_slots *slots, uint32_t first, uint32_t second)
{
	struct node node[NODES] = {{first, ROOT, 0}, {second, ROOT, 0}};
	unsigned n = 2;

	for (unsigned i = 0; i < n; i++) {
		const struct mac_bucket *bucket = &slots->bucket[node[i].bucket];

		for (unsigned k = 0; k < MAC_SLOTS && n < NODES; k++) {
			const uint32_t to =
				other_bucket(slots, bucket->slot[k].key, node[i].bucket);

			if (is_on_path(node, i, to))
				continue;
			node[n] = (struct node){to, i, k};
			struct mac_slot *space = free_slot(&slots->bucket[to]);
			if (space)
				return shift(slots, node, n, space);
			n++;
		}
	}
	return NULL;
}

bool macs_add(struct mac_slots *slots, const struct mac_slot *slot)
{
	const uint64_t hash = macs_hash(slots->secret, slot->key);
	const uint32_t first = macs_first(slots, hash), second = macs_second(slots, hash);
	struct mac_slot *space = free_slot(&slots->bucket[first]);

	if (!space)
		space = free_slot(&slots->bucket[second]);
	if (!space)
		space = make_space(slots, first, second);
	if (!space)
		return false;
	macs_set(space, slot);
	return true;
}
