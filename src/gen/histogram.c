// Updates histograms burst by burst (worker), clears and reads them (control thread).
#include "gen/histogram.h"

#include <string.h>

void histogram_clear(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

// Same as histogram_index, using the floating-point format: the exponent is the power of two, the
// top bits of the fraction are the bucket within it. This form can be vectorised.
static inline uint64_t index_of(uint64_t value)
{
	enum { DOUBLE_FINE_SHIFT = 52 - HISTOGRAM_FINE_BITS, DOUBLE_BIAS = 1023 };
	const uint64_t first = (uint64_t)(DOUBLE_BIAS + HISTOGRAM_FINE_BITS - 1)
	                       << HISTOGRAM_FINE_BITS;
	const double two_to_52 = 0x1p52;
	uint64_t bits = value | 0x4330000000000000ull; // 2^52 + value
	double number;

	memcpy(&number, &bits, sizeof(number));
	number -= two_to_52;
	memcpy(&bits, &number, sizeof(bits));
	bits = (bits >> DOUBLE_FINE_SHIFT) - first;
	bits = value < 1u << HISTOGRAM_FINE_BITS ? value : bits;
	return bits < HISTOGRAM_BUCKETS ? bits : HISTOGRAM_BUCKETS - 1;
}

void histogram_add_burst(struct histogram *h, const uint64_t values[], unsigned n)
{
	uint64_t index[HISTOGRAM_BURST], sum = 0, min = h->min, max = h->max;
	uint64_t first = n ? index_of(values[0]) : 0, different = 0;

	for (unsigned i = 0; i < n; i++) {
		index[i] = index_of(values[i]);
		different |= index[i] ^ first;
		sum += values[i];
		min = MIN_OF(min, values[i]);
		max = MAX_OF(max, values[i]);
	}
	// Frames that were sent together often have the same latency.
	if (!different)
		stats_add(&h->bucket[first], n);
	else
		for (unsigned i = 0; i < n; i++)
			stats_add(&h->bucket[index[i]], 1);
	stats_add(&h->n, n);
	stats_add(&h->sum, sum);
	stats_set(&h->min, min);
	stats_set(&h->max, max);
}

void histogram_bounds(unsigned index, uint64_t *low, uint64_t *high)
{
	unsigned power = index >> HISTOGRAM_FINE_BITS;

	// Values below 256 have one bucket each; above, a bucket holds 2^power values.
	power = power > 1 ? power - 1 : 0;
	*low = (uint64_t)(index - (power << HISTOGRAM_FINE_BITS)) << power;
	*high = *low + (1ull << power) - 1;
}

// The rank, from 1, of a quantile among n sorted values: the first one that reaches the share.
static uint64_t rank_of(double share, uint64_t n)
{
	double exact = share * (double)n;
	uint64_t rank = (uint64_t)exact;

	if ((double)rank < exact)
		rank++;
	return MAX_OF(MIN_OF(rank, n), 1);
}

uint64_t histogram_percentile(const struct histogram *h, double share)
{
	uint64_t n = 0, seen = 0, low, high;
	uint64_t min = stats_read(&h->min), max = stats_read(&h->max);

	// The sum of the buckets: while a worker is writing, it is consistent with the loop below.
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		n += stats_read(&h->bucket[i]);
	if (!n)
		return 0;
	if (share <= 0)
		return min;
	if (share >= 1)
		return max;
	uint64_t rank = rank_of(share, n);
	unsigned index = 0;
	for (; index < HISTOGRAM_BUCKETS - 1; index++) {
		seen += stats_read(&h->bucket[index]);
		if (seen >= rank)
			break;
	}
	histogram_bounds(index, &low, &high);
	return MAX_OF(MIN_OF(low + (high - low) / 2, max), min);
}
