// What rules may ask of a packet, and the classification of a burst. Worker.
#include "acl/inside.h"

#include "wire/headers.h"
#include "wire/transport.h"

#include <rte_acl.h>

enum { TCP_FLAGS_END = 14, PORTS_BYTES = 4, TYPE_CODE_BYTES = 2 };

bool proto_has_ports(uint8_t proto)
{
	switch (proto) {
	case WIRE_PROTO_TCP:
	case WIRE_PROTO_UDP:
	case WIRE_PROTO_DCCP:
	case WIRE_PROTO_SCTP:
	case WIRE_PROTO_UDP_LITE:
		return true;
	}
	return false;
}

bool proto_is_icmp(uint8_t proto, bool is_ip6)
{
	return proto == (is_ip6 ? WIRE_PROTO_ICMP6 : WIRE_PROTO_ICMP4);
}

// The transport header, of which `bytes` are there.
static bool read_transport(struct acl_key *out, const uint8_t *transport, size_t bytes, bool is_ip6)
{
	if (proto_is_icmp(out->proto, is_ip6)) {
		if (bytes < TYPE_CODE_BYTES)
			return false;
		out->src_port_be = htobe16(transport[0]);
		out->dst_port_be = htobe16(transport[1]);
		return true;
	}
	if (!proto_has_ports(out->proto))
		return true;
	if (bytes < PORTS_BYTES)
		return false;
	out->src_port_be = load16(transport);
	out->dst_port_be = load16(transport + 2);
	if (out->proto != WIRE_PROTO_TCP)
		return true;
	if (bytes < TCP_FLAGS_END)
		return false;
	out->tcp_flags = transport[13];
	return true;
}

// A fragment at offset 8 would overwrite the flags of the TCP header (RFC 1858, 4).
static bool overwrites_tcp(uint8_t proto, uint16_t fragment_units)
{
	return proto == WIRE_PROTO_TCP && fragment_units == 1;
}

bool acl_key4(struct acl_key *out, const uint8_t *packet, size_t bytes)
{
	const struct wire_ip4 *ip = (const void *)packet;
	const enum wire_fragment_class fragment = wire_fragment_class4(ip->fragment_be);
	const unsigned header_bytes = wire_ip4_header_bytes(ip);

	*out = (struct acl_key){
		.proto = ip->protocol,
		.dscp = ip->dscp_ecn >> 2,
		.fragment = 1 << fragment,
	};
	memcpy(out->addr, ip->src, 8);
	if (fragment == WIRE_FRAGMENT_LATER)
		return !overwrites_tcp(ip->protocol,
			be16toh(ip->fragment_be) & WIRE_IP4_FRAGMENT_OFFSET);
	if (header_bytes > bytes)
		return false;
	return read_transport(out, packet + header_bytes, bytes - header_bytes, false);
}

bool acl_key6(struct acl_key *out, const uint8_t *packet, size_t bytes)
{
	const struct wire_ip6 *ip = (const void *)packet;
	struct wire_transport transport;

	wire_transport6(&transport, packet, bytes);
	*out = (struct acl_key){
		.proto = transport.proto,
		.dscp = be32toh(ip->version_class_flow_be) >> 22 & 63,
		.fragment = 1 << transport.fragment,
	};
	memcpy(out->addr, ip->src, 32);
	if (transport.verdict != WIRE_TRANSPORT_OK)
		return false;
	if (transport.fragment == WIRE_FRAGMENT_LATER)
		return !overwrites_tcp(transport.proto, transport.fragment_units);
	return read_transport(out, packet + transport.offset, bytes - transport.offset, true);
}

void acl_classify(const struct acl_list *list, bool is_ip6, const struct acl_key key[],
	uint32_t rule[], unsigned n)
{
	const struct rte_acl_ctx *classifier = list->classifier[is_ip6];
	const uint8_t *data[ACL_BURST];

	memset(rule, 0, n * sizeof(*rule));
	if (!classifier)
		return;
	for (unsigned i = 0; i < n; i++)
		data[i] = (const uint8_t *)&key[i];
	rte_acl_classify(classifier, data, rule, n, 1);
}
