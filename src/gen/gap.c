// Keeps track of a stream's gaps. Worker.
#include "gen/gap.h"

void gap_open(struct sink_counters *c, uint64_t number, uint64_t before, uint64_t now)
{
	stats_set(&c->gap_end, number);
	if (before && now > before && now - before > c->longest_outage)
		stats_set(&c->longest_outage, now - before);
}

// The highest missing number below `from`, plus one.
static uint64_t find_missing(const struct window *w, uint64_t from)
{
	uint64_t oldest = w->next > WINDOW_NUMBERS ? w->next - WINDOW_NUMBERS : 0;

	while (from > oldest) {
		uint64_t number = from - 1;
		uint64_t missing = ~w->seen[number / 64 % WINDOW_WORDS] << (63 - number % 64);

		if (missing)
			return from - __builtin_clzll(missing);
		from = number / 64 * 64;
	}
	return oldest;
}

void gap_fill(struct sink_counters *c, const struct window *w, uint64_t number)
{
	if (!w->missing)
		stats_set(&c->gap_end, 0);
	else if (number + 1 == c->gap_end)
		stats_set(&c->gap_end, find_missing(w, number));
}
