// Packets in which the flow dissector of Linux (the classifier flower), or u32, finds other fields
// than acl_key4() and acl_key6(). Worker.
#include "acl/inside.h"

#include "wire/headers.h"
#include "wire/transport.h"

enum {
	PROTO_MPLS = 137, // the dissector reads on behind it, and takes the packet for one of MPLS
	TCP_BYTES = 20,
	ICMP_BYTES = 8,
	FRAGMENT_BYTES = 8,
};

// The dissector reads flags and types of whole headers only, and zeros otherwise.
static bool is_transport_alike(uint8_t proto, const uint8_t *transport, size_t bytes)
{
	switch (proto) {
	case PROTO_MPLS:
		return false;
	case WIRE_PROTO_TCP:
		return bytes >= TCP_BYTES && transport[12] >> 4 >= TCP_BYTES / 4;
	case WIRE_PROTO_ICMP4:
	case WIRE_PROTO_ICMP6:
		return bytes >= ICMP_BYTES;
	}
	return true;
}

// It walks fewer headers than wire_transport6(), and stops at the first fragment header.
static bool may_differ(uint8_t next_header)
{
	switch (next_header) {
	case WIRE_PROTO_HOP_BY_HOP:
	case WIRE_PROTO_ROUTING:
	case WIRE_PROTO_FRAGMENT:
	case WIRE_PROTO_AH:
	case WIRE_PROTO_DESTINATION:
	case WIRE_PROTO_MOBILITY:
	case WIRE_PROTO_HIP:
	case WIRE_PROTO_SHIM6:
	case PROTO_MPLS:
		return true;
	}
	return false;
}

// For an atomic fragment (RFC 6946), which is a fragment to the dissector, this is false.
static bool is_fragment_alike(const uint8_t *header, size_t bytes)
{
	return bytes >= FRAGMENT_BYTES && !may_differ(header[0]) &&
	       (header[2] || header[3] & ~6); // offset, or more fragments
}

static bool is_alike4(const uint8_t *packet, size_t bytes)
{
	const struct wire_ip4 *ip = (const void *)packet;
	const unsigned header_bytes = wire_ip4_header_bytes(ip);

	// The classifier u32 leaves a priority at a word that is not there.
	if (wire_fragment_class4(ip->fragment_be) != WIRE_FRAGMENT_NONE)
		return bytes - sizeof(*ip) >= TCP_BYTES;
	return header_bytes == sizeof(*ip) &&
	       is_transport_alike(ip->protocol, packet + sizeof(*ip), bytes - sizeof(*ip));
}

bool acl_is_alike(const uint8_t *packet, size_t bytes, bool is_ip6)
{
	const struct wire_ip6 *ip6 = (const void *)packet;

	if (!is_ip6)
		return is_alike4(packet, bytes);
	if (ip6->next_header == WIRE_PROTO_FRAGMENT)
		return is_fragment_alike(packet + sizeof(*ip6), bytes - sizeof(*ip6));
	return !may_differ(ip6->next_header) &&
	       is_transport_alike(ip6->next_header, packet + sizeof(*ip6), bytes - sizeof(*ip6));
}
