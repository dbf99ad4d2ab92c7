// What guests leave to those who forward their frames: checksums of TCP and UDP, and the
// segmentation of TCP. Where the headers of such a frame are, and the sizes and headers of its
// segments, as Linux makes them (tcp_gso_segment in net/ipv4/tcp_offload.c). Any thread, workers
// too; no state.
#pragma once

#include "wire/headers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The headers of a TCP or UDP packet in its frame: bytes from the start of the frame.
struct wire_layout {
	uint16_t l3_at, l4_at;
	uint16_t payload_at;
	uint32_t end;  // of the packet; padding or a trailer may follow
	uint8_t proto; // WIRE_PROTO_TCP or WIRE_PROTO_UDP
	bool is_ip6;
	bool has_extensions; // IPv6 extension headers
};

// Reads a frame of `n` bytes with up to two VLAN tags, of which the first `contiguous` may be read.
// False: it is no TCP or UDP packet, it is a fragment, its lengths do not fit each other, or its
// headers are not in the contiguous bytes.
bool wire_layout_read(struct wire_layout *out, const uint8_t *frame, size_t contiguous, size_t n);

// The offset of the checksum in the frame.
static inline uint16_t wire_layout_checksum_at(const struct wire_layout *layout)
{
	return layout->l4_at + (layout->proto == WIRE_PROTO_TCP
					       ? offsetof(struct wire_tcp, checksum_be)
					       : offsetof(struct wire_udp, checksum_be));
}

// The sum of the pseudo header for the whole packet, not folded (checksum.h).
uint64_t wire_layout_pseudo_sum(const struct wire_layout *layout, const uint8_t *frame);

// How one TCP packet is cut.
struct wire_segments {
	uint32_t n;
	uint16_t each_bytes; // payload of all segments but the last one
	uint16_t last_bytes;
};

// Plans segments of `size` bytes of payload, at least 1, for a TCP packet with payload.
void wire_segments_plan(struct wire_segments *plan, const struct wire_layout *layout,
	uint16_t size);

// The payload of segment i.
static inline uint16_t wire_segment_bytes(const struct wire_segments *plan, uint32_t i)
{
	return i + 1 < plan->n ? plan->each_bytes : plan->last_bytes;
}

// Writes layout->payload_at bytes at `to`: all headers of segment i of `frame`, with checksums.
// `payload_sum`: that of the segment's payload (wire_sum). `to` must not overlap the frame.
void wire_segment_headers(const struct wire_layout *layout, const struct wire_segments *plan,
	uint32_t i, const uint8_t *frame, uint8_t *to, uint64_t payload_sum);
