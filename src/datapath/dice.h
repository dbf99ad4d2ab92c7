// Pseudo-random numbers with a fixed seed: the same sequence in every run. Tests only.
#pragma once

#include <stdint.h>

static inline uint32_t dice(uint32_t below)
{
	static uint64_t seed = 88172645463325252ull; // xorshift64

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 20) % below;
}
