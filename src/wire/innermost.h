// What tells flows apart, also in tunnels: the innermost addresses and ports of a frame. Any
// thread, workers too; no state.
#pragma once

#include "wire/headers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// VLAN tags in front of a packet, and labels in front of one, that are walked; headers of all kinds
// that are walked in one frame.
enum { WIRE_INNERMOST_TAGS = 2, WIRE_INNERMOST_LABELS = 4, WIRE_INNERMOST_HEADERS = 12 };

// The whole struct is compared and hashed: what a frame does not have is 0.
struct wire_innermost {
	uint64_t address[4];   // source, then destination, as in the header; of a frame without a
	                       // readable IP packet: its MAC addresses
	uint32_t ports;        // as in the header; 0: none, not readable, or a fragment
	uint32_t labels;       // mixed; only those that no readable packet follows
	uint8_t family;        // 4, 6, or 0: no readable IP packet
	uint8_t protocol;      // of the packet; 0 of a fragment
	uint16_t ethertype_be; // only of family 0
	uint32_t unused;       // 0: no byte is left out
};

// Reads the innermost IP packet of a frame: behind up to two VLAN tags, in IPv4, IPv6, GRE, VXLAN
// (UDP port 4789), and behind up to four MPLS labels, of an Ethernet frame, of GRE, or of UDP port
// 6635. Fragments have no ports, and what they carry is not looked into, so that all fragments of a
// packet are alike. Where a header is not readable, the packet around it counts. `frame` may
// contain arbitrary bytes; nothing beyond the first `n` is read.
void wire_innermost_read(struct wire_innermost *out, const uint8_t *frame, size_t n);

// A hash whose upper bits are well mixed. Not the one of ECMP: a worker's flows are spread over all
// members of a group.
uint32_t wire_innermost_hash(const struct wire_innermost *key);
