// Shared by changes of routes and of neighbours. Control thread.
#pragma once

#include "fib/publish.h"

// Acquires a reference to a hop and returns its id, usable in leaves; 0: none is left, even after a
// grace period.
uint16_t change_acquire_hop(struct fib *fib, const struct fib_hop *hop);
// Updates the workers' copy from the rib for these prefixes (sorted), then frees hops without
// references.
void change_publish(struct fib *fib, const struct edit *edits, size_t n);
// Deletes all routes of a tree except built-in ones.
void change_clear(struct fib *fib, uint8_t tree);
