// Selects the punt class of a frame from its headers. Pure; accepts arbitrary bytes.
#include "tap/tap_fast.h"
#include "wire/headers.h"

enum {
	TAGS_MOST = 2,
	EXTENSIONS_MOST = 4,
	ETHERTYPE_LEAST = 1536, // lower values are an 802.3 length
	LLC_ISIS = 0xfe,
	PORT_BGP = 179,
	PORT_LDP = 646,
};

// The unparsed rest of the frame; parsing stops where it is too short.
struct reader {
	const uint8_t *at;
	unsigned left;
	bool is_group; // destination MAC or IP address is multicast
};

static bool skip(struct reader *r, unsigned n)
{
	if (r->left < n)
		return false;
	r->at += n;
	r->left -= n;
	return true;
}

static unsigned be16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static enum punt_class host_or_group(const struct reader *r)
{
	return r->is_group ? CLASS_MULTICAST : CLASS_HOST;
}

static bool is_routing_udp(unsigned to)
{
	static const uint16_t ports[] = {
		3784, 3785, 4784, 6784, 7784, // BFD: single hop, echo, multihop, LAG, seamless
		520, 521, PORT_LDP,           // RIP, RIPng
	};

	for (unsigned i = 0; i < ARRAY_LEN(ports); i++)
		if (ports[i] == to)
			return true;
	return false;
}

static bool is_routing_tcp(unsigned port)
{
	return port == PORT_BGP || port == PORT_LDP;
}

static enum punt_class of_icmp6(const struct reader *r)
{
	unsigned type = r->left ? r->at[0] : 0;

	if (type >= 133 && type <= 137) // router and neighbour discovery, redirect
		return CLASS_NEIGHBOUR;
	if ((type >= 130 && type <= 132) || type == 143) // MLD 1 and 2
		return CLASS_ROUTING;
	return host_or_group(r);
}

static enum punt_class of_transport(const struct reader *r, unsigned protocol)
{
	switch (protocol) {
	case 2:   // IGMP
	case 88:  // EIGRP
	case 89:  // OSPF
	case 103: // PIM
	case 112: // VRRP
		return CLASS_ROUTING;
	case WIRE_PROTO_ICMP6:
		return of_icmp6(r);
	case WIRE_PROTO_TCP:
		if (r->left >= 4 &&
			(is_routing_tcp(be16(r->at)) || is_routing_tcp(be16(r->at + 2))))
			return CLASS_ROUTING;
		break;
	case WIRE_PROTO_UDP:
		if (r->left >= 4 && is_routing_udp(be16(r->at + 2)))
			return CLASS_ROUTING;
		break;
	}
	return host_or_group(r);
}

static enum punt_class of_ip4(struct reader *r)
{
	const struct wire_ip4 *ip = (const void *)r->at;
	unsigned header = r->left < WIRE_IP4_BYTES ? 0 : wire_ip4_header_bytes(ip);

	if (header < WIRE_IP4_BYTES)
		return host_or_group(r);
	r->is_group |= (ip->dst[0] & 0xf0) == 0xe0 || load32(ip->dst) == UINT32_MAX;
	if (ip->fragment_be & htobe16(WIRE_IP4_MORE_FRAGMENTS | WIRE_IP4_FRAGMENT_OFFSET))
		return host_or_group(r);
	return skip(r, header) ? of_transport(r, ip->protocol) : host_or_group(r);
}

// Length of an extension header; 0: not one that can be skipped.
static unsigned extension_bytes(const struct reader *r, unsigned kind)
{
	if (r->left < 8)
		return 0;
	switch (kind) {
	case WIRE_PROTO_HOP_BY_HOP:
	case 43: // routing
	case 60: // destination options
		return (r->at[1] + 1) * 8;
	case 51: // authentication
		return (r->at[1] + 2) * 4;
	}
	return 0;
}

static enum punt_class of_ip6(struct reader *r)
{
	const struct wire_ip6 *ip = (const void *)r->at;

	if (!skip(r, WIRE_IP6_BYTES))
		return host_or_group(r);
	unsigned kind = ip->next_header;

	r->is_group |= ip->dst[0] == 0xff;
	for (unsigned i = 0; i < EXTENSIONS_MOST; i++) {
		unsigned bytes = extension_bytes(r, kind);

		if (!bytes)
			break;
		kind = r->at[0];
		if (!skip(r, bytes))
			return host_or_group(r);
	}
	return of_transport(r, kind);
}

// 802.3 with LLC: of the routing protocols only IS-IS uses it.
static enum punt_class of_llc(const struct reader *r)
{
	if (r->left >= 3 && r->at[0] == LLC_ISIS && r->at[1] == LLC_ISIS)
		return CLASS_ROUTING;
	return r->is_group ? CLASS_MULTICAST : CLASS_OTHER;
}

// Skips MPLS labels; what follows the last one has no type but its version. 0: unknown.
static unsigned type_below_labels(struct reader *r)
{
	enum { LABELS_MOST = 8, LABEL = 4, BOTTOM_BYTE = 2 };

	for (unsigned i = 0; i < LABELS_MOST && r->left > LABEL; i++) {
		const bool is_last = r->at[BOTTOM_BYTE] & 1;

		skip(r, LABEL);
		if (!is_last)
			continue;
		return r->at[0] >> 4 == 4   ? WIRE_ETHERTYPE_IP4
		       : r->at[0] >> 4 == 6 ? WIRE_ETHERTYPE_IP6
		                            : 0;
	}
	return 0;
}

enum punt_class tap_classify(const uint8_t *frame, unsigned n)
{
	struct reader r = {frame, n, n && frame[0] & 1};

	if (!skip(&r, WIRE_ETHER_BYTES))
		return CLASS_OTHER;
	unsigned type = be16(r.at - 2);

	for (unsigned i = 0; i < TAGS_MOST; i++)
		if (type == WIRE_ETHERTYPE_VLAN || type == WIRE_ETHERTYPE_QINQ) {
			if (!skip(&r, WIRE_VLAN_BYTES))
				return CLASS_OTHER;
			type = be16(r.at - 2);
		}
	if (type < ETHERTYPE_LEAST)
		return of_llc(&r);
	if (type == WIRE_ETHERTYPE_MPLS)
		type = type_below_labels(&r);
	switch (type) {
	case WIRE_ETHERTYPE_ARP:
		return CLASS_NEIGHBOUR;
	case WIRE_ETHERTYPE_IP4:
		return of_ip4(&r);
	case WIRE_ETHERTYPE_IP6:
		return of_ip6(&r);
	}
	return r.is_group ? CLASS_MULTICAST : CLASS_OTHER;
}
