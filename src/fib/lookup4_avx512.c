// IPv4 bulk lookup, sixteen nodes at a time. Worker.
#include "fib/lookup.h"

#include "fib/tails.h"

#include <immintrin.h>

enum { BURST = FIB_BURST4 };

// Sixteen nodes, one vector for each of their four words.
struct nodes16 {
	__m512i word[4];
};

static inline __m512i take4(const struct fib_node4 *nodes, const uint32_t number[])
{
	// Each node is one 16-byte load: a gather could tear it.
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

// Byte `place` of each node in the low byte, and the following one above it.
static inline __m512i pick(const struct nodes16 *nodes, __m512i place)
{
	const __m512i three = _mm512_set1_epi32(3), seven = _mm512_set1_epi32(7);
	__mmask16 is_second = _mm512_cmpgt_epu32_mask(place, three);
	__mmask16 is_third = _mm512_cmpgt_epu32_mask(place, seven);
	__m512i four = _mm512_mask_mov_epi32(nodes->word[1], is_second, nodes->word[2]);

	four = _mm512_mask_mov_epi32(four, is_third, nodes->word[3]);
	return _mm512_srlv_epi32(four, _mm512_slli_epi32(_mm512_and_si512(place, three), 3));
}

// Leaf number `run` of nodes that contain their leaves, computed for all nodes.
static inline __m512i leaves_inside(const struct nodes16 *nodes, __m512i run, __mmask16 is_narrow)
{
	const __m512i byte = _mm512_set1_epi32(255), after = _mm512_set1_epi32(FIB_NARROW_AFTER);
	__m512i leaf =
		pick(nodes, _mm512_mask_mov_epi32(_mm512_slli_epi32(run, 1), is_narrow, run));

	leaf = _mm512_mask_and_epi32(leaf, is_narrow, leaf, byte);
	return _mm512_mask_add_epi32(leaf, _mm512_mask_test_epi32_mask(is_narrow, leaf, leaf), leaf,
		after);
}

// Where to look: in the main table, in the VRF of the view, or in the VRF of each destination.
enum where { IN_MAIN, IN_VRF, IN_SEVERAL };

// Sixteen destinations. Places that are not valid are not read, and their leaves are written so
// that they never lead to a tail.
struct sixteen {
	__m512i dst;
	__mmask16 valid;
	unsigned at;
	enum where where;
	const uint16_t *vrf; // IN_SEVERAL: of all destinations
};

// The numbers of their nodes.
static inline __attribute__((always_inline)) __m512i numbers16(const struct fib_view *view,
	struct sixteen from)
{
	const __m512i number = _mm512_srli_epi32(from.dst, 13);
	__m512i slot = _mm512_srli_epi32(from.dst, 32 - ROOT4_BITS);

	if (from.where == IN_MAIN)
		return number;
	if (from.where == IN_SEVERAL) {
		__m256i vrf = _mm256_maskz_loadu_epi16(from.valid, from.vrf + from.at);
		slot = _mm512_add_epi32(slot,
			_mm512_slli_epi32(_mm512_cvtepu16_epi32(vrf), ROOT4_BITS));
	}
	return _mm512_add_epi32(_mm512_i32gather_epi32(slot, view->root4, sizeof(uint32_t)),
		_mm512_and_si512(number, _mm512_set1_epi32(PAGE4_NODES - 1)));
}

// Processes sixteen destinations, starting at number `at`. Leaves outside count as 0 for now.
static inline __attribute__((always_inline)) void pass16(const struct fib_view *view,
	struct sixteen from, uint32_t leaf[], struct fib_lookup4_state *state)
{
	const __m512i one = _mm512_set1_epi32(1), thirty_one = _mm512_set1_epi32(31);
	uint32_t number[16];

	_mm512_storeu_si512(number, numbers16(view, from));
	struct nodes16 nodes = take16(view->node4, number);
	// As in piece_of().
	__m512i shift = _mm512_andnot_si512(_mm512_srli_epi32(from.dst, 8), thirty_one);
	__m512i run = _mm512_popcnt_epi32(_mm512_sllv_epi32(nodes.word[0], shift));
	__mmask16 is_other = _mm512_mask_test_epi32_mask(from.valid, nodes.word[0], one);
	__mmask16 is_narrow = _mm512_mask_test_epi32_mask(is_other, nodes.word[1], one);
	__mmask16 is_outside = is_other & ~is_narrow;
	__m512i within = _mm512_maskz_and_epi32(from.valid & ~is_outside,
		leaves_inside(&nodes, run, is_narrow), _mm512_set1_epi32(UINT16_MAX));
	_mm512_storeu_si512(leaf + from.at, within);
	_mm512_storeu_si512(state->tail + from.at, nodes.word[3]);
	_mm512_storeu_si512(state->number + from.at,
		_mm512_maskz_add_epi32(is_outside, _mm512_srli_epi32(nodes.word[1], 1), run));
	state->outside |= (uint64_t)is_outside << from.at;
	state->tails |= (uint64_t)_mm512_test_epi32_mask(within, _mm512_set1_epi32(LEAF_TAIL))
	                << from.at;
}

// The destinations of a burst.
struct burst4 {
	const uint32_t *dst;
	enum where where;
	const uint16_t *vrf;
};

// Loads all nodes first: more parallel loads make better use of the memory.
static inline __attribute__((always_inline)) void begin_all(const struct fib_view *view,
	struct burst4 burst, uint32_t leaf[], struct fib_lookup4_state *state)
{
	state->outside = state->tails = 0;
	for (unsigned i = 0; i < BURST; i += 16)
		pass16(view,
			(struct sixteen){_mm512_loadu_si512(burst.dst + i), UINT16_MAX, i,
				burst.where, burst.vrf},
			leaf, state);
	fetch_later(view, leaf, state);
}

// For fewer destinations.
static inline __attribute__((always_inline)) void begin_some(const struct fib_view *view,
	struct burst4 burst, uint32_t leaf[], struct fib_lookup4_state *state)
{
	const unsigned n = state->n;
	uint32_t padded[BURST];

	state->outside = state->tails = 0;
	for (unsigned i = 0; i < n; i += 16) {
		__mmask16 valid = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : UINT16_MAX;

		pass16(view,
			(struct sixteen){_mm512_maskz_loadu_epi32(valid, burst.dst + i), valid, i,
				burst.where, burst.vrf},
			padded, state);
	}
	fetch_later(view, padded, state);
	memcpy(leaf, padded, n * sizeof(*leaf));
}

static __attribute__((noinline)) void begin_some_in_main(const struct fib_view *view,
	const uint32_t dst[], uint32_t leaf[], struct fib_lookup4_state *state)
{
	begin_some(view, (struct burst4){dst, IN_MAIN, NULL}, leaf, state);
}

void lookup4_begin_avx512(const struct fib_view *view, const uint32_t dst[], uint32_t leaf[],
	struct fib_lookup4_state *state)
{
	if (state->n == BURST)
		begin_all(view, (struct burst4){dst, IN_MAIN, NULL}, leaf, state);
	else
		begin_some_in_main(view, dst, leaf, state);
}

void lookup4_vrf_begin_avx512(const struct fib_view *view, const uint32_t dst[], uint32_t leaf[],
	struct fib_lookup4_state *state)
{
	if (state->n == BURST)
		begin_all(view, (struct burst4){dst, IN_VRF, NULL}, leaf, state);
	else
		begin_some(view, (struct burst4){dst, IN_VRF, NULL}, leaf, state);
}

void lookup4_avx512(const struct fib_view *view, const uint32_t dst[], uint32_t hop[], unsigned n)
{
	struct fib_lookup4_state state;

	for (; n; n -= state.n, dst += state.n, hop += state.n) {
		state.n = MIN_OF(n, BURST);
		lookup4_begin_avx512(view, dst, hop, &state);
		take_leaves(view, hop, &state);
		take_tails(view, dst, hop, &state);
	}
}

void lookup4_vrf_avx512(const struct fib_view *view, const uint32_t dst[], uint32_t hop[],
	unsigned n)
{
	struct fib_lookup4_state state;

	for (; n; n -= state.n, dst += state.n, hop += state.n) {
		state.n = MIN_OF(n, BURST);
		lookup4_vrf_begin_avx512(view, dst, hop, &state);
		take_leaves(view, hop, &state);
		take_tails(view, dst, hop, &state);
	}
}

void lookup4_mixed_avx512(const struct fib_view *view, const uint16_t vrf[], const uint32_t dst[],
	uint32_t hop[], unsigned n)
{
	struct fib_lookup4_state state;

	for (; n; n -= state.n, vrf += state.n, dst += state.n, hop += state.n) {
		state.n = MIN_OF(n, BURST);
		if (state.n == BURST)
			begin_all(view, (struct burst4){dst, IN_SEVERAL, vrf}, hop, &state);
		else
			begin_some(view, (struct burst4){dst, IN_SEVERAL, vrf}, hop, &state);
		take_leaves(view, hop, &state);
		take_tails(view, dst, hop, &state);
	}
}
