// Selects the vector code for this CPU. Control thread.
#include "datapath/variant.h"

#include "base/cpu.h"
#include "datapath/hop_limits.h"

const struct datapath_variant datapath_avx512 = {
	.parse = parse_avx512,
	.all_plain = all_plain_avx512,
	.limits = limits_avx512,
	.rewrite4 = rewrite4_avx512,
	.rewrite6 = rewrite6_avx512,
};

const struct datapath_variant *datapath_choose_variant(void)
{
	bool has_avx512 = __builtin_cpu_supports("avx512vbmi") &&
	                  __builtin_cpu_supports("avx512bw") &&
	                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");

	return has_avx512 && !cpu_forbids_avx512() ? &datapath_avx512 : &datapath_scalar;
}
