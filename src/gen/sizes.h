// The order of frame sizes in a mix: a fixed round in which each size is spread evenly. Pure.
#pragma once

#include "gen/stream.h"

#include <stdint.h>

struct sizes {
	uint8_t *round;   // indices into sizes; the first GEN_MAX_BURST entries are repeated at the
	                  // end
	uint32_t n_round; // frames per round; 1 if there is one size
	uint32_t at;      // position of the next frame
};

// 0 or -ENOMEM. Call sizes_free also after an error.
int sizes_make(struct sizes *sizes, const struct gen_stream *stream);
void sizes_free(struct sizes *sizes);
// The indices of the next `n` frames (at most GEN_MAX_BURST). Worker.
const uint8_t *sizes_take(struct sizes *sizes, unsigned n);
// Moves to the frame with this sequence number, using a division. Worker, rarely called.
void sizes_seek(struct sizes *sizes, uint64_t sequence);
