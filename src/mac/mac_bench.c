// Measures lookups in the MAC table: mac_bench. Prints nanoseconds and TSC cycles per address, and
// the bytes that workers read.
#include "mac/inside.h"

#include "base/clock.h"

#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>

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

static void measure(uint32_t n)
{
	const uint64_t secret[4] = {next_random(), next_random() | 1, next_random(),
		next_random() | 1};
	struct mac_slots *slots = slots_alloc(n, secret);
	uint64_t *key = calloc(KEYS, sizeof(*key)), sum = 0;
	struct mac_found found[MAC_BURST];

	if (!slots || !key)
		exit(1);
	for (uint32_t i = 0; i < n; i++)
		if (!slots_add(slots, &(struct mac_slot){.key = key_of(i), .port = i % 250 + 1}))
			exit(1);
	for (unsigned i = 0; i < KEYS; i++)
		key[i] = key_of(next_random() % n);
	const uint64_t start_ns = clock_now_ns(), start = rte_rdtsc();

	for (unsigned done = 0; done < ROUNDS; done += MAC_BURST) {
		mac_lookup(slots, &key[done % KEYS], MAC_BURST, found);
		sum += found[0].port;
	}
	const double ns = (double)(clock_now_ns() - start_ns) / ROUNDS;

	printf("addresses %7u: %5.1f ns, %5.1f cycles, %6.1f KiB (%llu)\n", n, ns,
		(double)(rte_rdtsc() - start) / ROUNDS, mac_bytes(n) / 1024.0,
		(unsigned long long)sum % 10);
	free(key);
	slots_free(slots);
}

int main(void)
{
	static const uint32_t sizes[] = {100, 4096, 65536, MAC_MAX};

	for (unsigned i = 0; i < ARRAY_LEN(sizes); i++)
		measure(sizes[i]);
	return 0;
}
