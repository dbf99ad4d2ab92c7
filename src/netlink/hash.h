// Hash of an address, for tables of the control thread. Stateless.
#pragma once

#include "base/bits.h"
#include "wire/addr.h"

static inline uint32_t hash_addr(const struct wire_addr *addr, uint32_t seed)
{
	uint64_t mixed = (load64(addr->bytes) ^ seed) * 0x9e3779b97f4a7c15;

	mixed = (mixed ^ mixed >> 29 ^ load64(addr->bytes + 8)) * 0xbf58476d1ce4e5b9;
	return (uint32_t)(mixed >> 32);
}
