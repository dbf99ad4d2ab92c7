// Measures rte_hash with the same keys: flow_bench_peers [EAL ARGUMENTS] -- [FLOWS...]. Bulk
// lookups of 64 uniformly random keys, all found. Prints only, never fails.
#include "base/clock.h"
#include "flow/testing.h"

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_memory.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BURST = 64, N_ROUNDS = 7, CHUNK_BURSTS = 32, N_CHUNKS = 512 };
enum { N_LOOKUPS = BURST * CHUNK_BURSTS * N_CHUNKS };

static struct flow_key4 *key;
static uint64_t n_found;

static double measure_chunk(const struct rte_hash *hash, unsigned chunk)
{
	const unsigned first = chunk * CHUNK_BURSTS * BURST;
	const uint64_t start = rte_rdtsc_precise();

	for (unsigned at = first; at < first + CHUNK_BURSTS * BURST; at += BURST) {
		const void *from[BURST];
		int32_t position[BURST];
		for (unsigned i = 0; i < BURST; i++)
			from[i] = &key[at + i];
		rte_hash_lookup_bulk(hash, from, BURST, position);
		for (unsigned i = 0; i < BURST; i++)
			n_found += position[i] >= 0;
	}
	return (double)(rte_rdtsc_precise() - start) / (CHUNK_BURSTS * BURST);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int add(struct rte_hash *hash, struct flow_key4 four)
{
	return rte_hash_add_key(hash, &four);
}

static void measure(uint32_t n_flows)
{
	static double cycles[N_ROUNDS * N_CHUNKS];
	const struct rte_hash_parameters parameters = {.name = "flows",
		.entries = n_flows + n_flows / 8,
		.key_len = sizeof(struct flow_key4),
		.hash_func = rte_hash_crc,
		.socket_id = SOCKET_ID_ANY};
	struct rte_hash *hash = rte_hash_create(&parameters);
	uint64_t start_ns = clock_now_ns();

	printf("rte_hash, %u IPv4 flows\n", n_flows);
	if (!hash) {
		printf("  not enough memory for it; give EAL more with -m\n");
		return;
	}
	for (uint32_t i = 0; i < n_flows; i++)
		if (add(hash, testing_key(4, i).four) < 0)
			printf("  NOT ADDED\n");
	const double s = (clock_now_ns() - start_ns) / 1e9;
	printf("  added in %.2f s, %.2f M/s\n", s, n_flows / s / 1e6);
	for (uint32_t i = 0; i < N_LOOKUPS; i++)
		key[i] = testing_key(4, testing_below(n_flows)).four;
	for (unsigned i = 0; i < N_ROUNDS * N_CHUNKS; i++)
		cycles[i] = measure_chunk(hash, i % N_CHUNKS);
	qsort(cycles, N_ROUNDS * N_CHUNKS, sizeof(*cycles), by_value);
	printf("  %.1f cycles per lookup (a quarter below %.1f, a quarter above %.1f)%s\n",
		cycles[N_ROUNDS * N_CHUNKS / 2], cycles[N_ROUNDS * N_CHUNKS / 4],
		cycles[N_ROUNDS * N_CHUNKS * 3 / 4],
		n_found == (uint64_t)N_ROUNDS * N_LOOKUPS ? "" : "; NOT ALL FOUND");
	n_found = 0;
	rte_hash_free(hash);
}

// With --no-huge EAL has ordinary memory: transparent huge pages for it, as our table has.
static int use_huge_pages(const struct rte_memseg_list *list, const struct rte_memseg *segment,
	size_t n_bytes, void *arg)
{
	madvise(segment->addr, n_bytes, MADV_HUGEPAGE);
	return 0;
}

int main(int argc, char **argv)
{
	int used = rte_eal_init(argc, argv);

	if (used < 0)
		return 1;
	rte_memseg_contig_walk(use_huge_pages, NULL);
	key = calloc(N_LOOKUPS, sizeof(*key));
	for (int i = used + 1; i < argc; i++)
		measure(strtoul(argv[i], NULL, 10));
	if (used + 1 >= argc) {
		measure(65536);
		measure(1048576);
	}
	free(key);
	return rte_eal_cleanup();
}
