// Memory that a peer shares with us, such as a guest's: the peer may shorten its file, and whoever
// then touches what is gone gets SIGBUS, which would end the program.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// From now on, a mapping that is shared and not DPDK's own is replaced by zeros when a part of it
// is found to be gone. Keeps /proc/self/maps open; false if that cannot be opened. Control thread.
bool peer_memory_guard(void);

// How many mappings were replaced until now. Any thread.
unsigned peer_memory_n_lost(void);
// Whether the bytes from `begin` to before `end` overlap one that was replaced as number `since` or
// later, counted from 0; older than the last 16 are forgotten. Any thread.
bool peer_memory_is_lost(uintptr_t begin, uintptr_t end, unsigned since);
