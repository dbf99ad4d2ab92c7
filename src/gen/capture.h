// Frames of a capture file, ready to be sent: padded to the minimum length, with the requested MAC
// addresses, and, if they can be stamped, with space for the stamp and checksums over everything
// else. Created by the control thread; read by one worker.
#pragma once

#include "base/error.h"
#include "gen/stream.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Limits include frames that are left out.
enum { CAPTURE_MAX_FRAMES = 1 << 22, CAPTURE_MAX_BYTES = 1 << 30 };

struct capture_frame {
	uint64_t at_ns;  // since the first frame; monotonic
	uint64_t sum;    // if stamped: of layer 4 and its pseudo header, without stamp and checksum
	uint32_t offset; // in `bytes`
	uint16_t n_bytes; // without FCS
	uint8_t layer4;   // its offset; 0: not stamped
	bool is_tcp;
};

struct capture {
	struct gen_file file; // its state before and after it was read
	uint32_t n;
	uint32_t n_stamped;  // of n_frames
	uint32_t longest;    // bytes without FCS
	uint64_t n_bytes;    // in all, without FCS
	uint64_t lap_ns;     // from the first frame to the first of the next lap; 0: all have the
	                     // same time
	uint32_t n_left_out; // frames of pcapng interfaces of other link types
	char left_out[GEN_TEXT_MAX]; // these interfaces
	struct capture_frame *frame;
	uint8_t *bytes;
};

// Reads the Ethernet frames of the file named by the stream, pcap or pcapng, which must not change
// meanwhile. A captured FCS is cut off if the file declares it.
// 0, or -errno with `error` set, without the stream's name. Owner: caller, capture_free, also after
// an error.
int capture_read(struct capture *out, const struct gen_stream *stream, struct error *error);
// Same for an open file, which is closed; `stream` says what to write into the frames.
int capture_read_file(struct capture *out, FILE *file, const struct gen_stream *stream,
	struct error *error);
void capture_free(struct capture *capture);
// Makes space for a stamp in a frame if possible: UDP or TCP without options, over IPv4 or IPv6
// without options, fragmentation or extension headers, after at most two VLAN tags.
void capture_make_room(uint8_t *frame, struct capture_frame *target);
