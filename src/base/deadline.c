// Ends the program if a worker never returns or a device cannot be closed. A thread of its own.
#include "base/deadline.h"

#include "base/bits.h"
#include "base/clock.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_EVERY_NS = 100000000 };

// The state of a thread at a time.
struct sample {
	uint64_t now_ns, cpu_ns;
	bool is_blocked; // not ready to run, or it does not exist
};

static pid_t watched; // atomic, relaxed
static uint64_t limit_ns;
static const char *words;

// The state and the times of a thread: fields 3, 14 and 15 of proc_pid_stat(5).
static struct sample look_at(pid_t tid)
{
	struct sample sample = {.now_ns = clock_now_ns(), .is_blocked = true};
	const long ticks_per_s = sysconf(_SC_CLK_TCK);
	unsigned long user, system;
	char path[64], line[1024] = "", state;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	FILE *file = fopen(path, "r");
	if (!file)
		return sample;
	if (!fgets(line, sizeof(line), file))
		line[0] = 0;
	fclose(file);
	const char *name_end = strrchr(line, ')');
	if (name_end && sscanf(name_end + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu",
				&state, &user, &system) == 3) {
		sample.is_blocked = state != 'R';
		sample.cpu_ns = (user + system) * (1000000000 / ticks_per_s);
	}
	return sample;
}

// What the time between two samples counts. If this thread was itself kept from looking, it does
// not know what happened meanwhile.
static uint64_t count(const struct sample *before, const struct sample *after)
{
	uint64_t cpu_ns = after->cpu_ns > before->cpu_ns ? after->cpu_ns - before->cpu_ns : 0;
	uint64_t passed_ns = MIN_OF(after->now_ns - before->now_ns, 2ull * LOOK_EVERY_NS);

	return before->is_blocked && after->is_blocked ? MAX_OF(cpu_ns, passed_ns) : cpu_ns;
}

static void *watch(void *arg)
{
	const struct timespec pause = {.tv_nsec = LOOK_EVERY_NS};
	pid_t tid = __atomic_load_n(&watched, __ATOMIC_RELAXED);
	struct sample before = look_at(tid);

	for (uint64_t sum_ns = 0; sum_ns < limit_ns;) {
		nanosleep(&pause, NULL);
		pid_t next = __atomic_load_n(&watched, __ATOMIC_RELAXED);
		struct sample after = look_at(next);

		if (next && next == tid)
			sum_ns += count(&before, &after);
		before = after;
		tid = next;
	}
	if (write(STDERR_FILENO, words, strlen(words)) < 0)
		_exit(EXIT_FAILURE); // stderr is closed
	_exit(EXIT_FAILURE);
}

void deadline_start(unsigned seconds, const char *last_words)
{
	pthread_t thread;

	words = last_words;
	limit_ns = seconds * 1000000000ull;
	deadline_watch(gettid());
	if (pthread_create(&thread, NULL, watch, NULL))
		alarm(seconds); // no thread: SIGALRM ends the program
	else
		pthread_detach(thread);
}

void deadline_watch(pid_t tid)
{
	__atomic_store_n(&watched, tid, __ATOMIC_RELAXED);
}
