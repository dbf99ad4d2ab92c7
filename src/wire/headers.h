// Header layouts and protocol numbers. Fields named _be are in network order; all structs are
// packed, so that they can be mapped onto any address. No thread, no state.
#pragma once

#include <assert.h>
#include <endian.h>
#include <stdint.h>

enum {
	WIRE_ETHERTYPE_IP4 = 0x0800,
	WIRE_ETHERTYPE_MPLS = 0x8847,
	WIRE_ETHERTYPE_FRAME = 0x6558, // in GRE
	WIRE_ETHERTYPE_ARP = 0x0806,
	WIRE_ETHERTYPE_RARP = 0x8035,
	WIRE_ETHERTYPE_VLAN = 0x8100, // 802.1Q
	WIRE_ETHERTYPE_IP6 = 0x86dd,
	WIRE_ETHERTYPE_QINQ = 0x88a8, // 802.1ad
};

// IPv4 protocol or IPv6 next header.
enum {
	WIRE_PROTO_HOP_BY_HOP = 0,
	WIRE_PROTO_ICMP4 = 1,
	WIRE_PROTO_IGMP = 2,
	WIRE_PROTO_IP4 = 4,
	WIRE_PROTO_TCP = 6,
	WIRE_PROTO_UDP = 17,
	WIRE_PROTO_DCCP = 33,
	WIRE_PROTO_IP6 = 41,
	WIRE_PROTO_ROUTING = 43,
	WIRE_PROTO_FRAGMENT = 44,
	WIRE_PROTO_GRE = 47,
	WIRE_PROTO_ESP = 50,
	WIRE_PROTO_AH = 51,
	WIRE_PROTO_ICMP6 = 58,
	WIRE_PROTO_NONE = 59,
	WIRE_PROTO_DESTINATION = 60,
	WIRE_PROTO_PIM = 103,
	WIRE_PROTO_SCTP = 132,
	WIRE_PROTO_MOBILITY = 135,
	WIRE_PROTO_UDP_LITE = 136,
	WIRE_PROTO_MPLS = 137,
	WIRE_PROTO_HIP = 139,
	WIRE_PROTO_SHIM6 = 140,
};

enum {
	WIRE_ETHER_BYTES = 14,
	WIRE_VLAN_BYTES = 4,
	WIRE_ARP_BYTES = 28,
	WIRE_IP4_BYTES = 20, // without options
	WIRE_IP6_BYTES = 40,
	WIRE_UDP_BYTES = 8,
	WIRE_TCP_BYTES = 20, // without options
	WIRE_ICMP_BYTES = 8,
	WIRE_FCS_BYTES = 4,
};

enum {
	WIRE_IP4_DONT_FRAGMENT = 0x4000,
	WIRE_IP4_MORE_FRAGMENTS = 0x2000,
	WIRE_IP4_FRAGMENT_OFFSET = 0x1fff
};

enum { WIRE_IP6_FLOW_LABEL = 0xfffff }; // of version_class_flow_be

#define WIRE_PACKED __attribute__((packed))

struct wire_ether {
	uint8_t dst[6];
	uint8_t src[6];
	uint16_t ethertype_be;
} WIRE_PACKED;
static_assert(sizeof(struct wire_ether) == WIRE_ETHER_BYTES, "Ethernet header");

// Follows wire_ether if its EtherType is WIRE_ETHERTYPE_VLAN or _QINQ.
struct wire_vlan {
	uint16_t tag_be; // priority 3 bits, drop eligible 1, id 12
	uint16_t ethertype_be;
} WIRE_PACKED;
static_assert(sizeof(struct wire_vlan) == WIRE_VLAN_BYTES, "VLAN tag");

