// The filter of our own addresses, for workers that check sources: maintained as local IPv4 routes
// of any VRF are added and deleted. Control thread; workers read `shown`.
#pragma once

#include "fib/fib_fast.h"
#include "fib/rib.h"

enum { SOURCE_BITS = 32 * FIB_SOURCE_WORDS };

struct sources {
	struct fib_sources shown;
	uint32_t n_by_bit[SOURCE_BITS]; // number of addresses that set it
	uint32_t n_broad; // prefixes shorter than /32: while there are any, all bits are set
};

// A prefix has become local, or is no longer local. IPv6 prefixes and 127.0.0.0/8 are ignored:
// Linux does not check IPv6 sources, and packets from 127.0.0.0/8 are dropped earlier.
void sources_add(struct sources *sources, const struct rib_prefix *prefix);
void sources_remove(struct sources *sources, const struct rib_prefix *prefix);
