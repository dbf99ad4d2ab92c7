// See segment.h.
#include "wire/segment.h"

#include "wire/checksum.h"
#include "wire/transport.h"

#include <string.h>

enum { TAGS_MOST = 2 };

static uint16_t read_be(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

// Returns the EtherType behind the tags, 0 if it is missing.
static uint16_t skip_tags(struct wire_layout *out, const uint8_t *frame, size_t contiguous)
{
	out->l3_at = WIRE_ETHER_BYTES;
	for (unsigned tags = 0; contiguous >= out->l3_at; tags++) {
		const uint16_t type = read_be(frame + out->l3_at - 2);

		if (tags == TAGS_MOST ||
			(type != WIRE_ETHERTYPE_VLAN && type != WIRE_ETHERTYPE_QINQ))
			return type;
		out->l3_at += WIRE_VLAN_BYTES;
	}
	return 0;
}

static bool read_ip4(struct wire_layout *out, const uint8_t *packet, size_t contiguous)
{
	const struct wire_ip4 *ip = (const void *)packet;

	if (contiguous < sizeof(*ip) || ip->version_ihl >> 4 != 4)
		return false;
	const unsigned header = wire_ip4_header_bytes(ip);

	out->l4_at = out->l3_at + header;
	out->end = out->l3_at + be16toh(ip->total_length_be);
	out->proto = ip->protocol;
	return header >= sizeof(*ip) && wire_fragment_class4(ip->fragment_be) == WIRE_FRAGMENT_NONE;
}

static bool read_ip6(struct wire_layout *out, const uint8_t *packet, size_t contiguous)
{
	const struct wire_ip6 *ip = (const void *)packet;
	struct wire_transport transport;

	if (contiguous < sizeof(*ip) || packet[0] >> 4 != 6)
		return false;
	const size_t length = sizeof(*ip) + be16toh(ip->payload_length_be);

	wire_transport6(&transport, packet, contiguous < length ? contiguous : length);
	out->l4_at = out->l3_at + transport.offset;
	out->end = out->l3_at + length;
	out->proto = transport.proto;
	out->has_extensions = transport.offset > sizeof(*ip);
	return transport.verdict == WIRE_TRANSPORT_OK && transport.fragment == WIRE_FRAGMENT_NONE;
}

static unsigned l4_bytes(const struct wire_layout *layout, const uint8_t *frame)
{
	const struct wire_tcp *tcp = (const void *)(frame + layout->l4_at);

	return layout->proto == WIRE_PROTO_TCP ? tcp->data_offset >> 4 << 2 : WIRE_UDP_BYTES;
}

bool wire_layout_read(struct wire_layout *out, const uint8_t *frame, size_t contiguous, size_t n)
{
	*out = (struct wire_layout){0};
	const uint16_t type = skip_tags(out, frame, contiguous);
	const uint8_t *packet = frame + out->l3_at;
	bool is_ip = false;

	out->is_ip6 = type == WIRE_ETHERTYPE_IP6;
	if (type == WIRE_ETHERTYPE_IP4)
		is_ip = read_ip4(out, packet, contiguous - out->l3_at);
	else if (out->is_ip6)
		is_ip = read_ip6(out, packet, contiguous - out->l3_at);
	if (!is_ip || (out->proto != WIRE_PROTO_TCP && out->proto != WIRE_PROTO_UDP))
		return false;
	const unsigned least = out->proto == WIRE_PROTO_TCP ? WIRE_TCP_BYTES : WIRE_UDP_BYTES;

	if (out->end > n || out->l4_at + least > contiguous || out->l4_at + least > out->end)
		return false;
	const unsigned bytes = l4_bytes(out, frame);

	out->payload_at = out->l4_at + bytes;
	return bytes >= least && out->payload_at <= contiguous && out->payload_at <= out->end;
}

static uint64_t pseudo_sum(const struct wire_layout *layout, const uint8_t *frame, uint32_t n)
{
	const void *ip = frame + layout->l3_at;

	return layout->is_ip6 ? wire_sum_pseudo6(ip, layout->proto, n)
	                      : wire_sum_pseudo4(ip, layout->proto, n);
}

uint64_t wire_layout_pseudo_sum(const struct wire_layout *layout, const uint8_t *frame)
{
	return pseudo_sum(layout, frame, layout->end - layout->l4_at);
}

void wire_segments_plan(struct wire_segments *plan, const struct wire_layout *layout, uint16_t size)
{
	const uint32_t payload = layout->end - layout->payload_at;

	plan->n = (payload + size - 1) / size;
	plan->each_bytes = size;
	plan->last_bytes = payload - (plan->n - 1) * size;
}

// The identification of IPv4 grows with each segment, also if DF is set.
static void write_ip(const struct wire_layout *layout, uint32_t i, uint8_t *to, uint16_t length)
{
	struct wire_ip4 *ip4 = (void *)(to + layout->l3_at);
	struct wire_ip6 *ip6 = (void *)(to + layout->l3_at);

	if (layout->is_ip6) {
		ip6->payload_length_be = htobe16(length - WIRE_IP6_BYTES);
		return;
	}
	ip4->total_length_be = htobe16(length);
	ip4->id_be = htobe16(be16toh(ip4->id_be) + i);
	ip4->checksum_be = wire_ip4_checksum_be(ip4);
}

void wire_segment_headers(const struct wire_layout *layout, const struct wire_segments *plan,
	uint32_t i, const uint8_t *frame, uint8_t *to, uint64_t payload_sum)
{
	const uint16_t tcp_bytes = layout->payload_at - layout->l4_at;
	const uint16_t l4_length = tcp_bytes + wire_segment_bytes(plan, i);
	struct wire_tcp *tcp = (void *)(to + layout->l4_at);

	memcpy(to, frame, layout->payload_at);
	write_ip(layout, i, to, layout->l4_at - layout->l3_at + l4_length);
	tcp->seq_be = htobe32(be32toh(tcp->seq_be) + i * plan->each_bytes);
	if (i > 0)
		tcp->flags &= ~WIRE_TCP_CWR;
	if (i + 1 < plan->n)
		tcp->flags &= ~(WIRE_TCP_FIN | WIRE_TCP_PSH);
	tcp->checksum_be = 0;
	tcp->checksum_be = wire_sum_finish_be(
		wire_sum(payload_sum + pseudo_sum(layout, to, l4_length), tcp, tcp_bytes));
}
