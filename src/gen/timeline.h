// Frames by the time at which each was due. Sender and sink count by the same time, which the stamp
// carries, so what lies between their buckets was lost of just these frames. One writer, a worker;
// readable while it runs.
#pragma once

#include "base/bits.h"

#include <stdint.h>

enum { TIMELINE_BUCKETS = 4096, TIMELINE_MOST_SHIFT = 39 };

// Bucket i holds frames that were due in [first + i, first + i + 1) * 2^shift cycles.
struct timeline {
	uint64_t shift, first, start; // start: TSC of the first frame
	uint64_t n_folds;             // odd while the worker makes two buckets one
	uint64_t count[TIMELINE_BUCKETS];
};

// An empty one for frames due from `start` on for `cycles` (0: not known, then it starts fine and
// folds as it goes). Before any worker adds to it. Control thread.
void timeline_begin(struct timeline *t, uint64_t start, uint64_t cycles);

// Adds frames by the time at which each was due, of which the last 40 bits are enough: it lies
// within minutes of `now`. Times in order are mostly of one bucket; others go one by one. What was
// due at no time of the run is added at its nearer end. Worker.
static inline void timeline_add(struct timeline *t, const uint64_t due[], unsigned n, uint64_t now);
void timeline_add_each(struct timeline *t, const uint64_t due[], unsigned n, uint64_t now);

// As it is at some moment between call and return. Any thread.
void timeline_read(const struct timeline *t, struct timeline *out);
// Makes the finer of two of the same start as coarse as the other. / Also adds `other` to *sum.
// Neither has a worker that writes.
void timeline_match(struct timeline *a, struct timeline *b);
void timeline_merge(struct timeline *sum, struct timeline *other);
// Buckets up to the last that is not empty.
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
