// Counters: one writer per lane, read by anybody while running. Reading never disturbs a lane; a
// reader sees each counter at some recent value, and all of them settled once the lane has parked.
#pragma once

#include "base/bits.h"
#include "stat/pauses.h"
#include "stat/verdict.h"

#include <stdint.h>

enum { STAT_MAX_LANES = 128, STAT_MAX_PORTS = 255, STAT_MAX_QUEUES = 128, STAT_MAX_HOPS = 32768 };

#define STAT_FIELD(name, text) uint64_t name;
struct stat_port {
	SCHEMA_PORT_COUNTERS(STAT_FIELD)
};

struct stat_queue {
	SCHEMA_QUEUE_COUNTERS(STAT_FIELD)
};

// Cycles by step, in the bursts that were timed.
struct stat_step {
	SCHEMA_STEP_COUNTERS(STAT_FIELD)
};

// A lane's own counters, on cache lines of its own. Only that lane writes.
struct stat_lane {
	uint64_t verdict[N_VERDICTS];
	SCHEMA_LANE_COUNTERS(STAT_FIELD)
	struct stat_step step;
	struct pauses pauses;                     // rounds longer than their frames explain
	uint64_t handed[N_VERDICTS];              // packets handed over for Linux, by why
	uint64_t ring_full[N_CLASSES];            // those of verdict punt_ring_full, by class
	struct stat_queue queue[STAT_MAX_QUEUES]; // in the order in which the lane polls them
	struct stat_port port[STAT_MAX_PORTS];
	uint64_t hop[STAT_MAX_HOPS]; // packets, by next hop id
} LINE_ALIGNED;

struct stat_class {
	SCHEMA_CLASS_COUNTERS(STAT_FIELD)
};

// What became of packets handed over for Linux. Only the thread of the twins writes.
struct stat_tap {
	struct stat_class class[N_CLASSES];
	uint64_t punted_by_port[STAT_MAX_PORTS]; // frames that the port's twin took
} LINE_ALIGNED;
#undef STAT_FIELD

// The writer's way: a plain add that readers never see torn (relaxed). Lane.
static inline void stat_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

// For what is not a sum: the longest, the latest. Lane.
static inline void stat_set(uint64_t *counter, uint64_t value)
{
	__atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

// The reader's way (relaxed). Any thread.
static inline uint64_t stat_read(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

// The account over `n` lanes: received + injected = sent + punted + dropped, once nothing is in
// flight.
struct stat_account {
	uint64_t received, injected, sent, punted, dropped;
	uint64_t verdict[N_VERDICTS];
};
void stat_sum(struct stat_account *account, struct stat_lane *const lanes[], unsigned n);
// Adds what became of packets for Linux: punted, and its drops over the limit or refused. Any
// thread.
void stat_add_tap(struct stat_account *account, const struct stat_tap *tap);
// Adds up one port over `n` lanes. Any thread.
void stat_sum_port(struct stat_port *sum, struct stat_lane *const lanes[], unsigned n,
	unsigned port);
