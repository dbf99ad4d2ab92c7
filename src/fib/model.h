// A plain list of routes that tests compare the table with. Tests only.
#pragma once

#include "fib/fib.h"

enum { MODEL_MAX_ROUTES = 4096 };

struct model {
	size_t n;
	uint16_t vrf; // the table that it models
	struct fib_route route[MODEL_MAX_ROUTES];
};

typedef unsigned __int128 model_bits;

// Addresses as left-aligned numbers, and back.
model_bits model_number(const struct wire_addr *addr);
struct wire_addr model_addr(uint8_t family, model_bits number);
// The last number in a prefix.
model_bits model_last(const struct wire_prefix *prefix);

// Index of exactly this prefix, -1: none.
int model_find(const struct model *model, const struct wire_prefix *prefix);
// Index of the longest prefix that covers an address.
int model_longest(const struct model *model, const struct wire_addr *addr);
// Adds or replaces a route.
void model_set(struct model *model, const struct fib_route *route);
void model_delete(struct model *model, const struct wire_prefix *prefix);

// A random prefix, host bits clear, close to others: few base prefixes, any length, only late bits
// flipped.
struct wire_prefix model_random_prefix(uint8_t family);
struct wire_addr model_random_addr(uint8_t family);
uint32_t model_random(uint32_t below);

// fib_next in the main table.
bool model_next(const struct fib *fib, uint8_t family, const struct wire_prefix *after,
	struct fib_route *out);
