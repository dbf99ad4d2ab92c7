// Addresses and ports of each flow: two odometers, one that counts and one that scatters, advanced
// by additions only. Pure.
#pragma once

#include "gen/frame.h"
#include "gen/stream.h"

#include <stdint.h>

enum { FIELDS_STEPS = FRAME_SPARE };

// One varying field, as a digit of its odometer.
struct fields_digit {
	uint32_t value, count, first;
	uint32_t stride;                  // increment per step of the scattering odometer
	uint64_t reciprocal;              // of count
	uint8_t field;                    // enum gen_field_name
	uint32_t steps[FIELDS_STEPS + 1]; // this digit of the multiples of the stride
};

// The flows of a stream. Flow f has combination f mod C of the counting fields (C: number of
// combinations, first field fastest) and combination (f + f div lcm(C, R)) * stride mod R of the
// random fields, with stride and R coprime: thus C * R consecutive flows are distinct, and all
// values are equally frequent.
struct fields {
	unsigned n_counting, n_random;
	struct fields_digit counting[GEN_N_FIELDS], random[GEN_N_FIELDS];
	uint32_t n_flows;
	uint64_t round; // lcm(C, R); UINT64_MAX: more than the number of flows
	uint64_t round_reciprocal;
	uint32_t flow;    // of the next frame
	uint64_t to_skip; // flows until the scattering odometer makes an additional step
};

// The first value of a field, to which counting adds: the last 32 bits of an address, a port, an
// id.
uint32_t fields_first(const struct gen_stream *stream, unsigned field);
// Starts at flow 0.
void fields_make(struct fields *fields, const struct gen_stream *stream);
// Writes the values of constant fields to all entries of `values`; call once.
void fields_fill_fixed(const struct gen_stream *stream, struct frame_values *values);
// Writes the fields of the next `n` frames (at most GEN_MAX_BURST) to `values`. Worker.
void fields_fill(struct fields *fields, struct frame_values *values, unsigned n);
// Writes the fields of `n` frames (at most GEN_MAX_BURST) of arbitrary flows. The odometers are not
// changed. Worker.
void fields_fill_flows(const struct fields *fields, struct frame_values *values,
	const uint32_t flow[], unsigned n);
// Moves to a flow, using divisions. Worker, rarely called.
void fields_seek(struct fields *fields, uint32_t flow);
