// Neighbour discovery in packets addressed to other hosts, where Linux may answer for them
// (proxy_ndp): Linux sees all of it and forwards what concerns no address that it proxies
// (ip6_forward_proxy_check in net/ipv6/ip6_output.c). Called only for bursts with BURST_DISCOVERY.
// Worker.
#include "datapath/steps.h"
#include "wire/headers.h"

static bool is_discovery(const struct burst *b, uint16_t i)
{
	const struct wire_ip6 *ip = (const void *)(b->frame[i] + WIRE_ETHER_BYTES);

	if (ip->next_header == WIRE_PROTO_TCP || ip->next_header == WIRE_PROTO_UDP)
		return false;
	return tap_classify(b->frame[i], b->mbuf[i]->data_len - burst_tag_bytes(b, i)) ==
	       CLASS_NEIGHBOUR;
}

void datapath_discovery(struct worker *w, struct burst *b)
{
	uint64_t kept = burst_all(b);

	for (uint64_t rest = kept & b->discovery_mask; rest; rest &= rest - 1) {
		uint16_t i = __builtin_ctzll(rest);

		if (!is_discovery(b, i))
			continue;
		burst_drop(w, b, i, VERDICT_LOCAL);
		kept &= ~(1ull << i);
	}
	burst_keep(b, kept);
}
