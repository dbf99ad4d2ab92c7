// Hands runs over to workers and takes them back. Control thread.
#include "gen/inside.h"

#include "base/clock.h"

#include <errno.h>
#include <time.h>

enum { HAND_STEP_NS = 10000000 };

void hand_over(struct gen *load, struct run *run)
{
	run->older = load->current;
	__atomic_store_n(&load->current, run, __ATOMIC_RELEASE);
}

static int find_holder(const struct gen *load)
{
	for (unsigned i = 0; i < load->n_workers; i++)
		if (__atomic_load_n(&load->worker[i].held, __ATOMIC_ACQUIRE) != load->current)
			return i;
	return -1;
}

int hand_poll(struct gen *load)
{
	int worker = load->current->older ? find_holder(load) : -1;

	while (worker < 0 && load->current->older) {
		struct run *old = load->current->older;

		load->current->older = old->older;
		run_destroy(old);
	}
	return worker;
}

// Time since `last` during which this thread could run: if the whole machine was stopped (a VM that
// was migrated or suspended), the workers could not run either.
static uint64_t time_awake(uint64_t *last)
{
	const uint64_t now = clock_now_ns(), gap = now - *last;

	*last = now;
	return MIN_OF(gap, (uint64_t)HAND_STEP_NS);
}

int hand_await(struct gen *load, struct error *error)
{
	uint64_t last = clock_now_ns(), waited_ns = 0;
	int worker;

	while ((worker = hand_poll(load)) >= 0) {
		waited_ns += time_awake(&last);
		if (waited_ns > load->patience_s * 1000000000ull)
			return error_set(error, -EBUSY,
				"worker %d (core %d) has not come round for %u s, so nothing is "
				"sent; is its core taken? Give it a core of its own",
				worker, load->worker[worker].io->core, load->patience_s);
		nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	}
	return 0;
}
