// What workers need of ports: bursts in, bursts out. Worker.
#pragma once

#include "base/bits.h"
#include "stats/stats.h"
#include "wire/addr.h"

#include <rte_ethdev.h>
#include <rte_spinlock.h>
#include <stdbool.h>
#include <stdint.h>

enum { PORT_WORKER_QUEUES = 128 };

// A receive queue that a worker polls.
struct port_queue {
	uint16_t device; // DPDK port id
	uint16_t queue;
	uint16_t port; // index in settings and counters
};

// How a worker sends on a port. `shared` is NULL unless the device has fewer transmit queues than
// there are workers.
struct port_out {
	uint16_t device;
	uint16_t queue;
	rte_spinlock_t *shared;
};

// One core and the queues that it polls. Read-only while the worker runs.
struct port_worker {
	unsigned id;
	int core, numa;
	uint16_t burst;
	bool may_sleep;         // while no frame comes
	struct port_wait *wait; // what for; NULL: time alone
	unsigned n_queues;
	struct port_queue queues[PORT_WORKER_QUEUES];
	struct port_out out[STATS_MAX_PORTS]; // by port index
} LINE_ALIGNED;

// How a worker sleeps: where port_wait_begin finds that no frame has come since the worker polled
// last, port_wait_for returns when one has or the time is over, then comes port_wait_end. Where it
// is false the worker polls on. NULL: time alone ends it. Worker. / Whether each of the worker's
// queues wakes it, or time has to. Worker and control thread.
bool port_wait_begin(struct port_wait *wait);
void port_wait_for(struct port_wait *wait, uint64_t ns);
void port_wait_end(struct port_wait *wait);
bool port_wait_is_woken(const struct port_wait *wait);
// Ends the sleep of a worker for which something was put down before; NULL: none. One system call
// where it sleeps. Any thread.
void port_wake(struct port_wait *wait);

// What the walk asks of a port. `pass_martians`, `peer` with `has_peer` (one aligned word) and `up`
// may change while running (relaxed).
struct port_state {
	uint8_t mac[6];
	bool up; // link, or a device that has none
	bool pass_martians;
	uint8_t peer[6];
	bool has_peer;
	uint8_t unused; // the word of peer ends here
	bool is_xconnect, mac_update;
	uint8_t xconnect;      // port index
	bool tx_multi_segment; // the device takes frames in several mbufs
} LINE_ALIGNED;

// Frames received on a queue, up to n.
static inline uint16_t port_rx(const struct port_queue *queue, struct rte_mbuf *mbuf[], uint16_t n)
{
	return rte_eth_rx_burst(queue->device, queue->queue, mbuf, n);
}

// Hands frames to the device; those from the returned index on were refused and still belong to the
// caller.
static inline uint16_t port_tx(const struct port_out *out, struct rte_mbuf *mbuf[], uint16_t n)
{
	if (likely(!out->shared))
		return rte_eth_tx_burst(out->device, out->queue, mbuf, n);
	rte_spinlock_lock(out->shared);
	uint16_t sent = rte_eth_tx_burst(out->device, out->queue, mbuf, n);
	rte_spinlock_unlock(out->shared);
	return sent;
}

// Lets the device give back the buffers of frames that it has sent. Drivers do that when they are
// handed frames, be they none; memif's frees a whole ring at once where the last ones were long
// ago.
static inline void port_tx_reclaim(const struct port_out *out)
{
	struct rte_mbuf *none = NULL;

	port_tx(out, &none, 0);
}
