// Memory for tables: from mmap, not from EAL. Tables reserve far more address space than they use,
// so that they never have to move. Explicit huge pages would have to be reserved in full, so large
// tables use transparent huge pages.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Maps `bytes` of zeroed memory (large mappings are rounded up to 2 MiB and get MADV_HUGEPAGE).
// NULL if there is not enough memory. Any control thread; free with pages_free.
void *pages_alloc(size_t bytes);
// Uses no huge pages for it: memory is allocated 4 KiB at a time, as it is touched.
void pages_keep_small(void *memory, size_t bytes);
void pages_free(void *memory, size_t bytes);
// Frees the last part, of about `most` bytes (a multiple of 2 MiB): memory that is not huge takes a
// tenth of a microsecond per KiB. Returns how many bytes are left, to be freed in the same way.
size_t pages_free_some(void *memory, size_t bytes, size_t most);
// Bytes of memory that Linux reports as available; UINT64_MAX if it does not report it. A mapping
// succeeds without them, and the process is killed when it touches more than there are.
uint64_t pages_available(void);
