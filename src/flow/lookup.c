// Selects the lookup variant for this machine, at flow_create. Control thread.
#include "flow/lookup.h"

#include "base/cpu.h"

static const struct lookups variants[] = {
	{flow4_begin_scalar, flow4_continue_scalar, flow4_end_scalar, flow6_begin_scalar,
		flow6_continue_scalar, flow6_end_scalar, "scalar"},
#if defined(__x86_64__)
	{flow4_begin_avx512, flow4_continue_avx512, flow4_end_avx512, flow6_begin_avx512,
		flow6_continue_avx512, flow6_end_avx512, "AVX-512"},
#endif
};

#if defined(__x86_64__)
static bool has_avx512(void)
{
	return !cpu_forbids_avx512() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}
#else
static bool has_avx512(void)
{
	return false;
}
#endif

const struct lookups *flow_lookup_variants(unsigned *n)
{
	*n = has_avx512() ? ARRAY_LEN(variants) : 1;
	return variants;
}

void flow4_none(const struct flow_view *view, const struct flow_key4 key[],
	struct flow_lookup *lookup)
{
	memset(lookup->flow, 0, lookup->n * sizeof(*lookup->flow));
}

void flow6_none(const struct flow_view *view, const struct flow_key6 key[],
	struct flow_lookup *lookup)
{
	memset(lookup->flow, 0, lookup->n * sizeof(*lookup->flow));
}

void flow4_skip(const struct flow_view *view, const struct flow_key4 key[],
	struct flow_lookup *lookup)
{
}

void flow6_skip(const struct flow_view *view, const struct flow_key6 key[],
	struct flow_lookup *lookup)
{
}
