// Fetches to the L2 of sixteen places that stand in a register. Taken out of it, and not out of the
// memory that it is stored to: words of a vector come back late from there (ADR 0002). Worker.
#pragma once

#include <immintrin.h>
#include <stdint.h>

// Of assembler: GCC 12 drops calls of functions that do nothing but __builtin_prefetch.
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

// Places count eights of bytes from `base`.
static inline void fetch_sixteen(const void *base, __m512i places)
{
	fetch_four(base, _mm512_castsi512_si128(places));
	fetch_four(base, _mm512_extracti32x4_epi32(places, 1));
	fetch_four(base, _mm512_extracti32x4_epi32(places, 2));
	fetch_four(base, _mm512_extracti32x4_epi32(places, 3));
}
