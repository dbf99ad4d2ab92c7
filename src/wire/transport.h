// Finds the transport header of an IPv6 packet behind its extension headers (RFC 8200, 4; the list
// of RFC 7045, 4). Any thread, workers too; no state.
#pragma once

#include "wire/headers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Longer chains are not walked: WIRE_TRANSPORT_TOO_MANY. The bytes are those of the extension
// headers, without the IPv6 header.
enum { WIRE_TRANSPORT_HEADERS = 8, WIRE_TRANSPORT_BYTES = 256 };

enum wire_transport_verdict {
	WIRE_TRANSPORT_OK,
	WIRE_TRANSPORT_TRUNCATED, // an extension header ends beyond the bytes given
	WIRE_TRANSPORT_TOO_MANY,
};

// An atomic fragment (RFC 6946), which is the whole packet, is none.
enum wire_fragment_class {
	WIRE_FRAGMENT_NONE,
	WIRE_FRAGMENT_FIRST,
	WIRE_FRAGMENT_LATER,
};

// `proto`: the first next header that is no extension header or cannot be walked, as ESP. For a
// later fragment it is what its fragment header says, and `offset` is where its data begins. If the
// verdict is not OK, `proto` and `offset` are those of the header that was not walked.
struct wire_transport {
	uint8_t verdict;  // enum wire_transport_verdict
	uint8_t proto;    // WIRE_PROTO_...
	uint8_t fragment; // enum wire_fragment_class
	uint16_t offset;  // bytes from the start of the IPv6 header; may be the end of the packet
	uint16_t fragment_units; // fragment offset in units of 8 bytes
};

// `packet`: an IPv6 header of 40 bytes and what follows it, `bytes` in all; nothing beyond is read.
// `bytes` is at least 40, and not more than the packet has by its own length field.
void wire_transport6(struct wire_transport *out, const uint8_t *packet, size_t bytes);

// The fragment class of an IPv4 packet.
static inline enum wire_fragment_class wire_fragment_class4(uint16_t fragment_be)
{
	const uint16_t fragment = be16toh(fragment_be);

	if (fragment & WIRE_IP4_FRAGMENT_OFFSET)
		return WIRE_FRAGMENT_LATER;
	return fragment & WIRE_IP4_MORE_FRAGMENTS ? WIRE_FRAGMENT_FIRST : WIRE_FRAGMENT_NONE;
}
