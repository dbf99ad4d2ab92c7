// Measures the TSC offset of two workers: they exchange requests and replies through a cache line.
// Workers of both sides; results are read by the control thread.
#pragma once

#include "base/bits.h"

#include <stdbool.h>
#include <stdint.h>

enum { OFFSET_EXCHANGES = 64, OFFSET_PATIENCE_MS = 20 };

struct offset_pair {
	struct {
		uint64_t number;
	} LINE_ALIGNED question; // atomic; written by the requesting worker
	struct {
		uint64_t number, tsc;
	} LINE_ALIGNED answer;                  // atomic; written by the replying worker
	unsigned sender LINE_ALIGNED, answerer; // worker indices
	uint64_t n_measured;                    // atomic; completed rounds
	uint64_t largest;                       // atomic; cycles, over these rounds
	uint64_t n_before;                      // n_measured at the start of the run; control
	                                        // thread
};

// One round of the measurement, numbered from 1; each side calls its half, and gives up if the
// other one does not respond. `hz`: of the TSC. Worker.
void offset_ask(struct offset_pair *pair, uint64_t round, uint64_t hz);
void offset_answer(struct offset_pair *pair, uint64_t round, uint64_t hz);
