// What lanes need of twins: rings, one per class towards Linux, one from it. Lane.
#pragma once

#include "base/bits.h"
#include "stat/stat.h"

#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdbool.h>
#include <stdint.h>

// Wakes the twins' thread where it sleeps: once, then it looks at the rings by itself for a while.
struct tap_bell {
	int fd;         // an eventfd
	bool is_asleep; // set by that thread, cleared by it and by who rings; atomic
} LINE_ALIGNED;

// A lane's side of the twins. Rings are single producer, single consumer: this lane and the twins'
// thread. That thread may be taken off its core at any moment, so it never touches a mempool (a
// lane would wait for it there): the lane frees what was punted and lends what frames are read
// into.
struct tap_lane {
	struct rte_ring *punt[N_CLASSES]; // mbuf->port is the index of the port it came in on
	struct rte_ring *inject;          // mbuf->port is the index of the port it leaves on
	struct rte_ring *used;            // mbufs of punted packets, back to be freed
	struct rte_ring *empty;           // mbufs for frames from Linux
	struct rte_mempool *pool;         // where they come from; NULL: none
	struct tap_bell *bell;            // NULL: nobody sleeps
	struct port_wait *wait;       // how the lane is woken for `inject`; NULL: it never sleeps
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
// Where the twins' thread sleeps, this is the one system call of a lane: at most one in some ms.
// False: its class has no room (counted as punt_ring_full) or the verdict has no class: the packet
// still belongs to the caller, who frees it. `port`: the index it came in on.
bool tap_punt(struct tap_lane *lane, struct stat_lane *stat, struct rte_mbuf *mbuf,
	unsigned verdict_and_port);
enum { TAP_PORT_SHIFT = 16 }; // verdict_and_port: verdict | port << 16

// Frames that Linux sent, oldest first; they belong to the caller. Cheap when there are none. Each
// lane calls it once per loop: it also gives the twins' thread its buffers.
unsigned tap_exchange(struct tap_lane *lane, struct rte_mbuf *mbufs[], unsigned n);
static inline unsigned tap_take(struct tap_lane *lane, struct rte_mbuf *mbufs[], unsigned n)
{
	if (likely_to(rte_ring_empty(lane->inject) && rte_ring_empty(lane->used) && !lane->n_owed))
		return 0;
	return tap_exchange(lane, mbufs, n);
}

// Whether Linux sent nothing that waits for the lane.
static inline bool tap_is_quiet(const struct tap_lane *lane)
{
	return rte_ring_empty(lane->inject);
}
