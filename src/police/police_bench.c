// What policing costs: police_bench prints the time per packet for bursts of 64 packets that share
// a bucket, that have two buckets, or one each; then for two threads with one bucket.
#include "police/police.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { N_BURSTS = 20000, N_ROUNDS = 15, PACKET = 64, MOST_BUCKETS = 1 << 16 };

static struct police bucket[MOST_BUCKETS];

// Bursts whose packets have `n_each` buckets, of `n` in all. Returns nanoseconds per packet.
static double run(unsigned n_each, unsigned n)
{
	const unsigned share = POLICE_BURST / n_each;
	const uint64_t began = clock_now_ns();
	uint32_t cost[POLICE_BURST];
	uint64_t passed = 0;

	for (unsigned i = 0; i < POLICE_BURST; i++)
		cost[i] = PACKET;
	for (unsigned burst = 0; burst < N_BURSTS; burst++)
		for (unsigned k = 0; k < n_each; k++) {
			const uint32_t which = (burst * n_each + k) * 2654435761u % n;

			passed += police_take(&bucket[which], began + burst * 100ull, cost, share);
		}
	if (!passed)
		abort();
	return (double)(clock_now_ns() - began) / N_BURSTS / POLICE_BURST;
}

static double best(unsigned n_each, unsigned n)
{
	double least = 1e9;

	for (unsigned round = 0; round < N_ROUNDS; round++) {
		const double now = run(n_each, n);

		least = MIN_OF(least, now);
	}
	return least;
}

static void *share_one(void *out)
{
	*(double *)out = best(1, 1);
	return NULL;
}

int main(void)
{
	const struct police_rate rate = {POLICE_MOST_RATE, POLICE_MOST_BURST, 1000000000};
	double ns[2];
	pthread_t thread[2];

	for (unsigned i = 0; i < MOST_BUCKETS; i++)
		police_start(&bucket[i], &rate, clock_now_ns());
	printf("one bucket per burst:   %.2f ns per packet\n", best(1, 1));
	printf("two buckets per burst:  %.2f ns per packet\n", best(2, 2));
	printf("one of 64 each:         %.2f ns per packet\n", best(64, 64));
	printf("one of 65,536 each:     %.2f ns per packet\n", best(64, MOST_BUCKETS));
	for (unsigned i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, share_one, &ns[i]))
			return 1;
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	printf("two threads, one bucket: %.2f and %.2f ns per packet\n", ns[0], ns[1]);
	return 0;
}
