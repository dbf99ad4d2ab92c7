// The writer's side of the door, for the room itself. Control thread.
#pragma once

#include "fib/fib.h"

#include <stdbool.h>
#include <stdint.h>

// Starts a grace period: what was taken out of the table before cannot be read any more once all
// lanes passed the token.
uint64_t door_token(struct fib_door *door);
bool door_has_passed(struct fib_door *door, uint64_t token);
// Waits for it; names a lane that is silent for a second, once, and waits on.
void door_wait(struct fib_door *door, uint64_t token);
