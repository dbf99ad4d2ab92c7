// Counts values in buckets whose width grows with the value: 128 per power of two, so that the
// middle of a bucket is off by less than 0.4 %. Single writer (a worker), readable while it runs.
#pragma once

#include "base/bits.h"
#include "stats/stats.h"

#include <stdint.h>

enum {
	HISTOGRAM_FINE_BITS = 7,
	HISTOGRAM_MAX_BITS = 40,
	HISTOGRAM_BUCKETS = (HISTOGRAM_MAX_BITS - HISTOGRAM_FINE_BITS + 1) << HISTOGRAM_FINE_BITS,
};

struct histogram {
	uint64_t n, sum, min, max; // min is UINT64_MAX if n is 0
	uint64_t bucket[HISTOGRAM_BUCKETS];
} LINE_ALIGNED;

void histogram_clear(struct histogram *h);

// The bucket of `value`; values of 2^40 and more are in the last one. Worker.
static inline unsigned histogram_index(uint64_t value)
{
	if (value < 1u << HISTOGRAM_FINE_BITS)
		return value;
	if (unlikely(value >> HISTOGRAM_MAX_BITS))
		return HISTOGRAM_BUCKETS - 1;
	unsigned power = 63 - __builtin_clzll(value) - HISTOGRAM_FINE_BITS;

	return (power << HISTOGRAM_FINE_BITS) + (value >> power);
}

static inline void histogram_add(struct histogram *h, uint64_t value)
{
	stats_add(&h->bucket[histogram_index(value)], 1);
	stats_add(&h->n, 1);
	stats_add(&h->sum, value);
	if (unlikely(value < h->min))
		stats_set(&h->min, value);
	if (unlikely(value > h->max))
		stats_set(&h->max, value);
}

// Adds n values below 2^52, at most HISTOGRAM_BURST; faster than adding them one by one. Worker.
enum { HISTOGRAM_BURST = 64 };
void histogram_add_burst(struct histogram *h, const uint64_t values[], unsigned n);

// The range of values of a bucket: from *low to *high, both inclusive.
void histogram_bounds(unsigned index, uint64_t *low, uint64_t *high);
// The smallest value such that `share` (0 to 1) of all values are less or equal; exact for 0 and 1,
// otherwise the middle of the bucket. 0 if empty. Any thread.
uint64_t histogram_percentile(const struct histogram *h, double share);
