// Verdicts: the possible outcomes of a packet in the datapath. Rows come from schema/verdicts.toml.
// Any thread.
#pragma once

// Generated: SCHEMA_VERDICTS(ROW), SCHEMA_PORT_COUNTERS(ROW) etc., SCHEMA_METHODS(ROW).
#include "stats/words.h"

#include <stdbool.h>
#include <stdint.h>

#define VERDICT_ENUM(UPPER, lower, step, text) VERDICT_##UPPER,
enum verdict { SCHEMA_VERDICTS(VERDICT_ENUM) N_VERDICTS };
#undef VERDICT_ENUM

// Name used in counters and reports ("ttl_expired"); its description; the step that assigns it.
// NULL if >= N_VERDICTS.
const char *verdict_name(enum verdict verdict);
const char *verdict_text(enum verdict verdict);
const char *verdict_step(enum verdict verdict);

// Classes of packets punted to Linux, highest priority first. Rows come from schema/classes.toml.
#define CLASS_ENUM(UPPER, lower, rate, burst, forwards, text) CLASS_##UPPER,
enum punt_class { SCHEMA_CLASSES(CLASS_ENUM) N_CLASSES };
#undef CLASS_ENUM

// How a verdict's packets are handled if ports have TAP interfaces: a class, the class selected
// from their headers, or dropped.
enum { CLASS_CONTENT = 254, CLASS_NONE = 255 };
unsigned verdict_class(enum verdict verdict);

// The row of a class in schema/classes.toml. NULL if >= N_CLASSES.
struct class_row {
	const char *name, *text;
	uint32_t rate, burst; // frames/s, frames
	bool forwards;        // over the rate: forward instead of drop
};
const struct class_row *class_row(enum punt_class class);
