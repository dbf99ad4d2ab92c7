// Measures the table: cycles per lookup, MiB that workers read, seconds to build, microseconds per
// change. Prints only, never fails.
#include "base/clock.h"
#include "fib/bench_table.h"
#include "fib/fib.h"
#include "fib/fib_fast.h"
#include "fib/lookup.h"
#include "fib/table.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BURST = 64, N_ROUNDS = 7, CHUNK = 2048, N_CHUNKS = BENCH_DESTINATIONS / CHUNK };

// One row of the comparison: a lookup and the cycles for each chunk of destinations.
struct row {
	lookup4_fn *four;
	lookup6_fn *six;
	lookup4_mixed_fn *mixed;
	const char *what;
	const char *variant;
	unsigned n;
	double cycles[N_ROUNDS * N_CHUNKS];
};

static double measure_chunk(const struct fib *fib, const struct bench_table *table,
	const struct row *row, unsigned chunk)
{
	const struct fib_view *view = vrf_view_of(fib, table->vrf[0]);
	uint32_t hop[BURST];
	uint64_t sum = 0, start = rte_rdtsc_precise();

	for (unsigned at = chunk * CHUNK; at < (chunk + 1) * CHUNK; at += BURST) {
		if (row->mixed)
			row->mixed(&fib->view, table->vrf, table->dst4 + at, hop, BURST);
		else if (row->four)
			row->four(view, table->dst4 + at, hop, BURST);
		else
			row->six(view, table->dst + at, hop, BURST);
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

// Alternates between the variants chunk by chunk, so that disturbances hit all of them alike.
static void print_cycles(const struct fib *fib, const struct bench_table *table)
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
		if (table->vrf[0]) {
			row[n_rows++] = (struct row){.four = variants[i].vrf4,
				.what = "one VRF",
				.variant = name};
			row[n_rows++] = (struct row){.mixed = variants[i].mixed4,
				.what = "by VRF of each",
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
static void print_changes(struct fib *fib, const struct bench_table *table)
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
	printf("  %u + %u routes; workers read %.1f MiB (IPv4 %.2f, IPv6 %.2f, next hops %.2f); "
	       "control %.1f MiB\n",
		usage.n_routes4, usage.n_routes6,
		(usage.worker_bytes4 + usage.worker_bytes6 + usage.worker_bytes_hops) / mib,
		usage.worker_bytes4 / mib, usage.worker_bytes6 / mib, usage.worker_bytes_hops / mib,
		usage.control_bytes / mib);
	printf("  IPv4 leaves %.2f, tails %.2f; IPv6 wide %.2f, leaves %.2f, lines %.2f MiB\n",
		blocks_bytes(&fib->publish4.leaf) / mib, publish4_tail_bytes(&fib->publish4) / mib,
		blocks_bytes(&fib->publish6.wide) / mib, blocks_bytes(&fib->publish6.leaf) / mib,
		blocks_bytes(&fib->publish6.line) / mib);
}

static void measure(struct bench_table table, const char *title)
{
	struct error error;
	struct fib *fib = fib_create(&error);
	uint64_t start_ns = clock_now_ns();

	printf("%s\n", title);
	if (!fib || (table.vrf[0] && fib_vrf_open(fib, table.vrf[0], &error)) ||
		fib_change(fib, table.change, table.n, NULL, &error)) {
		printf("  %s\n", error.text);
		exit(1);
	}
	printf("  build: %.3f s\n", (clock_now_ns() - start_ns) / 1e9);
	print_memory(fib);
	print_cycles(fib, &table);
	print_changes(fib, &table);
	fib_destroy(fib);
	bench_table_free(&table);
}

// The same in a VRF instead of the main table.
static struct bench_table in_vrf(struct bench_table table)
{
	for (size_t i = 0; i < ARRAY_LEN(table.vrf); i++)
		table.vrf[i] = 1;
	for (size_t i = 0; i < table.n; i++)
		table.change[i].route.vrf = table.vrf[0];
	return table;
}

int main(int argc, char **argv)
{
	bool has_two_million = argc > 1 && !strcmp(argv[1], "2m");

	measure(bench_table_one_route(4), "IPv4, 1 route");
	measure(bench_table_make(4, 1), "IPv4, lengths of the global table");
	if (has_two_million)
		measure(bench_table_make(4, 2), "IPv4, twice that");
	measure(in_vrf(bench_table_one_route(4)), "IPv4, 1 route in a VRF");
	measure(in_vrf(bench_table_make(4, 1)), "IPv4, lengths of the global table, in a VRF");
	measure(bench_table_one_route(6), "IPv6, 1 route");
	measure(bench_table_make(6, 1), "IPv6, lengths of the global table");
	return 0;
}
