// Writes the DSCP of packets that are marked (RFC 2474); the ECN bits stay (RFC 3168). Called only
// for bursts with such packets, after the last step that may leave a packet to Linux. Worker.
#include "datapath/steps.h"
#include "wire/headers.h"

#include <endian.h>

enum { DSCP_SHIFT = 2 };

// RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
static uint16_t update_checksum(uint16_t checksum, uint16_t from, uint16_t to)
{
	uint32_t sum = (uint16_t)~checksum + (uint32_t)(uint16_t)~from + to;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static void mark4(uint8_t *frame, uint8_t dscp)
{
	struct wire_ip4 *ip = (void *)(frame + WIRE_ETHER_BYTES);
	const uint16_t from = load16(&ip->version_ihl);

	ip->dscp_ecn = dscp << DSCP_SHIFT | (ip->dscp_ecn & ((1 << DSCP_SHIFT) - 1));
	ip->checksum_be = update_checksum(ip->checksum_be, from, load16(&ip->version_ihl));
}

static void mark6(uint8_t *frame, uint8_t dscp)
{
	enum { AT = 20 + DSCP_SHIFT }; // version 4 bits, DSCP 6, ECN 2, flow label 20
	struct wire_ip6 *ip = (void *)(frame + WIRE_ETHER_BYTES);
	const uint32_t word = be32toh(ip->version_class_flow_be) & ~(0x3fu << AT);

	ip->version_class_flow_be = htobe32(word | (uint32_t)dscp << AT);
}

void datapath_mark(struct worker *w, struct burst *b)
{
	for (uint64_t rest = b->mark_mask & burst_all(b); rest; rest &= rest - 1) {
		const uint16_t i = __builtin_ctzll(rest);

		if (b->is_ip6)
			mark6(b->frame[i], b->dscp[i]);
		else
			mark4(b->frame[i], b->dscp[i]);
	}
}
