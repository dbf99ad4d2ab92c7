// Writes what packets with labels lack when these are popped: the EtherType, where the last label
// was, and the TTL that popping leaves. After the steps that may punt a packet as it was received;
// other packets of the burst have both already. Called only for bursts with such packets. Worker.
#include "datapath/mpls_ttl.h"
#include "datapath/steps.h"
#include "wire/headers.h"

void datapath_unlabel(struct worker *w, struct burst *b)
{
	const uint16_t type_be = htobe16(b->is_ip6 ? WIRE_ETHERTYPE_IP6 : WIRE_ETHERTYPE_IP4);

	for (uint16_t i = 0; i < b->n; i++) {
		memcpy(b->frame[i] + WIRE_ETHER_BYTES - sizeof(type_be), &type_be, sizeof(type_be));
		mpls_set_ttl(b->frame[i] + WIRE_ETHER_BYTES, b->is_ip6, b->ttl[i]);
	}
}
