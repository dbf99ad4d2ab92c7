// See icmp_error.h.
#include "wire/icmp_error.h"

#include "wire/checksum.h"
#include "wire/transport.h"

#include <string.h>

enum { TAGS_MOST = 2, MOST4 = 576 - WIRE_IP4_BYTES, CODE_PROHIBITED4 = 13, CODE_PROHIBITED6 = 1 };
enum { FIRST_INFORMATIONAL6 = 128, REDIRECT6 = 137 };

static bool is_error4(uint8_t type)
{
	switch (type) {
	case WIRE_ICMP4_UNREACHABLE:
	case WIRE_ICMP4_QUENCH:
	case WIRE_ICMP4_REDIRECT:
	case WIRE_ICMP4_TIME_EXCEEDED:
	case WIRE_ICMP4_PARAMETER:
		return true;
	}
	return false;
}

// Whether the address is that of one host, to which packets may be routed.
static bool is_host4(const uint8_t addr[4])
{
	return addr[0] > 0 && addr[0] < 224 && addr[0] != 127;
}

static bool is_host6(const uint8_t addr[16])
{
	static const uint8_t zeros[15];
	const bool is_unspecified = !memcmp(addr, zeros, sizeof(zeros)) && addr[15] <= 1;

	return !is_unspecified && addr[0] != 0xff && !(addr[0] == 0xfe && (addr[1] & 0xc0) == 0x80);
}

// Whether an error may be sent about the packet, of which `n` bytes are there.
static bool may_answer4(const uint8_t *packet, size_t n)
{
	const struct wire_ip4 *ip = (const void *)packet;
	const size_t header = n < sizeof(*ip) ? 0 : wire_ip4_header_bytes(ip);

	if (header < sizeof(*ip) || header > n || packet[0] >> 4 != 4)
		return false;
	if (be16toh(ip->fragment_be) & WIRE_IP4_FRAGMENT_OFFSET)
		return false;
	if (ip->protocol == WIRE_PROTO_ICMP4 && (header == n || is_error4(packet[header])))
		return false;
	return is_host4(ip->src) && is_host4(ip->dst);
}

static bool may_answer6(const uint8_t *packet, size_t n)
{
	const struct wire_ip6 *ip = (const void *)packet;
	struct wire_transport transport;

	if (n < sizeof(*ip) || packet[0] >> 4 != 6 || !is_host6(ip->src) || ip->dst[0] == 0xff)
		return false;
	wire_transport6(&transport, packet, n);
	if (transport.verdict != WIRE_TRANSPORT_OK || transport.fragment == WIRE_FRAGMENT_LATER)
		return false;
	if (transport.proto != WIRE_PROTO_ICMP6)
		return true;
	if (transport.offset >= n)
		return false;
	const uint8_t type = packet[transport.offset];

	return type >= FIRST_INFORMATIONAL6 && type != REDIRECT6;
}

// Where the packet begins, behind its tags; n: nowhere.
static size_t skip_tags(const uint8_t *frame, size_t n, unsigned *ethertype)
{
	size_t at = WIRE_ETHER_BYTES;

	for (unsigned tags = 0; at <= n; tags++, at += WIRE_VLAN_BYTES) {
		*ethertype = frame[at - 2] << 8 | frame[at - 1];
		if (tags == TAGS_MOST ||
			(*ethertype != WIRE_ETHERTYPE_VLAN && *ethertype != WIRE_ETHERTYPE_QINQ))
			return at;
	}
	return n;
}

static void build(struct wire_icmp_error *out, const uint8_t *packet, size_t n, bool is_ip6)
{
	const struct wire_ip4 *ip4 = (const void *)packet;
	const struct wire_ip6 *ip6 = (const void *)packet;
	const size_t says = is_ip6 ? WIRE_IP6_BYTES + be16toh(ip6->payload_length_be)
	                           : be16toh(ip4->total_length_be);
	const size_t most = (is_ip6 ? (size_t)WIRE_ICMP_ERROR_BYTES : MOST4) - WIRE_ICMP_BYTES;
	struct wire_icmp *icmp = (void *)out->bytes;

	n = n < says ? n : says; // without padding
	n = n < most ? n : most;
	out->n = WIRE_ICMP_BYTES + n;
	*icmp = (struct wire_icmp){
		.type = is_ip6 ? WIRE_ICMP6_UNREACHABLE : WIRE_ICMP4_UNREACHABLE,
		.code = is_ip6 ? CODE_PROHIBITED6 : CODE_PROHIBITED4,
	};
	memcpy(out->bytes + WIRE_ICMP_BYTES, packet, n);
	if (!is_ip6)
		icmp->checksum_be = wire_sum_finish_be(wire_sum(0, out->bytes, out->n));
	memset(&out->to, 0, sizeof(out->to));
	out->to.family = is_ip6 ? 6 : 4;
	memcpy(out->to.bytes, is_ip6 ? ip6->src : ip4->src, is_ip6 ? 16 : 4);
}

bool wire_icmp_prohibited(struct wire_icmp_error *out, const uint8_t *frame, size_t n)
{
	unsigned ethertype = 0;

	if (n < WIRE_ETHER_BYTES || frame[0] & 1)
		return false;
	const size_t at = skip_tags(frame, n, &ethertype);
	const bool is_ip6 = ethertype == WIRE_ETHERTYPE_IP6;

	if (!is_ip6 && ethertype != WIRE_ETHERTYPE_IP4)
		return false;
	if (!(is_ip6 ? may_answer6 : may_answer4)(frame + at, n - at))
		return false;
	build(out, frame + at, n - at, is_ip6);
	return true;
}
