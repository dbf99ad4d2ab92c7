// Keys and what users see of them. Any thread.
#include "flow/flow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

enum { MAX_VRF = 4095 };

static bool has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_SCTP ||
	       proto == IPPROTO_DCCP || proto == IPPROTO_UDPLITE;
}

static bool is_icmp(const struct flow_tuple *tuple)
{
	return tuple->proto == (tuple->src.family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

// Headers that workers walk to find the transport header (wire/transport.c).
static bool is_extension(uint8_t proto)
{
	return proto == IPPROTO_HOPOPTS || proto == IPPROTO_ROUTING || proto == IPPROTO_FRAGMENT ||
	       proto == IPPROTO_AH || proto == IPPROTO_DSTOPTS || proto == IPPROTO_MH ||
	       proto == 139 || proto == 140; // HIP, Shim6
}

static bool is_mapped(const struct wire_addr *addr)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};

	return addr->family == 6 && !memcmp(addr->bytes, mapped, sizeof(mapped));
}

// What no packet of its family has, or none that is meant.
static int check_proto(const struct flow_tuple *tuple, struct error *error)
{
	const bool is6 = tuple->src.family == 6;

	if (is6 && is_extension(tuple->proto))
		return error_set(error, -EINVAL,
			"protocol %u is an extension header of IPv6: expected the protocol that "
			"follows it",
			tuple->proto);
	if (tuple->proto == (is6 ? IPPROTO_ICMP : IPPROTO_ICMPV6))
		return error_set(error, -EINVAL, "protocol %u in a flow of IPv%c: expected %u",
			tuple->proto, is6 ? '6' : '4', is6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
	if (is_icmp(tuple) && tuple->dst_port)
		return error_set(error, -EINVAL,
			"an ICMP flow has an identifier (as its source port), but no destination "
			"port");
	if (!has_ports(tuple->proto) && !is_icmp(tuple) && (tuple->src_port || tuple->dst_port))
		return error_set(error, -EINVAL, "protocol %u has no ports", tuple->proto);
	return 0;
}

static int check(const struct flow_tuple *tuple, struct error *error)
{
	if ((tuple->src.family != 4 && tuple->src.family != 6) ||
		tuple->src.family != tuple->dst.family)
		return error_set(error, -EINVAL,
			"a flow has a source and a destination of the same family");
	if (is_mapped(&tuple->src) || is_mapped(&tuple->dst))
		return error_set(error, -EINVAL,
			"IPv4-mapped IPv6 address in a flow: use the IPv4 address");
	if (tuple->vrf > MAX_VRF)
		return error_set(error, -EINVAL, "VRF %u of a flow: expected 0 to %u", tuple->vrf,
			MAX_VRF);
	return check_proto(tuple, error);
}

static int set4(struct flow_key *key, const struct flow_tuple *tuple, struct error *error)
{
	static const struct flow_key4 zero;

	key->four = (struct flow_key4){.kind = flow_kind4(tuple->vrf, tuple->proto),
		.src_be = load32(tuple->src.bytes),
		.dst_be = load32(tuple->dst.bytes),
		.src_port_be = htons(tuple->src_port),
		.dst_port_be = htons(tuple->dst_port)};
	// What a free slot looks like.
	if (!memcmp(&key->four, &zero, sizeof(zero)))
		return error_set(error, -EINVAL, "a flow of zeros only is not possible");
	return 0;
}

int flow_key_set(struct flow_key *key, const struct flow_tuple *tuple, struct error *error)
{
	int err = check(tuple, error);

	if (err)
		return err;
	memset(key, 0, sizeof(*key));
	key->family = tuple->src.family;
	if (key->family == 4)
		return set4(key, tuple, error);
	key->six = (struct flow_key6){.src_port_be = htons(tuple->src_port),
		.dst_port_be = htons(tuple->dst_port),
		.proto = tuple->proto,
		.vrf = tuple->vrf};
	memcpy(key->six.src, tuple->src.bytes, sizeof(key->six.src));
	memcpy(key->six.dst, tuple->dst.bytes, sizeof(key->six.dst));
	return 0;
}

void flow_key_tuple(const struct flow_key *key, struct flow_tuple *tuple)
{
	memset(tuple, 0, sizeof(*tuple));
	tuple->src.family = tuple->dst.family = key->family;
	if (key->family == 4) {
		const uint32_t kind = key->four.kind;
		memcpy(tuple->src.bytes, &key->four.src_be, sizeof(key->four.src_be));
		memcpy(tuple->dst.bytes, &key->four.dst_be, sizeof(key->four.dst_be));
		tuple->src_port = ntohs(key->four.src_port_be);
		tuple->dst_port = ntohs(key->four.dst_port_be);
		tuple->proto = flow_kind4_proto(kind);
		tuple->vrf = flow_kind4_vrf(kind);
		return;
	}
	memcpy(tuple->src.bytes, key->six.src, sizeof(key->six.src));
	memcpy(tuple->dst.bytes, key->six.dst, sizeof(key->six.dst));
	tuple->src_port = ntohs(key->six.src_port_be);
	tuple->dst_port = ntohs(key->six.dst_port_be);
	tuple->proto = key->six.proto;
	tuple->vrf = key->six.vrf;
}
