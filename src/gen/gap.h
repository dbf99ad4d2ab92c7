// Where a stream has gaps: behind which number the last one ends, and the longest time without a
// frame that was one. Worker; rarely: only where frames did not come in order.
#pragma once

#include "gen/run.h"
#include "gen/window.h"

// The frames before `number` did not come: it was received at `now`, the one before the gap at
// `before` (0: none was).
void gap_open(struct sink_counters *c, uint64_t number, uint64_t before, uint64_t now);
// `number`, which was missing, came after all. Finds the gap before it among the last 2^20 numbers;
// where there is none it may be an older one, of which only the most is known.
void gap_fill(struct sink_counters *c, const struct window *w, uint64_t number);
