// Deferred free with batched grace periods. Control thread.
#include "fib/defer.h"

#include "fib/rcu.h"

static void free_now(struct defer *defer, struct deferred what)
{
	if (what.kind == DEFERRED_HOP)
		hops_reuse(defer->hops, what.first);
	else
		blocks_give(defer->pool[what.kind], what.first, what.n);
}

static void free_up_to(struct defer *defer, uint32_t end)
{
	while (defer->head != end)
		free_now(defer, defer->ring[defer->head++ % DEFER_MAX]);
}

static void end_oldest(struct defer *defer)
{
	const struct defer_grace *grace = &defer->grace[defer->first_grace % DEFER_MAX_GRACES];

	free_up_to(defer, grace->end);
	defer->first_grace++;
	defer->n_graces--;
}

static void wait_oldest(struct defer *defer)
{
	rcu_wait(defer->rcu, defer->grace[defer->first_grace % DEFER_MAX_GRACES].token);
	end_oldest(defer);
}

void defer_close(struct defer *defer, bool now)
{
	if (!defer->rcu || defer->end == defer->tail)
		return;
	if (!now && defer->tail - defer->end < DEFER_GRACE_BLOCKS)
		return;
	if (defer->n_graces == DEFER_MAX_GRACES)
		wait_oldest(defer);
	uint32_t at = (defer->first_grace + defer->n_graces++) % DEFER_MAX_GRACES;
	defer->grace[at] =
		(struct defer_grace){.token = fib_rcu_start_grace(defer->rcu), .end = defer->tail};
	defer->end = defer->tail;
	defer_poll(defer);
}

void defer_poll(struct defer *defer)
{
	while (defer->n_graces) {
		uint64_t token = defer->grace[defer->first_grace % DEFER_MAX_GRACES].token;
		if (!fib_rcu_has_passed(defer->rcu, token))
			return;
		end_oldest(defer);
	}
}

void defer_drain(struct defer *defer)
{
	defer_close(defer, true);
	while (defer->n_graces)
		wait_oldest(defer);
}

void defer_wait(struct defer *defer)
{
	if (defer->rcu)
		rcu_wait(defer->rcu, fib_rcu_start_grace(defer->rcu));
}

void defer_add(struct defer *defer, struct deferred what)
{
	if (!defer->rcu) {
		free_now(defer, what);
		return;
	}
	if (defer_pending(defer) == DEFER_MAX) {
		defer_close(defer, true);
		if (defer->n_graces) // otherwise workers have passed all of them already
			wait_oldest(defer);
	}
	defer->ring[defer->tail++ % DEFER_MAX] = what;
}
