// The thread that writes samples; not part of any program that forwards.
#include "stats/samples.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { WRITE_US = 100 * 1000, CALIBRATE_US = 50 * 1000 };

bool samples_stop;

static void end(int signal)
{
	__atomic_store_n(&samples_stop, true, __ATOMIC_RELAXED);
}

static unsigned long long core_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static unsigned long long calibrate(void)
{
	unsigned long long ns = clock_now_ns(), cycles = __rdtsc();

	usleep(CALIBRATE_US);
	cycles = __rdtsc() - cycles;
	return cycles * 1000000000ull / (clock_now_ns() - ns);
}

static void *write_samples(void *samples_)
{
	struct samples *samples = samples_;
	const unsigned long long tsc_hz = calibrate();
	char line[128];

	for (; !__atomic_load_n(&samples_stop, __ATOMIC_RELAXED); usleep(WRITE_US)) {
		const unsigned long long done = stats_read(&samples->done);
		const int n =
			snprintf(line, sizeof(line), "%020llu %020llu %020llu %020llu %020llu\n",
				(unsigned long long)clock_now_ns(), core_ns(), tsc_hz, done, done);

		if (pwrite(samples->file, line, n, 0) != n)
			end(0);
	}
	return NULL;
}

int samples_start(struct samples *samples)
{
	const char *path = getenv("ONECORE_STATS");
	int err;

	samples->done = 0;
	samples->file = -1;
	signal(SIGINT, end);
	signal(SIGTERM, end);
	if (!path)
		return 0;
	samples->file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (samples->file < 0)
		return -errno;
	err = pthread_create(&samples->thread, NULL, write_samples, samples);
	if (err) {
		close(samples->file);
		samples->file = -1;
	}
	return -err;
}

void samples_end(struct samples *samples)
{
	if (samples->file < 0)
		return;
	pthread_join(samples->thread, NULL);
	close(samples->file);
}
