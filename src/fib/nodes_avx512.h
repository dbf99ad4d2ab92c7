// Run nodes, eight at a time. Needs AVX-512 F, DQ, VL and VPOPCNTDQ. Lane.
#pragma once

#include "fib/fib_fast.h"

#include <immintrin.h>

// What eight nodes say of one slot each.
struct nodes8 {
	__m256i leaf; // leaf numbers
	__m256i tail; // their first tail lines
};

static inline __m512i nodes_load4(const struct fib_node *nodes, const uint32_t number[])
{
	// Each node is one 16-byte load: a gather would tear it.
	__m512i four = _mm512_castsi128_si512(word16_load(&nodes[number[0]]));

	four = _mm512_inserti32x4(four, word16_load(&nodes[number[2]]), 1);
	four = _mm512_inserti32x4(four, word16_load(&nodes[number[4]]), 2);
	return _mm512_inserti32x4(four, word16_load(&nodes[number[6]]), 3);
}

// `slot`: the lowest six bits of each count. A shift by (63 - slot) leaves the bits up to and with
// the slot.
static inline struct nodes8 nodes_resolve8(const struct fib_node *nodes, const uint32_t number[8],
	__m256i slot)
{
	__m512i even = nodes_load4(nodes, number), odd = nodes_load4(nodes, number + 1);
	__m512i runs = _mm512_unpacklo_epi64(even, odd), rest = _mm512_unpackhi_epi64(even, odd);
	__m256i shift = _mm256_andnot_si256(slot, _mm256_set1_epi32(63));
	__m512i run = _mm512_popcnt_epi64(_mm512_sllv_epi64(runs, _mm512_cvtepu32_epi64(shift)));

	return (struct nodes8){
		.leaf = _mm256_add_epi32(_mm512_cvtepi64_epi32(rest), _mm512_cvtepi64_epi32(run)),
		.tail = _mm512_cvtepi64_epi32(_mm512_srli_epi64(rest, 32)),
	};
}
