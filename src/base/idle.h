// When a worker that has nothing to do gives its core away, and for how long. Worker.
#pragma once

#include "base/bits.h"

#include <stdbool.h>
#include <stdint.h>

// A worker polls for IDLE_SPIN_US before its first sleep. Where each of its queues wakes it, a
// sleep lasts IDLE_MOST_US; else 1/IDLE_SHARE of the time since it last had work, at most
// IDLE_BLIND_US, in which 2,048 descriptors hold what comes at 20 Mpps. Linux wakes it up to
// IDLE_LATE_US later; what is beyond that is a pause.
enum {
	IDLE_SPIN_US = 50,
	IDLE_SHARE = 16,
	IDLE_LEAST_US = 10,
	IDLE_BLIND_US = 100,
	IDLE_MOST_US = 2000,
	IDLE_LATE_US = 100,
};

// All in TSC cycles; spin == 0: never sleeps. One owner: the worker.
struct idle {
	uint64_t spin, least, blind, most, late;
	uint64_t worked; // when it last had work
	uint64_t hz;
};

// `hz` of the TSC, `now` by it. Sleeps of the calling thread end on time from now on.
void idle_start(struct idle *idle, bool may_sleep, uint64_t hz, uint64_t now);
// How long to sleep after `now`, in cycles; 0: poll on. `is_woken`: by each of its queues. Pure.
uint64_t idle_length(const struct idle *idle, uint64_t now, bool is_woken);
// So many cycles in nanoseconds. Pure.
uint64_t idle_ns(const struct idle *idle, uint64_t cycles);

// How much of `slept` is no pause, where it was to be `asked`. Pure.
uint64_t idle_meant(const struct idle *idle, uint64_t asked, uint64_t slept);

// Whether idle_length is worth asking: two compares. `now` is not before `worked`.
static inline bool idle_is_due(const struct idle *idle, uint64_t now)
{
	return idle->spin && now - idle->worked >= idle->spin;
}
