// Simulates frames arriving at a rate in a receive ring with a limited number of descriptors:
// frames that find the ring full are lost. The rate is adapted to find the zero-loss rate. A trial
// lasts 20 ms and starts with an empty ring. It is lossy if a frame was lost, or if after its end
// the same time passes again without the ring ever falling below a quarter of its capacity, i.e. if
// the forwarder falls behind. The rate is increased by a step after a trial without loss, and
// decreased by one after a lossy trial. It thus settles where half of the trials have no loss,
// which is MLRsearch's exceed ratio of 0.5 (RFC 9971), and the result is the mean rate over many
// trials. Because of the frames that may be left at the end, it can exceed the forwarding rate by
// 50 * ring / 4 frames per second. For one queue and its worker; times are in TSC cycles.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	ARRIVALS_TRIALS_PER_SECOND = 50,
	// A step is this fraction of the rate, initially 1/4. It is halved when the direction
	// changes, down to 1/256, and doubled after every four trials in one direction.
	ARRIVALS_FIRST_SHIFT = 2,
	ARRIVALS_LAST_SHIFT = 8,
	ARRIVALS_ALIKE = 4,
	ARRIVALS_BEHIND = 4, // this fraction of the ring
	ARRIVALS_FIRST_PPS = 1000 * 1000,
	ARRIVALS_RATE_BITS = 32, // fraction bits of the rate
	// A trial that took this many times its length was interrupted by a stopped program: it is
	// ignored.
	ARRIVALS_LONGEST = 8,
};

struct arrivals {
	uint64_t ring;  // descriptors
	uint64_t trial; // length of a trial, in ticks
	uint64_t rate;  // frames per tick, with 32 fraction bits
	uint64_t began; // of the current trial, in ticks
	uint64_t came;  // in this trial, including lost frames
	uint64_t waiting;
	uint64_t lost; // in this trial
	bool has_lost; // the previous trial was lossy
	uint8_t step_shift;
	uint32_t alike; // consecutive trials with the same result as the last one
};

// `ring`: 1 to 2^20 descriptors; `hz`: frequency of the TSC.
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

// Evaluates the completed trial, and starts the next one.
static inline void arrivals_next(struct arrivals *arrivals, uint64_t now)
{
	if (now - arrivals->began < ARRIVALS_LONGEST * arrivals->trial)
		arrivals_decide(arrivals);
	arrivals->began = now;
	arrivals->came = arrivals->waiting = arrivals->lost = 0;
}

// The number of frames returned by a poll at `now`, at most `most`. The other frames stay in the
// ring.
static inline uint16_t arrivals_take(struct arrivals *arrivals, uint64_t now, uint16_t most)
{
	uint64_t passed = now - arrivals->began;

	if (passed < ARRIVALS_LONGEST * arrivals->trial) { // otherwise the product might overflow
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
