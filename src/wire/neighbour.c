// Parses and builds ARP and ND frames. Any thread.
#include "wire/neighbour.h"

#include "wire/checksum.h"

#include <errno.h>
#include <stddef.h>

enum { ASKS = 1, TELLS = 2, HARDWARE_ETHERNET = 1 }; // of ARP
enum { SOURCE_MAC = 1, TARGET_MAC = 2, OPTION_UNIT = 8, HOP_LIMIT = 255 };
enum { SOLICITED = 0x40000000, OVERRIDE = 0x20000000 };

static const struct wire_mac everybody = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
static const uint8_t all_nodes[16] = {0xff, 2, [15] = 1};
// ff02::1:ff00:0/104, and the last 24 bits of the address being resolved
static const uint8_t solicited_nodes[16] = {0xff, 2, [11] = 1, [12] = 0xff};

// A solicitation or advertisement (RFC 4861, 4.3 and 4.4); options follow.
struct nd {
	uint8_t type, code;
	uint16_t checksum_be;
	uint32_t flags_be;
	uint8_t target[16];
} WIRE_PACKED;

struct nd_option {
	uint8_t type, units;
	uint8_t mac[6];
} WIRE_PACKED;

static bool is_group(const uint8_t mac[6])
{
	return mac[0] & 1;
}

static bool is_zero(const uint8_t bytes[16])
{
	static const uint8_t zero[16];

	return !memcmp(bytes, zero, sizeof(zero));
}

static struct wire_mac mac_of(const uint8_t bytes[6])
{
	struct wire_mac mac;

	memcpy(mac.bytes, bytes, sizeof(mac.bytes));
	return mac;
}

static struct wire_addr addr_of(const uint8_t *bytes, uint8_t family)
{
	struct wire_addr addr = {.family = family};

	memcpy(addr.bytes, bytes, family == 4 ? 4 : 16);
	return addr;
}

static int read_arp(const uint8_t *packet, size_t n, struct wire_neighbour *out)
{
	const struct wire_arp *arp = (const void *)packet;

	if (n < sizeof(*arp) || arp->hardware_be != htobe16(HARDWARE_ETHERNET) ||
		arp->protocol_be != htobe16(WIRE_ETHERTYPE_IP4) || arp->hardware_bytes != 6 ||
		arp->protocol_bytes != 4 || is_group(arp->sender_mac) || arp->sender_ip[0] >= 224)
		return -EINVAL;
	const struct wire_addr sender = addr_of(arp->sender_ip, 4);
	const struct wire_addr target = addr_of(arp->target_ip, 4);

	out->is_reply = arp->operation_be == htobe16(TELLS);
	if (!out->is_reply && arp->operation_be != htobe16(ASKS))
		return -EINVAL;
	out->target = out->is_reply ? sender : target;
	out->sender = out->is_reply ? target : sender;
	out->about_mac = mac_of(out->is_reply ? arp->sender_mac : arp->target_mac);
	out->asker_mac = mac_of(out->is_reply ? arp->target_mac : arp->sender_mac);
	return 0;
}

// Finds the MAC address in the options, if there is one of this type.
static int read_options(const uint8_t *options, size_t n, uint8_t type, const uint8_t **mac)
{
	while (n) {
		size_t bytes = n >= 2 ? options[1] * OPTION_UNIT : 0;

		if (!bytes || bytes > n)
			return -EINVAL;
		if (options[0] == type && bytes == sizeof(struct nd_option))
			*mac = ((const struct nd_option *)options)->mac;
		options += bytes;
		n -= bytes;
	}
	return *mac && is_group(*mac) ? -EINVAL : 0;
}

// Checks what RFC 4861 requires of both messages (7.1.1, 7.1.2).
static bool is_nd_right(const struct wire_ip6 *ip, const struct nd *nd, size_t n)
{
	uint64_t pseudo = wire_sum_pseudo6(ip, WIRE_PROTO_ICMP6, n);

	return be32toh(ip->version_class_flow_be) >> 28 == 6 && ip->hop_limit == HOP_LIMIT &&
	       ip->next_header == WIRE_PROTO_ICMP6 && !nd->code && nd->target[0] != 0xff &&
	       ip->src[0] != 0xff && !wire_sum_finish_be(wire_sum(pseudo, nd, n));
}

