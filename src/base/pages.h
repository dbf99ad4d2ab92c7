// Memory for tables: straight from mmap, in huge pages where there are some, else transparent ones;
// never from EAL.
#pragma once

#include <stddef.h>

// Maps `bytes` (rounded up to 2 MiB when that large) of zeroed memory: explicit 2 MiB pages if
// `want_huge` and some are free, else ordinary ones with MADV_HUGEPAGE. NULL when the machine has
// no more. Any control thread; free with pages_free.
void *pages_alloc(size_t bytes, int want_huge);
void pages_free(void *memory, size_t bytes);
