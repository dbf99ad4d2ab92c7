// The workers' side of the TAP interfaces: one ring per class towards Linux, one ring from it.
// Worker.
#pragma once

#include "base/bits.h"
#include "stats/stats.h"

#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdbool.h>
#include <stdint.h>

// Wakes the tap thread if it is asleep. After a wakeup the thread polls the rings for a while, so
// that no further wakeups are needed.
struct tap_wakeup {
	int fd;         // an eventfd
	bool is_asleep; // set by the tap thread, cleared by it and by the waker; atomic
} LINE_ALIGNED;

// A worker's rings. All are single producer, single consumer, between this worker and the tap
// thread. The tap thread may be preempted at any time, so it never uses a mempool (a worker
// could have to wait for it): the worker frees punted mbufs and lends the mbufs that frames are
// read into.
struct tap_worker {
	struct rte_ring *punt[N_CLASSES]; // mbuf->port is the index of the input
	                                  // port, mbuf->hash.usr the verdict
	struct rte_ring *inject;          // mbuf->port is the index of the output port
	struct rte_ring *used;            // mbufs of punted packets, to be freed by the worker
	struct rte_ring *empty;           // mbufs for frames from Linux
	struct rte_mempool *pool;         // pool of the lent mbufs; NULL: none
	struct tap_wakeup *wakeup;        // NULL: no wakeup needed
	struct port_wait *wait;           // wakes the worker for `inject`; NULL: it never sleeps
	unsigned n_owed;                  // mbufs still to be lent when the pool has some
	uint8_t class_of[N_VERDICTS];     // a class, CLASS_CONTENT or CLASS_NONE
	uint64_t redirect_cycles;         // minimum TSC cycles between two punted packets of class
	                          // redirect; up to redirect_burst packets of credit accumulate;
	                          // the excess is forwarded
	uint32_t redirect_burst; // both written by the control thread (relaxed)
} LINE_ALIGNED;

// Selects the class of a frame by its headers. `frame` may contain arbitrary bytes; the first `n`
// are contiguous. Pure.
enum punt_class tap_classify(const uint8_t *frame, unsigned n);

// Passes a packet with this verdict to Linux, exactly as received, and counts it. If the tap thread
// is asleep, wakes it with a system call, at most once in a few ms. False: the
// ring of its class is full (counted as punt_ring_full) or the verdict has no class; the packet
// then still belongs to the caller, who frees it. `port`: index of the input port.
bool tap_punt(struct tap_worker *worker, struct stats_worker *stat, struct rte_mbuf *mbuf,
	unsigned verdict_and_port);
enum { TAP_PORT_SHIFT = 16 }; // verdict_and_port: verdict | port << 16

// Returns frames sent by Linux, oldest first; the caller then owns them. Also supplies the tap
// thread with buffers. Each worker calls tap_take once per loop; it is cheap if there is nothing to
// do.
unsigned tap_exchange(struct tap_worker *worker, struct rte_mbuf *mbufs[], unsigned n);
static inline unsigned tap_take(struct tap_worker *worker, struct rte_mbuf *mbufs[], unsigned n)
{
	if (likely(rte_ring_empty(worker->inject) && rte_ring_empty(worker->used) &&
		    !worker->n_owed))
		return 0;
	return tap_exchange(worker, mbufs, n);
}

// True if no frame from Linux is waiting for the worker.
static inline bool tap_is_quiet(const struct tap_worker *worker)
{
	return rte_ring_empty(worker->inject);
}
