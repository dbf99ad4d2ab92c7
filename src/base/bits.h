// Small helpers used by every module. No thread, no state.
#pragma once

#include <stdint.h>
#include <string.h>

enum { CACHE_LINE_BYTES = 64 };

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))
#define LINE_ALIGNED __attribute__((aligned(64)))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

static inline uint64_t round_up(uint64_t value, uint64_t multiple)
{
	return (value + multiple - 1) / multiple * multiple;
}

// Loads from any address, in memory byte order.
static inline uint16_t load16(const uint8_t *from)
{
	uint16_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static inline uint32_t load32(const uint8_t *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static inline uint64_t load64(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}
