// Policers: token buckets that let packets pass at a rate, exactly on any number of workers
// (docs/internals/acl.md). Control thread.
#pragma once

#include "police/police_fast.h"

#define POLICE_LEAST_RATE 8000ull        // bit/s
#define POLICE_MOST_RATE 400000000000ull // bit/s
#define POLICE_MOST_BURST UINT32_MAX     // bytes

// To count packets, take each for a byte: 8 bit/s are one packet a second.
struct police_rate {
	uint64_t bits;  // a second, at most POLICE_MOST_RATE; 0: none but the first burst
	uint64_t burst; // bytes, at most POLICE_MOST_BURST
	uint64_t hz;    // ticks a second, 10 million to 10 billion
};

// A full bucket. No worker uses it yet.
void police_start(struct police *police, const struct police_rate *rate, uint64_t now);
// The rate from now on, for the next packet of each worker: tokens that are left remain, as far as
// the new burst has room for them, and none are added. Does nothing if the rate is the same. If it
// returns true, wait for a grace period of all workers before the next change.
bool police_change(struct police *police, const struct police_rate *rate, uint64_t now);
// Bytes of tokens that are left. Any thread.
uint64_t police_left(const struct police *police, uint64_t now);
