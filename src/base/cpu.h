// Limits on vector instructions. Control threads, at start.
#pragma once

#include <rte_vect.h>
#include <stdbool.h>

// Whether the user limited DPDK to narrow vectors (--force-max-simd-bitwidth below 256). 256 is
// EAL's default on x86, not a request, and before EAL starts the function returns 0.
static inline bool cpu_forbids_avx512(void)
{
	unsigned bits = rte_vect_get_max_simd_bitwidth();

	return bits && bits < RTE_VECT_SIMD_256;
}
