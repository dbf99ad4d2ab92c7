// What vector instructions may be used. Control threads, at start.
#pragma once

#include <rte_vect.h>
#include <stdbool.h>

// Whether somebody asked DPDK for narrow vectors (--force-max-simd-bitwidth below 256). 256 itself
// is EAL's default on x86, which nobody asked for, and 0 is its answer before it starts.
static inline bool cpu_forbids_avx512(void)
{
	unsigned bits = rte_vect_get_max_simd_bitwidth();

	return bits && bits < RTE_VECT_SIMD_256;
}
