// Gaps in a stream: the number after the last gap, and the longest outage. Worker; rarely called:
// only if frames did not arrive in order.
#pragma once

#include "gen/run.h"
#include "gen/window.h"

// The frames before `number` are missing: it was received at `now`, the one before the gap at
// `before` (0: none).
void gap_open(struct sink_counters *c, uint64_t number, uint64_t before, uint64_t now);
// `number`, which was missing, has arrived late. Finds the previous gap among the last 2^20
// numbers; if there is none, it may be older, and only an upper bound is kept.
void gap_fill(struct sink_counters *c, const struct window *w, uint64_t number);
