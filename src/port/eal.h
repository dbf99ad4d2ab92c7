// DPDK's environment: started and stopped once. Its messages are held back until they are needed.
// Control thread.
#pragma once

#include "base/error.h"
#include "port/eal_args.h"

// Calls rte_eal_init; EAL's own error message becomes part of ours. `args` must outlive EAL. -errno
// with `error` set.
int eal_start(struct eal_args *args, struct error *error);

// Calls rte_eal_cleanup and removes all files from the runtime directory.
void eal_stop(void);

// From now on DPDK's errors go to the log; before, they are kept for our error messages only. /
// From now on they do not.
void eal_speak(void);
void eal_hush(void);

// DPDK's first error message since eal_words_forget; "" if there was none.
const char *eal_words(void);
void eal_words_forget(void);
