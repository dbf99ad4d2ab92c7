// See transport.h.
#include "wire/transport.h"

enum { SHORTEST_BYTES = 8, FRAGMENT_MORE = 1, FRAGMENT_UNIT_SHIFT = 3 };

static bool is_extension(uint8_t proto)
{
	switch (proto) {
	case WIRE_PROTO_HOP_BY_HOP:
	case WIRE_PROTO_ROUTING:
	case WIRE_PROTO_FRAGMENT:
	case WIRE_PROTO_AH:
	case WIRE_PROTO_DESTINATION:
	case WIRE_PROTO_MOBILITY:
	case WIRE_PROTO_HIP:
	case WIRE_PROTO_SHIM6:
		return true;
	}
	return false;
}

// Length of an extension header (RFC 6564, 4; RFC 4302, 2.2).
static unsigned header_bytes(uint8_t proto, const uint8_t *header)
{
	if (proto == WIRE_PROTO_FRAGMENT)
		return SHORTEST_BYTES;
	if (proto == WIRE_PROTO_AH)
		return (header[1] + 2u) * 4;
	return (header[1] + 1u) * 8;
}

// Returns whether what follows the header belongs to a first or whole packet, so that headers
// follow.
static bool read_fragment(struct wire_transport *out, const uint8_t *header)
{
	const unsigned field = header[2] << 8 | header[3];

	out->fragment_units = field >> FRAGMENT_UNIT_SHIFT;
	if (out->fragment_units)
		out->fragment = WIRE_FRAGMENT_LATER;
	else if (field & FRAGMENT_MORE)
		out->fragment = WIRE_FRAGMENT_FIRST;
	return !out->fragment_units;
}

void wire_transport6(struct wire_transport *out, const uint8_t *packet, size_t bytes)
{
	const struct wire_ip6 *ip = (const void *)packet;
	bool has_headers = true;

	*out = (struct wire_transport){.proto = ip->next_header, .offset = sizeof(*ip)};
	for (unsigned n = 0; has_headers && is_extension(out->proto); n++) {
		const uint8_t *header = packet + out->offset;

		out->verdict = WIRE_TRANSPORT_TOO_MANY;
		if (n == WIRE_TRANSPORT_HEADERS)
			return;
		out->verdict = WIRE_TRANSPORT_TRUNCATED;
		if (bytes - out->offset < SHORTEST_BYTES)
			return;
		const unsigned length = header_bytes(out->proto, header);

		if (out->offset - sizeof(*ip) + length > WIRE_TRANSPORT_BYTES) {
			out->verdict = WIRE_TRANSPORT_TOO_MANY;
			return;
		}
		if (length > bytes - out->offset)
			return;
		if (out->proto == WIRE_PROTO_FRAGMENT)
			has_headers = read_fragment(out, header);
		out->verdict = WIRE_TRANSPORT_OK;
		out->proto = header[0];
		out->offset += length;
	}
}
