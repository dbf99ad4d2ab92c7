// When frames are due. Frame k of the schedule is due at start + k * period, in bursts of B at the
// time of the first of them; times have 64 bits of cycles and 32 bits of fraction, so that nothing
// drifts. Pure.
#pragma once

#include "gen/stream.h"

#include <stdbool.h>
#include <stdint.h>

// A point in time or a duration: cycles, and units of 2^-32 cycles.
struct pace_time {
	uint64_t cycles, fraction;
};

struct pace {
	struct pace_time due;  // of the next frame
	struct pace_time step; // from one burst to the next
	uint64_t long_gap;     // a delay below this makes no frame late
	uint64_t end;          // no frame is due from this time on
	uint64_t n_frames;     // in the whole schedule
	uint64_t left;         // of which are still to come
	uint64_t late;         // frames that were due but skipped
	uint32_t catch_up;     // maximum number of due frames to send, the most recent; older ones
	                       // are late
	uint16_t burst, left_of_burst;
	bool is_max; // no schedule: as fast as possible
};

// `hz`: cycles per second.
void pace_make(struct pace *pace, const struct gen_stream *stream, uint64_t hz);
// The first frame is due at `start`, none at or after `end` (0: no end).
void pace_begin(struct pace *pace, uint64_t start, uint64_t end);
// Number of frames due at `now`, at most GEN_MAX_BURST; due[] receives their times. They are
// consumed: they will not be due again. If more frames are due than the stream may catch up with,
// the oldest ones are late. Worker.
unsigned pace_take(struct pace *pace, uint64_t now, uint64_t due[]);
// The last `n` of them were not sent: they are late, or are still to be sent if there is no
// schedule. Worker.
void pace_refuse(struct pace *pace, unsigned n);
// No further frame will be due. Worker.
bool pace_is_over(const struct pace *pace, uint64_t now);
