// Deferred free with batched grace periods. Control thread.
#include "rcu/rcu.h"

static void free_up_to(struct rcu_defer *defer, uint32_t end)
{
	while (defer->head != end)
		defer->free(defer->ctx, defer->ring[defer->head++ % RCU_DEFER_MAX]);
}

static void end_oldest(struct rcu_defer *defer)
{
	const struct rcu_grace *grace = &defer->grace[defer->first_grace % RCU_DEFER_GRACES];

	free_up_to(defer, grace->end);
	defer->first_grace++;
	defer->n_graces--;
}

static void wait_oldest(struct rcu_defer *defer)
{
	rcu_wait(defer->rcu, defer->grace[defer->first_grace % RCU_DEFER_GRACES].token);
	end_oldest(defer);
}

void rcu_defer_close(struct rcu_defer *defer, bool now)
{
	if (!defer->rcu || defer->end == defer->tail)
		return;
	if (!now && defer->tail - defer->end < RCU_DEFER_BATCH)
		return;
	if (defer->n_graces == RCU_DEFER_GRACES)
		wait_oldest(defer);
	uint32_t at = (defer->first_grace + defer->n_graces++) % RCU_DEFER_GRACES;
	defer->grace[at] =
		(struct rcu_grace){.token = rcu_start_grace(defer->rcu), .end = defer->tail};
	defer->end = defer->tail;
	rcu_defer_poll(defer);
}

void rcu_defer_poll(struct rcu_defer *defer)
{
	while (defer->n_graces) {
		uint64_t token = defer->grace[defer->first_grace % RCU_DEFER_GRACES].token;
		if (!rcu_has_passed(defer->rcu, token))
			return;
		end_oldest(defer);
	}
}

void rcu_defer_drain(struct rcu_defer *defer)
{
	rcu_defer_close(defer, true);
	while (defer->n_graces)
		wait_oldest(defer);
}

void rcu_defer_wait(struct rcu_defer *defer)
{
	if (defer->rcu)
		rcu_wait(defer->rcu, rcu_start_grace(defer->rcu));
}

void rcu_defer_add(struct rcu_defer *defer, struct rcu_block block)
{
	if (!defer->rcu) {
		defer->free(defer->ctx, block);
		return;
	}
	if (rcu_defer_pending(defer) == RCU_DEFER_MAX) {
		rcu_defer_close(defer, true);
		if (defer->n_graces) // otherwise workers have passed all of them already
			wait_oldest(defer);
	}
	defer->ring[defer->tail++ % RCU_DEFER_MAX] = block;
}
