// Which variant runs here: asked once, at fib_create. Control thread.
#include "fib/lookup.h"

#include "base/cpu.h"

#if defined(__x86_64__)
bool lookup_has_avx512(void)
{
	return !cpu_forbids_avx512() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
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
