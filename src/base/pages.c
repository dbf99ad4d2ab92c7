// Table memory from mmap. Control threads.
#include "base/pages.h"

#include "base/bits.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

static const size_t HUGE_PAGE_BYTES = 2u << 20;
static const size_t SMALL_PAGE_BYTES = 4096;

static size_t mapped_bytes(size_t bytes)
{
	return round_up(bytes, bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : SMALL_PAGE_BYTES);
}

// mmap aligns to 4 KiB only; transparent huge pages need 2 MiB alignment.
static void *map_aligned(size_t bytes)
{
	size_t padded = bytes + HUGE_PAGE_BYTES;
	uint8_t *raw = mmap(NULL, padded, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (raw == MAP_FAILED)
		return NULL;
	uint8_t *start = (uint8_t *)round_up((uintptr_t)raw, HUGE_PAGE_BYTES);
	if (start > raw)
		munmap(raw, start - raw);
	if (raw + padded > start + bytes)
		munmap(start + bytes, raw + padded - start - bytes);
	madvise(start, bytes, MADV_HUGEPAGE);
	return start;
}

void *pages_alloc(size_t bytes)
{
	bytes = mapped_bytes(bytes);
	if (bytes >= HUGE_PAGE_BYTES)
		return map_aligned(bytes);
	void *small = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return small == MAP_FAILED ? NULL : small;
}

void pages_keep_small(void *memory, size_t bytes)
{
	if (memory)
		madvise(memory, mapped_bytes(bytes), MADV_NOHUGEPAGE);
}

void pages_free(void *memory, size_t bytes)
{
	if (memory)
		munmap(memory, mapped_bytes(bytes));
}

size_t pages_free_some(void *memory, size_t bytes, size_t most)
{
	const size_t mapped = mapped_bytes(bytes);
	const size_t left = mapped > most ? round_up(mapped - most, HUGE_PAGE_BYTES) : 0;

	munmap((uint8_t *)memory + left, mapped - left);
	return left;
}

uint64_t pages_available(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];

	while (file && !kib && fgets(line, sizeof(line), file))
		sscanf(line, "MemAvailable: %llu", &kib);
	if (file)
		fclose(file);
	return kib ? (uint64_t)kib << 10 : UINT64_MAX;
}
