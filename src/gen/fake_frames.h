// Stamped frames in hand-made mbufs, for tests and the benchmark: simple, slow, without a device.
#pragma once

#include "gen/run.h"
#include "wire/stamp.h"

#include <rte_mbuf.h>

enum { FAKE_ROOM = 10240, FAKE_HEADROOM = 128 };

// Two references, so that the sink's free leaves one and needs no pool.
struct fake_frame {
	struct rte_mbuf mbuf;
	uint8_t room[FAKE_ROOM] LINE_ALIGNED;
};

// A stream of UDP over IPv4 to port index 1, with 64-byte frames and one flow.
struct gen_stream fake_stream(uint8_t id);
// Builds a frame with valid lengths and checksums; stream->recipe and stream->encap determine the
// headers, frame_bytes includes the FCS.
void fake_frame_build(struct fake_frame *f, const struct gen_stream *stream,
	const struct stamp *stamp, unsigned frame_bytes);

// Makes arbitrary bytes that start like an untagged UDP or TCP packet, or like an encapsulated one,
// valid by setting lengths and checksums; leaves others unchanged.
void fake_repair(uint8_t *frame, unsigned n);

static inline uint8_t *fake_frame_bytes(struct fake_frame *f)
{
	return f->room + FAKE_HEADROOM;
}
