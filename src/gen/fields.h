// Which flow has which addresses and ports: two odometers, one that counts and one that scatters,
// stepped by additions alone. Pure.
#pragma once

#include "gen/frame.h"
#include "gen/stream.h"

#include <stdint.h>

enum { FIELDS_STEPS = FRAME_SPARE };

// One field that varies, as a digit of its odometer.
struct fields_digit {
	uint32_t value, count, first;
	uint32_t stride;                  // what a step adds, in the odometer that scatters
	uint64_t reciprocal;              // of count
	uint8_t field;                    // enum gen_field_name
	uint32_t steps[FIELDS_STEPS + 1]; // this digit of so many strides
};

// A stream's flows. Flow f has the counting fields' combination number f mod C (C: how many they
// have, the first field fastest) and the random fields' combination number
// (f + f div lcm(C, R)) * stride mod R, stride and R without common divisor: so C * R flows in a
// row are distinct, and each value is met equally often.
struct fields {
	unsigned n_counting, n_random;
	struct fields_digit counting[GEN_N_FIELDS], random[GEN_N_FIELDS];
	uint32_t n_flows;
	uint64_t round; // lcm(C, R); UINT64_MAX: longer than there are flows
	uint64_t round_reciprocal;
	uint32_t flow;    // of the next frame
	uint64_t to_skip; // flows until the odometer that scatters takes one step more
};

// Stands at flow 0.
void fields_make(struct fields *fields, const struct gen_stream *stream);
// Writes the values of fields that do not vary to all places of `values`; once.
void fields_fill_fixed(const struct gen_stream *stream, struct frame_values *values);
// Writes the fields of the next `n` frames (at most GEN_MAX_BURST) to `values`. Worker.
void fields_fill(struct fields *fields, struct frame_values *values, unsigned n);
// Writes the fields of `n` frames (at most GEN_MAX_BURST) of any flows. The odometers stand.
// Worker.
void fields_fill_flows(const struct fields *fields, struct frame_values *values,
	const uint32_t flow[], unsigned n);
// Goes to a flow, by divisions. Worker, rarely.
void fields_seek(struct fields *fields, uint32_t flow);
