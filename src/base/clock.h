// Monotonic time, and what the cycles of a core's counter mean in it. Control threads.
#pragma once

#include <stdint.h>
#include <time.h>

// Nanoseconds of CLOCK_MONOTONIC.
static inline uint64_t clock_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// One moment by two clocks: the TSC, and CLOCK_MONOTONIC.
struct clock_pair {
	uint64_t cycles, ns;
};

// Now; `cycles` reads the TSC. Of some tries the one in which least time passed between the clocks.
struct clock_pair clock_pair_take(uint64_t (*cycles)(void));
// Nanoseconds of CLOCK_MONOTONIC at `cycles`, on the straight line through two pairs: the TSC's
// frequency is known more exactly from them than from anybody's table.
uint64_t clock_ns_at(const struct clock_pair *first, const struct clock_pair *last,
	uint64_t cycles);
