// Checks frames, one condition after the other. Any thread; no state.
#include "wire/check.h"

#include "wire/checksum.h"
#include "wire/headers.h"

#include <string.h>

// The rest of the frame, from some header on.
struct view {
	const uint8_t *at;
	size_t contiguous, bytes;
};

static enum wire_fault need(const struct view *view, size_t header_bytes)
{
	if (view->bytes < header_bytes)
		return WIRE_RUNT;
	return view->contiguous < header_bytes ? WIRE_MULTI_SEGMENT : WIRE_OK;
}

static enum wire_fault check_ip4_source(const uint8_t *src, const struct wire_check_rules *rules)
{
	bool martian = src[0] == 0 || src[0] == 127 || src[0] >= 224;

	if (martian && !rules->pass_martians)
		return WIRE_MARTIAN_SOURCE;
	return src[0] == 169 && src[1] == 254 ? WIRE_LINK_LOCAL_SOURCE : WIRE_OK;
}

static enum wire_fault check_ip4(const struct view *view, const struct wire_check_rules *rules)
{
	const struct wire_ip4 *ip = (const void *)view->at;
	enum wire_fault fault = need(view, sizeof(*ip));
	unsigned header_bytes, total_bytes;

	if (fault)
		return fault;
	header_bytes = wire_ip4_header_bytes(ip);
	total_bytes = be16toh(ip->total_length_be);
	if (ip->version_ihl >> 4 != 4)
		return WIRE_IP4_VERSION;
	if (header_bytes < WIRE_IP4_BYTES)
		return WIRE_IP4_HEADER_LENGTH;
	if (total_bytes < header_bytes || total_bytes > view->bytes)
		return WIRE_IP4_LENGTH;
	if (view->contiguous < header_bytes)
		return WIRE_MULTI_SEGMENT;
	if (rules->verify_ip4_checksum && !wire_ip4_checksum_good(ip))
		return WIRE_IP4_CHECKSUM;
	if (header_bytes > WIRE_IP4_BYTES)
		return WIRE_IP4_OPTIONS;
	return check_ip4_source(ip->src, rules);
}

static enum wire_fault check_ip6_source(const uint8_t *src, const struct wire_check_rules *rules)
{
	static const uint8_t zero[15], ip4_mapped[12] = {[10] = 0xff, [11] = 0xff};
	bool unspecified_or_loopback = !memcmp(src, zero, sizeof(zero)) && src[15] <= 1;
	bool martian = unspecified_or_loopback || src[0] == 0xff ||
	               !memcmp(src, ip4_mapped, sizeof(ip4_mapped)); // RFC 6890, 2.2.3

	if (martian && !rules->pass_martians)
		return WIRE_MARTIAN_SOURCE;
	return src[0] == 0xfe && (src[1] & 0xc0) == 0x80 ? WIRE_LINK_LOCAL_SOURCE : WIRE_OK;
}

static enum wire_fault check_ip6(const struct view *view, const struct wire_check_rules *rules)
{
	const struct wire_ip6 *ip = (const void *)view->at;
	enum wire_fault fault = need(view, sizeof(*ip));

	if (fault)
		return fault;
	if (view->at[0] >> 4 != 6)
		return WIRE_IP6_VERSION;
	if (sizeof(*ip) + be16toh(ip->payload_length_be) > view->bytes)
		return WIRE_IP6_LENGTH;
	if (ip->next_header == WIRE_PROTO_HOP_BY_HOP)
		return WIRE_IP6_HOP_BY_HOP;
	return check_ip6_source(ip->src, rules);
}

enum wire_fault wire_check_packet(const uint8_t *packet, bool is_ip6, size_t contiguous_bytes,
	size_t packet_bytes, const struct wire_check_rules *rules)
{
	const struct view view = {packet, contiguous_bytes, packet_bytes};

	return is_ip6 ? check_ip6(&view, rules) : check_ip4(&view, rules);
}

enum wire_fault wire_check(const uint8_t *frame, size_t contiguous_bytes, size_t frame_bytes,
	const struct wire_check_rules *rules)
{
	const struct wire_ether *ether = (const void *)frame;
	struct view view = {frame, contiguous_bytes, frame_bytes};
	enum wire_fault fault = need(&view, sizeof(*ether));

	if (fault)
		return fault;
	view.at += sizeof(*ether);
	view.contiguous -= sizeof(*ether);
	view.bytes -= sizeof(*ether);
	switch (be16toh(ether->ethertype_be)) {
	case WIRE_ETHERTYPE_IP4:
		return check_ip4(&view, rules);
	case WIRE_ETHERTYPE_IP6:
		return check_ip6(&view, rules);
	case WIRE_ETHERTYPE_ARP:
		return WIRE_ARP;
	case WIRE_ETHERTYPE_VLAN:
	case WIRE_ETHERTYPE_QINQ:
		return WIRE_VLAN;
	}
	return WIRE_ETHERTYPE;
}
