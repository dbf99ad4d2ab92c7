// Frames by due time. Sender and sink count by the same time, which is carried in the stamp, so the
// difference between their buckets is the loss among exactly these frames. Single writer, a worker;
// readable while it runs.
#pragma once

#include "base/bits.h"

#include <stdint.h>

enum { TIMELINE_BUCKETS = 4096, TIMELINE_MOST_SHIFT = 39 };

// Bucket i counts frames due in [first + i, first + i + 1) * 2^shift cycles.
struct timeline {
	uint64_t shift, first, start; // start: TSC of the first frame
	uint64_t n_folds;             // odd while the worker merges pairs of buckets
	uint64_t count[TIMELINE_BUCKETS];
};

// Initialises an empty timeline for frames due from `start` on for `cycles` (0: unknown; starts
// with the finest resolution and folds as needed). Call before any worker adds to it. Control
// thread.
void timeline_begin(struct timeline *t, uint64_t start, uint64_t cycles);

// Adds frames by their due times, of which the last 40 bits are sufficient: they are within minutes
// of `now`. Times in order are mostly in the same bucket; others are added one by one. A time
// outside the run is counted at its nearer end. Worker.
static inline void timeline_add(struct timeline *t, const uint64_t due[], unsigned n, uint64_t now);
void timeline_add_each(struct timeline *t, const uint64_t due[], unsigned n, uint64_t now);

// A consistent copy from some point between call and return. Any thread.
void timeline_read(const struct timeline *t, struct timeline *out);
// Reduces the finer of two timelines with the same start to the resolution of the coarser one.
void timeline_match(struct timeline *a, struct timeline *b);
// Also adds `other` to *sum. Neither may have a concurrent writer.
void timeline_merge(struct timeline *sum, struct timeline *other);
// Number of buckets up to the last non-empty one.
unsigned timeline_length(const struct timeline *t);

static inline void timeline_add(struct timeline *t, const uint64_t due[], unsigned n, uint64_t now)
{
	uint64_t whole = now + ((int64_t)((due[0] - now) << 24) >> 24);
	uint64_t place = (whole >> t->shift) - t->first;

	if (unlikely((due[0] ^ due[n - 1]) >> t->shift || place >= TIMELINE_BUCKETS)) {
		timeline_add_each(t, due, n, now);
		return;
	}
	__atomic_store_n(&t->count[place], t->count[place] + n, __ATOMIC_RELAXED);
}
