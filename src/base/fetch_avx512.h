// Prefetches sixteen places, given in a register, to the L2. The places are extracted from the
// register rather than stored to memory: scalar loads right after a vector store would be slow (ADR
// 0002). Worker.
#pragma once

#include <immintrin.h>
#include <stdint.h>

// In assembler: GCC 12 removes calls of functions that contain only __builtin_prefetch.
static inline void fetch_line(const uint64_t *at)
{
	__asm__ volatile("prefetcht1 %0" : : "m"(*at));
}

static inline void fetch_two(const void *base, uint64_t places)
{
	const uint64_t *eights = base;

	fetch_line(eights + (uint32_t)places);
	fetch_line(eights + (places >> 32));
}

static inline void fetch_four(const void *base, __m128i places)
{
	fetch_two(base, _mm_cvtsi128_si64(places));
	fetch_two(base, _mm_extract_epi64(places, 1));
}

// Places are offsets from `base` in units of 8 bytes.
static inline void fetch_sixteen(const void *base, __m512i places)
{
	fetch_four(base, _mm512_castsi512_si128(places));
	fetch_four(base, _mm512_extracti32x4_epi32(places, 1));
	fetch_four(base, _mm512_extracti32x4_epi32(places, 2));
	fetch_four(base, _mm512_extracti32x4_epi32(places, 3));
}
