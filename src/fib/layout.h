// The exact layout of what workers read, beyond the nodes in fib_fast.h. Writer: publish4.c,
// publish6.c; readers: lookup*.c.
#pragma once

#include "fib/fib.h"
#include "fib/fib_fast.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

// IPv4: a leaf is a hop id below HOP_WIDE, or LEAF_TAIL | the number of a line among those of
// its node, for prefixes longer than /24 and for wide ids. With LEAF_FLAT, eight lines starting
// there are 256 hop ids. With LEAF_WIDE, lines have ids of 32 bits: up to seven runs, or sixteen
// flat lines.
enum { LEAF_TAIL = 0x8000, LEAF_FLAT = 0x4000, LEAF_WIDE = 0x2000, LEAF_LINE = 0x1fff };
enum { TAIL_RUNS = 14, TAIL_FLAT_LINES = 8, TAIL_WIDE_RUNS = 7, TAIL_WIDE_FLAT_LINES = 16 };

// Line number `id` has the wide hop `id` in all its slots, from when it is first used. A node that
// has only this hop leads there; no node owns these lines.
enum { TAIL_OWN = FIB_MAX_HOPS + 1 };

// Bit i of `bits` is set if the hop of the i-th address of a /24 differs from the one before it;
// `before` counts the bits set in previous words.
struct tail_runs {
	uint64_t bits[4];
	uint8_t before[4];
	union {
		uint16_t hop[TAIL_RUNS];
		uint32_t wide[TAIL_WIDE_RUNS];
	};
};

union tail_line {
	struct tail_runs runs;
	uint16_t flat[32];
	uint32_t wide_flat[16];
};
static_assert(sizeof(union tail_line) == 64, "one cache line");

// IPv4: pages of 256 nodes. Those of the main table are the first ones, in order, so that it needs
// no root; the next one is empty, for hop 0 everywhere; then come pages of one hop, which VRFs
// share, and pages of VRFs. The root of a VRF, by the first 11 bits, has the number of a page's
// first node.
enum {
	PAGE4_NODE_BITS = 8,
	PAGE4_NODES = 1 << PAGE4_NODE_BITS,
	ROOT4_BITS = 19 - PAGE4_NODE_BITS,
	ROOT4_SLOTS = 1 << ROOT4_BITS,
	PAGE4_EMPTY = ROOT4_SLOTS,
};

// IPv6: slots of the root of each VRF.
enum { ROOT6_BITS = 16 };

// Decodes a byte of a narrow node.
static inline uint16_t narrow_leaf(uint8_t byte)
{
	return byte ? byte + FIB_NARROW_AFTER : 0;
}

// The run of a slot: the number of bits set in bits 1 to `slot` of a run bitmap.
static inline unsigned node6_run(uint64_t runs, unsigned slot)
{
	return __builtin_popcountll(runs & ((2ull << slot) - 2));
}

static inline unsigned tail_run(const struct tail_runs *runs, unsigned slot)
{
	return runs->before[slot >> 6] +
	       __builtin_popcountll(runs->bits[slot >> 6] & ((2ull << (slot & 63)) - 1)) - 1;
}

// `line` is the first one of the leaf.
static inline uint32_t tail_hop(const union tail_line *line, uint32_t leaf, unsigned slot)
{
	if (!(leaf & (LEAF_FLAT | LEAF_WIDE)))
		return line->runs.hop[tail_run(&line->runs, slot)];
	if (!(leaf & LEAF_WIDE))
		return ((const uint16_t *)line)[slot];
	return leaf & LEAF_FLAT ? ((const uint32_t *)line)[slot]
	                        : line->runs.wide[tail_run(&line->runs, slot)];
}

// IPv6: an entry is a hop id, or what resolves the next 16 bits: a line, or a wide block of 1024
// nodes. Level n resolves bits 16 n to 16 n + 15; the root, 65,536 entries, is level 0.
enum {
	ENTRY_LINE = 1 << 30,
	ENTRY_WIDE = 1u << 31,
	ENTRY_INDEX = (1 << 30) - 1,
	WIDE_NODES = 1024
};
enum { LINE_RUNS = 14, LINE_WIDE_RUNS = 9 };
enum { LINE_SPLIT = 1, LINE_WIDE = 2 };

// Up to 14 runs of slots; run r ends with slot last[r]; unused ones end with slot 65,535. If bit r
// of `below` is set, the lookup continues in line `base` + (number of bits set below r): with the
// next 16 bits, or, with LINE_SPLIT, with the same ones.
// With LINE_WIDE: up to 9 runs with hop ids of 32 bits, and wide_below in place of `below`, which
// has all bits set: so a lookup need not ask what kind of line it is as long as it ends there.
struct line6 {
	union {
		struct {
			uint16_t last[LINE_RUNS];
			uint16_t hop[LINE_RUNS];
		};
		struct {
			uint16_t wide_last[LINE_WIDE_RUNS];
			uint16_t wide_below;
			uint32_t wide_hop[LINE_WIDE_RUNS];
		};
	};
	uint32_t base;
	uint16_t below;
	uint16_t flags; // LINE_SPLIT, LINE_WIDE
};
static_assert(sizeof(struct line6) == 64, "one cache line");

// The runs of a line that continue below.
static inline unsigned line_below(const struct line6 *line)
{
	return line->flags & LINE_WIDE ? line->wide_below : line->below;
}

// The line in which the lookup of a run continues, given line_below().
static inline uint32_t line_next(const struct line6 *line, unsigned below, unsigned run)
{
	return line->base + __builtin_popcount(below & ((1u << run) - 1));
}

// The destinations of a lookup, and where to write the hops.
struct burst6 {
	const struct fib_key6 *dst;
	uint32_t *hop;
	unsigned n;
	const uint16_t *vrf; // of each destination; NULL: all are in the VRF of the view
};

// Slot of a key at a level.
static inline unsigned key_slot(const struct fib_key6 *key, unsigned level)
{
	uint16_t slot;

	memcpy(&slot, (const uint8_t *)key + 2 * (level ^ 3), sizeof(slot));
	return slot;
}
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	"key_slot reads 16-bit pieces of 64-bit words");

// The root's entry for destination `i`.
static inline __attribute__((always_inline)) uint32_t root6_entry(const struct fib_view *view,
	const struct burst6 *burst, unsigned i)
{
	const uint32_t *root = view->root6;

	if (burst->vrf)
		root += (size_t)burst->vrf[i] << ROOT6_BITS;
	return __atomic_load_n(&root[key_slot(&burst->dst[i], 0)], __ATOMIC_ACQUIRE);
}
