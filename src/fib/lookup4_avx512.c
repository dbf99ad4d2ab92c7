// IPv4 in bulk, sixteen nodes at a time. Lane.
#include "fib/lookup.h"

#include "fib/tails.h"

#include <immintrin.h>

enum { BURST = FIB_BURST4, FETCHED_TAILS = 2 };

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

// Which of sixteen leaves stand outside their nodes; their numbers, and the nodes' first tail
// lines.
struct outside16 {
	__mmask16 which;
	__m512i number, tail;
};

// Appends those of leaves i to i + 15 that stand outside their nodes, and fetches the first line of
// tails where there is one; what is beyond the limit is fetched when the leaf is read.
static inline void list_outside(const struct fib_view *view, struct fib_found4 *found, unsigned i,
	const struct outside16 *of)
{
	const __m512i count =
		_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	const union tail_line *lines = view->tail4;
	__mmask16 has_tail = _mm512_mask_test_epi32_mask(of->which, of->tail, of->tail);
	uint32_t line[16];

	_mm512_storeu_si512(found->number + found->n_outside,
		_mm512_maskz_compress_epi32(of->which, of->number));
	_mm512_storeu_si512(line, _mm512_maskz_compress_epi32(has_tail, of->tail));
	for (unsigned k = 0; k < FETCHED_TAILS; k++)
		rte_prefetch1(&lines[line[k]]);
	_mm512_storeu_si512(found->outside + found->n_outside,
		_mm512_maskz_compress_epi32(of->which,
			_mm512_add_epi32(count, _mm512_set1_epi32((int)i))));
	found->n_outside += __builtin_popcount(of->which);
}

// Fetches the tail that the first of sixteen leaves leads to: one of forty does.
static inline void fetch_tail(const struct fib_view *view, __m256i leaf, __m512i tail)
{
	__mmask16 has_tail = _mm256_movepi16_mask(leaf);
	__m512i line = _mm512_and_si512(_mm512_cvtepu16_epi32(leaf), _mm512_set1_epi32(LEAF_LINE));

	line = _mm512_maskz_compress_epi32(has_tail, _mm512_add_epi32(tail, line));
	rte_prefetch1((const union tail_line *)view->tail4 +
		      (uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(line)));
}

// Byte `place` of each node, and the one after it above that.
static inline __m512i pick(const struct nodes16 *nodes, __m512i place)
{
	const __m512i three = _mm512_set1_epi32(3), seven = _mm512_set1_epi32(7);
	__mmask16 is_second = _mm512_cmpgt_epu32_mask(place, three);
	__mmask16 is_third = _mm512_cmpgt_epu32_mask(place, seven);
	__m512i four = _mm512_mask_mov_epi32(nodes->word[1], is_second, nodes->word[2]);

	four = _mm512_mask_mov_epi32(four, is_third, nodes->word[3]);
	return _mm512_srlv_epi32(four, _mm512_slli_epi32(_mm512_and_si512(place, three), 3));
}

// Leaf number `run` of nodes that hold theirs, as if all did.
static inline __m512i leaf_inside(const struct nodes16 *nodes, __m512i run, __mmask16 is_narrow)
{
	const __m512i byte = _mm512_set1_epi32(255), after = _mm512_set1_epi32(FIB_NARROW_AFTER);
	__m512i leaf =
		pick(nodes, _mm512_mask_mov_epi32(_mm512_slli_epi32(run, 1), is_narrow, run));

	leaf = _mm512_mask_and_epi32(leaf, is_narrow, leaf, byte);
	return _mm512_mask_add_epi32(leaf, _mm512_mask_test_epi32_mask(is_narrow, leaf, leaf), leaf,
		after);
}

// Destinations i to i + 15.
static inline void pass16(const struct fib_view *view, const uint32_t dst[],
	struct fib_found4 *found, unsigned i)
{
	const __m512i one = _mm512_set1_epi32(1), thirty_one = _mm512_set1_epi32(31);
	__m512i ip = _mm512_loadu_si512(dst + i);
	uint32_t number[16];

	_mm512_storeu_si512(number, _mm512_srli_epi32(ip, 13));
	struct nodes16 nodes = take16(view->node4, number);
	// A shift by (31 - slot) leaves the bits up to and with the slot.
	__m512i shift = _mm512_andnot_si512(_mm512_srli_epi32(ip, 8), thirty_one);
	__m512i run = _mm512_popcnt_epi32(_mm512_sllv_epi32(nodes.word[0], shift));
	__mmask16 is_other = _mm512_test_epi32_mask(nodes.word[0], one);
	__mmask16 is_narrow = _mm512_mask_test_epi32_mask(is_other, nodes.word[1], one);
	__mmask16 is_outside = is_other & ~is_narrow;
	// Those outside count as no tails yet.
	__m256i within = _mm512_maskz_cvtepi32_epi16(_knot_mask16(is_outside),
		leaf_inside(&nodes, run, is_narrow));
	_mm256_storeu_si256((__m256i *)(found->leaf + i), within);
	_mm512_storeu_si512(found->tail + i, nodes.word[3]);
	fetch_tail(view, within, nodes.word[3]);
	if (is_outside)
		list_outside(view, found, i,
			&(struct outside16){is_outside,
				_mm512_add_epi32(_mm512_srli_epi32(nodes.word[1], 1), run),
				nodes.word[3]});
}

// All nodes first: so many loads in one go keep the memory busy.
static inline __attribute__((always_inline)) void begin(const struct fib_view *view,
	const uint32_t dst[], struct fib_found4 *found, unsigned n)
{
	found->n_outside = 0;
	for (unsigned i = 0; i < n; i += 16)
		pass16(view, dst, found, i);
	fetch_leaves(view, found);
}

static __attribute__((noinline)) void begin_some(const struct fib_view *view, const uint32_t dst[],
	struct fib_found4 *found, unsigned n)
{
	uint32_t padded_dst[BURST] = {0};

	memcpy(padded_dst, dst, n * sizeof(*dst));
	begin(view, padded_dst, found, round_up(n, 16));
	while (found->n_outside && found->outside[found->n_outside - 1] >= n)
		found->n_outside--;
	memset(found->leaf + n, 0, (BURST - n) * sizeof(found->leaf[0]));
}

void lookup4_begin_avx512(const struct fib_view *view, const uint32_t dst[],
	struct fib_found4 *found, unsigned n)
{
	found->n = n;
	if (n == BURST)
		begin(view, dst, found, BURST);
	else
		begin_some(view, dst, found, n);
}

static inline void end(const struct fib_view *view, const uint32_t dst[], struct fib_found4 *found,
	uint16_t hop[])
{
	take_leaves(view, found);
	take_tails(view, dst, found);
	memcpy(hop, found->leaf, found->n * sizeof(*hop));
}

void lookup4_avx512(const struct fib_view *view, const uint32_t dst[], uint16_t hop[], unsigned n)
{
	struct fib_found4 found;

	for (; n >= BURST; n -= BURST, dst += BURST, hop += BURST) {
		found.n = BURST;
		begin(view, dst, &found, BURST);
		end(view, dst, &found, hop);
	}
	if (!n)
		return;
	found.n = n;
	begin_some(view, dst, &found, n);
	end(view, dst, &found, hop);
}
