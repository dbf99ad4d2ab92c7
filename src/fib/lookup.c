// Selects the lookup variant for this machine, at fib_create. Control thread.
#include "fib/lookup.h"

#include "base/cpu.h"

static const struct lookups variants[] = {
	{lookup4_near_scalar, lookup4_far_scalar, lookup6_scalar, lookup4_begin_scalar,
		lookup4_vrf_scalar, lookup4_vrf_begin_scalar, lookup4_mixed_scalar,
		lookup6_mixed_scalar, "scalar"},
#if defined(__x86_64__)
	{lookup4_avx512, lookup4_avx512, lookup6_avx512, lookup4_begin_avx512, lookup4_vrf_avx512,
		lookup4_vrf_begin_avx512, lookup4_mixed_avx512, lookup6_mixed_avx512, "AVX-512"},
#endif
};

#if defined(__x86_64__)
static bool has_avx512(void)
{
	return !cpu_forbids_avx512() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vpopcntdq");
}
#else
static bool has_avx512(void)
{
	return false;
}
#endif

const struct lookups *lookup_variants(unsigned *n)
{
	*n = has_avx512() ? ARRAY_LEN(variants) : 1;
	return variants;
}
