// In which order the sizes of a mix come: a fixed round in which each size is spread evenly. Pure.
#pragma once

#include "gen/stream.h"

#include <stdint.h>

struct sizes {
	uint8_t *round;   // indices of sizes; its first GEN_MAX_BURST follow once more at its end
	uint32_t n_round; // frames of a round; 1 while there is one size
	uint32_t at;      // place of the next frame
};

// 0 or -ENOMEM. sizes_free also after an error.
int sizes_make(struct sizes *sizes, const struct gen_stream *stream);
void sizes_free(struct sizes *sizes);
// The indices of the next `n` frames (at most GEN_MAX_BURST). Worker.
const uint8_t *sizes_take(struct sizes *sizes, unsigned n);
// Goes to the frame with this sequence number, by a division. Worker, rarely.
void sizes_seek(struct sizes *sizes, uint64_t sequence);
