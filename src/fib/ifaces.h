// Interfaces: the settings of each, and what workers read of them. Control thread; workers read
// `in`, `slot` and `macs`.
#pragma once

#include "fib/fib.h"
#include "fib/fib_fast.h"

#include <assert.h>

enum { IFACE_SLOTS = 2 * FIB_MAX_IFACES };

struct iface {
	struct fib_iface reported; // the latest settings; kept after the interface is deleted
	bool is_reported, was_reported;
	uint16_t n_hops; // next hops on it
};

// A hash of tags with open addressing: an interface is found at its place or after it, before the
// first empty slot. Deleted slots do not end the search.
enum { SLOT_EMPTY = 0, SLOT_LEFT = 1 };
struct iface_slot {
	uint64_t key; // a value above, or tags as on the wire with the port in place of priorities
	uint64_t iface;
} __attribute__((aligned(16)));

// An interface's addresses, its own one first. 0: none; otherwise the address with MAC_SET.
static const uint64_t MAC_SET = 1ull << 63;
struct iface_macs {
	uint64_t mac[FIB_IFACE_MACS + 1];
};

struct fib_ifaces {
	struct fib_iface_in *in;
	struct iface_slot *slot;
	struct iface_macs *macs;
	struct iface *iface;
	uint16_t end; // those from here on never had settings
};

int iface_table_open(struct fib_ifaces *ifaces);
void iface_table_close(struct fib_ifaces *ifaces);

// The VRF of an interface's neighbours: the latest one set, initially 0.
static inline uint8_t iface_vrf(const struct fib_ifaces *ifaces, uint16_t iface)
{
	return ifaces->iface[iface].reported.vrf;
}

static inline uint64_t iface_key(uint8_t port, const struct fib_tags *tags)
{
	struct fib_tags own = *tags;
	uint64_t key;

	own.bytes[2] = (own.bytes[2] & 0x0f) | port << 4;
	own.bytes[6] = (own.bytes[6] & 0x0f) | (port & 0xf0);
	memcpy(&key, own.bytes, sizeof(key));
	return key;
}

static inline unsigned iface_place(uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ull) >> 51; // 2^64 / golden ratio
}
static_assert(IFACE_SLOTS == 1 << (64 - 51), "link_place gives a slot");

static inline uint64_t iface_mac_word(const uint8_t mac[6])
{
	return MAC_SET | (uint64_t)load32(mac) << 16 | load16(mac + 4);
}

// An interface's tags as on the wire.
struct fib_tags iface_tags(const struct fib_iface *iface);
