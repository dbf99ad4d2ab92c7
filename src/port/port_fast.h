// Ports as workers use them: receive and transmit bursts. Worker.
#pragma once

#include "base/bits.h"
#include "stats/stats.h"
#include "wire/addr.h"
#include "wire/headers.h"

#include <rte_ethdev.h>
#include <rte_spinlock.h>
#include <stdbool.h>
#include <stdint.h>

enum { PORT_WORKER_QUEUES = 256, PORT_NONE = UINT16_MAX };
// Workers to which one worker hands packets, and packets on their way from one to the other.
enum { PORT_MAX_HANDS = 64, PORT_HAND_SLOTS = 2048 };

// A place for a receive queue that a worker polls. While it is closed, because its device has
// vanished or its port was removed, the worker does not poll it; once a grace period has passed,
// the control thread may change everything else, even give the place to a queue of another port.
struct port_queue {
	uint16_t device; // DPDK port id
	uint16_t queue;
	uint16_t port;            // index in settings and counters; PORT_NONE: free
	bool is_closed;           // atomic, acquire; partner: workers_open
	struct rte_mempool *pool; // that the queue receives into; NULL: not checked
};

struct port_tx_lock {
	rte_spinlock_t lock;
} LINE_ALIGNED;

// How a worker sends on a port, which must be up. `shared` has a lock for each transmit queue; NULL
// unless workers may share them, because there are fewer, or because a peer may disable some.
struct port_out {
	uint16_t device;
	uint16_t queue; // atomic, relaxed: with `shared`, or one worker, it may change at any time
	struct port_tx_lock *shared;
};

// One core and the queues that it polls. Read-only while the worker runs, except for the places of
// queues and what belongs to a port that is down.
struct port_worker {
	unsigned id;
	int core, numa;
	uint16_t burst;
	bool may_sleep;         // while no frames arrive
	struct port_wait *wait; // its wakeup sources; NULL: time only
	unsigned n_queues;      // places in use; atomic, acquire; partner: workers_add
	struct port_queue queues[PORT_WORKER_QUEUES];
	struct port_out out[STATS_MAX_PORTS]; // by port index
	unsigned n_hands_to;                  // 0: it processes itself what it receives
	uint8_t hands_to[PORT_MAX_HANDS];     // ids of workers
} LINE_ALIGNED;

// Sleeping: port_wait_begin checks that no frame has arrived since the worker's last poll; if it
// returns false, the worker keeps polling. port_wait_for then returns when a frame arrives or the
// time is over, and port_wait_end must follow. NULL: only time ends the sleep. The worker may be
// offline for RCU during port_wait_for only: the other two use devices. Worker.
bool port_wait_begin(struct port_wait *wait);
void port_wait_for(struct port_wait *wait, uint64_t ns);
void port_wait_end(struct port_wait *wait);
// Whether each of the worker's open queues can wake it, so that the sleep need not be short. Worker
// and control thread.
bool port_wait_is_woken(const struct port_wait *wait);
// Wakes a worker after something was queued for it; NULL: does nothing. One system call if the
// worker sleeps. Any thread.
void port_wake(struct port_wait *wait);

// State of a port that the datapath reads. `pass_martians`, `rpf6`, `peer` with `has_peer` (one
// aligned word) and `up` may change while workers run (relaxed; `up`: acquire), and so may
// `is_bridged` and `mtu`.
struct port_state {
	uint8_t mac[6];
	bool up; // link is up, or the device reports none; otherwise workers transmit nothing
	bool pass_martians;
	uint8_t peer[6];
	bool has_peer;
	uint8_t unused; // end of the word that contains peer
	uint8_t rpf6;   // of received IPv6 packets: 0 off, 1 strict, 2 loose
	bool is_xconnect, mac_update;
	uint8_t xconnect;      // port index
	bool is_bridged;       // atomic, relaxed
	bool tx_multi_segment; // the device can send frames in several mbufs
	uint16_t cut_bytes;    // the device cuts longer frames to this length; 0: it cuts none. No
	                       // frame within the port's MTU has it
	uint16_t mtu;          // atomic, relaxed
	bool has_offloads;     // its peer may leave checksums and segmentation to us
	uint8_t takes;         // enum port_takes: what it finishes itself; atomic, relaxed
} LINE_ALIGNED;

// What the peer of a port wants to be left to it.
enum port_takes { PORT_TAKES_CHECKSUM = 1, PORT_TAKES_TSO4 = 2, PORT_TAKES_TSO6 = 4 };

// Whether a frame has the length to which the device cuts longer ones. The slot does not include
// the tag that Linux takes out and the driver puts back.
static inline bool port_fills_slot(const struct port_state *state, const uint8_t *frame,
	uint32_t bytes)
{
	if (!state->cut_bytes || bytes < state->cut_bytes)
		return false;
	uint16_t tpid = frame[12] << 8 | frame[13];
	bool is_tagged = tpid == WIRE_ETHERTYPE_VLAN || tpid == WIRE_ETHERTYPE_QINQ;

	return bytes == state->cut_bytes + (is_tagged ? WIRE_VLAN_BYTES : 0u);
}

static inline unsigned port_n_queues(const struct port_worker *worker)
{
	return __atomic_load_n(&worker->n_queues, __ATOMIC_ACQUIRE);
}

static inline bool port_is_closed(const struct port_queue *queue)
{
	return __atomic_load_n(&queue->is_closed, __ATOMIC_ACQUIRE);
}

static inline bool port_is_bridged(const struct port_state *state)
{
	return __atomic_load_n(&state->is_bridged, __ATOMIC_RELAXED);
}

static inline uint16_t port_mtu(const struct port_state *state)
{
	return __atomic_load_n(&state->mtu, __ATOMIC_RELAXED);
}

static inline uint8_t port_takes(const struct port_state *state)
{
	return __atomic_load_n(&state->takes, __ATOMIC_RELAXED);
}

static inline bool port_is_up(const struct port_state *state)
{
	return __atomic_load_n(&state->up, __ATOMIC_ACQUIRE);
}

// Receives up to n frames from a queue that is open.
static inline uint16_t port_rx(const struct port_queue *queue, struct rte_mbuf *mbuf[], uint16_t n)
{
	return rte_eth_rx_burst(queue->device, queue->queue, mbuf, n);
}

// Passes frames to the device of a port that is up; those from the returned index on were refused
// and still belong to the caller.
static inline uint16_t port_tx(const struct port_out *out, struct rte_mbuf *mbuf[], uint16_t n)
{
	uint16_t queue = __atomic_load_n(&out->queue, __ATOMIC_RELAXED);

	if (likely(!out->shared))
		return rte_eth_tx_burst(out->device, queue, mbuf, n);
	rte_spinlock_lock(&out->shared[queue].lock);
	uint16_t sent = rte_eth_tx_burst(out->device, queue, mbuf, n);
	rte_spinlock_unlock(&out->shared[queue].lock);
	return sent;
}

// Lets the device free the buffers of sent frames. Drivers do that when they transmit, even zero
// frames; memif's frees a whole ring at once if the last transmit was long ago.
static inline void port_tx_reclaim(const struct port_out *out)
{
	struct rte_mbuf *none = NULL;

	port_tx(out, &none, 0);
}
