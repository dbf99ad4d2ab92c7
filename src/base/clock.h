// Time, and conversion of TSC cycles to it. Control threads.
#pragma once

#include <stdint.h>
#include <time.h>

// CLOCK_MONOTONIC in nanoseconds.
static inline uint64_t clock_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// CLOCK_REALTIME in milliseconds since 1970.
static inline uint64_t clock_wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

// The same moment on two clocks: the TSC and CLOCK_MONOTONIC.
struct clock_pair {
	uint64_t cycles, ns;
};

// Reads both clocks now; `cycles` reads the TSC. Makes several attempts and returns the one in
// which the readings were closest together.
struct clock_pair clock_pair_take(uint64_t (*cycles)(void));
// Converts `cycles` to CLOCK_MONOTONIC in nanoseconds, by linear interpolation between two pairs:
// this is more exact than a nominal TSC frequency.
uint64_t clock_ns_at(const struct clock_pair *first, const struct clock_pair *last,
	uint64_t cycles);
