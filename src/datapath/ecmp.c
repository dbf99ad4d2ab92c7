// ECMP groups: maps each flow to one member, which stays the same as long as the group does not
// change. Called only for bursts in which a route leads to a group. Worker.
#include "datapath/steps.h"

#include "wire/headers.h"

#include <string.h>

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) *
	       0x9e3779b97f4a7c15ull; // 2^64 / golden ratio; the high half is well mixed
	return hash ^ hash >> 32;
}

static bool has_ports(uint8_t protocol)
{
	return protocol == WIRE_PROTO_TCP || protocol == WIRE_PROTO_UDP ||
	       protocol == WIRE_PROTO_SCTP;
}

// All fragments of a packet, including the first, hash on addresses and protocol alone.
static uint64_t hash_flow4(const uint8_t *frame, uint16_t length)
{
	const struct wire_ip4 *ip = (const void *)(frame + WIRE_ETHER_BYTES);
	bool is_fragment =
		ip->fragment_be & htobe16(WIRE_IP4_MORE_FRAGMENTS | WIRE_IP4_FRAGMENT_OFFSET);
	unsigned ports_at = WIRE_ETHER_BYTES + WIRE_IP4_BYTES;
	uint64_t addresses, ports = ip->protocol;

	memcpy(&addresses, ip->src, sizeof(addresses));
	if (!is_fragment && has_ports(ip->protocol) && length >= ports_at + sizeof(uint32_t))
		ports |= (uint64_t)load32(frame + ports_at) << 8;
	return mix(mix(0, addresses), ports);
}

static uint64_t hash_flow6(const uint8_t *frame, uint16_t length)
{
	const struct wire_ip6 *ip = (const void *)(frame + WIRE_ETHER_BYTES);
	unsigned ports_at = WIRE_ETHER_BYTES + WIRE_IP6_BYTES;
	uint64_t addresses[4], ports = ip->next_header;
	uint64_t hash = 0;

	memcpy(addresses, ip->src, sizeof(addresses));
	if (has_ports(ip->next_header) && length >= ports_at + sizeof(uint32_t))
		ports |= (uint64_t)load32(frame + ports_at) << 8;
	for (unsigned i = 0; i < ARRAY_LEN(addresses); i++)
		hash = mix(hash, addresses[i]);
	return mix(hash, ports);
}

static uint64_t hash_flow(const struct burst *b, unsigned i)
{
	uint16_t contiguous =
		b->has_segments ? b->mbuf[i]->data_len - burst_tag_bytes(b, i) : b->length[i];

	return b->frame[i][12] == 0x08 ? hash_flow4(b->frame[i], contiguous)
	                               : hash_flow6(b->frame[i], contiguous);
}

bool datapath_ecmp(const struct fib_view *view, struct burst *b)
{
	bool has_group = false;

	for (uint16_t i = 0; i < b->n; i++) {
		struct fib_hop_entry entry = fib_hop_load(&view->hops[b->hop[i]]);

		if (entry.verdict != FIB_VERDICT_GROUP)
			continue;
		uint32_t slot = (hash_flow(b, i) >> 20) % FIB_GROUP_BUCKETS;
		b->hop[i] = view->bucket[fib_entry_group(&entry) + slot];
		has_group = true;
	}
	return has_group;
}
