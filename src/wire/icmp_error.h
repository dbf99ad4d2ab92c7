// ICMP errors about packets that a router does not forward. Any thread; no state.
#pragma once

#include "wire/addr.h"
#include "wire/headers.h"

// ICMP messages without their IP headers. IPv4 quotes as much as keeps the whole error within 576
// bytes (RFC 1812, 4.3.2.3), IPv6 within 1280 (RFC 4443, 2.4).
enum { WIRE_ICMP_ERROR_BYTES = 1280 - WIRE_IP6_BYTES };

struct wire_icmp_error {
	struct wire_addr to; // the sender of the packet
	size_t n;
	uint8_t bytes[WIRE_ICMP_ERROR_BYTES];
};

// Builds "communication administratively prohibited" about the packet of a frame without FCS, which
// may have VLAN tags: type 3 code 13, or type 1 code 1 of ICMPv6, whose checksum is left to the
// socket. False: no error may be sent about it (RFC 1812, 4.3.2.7; RFC 4443, 2.4 e), or it has no
// IP packet.
bool wire_icmp_prohibited(struct wire_icmp_error *out, const uint8_t *frame, size_t n);
