// Which variant runs here: asked once, at fib_create. Control thread.
#include "fib/lookup.h"

#include <rte_vect.h>

#if defined(__x86_64__)
// EAL's default is 256 on x86, which nobody asked for, and 0 before it starts; below 256 somebody said "no wide vectors".
bool lookup_has_avx512(void)
{
	unsigned bits = rte_vect_get_max_simd_bitwidth();

	if (bits && bits < RTE_VECT_SIMD_256)
		return false;
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
bool lookup_has_avx512(void)
{
	return false;
}

void lookup6_avx512(const struct fib_view *view, const struct fib_key6 dst[], uint16_t hop[], unsigned n)
{
	lookup6_scalar(view, dst, hop, n);
}
#endif
