// Finds the space for a stamp in a captured frame, in the same way as receivers look for one. Pure.
#include "gen/capture.h"

#include "wire/checksum.h"
#include "wire/headers.h"
#include "wire/stamp.h"

#include <stddef.h>
#include <string.h>

// A packet within a frame: offsets of its layers, and fields of its IP header.
struct layers {
	unsigned ip, layer4, end;
	uint8_t protocol;
	bool is_ip6;
};

static uint16_t read_be(const uint8_t *at)
{
	uint16_t be;

	memcpy(&be, at, sizeof(be));
	return be16toh(be);
}

static bool find_ip4(const uint8_t *frame, unsigned n, struct layers *l)
{
	const struct wire_ip4 *ip = (const void *)(frame + l->ip);

	l->layer4 = l->ip + WIRE_IP4_BYTES;
	if (n < l->layer4 || ip->version_ihl != 0x45 ||
		ip->fragment_be & htobe16(WIRE_IP4_MORE_FRAGMENTS | WIRE_IP4_FRAGMENT_OFFSET))
		return false;
	l->end = l->ip + be16toh(ip->total_length_be);
	l->protocol = ip->protocol;
	return true;
}

static bool find_ip6(const uint8_t *frame, unsigned n, struct layers *l)
{
	const struct wire_ip6 *ip = (const void *)(frame + l->ip);

	l->is_ip6 = true;
	l->layer4 = l->ip + WIRE_IP6_BYTES;
	if (n < l->layer4 || frame[l->ip] >> 4 != 6)
		return false;
	l->end = l->layer4 + be16toh(ip->payload_length_be);
	l->protocol = ip->next_header;
	return true;
}

static bool find_layers(const uint8_t *frame, unsigned n, struct layers *l)
{
	uint16_t type = read_be(frame + 12);

	l->ip = WIRE_ETHER_BYTES;
	for (int tag = 0; tag < 2 && (type == WIRE_ETHERTYPE_VLAN || type == WIRE_ETHERTYPE_QINQ);
		tag++) {
		type = read_be(frame + l->ip + 2);
		l->ip += WIRE_VLAN_BYTES;
	}
	bool is_found = type == WIRE_ETHERTYPE_IP4   ? find_ip4(frame, n, l)
	                : type == WIRE_ETHERTYPE_IP6 ? find_ip6(frame, n, l)
	                                             : false;
	return is_found && l->end <= n;
}

static bool has_room(const uint8_t *frame, const struct layers *l)
{
	unsigned bytes = l->end > l->layer4 ? l->end - l->layer4 : 0;

	if (l->protocol == WIRE_PROTO_UDP)
		return bytes >= WIRE_UDP_BYTES + STAMP_BYTES &&
		       read_be(frame + l->layer4 + 4) == bytes;
	return l->protocol == WIRE_PROTO_TCP && bytes >= WIRE_TCP_BYTES + STAMP_TCP_PAYLOAD_BYTES &&
	       frame[l->layer4 + offsetof(struct wire_tcp, data_offset)] >> 4 == WIRE_TCP_BYTES / 4;
}

// Sums in memory order; stamping also requires a valid IPv4 header checksum.
static uint64_t sum_rest(uint8_t *frame, const struct layers *l)
{
	uint8_t *layer4 = frame + l->layer4;
	unsigned bytes = l->end - l->layer4;

	if (l->is_ip6)
		return wire_sum(wire_sum_pseudo6((void *)(frame + l->ip), l->protocol, bytes),
			layer4, bytes);
	struct wire_ip4 *ip = (void *)(frame + l->ip);
	ip->checksum_be = wire_ip4_checksum_be(ip);
	return wire_sum(wire_sum_pseudo4(ip, l->protocol, bytes), layer4, bytes);
}

void capture_make_room(uint8_t *frame, struct capture_frame *target)
{
	struct layers l = {0};

	if (!find_layers(frame, target->n_bytes, &l) || !has_room(frame, &l))
		return;
	uint8_t *layer4 = frame + l.layer4;

	target->layer4 = l.layer4;
	target->is_tcp = l.protocol == WIRE_PROTO_TCP;
	if (target->is_tcp) {
		memset(layer4 + offsetof(struct wire_tcp, seq_be), 0, 8);
		memset(layer4 + offsetof(struct wire_tcp, checksum_be), 0, 2);
		memset(layer4 + WIRE_TCP_BYTES, 0, STAMP_TCP_PAYLOAD_BYTES);
	} else {
		memset(layer4 + offsetof(struct wire_udp, checksum_be), 0, 2);
		memset(layer4 + WIRE_UDP_BYTES, 0, STAMP_BYTES);
	}
	target->sum = sum_rest(frame, &l);
}
