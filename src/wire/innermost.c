// See innermost.h. A frame is walked header by header: each says of which kind the next one is.
#include "wire/innermost.h"

#include "base/bits.h"
#include "wire/transport.h"

#include <string.h>

enum { PORTS_BYTES = 4, VXLAN_BYTES = 8, LABEL_BYTES = 4, GRE_BYTES = 4, GRE_FIELD_BYTES = 4 };
enum { PORT_VXLAN = 4789, PORT_MPLS = 6635, VXLAN_HAS_ID = 0x08 };
enum { PROTO_IP4 = 4, PROTO_IP6 = 41, PROTO_GRE = 47, PROTO_MPLS = 137 };
enum { TYPE_MPLS = 0x8847, TYPE_MPLS_GROUP = 0x8848, TYPE_ETHERNET = 0x6558 };
enum { GRE_CHECKSUM = 0x8000, GRE_KEY = 0x2000, GRE_SEQUENCE = 0x1000, GRE_KNOWN = 0xb000 };
enum { BOTTOM_OF_STACK = 1 }; // bit of the third byte of a label

enum header { ETHER, IP4, IP6, MPLS, GRE, NONE };

struct walk {
	const uint8_t *at;
	size_t n; // bytes from `at` on that belong to the packet
	struct wire_innermost *out;
};

static uint16_t read16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static void skip(struct walk *walk, size_t bytes)
{
	walk->at += bytes;
	walk->n -= bytes;
}

// What follows an EtherType, also in GRE.
static enum header of_ethertype(uint16_t type)
{
	switch (type) {
	case WIRE_ETHERTYPE_IP4:
		return IP4;
	case WIRE_ETHERTYPE_IP6:
		return IP6;
	case TYPE_MPLS:
	case TYPE_MPLS_GROUP:
		return MPLS;
	}
	return NONE;
}

static enum header read_ether(struct walk *walk)
{
	if (walk->n < WIRE_ETHER_BYTES)
		return NONE;
	const uint8_t *macs = walk->at;
	uint16_t type = read16(walk->at + 12);

	skip(walk, WIRE_ETHER_BYTES);
	for (unsigned i = 0; i < WIRE_INNERMOST_TAGS && walk->n >= WIRE_VLAN_BYTES; i++) {
		if (type != WIRE_ETHERTYPE_VLAN && type != WIRE_ETHERTYPE_QINQ)
			break;
		type = read16(walk->at + 2);
		skip(walk, WIRE_VLAN_BYTES);
	}
	if (!walk->out->family && !walk->out->ethertype_be) {
		memcpy(walk->out->address, macs, 12);
		walk->out->ethertype_be = htobe16(type);
	}
	return of_ethertype(type);
}

static enum header read_vxlan(struct walk *walk)
{
	if (walk->n < WIRE_UDP_BYTES + VXLAN_BYTES || !(walk->at[WIRE_UDP_BYTES] & VXLAN_HAS_ID))
		return NONE;
	skip(walk, WIRE_UDP_BYTES + VXLAN_BYTES);
	return ETHER;
}

static enum header read_udp(struct walk *walk)
{
	switch (read16(walk->at + 2)) {
	case PORT_VXLAN:
		return read_vxlan(walk);
	case PORT_MPLS:
		if (walk->n < WIRE_UDP_BYTES)
			return NONE;
		skip(walk, WIRE_UDP_BYTES);
		return MPLS;
	}
	return NONE;
}

// What an IP packet carries, which begins at walk->at.
static enum header read_carried(struct walk *walk, uint8_t proto)
{
	switch (proto) {
	case WIRE_PROTO_TCP:
	case WIRE_PROTO_UDP:
	case WIRE_PROTO_SCTP:
	case WIRE_PROTO_DCCP:
	case WIRE_PROTO_UDP_LITE:
		if (walk->n < PORTS_BYTES)
			return NONE;
		memcpy(&walk->out->ports, walk->at, PORTS_BYTES);
		return proto == WIRE_PROTO_UDP ? read_udp(walk) : NONE;
	case PROTO_IP4:
		return IP4;
	case PROTO_IP6:
		return IP6;
	case PROTO_GRE:
		return GRE;
	case PROTO_MPLS:
		return MPLS;
	}
	return NONE;
}

static enum header read_ip4(struct walk *walk)
{
	const struct wire_ip4 *ip = (const void *)walk->at;

