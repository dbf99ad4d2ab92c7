// Builds frames: templates made once per size, over which the varying parts are written, with all
// checksums. Pure.
#pragma once

#include "base/bits.h"
#include "gen/encap.h"
#include "gen/stream.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	FRAME_LINE = 64,  // frames are copied in whole cache lines
	FRAME_SPARE = 16, // values that vector stores may write past the last one
	FRAME_VALUES = GEN_MAX_BURST + FRAME_SPARE,
};

// The frames of one burst: where they are written and what varies, one array per part. All numbers
// in host order.
struct frame_values {
	unsigned n;                 // frames, at most GEN_MAX_BURST
	uint8_t *to[GEN_MAX_BURST]; // destinations, written in whole cache lines
	// enum gen_field_name: the last 32 bits of addresses, ports, ids
	uint32_t field[GEN_N_FIELDS][FRAME_VALUES] LINE_ALIGNED;
	uint64_t due[FRAME_VALUES]; // TSC
	uint64_t sent;              // TSC, same for all frames
	uint64_t sequence;          // of the first frame; the others follow
	const uint8_t *size;        // index into sizes, per frame
};

// A frame of one size with zeros in the varying parts, and the checksums of the rest.
struct frame_size {
	uint8_t *bytes;   // n_lines * FRAME_LINE
	uint16_t n_bytes; // without FCS
	uint16_t n_lines;
	uint32_t ip_sum;    // 16 bits, of words in memory order
	uint32_t l4_sum;    // including the pseudo header
	uint32_t outer_sum; // of the outer UDP datagram, including the pseudo header
};

// Common to all frames of a stream. Read-only once created.
struct frame_form {
	bool is_ip6, is_tcp, has_macs;
	// Offsets in the frame: the last 32 bits of addresses, the stamp's two words and its tail.
	uint8_t ip_at, src_at, dst_at, l4_at, checksum_at, first_at, second_at, tail_at;
	uint64_t head; // of the stamp: magic and stream, above the 40-bit sequence number
	struct encap_form encap;
	unsigned n_sizes;
	struct frame_size sizes[GEN_MAX_SIZES];
};

// 0, -ENOMEM, or -EINVAL if the recipe is invalid. Call frame_form_free also after an error.
int frame_form_make(struct frame_form *form, const struct gen_stream *stream, uint8_t run);
void frame_form_free(struct frame_form *form);
// Writes the frames. Worker.
void frame_build(const struct frame_form *form, const struct frame_values *values);
