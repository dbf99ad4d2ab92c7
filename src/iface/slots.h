// A hash of VLAN tags with open addressing: an interface is found at its place or after it, before
// the first empty slot. Deleted slots do not end the search. Control thread; workers read slots.
#pragma once

#include "base/bits.h"
#include "iface/iface.h"

#include <assert.h>

enum { IFACE_SLOT_BITS = 17, IFACE_SLOTS = 1 << IFACE_SLOT_BITS };
static_assert(IFACE_SLOTS >= 2 * IFACE_MAX, "at most half of the slots are in use");

enum { SLOT_EMPTY = 0, SLOT_LEFT = 1 };
struct iface_slot {
	uint64_t tags; // a value above, or tags as on the wire with priorities 0
	uint32_t port, iface;
} __attribute__((aligned(16)));

// What a slot is found by.
struct slot_key {
	uint64_t tags;
	uint32_t port;
};

static inline struct slot_key slot_key(uint16_t port, const struct iface_tags *tags)
{
	struct iface_tags own = *tags;
	struct slot_key key = {.port = port};

	own.bytes[2] &= 0x0f;
	own.bytes[6] &= 0x0f;
	memcpy(&key.tags, own.bytes, sizeof(key.tags));
	return key;
}

static inline unsigned slot_place(struct slot_key key)
{
	const uint64_t golden = 0x9e3779b97f4a7c15; // 2^64 / golden ratio

	return ((key.tags ^ (uint64_t)key.port << 32) * golden) >> (64 - IFACE_SLOT_BITS);
}

static inline bool slot_has(const struct iface_slot *slot, struct slot_key key)
{
	return slot->tags == key.tags && slot->port == key.port;
}

// The interface with a key; IFACE_NONE: none.
uint16_t slots_find(const struct iface_table *table, struct slot_key key);
void slots_put(struct iface_table *table, struct slot_key key, uint16_t iface);
void slots_remove(struct iface_table *table, struct slot_key key);
