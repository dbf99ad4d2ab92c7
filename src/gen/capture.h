// The frames of a capture file, ready to be sent: padded to the least length, with the MAC
// addresses that were asked for, and where they may be stamped, with room for the stamp and sums of
// all else. Made by the control thread; read by one worker.
#pragma once

#include "base/error.h"
#include "gen/stream.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { CAPTURE_MAX_FRAMES = 1 << 22, CAPTURE_MAX_BYTES = 1 << 30 };

struct capture_frame {
	uint64_t at_ns; // since the first; never less than the one before
	uint64_t sum;   // stamped ones: of layer 4 and its pseudo header without stamp and checksum
	uint32_t offset;  // into bytes
	uint16_t n_bytes; // without FCS
	uint8_t layer4;   // where it begins; 0: not to be stamped
	bool is_tcp;
};

struct capture {
	struct gen_file file; // as it was before it was read, and afterwards
	uint32_t n;
	uint32_t n_stamped; // of them
	uint32_t longest;   // bytes without FCS
	uint64_t n_bytes;   // in all, without FCS
	uint64_t lap_ns;    // from the first frame to the first again; 0: all have the same time
	struct capture_frame *frame;
	uint8_t *bytes;
};

// Reads the file that the stream names, pcap or pcapng of Ethernet, which nobody may change
// meanwhile. 0, or -errno with one sentence without the stream's name. Owner: caller, capture_free,
// also after an error.
int capture_read(struct capture *out, const struct gen_stream *stream, struct error *error);
// The same of an open file, which is closed; `stream` tells what to write into the frames.
int capture_read_file(struct capture *out, FILE *file, const struct gen_stream *stream,
	struct error *error);
void capture_free(struct capture *capture);
// Makes room for a stamp in a frame if it has any: UDP or TCP without options, in IPv4 or IPv6
// without options, fragments and extension headers, behind at most two tags.
void capture_make_room(uint8_t *frame, struct capture_frame *target);