	if (walk->n < sizeof(*ip) || ip->version_ihl >> 4 != 4)
		return NONE;
	*walk->out = (struct wire_innermost){.family = 4};
	memcpy(walk->out->address, ip->src, sizeof(walk->out->address[0]));
	if (wire_fragment_class4(ip->fragment_be) != WIRE_FRAGMENT_NONE)
		return NONE;
	const unsigned header = wire_ip4_header_bytes(ip), total = be16toh(ip->total_length_be);

	walk->out->protocol = ip->protocol;
	walk->n = MIN_OF(walk->n, total);
	if (header < sizeof(*ip) || walk->n < header)
		return NONE;
	skip(walk, header);
	return read_carried(walk, walk->out->protocol);
}

static enum header read_ip6(struct walk *walk)
{
	const struct wire_ip6 *ip = (const void *)walk->at;
	struct wire_transport transport;

	if (walk->n < sizeof(*ip) || walk->at[0] >> 4 != 6)
		return NONE;
	*walk->out = (struct wire_innermost){.family = 6};
	memcpy(walk->out->address, ip->src, sizeof(walk->out->address));
	walk->n = MIN_OF(walk->n, sizeof(*ip) + be16toh(ip->payload_length_be));
	wire_transport6(&transport, walk->at, walk->n);
	if (transport.fragment != WIRE_FRAGMENT_NONE)
		return NONE;
	walk->out->protocol = transport.proto;
	if (transport.verdict != WIRE_TRANSPORT_OK)
		return NONE;
	skip(walk, transport.offset);
	return read_carried(walk, transport.proto);
}

// The first four bits of what follows the labels tell what it is; of other than IP only the labels
// count.
static enum header read_mpls(struct walk *walk)
{
	bool is_last = false;

	for (unsigned i = 0; !is_last && i < WIRE_INNERMOST_LABELS; i++) {
		if (walk->n < LABEL_BYTES)
			return NONE;
		const uint32_t label = read16(walk->at) << 4 | walk->at[2] >> 4;

		walk->out->labels = walk->out->labels * 31 + label;
		is_last = walk->at[2] & BOTTOM_OF_STACK;
		skip(walk, LABEL_BYTES);
	}
	if (!is_last || !walk->n)
		return NONE;
	return walk->at[0] >> 4 == 4 ? IP4 : walk->at[0] >> 4 == 6 ? IP6 : NONE;
}

// Of version 0 (RFC 2784, RFC 2890), without routing.
static enum header read_gre(struct walk *walk)
{
	if (walk->n < GRE_BYTES)
		return NONE;
	const uint16_t flags = read16(walk->at), type = read16(walk->at + 2);
	const unsigned n_fields =
		!!(flags & GRE_CHECKSUM) + !!(flags & GRE_KEY) + !!(flags & GRE_SEQUENCE);
	const size_t bytes = GRE_BYTES + n_fields * GRE_FIELD_BYTES;

	if (flags & ~GRE_KNOWN || walk->n < bytes)
		return NONE;
	skip(walk, bytes);
	return type == TYPE_ETHERNET ? ETHER : of_ethertype(type);
}

void wire_innermost_read(struct wire_innermost *out, const uint8_t *frame, size_t n)
{
	struct walk walk = {frame, n, out};
	enum header header = ETHER;

	*out = (struct wire_innermost){0};
	for (unsigned i = 0; header != NONE && i < WIRE_INNERMOST_HEADERS; i++) {
		if (header == ETHER)
			header = read_ether(&walk);
		else if (header == IP4)
			header = read_ip4(&walk);
		else if (header == IP6)
			header = read_ip6(&walk);
		else if (header == MPLS)
			header = read_mpls(&walk);
		else
			header = read_gre(&walk);
	}
}

// Both halves of the product of a word with an odd number.
static inline uint64_t mix(uint64_t hash, uint64_t word)
{
	const __uint128_t product =
		(__uint128_t)(hash ^ word) * 0xd6e8feb86659fd93ull + 0xa0761d6478bd642full;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint32_t wire_innermost_hash(const struct wire_innermost *key)
{
	const unsigned n_words = key->family == 4 ? 1 : ARRAY_LEN(key->address);
	uint64_t hash = (uint64_t)key->family << 8 | key->protocol |
	                (uint64_t)key->ethertype_be << 16 | (uint64_t)key->labels << 32;

	hash = mix(hash, key->ports);
	for (unsigned i = 0; i < n_words; i++)
		hash = mix(hash, key->address[i]);
	return hash >> 32;
}
