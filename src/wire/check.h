// Determines which frames a router may forward at all: the reference for the workers' fast checks,
// and the implementation of their slow path. Any thread, workers too; no state.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Each is the verdict of the same name in schema/verdicts.toml, in the order of the checks (RFC
// 1812 5.2.2; version and lengths are checked before the checksum, which depends on them).
enum wire_fault {
	WIRE_OK,
	WIRE_RUNT,
	WIRE_MULTI_SEGMENT, // a header is in the frame, but not in its contiguous part
	WIRE_ARP,
	WIRE_VLAN,
	WIRE_ETHERTYPE,
	WIRE_IP4_VERSION,
	WIRE_IP4_HEADER_LENGTH,
	WIRE_IP4_LENGTH,
	WIRE_IP4_CHECKSUM,
	WIRE_IP4_OPTIONS,
	WIRE_IP6_VERSION,
	WIRE_IP6_LENGTH,
	WIRE_IP6_HOP_BY_HOP,
	WIRE_MARTIAN_SOURCE,
	WIRE_LINK_LOCAL_SOURCE,
	N_WIRE_FAULTS
};

struct wire_check_rules {
	bool verify_ip4_checksum; // false: the device has verified it
	bool pass_martians;       // accept any source address except link-local ones
};

// Checks an IPv4 or IPv6 packet of `packet_bytes`, of which the first `contiguous_bytes` are
// readable, and whatever follows it among them. Returns as wire_check does.
enum wire_fault wire_check_packet(const uint8_t *packet, bool is_ip6, size_t contiguous_bytes,
	size_t packet_bytes, const struct wire_check_rules *rules);

// Checks a frame without FCS; only the first `contiguous_bytes` of `frame_bytes` are readable at
// `frame`. Destination addresses, MAC and IP, are left to the caller. Returns the first fault
// found, or WIRE_OK.
enum wire_fault wire_check(const uint8_t *frame, size_t contiguous_bytes, size_t frame_bytes,
	const struct wire_check_rules *rules);
