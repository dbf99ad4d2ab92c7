// Makes allocations fail on demand. Linked into tests only, together with fail_alloc_args of
// base/meson.build; not into programs. One thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Allocation number `n` from now on fails (1: the next one), and none after it. 0: none fails.
void fail_alloc_at(uint64_t n);
// From now on, one in `n` allocations fails on average, in a sequence given by `seed`.
void fail_alloc_often(unsigned n, unsigned seed);
// How many allocations there were since one of the calls above. / How many of these failed.
uint64_t fail_alloc_n(void);
uint64_t fail_alloc_n_failed(void);
// How many mappings of pages_alloc there are now. Freeing one twice ends the program.
size_t fail_alloc_n_mapped(void);
