// Which of the frames received are a stream's, and are they whole? Lane. Bytes of frames are
// hostile: nothing is read beyond the first segment's length, no field is an index unchecked.
#pragma once

#include "load/run.h"

#include <rte_mbuf.h>

enum { RECOGNISE_MAX = 64 };

// Whole frames of streams that end here, in the order in which they came. Dense.
struct whole {
	uint16_t n;
	uint8_t id[RECOGNISE_MAX] LINE_ALIGNED; // of the stream
	uint64_t sequence[RECOGNISE_MAX] LINE_ALIGNED;
	uint64_t due[RECOGNISE_MAX] LINE_ALIGNED, sent[RECOGNISE_MAX] LINE_ALIGNED;
	uint32_t bytes[RECOGNISE_MAX] LINE_ALIGNED; // with FCS
};

// What a lane asks about: `mbuf` are up to RECOGNISE_MAX frames received on port index `port`.
struct recognise {
	const struct sink *sink;
	struct sink_port *counters; // counts foreign, stale, misdirected
	struct rte_mbuf *const *mbuf;
	uint16_t n;
	uint8_t port;
};

// Finds headers and stamps: Ethernet, up to two VLAN tags, IPv4 without options or IPv6 without
// extension headers, UDP or TCP without options. Verifies lengths and all checksums of what is a
// stream's; what is not whole counts as corrupted.
void recognise(const struct recognise *r, struct whole *out);