static int read_solicitation(const struct wire_ip6 *ip, const uint8_t *option,
	struct wire_neighbour *out)
{
	bool is_to_some = !memcmp(ip->dst, solicited_nodes, 13);

	if (is_zero(ip->src) && (option || !is_to_some))
		return -EINVAL;
	out->sender = addr_of(ip->src, 6);
	if (option)
		out->asker_mac = mac_of(option);
	return 0;
}

static int read_advertisement(const struct wire_ip6 *ip, const uint8_t *option,
	struct wire_neighbour *out)
{
	const struct nd *nd = (const void *)(ip + 1);

	if ((ip->dst[0] == 0xff && nd->flags_be & htobe32(SOLICITED)) || is_zero(ip->src))
		return -EINVAL;
	out->is_reply = true;
	out->sender = addr_of(ip->dst, 6);
	out->about_mac = option ? mac_of(option) : out->asker_mac;
	return 0;
}

// Unless an option gives another, the sender's MAC is the frame's source, saved in asker_mac.
static int read_nd(const uint8_t *packet, size_t n, struct wire_neighbour *out)
{
	const struct wire_ip6 *ip = (const void *)packet;
	const struct nd *nd = (const void *)(ip + 1);
	const uint8_t *option = NULL;

	if (n < sizeof(*ip) + sizeof(*nd))
		return -EINVAL;
	size_t bytes = be16toh(ip->payload_length_be);
	if (bytes < sizeof(*nd) || bytes > n - sizeof(*ip) || !is_nd_right(ip, nd, bytes))
		return -EINVAL;
	bool asks = nd->type == WIRE_ICMP6_SOLICITATION;
	if (!asks && nd->type != WIRE_ICMP6_ADVERTISEMENT)
		return -EINVAL;
	if (read_options((const void *)(nd + 1), bytes - sizeof(*nd),
		    asks ? SOURCE_MAC : TARGET_MAC, &option))
		return -EINVAL;
	out->target = addr_of(nd->target, 6);
	return asks ? read_solicitation(ip, option, out) : read_advertisement(ip, option, out);
}

int wire_neighbour_read(const uint8_t *frame, size_t n, struct wire_neighbour *out)
{
	const struct wire_ether *ether = (const void *)frame;
	struct wire_neighbour got = {0};
	size_t at = sizeof(*ether);

	if (n < sizeof(*ether) + sizeof(struct wire_vlan) || is_group(ether->src))
		return -EINVAL;
	uint16_t type_be = ether->ethertype_be;
	if (type_be == htobe16(WIRE_ETHERTYPE_VLAN)) {
		const struct wire_vlan *vlan = (const void *)(frame + at);

		got.has_vlan = true;
		got.vlan_tag = be16toh(vlan->tag_be);
		type_be = vlan->ethertype_be;
		at += sizeof(*vlan);
	}
	got.asker_mac = mac_of(ether->src);
	int err = -EINVAL;
	if (type_be == htobe16(WIRE_ETHERTYPE_ARP))
		err = read_arp(frame + at, n - at, &got);
	else if (type_be == htobe16(WIRE_ETHERTYPE_IP6))
		err = read_nd(frame + at, n - at, &got);
	if (!err)
		*out = got;
	return err;
}

static void build_arp(const struct wire_neighbour *neighbour, uint8_t *packet)
{
	bool tells = neighbour->is_reply;
	struct wire_arp arp = {
		.hardware_be = htobe16(HARDWARE_ETHERNET),
		.protocol_be = htobe16(WIRE_ETHERTYPE_IP4),
		.hardware_bytes = 6,
		.protocol_bytes = 4,
		.operation_be = htobe16(tells ? TELLS : ASKS),
	};

	memcpy(arp.sender_mac, (tells ? neighbour->about_mac : neighbour->asker_mac).bytes, 6);
	memcpy(arp.sender_ip, (tells ? &neighbour->target : &neighbour->sender)->bytes, 4);
	if (tells)
		memcpy(arp.target_mac, neighbour->asker_mac.bytes, 6);
	memcpy(arp.target_ip, (tells ? &neighbour->sender : &neighbour->target)->bytes, 4);
	memcpy(packet, &arp, sizeof(arp));
}

