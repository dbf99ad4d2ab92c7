// The implementations of the bulk lookups. Run by workers.
#pragma once

#include "flow/flow_fast.h"

struct lookups {
	flow_begin4_fn *begin4, *continue4, *end4;
	flow_begin6_fn *begin6, *continue6, *end6;
	const char *name;
};

flow_begin4_fn flow4_begin_scalar, flow4_continue_scalar, flow4_end_scalar;
flow_begin6_fn flow6_begin_scalar, flow6_continue_scalar, flow6_end_scalar;
// Need AVX-512 F, BW, DQ and VL.
flow_begin4_fn flow4_begin_avx512, flow4_continue_avx512, flow4_end_avx512;
flow_begin6_fn flow6_begin_avx512, flow6_continue_avx512, flow6_end_avx512;
// For tables without flows of a family.
flow_begin4_fn flow4_none, flow4_skip;
flow_begin6_fn flow6_none, flow6_skip;

// The variants that CPU, build and EAL allow, from the simplest to the best. Control thread.
const struct lookups *flow_lookup_variants(unsigned *n);
