// Token bucket: a rate in frames per second and a burst. Pure: the caller passes the time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { BUCKET_FRAME = 1000000000 }; // credit of one frame: rate times nanoseconds

struct bucket {
	uint64_t credit, at_ns;
};

// Starts with a full bucket.
void bucket_start(struct bucket *bucket, uint32_t burst, uint64_t now_ns);
// Adds the credit accrued since the last call, up to the burst. `rate` in frames/s, at most 10^7;
// the time must not go backwards.
void bucket_fill(struct bucket *bucket, uint32_t rate, uint32_t burst, uint64_t now_ns);

// Takes the credit of one frame, if available.
static inline bool bucket_take(struct bucket *bucket)
{
	if (bucket->credit < BUCKET_FRAME)
		return false;
	bucket->credit -= BUCKET_FRAME;
	return true;
}
