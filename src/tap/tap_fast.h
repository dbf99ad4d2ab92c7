// What workers need of TAP interfaces: rings, one per class towards Linux, one from it. Worker.
#pragma once

#include "base/bits.h"
#include "stats/stats.h"

#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdbool.h>
#include <stdint.h>

// Wakes the TAP interfaces' thread where it sleeps: once, then it looks at the rings by itself for
// a while.
struct tap_bell {
	int fd;         // an eventfd
	bool is_asleep; // set by that thread, cleared by it and by who rings; atomic
} LINE_ALIGNED;

// A worker's side of the TAP interfaces. Rings are single producer, single consumer: this worker
// and the TAP interfaces' thread. That thread may be taken off its core at any moment, so it never
// touches a mempool (a worker would wait for it there): the worker frees what was punted and lends
// what frames are read into.
struct tap_worker {
	struct rte_ring *punt[N_CLASSES]; // mbuf->port is the index of the port it came in on
	struct rte_ring *inject;          // mbuf->port is the index of the port it leaves on
	struct rte_ring *used;            // mbufs of punted packets, back to be freed
	struct rte_ring *empty;           // mbufs for frames from Linux
	struct rte_mempool *pool;         // where they come from; NULL: none
	struct tap_bell *bell;            // NULL: nobody sleeps
	struct port_wait *wait;       // how the worker is woken for `inject`; NULL: it never sleeps
	unsigned n_owed;              // so many of them the pool could not give yet
	uint8_t class_of[N_VERDICTS]; // a class, CLASS_CONTENT or CLASS_NONE
	uint64_t redirect_cycles; // a packet of class redirect is punted at most once in so many
	                          // TSC cycles, saved up for at most redirect_burst packets; else
	                          // forwarded
	uint32_t redirect_burst;  // both written by the control thread (relaxed)
} LINE_ALIGNED;

// The class that a frame's headers call for; `frame` may be any bytes, `n` of them lie in one
// piece. Pure.
enum punt_class tap_classify(const uint8_t *frame, unsigned n);

// Hands a packet of this verdict over for Linux, byte for byte as it was received; counts it.
// Where the TAP interfaces' thread sleeps, this is the one system call of a worker: at most one in
// some ms. False: its class has no room (counted as punt_ring_full) or the verdict has no class:
// the packet still belongs to the caller, who frees it. `port`: the index it came in on.
bool tap_punt(struct tap_worker *worker, struct stats_worker *stat, struct rte_mbuf *mbuf,
	unsigned verdict_and_port);
enum { TAP_PORT_SHIFT = 16 }; // verdict_and_port: verdict | port << 16

// Frames that Linux sent, oldest first; they belong to the caller. Cheap when there are none. Each
// worker calls it once per loop: it also gives the TAP interfaces' thread its buffers.
unsigned tap_exchange(struct tap_worker *worker, struct rte_mbuf *mbufs[], unsigned n);
static inline unsigned tap_take(struct tap_worker *worker, struct rte_mbuf *mbufs[], unsigned n)
{
	if (likely(rte_ring_empty(worker->inject) && rte_ring_empty(worker->used) &&
		    !worker->n_owed))
		return 0;
	return tap_exchange(worker, mbufs, n);
}

// Whether Linux sent nothing that waits for the worker.
static inline bool tap_is_quiet(const struct tap_worker *worker)
{
	return rte_ring_empty(worker->inject);
}