static void choose_dst(const struct wire_neighbour *neighbour, uint8_t dst[16])
{
	if (!neighbour->is_reply) {
		memcpy(dst, solicited_nodes, 13);
		memcpy(dst + 13, neighbour->target.bytes + 13, 3);
	} else {
		memcpy(dst, is_zero(neighbour->sender.bytes) ? all_nodes : neighbour->sender.bytes,
			16);
	}
}

static void build_nd(const struct wire_neighbour *neighbour, uint8_t *packet)
{
	bool tells = neighbour->is_reply, has_asker = !is_zero(neighbour->sender.bytes);
	struct {
		struct wire_ip6 ip;
		struct nd nd;
		struct nd_option option;
	} WIRE_PACKED whole = {
		.ip = {.version_class_flow_be = htobe32(6u << 28),
			.payload_length_be = htobe16(sizeof(struct nd) + sizeof(struct nd_option)),
			.next_header = WIRE_PROTO_ICMP6,
			.hop_limit = HOP_LIMIT},
		.nd = {.type = tells ? WIRE_ICMP6_ADVERTISEMENT : WIRE_ICMP6_SOLICITATION},
		.option = {.type = tells ? TARGET_MAC : SOURCE_MAC, .units = 1},
	};

	if (tells)
		whole.nd.flags_be = htobe32(OVERRIDE | (has_asker ? SOLICITED : 0));
	memcpy(whole.nd.target, neighbour->target.bytes, 16);
	memcpy(whole.ip.src, (tells ? &neighbour->target : &neighbour->sender)->bytes, 16);
	choose_dst(neighbour, whole.ip.dst);
	memcpy(whole.option.mac, (tells ? neighbour->about_mac : neighbour->asker_mac).bytes, 6);
	size_t n = sizeof(whole.nd) + sizeof(whole.option);
	uint64_t pseudo = wire_sum_pseudo6(&whole.ip, WIRE_PROTO_ICMP6, n);
	memcpy(packet, &whole, sizeof(whole));
	uint16_t checksum_be = wire_sum_finish_be(wire_sum(pseudo, packet + WIRE_IP6_BYTES, n));
	memcpy(packet + WIRE_IP6_BYTES + offsetof(struct nd, checksum_be), &checksum_be, 2);
}

// The frame's destination: for a group, 33:33 followed by the last 32 bits of its address (RFC
// 2464).
static struct wire_mac ether_dst(const struct wire_neighbour *neighbour)
{
	struct wire_mac mac = {{0x33, 0x33}};
	bool is_ip6 = neighbour->target.family == 6;
	uint8_t dst[16];

	if (!is_ip6)
		return neighbour->is_reply ? neighbour->asker_mac : everybody;
	choose_dst(neighbour, dst);
	if (dst[0] != 0xff)
		return neighbour->asker_mac;
	memcpy(mac.bytes + 2, dst + 12, 4);
	return mac;
}

size_t wire_neighbour_build(const struct wire_neighbour *neighbour, uint8_t *frame)
{
	bool is_ip6 = neighbour->target.family == 6;
	uint16_t type_be = htobe16(is_ip6 ? WIRE_ETHERTYPE_IP6 : WIRE_ETHERTYPE_ARP);
	size_t at = sizeof(struct wire_ether);

	memcpy(frame, ether_dst(neighbour).bytes, 6);
	memcpy(frame + 6, (neighbour->is_reply ? neighbour->about_mac : neighbour->asker_mac).bytes,
		6);
	if (neighbour->has_vlan) {
		const uint16_t tag_be[] = {htobe16(WIRE_ETHERTYPE_VLAN),
			htobe16(neighbour->vlan_tag)};

		memcpy(frame + 12, tag_be, sizeof(tag_be));
		at += WIRE_VLAN_BYTES;
	}
	memcpy(frame + at - 2, &type_be, sizeof(type_be));
	if (is_ip6)
		build_nd(neighbour, frame + at);
	else
		build_arp(neighbour, frame + at);
	return at + (is_ip6 ? WIRE_IP6_BYTES + sizeof(struct nd) + sizeof(struct nd_option)
			    : WIRE_ARP_BYTES);
}
