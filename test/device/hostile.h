// Parts of the hostile vhost-user front-end, hostile.c: its state, random numbers, and its rings.
#pragma once

#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	MEMORY = 4 << 20,
	RINGS_AT = 0, // at the begin of the memory: for each vring RING_BYTES
	RING_BYTES = 32 << 10,
	AVAIL_AT = 16 << 10,
	USED_AT = 24 << 10,
	MOST_VRINGS = 8,
	MOST_SLOTS = 1024,
	TABLES_AT = MOST_VRINGS * RING_BYTES, // indirect tables
	TABLES_BYTES = 64 << 10,
	FRAMES_AT = TABLES_AT + TABLES_BYTES,
	MOST_REGIONS = 8,
	VIRTIO_HEADER = 12,
};

// The front-end's own addresses are guest addresses plus this.
static const uint64_t USER_OFFSET = 0x7f0000000000, GUEST_BASE = 0x100000;

struct hostile {
	const char *path;
	bool listens;
	uint8_t mac[6];
	int listener, file;
	uint8_t *memory;
	unsigned n_vrings, n_slots;
	unsigned health; // of descriptors: 5 of so many are bad
	bool is_packed;
	uint64_t random, end_ns;
	uint64_t n_connections, n_messages, n_chains, n_scribbles, n_cuts, n_replies;
	uint32_t undone; // a bit for each action of misbehave()
};
extern struct hostile me;

// xorshift64
static inline uint64_t any(void)
{
	me.random ^= me.random << 13;
	me.random ^= me.random >> 7;
	me.random ^= me.random << 17;
	return me.random;
}

static inline uint32_t below(uint32_t n)
{
	return (any() >> 16) % n;
}

static inline bool one_in(uint32_t n)
{
	return below(n) == 0;
}

// Numbers at which checks go wrong.
static inline uint64_t edge(void)
{
	static const uint64_t edges[] = {0, 1, 11, 12, 13, 4095, 4096, 65535, 65536, INT32_MAX,
		UINT32_MAX, INT64_MAX, UINT64_MAX - 4095, UINT64_MAX};
	unsigned n = sizeof(edges) / sizeof(edges[0]);

	return one_in(3) ? any() : edges[below(n)];
}

static inline uint64_t guest_address(uint64_t at)
{
	return GUEST_BASE + at;
}

// Offers frames and buffers in all rings, some of them bad.
void rings_fill(void);
// Changes what dl3d has perhaps checked already, but not used yet.
void rings_scribble(void);
