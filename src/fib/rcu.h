// The writer's side of the door, for the room itself. Control thread.
#pragma once

#include "fib/fib.h"

#include <stdbool.h>
#include <stdint.h>

// Starts a grace period: what was taken out of the table before cannot be read any more once all
// workers passed the token.
uint64_t rcu_start_grace(struct fib_rcu *rcu);
bool rcu_has_passed(struct fib_rcu *rcu, uint64_t token);
// Waits for it; names a worker that is silent for a second, once, and waits on.
void rcu_wait(struct fib_rcu *rcu, uint64_t token);
