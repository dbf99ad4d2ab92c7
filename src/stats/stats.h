// Counters: a single writer per worker, readable at any time. Reading never disturbs a worker; a
// reader sees a recent value of each counter, and final values once the worker has stopped.
#pragma once

#include "base/bits.h"
#include "stats/stalls.h"
#include "stats/verdict.h"

#include <stdint.h>

enum {
	STATS_MAX_WORKERS = 128,
	STATS_MAX_PORTS = 256,
	STATS_MAX_QUEUES = 256,
	STATS_MAX_STEPS = 32,
	STATS_MAX_HOPS = 1 << 20,
	STATS_MAX_TUNNELS = 1 << 16, // by interface
	STATS_FEW_HOPS = 1 << 15,    // counters of the others may be in huge pages
	STATS_GAPS = 16              // lengths of long gaps; 20 us << 15 is more than half a second
};

#define STATS_FIELD(name, text) uint64_t name;
#define STATS_LIST(name, n, text) uint64_t name[n];
struct stats_port {
	SCHEMA_PORT_COUNTERS(STATS_FIELD)
};

struct stats_queue {
	SCHEMA_QUEUE_COUNTERS(STATS_FIELD)
};

// Packets into and out of a tunnel, and the bytes of these packets without what the tunnel adds.
struct stats_tunnel {
	uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
};

// The counters of a worker, on separate cache lines. Written only by that worker.
struct stats_worker {
	uint64_t verdict[N_VERDICTS];
	SCHEMA_WORKER_COUNTERS(STATS_FIELD)
	uint64_t step_cycles[STATS_MAX_STEPS]; // in the timed bursts, by step (datapath.h)
	struct stalls stalls;                  // iterations longer than their frames explain
	uint64_t handed[N_VERDICTS];           // packets passed to Linux, by verdict
	SCHEMA_WORKER_LISTS(STATS_LIST)
	struct stats_queue queue[STATS_MAX_QUEUES]; // in the order in which the worker polls them
	struct stats_port port[STATS_MAX_PORTS];
	uint64_t hop[STATS_MAX_HOPS]; // packets, by next hop id
	struct stats_tunnel tunnel[STATS_MAX_TUNNELS];
} LINE_ALIGNED;

struct stats_class {
	SCHEMA_CLASS_COUNTERS(STATS_FIELD)
};

// The outcome of packets passed to Linux. Written only by the tap thread.
struct stats_tap {
	struct stats_class class[N_CLASSES];
	uint64_t punted_by_port[STATS_MAX_PORTS]; // frames accepted by the port's TAP interface
} LINE_ALIGNED;
#undef STATS_LIST
#undef STATS_FIELD

// Writer side: a plain add without tearing (relaxed). Worker.
static inline void stats_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

// The same; what was written before it is seen by whoever has read it with stats_read_first.
// Worker.
static inline void stats_add_first(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELEASE);
}

// For values that are not sums, such as maxima and the latest value. Worker.
static inline void stats_set(uint64_t *counter, uint64_t value)
{
	__atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

// Reader side (relaxed). Any thread.
static inline uint64_t stats_read(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

// As stats_read; what is read after it is at least as new. Any thread.
static inline uint64_t stats_read_first(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

// The packet account, all 0 at first: received + injected + copied = sent + punted + dropped +
// held, once nothing is in flight. Held: in queues of subscribers.
struct stats_account {
	uint64_t received, injected, copied, sent, punted, dropped, held;
	uint64_t verdict[N_VERDICTS];
};
// Adds what the workers counted. Packets that come while the counters are read are counted as
// received at most: the difference between the two sides is never less than what is in flight.
// Any thread.
void stats_add_workers(struct stats_account *account, struct stats_worker *const workers[],
	unsigned n);
// Adds the outcome of packets passed to Linux: punted, and dropped because of the limit or refused.
// Before stats_add_workers, for the same reason. Any thread.
void stats_add_tap(struct stats_account *account, const struct stats_tap *tap);
// Sums the counters of one port over `n` workers. Any thread.
void stats_sum_port(struct stats_port *sum, struct stats_worker *const workers[], unsigned n,
	unsigned port);
