// Queues between workers and the control thread for ARP and ND: short frames, copied into
// single-producer, single-consumer rings, one for each direction. A worker only checks the type of
// a frame.
#pragma once

#include "port/port_fast.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POST_SLOTS = 256, POST_MAX_BYTES = 189, POST_AT_ONCE = 16 };

struct post_frame {
	uint16_t n; // length without FCS
	bool is_reply;
	uint8_t bytes[POST_MAX_BYTES];
};

struct post_ring {
	uint64_t n_put LINE_ALIGNED;   // atomic, written by the producer
	uint64_t n_taken LINE_ALIGNED; // atomic, written by the consumer
	struct post_frame slot[POST_SLOTS] LINE_ALIGNED;
};

// Queues of one port with addresses. Created by the control thread.
struct post {
	struct post_ring received; // producer: the port's worker
	struct post_ring to_send;  // producer: the control thread
	uint64_t n_received;       // written by the worker, stats_read: ARP and ND frames
	uint64_t n_overflow;       // of which lost: ring full, or frame longer than a slot
	uint64_t n_answered;       // written by the worker: replies accepted by the device
	uint64_t n_unsent;         // written by the worker: frames refused by the device, or no
	                           // buffer
	struct port_out out;
	struct rte_mempool *pool;
} LINE_ALIGNED;

struct run;

// Returns false if the ring is full or the frame too long. Producer.
bool post_put(struct post_ring *ring, const uint8_t *frame, size_t n, bool is_reply);
// Returns false if it is empty. Consumer.
bool post_take(struct post_ring *ring, struct post_frame *out);

// Queues a frame that belongs to no stream if it is ARP or ND. Worker.
bool post_received(struct post *post, const uint8_t *frame, size_t n);
// Sends frames waiting for the ports of this worker, a few per port. Returns true if none are left.
// Worker.
bool post_deliver(struct run *run, const struct port_worker *io);
