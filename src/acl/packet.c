// A packet in words, and why a rule does not match it: a plain reading of the rules, without the
// classifier. Any thread.
#include "acl/inside.h"

#include "wire/headers.h"

#include <errno.h>
#include <string.h>

static bool in_prefix(const struct wire_addr *addr, const struct wire_prefix *prefix)
{
	struct wire_prefix masked = {*addr, prefix->len};

	if (!prefix->addr.family)
		return true;
	if (prefix->addr.family != addr->family)
		return false;
	wire_prefix_mask(&masked);
	return wire_addr_equal(&masked.addr, &prefix->addr);
}

static bool in_range(uint16_t value, const struct acl_range *range)
{
	return !range->is_set || (value >= range->least && value <= range->most);
}

const char *acl_rule_mismatch(const struct acl_rule *rule, const struct acl_packet *packet)
{
	const struct condition {
		const char *key;
		bool holds;
	} conditions[] = {
		{"local", rule->is_local == packet->is_local},
		{"family", !rule->family || rule->family == packet->src.family},
		{"protocol", rule->protocol == ACL_ANY_PROTOCOL || rule->protocol == packet->proto},
		{"from", in_prefix(&packet->src, &rule->from)},
		{"to", in_prefix(&packet->dst, &rule->to)},
		{"fragment", rule->fragments >> packet->fragment & 1},
		{"from_port", in_range(packet->src_port, &rule->from_port)},
		{"to_port", in_range(packet->dst_port, &rule->to_port)},
		{"icmp_type", in_range(packet->src_port, &rule->icmp_type)},
		{"icmp_code", in_range(packet->dst_port, &rule->icmp_code)},
		{"dscp", in_range(packet->dscp, &rule->dscp)},
		{"tcp_flags", (packet->tcp_flags & rule->tcp_mask) == rule->tcp_flags},
	};

	for (size_t i = 0; i < ARRAY_LEN(conditions); i++)
		if (!conditions[i].holds)
			return conditions[i].key;
	return NULL;
}

// Later fragments and protocols without ports have none.
static bool has_transport(const struct acl_packet *packet, bool is_ip6)
{
	return packet->fragment != WIRE_FRAGMENT_LATER &&
	       (proto_has_ports(packet->proto) || proto_is_icmp(packet->proto, is_ip6));
}

static void key_of_packet(struct acl_key *out, const struct acl_packet *packet)
{
	const bool is_ip6 = packet->src.family == 6;
	const size_t n = is_ip6 ? 16 : 4;

	*out = (struct acl_key){
		.proto = packet->proto,
		.dscp = packet->dscp,
		.fragment = 1 << packet->fragment,
		.tcp_flags = packet->tcp_flags,
		.is_local = packet->is_local,
	};
	if (has_transport(packet, is_ip6)) {
		out->src_port_be = htobe16(packet->src_port);
		out->dst_port_be = htobe16(packet->dst_port);
	}
	memcpy(out->addr, packet->src.bytes, n);
	memcpy(out->addr + n, packet->dst.bytes, n);
}

uint32_t built_find(const struct built *built, const struct acl_packet *packet)
{
	struct acl_key key;
	uint32_t rule;

	key_of_packet(&key, packet);
	acl_classify(&built->list, packet->src.family == 6, &key, &rule, 1);
	return rule;
}

static void packet_of_key(struct acl_packet *out, const struct acl_key *key, bool is_ip6)
{
	const size_t n = is_ip6 ? 16 : 4;

	*out = (struct acl_packet){
		.src.family = is_ip6 ? 6 : 4,
		.dst.family = is_ip6 ? 6 : 4,
		.src_port = be16toh(key->src_port_be),
		.dst_port = be16toh(key->dst_port_be),
		.proto = key->proto,
		.dscp = key->dscp,
		.tcp_flags = key->tcp_flags,
		.fragment = __builtin_ctz(key->fragment),
	};
	memcpy(out->src.bytes, key->addr, n);
	memcpy(out->dst.bytes, key->addr + n, n);
}

// Where the packet begins, behind up to two tags; 0: it is cut.
static size_t skip_tags(const uint8_t *frame, size_t n, uint16_t *ethertype)
{
	size_t at = WIRE_ETHER_BYTES;

	for (unsigned tags = 0; at <= n; tags++, at += WIRE_VLAN_BYTES) {
		*ethertype = frame[at - 2] << 8 | frame[at - 1];
		if (tags == 2 ||
			(*ethertype != WIRE_ETHERTYPE_VLAN && *ethertype != WIRE_ETHERTYPE_QINQ))
			return at;
	}
	return 0;
}

// Whether the headers are whole; *bytes becomes the length of the packet.
static bool is_sound(const uint8_t *packet, size_t *bytes, uint16_t ethertype)
{
	const struct wire_ip4 *ip4 = (const void *)packet;
	const struct wire_ip6 *ip6 = (const void *)packet;
	size_t says;

	if (*bytes < (ethertype == WIRE_ETHERTYPE_IP4 ? sizeof(*ip4) : sizeof(*ip6)))
		return false;
	if (ethertype == WIRE_ETHERTYPE_IP6) {
		*bytes = MIN_OF(*bytes, sizeof(*ip6) + be16toh(ip6->payload_length_be));
		return packet[0] >> 4 == 6;
	}
	says = be16toh(ip4->total_length_be);
	*bytes = MIN_OF(*bytes, says);
	return packet[0] >> 4 == 4 && wire_ip4_header_bytes(ip4) >= sizeof(*ip4) &&
	       wire_ip4_header_bytes(ip4) <= *bytes;
}

int acl_packet_read(struct acl_packet *out, const uint8_t *frame, size_t n, struct error *error)
{
	uint16_t ethertype = 0;
	const size_t at = skip_tags(frame, n, &ethertype);
	size_t bytes = n - at;
	struct acl_key key;

	if (!at || (ethertype != WIRE_ETHERTYPE_IP4 && ethertype != WIRE_ETHERTYPE_IP6) ||
		!is_sound(frame + at, &bytes, ethertype))
		return error_set(error, -EINVAL, "the frame has no IPv4 or IPv6 packet");
	const bool is_ip6 = ethertype == WIRE_ETHERTYPE_IP6;

	if (!(is_ip6 ? acl_key6 : acl_key4)(&key, frame + at, bytes))
		return error_set(error, -EINVAL,
			"no rule can judge it (acl_unparsable): its transport header is cut, or "
			"behind more than %d extension headers or %d bytes of them",
			WIRE_TRANSPORT_HEADERS, WIRE_TRANSPORT_BYTES);
	packet_of_key(out, &key, is_ip6);
	return 0;
}
