// The part of policers that workers use: takes tokens from a bucket that any number of workers
// share. No function here allocates, locks or makes system calls.
#pragma once

#include "base/bits.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	POLICE_BURST = 64,      // packets that are judged at a time
	POLICE_UNIT_SHIFT = 16, // a byte has 1 << 16 units
	POLICE_TICK_SHIFT = 32, // of police_terms.per_tick
	POLICE_CLOCK_BITS = 63,
};

// A rate and a depth as workers compute with them; never changed while workers may read them.
struct police_terms {
	uint64_t per_tick; // units that become due in a tick, times 1 << POLICE_TICK_SHIFT
	uint64_t epoch;    // the tick at which the clock was 0
	uint64_t depth;    // units
};

// A token bucket as its theoretical arrival time (GCRA), counted in units, not in time: bucket and
// clock differ by the tokens that are left. Bit 0 of the word says which terms are in force, so
// that terms and tokens change at one instant; the clock is in the upper 63 bits and may overflow.
struct police {
	uint64_t word; // atomic
	struct police_terms terms[2];
	uint64_t owners; // whatever the owner keeps beside it; not used here
} LINE_ALIGNED;

// How packets get a colour. Except with one rate there are two buckets: `commit` and `excess`.
enum police_marker {
	POLICE_ONE_RATE, // green as long as `commit` has tokens, else red
	POLICE_RFC2697,  // one rate: what has no room in `commit` goes to `excess`, whose rate is 0
	POLICE_RFC2698,  // all packets take from `excess`, the peak rate; green ones from both
	POLICE_RFC4115,  // what `commit` does not let pass takes from `excess`
	POLICE_MARKERS,
};
enum police_colour { POLICE_GREEN, POLICE_YELLOW, POLICE_RED, POLICE_COLOURS };

// Packets that one pair of buckets judges, one after the other.
struct police_packets {
	const uint32_t *cost; // bytes
	unsigned n;           // at most POLICE_BURST
	uint64_t yellow, red; // a bit for each that has this colour already; colour-blind: 0
};

// A bit for each packet; the others are red.
struct police_colours {
	uint64_t green, yellow;
};

// What of a packet is counted.
struct police_measure {
	uint32_t most;       // bytes; longer packets never pass; 0: any
	uint16_t overhead;   // bytes that are added to each packet
	bool counts_packets; // a packet is one byte, whatever its length
};

// The bytes of which police_take needs tokens for a packet. Worker.
static inline uint32_t police_cost(const struct police_measure *measure, uint32_t bytes)
{
	return measure->counts_packets ? 1 : bytes + measure->overhead;
}

// Takes tokens for packets that need `cost` bytes each, one after the other, if there are enough:
// returns a bit for each of these. `n`: at most POLICE_BURST. `now`: in ticks, of about the same
// time on all workers; one that is behind gets fewer tokens, never more. A loop that no other
// thread can hold up: it is repeated only if another one has taken tokens. Worker.
uint64_t police_take(struct police *police, uint64_t now, const uint32_t cost[], unsigned n);
// Gives packets colours and takes the tokens for that, exactly on any number of workers as
// police_take. `excess`: not used with POLICE_ONE_RATE. Worker.
struct police_colours police_mark(enum police_marker marker, struct police *commit,
	struct police *excess, uint64_t now, const struct police_packets *packets);

// A bucket of its own with the same rate and tokens. Control thread, which alone changes terms.
static inline void police_copy(const struct police *from, struct police *to)
{
	to->word = __atomic_load_n(&from->word, __ATOMIC_RELAXED);
	to->terms[0] = from->terms[0];
	to->terms[1] = from->terms[1];
}
