// Frames that arrive at a rate, in a receive ring of so many descriptors: what finds the ring full
// is lost. The rate seeks the zero-loss rate. A trial lasts 20 ms and begins with an empty ring; it
// is lossy when a frame was lost, or when after its end as much time again goes by in which never
// less than a quarter of the ring waits: then the forwarder falls behind. After a trial without
// loss the rate rises by a step, after a lossy one it falls by one. So it settles where half of the
// trials lose nothing, which is MLRsearch's exceed ratio of 0.5 (RFC 9971), and the mean rate over
// many trials is the figure; by what may wait at the end it can lie above what is forwarded: by 50
// * ring / 4 frames a second. Of one queue and its worker; times are those of the TSC.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	ARRIVALS_TRIALS_PER_SECOND = 50,
	// A step is this part of the rate, 1/4 first: half of the last one where the rate turns,
	// down to 1/256, and twice the last one after every four in one direction.
	ARRIVALS_FIRST_SHIFT = 2,
	ARRIVALS_LAST_SHIFT = 8,
	ARRIVALS_ALIKE = 4,
	ARRIVALS_BEHIND = 4, // this part of the ring
	ARRIVALS_FIRST_PPS = 1000 * 1000,
	ARRIVALS_RATE_BITS = 32, // below the point
	// A trial that took so many times its length was one of a stopped program: it says nothing.
	ARRIVALS_LONGEST = 8,
};

struct arrivals {
	uint64_t ring;  // descriptors
	uint64_t trial; // length of one, in ticks
	uint64_t rate;  // frames per tick, 32 bits of them below the point
	uint64_t began; // of the present trial, in ticks
	uint64_t came;  // in this trial, lost ones too
	uint64_t waiting;
	uint64_t lost; // in this trial
	bool has_lost; // the trial before
	uint8_t step_shift;
	uint32_t alike; // trials in a row that ended as the last one
};

// `ring` from 1 to 2^20 descriptors, `hz` the TSC's.
static inline void arrivals_begin(struct arrivals *arrivals, uint32_t ring, uint64_t hz,
	uint64_t now)
{
	*arrivals = (struct arrivals){
		.ring = ring,
		.trial = hz / ARRIVALS_TRIALS_PER_SECOND,
		.rate = ((uint64_t)ARRIVALS_FIRST_PPS << ARRIVALS_RATE_BITS) / hz,
		.began = now,
		.step_shift = ARRIVALS_FIRST_SHIFT,
	};
}

static inline bool arrivals_is_behind(const struct arrivals *arrivals)
{
	return arrivals->waiting > arrivals->ring / ARRIVALS_BEHIND;
}

static inline void arrivals_decide(struct arrivals *arrivals)
{
	bool has_lost = arrivals->lost || arrivals_is_behind(arrivals);
	bool turns = has_lost != arrivals->has_lost;

	arrivals->alike = turns ? 1 : arrivals->alike + 1;
	arrivals->has_lost = has_lost;
	if (turns && arrivals->step_shift < ARRIVALS_LAST_SHIFT)
		arrivals->step_shift++;
	if (arrivals->alike % ARRIVALS_ALIKE == 0 && arrivals->step_shift > ARRIVALS_FIRST_SHIFT)
		arrivals->step_shift--;
	uint64_t step = arrivals->rate >> arrivals->step_shift;

	arrivals->rate = has_lost ? arrivals->rate - step : arrivals->rate + step;
}

// Judges the trial that is over, and begins the next.
static inline void arrivals_next(struct arrivals *arrivals, uint64_t now)
{
	if (now - arrivals->began < ARRIVALS_LONGEST * arrivals->trial)
		arrivals_decide(arrivals);
	arrivals->began = now;
	arrivals->came = arrivals->waiting = arrivals->lost = 0;
}

// How many frames a poll at `now` finds, `most` at the most. The others of the ring wait.
static inline uint16_t arrivals_take(struct arrivals *arrivals, uint64_t now, uint16_t most)
{
	uint64_t passed = now - arrivals->began;

	if (passed < ARRIVALS_LONGEST * arrivals->trial) { // else the product might not fit
		uint64_t came = (passed * arrivals->rate) >> ARRIVALS_RATE_BITS;

		arrivals->waiting += came - arrivals->came;
		arrivals->came = came;
	}
	if (arrivals->waiting > arrivals->ring) {
		arrivals->lost += arrivals->waiting - arrivals->ring;
		arrivals->waiting = arrivals->ring;
	}
	uint16_t n = arrivals->waiting < most ? arrivals->waiting : most;

	arrivals->waiting -= n;
	if (passed >= arrivals->trial &&
		(!arrivals_is_behind(arrivals) || passed >= 2 * arrivals->trial))
		arrivals_next(arrivals, now);
	return n;
}
