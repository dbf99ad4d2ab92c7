// Neighbour messages: ARP requests and replies (RFC 826), IPv6 neighbour solicitations and
// advertisements (RFC 4861), with or without a VLAN tag. Input is untrusted. Any thread; no state.
#pragma once

#include "wire/addr.h"
#include "wire/headers.h"

#include <string.h>

enum { WIRE_NEIGHBOUR_BYTES = 14 + 4 + 40 + 32 }; // the longest frame built

// A request or a reply. Both addresses have the same family, which selects ARP or ND.
struct wire_neighbour {
	bool is_reply, has_vlan;
	uint16_t vlan_tag;
	struct wire_addr target;   // the address being resolved
	struct wire_mac about_mac; // its MAC, in replies
	struct wire_addr sender; // the sender of a request, or the receiver of a reply; all zeros:
	                         // has no address yet
	struct wire_mac asker_mac;
};

// Parses a frame without FCS. 0, or -EINVAL: it is not a neighbour message, or violates a rule that
// its RFC requires to be checked (lengths, hop limit 255, checksum, options, group addresses).
int wire_neighbour_read(const uint8_t *frame, size_t n, struct wire_neighbour *out);
// Writes the frame, without FCS and padding, to WIRE_NEIGHBOUR_BYTES bytes; returns its length. A
// request is sent to all hosts (ARP) or to the solicited-node group (ND); a reply to the requester,
// or to all hosts if it has no address.
size_t wire_neighbour_build(const struct wire_neighbour *neighbour, uint8_t *frame);

// Whether a frame looks like a neighbour message: a cheap check for frames that no other consumer
// claims.
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
