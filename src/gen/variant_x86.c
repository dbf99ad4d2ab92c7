// Selects the sink's vectorised variant for this CPU. Control thread.
#include "gen/recognise.h"

#include "base/cpu.h"

recognise_fn *recognise_choose(void)
{
	bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	                  __builtin_cpu_supports("avx512dq") &&
	                  __builtin_cpu_supports("avx512vl") &&
	                  __builtin_cpu_supports("avx512vbmi");

	return has_avx512 && !cpu_forbids_avx512() ? recognise_avx512 : recognise_scalar;
}
