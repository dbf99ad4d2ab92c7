// Token bucket: a rate in frames per second and a burst. Pure: the caller passes the time.
#pragma once

#include "base/bits.h"

#include <stdbool.h>
#include <stdint.h>

enum { BUCKET_FRAME = 1000000000 }; // credit of one frame: rate times nanoseconds
// 1,000 s: 64 bits hold the credit that the highest rate accrues in this time.
static const uint64_t BUCKET_MAX_NS = 1000000000000;

struct bucket {
	uint64_t credit, at_ns;
};

// Starts with a full bucket.
static inline void bucket_start(struct bucket *bucket, uint32_t burst, uint64_t now_ns)
{
	bucket->credit = (uint64_t)burst * BUCKET_FRAME;
	bucket->at_ns = now_ns;
}

// Adds the credit accrued since the last call, up to the burst. `rate` in frames/s, at most 10^7;
// the time must not go backwards.
static inline void bucket_fill(struct bucket *bucket, uint32_t rate, uint32_t burst,
	uint64_t now_ns)
{
	uint64_t elapsed_ns = MIN_OF(now_ns - bucket->at_ns, BUCKET_MAX_NS);

	bucket->at_ns = now_ns;
	bucket->credit = MIN_OF(bucket->credit + elapsed_ns * rate, (uint64_t)burst * BUCKET_FRAME);
	if (!rate)
		bucket->credit = 0;
}

// Takes the credit of one frame, if available.
static inline bool bucket_take(struct bucket *bucket)
{
	if (bucket->credit < BUCKET_FRAME)
		return false;
	bucket->credit -= BUCKET_FRAME;
	return true;
}
