// Measures the distance of two cores: the time for a cache line to be passed there and back. Prints
// the median of many short rounds in nanoseconds: roundtrip CORE CORE. The main thread and one
// other, both pinned.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// LONGEST_S: after which there are no more rounds, since the two seldom have their cores together.
enum { ROUNDS = 101, TURNS_PER_ROUND = 500, WARM_UP_ROUNDS = 10, LONGEST_S = 5 };

// Even: our turn, odd: theirs. The only cache line that is passed.
static _Alignas(128) atomic_uint ball;
static int cores[2];

static int settle_on(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	return pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

// Each thread waits for the other's store (acquire) and makes its own (release): one turn is a
// round trip.
static void play(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i += 2) {
		while (atomic_load_explicit(&ball, memory_order_acquire) != i)
			;
		atomic_store_explicit(&ball, i + 1, memory_order_release);
	}
}

static void *answer(void *arg)
{
	(void)arg;
	settle_on(cores[1]); // main has already checked it
	play(1, 2 * ROUNDS * TURNS_PER_ROUND);
	return NULL;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

// A round disturbed by another program is an outlier, which the median excludes.
static double measure(void)
{
	static double found[ROUNDS];
	const double until = now_ns() + LONGEST_S * 1e9;
	unsigned n = 0;

	while (n < ROUNDS && (!n || now_ns() < until)) {
		double start = now_ns();
		unsigned from = 2 * n * TURNS_PER_ROUND;

		play(from, from + 2 * TURNS_PER_ROUND);
		found[n++] = (now_ns() - start) / TURNS_PER_ROUND;
	}
	const unsigned n_cold = n > WARM_UP_ROUNDS ? WARM_UP_ROUNDS : 0, n_left = n - n_cold;

	qsort(found + n_cold, n_left, sizeof(found[0]), ascending);
	return found[n_cold + n_left / 2];
}

static int core_error(int core, int error)
{
	fprintf(stderr, "roundtrip: cannot use core %d: %s\n", core, strerror(error));
	return 1;
}

int main(int argc, char *argv[])
{
	pthread_t thread;
	int error;

	if (argc != 3) {
		fprintf(stderr, "usage: roundtrip CORE CORE\n");
		return 2;
	}
	for (int i = 0; i < 2; i++)
		cores[i] = atoi(argv[1 + i]);
	// The main thread is pinned to each of the cores first, so that an invalid one is reported
	// before any thread waits.
	for (int i = 1; i >= 0; i--)
		if ((error = settle_on(cores[i])))
			return core_error(cores[i], error);
	if (cores[0] == cores[1])
		return core_error(cores[0], EINVAL);
	if ((error = pthread_create(&thread, NULL, answer, NULL)))
		return core_error(cores[1], error);
	printf("%.1f\n", measure());
	return 0; // ends the other thread, which may wait for a round that does not come
}
