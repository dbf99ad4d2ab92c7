// Frames as bytes: templates made once for each size, and the parts that vary written over them,
// with all checksums. Pure.
#pragma once

#include "base/bits.h"
#include "gen/stream.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	FRAME_LINE = 64,  // frames are copied in whole lines
	FRAME_SPARE = 16, // values that vector stores may write behind the last one
	FRAME_VALUES = GEN_MAX_BURST + FRAME_SPARE,
};

// The frames of one burst: where they go and what varies in them, one array for each part. All
// numbers in host order.
struct frame_values {
	unsigned n;                 // frames, at most GEN_MAX_BURST
	uint8_t *to[GEN_MAX_BURST]; // where they are written, in whole lines
	// enum gen_field_name: the last 32 bits of addresses, ports
	uint32_t field[GEN_N_FIELDS][FRAME_VALUES] LINE_ALIGNED;
	uint64_t due[FRAME_VALUES]; // TSC
	uint64_t sent;              // TSC, the same for all
	uint64_t sequence;          // of the first; the others follow
	const uint8_t *size;        // index of each frame's size
};

// The frame of one size with zeros where it varies, and the sums of what does not.
struct frame_size {
	uint8_t *bytes;   // n_lines * FRAME_LINE
	uint16_t n_bytes; // without FCS
	uint16_t n_lines;
	uint32_t ip_sum; // 16 bits, of words as they stand in memory
	uint32_t l4_sum; // with the pseudo header
};

// What all frames of a stream share. Read-only once made.
struct frame_form {
	bool is_ip6, is_tcp, has_macs;
	// Where in the frame: the last 32 bits of addresses, the stamp's two words and its tail.
	uint8_t ip_at, src_at, dst_at, l4_at, checksum_at, first_at, second_at, tail_at;
	uint64_t head; // of the stamp: magic and stream, above 40 bits of sequence
	unsigned n_sizes;
	struct frame_size sizes[GEN_MAX_SIZES];
};

// 0, -ENOMEM, or -EINVAL when the recipe makes no frame. frame_form_free also after an error.
int frame_form_make(struct frame_form *form, const struct gen_stream *stream, uint8_t run);
void frame_form_free(struct frame_form *form);
// Writes the frames. Worker.
void frame_build(const struct frame_form *form, const struct frame_values *values);
