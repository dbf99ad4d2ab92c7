// Counts values in buckets that are wider the larger the values: 128 for each power of two, so that
// a bucket's middle is off by less than 0.4 %. One writer (a worker), readable while running.
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
	uint64_t n, sum, min, max; // min is UINT64_MAX while n is 0
	uint64_t bucket[HISTOGRAM_BUCKETS];
} LINE_ALIGNED;

void histogram_clear(struct histogram *h);

// Which bucket holds `value`; values of 2^40 and more fall into the last. Worker.
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

// Adds n values, at most HISTOGRAM_BURST, which are below 2^52; faster than one by one. Worker.
enum { HISTOGRAM_BURST = 64 };
void histogram_add_burst(struct histogram *h, const uint64_t values[], unsigned n);

// The values that a bucket holds: from *low to *high, both included.
void histogram_bounds(unsigned index, uint64_t *low, uint64_t *high);
// The value below or at which `share` (0 to 1) of all lie; exact at 0 and 1, else the bucket's
// middle. 0 when empty. Any thread.
uint64_t histogram_percentile(const struct histogram *h, double share);
