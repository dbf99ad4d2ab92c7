// Which of the walk's vector files this CPU runs. Control thread.
#include "path/parse.h"

#include "base/cpu.h"

path_parse_fn path_choose_parse(void)
{
	bool has_avx512 = __builtin_cpu_supports("avx512vbmi") &&
	                  __builtin_cpu_supports("avx512bw") &&
	                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");

	return has_avx512 && !cpu_forbids_avx512() ? parse_avx512 : parse_scalar;
}
