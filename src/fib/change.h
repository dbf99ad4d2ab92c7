// What changes of routes and of neighbours share. Control thread.
#pragma once

#include "fib/publish.h"

// Id of a hop with one more holder, usable in leaves; 0: none is left, even after waiting for
// workers.
uint16_t change_acquire_hop(struct fib *fib, const struct fib_hop *hop);
// Brings what workers read up to date with the rib for these prefixes (sorted), then forgets hops
// that nothing holds.
void change_publish(struct fib *fib, const struct edit *edits, size_t n);
// Takes all routes of a tree out, but built-in ones.
void change_clear(struct fib *fib, uint8_t tree);
