// Random tables with as many prefixes and the same lengths as the global ones, and destinations
// within them. Benchmarks only.
#include "fib/bench_table.h"

#include "fib/rib.h"

#include <stdlib.h>

struct length {
	uint8_t len;
	uint32_t n;
};

// Prefix lengths as in the global tables: 1,000,011 and 200,000 prefixes.
static const struct length lengths4[] = {{8, 16}, {9, 13}, {10, 40}, {11, 100}, {12, 300},
	{13, 600}, {14, 1200}, {15, 2100}, {16, 13500}, {17, 8500}, {18, 14000}, {19, 25500},
	{20, 44500}, {21, 51500}, {22, 112000}, {23, 100000}, {24, 600000}, {25, 3000}, {26, 3000},
	{27, 3000}, {28, 3000}, {29, 4000}, {30, 3500}, {32, 6642}};
static const struct length lengths6[] = {{29, 8000}, {32, 30000}, {36, 8000}, {40, 14000},
	{44, 16000}, {46, 9000}, {47, 4000}, {48, 110000}, {64, 1000}};

enum { N_ALLOCATIONS = 9000 };

static uint64_t random_bits(void)
{
	static uint64_t state = 0x9e3779b97f4a7c15ull;

	state ^= state << 13; // xorshift64
	state ^= state >> 7;
	state ^= state << 17;
	return state * 2685821657736338717ull;
}

static struct fib_key6 random_key(uint8_t family, const uint32_t allocation[])
{
	struct fib_key6 key = {random_bits(), random_bits()};

	if (family == 4) {
		do
			key.high = random_bits();
		while (key.high >> 56 == 0 || key.high >> 56 == 10 || key.high >> 56 == 127 ||
			key.high >> 56 >= 224);
		key.low = 0;
		return key;
	}
	key.high = (uint64_t)allocation[random_bits() % N_ALLOCATIONS] << 36 | key.high >> 28;
	return key;
}

static void make_allocations(uint32_t allocation[])
{
	static const uint16_t regions[] = {0x2001, 0x2400, 0x2600, 0x2800, 0x2a00, 0x2c0f};

	for (unsigned i = 0; i < N_ALLOCATIONS; i++)
		allocation[i] =
			(uint32_t)regions[random_bits() % 6] << 12 | (random_bits() & 0xfff);
}

static void set_route(struct fib_change *change, uint8_t family, struct fib_key6 key, unsigned len)
{
	struct rib_prefix prefix = {key, family == 4 ? RIB4 : RIB6, len};

	change->op = FIB_REPLACE;
	change->route.prefix = rib_prefix_to_wire(&prefix);
	wire_prefix_mask(&change->route.prefix);
	change->route.hop =
		(struct fib_hop){.via = {.bytes = {10, 0, 0, random_bits() % BENCH_HOPS},
					 .family = 4},
			.iface = 1};
}

static void shuffle(struct bench_table *table)
{
	for (size_t i = table->n - 1; i; i--) {
		size_t other = random_bits() % (i + 1);
		struct fib_change swap = table->change[i];
		table->change[i] = table->change[other];
		table->change[other] = swap;
	}
}

// Destinations within randomly chosen routes.
static void make_destinations(struct bench_table *table)
{
	table->dst = malloc(BENCH_DESTINATIONS * sizeof(*table->dst));
	table->dst4 = malloc(BENCH_DESTINATIONS * sizeof(*table->dst4));
	for (size_t i = 0; i < BENCH_DESTINATIONS; i++) {
		const struct wire_prefix *wire =
			&table->change[random_bits() % table->n].route.prefix;
		struct rib_prefix prefix = rib_prefix_of(wire);
		unsigned __int128 host = (unsigned __int128)random_bits() << 64 | random_bits();
		host = prefix.len == 128 ? 0 : prefix.len ? host >> prefix.len : host;
		table->dst[i] = (struct fib_key6){prefix.key.high | (uint64_t)(host >> 64),
			prefix.key.low | (uint64_t)host};
		table->dst4[i] = table->dst[i].high >> 32;
	}
}

struct bench_table bench_table_make(uint8_t family, unsigned times)
{
	const struct length *lengths = family == 4 ? lengths4 : lengths6;
	size_t n_lengths = family == 4 ? ARRAY_LEN(lengths4) : ARRAY_LEN(lengths6);
	struct bench_table table = {.family = family};
	uint32_t allocation[N_ALLOCATIONS];

	make_allocations(allocation);
	table.change = calloc(times * 1100000, sizeof(*table.change));
	for (size_t i = 0; i < n_lengths; i++)
		for (uint32_t n = 0; n < times * lengths[i].n; n++)
			set_route(&table.change[table.n++], family, random_key(family, allocation),
				lengths[i].len);
	shuffle(&table);
	make_destinations(&table);
	return table;
}

struct bench_table bench_table_one_route(uint8_t family)
{
	struct bench_table table = {.family = family,
		.n = 1,
		.change = calloc(1, sizeof(*table.change))};
	struct fib_key6 key = {family == 4 ? 48ull << 56 : 0x20010db8ull << 32, 0};

	set_route(table.change, family, key, family == 4 ? 8 : 32);
	make_destinations(&table);
	return table;
}

void bench_table_free(struct bench_table *table)
{
	free(table->change);
	free(table->dst);
	free(table->dst4);
}
