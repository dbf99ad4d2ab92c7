// Private to capture: the ring between a producer and the capture thread. It holds records of
// different lengths, each contiguous.
#pragma once

#include "capture/capture_fast.h"

// A frame. The end of the ring that is too short for the next record is padding, of which only
// `size` counts.
struct capture_record {
	uint32_t size;     // with header and padding to a multiple of 8; | CAPTURE_PADDING
	uint32_t length;   // of the frame, without FCS
	uint32_t captured; // bytes that follow
	struct capture_event event;
	uint64_t cycles; // TSC
	uint8_t bytes[];
};
enum { CAPTURE_PADDING = 1 };

// Allocates the ring, of a power of two of bytes. -ENOMEM: nothing is allocated. Control thread.
int capture_ring_make(struct capture_producer *producer, uint64_t bytes);
// Writes to up to `n` bytes from `at` on, of the memory of a ring that no producer uses yet, so
// that a worker has no page faults. Capture thread.
void capture_ring_touch(struct capture_producer *producer, uint64_t at, uint64_t n);
void capture_ring_free(struct capture_producer *producer);

// The oldest record; NULL: none. / Frees its space. Capture thread.
const struct capture_record *capture_ring_peek(struct capture_producer *producer);
void capture_ring_pop(struct capture_producer *producer, const struct capture_record *record);
