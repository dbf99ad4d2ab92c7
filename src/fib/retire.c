// Grace periods, taken in batches. Control thread.
#include "fib/retire.h"

#include "fib/door.h"

static void free_now(struct retire *retire, struct retired what)
{
	if (what.kind == RETIRED_HOP)
		hops_reuse(retire->hops, what.first);
	else
		blocks_give(retire->pool[what.kind], what.first, what.n);
}

static void free_up_to(struct retire *retire, uint32_t end)
{
	while (retire->head != end)
		free_now(retire, retire->ring[retire->head++ % RETIRE_MAX]);
}

static void end_oldest(struct retire *retire)
{
	const struct retire_grace *grace = &retire->grace[retire->first_grace % RETIRE_MAX_GRACES];

	free_up_to(retire, grace->end);
	retire->first_grace++;
	retire->n_graces--;
}

static void wait_oldest(struct retire *retire)
{
	door_wait(retire->door, retire->grace[retire->first_grace % RETIRE_MAX_GRACES].token);
	end_oldest(retire);
}

void retire_close(struct retire *retire, bool now)
{
	if (!retire->door || retire->end == retire->tail)
		return;
	if (!now && retire->tail - retire->end < RETIRE_GRACE_BLOCKS)
		return;
	if (retire->n_graces == RETIRE_MAX_GRACES)
		wait_oldest(retire);
	uint32_t at = (retire->first_grace + retire->n_graces++) % RETIRE_MAX_GRACES;
	retire->grace[at] =
		(struct retire_grace){.token = door_token(retire->door), .end = retire->tail};
	retire->end = retire->tail;
	retire_tend(retire);
}

void retire_tend(struct retire *retire)
{
	while (retire->n_graces) {
		uint64_t token = retire->grace[retire->first_grace % RETIRE_MAX_GRACES].token;
		if (!door_has_passed(retire->door, token))
			return;
		end_oldest(retire);
	}
}

void retire_drain(struct retire *retire)
{
	retire_close(retire, true);
	while (retire->n_graces)
		wait_oldest(retire);
}

void retire_wait(struct retire *retire)
{
	if (retire->door)
		door_wait(retire->door, door_token(retire->door));
}

void retire_add(struct retire *retire, struct retired what)
{
	if (!retire->door) {
		free_now(retire, what);
		return;
	}
	if (retire_pending(retire) == RETIRE_MAX) {
		retire_close(retire, true);
		if (retire->n_graces) // else lanes have passed all of them already
			wait_oldest(retire);
	}
	retire->ring[retire->tail++ % RETIRE_MAX] = what;
}
