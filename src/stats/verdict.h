// The verdicts: how a packet can leave the walk. Rows come from schema/verdicts.toml. Any thread.
#pragma once

// Generated: SCHEMA_VERDICTS(ROW), SCHEMA_PORT_COUNTERS(ROW) and its kin, SCHEMA_METHODS(ROW).
#include "stats/words.h"

#include <stdbool.h>
#include <stdint.h>

#define VERDICT_ENUM(UPPER, lower, step, text) VERDICT_##UPPER,
enum verdict { SCHEMA_VERDICTS(VERDICT_ENUM) N_VERDICTS };
#undef VERDICT_ENUM

// The word in counters and reports ("ttl_expired"); its meaning; the step that gives it. NULL
// beyond N_VERDICTS.
const char *verdict_name(enum verdict verdict);
const char *verdict_text(enum verdict verdict);
const char *verdict_step(enum verdict verdict);

// The classes of packets for Linux, highest priority first. Rows come from schema/classes.toml.
#define CLASS_ENUM(UPPER, lower, rate, burst, forwards, text) CLASS_##UPPER,
enum punt_class { SCHEMA_CLASSES(CLASS_ENUM) N_CLASSES };
#undef CLASS_ENUM

// Where a verdict's packets go where ports have TAP interfaces: a class, the class that their
// headers call for, or nowhere (dropped).
enum { CLASS_CONTENT = 254, CLASS_NONE = 255 };
unsigned verdict_class(enum verdict verdict);

// What schema/classes.toml says of a class. NULL beyond N_CLASSES.
struct class_row {
	const char *name, *text;
	uint32_t rate, burst; // frames/s, frames
	bool forwards;        // over the rate: forwarded instead of dropped
};
const struct class_row *class_row(enum punt_class class);