// ARP for IPv4 over Ethernet (RFC 826).
struct wire_arp {
	uint16_t hardware_be, protocol_be;
	uint8_t hardware_bytes, protocol_bytes;
	uint16_t operation_be; // 1 request, 2 reply
	uint8_t sender_mac[6], sender_ip[4];
	uint8_t target_mac[6], target_ip[4];
} WIRE_PACKED;
static_assert(sizeof(struct wire_arp) == WIRE_ARP_BYTES, "ARP packet");

struct wire_ip4 {
	uint8_t version_ihl; // version 4 bits, header length in 32-bit words 4 bits
	uint8_t dscp_ecn;
	uint16_t total_length_be;
	uint16_t id_be;
	uint16_t fragment_be; // flags 3 bits, offset 13 bits in units of 8 bytes
	uint8_t ttl;
	uint8_t protocol;
	uint16_t checksum_be;
	uint8_t src[4], dst[4];
} WIRE_PACKED;
static_assert(sizeof(struct wire_ip4) == WIRE_IP4_BYTES, "IPv4 header");

struct wire_ip6 {
	uint32_t version_class_flow_be; // version 4 bits, traffic class 8, flow label 20
	uint16_t payload_length_be;
	uint8_t next_header;
	uint8_t hop_limit;
	uint8_t src[16], dst[16];
} WIRE_PACKED;
static_assert(sizeof(struct wire_ip6) == WIRE_IP6_BYTES, "IPv6 header");

struct wire_udp {
	uint16_t src_port_be, dst_port_be;
	uint16_t length_be, checksum_be;
} WIRE_PACKED;
static_assert(sizeof(struct wire_udp) == WIRE_UDP_BYTES, "UDP header");

struct wire_tcp {
	uint16_t src_port_be, dst_port_be;
	uint32_t seq_be, ack_be;
	uint8_t data_offset; // header length in 32-bit words, high 4 bits
	uint8_t flags;
	uint16_t window_be, checksum_be, urgent_be;
} WIRE_PACKED;
static_assert(sizeof(struct wire_tcp) == WIRE_TCP_BYTES, "TCP header");

enum {
	WIRE_TCP_FIN = 1,
	WIRE_TCP_SYN = 2,
	WIRE_TCP_RST = 4,
	WIRE_TCP_PSH = 8,
	WIRE_TCP_ACK = 16,
	WIRE_TCP_URG = 32,
	WIRE_TCP_CWR = 128
};

// ICMP and ICMPv6; id and sequence are those of echo messages.
struct wire_icmp {
	uint8_t type, code;
	uint16_t checksum_be;
	uint16_t id_be, seq_be;
} WIRE_PACKED;
static_assert(sizeof(struct wire_icmp) == WIRE_ICMP_BYTES, "ICMP header");

enum {
	WIRE_ICMP4_ECHO_REPLY = 0,
	WIRE_ICMP4_UNREACHABLE = 3,
	WIRE_ICMP4_QUENCH = 4,
	WIRE_ICMP4_REDIRECT = 5,
	WIRE_ICMP4_ECHO = 8,
	WIRE_ICMP4_TIME_EXCEEDED = 11,
	WIRE_ICMP4_PARAMETER = 12,
	WIRE_ICMP4_TIMESTAMP = 13,
	WIRE_ICMP4_TIMESTAMP_REPLY = 14,
	WIRE_ICMP6_UNREACHABLE = 1,
	WIRE_ICMP6_TOO_BIG = 2,
	WIRE_ICMP6_TIME_EXCEEDED = 3,
	WIRE_ICMP6_PARAMETER = 4,
	WIRE_ICMP6_ECHO = 128,
	WIRE_ICMP6_ECHO_REPLY = 129,
	WIRE_ICMP6_SOLICITATION = 135,
	WIRE_ICMP6_ADVERTISEMENT = 136
};

// Length of an IPv4 header by its length field; 0 to 60, so check it first.
static inline unsigned wire_ip4_header_bytes(const struct wire_ip4 *ip)
{
	return (ip->version_ihl & 15) * 4;
}
