// Deferred free with batched grace periods. Control thread.
#include "base/bits.h"
#include "rcu/rcu.h"

static struct rcu_grace *oldest(struct rcu_defer *defer)
{
	return &defer->grace[defer->first_grace % RCU_DEFER_GRACES];
}

// Frees at most so many blocks of the oldest grace period; returns how many.
static uint32_t free_oldest(struct rcu_defer *defer, uint32_t most)
{
	const uint32_t n = MIN_OF(oldest(defer)->end - defer->head, most);

	for (uint32_t i = 0; i < n; i++)
		defer->free(defer->ctx, defer->ring[defer->head++ % RCU_DEFER_MAX]);
	if (defer->head == oldest(defer)->end) {
		defer->first_grace++;
		defer->n_graces--;
	}
	return n;
}

static bool oldest_has_passed(struct rcu_defer *defer)
{
	return defer->n_graces && rcu_has_passed(defer->rcu, oldest(defer)->token);
}

static uint32_t most_of(const struct rcu_defer *defer)
{
	return defer->most ? defer->most : RCU_DEFER_MAX;
}

static void wait_oldest(struct rcu_defer *defer)
{
	rcu_wait(defer->rcu, oldest(defer)->token);
	free_oldest(defer, RCU_DEFER_MAX);
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

bool rcu_defer_poll(struct rcu_defer *defer)
{
	uint32_t left = most_of(defer);

	while (left && oldest_has_passed(defer))
		left -= free_oldest(defer, left);
	return !left && oldest_has_passed(defer);
}

void rcu_defer_free_some(struct rcu_defer *defer)
{
	if (!defer->n_graces)
		rcu_defer_close(defer, true);
	if (!defer->n_graces) // otherwise workers have passed all of them already
		return;
	rcu_wait(defer->rcu, oldest(defer)->token);
	free_oldest(defer, most_of(defer));
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
	if (rcu_defer_pending(defer) == RCU_DEFER_MAX)
		rcu_defer_free_some(defer);
	defer->ring[defer->tail++ % RCU_DEFER_MAX] = block;
}
