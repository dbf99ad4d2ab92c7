// The writer side of RCU, internal to the table. Control thread.
#pragma once

#include "fib/fib.h"

#include <stdbool.h>
#include <stdint.h>

// Starts a grace period and returns its token: once all workers have passed it, nothing removed
// from the table before can still be read.
uint64_t rcu_start_grace(struct fib_rcu *rcu);
bool rcu_has_passed(struct fib_rcu *rcu, uint64_t token);
// Waits until all workers have passed the token; logs a worker that does not report for a second,
// once, and keeps waiting.
void rcu_wait(struct fib_rcu *rcu, uint64_t token);
