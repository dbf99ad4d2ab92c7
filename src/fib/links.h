// Links: what the control thread was told of each, and what lanes read of that. Control thread;
// lanes read `in`, `slot` and `macs`.
#pragma once

#include "fib/fib.h"
#include "fib/fib_fast.h"

#include <assert.h>

enum { LINK_SLOTS = 2 * FIB_MAX_LINKS };

struct link {
	struct fib_link told; // the last word; also of a link that was deleted
	bool is_told, was_told;
	uint16_t n_hops; // next hops on it
};

// An open hash of tags: a link is found at its place or after it, before the first empty slot.
// Slots that were left stay passable.
enum { SLOT_EMPTY = 0, SLOT_LEFT = 1 };
struct link_slot {
	uint64_t key; // enum above, or tags as on the wire with the port in place of priorities
	uint64_t link;
} __attribute__((aligned(16)));

// A link's addresses: its own one first. 0: none, else the address with MAC_SET.
static const uint64_t MAC_SET = 1ull << 63;
struct link_macs {
	uint64_t mac[FIB_LINK_MACS + 1];
};

struct fib_links {
	struct fib_link_in *in;
	struct link_slot *slot;
	struct link_macs *macs;
	struct link *link;
	uint16_t end; // those from here on were never told
};

int link_table_open(struct fib_links *links);
void link_table_close(struct fib_links *links);

// The VRF in which a link's neighbours stand: the one last told, 0 at first.
static inline uint8_t link_vrf(const struct fib_links *links, uint16_t link)
{
	return links->link[link].told.vrf;
}

static inline uint64_t link_key(uint8_t port, const struct fib_tags *tags)
{
	struct fib_tags own = *tags;
	uint64_t key;

	own.bytes[2] = (own.bytes[2] & 0x0f) | port << 4;
	own.bytes[6] = (own.bytes[6] & 0x0f) | (port & 0xf0);
	memcpy(&key, own.bytes, sizeof(key));
	return key;
}

static inline unsigned link_place(uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ull) >> 51; // 2^64 / golden ratio
}
static_assert(LINK_SLOTS == 1 << (64 - 51), "link_place gives a slot");

static inline uint64_t link_mac_word(const uint8_t mac[6])
{
	return MAC_SET | (uint64_t)load32(mac) << 16 | load16(mac + 4);
}

// A link's tags as they stand on the wire.
struct fib_tags link_tags(const struct fib_link *link);
