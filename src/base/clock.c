// Pairs of readings of two clocks. Control threads.
#include "base/clock.h"

enum { TRIES = 5 };

struct clock_pair clock_pair_take(uint64_t (*cycles)(void))
{
	struct clock_pair best = {0};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = cycles(), ns = clock_now_ns(), between = cycles() - before;

		if (between >= least)
			continue;
		least = between;
		best = (struct clock_pair){before + between / 2, ns};
	}
	return best;
}

uint64_t clock_ns_at(const struct clock_pair *first, const struct clock_pair *last, uint64_t cycles)
{
	int64_t span_ns = last->ns - first->ns, span = last->cycles - first->cycles;
	int64_t since = cycles - last->cycles;

	if (span <= 0)
		return last->ns;
	return last->ns + (int64_t)((__int128)since * span_ns / span);
}
