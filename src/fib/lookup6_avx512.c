// IPv6 in bulk, the 14 ends of a line compared at once. Lane.
#include "fib/lookup.h"

#include "fib/layout.h"

#include <immintrin.h>

// The run of a slot: as many end before it.
static inline unsigned line_run(const struct line6 *line, unsigned slot)
{
	__m512i ends = _mm512_load_si512(line);
	uint32_t before = _mm512_cmplt_epu16_mask(ends, _mm512_set1_epi16(slot));

	return __builtin_popcount(before & ((1u << LINE_RUNS) - 1));
}

#include "fib/descend6.h"

void lookup6_avx512(const struct fib_view *view, const struct fib_key6 dst[], uint16_t hop[], unsigned n)
{
	descend(view, dst, hop, n);
}
