// The writer side of RCU, internal to the table. Control thread.
#pragma once

#include "fib/fib.h"

#include <stdbool.h>
#include <stdint.h>

// Waits until all workers have passed the token; logs a worker that does not report for a second,
// once, and keeps waiting.
void rcu_wait(struct fib_rcu *rcu, uint64_t token);
