// Blocks of a few equal units out of one array that never moves: nodes, leaves, lines. Control
// thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BLOCKS_MAX_UNITS = 512 };

struct blocks {
	uint8_t *memory;
	uint32_t unit_bytes; // at least 4
	uint32_t kept;       // the first ones, the caller's own
	uint32_t origin;     // blocks lie between here and top
	uint32_t top;        // units handed out up to here; what lies beyond holds nothing
	uint32_t limit;
	uint32_t n_free;                     // units between origin and top that nobody holds
	uint32_t free[BLOCKS_MAX_UNITS + 1]; // first free block of each size, 0: none
};

// Reserves address space for `limit` units; memory is taken page by page as they are handed out.
// The first `kept` units (at least one, so that 0 means none) are the caller's own. 0 or -ENOMEM.
int blocks_open(struct blocks *blocks, uint32_t unit_bytes, uint32_t limit, uint32_t kept);
void blocks_close(struct blocks *blocks);
// The first unit of a block of `n`, its content undefined; 0: the limit is reached.
uint32_t blocks_take(struct blocks *blocks, uint32_t n);
void blocks_give(struct blocks *blocks, uint32_t first, uint32_t n);
// Moving all blocks together: after begin blocks are taken side by side from a place that holds
// none, and the caller copies each block to a new one without giving back the old; after end (no
// reader knows the old ones any more) their memory is the system's again. False: there is no such
// place.
struct blocks_place {
	uint32_t first, end;
};
bool blocks_move_begin(struct blocks *blocks, struct blocks_place *old);
void blocks_move_end(struct blocks *blocks, const struct blocks_place *old);
// Asks for huge pages, from now on and for what is there.
void blocks_use_huge_pages(struct blocks *blocks);

static inline void *blocks_at(const struct blocks *blocks, uint32_t unit)
{
	return blocks->memory + (size_t)unit * blocks->unit_bytes;
}

static inline size_t blocks_bytes(const struct blocks *blocks)
{
	return (size_t)(blocks->kept + blocks->top - blocks->origin) * blocks->unit_bytes;
}
