// Sums the words of the Internet checksum, eight or more bytes at a time. Little-endian only.
// Worker; stateless.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

// 64 bytes at once; compiled to whatever the CPU supports.
typedef uint64_t sum_block __attribute__((vector_size(64)));

enum { SUM_BLOCKS_FROM = 128 }; // minimum length for which blocks outweigh their final sum

static inline uint64_t sum_load(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}

// Sums are modulo 2^64 - 1, a multiple of 2^16 - 1.
static inline uint64_t sum_add(uint64_t sum, uint64_t words)
{
	sum += words;
	return sum + (sum < words);
}

static inline uint64_t sum_blocks(uint64_t sum, const uint8_t *at, unsigned n_blocks)
{
	sum_block total = {0}, block;

	for (; n_blocks; n_blocks--, at += sizeof(block)) {
		memcpy(&block, at, sizeof(block));
		total += (block & 0xffffffff) + (block >> 32);
	}
	for (int i = 0; i < 8; i++)
		sum = sum_add(sum, total[i]);
	return sum;
}

// Adds `n` bytes; n is at least 8, or 8 bytes before `at` are readable. Only the last piece of a
// sum may have an odd length.
static inline uint64_t sum_bytes(uint64_t sum, const uint8_t *at, unsigned n)
{
	if (n >= SUM_BLOCKS_FROM) {
		unsigned n_blocks = n / sizeof(sum_block);
		sum = sum_blocks(sum, at, n_blocks);
		at += n_blocks * sizeof(sum_block);
		n -= n_blocks * sizeof(sum_block);
	}
	for (; n >= 8; n -= 8, at += 8)
		sum = sum_add(sum, sum_load(at));
	if (n) // the end of the last eight bytes; the bytes before it have been added
		sum = sum_add(sum, sum_load(at + n - 8) >> (64 - 8 * n));
	return sum;
}

// Whether the sum of a packet including its checksum is correct. Not for a sum of zeros only.
static inline bool sum_is_right(uint64_t sum)
{
	return sum % 0xffff == 0;
}
