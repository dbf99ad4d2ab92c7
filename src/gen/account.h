// Counters of valid frames: which ones are new, and their latency. Worker.
#pragma once

#include "gen/recognise.h"
#include "gen/window.h"

// State of a stream used only by the worker.
struct sink_window {
	uint64_t last_delay; // of the previous frame, in cycles since it was sent
	bool has_last;
	struct flows flows;   // if flows are not sequential and their order is checked
	struct window window; // followed by its flow table
} LINE_ALIGNED;

// Counts the frames of a burst received at `now`; modifies *frames.
void account(const struct sink *sink, struct whole *frames, uint64_t now);
