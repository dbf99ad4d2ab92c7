// What programs without devices write for `dl3 bench peers`: a thread that keeps one line of
// counters in the file that ONECORE_STATS names, as the one-core plugin does (onecore/onecore.c).
#pragma once

#include "base/bits.h"
#include "stats/stats.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

// Set by SIGINT and SIGTERM once samples_start was called; atomic, relaxed.
extern bool samples_stop;

struct samples {
	uint64_t done
		LINE_ALIGNED; // packets so far; written by the thread that is measured (stats_add)
	pthread_t thread;
	int file; // -1: none
};

// Starts the thread if ONECORE_STATS is set. 0, or -errno if the file or the thread cannot be made.
int samples_start(struct samples *samples);
// Ends it, after samples_stop was set.
void samples_end(struct samples *samples);
