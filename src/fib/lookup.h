// The implementations of the bulk lookups. Run by workers.
#pragma once

#include "fib/fib_fast.h"

#include <stdbool.h>

typedef void lookup4_fn(const struct fib_view *view, const uint32_t dst[], uint32_t hop[],
	unsigned n);
typedef void lookup6_fn(const struct fib_view *view, const struct fib_key6 dst[], uint32_t hop[],
	unsigned n);
typedef void lookup4_mixed_fn(const struct fib_view *view, const uint16_t vrf[],
	const uint32_t dst[], uint32_t hop[], unsigned n);
typedef void lookup6_mixed_fn(const struct fib_view *view, const uint16_t vrf[],
	const struct fib_key6 dst[], uint32_t hop[], unsigned n);

// The first stage of a pipelined lookup.
typedef void lookup4_begin_fn(const struct fib_view *view, const uint32_t dst[], uint32_t hop[],
	struct fib_lookup4_state *state);
lookup4_begin_fn lookup4_begin_scalar, lookup4_begin_avx512;

// Near: for tables that fit into a core's own caches. Far: prefetches what it needs.
lookup4_fn lookup4_near_scalar, lookup4_far_scalar;
lookup6_fn lookup6_scalar;
// In a further VRF, whose root leads to the nodes; for destinations in several ones.
lookup4_fn lookup4_vrf_scalar, lookup4_vrf_avx512;
lookup4_begin_fn lookup4_vrf_begin_scalar, lookup4_vrf_begin_avx512;
lookup4_mixed_fn lookup4_mixed_scalar, lookup4_mixed_avx512;
lookup6_mixed_fn lookup6_mixed_scalar, lookup6_mixed_avx512;
// Need AVX-512 F, BW, DQ, VL and VPOPCNTDQ; fastest at 64.
lookup4_fn lookup4_avx512;
lookup6_fn lookup6_avx512;

struct lookups {
	lookup4_fn *near4, *far4;
	lookup6_fn *six;
	lookup4_begin_fn *begin4;
	lookup4_fn *vrf4; // the same two for further VRFs
	lookup4_begin_fn *vrf_begin4;
	lookup4_mixed_fn *mixed4;
	lookup6_mixed_fn *mixed6;
	const char *name;
};

// The variants that CPU, build and EAL allow, from the simplest to the best. Control thread.
const struct lookups *lookup_variants(unsigned *n);
