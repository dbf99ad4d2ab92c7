// Selects the flow of each frame: a pure function of the stream's distribution, its seed and the
// frame's number, so that the receiver can compute it, too. Worker; creation: control thread.
#pragma once

#include "base/error.h"
#include "gen/stream.h"

#include <stdint.h>

// Neighbouring ranks with nearly the same share, and others that fill up this entry of the alias
// table (Walker 1977, Vose 1991). A rank is a flow, the most frequent one is 0.
struct flows_bin {
	uint32_t threshold;    // below it the bin's own ranks, otherwise the others; units of 2^-32
	uint32_t first, other; // ranks
	uint16_t width, other_width;
};

struct flows {
	uint8_t kind; // enum gen_distribution
	uint32_t n;
	uint64_t seed, reciprocal;
	uint32_t n_bins;       // 0 unless kind is GEN_ZIPF; at most 16384, whatever the number of
	                       // flows
	struct flows_bin *bin; // owned
};

// 0, or -ENOMEM with `error` set. Call flows_free also after an error. Control thread.
int flows_make(struct flows *flows, const struct gen_stream *stream, struct error *error);
void flows_free(struct flows *flows);
// Writes the flows of `n` frames starting at `number`, at most GEN_MAX_BURST. Worker.
void flows_fill(const struct flows *flows, uint64_t number, uint32_t flow[], unsigned n);
// The flow of one frame; `number` is below 2^47. Worker.
uint32_t flows_of(const struct flows *flows, uint64_t number);
