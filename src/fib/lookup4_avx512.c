// IPv4 in bulk, eight nodes at a time. Lane.
#include "fib/lookup.h"

#include "fib/nodes_avx512.h"
#include "fib/tails.h"

enum { BURST = TAILS_BURST };

// n is a multiple of eight.
static inline void pass_nodes(const struct fib_view *view, const uint32_t dst[],
	struct leaves4 *found, unsigned n)
{
	uint32_t leaf[BURST];

	for (unsigned i = 0; i < n; i += 8) {
		__m256i eight = _mm256_loadu_si256((const __m256i *)(dst + i));
		uint32_t number[8];
		_mm256_storeu_si256((__m256i *)number, _mm256_srli_epi32(eight, 14));
		struct nodes8 nodes =
			nodes_resolve8(view->node4, number, _mm256_srli_epi32(eight, 8));
		_mm256_storeu_si256((__m256i *)(leaf + i), nodes.leaf);
		_mm256_storeu_si256((__m256i *)(found->tail + i), nodes.tail);
	}
	// Sixty-four loads in one loop keep the memory busy: prefetching nodes or leaves before
	// gains nothing here.
	for (unsigned i = 0; i < n; i++)
		found->leaf[i] = view->leaf4[leaf[i]];
}

void lookup4_avx512(const struct fib_view *view, const uint32_t dst[], uint16_t hop[], unsigned n)
{
	uint32_t padded_dst[BURST] = {0};
	struct leaves4 found;

	if (likely_to(n == BURST)) {
		pass_nodes(view, dst, &found, BURST);
		finish_tails(view, dst, &found);
		memcpy(hop, found.leaf, sizeof(found.leaf));
		return;
	}
	memset(found.leaf, 0, sizeof(found.leaf));
	memcpy(padded_dst, dst, n * sizeof(*dst));
	pass_nodes(view, padded_dst, &found, round_up(n, 8));
	finish_tails(view, padded_dst, &found);
	memcpy(hop, found.leaf, n * sizeof(*hop));
}
