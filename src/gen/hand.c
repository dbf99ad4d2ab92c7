// Hands runs over to workers and takes them back. Control thread.
#include "gen/inside.h"

#include "base/clock.h"

#include <errno.h>
#include <time.h>

enum { HAND_STEP_NS = 10000000 };

void hand_over(struct gen *gen, struct run *run)
{
	run->older = gen->current;
	__atomic_store_n(&gen->current, run, __ATOMIC_RELEASE);
}

static int find_holder(const struct gen *gen)
{
	for (unsigned i = 0; i < gen->n_workers; i++)
		if (__atomic_load_n(&gen->worker[i].held, __ATOMIC_ACQUIRE) != gen->current)
			return i;
	return -1;
}

int hand_poll(struct gen *gen)
{
	int worker = gen->current->older ? find_holder(gen) : -1;

	while (worker < 0 && gen->current->older) {
		struct run *old = gen->current->older;

		gen->current->older = old->older;
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

int hand_await(struct gen *gen, struct error *error)
{
	uint64_t last = clock_now_ns(), waited_ns = 0;
	int worker;

	while ((worker = hand_poll(gen)) >= 0) {
		waited_ns += time_awake(&last);
		if (waited_ns > gen->patience_s * 1000000000ull)
			return error_set(error, -EBUSY,
				"worker %d (core %d) has not completed a loop for %u s, so nothing "
				"is sent; another thread may occupy its core: give the worker a "
				"core of its own",
				worker, gen->worker[worker].io->core, gen->patience_s);
		nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	}
	return 0;
}
