// Finds frames that belong to a stream and checks whether they are valid. Worker. Frame contents
// are untrusted: nothing is read past the first segment's length, no field is used as an index
// unchecked.
#pragma once

#include "gen/encap.h"
#include "gen/run.h"

#include <rte_mbuf.h>

enum {
	RECOGNISE_MAX = 64,
	RECOGNISE_LONG_BYTES = 60, // Ethernet, IPv4, UDP and the stamp
};

// Valid frames of streams that end here, in order of arrival. Dense.
struct whole {
	uint16_t n;
	uint8_t id[RECOGNISE_MAX] LINE_ALIGNED;   // of the stream
	uint8_t from[RECOGNISE_MAX] LINE_ALIGNED; // the number of the received frame
	uint64_t sequence[RECOGNISE_MAX] LINE_ALIGNED;
	uint64_t due[RECOGNISE_MAX] LINE_ALIGNED, sent[RECOGNISE_MAX] LINE_ALIGNED;
	uint32_t bytes[RECOGNISE_MAX] LINE_ALIGNED; // with FCS
};

// Input: up to RECOGNISE_MAX frames received on port index `port`.
struct recognise {
	const struct sink *sink;
	struct sink_port *counters; // counts foreign, stale and misdirected frames
	struct rte_mbuf **mbuf;
	uint16_t n;
	uint8_t port;
	bool is_long; // all frames have space for a stamp in UDP over IPv4, and one segment
	// For vectors of sixteen: entries from n on are copies of the first.
	const uint8_t *at[RECOGNISE_MAX] LINE_ALIGNED; // first byte of the Ethernet header
	uint32_t length[RECOGNISE_MAX] LINE_ALIGNED;   // without FCS
};

// Offsets of a frame's parts, derived from its headers. `identity`: magic and stream. Layers 3 and
// 4 are those of the packet with the stamp, also if it is encapsulated.
struct recognise_place {
	unsigned layer3, layer4, identity;
	bool is_ip6, is_tcp, has_segments;
};

// Finds headers and stamps: Ethernet, up to two VLAN tags, IPv4 without options or IPv6 without
// extension headers, UDP or TCP without options; also within one of the encapsulations of
// gen/encap.h. Verifies lengths and all checksums of stream frames; invalid ones are counted as
// corrupted.
typedef void recognise_fn(const struct recognise *r, struct whole *out);
recognise_fn recognise_scalar;
recognise_fn recognise_avx512; // requires AVX-512 F, BW, DQ, VL and VBMI
// Adds frame i to *out if it is a valid stream frame, otherwise counts it.
void recognise_one(const struct recognise *r, uint16_t i, struct whole *out);
// Finds the packet of a frame that has the stamp, or would have it; false: neither UDP nor TCP, or
// too short. *encap is what surrounds it.
bool recognise_find(const struct rte_mbuf *m, struct recognise_place *p, struct encap_found *encap);
// The fastest variant supported by CPU, build and EAL. Control thread.
recognise_fn *recognise_choose(void);
