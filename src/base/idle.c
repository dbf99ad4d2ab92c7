// Decides when a worker sleeps, and for how long. Worker.
#include "base/idle.h"

#include <sys/prctl.h>

void idle_start(struct idle *idle, bool may_sleep, uint64_t hz, uint64_t now)
{
	const uint64_t us = hz / 1000000;

	*idle = (struct idle){.last_busy = now, .hz = hz};
	if (!may_sleep || !us)
		return;
	idle->spin = IDLE_SPIN_US * us;
	idle->least = IDLE_LEAST_US * us;
	idle->blind = IDLE_BLIND_US * us;
	idle->most = IDLE_MOST_US * us;
	idle->late = IDLE_LATE_US * us;
	prctl(PR_SET_TIMERSLACK, 1ul); // otherwise Linux adds 50 us; if this fails, it still does
}

uint64_t idle_length(const struct idle *idle, uint64_t now, bool is_woken)
{
	if (!idle_is_due(idle, now))
		return 0;
	if (is_woken)
		return idle->most;
	uint64_t share = (now - idle->last_busy) / IDLE_SHARE;

	return MIN_OF(MAX_OF(share, idle->least), idle->blind);
}

uint64_t idle_ns(const struct idle *idle, uint64_t cycles)
{
	return cycles * 1000 / MAX_OF(idle->hz / 1000000, 1ull);
}

uint64_t idle_intended(const struct idle *idle, uint64_t asked, uint64_t slept)
{
	return MIN_OF(slept, asked + idle->late);
}
