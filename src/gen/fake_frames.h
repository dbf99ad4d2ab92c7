// Stamped frames in mbufs of our own making, for tests and the benchmark: plain, slow, no device.
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

// A stream of UDP over IPv4 to port index 1, of 64-byte frames, one flow.
struct gen_stream fake_stream(uint8_t id);
// Builds the frame with right lengths and checksums; stream->recipe decides about headers,
// frame_bytes is with FCS.
void fake_frame_build(struct fake_frame *f, const struct gen_stream *stream,
	const struct stamp *stamp, unsigned frame_bytes);

// Makes any bytes that begin like an untagged UDP or TCP packet one with right lengths and
// checksums; leaves others alone.
void fake_repair(uint8_t *frame, unsigned n);

static inline uint8_t *fake_frame_bytes(struct fake_frame *f)
{
	return f->room + FAKE_HEADROOM;
}
