// ECMP groups: maps each flow to one member, which stays the same as long as the group does not
// change, or its bucket is in use (resilient groups). Called only for bursts in which a route leads
// to a group. Worker.
#include "datapath/steps.h"

#include "wire/headers.h"

#include <string.h>

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
	return datapath_ecmp_mix(datapath_ecmp_mix(0, addresses), ports);
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
		hash = datapath_ecmp_mix(hash, addresses[i]);
	return datapath_ecmp_mix(hash, ports);
}

// Layer 3, Linux's policy 0 (fib_multipath_hash in net/ipv4/route.c, rt6_multipath_hash in
// net/ipv6/route.c). An ICMP error is hashed as the packet that it quotes, and both directions of a
// flow have the same hash: the error takes the path of the packets that its receiver gets from the
// other end of that flow.

static bool is_error4(uint8_t type)
{
	static const uint32_t errors = 1u << WIRE_ICMP4_UNREACHABLE | 1u << WIRE_ICMP4_QUENCH |
	                               1u << WIRE_ICMP4_REDIRECT | 1u << WIRE_ICMP4_TIME_EXCEEDED |
	                               1u << WIRE_ICMP4_PARAMETER;

	return type < 32 && errors >> type & 1;
}

static bool is_error6(uint8_t type)
{
	return type >= WIRE_ICMP6_UNREACHABLE && type <= WIRE_ICMP6_PARAMETER;
}

static uint64_t hash_hosts4(const uint8_t *frame, uint16_t length)
{
	const struct wire_ip4 *ip = (const void *)(frame + WIRE_ETHER_BYTES);
	unsigned icmp_at = WIRE_ETHER_BYTES + WIRE_IP4_BYTES;
	unsigned quoted_at = icmp_at + WIRE_ICMP_BYTES;

	if (ip->protocol == WIRE_PROTO_ICMP4 &&
		!(ip->fragment_be & htobe16(WIRE_IP4_FRAGMENT_OFFSET)) &&
		length >= quoted_at + WIRE_IP4_BYTES && is_error4(frame[icmp_at]))
		ip = (const void *)(frame + quoted_at);
	const uint32_t src = load32(ip->src), dst = load32(ip->dst);
	return datapath_ecmp_mix(datapath_ecmp_mix(0, MIN_OF(src, dst)), MAX_OF(src, dst));
}

static uint64_t hash_hosts6(const uint8_t *frame, uint16_t length)
{
	const struct wire_ip6 *ip = (const void *)(frame + WIRE_ETHER_BYTES);
	unsigned icmp_at = WIRE_ETHER_BYTES + WIRE_IP6_BYTES;
	unsigned quoted_at = icmp_at + WIRE_ICMP_BYTES;

	if (ip->next_header == WIRE_PROTO_ICMP6 && length >= quoted_at + WIRE_IP6_BYTES &&
		is_error6(frame[icmp_at]))
		ip = (const void *)(frame + quoted_at);
	const uint64_t src[2] = {load64(ip->src), load64(ip->src + 8)};
	const uint64_t dst[2] = {load64(ip->dst), load64(ip->dst + 8)};
	const bool is_ordered = src[0] != dst[0] ? src[0] < dst[0] : src[1] < dst[1];
	const uint64_t *lower = is_ordered ? src : dst, *upper = is_ordered ? dst : src;
	const uint64_t hash = datapath_ecmp_mix(
		datapath_ecmp_mix(datapath_ecmp_mix(datapath_ecmp_mix(0, lower[0]), lower[1]),
			upper[0]),
		upper[1]);
	const uint32_t label = ip->version_class_flow_be & htobe32(WIRE_IP6_FLOW_LABEL);
	return datapath_ecmp_mix(hash, label | (uint64_t)ip->next_header << 32);
}

static uint64_t hash_flow(const struct burst *b, unsigned i)
{
	uint16_t length = burst_contiguous_bytes(b, i);

	return b->is_ip6 ? hash_flow6(b->frame[i], length) : hash_flow4(b->frame[i], length);
}

uint64_t datapath_flow_hash(const struct burst *b, uint16_t i)
{
	return hash_flow(b, i);
}

static uint64_t hash_hosts(const struct burst *b, unsigned i)
{
	uint16_t length = burst_contiguous_bytes(b, i);

	return b->is_ip6 ? hash_hosts6(b->frame[i], length) : hash_hosts4(b->frame[i], length);
}

static inline uint32_t select_member(const struct fib_view *view, const struct fib_hop_entry *entry,
	uint64_t hash)
{
	const uint32_t slot = fib_entry_group(entry) + (hash >> 20) % FIB_GROUP_BUCKETS;

	return unlikely(fib_entry_is_resilient(entry)) ? fib_bucket_use(view, slot)
	                                               : view->bucket[slot];
}

// Compiled once for each hash.
static inline __attribute__((always_inline)) bool select_members(struct burst *b,
	uint64_t (*hash)(const struct burst *b, unsigned i))
{
	const struct fib_view *view = b->view;
	bool has_group = false;

	for (uint16_t i = 0; i < b->n; i++) {
		const struct fib_hop_entry entry = fib_hop_load(&view->hops[b->hop[i]]);

		if (entry.kind != FIB_HOP_GROUP)
			continue;
		b->hop[i] = select_member(view, &entry, hash(b, i));
		has_group = true;
	}
	return has_group;
}

static inline bool uses_layer3(const struct burst *b)
{
	const uint8_t layer3 = __atomic_load_n(b->view->layer3_hash, __ATOMIC_RELAXED);

	return layer3 & (b->is_ip6 ? FIB_LAYER3_IP6 : FIB_LAYER3_IP4);
}

uint32_t datapath_ecmp_member(const struct fib_view *view, const struct fib_hop_entry *group,
	uint64_t hash)
{
	return select_member(view, group, hash);
}

uint32_t datapath_ecmp_hop(const struct burst *b, uint16_t i)
{
	const struct fib_hop_entry entry = fib_hop_load(&b->view->hops[b->hop[i]]);

	if (entry.kind != FIB_HOP_GROUP)
		return b->hop[i];
	return select_member(b->view, &entry, uses_layer3(b) ? hash_hosts(b, i) : hash_flow(b, i));
}

bool datapath_ecmp(struct burst *b)
{
	if (unlikely(uses_layer3(b)))
		return select_members(b, hash_hosts);
	return select_members(b, hash_flow);
}
