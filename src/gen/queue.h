// The door between workers and the control thread for ARP and ND: short frames, copied into rings
// of one writer and one reader, those heard one way and those to be sent the other. A worker looks
// at no more of a frame than what kind it is.
#pragma once

#include "port/port_fast.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POST_SLOTS = 256, POST_MAX_BYTES = 189, POST_AT_ONCE = 16 };

struct post_frame {
	uint16_t n; // bytes without FCS
	bool is_reply;
	uint8_t bytes[POST_MAX_BYTES];
};

struct post_ring {
	uint64_t n_put LINE_ALIGNED;   // atomic, the writer's
	uint64_t n_taken LINE_ALIGNED; // atomic, the reader's
	struct post_frame slot[POST_SLOTS] LINE_ALIGNED;
};

// Of one port that has addresses. Made by the control thread.
struct post {
	struct post_ring heard;   // the port's worker writes
	struct post_ring to_send; // the control thread writes
	uint64_t n_heard;         // by the worker, stats_read: frames that are ARP or ND
	uint64_t n_overflow;      // of them: the ring was full, or the frame longer than a slot
	uint64_t n_answered;      // by the worker: answers that the device took
	uint64_t n_unsent;        // by the worker: frames that it did not take, or no buffer
	struct port_out out;
	struct rte_mempool *pool;
} LINE_ALIGNED;

struct run;

// False when it is full or the frame too long. Writer.
bool post_put(struct post_ring *ring, const uint8_t *frame, size_t n, bool is_reply);
// False when it is empty. Reader.
bool post_take(struct post_ring *ring, struct post_frame *out);

// Takes a frame that is no stream's if it is ARP or ND. Worker.
bool post_hear(struct post *post, const uint8_t *frame, size_t n);
// Sends what waits at the ports of this worker, a few of each. True when nothing is left. Worker.
bool post_deliver(struct run *run, const struct port_worker *io);
