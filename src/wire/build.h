// Builds complete frames with correct lengths and checksums, for tests and for the generator. Any
// thread; no state.
#pragma once

#include "wire/addr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// All fields are used as given, numbers in host order; start from wire_recipe.
struct wire_recipe {
	struct wire_mac src_mac, dst_mac;
	bool has_vlan;
	uint16_t vlan_tag;         // priority, drop eligible, id
	struct wire_addr src, dst; // of the same family, which selects IPv4 or IPv6
	uint8_t ttl;               // hop limit in IPv6
	uint8_t dscp_ecn;          // traffic class in IPv6
	uint8_t protocol; // WIRE_PROTO_UDP, _TCP, _ICMP4, _ICMP6; others get only a payload
	uint16_t src_port, dst_port; // or identifier and sequence number of an ICMP echo
	size_t frame_bytes;          // total, without FCS
	size_t padding_bytes;        // how many of them are padding after the packet
};

// A UDP packet of `family` (4 or 6) between documentation addresses, TTL 64, in a frame of 60
// (IPv4) or 62 bytes.
struct wire_recipe wire_recipe(uint8_t family);

// Writes recipe->frame_bytes bytes to `frame`, whose capacity is `room` bytes. The payload is 0, 1,
// 2 and so on; padding is 0. -EINVAL: the families differ, or the frame is too short for its
// headers or too long for the length fields; -ENOSPC: `room` is too small. Nothing is written then.
int wire_build(const struct wire_recipe *recipe, uint8_t *frame, size_t room);
