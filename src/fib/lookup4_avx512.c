// IPv4 in bulk, sixteen nodes at a time. Lane.
#include "fib/lookup.h"

#include "fib/tails.h"

#include <immintrin.h>

enum { BURST = TAILS_BURST, FETCHED_LEAVES = 6, FETCHED_TAILS = 2 };

// The pieces of sixteen nodes, one vector for each of their four words.
struct nodes16 {
	__m512i word[4];
};

static inline __m512i take4(const struct fib_node4 *nodes, const uint32_t number[])
{
	// Each node is one 16-byte load: a gather would tear it.
	__m512i four = _mm512_castsi128_si512(word16_load(&nodes[number[0]]));

	four = _mm512_inserti32x4(four, word16_load(&nodes[number[4]]), 1);
	four = _mm512_inserti32x4(four, word16_load(&nodes[number[8]]), 2);
	return _mm512_inserti32x4(four, word16_load(&nodes[number[12]]), 3);
}

static inline struct nodes16 take16(const struct fib_node4 *nodes, const uint32_t number[16])
{
	__m512i a = take4(nodes, number), b = take4(nodes, number + 1);
	__m512i c = take4(nodes, number + 2), d = take4(nodes, number + 3);
	__m512i ab = _mm512_unpacklo_epi32(a, b), cd = _mm512_unpacklo_epi32(c, d);
	__m512i ab_high = _mm512_unpackhi_epi32(a, b), cd_high = _mm512_unpackhi_epi32(c, d);

	return (struct nodes16){{_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd),
		_mm512_unpacklo_epi64(ab_high, cd_high), _mm512_unpackhi_epi64(ab_high, cd_high)}};
}

// Fetches what the next steps will read because nodes do not hold their leaves: these, and the
// first line of tails where there is one. With a full table three of sixteen are such; what is
// beyond the limits is fetched when it is read.
static inline void fetch_outside(const struct fib_view *view, __m512i leaf, __m512i tail,
	__mmask16 is_outside)
{
	const union tail_line *lines = view->tail4;
	uint32_t number[16], line[16];

	_mm512_storeu_si512(number, _mm512_maskz_compress_epi32(is_outside, leaf));
	for (unsigned i = 0; i < FETCHED_LEAVES; i++)
		rte_prefetch0(&view->leaf4[number[i]]);
	_mm512_storeu_si512(line,
		_mm512_maskz_compress_epi32(_mm512_mask_test_epi32_mask(is_outside, tail, tail),
			tail));
	for (unsigned i = 0; i < FETCHED_TAILS; i++)
		rte_prefetch0(&lines[line[i]]);
}

// Destinations i to i + 15.
static inline void pass16(const struct fib_view *view, const uint32_t dst[], struct leaves4 *found,
	unsigned i)
{
	const __m512i one = _mm512_set1_epi32(1), thirty_one = _mm512_set1_epi32(31);
	__m512i ip = _mm512_loadu_si512(dst + i);
	uint32_t number[16];

	_mm512_storeu_si512(number, _mm512_srli_epi32(ip, 13));
	struct nodes16 nodes = take16(view->node4, number);
	// A shift by (31 - slot) leaves the bits up to and with the slot.
	__m512i shift = _mm512_andnot_si512(_mm512_srli_epi32(ip, 8), thirty_one);
	__m512i run = _mm512_popcnt_epi32(_mm512_sllv_epi32(nodes.word[0], shift));
	__mmask16 is_second = _mm512_cmpgt_epu32_mask(run, one);
	__mmask16 is_third = _mm512_cmpgt_epu32_mask(run, _mm512_set1_epi32(3));
	__m512i two = _mm512_mask_mov_epi32(nodes.word[1], is_second, nodes.word[2]);
	two = _mm512_mask_mov_epi32(two, is_third, nodes.word[3]);
	__m512i leaf = _mm512_srlv_epi32(two, _mm512_slli_epi32(_mm512_and_si512(run, one), 4));
	__mmask16 is_outside = _mm512_test_epi32_mask(nodes.word[0], one);
	// Those outside count as no tails yet.
	_mm256_storeu_si256((__m256i *)(found->leaf + i),
		_mm512_maskz_cvtepi32_epi16(_knot_mask16(is_outside), leaf));
	_mm512_storeu_si512(found->number + i, _mm512_add_epi32(nodes.word[1], run));
	_mm512_storeu_si512(found->tail + i, nodes.word[3]);
	found->outside |= (uint64_t)is_outside << i;
	if (is_outside)
		fetch_outside(view, _mm512_add_epi32(nodes.word[1], run), nodes.word[3],
			is_outside);
}

static inline __attribute__((always_inline)) void pass_nodes(const struct fib_view *view,
	const uint32_t dst[], struct leaves4 *found, unsigned n)
{
	// Sixty-four loads in one go keep the memory busy: prefetching nodes before gains nothing
	// here.
	found->outside = 0;
	for (unsigned i = 0; i < n; i += 16)
		pass16(view, dst, found, i);
	for (uint64_t left = find_tails(found->leaf); left; left &= left - 1)
		rte_prefetch0(tail_of(view, found, __builtin_ctzll(left)));
}

static inline __attribute__((always_inline)) void pass_all(const struct fib_view *view,
	const uint32_t dst[], struct leaves4 *found, unsigned n)
{
	pass_nodes(view, dst, found, n);
	take_tails(view, dst, found, take_leaves(view, found));
}

// What one burst waits for comes while the nodes of the other are read.
static void pass_two(const struct fib_view *view, const uint32_t dst[], uint16_t hop[])
{
	struct leaves4 first, second;

	pass_nodes(view, dst, &first, BURST);
	pass_nodes(view, dst + BURST, &second, BURST);
	uint64_t late_first = take_leaves(view, &first);
	uint64_t late_second = take_leaves(view, &second);

	take_tails(view, dst, &first, late_first);
	memcpy(hop, first.leaf, sizeof(first.leaf));
	take_tails(view, dst + BURST, &second, late_second);
	memcpy(hop + BURST, second.leaf, sizeof(second.leaf));
}

static void pass_some(const struct fib_view *view, const uint32_t dst[], uint16_t hop[], unsigned n)
{
	struct leaves4 found;

	uint32_t padded_dst[BURST] = {0};

	memset(found.leaf, 0, sizeof(found.leaf));
	memcpy(padded_dst, dst, n * sizeof(*dst));
	pass_all(view, padded_dst, &found, round_up(n, 16));
	memcpy(hop, found.leaf, n * sizeof(*hop));
}

void lookup4_avx512(const struct fib_view *view, const uint32_t dst[], uint16_t hop[], unsigned n)
{
	struct leaves4 found;

	if (n == 2 * BURST) {
		pass_two(view, dst, hop);
		return;
	}
	for (; n >= BURST; n -= BURST, dst += BURST, hop += BURST) {
		pass_all(view, dst, &found, BURST);
		memcpy(hop, found.leaf, sizeof(found.leaf));
	}
	if (n)
		pass_some(view, dst, hop, n);
}
