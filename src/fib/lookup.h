// The implementations of the bulk lookups. Run by workers.
#pragma once

#include "fib/fib_fast.h"

#include <stdbool.h>

typedef void lookup4_fn(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
	unsigned n);
typedef void lookup6_fn(const struct fib_view *view, const struct fib_key6 dst[], uint16_t hop[],
	unsigned n);

// The first stage of a pipelined lookup.
typedef void lookup4_begin_fn(const struct fib_view *view, const uint32_t dst[], uint16_t hop[],
	struct fib_lookup4_state *state);
lookup4_begin_fn lookup4_begin_scalar, lookup4_begin_avx512;

// Near: for tables that fit into a core's own caches. Far: prefetches what it needs.
lookup4_fn lookup4_near_scalar, lookup4_far_scalar;
lookup6_fn lookup6_scalar;
// For further VRFs: IPv4 looked up like IPv6, with the variant that the view uses.
lookup4_fn lookup4_small;
// Need AVX-512 F, BW, DQ, VL and VPOPCNTDQ; fastest at 64.
lookup4_fn lookup4_avx512;
lookup6_fn lookup6_avx512;

struct lookups {
	lookup4_fn *near4, *far4;
	lookup6_fn *six;
	lookup4_begin_fn *begin4;
	const char *name;
};

// The variants that CPU, build and EAL allow, from the simplest to the best. Control thread.
const struct lookups *lookup_variants(unsigned *n);
