// The bulk lookups to choose from at fib_create. Lanes run them.
#pragma once

#include "fib/fib_fast.h"

void lookup4_scalar(const struct fib_view *view, const uint32_t dst[], uint16_t hop[], unsigned n);
void lookup6_scalar(const struct fib_view *view, const struct fib_key6 dst[], uint16_t hop[], unsigned n);
// Needs AVX-512 F, BW, DQ and VL.
void lookup6_avx512(const struct fib_view *view, const struct fib_key6 dst[], uint16_t hop[], unsigned n);

// True where CPU, build and EAL let the vector variants run.
bool lookup_has_avx512(void);
