// Which of the frames received are a stream's, and are they whole? Lane. Bytes of frames are
// hostile: nothing is read beyond the first segment's length, no field is an index unchecked.
#pragma once

#include "load/run.h"

#include <rte_mbuf.h>

enum { RECOGNISE_MAX = 64 };

// Frames that carry the stamp of a stream that ends here; not verified yet. Dense.
struct stamped {
	uint16_t n;
	struct rte_mbuf *mbuf[RECOGNISE_MAX];
	struct sink_stream *stream[RECOGNISE_MAX];
	uint8_t layer3[RECOGNISE_MAX], layer4[RECOGNISE_MAX]; // where they begin in the frame
	bool is_ip6[RECOGNISE_MAX], is_tcp[RECOGNISE_MAX];
};

// Those of them that are whole. Dense.
struct whole {
	uint16_t n;
	struct sink_stream *stream[RECOGNISE_MAX];
	uint64_t sequence[RECOGNISE_MAX], due[RECOGNISE_MAX], sent[RECOGNISE_MAX];
	uint32_t bytes[RECOGNISE_MAX]; // with FCS
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
// extension headers, UDP or TCP without options.
void recognise(const struct recognise *r, struct stamped *out);
// Verifies lengths and all checksums, and reads the stamps; what is not whole counts as corrupted.
void recognise_verify(const struct stamped *in, struct whole *out);
