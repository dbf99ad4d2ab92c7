// Shared by the lookup benchmarks: tables and destinations. Benchmarks only.
#pragma once

#include "fib/fib.h"
#include "fib/fib_fast.h"

enum { BENCH_DESTINATIONS = 1 << 20, BENCH_HOPS = 256 };

struct bench_table {
	uint8_t family;
	struct fib_change *change;
	size_t n;
	struct fib_key6 *dst; // as left-aligned keys
	uint32_t *dst4;
	uint16_t vrf[64]; // of a burst of destinations: the same for all routes
};

// Prefix lengths distributed as in the global table (IPv4 about a million, IPv6 200,000), `times`
// as many.
struct bench_table bench_table_make(uint8_t family, unsigned times);
struct bench_table bench_table_one_route(uint8_t family);
void bench_table_free(struct bench_table *table);
