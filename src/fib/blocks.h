// Allocates blocks of a few equal units (nodes, leaves, lines) from one array that never moves.
// Control thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BLOCKS_MAX_UNITS = 512 };

struct blocks {
	uint8_t *memory;
	uint32_t unit_bytes; // at least 4
	uint32_t kept;       // the first ones, owned by the caller
	uint32_t origin;     // blocks are between here and top
	uint32_t top;        // units handed out so far; beyond, nothing is in use
	uint32_t limit;
	uint32_t n_free;                     // free units between origin and top
	uint32_t free[BLOCKS_MAX_UNITS + 1]; // first free block of each size, 0: none
};

// Reserves address space for `limit` units; memory is allocated page by page as they are handed
// out. The first `kept` units (at least one, so that 0 means none) belong to the caller. 0 or
// -ENOMEM.
int blocks_open(struct blocks *blocks, uint32_t unit_bytes, uint32_t limit, uint32_t kept);
void blocks_close(struct blocks *blocks);
// Returns the first unit of a block of `n`, whose content is undefined; 0: the limit is reached.
uint32_t blocks_take(struct blocks *blocks, uint32_t n);
void blocks_give(struct blocks *blocks, uint32_t first, uint32_t n);
// Compaction: after begin, blocks are taken contiguously from an unused range, and the caller
// copies each block to a new one without freeing the old. After end (a grace period after the last
// use of the old blocks) their memory is returned to the system. False: there is no such range.
struct blocks_place {
	uint32_t first, end;
};
bool blocks_move_begin(struct blocks *blocks, struct blocks_place *old);
void blocks_move_end(struct blocks *blocks, const struct blocks_place *old);
// Requests huge pages for existing and future memory.
void blocks_use_huge_pages(struct blocks *blocks);

static inline void *blocks_at(const struct blocks *blocks, uint32_t unit)
{
	return blocks->memory + (size_t)unit * blocks->unit_bytes;
}

static inline size_t blocks_bytes(const struct blocks *blocks)
{
	return (size_t)(blocks->kept + blocks->top - blocks->origin) * blocks->unit_bytes;
}
