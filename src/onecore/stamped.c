// Prepares a table's frame for stamps; at plugin start, before any packet.
#include "onecore/stamped.h"

#include <errno.h>

int stamped_prepare(struct stamped *stamped, struct table *table)
{
	if (table->is_ip6 || table->has_flows || table->has_macs)
		return -EINVAL;
	struct wire_ip4 *ip = (struct wire_ip4 *)(table->frame + WIRE_ETHER_BYTES);
	struct wire_udp *udp = (struct wire_udp *)(table->frame + STAMPED_UDP_AT);
	uint16_t length = be16toh(ip->total_length_be);
	uint16_t shorter = STAMPED_FRAME_BYTES - WIRE_ETHER_BYTES;

	// The identification is increased by as much as the length is reduced, so that their sum
	// does not change.
	ip->id_be = htobe16(be16toh(ip->id_be) + length - shorter);
	ip->total_length_be = htobe16(shorter);
	udp->length_be = htobe16(WIRE_UDP_BYTES + STAMP_BYTES);
	udp->checksum_be = 0;
	memset(ip->dst, 0, sizeof(ip->dst));
	stamped->sum = wire_sum_pseudo4(ip, WIRE_PROTO_UDP, WIRE_UDP_BYTES + STAMP_BYTES);
	stamped->sum = wire_sum(stamped->sum, udp, WIRE_UDP_BYTES);
	return 0;
}
