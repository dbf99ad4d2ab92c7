// What is counted of whole frames: which are new, how late they came. Worker.
#pragma once

#include "gen/recognise.h"
#include "gen/window.h"

// What the worker alone knows of a stream.
struct sink_window {
	uint64_t last_delay; // of the frame before, in cycles from its sending
	bool has_last;
	struct flows flows;   // where they do not come in turn and their order is judged
	struct window window; // its table of flows follows
} LINE_ALIGNED;

// Counts the frames of a burst that was received at `now`; uses up *frames.
void account(const struct sink *sink, struct whole *frames, uint64_t now);
