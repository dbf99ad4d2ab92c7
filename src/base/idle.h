// Decides when a worker without work sleeps, and for how long. Worker.
#pragma once

#include "base/bits.h"

#include <stdbool.h>
#include <stdint.h>

// A worker polls for IDLE_SPIN_US before its first sleep. If each of its queues can wake it, a
// sleep lasts IDLE_MOST_US; otherwise 1/IDLE_SHARE of the time since it last had work, at most
// IDLE_BLIND_US, during which 2,048 descriptors suffice for 20 Mpps. Linux wakes the worker up to
// IDLE_LATE_US late; any further delay is a stall.
enum {
	IDLE_SPIN_US = 50,
	IDLE_SHARE = 16,
	IDLE_LEAST_US = 10,
	IDLE_BLIND_US = 100,
	IDLE_MOST_US = 2000,
	IDLE_LATE_US = 100,
};

// In TSC cycles; spin == 0: never sleeps. Owner: the worker.
struct idle {
	uint64_t spin, least, blind, most, late;
	uint64_t last_busy; // TSC when it last had work
	uint64_t hz;
};

// `hz` is the TSC frequency, `now` the TSC. Sets the calling thread's timer slack to the minimum.
void idle_start(struct idle *idle, bool may_sleep, uint64_t hz, uint64_t now);
// How long to sleep from `now` on, in cycles; 0: keep polling. `is_woken`: each of its queues can
// wake it. Pure.
uint64_t idle_length(const struct idle *idle, uint64_t now, bool is_woken);
// Converts cycles to nanoseconds. Pure.
uint64_t idle_ns(const struct idle *idle, uint64_t cycles);

// The part of the sleep time `slept` that does not count as a stall: at most `asked`, the requested
// time, and the usual wakeup latency. In cycles. Pure.
uint64_t idle_intended(const struct idle *idle, uint64_t asked, uint64_t slept);

// Cheap check whether to call idle_length. `now` is not before `last_busy`.
static inline bool idle_is_due(const struct idle *idle, uint64_t now)
{
	return idle->spin && now - idle->last_busy >= idle->spin;
}
