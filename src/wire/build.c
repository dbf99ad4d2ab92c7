// Builds frames from the outer header inwards, then the checksums from the inside outwards. Any
// thread; no state.
#include "wire/build.h"

#include "wire/checksum.h"
#include "wire/headers.h"

#include <errno.h>
#include <string.h>

enum { IP_MAX_BYTES = 65535 };

struct wire_recipe wire_recipe(uint8_t family)
{
	struct wire_recipe recipe = {
		.src_mac = {{0x02, 0, 0, 0, 0, 1}},
		.dst_mac = {{0x02, 0, 0, 0, 0, 2}},
		.ttl = 64,
		.protocol = WIRE_PROTO_UDP,
		.src_port = 1024,
		.dst_port = 2048,
		.frame_bytes = family == 6 ? 62 : 60,
	};

	wire_addr_parse(family == 6 ? "2001:db8::1" : "192.0.2.1", &recipe.src);
	wire_addr_parse(family == 6 ? "2001:db8:1::1" : "198.51.100.1", &recipe.dst);
	return recipe;
}

static size_t layer2_bytes(const struct wire_recipe *recipe)
{
	return WIRE_ETHER_BYTES + (recipe->has_vlan ? WIRE_VLAN_BYTES : 0);
}

static size_t ip_header_bytes(const struct wire_recipe *recipe)
{
	return recipe->src.family == 6 ? WIRE_IP6_BYTES : WIRE_IP4_BYTES;
}

static size_t layer4_header_bytes(const struct wire_recipe *recipe)
{
	switch (recipe->protocol) {
	case WIRE_PROTO_UDP:
		return WIRE_UDP_BYTES;
	case WIRE_PROTO_TCP:
		return WIRE_TCP_BYTES;
	case WIRE_PROTO_ICMP4:
	case WIRE_PROTO_ICMP6:
		return WIRE_ICMP_BYTES;
	}
	return 0;
}

static bool can_be_built(const struct wire_recipe *recipe)
{
	size_t least = layer2_bytes(recipe) + ip_header_bytes(recipe) + layer4_header_bytes(recipe);
	uint8_t family = recipe->src.family;

	if ((family != 4 && family != 6) || recipe->dst.family != family)
		return false;
	if (recipe->padding_bytes > recipe->frame_bytes)
		return false;
	least += recipe->padding_bytes;
	return recipe->frame_bytes >= least &&
	       recipe->frame_bytes - recipe->padding_bytes - layer2_bytes(recipe) <= IP_MAX_BYTES;
}

static void put_layer2(const struct wire_recipe *recipe, uint8_t *frame)
{
	uint16_t ip_be = htobe16(recipe->src.family == 6 ? WIRE_ETHERTYPE_IP6 : WIRE_ETHERTYPE_IP4);
	struct wire_ether *ether = (void *)frame;
	struct wire_vlan *vlan = (void *)(frame + sizeof(*ether));

	memcpy(ether->dst, recipe->dst_mac.bytes, sizeof(ether->dst));
	memcpy(ether->src, recipe->src_mac.bytes, sizeof(ether->src));
	ether->ethertype_be = ip_be;
	if (!recipe->has_vlan)
		return;
	ether->ethertype_be = htobe16(WIRE_ETHERTYPE_VLAN);
	vlan->tag_be = htobe16(recipe->vlan_tag);
	vlan->ethertype_be = ip_be;
}

// Both return the sum of the pseudo header.
static uint64_t put_ip4(const struct wire_recipe *recipe, uint8_t *at, size_t ip_bytes)
{
	struct wire_ip4 *ip = (void *)at;

	*ip = (struct wire_ip4){
		.version_ihl = 0x45,
		.dscp_ecn = recipe->dscp_ecn,
		.total_length_be = htobe16(ip_bytes),
		.fragment_be = htobe16(WIRE_IP4_DONT_FRAGMENT),
		.ttl = recipe->ttl,
		.protocol = recipe->protocol,
	};
	memcpy(ip->src, recipe->src.bytes, sizeof(ip->src));
	memcpy(ip->dst, recipe->dst.bytes, sizeof(ip->dst));
	ip->checksum_be = wire_ip4_checksum_be(ip);
	return wire_sum_pseudo4(ip, recipe->protocol, ip_bytes - sizeof(*ip));
}

