// When frames are due. Frame k of the schedule is due at start + k * period, in bursts of B at the
// time of the first of them; 64 bits of cycles and 32 of a cycle's fractions, so that nothing
// drifts. Pure.
#pragma once

#include "gen/stream.h"

#include <stdbool.h>
#include <stdint.h>

// A time or a span: cycles, and 2^-32 parts of a cycle.
struct pace_time {
	uint64_t cycles, fraction;
};

struct pace {
	struct pace_time due;  // of the next frame
	struct pace_time step; // from one burst to the next
	uint64_t long_gap;     // below so many cycles behind, no frame is late
	uint64_t end;          // nothing is due from here on
	uint64_t n_frames;     // of the whole schedule
	uint64_t left;         // of them: still to come
	uint64_t late;         // frames that were due and skipped
	uint32_t catch_up;     // so many of what is due are sent, the newest; older ones are late
	uint16_t burst, left_of_burst;
	bool is_max; // no schedule: as fast as can be
};

// `hz`: cycles in a second.
void pace_make(struct pace *pace, const struct gen_stream *stream, uint64_t hz);
// First frame due at `start`, none at or after `end` (0: no end).
void pace_begin(struct pace *pace, uint64_t start, uint64_t end);
// How many frames are due at `now`, at most GEN_MAX_BURST; due[] gets their times. They are the
// caller's: they will not be due again. When more than the stream may catch
// up with are due, the oldest of them
// are late. Worker.
unsigned pace_take(struct pace *pace, uint64_t now, uint64_t due[]);
// The last `n` of them were not sent after all: they are late, or are still to come where there is
// no schedule. Worker.
void pace_refuse(struct pace *pace, unsigned n);
// Nothing more will be due. Worker.
bool pace_is_over(const struct pace *pace, uint64_t now);
