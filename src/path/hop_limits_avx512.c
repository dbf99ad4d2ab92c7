// Limits of next hops with AVX-512: gathered, so that no loop of small stores is read back as
// vectors. Lane.
#include "path/hop_limits.h"

#include <immintrin.h>

enum { STEP = 16 };

void limits_avx512(const struct fib_view *view, const uint16_t hop[], uint32_t limits[], unsigned n)
{
	const uint8_t *first = (const uint8_t *)view->hops + LIMITS_AT;

	_Static_assert(sizeof(struct fib_hop_entry) == 1 << 4, "the shift below");
	for (unsigned i = 0; i < n; i += STEP) {
		__mmask16 valid = n - i < STEP ? (__mmask16)((1u << (n - i)) - 1) : UINT16_MAX;
		__m256i hops = _mm256_maskz_loadu_epi16(valid, hop + i);
		__m512i place = _mm512_slli_epi32(_mm512_cvtepu16_epi32(hops), 4);

		_mm512_storeu_si512(limits + i, _mm512_i32gather_epi32(place, first, 1));
	}
}