static uint64_t put_ip6(const struct wire_recipe *recipe, uint8_t *at, size_t ip_bytes)
{
	struct wire_ip6 *ip = (void *)at;

	*ip = (struct wire_ip6){
		.version_class_flow_be = htobe32(6u << 28 | (uint32_t)recipe->dscp_ecn << 20),
		.payload_length_be = htobe16(ip_bytes - sizeof(*ip)),
		.next_header = recipe->protocol,
		.hop_limit = recipe->ttl,
	};
	memcpy(ip->src, recipe->src.bytes, sizeof(ip->src));
	memcpy(ip->dst, recipe->dst.bytes, sizeof(ip->dst));
	return wire_sum_pseudo6(ip, recipe->protocol, ip_bytes - sizeof(*ip));
}

static void put_udp(const struct wire_recipe *recipe, uint8_t *at, size_t bytes, uint64_t pseudo)
{
	struct wire_udp *udp = (void *)at;

	*udp = (struct wire_udp){
		.src_port_be = htobe16(recipe->src_port),
		.dst_port_be = htobe16(recipe->dst_port),
		.length_be = htobe16(bytes),
	};
	udp->checksum_be = wire_sum_finish_be(wire_sum(pseudo, at, bytes));
	if (!udp->checksum_be)
		udp->checksum_be = 0xffff; // 0 means "no checksum" (RFC 768)
}

static void put_tcp(const struct wire_recipe *recipe, uint8_t *at, size_t bytes, uint64_t pseudo)
{
	struct wire_tcp *tcp = (void *)at;

	*tcp = (struct wire_tcp){
		.src_port_be = htobe16(recipe->src_port),
		.dst_port_be = htobe16(recipe->dst_port),
		.data_offset = sizeof(*tcp) / 4 << 4,
		.flags = WIRE_TCP_ACK,
		.window_be = 0xffff,
	};
	tcp->checksum_be = wire_sum_finish_be(wire_sum(pseudo, at, bytes));
}

// `pseudo` is 0 for ICMP over IPv4, which has no pseudo header.
static void put_echo(const struct wire_recipe *recipe, uint8_t *at, size_t bytes, uint64_t pseudo)
{
	struct wire_icmp *icmp = (void *)at;
	bool is_icmp4 = recipe->protocol == WIRE_PROTO_ICMP4;

	*icmp = (struct wire_icmp){
		.type = is_icmp4 ? WIRE_ICMP4_ECHO : WIRE_ICMP6_ECHO,
		.id_be = htobe16(recipe->src_port),
		.seq_be = htobe16(recipe->dst_port),
	};
	icmp->checksum_be = wire_sum_finish_be(wire_sum(is_icmp4 ? 0 : pseudo, at, bytes));
}

int wire_build(const struct wire_recipe *recipe, uint8_t *frame, size_t room)
{
	size_t packet_end = recipe->frame_bytes - recipe->padding_bytes;
	size_t ip_at = layer2_bytes(recipe), layer4_at = ip_at + ip_header_bytes(recipe);
	size_t payload_at = layer4_at + layer4_header_bytes(recipe);
	size_t layer4_bytes = packet_end - layer4_at;
	uint64_t pseudo;

	if (!can_be_built(recipe))
		return -EINVAL;
	if (recipe->frame_bytes > room)
		return -ENOSPC;
	for (size_t i = payload_at; i < packet_end; i++)
		frame[i] = i - payload_at;
	memset(frame + packet_end, 0, recipe->padding_bytes);
	put_layer2(recipe, frame);
	pseudo = (recipe->src.family == 6 ? put_ip6 : put_ip4)(recipe, frame + ip_at,
		packet_end - ip_at);
	if (recipe->protocol == WIRE_PROTO_UDP)
		put_udp(recipe, frame + layer4_at, layer4_bytes, pseudo);
	else if (recipe->protocol == WIRE_PROTO_TCP)
		put_tcp(recipe, frame + layer4_at, layer4_bytes, pseudo);
	else if (layer4_header_bytes(recipe))
		put_echo(recipe, frame + layer4_at, layer4_bytes, pseudo);
	return 0;
}
