// Free lists by size in units; a free block contains the number of the next one. Control thread.
#include "fib/blocks.h"

#include "base/bits.h"
#include "base/pages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 // Linux 6.1
#endif

int blocks_open(struct blocks *blocks, uint32_t unit_bytes, uint32_t limit, uint32_t kept)
{
	size_t bytes = (size_t)limit * unit_bytes;

	memset(blocks, 0, sizeof(*blocks));
	blocks->memory = pages_alloc(bytes);
	if (!blocks->memory)
		return -ENOMEM;
	pages_keep_small(blocks->memory, bytes); // keep small tables small
	blocks->unit_bytes = unit_bytes;
	blocks->limit = limit;
	blocks->kept = blocks->origin = blocks->top = kept;
	return 0;
}

void blocks_close(struct blocks *blocks)
{
	pages_free(blocks->memory, (size_t)blocks->limit * blocks->unit_bytes);
	blocks->memory = NULL;
}

static uint32_t pop(struct blocks *blocks, uint32_t n)
{
	uint32_t first = blocks->free[n];

	memcpy(&blocks->free[n], blocks_at(blocks, first), sizeof(first));
	blocks->n_free -= n;
	return first;
}

// Splitting larger blocks pays only if many units are free; otherwise it causes fragmentation.
static uint32_t split_larger(struct blocks *blocks, uint32_t n)
{
	if (blocks->n_free < (blocks->top - blocks->origin) / 4)
		return 0;
	for (uint32_t size = n + 1; size <= BLOCKS_MAX_UNITS; size++) {
		if (!blocks->free[size])
			continue;
		uint32_t first = pop(blocks, size);
		blocks_give(blocks, first + n, size - n);
		return first;
	}
	return 0;
}

uint32_t blocks_take(struct blocks *blocks, uint32_t n)
{
	if (blocks->free[n])
		return pop(blocks, n);
	uint32_t first = split_larger(blocks, n);
	if (first)
		return first;
	if (n > blocks->limit - blocks->top)
		return 0;
	first = blocks->top;
	blocks->top += n;
	return first;
}

void blocks_give(struct blocks *blocks, uint32_t first, uint32_t n)
{
	memcpy(blocks_at(blocks, first), &blocks->free[n], sizeof(first));
	blocks->free[n] = first;
	blocks->n_free += n;
}

bool blocks_move_begin(struct blocks *blocks, struct blocks_place *old)
{
	uint32_t n_held = blocks->top - blocks->origin - blocks->n_free;
	bool fits_below = blocks->origin - blocks->kept >= n_held;

	if (!fits_below && n_held > blocks->limit - blocks->top)
		return false;
	*old = (struct blocks_place){blocks->origin, blocks->top};
	blocks->origin = blocks->top = fits_below ? blocks->kept : blocks->top;
	blocks->n_free = 0;
	memset(blocks->free, 0, sizeof(blocks->free));
	return true;
}

void blocks_move_end(struct blocks *blocks, const struct blocks_place *old)
{
	const size_t page = 4096;
	size_t first = round_up((size_t)old->first * blocks->unit_bytes, page);
	size_t end = (size_t)old->end * blocks->unit_bytes / page * page;

	if (first < end)
		madvise(blocks->memory + first, end - first, MADV_DONTNEED);
}

void blocks_use_huge_pages(struct blocks *blocks)
{
	static const size_t HUGE_PAGE_BYTES = 2u << 20;
	size_t reserved = (size_t)blocks->limit * blocks->unit_bytes;

	if (reserved < HUGE_PAGE_BYTES)
		return;
	madvise(blocks->memory, reserved, MADV_HUGEPAGE);
	madvise(blocks->memory, round_up((size_t)blocks->top * blocks->unit_bytes, HUGE_PAGE_BYTES),
		MADV_COLLAPSE);
}
