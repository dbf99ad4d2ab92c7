// DPDK's environment: started once, ended once; its words are held back until they are needed.
// Control thread.
#pragma once

#include "base/error.h"
#include "port/eal_args.h"

// rte_eal_init; its own error becomes part of ours. `args` must outlive EAL. -errno with a
// error.
int eal_start(struct eal_args *args, struct error *error);

// rte_eal_cleanup, and no file is left in the runtime folder.
void eal_stop(void);

// From now on DPDK's errors go to the log; before, they are only kept for errors.
void eal_speak(void);

// What DPDK first complained about since eal_words_forget; "" if nothing.
const char *eal_words(void);
void eal_words_forget(void);
