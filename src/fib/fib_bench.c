// What the table costs: cycles per lookup, MiB that lanes read, seconds to build, microseconds per
// change. Prints; judges nothing.
#include "base/clock.h"
#include "fib/fib.h"
#include "fib/fib_fast.h"
#include "fib/lookup.h"
#include "fib/table.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BURST = 64, N_DESTINATIONS = 1 << 20, N_HOPS = 256, N_ROUNDS = 7 };
enum { CHUNK = 2048, N_CHUNKS = N_DESTINATIONS / CHUNK };

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

struct table {
	uint8_t family;
	struct fib_change *change;
	size_t n;
	struct fib_key6 *dst;
	uint32_t *dst4;
};

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
		(struct fib_hop){.via = {.bytes = {10, 0, 0, random_bits() % N_HOPS}, .family = 4},
			.port = 1};
}

static void shuffle(struct table *table)
{
	for (size_t i = table->n - 1; i; i--) {
		size_t other = random_bits() % (i + 1);
		struct fib_change swap = table->change[i];
		table->change[i] = table->change[other];
		table->change[other] = swap;
	}
}

// Destinations inside routes picked at random.
static void make_destinations(struct table *table)
{
	table->dst = malloc(N_DESTINATIONS * sizeof(*table->dst));
	table->dst4 = malloc(N_DESTINATIONS * sizeof(*table->dst4));
	for (size_t i = 0; i < N_DESTINATIONS; i++) {
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

static struct table make_table(uint8_t family, unsigned times)
{
	const struct length *lengths = family == 4 ? lengths4 : lengths6;
	size_t n_lengths = family == 4 ? ARRAY_LEN(lengths4) : ARRAY_LEN(lengths6);
	struct table table = {.family = family};
	uint32_t allocation[N_ALLOCATIONS];

	make_allocations(allocation);
	table.change = malloc(times * 1100000 * sizeof(*table.change));
	for (size_t i = 0; i < n_lengths; i++)
		for (uint32_t n = 0; n < times * lengths[i].n; n++)
			set_route(&table.change[table.n++], family, random_key(family, allocation),
				lengths[i].len);
	shuffle(&table);
	make_destinations(&table);
	return table;
}

static struct table make_one_route(uint8_t family)
{
	struct table table = {.family = family, .n = 1, .change = malloc(sizeof(*table.change))};
	struct fib_key6 key = {family == 4 ? 48ull << 56 : 0x20010db8ull << 32, 0};

	set_route(table.change, family, key, family == 4 ? 8 : 32);
	make_destinations(&table);
	return table;
}

static void free_table(struct table *table)
{
	free(table->change);
	free(table->dst);
	free(table->dst4);
}

// One row of the comparison: a lookup and the cycles that each chunk of destinations took.
struct row {
	lookup4_fn *four;
	lookup6_fn *six;
	const char *what;
	const char *variant;
	unsigned n;
	double cycles[N_ROUNDS * N_CHUNKS];
};

static double measure_chunk(const struct fib *fib, const struct table *table, const struct row *row,
	unsigned chunk)
{
	uint16_t hop[BURST];
	uint64_t sum = 0, start = rte_rdtsc_precise();

	for (unsigned at = chunk * CHUNK; at < (chunk + 1) * CHUNK; at += BURST) {
		if (row->four)
			row->four(&fib->view, table->dst4 + at, hop, BURST);
		else
			row->six(&fib->view, table->dst + at, hop, BURST);
		sum += hop[at % BURST];
	}
	asm volatile("" : : "r"(sum));
	return (double)(rte_rdtsc_precise() - start) / CHUNK;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

// All variants in turn, chunk by chunk, so that what else the machine does hits each of them alike.
static void print_cycles(const struct fib *fib, const struct table *table)
{
	static struct row row[4];
	unsigned n_variants, n_rows = 0;
	const struct lookups *variants = lookup_variants(&n_variants);

	for (unsigned i = 0; i < n_variants; i++) {
		const char *name = variants[i].name;
		if (table->family == 6) {
			row[n_rows++] = (struct row){.six = variants[i].six,
				.what = "lookup",
				.variant = name};
			continue;
		}
		row[n_rows++] =
			(struct row){.four = variants[i].near4, .what = "near", .variant = name};
		if (variants[i].far4 != variants[i].near4)
			row[n_rows++] = (struct row){.four = variants[i].far4,
				.what = "far",
				.variant = name};
	}
	for (unsigned round = 0; round < N_ROUNDS * n_rows; round++)
		for (unsigned chunk = 0; chunk < N_CHUNKS; chunk++) {
			struct row *turn = &row[(chunk + round) % n_rows];
			turn->cycles[turn->n++ % ARRAY_LEN(turn->cycles)] =
				measure_chunk(fib, table, turn, chunk);
		}
	for (unsigned i = 0; i < n_rows; i++) {
		unsigned n = MIN_OF(row[i].n, ARRAY_LEN(row[i].cycles));
		qsort(row[i].cycles, n, sizeof(double), by_value);
		printf("  %s, %s: %.1f cycles per lookup (a quarter below %.1f, a quarter above "
		       "%.1f)\n",
			row[i].what, row[i].variant, row[i].cycles[n / 2], row[i].cycles[n / 4],
			row[i].cycles[n * 3 / 4]);
	}
}

// Deletes and adds routes one at a time.
static void print_changes(struct fib *fib, const struct table *table)
{
	size_t n = table->n < 100000 ? table->n : 100000;
	uint64_t start_ns = clock_now_ns();

	for (size_t i = 0; i < n; i++) {
		struct fib_change change = table->change[i];
		change.op = FIB_DELETE;
		if (!fib_change(fib, &change, 1, NULL, NULL))
			fib_change(fib, &table->change[i], 1, NULL, NULL);
	}
	printf("  change: %.2f us each (delete, add; mean of %zu)\n",
		(clock_now_ns() - start_ns) / 2e3 / n, 2 * n);
}

static void print_memory(const struct fib *fib)
{
	const double mib = 1 << 20;
	struct fib_usage usage;

	fib_usage(fib, &usage);
	printf("  %u + %u routes; lanes read %.1f MiB (IPv4 %.2f, IPv6 %.2f, next hops %.2f); "
	       "control %.1f MiB\n",
		usage.n_routes4, usage.n_routes6,
		(usage.lane_bytes4 + usage.lane_bytes6 + usage.lane_bytes_hops) / mib,
		usage.lane_bytes4 / mib, usage.lane_bytes6 / mib, usage.lane_bytes_hops / mib,
		usage.control_bytes / mib);
	printf("  IPv4 leaves %.2f, tails %.2f; IPv6 wide %.2f, leaves %.2f, lines %.2f MiB\n",
		blocks_bytes(&fib->publish4.leaf) / mib, blocks_bytes(&fib->publish4.tail) / mib,
		blocks_bytes(&fib->publish6.wide) / mib, blocks_bytes(&fib->publish6.leaf) / mib,
		blocks_bytes(&fib->publish6.line) / mib);
}

static void measure(struct table table, const char *title)
{
	struct complaint why;
	struct fib *fib = fib_create(&why);
	uint64_t start_ns = clock_now_ns();

	printf("%s\n", title);
	if (!fib || fib_change(fib, table.change, table.n, NULL, &why)) {
		printf("  %s\n", why.text);
		exit(1);
	}
	printf("  build: %.3f s\n", (clock_now_ns() - start_ns) / 1e9);
	print_memory(fib);
	print_cycles(fib, &table);
	print_changes(fib, &table);
	fib_destroy(fib);
	free_table(&table);
}

int main(int argc, char **argv)
{
	bool has_two_million = argc > 1 && !strcmp(argv[1], "2m");

	measure(make_one_route(4), "IPv4, 1 route");
	measure(make_table(4, 1), "IPv4, lengths of the global table");
	if (has_two_million)
		measure(make_table(4, 2), "IPv4, twice that");
	measure(make_one_route(6), "IPv6, 1 route");
	measure(make_table(6, 1), "IPv6, lengths of the global table");
	return 0;
}
