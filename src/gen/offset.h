// How far the TSCs of two workers are apart: they measure it themselves, by asking and answering
// through a cache line. Workers of both sides; the control thread reads.
#pragma once

#include "base/bits.h"

#include <stdbool.h>
#include <stdint.h>

enum { OFFSET_EXCHANGES = 64, OFFSET_PATIENCE_MS = 20 };

struct offset_pair {
	struct {
		uint64_t number;
	} LINE_ALIGNED question; // atomic; written by the worker that asks
	struct {
		uint64_t number, tsc;
	} LINE_ALIGNED answer;                  // atomic; written by the worker that answers
	unsigned sender LINE_ALIGNED, answerer; // workers
	uint64_t n_measured;                    // atomic; rounds that came to an end
	uint64_t largest;                       // atomic; cycles, of those rounds
	uint64_t n_before;                      // n_measured when the run began; control thread
};

// One round of the measurement, numbered from 1 on; each side calls its half, and gives up when the
// other does not come. `hz`: of the TSC. Worker.
void offset_ask(struct offset_pair *pair, uint64_t round, uint64_t hz);
void offset_answer(struct offset_pair *pair, uint64_t round, uint64_t hz);
