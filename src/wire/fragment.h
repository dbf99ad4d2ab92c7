// Fragmentation of IPv4 packets by a router (RFC 791, 3.2; RFC 1812, 4.2.2.7): the sizes and
// headers of the fragments, as Linux makes them (ip_do_fragment in net/ipv4/ip_output.c). Any
// thread, workers too; no state.
#pragma once

#include "wire/headers.h"

#include <stdbool.h>
#include <stdint.h>

// How one packet is cut. The fragments have headers of the packet's own length, options included.
struct wire_fragments {
	uint16_t n;
	uint16_t header_bytes;
	uint16_t each_bytes; // payload of all fragments but the last one; a multiple of 8
	uint16_t last_bytes; // payload of the last one; it may be longer than the others
};

// Plans the fragments of a packet, for a link whose MTU is `mtu` bytes, at least 68. The packet is
// valid and longer than `mtu`; only its first 20 bytes are read. False: it may not be fragmented
// (DF), or it would end beyond the largest offset.
bool wire_fragment_plan(struct wire_fragments *plan, const struct wire_ip4 *ip, uint16_t mtu);

// Payload of fragment i: its length, and its start in the payload of the packet.
static inline uint16_t wire_fragment_bytes(const struct wire_fragments *plan, unsigned i)
{
	return i + 1 < plan->n ? plan->each_bytes : plan->last_bytes;
}

static inline uint16_t wire_fragment_start(const struct wire_fragments *plan, unsigned i)
{
	return i * plan->each_bytes;
}

// Writes plan->header_bytes at `to`: the header of fragment i of the packet with header `ip`. It
// may replace `ip` itself, which is then of no use for further fragments.
void wire_fragment_header(const struct wire_fragments *plan, unsigned i, const struct wire_ip4 *ip,
	struct wire_ip4 *to);
