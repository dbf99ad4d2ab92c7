// IPv4 in bulk, eight nodes at a time. Lane.
#include "fib/lookup.h"

#include "fib/nodes_avx512.h"
#include "fib/tails.h"

enum { BURST = TAILS_BURST };

// How many, and whether the table is too large for a core's own caches.
struct pass {
	unsigned n;
	bool is_far;
};

// n is a multiple of eight; `is_far` a constant.
static inline __attribute__((always_inline)) void pass_nodes(const struct fib_view *view,
	const uint32_t dst[], struct leaves4 *found, struct pass pass)
{
	const union tail_line *const tails = view->tail4;
	uint32_t leaf[BURST];
	uint64_t with_tail = 0;

	for (unsigned i = 0; i < pass.n; i += 8) {
		__m256i eight = _mm256_loadu_si256((const __m256i *)(dst + i));
		uint32_t number[8];
		_mm256_storeu_si256((__m256i *)number, _mm256_srli_epi32(eight, 14));
		struct nodes8 nodes =
			nodes_resolve8(view->node4, number, _mm256_srli_epi32(eight, 8));
		_mm256_storeu_si256((__m256i *)(leaf + i), nodes.leaf);
		_mm256_storeu_si256((__m256i *)(found->tail + i), nodes.tail);
		with_tail |= (uint64_t)_mm256_test_epi32_mask(nodes.tail, nodes.tail) << i;
	}
	// Sixty-four loads in one loop keep the memory busy: prefetching nodes or leaves before
	// gains nothing here. Most nodes with tails have a single line, which is fetched meanwhile.
	for (unsigned i = 0; i < pass.n; i++)
		found->leaf[i] = view->leaf4[leaf[i]];
	for (uint64_t left = pass.is_far ? with_tail : 0; left; left &= left - 1)
		rte_prefetch0(&tails[found->tail[__builtin_ctzll(left)]]);
}

static inline __attribute__((always_inline)) void lookup(const struct fib_view *view,
	const uint32_t dst[], uint16_t hop[], struct pass pass)
{
	struct leaves4 found;

	if (likely_to(pass.n == BURST)) {
		pass.n = BURST;
		pass_nodes(view, dst, &found, pass);
		finish_tails(view, dst, &found);
		memcpy(hop, found.leaf, sizeof(found.leaf));
		return;
	}
	uint32_t padded_dst[BURST] = {0};
	unsigned n = pass.n;

	memset(found.leaf, 0, sizeof(found.leaf));
	memcpy(padded_dst, dst, n * sizeof(*dst));
	pass.n = round_up(n, 8);
	pass_nodes(view, padded_dst, &found, pass);
	finish_tails(view, padded_dst, &found);
	memcpy(hop, found.leaf, n * sizeof(*hop));
}

void lookup4_near_avx512(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
	unsigned n)
{
	lookup(view, dst, hop, (struct pass){n, false});
}

void lookup4_far_avx512(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
	unsigned n)
{
	lookup(view, dst, hop, (struct pass){n, true});
}
