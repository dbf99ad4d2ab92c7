// The copies that workers read, rebuilt from the rib piece by piece; each piece is swapped in by
// one atomic store and the old one is freed after a grace period. Control thread.
#pragma once

#include "fib/blocks.h"
#include "fib/layout.h"
#include "fib/rib.h"

struct fib;

enum { PUBLISH4_PAIRS = 1 << 18, TAIL_MAX_LINES = 256, IDENTITY_LEAVES = 1 << 15 };

struct publish4 {
	struct blocks node; // all of them, at fixed places, made in pairs
	struct blocks leaf; // units of two leaves
	struct blocks tail;
	uint64_t touched[PUBLISH4_PAIRS / 64];
	uint32_t first_touched, end_touched; // words
	union tail_line scratch[2][TAIL_MAX_LINES];
	struct rib_runs runs, tail_runs;
};

// Which of 65,536 slots are to be done again: because of what lies in them, or (whole) also because
// what they inherit changed.
struct slots6 {
	uint64_t touched[1024], whole[1024];
};

struct publish6 {
	struct blocks root; // 65,536 entries for each tree of the rib but the main IPv4 one; what
	                    // lies below is shared
	struct blocks wide;
	struct blocks leaf; // leaf number `id` leads to hop `id`
	struct blocks line;
	struct slots6 slots[8]; // by level, all clear between updates
};

// A prefix whose answer changed; sorted by (tree, key, len).
struct edit {
	struct fib_key6 key;
	uint32_t index; // of the change it came from
	uint16_t hop;   // to come, 0: the route goes
	uint8_t len;
	uint8_t tree;
};
static_assert(sizeof(struct edit) == 24, "millions of them are sorted");

int publish4_open(struct publish4 *publish);
void publish4_close(struct publish4 *publish);
// Republishes all nodes that the prefixes touch, each once. From the rib as it now is.
void publish4_edits(struct fib *fib, const struct edit *edits, size_t n);
// Moves what workers read together, in order of address; waits for workers. False: there is no
// room.
bool publish4_tidy(struct fib *fib);

int publish6_open(struct publish6 *publish);
void publish6_close(struct publish6 *publish);
// Of either family: further VRFs keep IPv4 in this form too. All edits are of one tree.
void publish6_edits(struct fib *fib, const struct edit *edits, size_t n);
// The root of a tree; zeros while the tree is empty.
uint32_t *publish6_root(const struct publish6 *publish, uint8_t tree);
// A tree that has become empty takes no memory any more.
void publish6_close_tree(struct publish6 *publish, uint8_t tree);

// Makes a hop id usable in nodes of one run.
void publish_hop(struct fib *fib, uint16_t id);
