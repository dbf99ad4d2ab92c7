// The copies that workers read, rebuilt from the rib piece by piece; each piece is swapped in by
// one atomic store, and the old one is freed after a grace period. Control thread.
#pragma once

#include "fib/blocks.h"
#include "fib/hops.h"
#include "fib/layout.h"
#include "fib/rib.h"

struct fib;

enum {
	PUBLISH4_PAIRS = 1 << 18,
	PAGE4_PAIRS = PAGE4_NODES / 2,
	TAIL_MAX_LINES = 32 * TAIL_WIDE_FLAT_LINES,
	IDENTITY_LEAVES = HOP_WIDE
};

struct publish4 {
	struct blocks page; // of 256 nodes; those of the main table are the first ones: layout.h
	uint32_t *root;     // ROOT4_SLOTS for each VRF
	uint64_t (*own)[ROOT4_SLOTS / 64]; // by VRF: slots with a page of their own
	uint32_t *shared;                  // by hop: the page that has only this hop, 0: none
	struct blocks leaf;                // units of two leaves
	struct blocks tail;
	uint32_t n_shared_tails; // lines of hops that are in use: TAIL_OWN
	uint64_t touched[PUBLISH4_PAIRS / 64];
	uint32_t first_touched, end_touched; // words
	union tail_line scratch[2][TAIL_MAX_LINES];
	struct rib_runs runs, tail_runs;
};

// The slots to rebuild: because of what they contain, or (whole) also because what they inherit has
// changed.
struct slots6 {
	uint64_t touched[1024], whole[1024];
};

struct publish6 {
	struct blocks root; // 65,536 entries for each VRF; the levels below are shared
	struct blocks wide;
	struct blocks leaf; // leaf number `id` has hop `id`, if that is below IDENTITY_LEAVES
	struct blocks line;
	struct slots6 slots[8]; // by level, all clear between updates
};

// A changed prefix; sorted by (tree, key, len).
struct edit {
	struct fib_key6 key;
	union {
		uint32_t index; // of the change it comes from, until it is checked
		uint32_t hop;   // then the new hop, 0: the route is deleted
	};
	uint16_t tree;
	uint8_t len;
};
static_assert(sizeof(struct edit) == 24, "millions of them are sorted");

// sort.c: sorts edits by prefix; stable. `other` has space for `n` edits, too; returns the array
// that holds the result.
struct edit *sort_edits(struct edit *edits, struct edit *other, size_t n);

int publish4_open(struct publish4 *publish);
void publish4_close(struct publish4 *publish);
// Rebuilds all nodes that the prefixes touch, each once, from the current rib. All edits are of one
// tree.
void publish4_edits(struct fib *fib, const struct edit *edits, size_t n);
// The root of a VRF. It leads to the empty page everywhere after publish4_open_vrf, which is to be
// called before the VRF is opened for the first time.
uint32_t *publish4_root(const struct publish4 *publish, uint16_t vrf);
void publish4_open_vrf(struct publish4 *publish, uint16_t vrf);
// Frees the page of a hop that nothing leads to any more, and that no worker reads.
void publish4_forget_hop(struct publish4 *publish, uint32_t hop);
// Memory of tail lines.
size_t publish4_tail_bytes(const struct publish4 *publish);
// Compacts what workers read, in order of address; waits for workers. False: there is not enough
// space.
bool publish4_tidy(struct fib *fib);

int publish6_open(struct publish6 *publish);
void publish6_close(struct publish6 *publish);
// All edits are of one tree.
void publish6_edits(struct fib *fib, const struct edit *edits, size_t n);
// The root of a VRF; zeros if its tree is empty.
uint32_t *publish6_root(const struct publish6 *publish, uint16_t vrf);
// Releases the memory of a root whose tree has become empty.
void publish6_close_root(struct publish6 *publish, uint16_t vrf);

// Makes a hop id usable in IPv6 nodes with a single run.
void publish_hop(struct fib *fib, uint32_t id);
