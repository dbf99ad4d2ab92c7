// Measures lookups in the MAC table: mac_bench. Prints nanoseconds of CPU time and the TSC cycles
// of that time per address, and the bytes that workers read.
#include "mac/inside.h"

#include "base/clock.h"

#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 20000000, KEYS = 1 << 16 };

static uint64_t state = 88172645463325252ull;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t key_of(uint32_t number)
{
	const uint8_t mac[8] = {2, 0, number >> 24, number >> 16, number >> 8, number};

	return mac_key(1, mac);
}

static double cpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

// TSC cycles of a nanosecond.
static double measure_tsc(void)
{
	enum { FOR_NS = 50000000 };
	const uint64_t from_ns = clock_now_ns(), from = rte_rdtsc();

	while (clock_now_ns() - from_ns < FOR_NS)
		;
	return (double)(rte_rdtsc() - from) / (clock_now_ns() - from_ns);
}

static void measure(uint32_t n, double tsc_ghz)
{
	const uint64_t secret[4] = {next_random(), next_random() | 1, next_random(),
		next_random() | 1};
	struct mac_slots *slots = macs_alloc(n, secret);
	uint64_t *key = calloc(KEYS, sizeof(*key)), sum = 0;
	struct mac_found found[MAC_BURST];

	if (!slots || !key)
		exit(1);
	for (uint32_t i = 0; i < n; i++)
		if (!macs_add(slots, &(struct mac_slot){.key = key_of(i), .port = i % 250 + 1}))
			exit(1);
	for (unsigned i = 0; i < KEYS; i++)
		key[i] = key_of(next_random() % n);
	const double start_ns = cpu_now_ns();

	for (unsigned done = 0; done < ROUNDS; done += MAC_BURST) {
		mac_lookup(slots, &key[done % KEYS], MAC_BURST, found);
		sum += found[0].port;
	}
	const double ns = (cpu_now_ns() - start_ns) / ROUNDS;

	printf("addresses %7u: %5.1f ns, %5.1f cycles, %8.1f KiB (sum %llu)\n", n, ns, ns * tsc_ghz,
		mac_bytes(n) / 1024.0, (unsigned long long)sum);
	free(key);
	macs_free(slots);
}

int main(void)
{
	static const uint32_t sizes[] = {100, 4096, 65536, MAC_MAX};

	const double tsc_ghz = measure_tsc();

	for (unsigned i = 0; i < ARRAY_LEN(sizes); i++)
		measure(sizes[i], tsc_ghz);
	return 0;
}
