// Neighbour discovery in packets addressed to other hosts, where Linux may answer for them
// (proxy_ndp): Linux sees all of it and forwards what concerns no address that it proxies
// (ip6_forward_proxy_check in net/ipv6/ip6_output.c). Worker.
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

__attribute__((noinline)) void datapath_discovery(struct worker *w, struct burst *b)
{
	uint16_t alive = 0;

	for (uint16_t i = 0; i < b->n; i++) {
		if (is_discovery(b, i)) {
			burst_drop(w, b->mbuf[i], VERDICT_LOCAL);
			continue;
		}
		b->ttl[alive] = b->ttl[i];
		burst_move(b, alive++, i);
	}
	b->n = alive;
}
