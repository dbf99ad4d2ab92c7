// Measures DPDK's own tables with the same routes and destinations: fib_bench_peers [EAL
// ARGUMENTS]. Prints only, never fails.
#include "base/clock.h"
#include "fib/bench_table.h"
#include "fib/rib.h"

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_memory.h>
#include <stdio.h>
#include <stdlib.h>

enum { BURST = 64, N_ROUNDS = 7, CHUNK = 2048, N_CHUNKS = BENCH_DESTINATIONS / CHUNK };

struct peer {
	struct rte_fib *four;
	struct rte_fib6 *six;
	uint8_t (*dst6)[16];
};

static uint8_t *bytes_of(struct fib_key6 key, uint8_t bytes[16])
{
	for (unsigned i = 0; i < 8; i++) {
		bytes[i] = key.high >> (56 - 8 * i);
		bytes[8 + i] = key.low >> (56 - 8 * i);
	}
	return bytes;
}

static void add(struct peer *peer, const struct fib_change *change)
{
	struct rib_prefix prefix = rib_prefix_of(&change->route.prefix);
	uint64_t hop = change->route.hop.via.bytes[3];
	uint8_t bytes[16];
	const void *ip =
		bytes_of(prefix.key, bytes); // its type differs between DPDK 22.11 and 24.11
	int err = peer->four ? rte_fib_add(peer->four, prefix.key.high >> 32, prefix.len, hop)
	                     : rte_fib6_add(peer->six, ip, prefix.len, hop);

	if (err) {
		printf("  adding a route failed: %d\n", err);
		exit(1);
	}
}

static double measure_chunk(struct peer *peer, const struct bench_table *table, unsigned chunk)
{
	uint64_t hop[BURST], sum = 0, start = rte_rdtsc_precise();

	for (unsigned at = chunk * CHUNK; at < (chunk + 1) * CHUNK; at += BURST) {
		void *six = peer->dst6 + at;
		if (peer->four)
			rte_fib_lookup_bulk(peer->four, table->dst4 + at, hop, BURST);
		else
			rte_fib6_lookup_bulk(peer->six, six, hop, BURST);
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

static struct peer create(uint8_t family)
{
	struct rte_fib_conf four = {.type = RTE_FIB_DIR24_8,
		.max_routes = 2000000,
		.dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_2B, .num_tbl8 = 32767}};
	struct rte_fib6_conf six = {.type = RTE_FIB6_TRIE,
		.max_routes = 1000000,
		.trie = {.nh_sz = RTE_FIB6_TRIE_4B, .num_tbl8 = 650000}};
	struct peer peer = {0};

	if (family == 4)
		peer.four = rte_fib_create("peer4", SOCKET_ID_ANY, &four);
	else
		peer.six = rte_fib6_create("peer6", SOCKET_ID_ANY, &six);
	if (!peer.four && !peer.six) {
		printf("  not enough memory for it; give EAL more with -m\n");
		exit(1);
	}
	return peer;
}

static void measure(struct bench_table table, const char *title)
{
	static double cycles[N_ROUNDS * N_CHUNKS];
	struct peer peer = create(table.family);
	uint64_t start_ns = clock_now_ns();

	printf("%s\n", title);
	for (size_t i = 0; i < table.n; i++)
		add(&peer, &table.change[i]);
	printf("  build: %.3f s\n", (clock_now_ns() - start_ns) / 1e9);
	peer.dst6 = malloc(BENCH_DESTINATIONS * sizeof(*peer.dst6));
	for (size_t i = 0; i < BENCH_DESTINATIONS; i++)
		bytes_of(table.dst[i], peer.dst6[i]);
	for (unsigned i = 0; i < N_ROUNDS * N_CHUNKS; i++)
		cycles[i] = measure_chunk(&peer, &table, i % N_CHUNKS);
	qsort(cycles, N_ROUNDS * N_CHUNKS, sizeof(*cycles), by_value);
	printf("  %.1f cycles per lookup (a quarter below %.1f, a quarter above %.1f)\n",
		cycles[N_ROUNDS * N_CHUNKS / 2], cycles[N_ROUNDS * N_CHUNKS / 4],
		cycles[N_ROUNDS * N_CHUNKS * 3 / 4]);
	rte_fib_free(peer.four);
	rte_fib6_free(peer.six);
	free(peer.dst6);
	bench_table_free(&table);
}

int main(int argc, char **argv)
{
	if (rte_eal_init(argc, argv) < 0)
		return 1;
	measure(bench_table_one_route(4), "rte_fib (DIR24_8), IPv4, 1 route");
	measure(bench_table_make(4, 1), "rte_fib (DIR24_8), IPv4, lengths of the global table");
	measure(bench_table_one_route(6), "rte_fib6 (trie), IPv6, 1 route");
	measure(bench_table_make(6, 1), "rte_fib6 (trie), IPv6, lengths of the global table");
	return rte_eal_cleanup();
}
