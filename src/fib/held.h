// Held next hops: numbered, reference-counted. Control thread.
#pragma once

#include <stdint.h>

struct held {
	uint32_t *hop;     // by number: hop id, which workers read
	uint32_t *n_holds; // by number; 0: not in use
	uint32_t *unused;  // numbers up to `max` that no worker can have any more
	uint32_t n_unused, max, n;
};

int held_open(struct held *held);
void held_close(struct held *held);
// A number that no worker can have any more.
void held_reuse(struct held *held, uint32_t number);
