// The routing table: all routes, in one path-compressed binary trie per family and VRF. Keys are
// left-aligned in 128 bits. Control thread.
#pragma once

#include "fib/blocks.h"
#include "fib/fib.h"
#include "fib/fib_fast.h"

#include <assert.h>
#include <stdbool.h>

// Each VRF has one tree per family; RIB4 and RIB6 are those of the main table.
enum { RIB4, RIB6, RIB_FAMILIES, RIB_TREES = RIB_FAMILIES * FIB_MAX_VRFS };
enum { RIB_MAX_NODES = 1u << 25, RIB_MAX_RUNS = 520 };

// A prefix with a route or a neighbour, or a fork of two prefixes (with neither).
struct rib_node {
	struct fib_key6 key;
	uint32_t child[2];
	uint32_t route : 20;  // hop id of the route, 0: none
	uint32_t builtin : 4; // enum fib_kind of the built-in route here, 0: none
	uint32_t len : 8;
	uint16_t n_neighbours; // interfaces on which this host is a neighbour
	uint16_t tree;
};
static_assert(sizeof(struct rib_node) == 32, "two nodes fill a cache line");
static_assert(FIB_MAX_HOPS < 1 << 20 && N_FIB_KINDS <= 1 << 4, "the widths of bit fields");

struct hops;

struct rib {
	struct blocks nodes;
	const struct hops *hops;
	uint32_t root[RIB_TREES];
};

struct rib_prefix {
	struct fib_key6 key;
	uint16_t tree;
	uint8_t len;
};

// The lookup result for a prefix: the topmost node within it (0: none), and the hop inherited from
// a shorter prefix.
struct rib_top {
	uint32_t node;
	uint32_t hop;
};

// Consecutive slots with the same result: all up to and including slot `last`.
struct rib_run {
	uint32_t last;
	struct rib_top top;
};

struct rib_runs {
	uint32_t n;
	uint32_t next; // the first slot not yet covered
	struct rib_run run[RIB_MAX_RUNS];
};

// The 2^bits slots below a prefix of length `len`.
struct rib_span {
	uint8_t len, bits;
};

int rib_open(struct rib *rib, const struct hops *hops);
void rib_close(struct rib *rib);

static inline struct rib_node *rib_node(const struct rib *rib, uint32_t node)
{
	return blocks_at(&rib->nodes, node);
}

// `n` bits (1 to 32) of a key, starting at bit `at`.
static inline uint32_t rib_key_bits(struct fib_key6 key, unsigned at, unsigned n)
{
	unsigned __int128 whole = (unsigned __int128)key.high << 64 | key.low;

	return (uint32_t)(whole << at >> (128 - n));
}

// The key with `n` bits starting at bit `at` replaced (they were 0).
static inline struct fib_key6 rib_key_with(struct fib_key6 key, unsigned at, unsigned n,
	uint32_t bits)
{
	unsigned __int128 part = (unsigned __int128)bits << (128 - n) >> at;

	return (struct fib_key6){key.high | (uint64_t)(part >> 64), key.low | (uint64_t)part};
}

// The number of leading bits that two keys share.
static inline unsigned rib_common_bits(struct fib_key6 a, struct fib_key6 b)
{
	uint64_t high = a.high ^ b.high, low = a.low ^ b.low;

	if (high)
		return __builtin_clzll(high);
	return low ? 64 + __builtin_clzll(low) : 128;
}

static inline uint16_t rib_tree(uint16_t vrf, uint8_t family)
{
	return RIB_FAMILIES * vrf + (family == 4 ? RIB4 : RIB6);
}

static inline bool rib_tree_is4(uint16_t tree)
{
	return tree % RIB_FAMILIES == RIB4;
}

static inline uint16_t rib_tree_vrf(uint16_t tree)
{
	return tree / RIB_FAMILIES;
}

// Converts a prefix in a VRF (rib_prefix_in) or in the main table (rib_prefix_of), and back.
struct rib_prefix rib_prefix_in(uint16_t vrf, const struct wire_prefix *prefix);
struct rib_prefix rib_prefix_of(const struct wire_prefix *prefix);
struct wire_prefix rib_prefix_to_wire(const struct rib_prefix *prefix);

// The node of exactly this prefix, 0: none.
uint32_t rib_find(const struct rib *rib, const struct rib_prefix *prefix);
// The same, created if necessary; 0: out of nodes. May create two.
uint32_t rib_insert(struct rib *rib, const struct rib_prefix *prefix);
// Removes the node of this prefix if it is empty, and a fork that is no longer needed.
void rib_prune(struct rib *rib, const struct rib_prefix *prefix);
struct rib_top rib_locate(const struct rib *rib, const struct rib_prefix *prefix);
// The node of the longest prefix with a route (built-in or not) that covers a host, 0: none;
// `exact` is the node of the host itself.
uint32_t rib_longest(const struct rib *rib, const struct rib_prefix *host, uint32_t *exact);
// The hop of this node's route, or the inherited one.
uint32_t rib_hop(const struct rib *rib, const struct rib_node *node, uint32_t inherited);
// Same, but a CONNECTED hop is resolved to the neighbour if the interface is in the tree's VRF.
uint32_t rib_hop_resolved(const struct rib *rib, const struct rib_node *node, uint32_t inherited);
// Computes the runs of the slots given by `span`, below a prefix whose result is `top`.
void rib_expand(const struct rib *rib, struct rib_top top, struct rib_span span,
	struct rib_runs *runs);
// The number of nodes in a subtree; counting stops at `limit`.
uint32_t rib_count(const struct rib *rib, uint32_t node, uint32_t limit);
// The first prefix with a route after `after` (NULL: the first of all), in order of address, then
// length; 0: none.
uint32_t rib_next(const struct rib *rib, uint16_t tree, const struct rib_prefix *after);
