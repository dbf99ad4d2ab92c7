// Memory for tables: straight from mmap, never from EAL. Tables reserve far more address space than
// they ever touch, so that they need not move; explicit huge pages would have to be paid for in
// advance, so large ones get transparent huge pages.
#pragma once

#include <stddef.h>

// Maps `bytes` (rounded up to 2 MiB when that large, with MADV_HUGEPAGE) of zeroed memory. NULL
// when the machine has no more. Any control thread; free with pages_free.
void *pages_alloc(size_t bytes);
void pages_free(void *memory, size_t bytes);
