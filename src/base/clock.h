// Monotonic time. Control threads.
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
