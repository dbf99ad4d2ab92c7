// Looks addresses up, many at a time, while the control thread changes the table. Worker.
#include "mac/inside.h"

#include "base/word16.h"

// The slot of a bucket that has the key; NULL: none.
static inline struct mac_slot *in_bucket(struct mac_bucket *bucket, uint64_t key)
{
	struct mac_slot *slot = NULL;

	for (unsigned i = 0; i < MAC_SLOTS; i++) {
		// Ordered before the second load of the version in mac_lookup.
		uint64_t there = __atomic_load_n(&bucket->slot[i].key, __ATOMIC_ACQUIRE);

		slot = there == key ? &bucket->slot[i] : slot;
	}
	return slot;
}

// Reads it whole: it may have been replaced since.
static inline bool take(struct mac_slot *slot, uint64_t key, struct mac_found *found)
{
	const word16 word = word16_load(slot);
	struct mac_slot value;

	memcpy(&value, &word, sizeof(value));
	*found = (struct mac_found){slot, value.port, value.flags, value.seen};
	return value.key == key;
}

static inline bool find_in(const struct mac_slots *slots, uint32_t bucket, uint64_t key,
	struct mac_found *found)
{
	struct mac_slot *slot = in_bucket(&slots->bucket[bucket], key);

	return slot && take(slot, key, found);
}

static inline uint32_t version_of(const struct mac_slots *slots)
{
	// Pairs with the addition in slots.c: who reads the new one sees the copy.
	return __atomic_load_n(&slots->version, __ATOMIC_ACQUIRE);
}

// Again, as often as entries have moved meanwhile.
static __attribute__((noinline)) void find_again(const struct mac_slots *slots, uint64_t key,
	uint64_t hash, struct mac_found *found)
{
	uint32_t version;

	do {
		version = version_of(slots);
		if (find_in(slots, macs_first(slots, hash), key, found) ||
			find_in(slots, macs_second(slots, hash), key, found))
			return;
	} while (version != version_of(slots));
	found->slot = NULL;
}

void mac_lookup(const struct mac_slots *slots, const uint64_t key[], unsigned n,
	struct mac_found found[])
{
	const uint32_t version = version_of(slots);
	uint64_t hash[MAC_BURST];
	uint8_t left[MAC_BURST];
	unsigned n_left = 0;

	for (unsigned i = 0; i < n; i++) {
		hash[i] = macs_hash(slots->secret, key[i]);
		__builtin_prefetch(&slots->bucket[macs_first(slots, hash[i])]);
	}
	for (unsigned i = 0; i < n; i++) {
		if (likely(find_in(slots, macs_first(slots, hash[i]), key[i], &found[i])))
			continue;
		left[n_left++] = i;
		__builtin_prefetch(&slots->bucket[macs_second(slots, hash[i])]);
	}
	for (unsigned k = 0; k < n_left; k++) {
		const unsigned i = left[k];

		if (find_in(slots, macs_second(slots, hash[i]), key[i], &found[i]))
			continue;
		found[i].slot = NULL;
		if (unlikely(version != version_of(slots)))
			find_again(slots, key[i], hash[i], &found[i]);
	}
}

bool mac_storm_passes(const struct mac_live *live, const struct mac_view *view, uint16_t port,
	enum mac_storm kind, uint64_t now)
{
	const uint64_t cycles = view->port[port].storm_cycles[kind];
	uint64_t *due = (uint64_t *)(uintptr_t)&live->due[port].at[kind];
	uint64_t was = __atomic_load_n(due, __ATOMIC_RELAXED), start;

	if (!cycles)
		return true;
	do {
		start = MAX_OF(was, now);
		if (start - now > view->storm_burst_cycles)
			return false;
	} while (!__atomic_compare_exchange_n(due, &was, start + cycles, true, __ATOMIC_RELAXED,
		__ATOMIC_RELAXED));
	return true;
}
