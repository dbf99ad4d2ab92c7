// What boxes on a link ask and tell about each other's MAC addresses: ARP requests and replies (RFC
// 826), neighbour solicitations and advertisements (RFC 4861), with or without a VLAN tag. Bytes
// are hostile. Any thread; no state.
#pragma once

#include "wire/addr.h"
#include "wire/headers.h"

#include <string.h>

enum { WIRE_NEIGHBOUR_BYTES = 14 + 4 + 40 + 32 }; // the longest that is built

// One question or answer. The families of both addresses are the same and choose between ARP and
// ND.
struct wire_neighbour {
	bool is_reply, has_vlan;
	uint16_t vlan_tag;
	struct wire_addr target;   // what is asked for or told of
	struct wire_mac about_mac; // of answers
	struct wire_addr sender;   // who asks or is told; all zeros: has no address yet
	struct wire_mac asker_mac;
};

// Reads a frame without FCS. 0, or -EINVAL: it is none, or breaks a rule that its RFC wants checked
// (lengths, hop limit 255, checksum, options, group addresses).
int wire_neighbour_read(const uint8_t *frame, size_t n, struct wire_neighbour *out);
// Writes the frame, without FCS and padding, to WIRE_NEIGHBOUR_BYTES bytes; returns how many. A
// question goes to all (ARP) or to those that may have the address (ND); an answer to the asker, or
// to all where it has no address.
size_t wire_neighbour_build(const struct wire_neighbour *neighbour, uint8_t *frame);

// Whether a frame looks like one: cheap enough for any frame that is nobody's.
static inline bool wire_is_neighbour(const uint8_t *frame, size_t n)
{
	const size_t icmp6 = WIRE_ETHER_BYTES + WIRE_IP6_BYTES;
	size_t at = WIRE_ETHER_BYTES;
	uint16_t type_be;

	if (n < WIRE_ETHER_BYTES + WIRE_ARP_BYTES)
		return false;
	memcpy(&type_be, frame + 12, 2);
	if (type_be == htobe16(WIRE_ETHERTYPE_VLAN)) {
		memcpy(&type_be, frame + 16, 2);
		at += WIRE_VLAN_BYTES;
	}
	if (type_be != htobe16(WIRE_ETHERTYPE_IP6))
		return type_be == htobe16(WIRE_ETHERTYPE_ARP);
	at += icmp6 - WIRE_ETHER_BYTES;
	return n > at && frame[at - WIRE_IP6_BYTES + 6] == WIRE_PROTO_ICMP6 &&
	       (frame[at] == WIRE_ICMP6_SOLICITATION || frame[at] == WIRE_ICMP6_ADVERTISEMENT);
}
