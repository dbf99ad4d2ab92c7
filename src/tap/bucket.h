// A token bucket: so many frames a second, a burst saved up. Pure: time is handed in.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { BUCKET_FRAME = 1000000000 }; // credit of one frame: rate times nanoseconds

struct bucket {
	uint64_t credit, at_ns;
};

// A full one.
void bucket_start(struct bucket *bucket, uint32_t burst, uint64_t now_ns);
// Adds what has come in since the last time, up to the burst. `rate` in frames/s, at most 10^7;
// time may stand still but not run backwards.
void bucket_fill(struct bucket *bucket, uint32_t rate, uint32_t burst, uint64_t now_ns);

// Takes one frame's credit, if there is one.
static inline bool bucket_take(struct bucket *bucket)
{
	if (bucket->credit < BUCKET_FRAME)
		return false;
	bucket->credit -= BUCKET_FRAME;
	return true;
}
