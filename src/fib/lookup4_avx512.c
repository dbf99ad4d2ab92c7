// IPv4 in bulk, eight nodes at a time. Lane.
#include "fib/lookup.h"

#include "fib/nodes_avx512.h"
#include "fib/tails.h"

enum { BURST = 64 };

static inline void pass_nodes(const struct fib_view *view, const uint32_t dst[], uint32_t leaf[],
	uint32_t tail[], unsigned n)
{
	for (unsigned i = 0; i < n; i += 8) {
		__m256i eight = _mm256_loadu_si256((const __m256i *)(dst + i));
		uint32_t number[8];
		_mm256_storeu_si256((__m256i *)number, _mm256_srli_epi32(eight, 14));
		struct nodes8 nodes =
			nodes_resolve8(view->node4, number, _mm256_srli_epi32(eight, 8));
		_mm256_storeu_si256((__m256i *)(leaf + i), nodes.leaf);
		_mm256_storeu_si256((__m256i *)(tail + i), nodes.tail);
	}
}

// Sixty-four loads of leaves in one loop keep the memory busy: prefetching nodes or leaves before
// gains nothing here.
static inline void lookup_burst(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
	unsigned n)
{
	uint32_t leaf[BURST], tail[BURST];

	pass_nodes(view, dst, leaf, tail, n);
	for (unsigned i = 0; i < n; i++)
		hop[i] = view->leaf4[leaf[i]];
	finish_tails(view, tail, dst, hop);
}

void lookup4_avx512(const struct fib_view *view, const uint32_t dst[], uint16_t hop[], unsigned n)
{
	uint32_t padded_dst[BURST] = {0};
	uint16_t padded_hop[BURST] = {0};

	if (likely_to(n == BURST)) {
		lookup_burst(view, dst, hop, BURST);
		return;
	}
	memcpy(padded_dst, dst, n * sizeof(*dst));
	lookup_burst(view, padded_dst, padded_hop, round_up(n, 8));
	memcpy(hop, padded_hop, n * sizeof(*hop));
}
