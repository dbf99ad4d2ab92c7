// Writes and finds the headers around a packet.
#include "gen/encap.h"

#include "base/bits.h"
#include "wire/checksum.h"
#include "wire/headers.h"

#include <string.h>

enum {
	TYPE_MPLS = 0x8847,
	TYPE_ETHERNET = 0x6558, // in GRE
	PROTO_GRE = 47,
	LABEL_BYTES = 4,
	LABEL_SHIFT = 12,
	LAST_LABEL = 0x100,
	GRE_BYTES = 4, // without options
	GRE_OPTION_BYTES = 4,
	GRE_HAS_CHECKSUM = 0x8000,
	GRE_HAS_KEY = 0x2000,
	GRE_HAS_SEQUENCE = 0x1000,
	VXLAN_BYTES = 8,
	VXLAN_FLAGS = 0x08000000, // with a VNI; all else is reserved
	VNI_SHIFT = 8,
	IP6_OPTIONS_UNIT = 8,
};

static const char *const words[] = {"none", "mpls", "mpls-udp", "gre", "gretap", "vxlan"};

const char *gen_encap_word(unsigned type)
{
	return words[type];
}

static bool is_in_udp(unsigned type)
{
	return type == GEN_MPLS_UDP || type == GEN_VXLAN;
}

static bool has_ethernet(unsigned type)
{
	return type == GEN_GRETAP || type == GEN_VXLAN;
}

static unsigned ip_bytes(const struct gen_encap *e)
{
	return e->src.family == 6 ? WIRE_IP6_BYTES : e->src.family == 4 ? WIRE_IP4_BYTES : 0;
}

// From the outer packet's payload to the first label, or to what is inside.
static unsigned tunnel_bytes(const struct gen_encap *e)
{
	switch (e->type) {
	case GEN_MPLS_UDP:
		return WIRE_UDP_BYTES;
	case GEN_GRE:
	case GEN_GRETAP:
		return GRE_BYTES + (e->has_key ? GRE_OPTION_BYTES : 0);
	case GEN_VXLAN:
		return WIRE_UDP_BYTES + VXLAN_BYTES;
	}
	return 0;
}

unsigned encap_bytes(const struct gen_encap *e)
{
	return ip_bytes(e) + tunnel_bytes(e) + e->n_labels * LABEL_BYTES +
	       (has_ethernet(e->type) ? WIRE_ETHER_BYTES : 0);
}

static unsigned layer2_bytes(const struct gen_stream *stream)
{
	return WIRE_ETHER_BYTES + (stream->recipe.has_vlan ? WIRE_VLAN_BYTES : 0);
}

struct encap_form encap_form(const struct gen_stream *stream)
{
	const struct gen_encap *e = &stream->encap;
	unsigned tunnel_at = layer2_bytes(stream) + ip_bytes(e);
	unsigned labels_at = tunnel_at + tunnel_bytes(e);
	struct encap_form form = {.type = e->type,
		.udp_at = is_in_udp(e->type) ? tunnel_at : 0,
		.has_checksum = is_in_udp(e->type) && e->has_checksum,
		.hashes_port = e->hashes_port,
		.src_port = e->src_port,
		.has_macs = has_ethernet(e->type)};

	if (!e->type)
		return form;
	form.inner_at = layer2_bytes(stream) + encap_bytes(e) - WIRE_ETHER_BYTES;
	if (e->n_labels) {
		form.id_at = labels_at + (e->n_labels - 1) * LABEL_BYTES;
		form.id_shift = LABEL_SHIFT;
		form.id_rest = LAST_LABEL | e->ttl;
	} else if (e->type == GEN_VXLAN) {
		form.id_at = labels_at - 4;
		form.id_shift = VNI_SHIFT;
	} else if (e->has_key) {
		form.id_at = labels_at - GRE_OPTION_BYTES;
	}
	return form;
}

static void put16(uint8_t *to, uint16_t value)
{
	uint16_t be = htobe16(value);

	memcpy(to, &be, sizeof(be));
}

static void put32(uint8_t *to, uint32_t value)
{
	uint32_t be = htobe32(value);

	memcpy(to, &be, sizeof(be));
}

static uint16_t outer_type(const struct gen_encap *e)
{
	return e->type == GEN_MPLS  ? TYPE_MPLS
	       : e->src.family == 6 ? WIRE_ETHERTYPE_IP6
	                            : WIRE_ETHERTYPE_IP4;
}

static void put_layer2(const struct gen_stream *stream, uint8_t *frame)
{
	const struct wire_recipe *recipe = &stream->recipe;

	memcpy(frame, recipe->dst_mac.bytes, 6);
	memcpy(frame + 6, recipe->src_mac.bytes, 6);
	if (recipe->has_vlan) {
		put16(frame + 12, WIRE_ETHERTYPE_VLAN);
		put16(frame + 14, recipe->vlan_tag);
	}
	put16(frame + layer2_bytes(stream) - 2, outer_type(&stream->encap));
}

static void put_ip(const struct gen_encap *e, uint8_t *at, unsigned n)
{
	uint8_t protocol = is_in_udp(e->type) ? WIRE_PROTO_UDP : PROTO_GRE;

	if (e->src.family == 6) {
		struct wire_ip6 *ip = (void *)at;

		*ip = (struct wire_ip6){.version_class_flow_be = htobe32(6u << 28),
			.payload_length_be = htobe16(n - WIRE_IP6_BYTES),
			.next_header = protocol,
			.hop_limit = e->ttl};
		memcpy(ip->src, e->src.bytes, sizeof(ip->src));
		memcpy(ip->dst, e->dst.bytes, sizeof(ip->dst));
		return;
	}
	struct wire_ip4 *ip = (void *)at;

	*ip = (struct wire_ip4){.version_ihl = 0x45,
		.total_length_be = htobe16(n),
		.fragment_be = htobe16(WIRE_IP4_DONT_FRAGMENT),
		.ttl = e->ttl,
		.protocol = protocol};
	memcpy(ip->src, e->src.bytes, sizeof(ip->src));
	memcpy(ip->dst, e->dst.bytes, sizeof(ip->dst));
	ip->checksum_be = wire_ip4_checksum_be(ip);
}

static void put_udp(const struct gen_encap *e, uint8_t *at, unsigned n)
{
	*(struct wire_udp *)at =
		(struct wire_udp){.dst_port_be = htobe16(e->dst_port), .length_be = htobe16(n)};
	if (e->type != GEN_VXLAN)
		return;
	put32(at + WIRE_UDP_BYTES, VXLAN_FLAGS);
	put32(at + WIRE_UDP_BYTES + 4, 0);
}

static void put_gre(const struct gen_stream *stream, uint8_t *at)
{
	const struct gen_encap *e = &stream->encap;
	bool is_ip6 = stream->recipe.src.family == 6;

	put16(at, e->has_key ? GRE_HAS_KEY : 0);
	put16(at + 2, e->type == GEN_GRETAP ? TYPE_ETHERNET
		      : e->n_labels         ? TYPE_MPLS
		      : is_ip6              ? WIRE_ETHERTYPE_IP6
					    : WIRE_ETHERTYPE_IP4);
	if (e->has_key)
		put32(at + GRE_BYTES, e->n_labels ? e->key : 0);
}

void encap_write(const struct gen_stream *stream, uint8_t *frame, unsigned n_bytes)
{
	const struct gen_encap *e = &stream->encap;
	unsigned at = layer2_bytes(stream), n_labels = e->n_labels;

	put_layer2(stream, frame);
	if (e->type != GEN_MPLS)
		put_ip(e, frame + at, n_bytes - at);
	at += ip_bytes(e);
	if (is_in_udp(e->type))
		put_udp(e, frame + at, n_bytes - at);
	else if (e->type != GEN_MPLS)
		put_gre(stream, frame + at);
	at += tunnel_bytes(e);
	for (unsigned i = 0; i < n_labels; i++, at += LABEL_BYTES)
		put32(frame + at, i + 1 < n_labels ? e->label[i] << LABEL_SHIFT | e->ttl
						   : (uint32_t)(LAST_LABEL | e->ttl));
}

static uint16_t read16(const uint8_t *from)
{
	return be16toh(load16(from));
}

static uint32_t read32(const uint8_t *from)
{
	return be32toh(load32(from));
}

// The labels at `at`, and the version of the packet after them.
static bool find_labels(const uint8_t *frame, unsigned n, unsigned at, struct encap_found *e)
{
	bool is_last = false;

	e->labels = at;
	for (; !is_last; at += LABEL_BYTES) {
		if (n < at + LABEL_BYTES + 1 || e->n_labels == ENCAP_LABELS)
			return false;
		e->id = read32(frame + at) >> LABEL_SHIFT;
		is_last = read32(frame + at) & LAST_LABEL;
		e->n_labels++;
	}
	e->inner = at;
	e->inner_type_be = htobe16(frame[at] >> 4 == 6 ? WIRE_ETHERTYPE_IP6 : WIRE_ETHERTYPE_IP4);
	return frame[at] >> 4 == 4 || frame[at] >> 4 == 6;
}

static bool find_in_udp(const uint8_t *frame, unsigned n, unsigned at, struct encap_found *e)
{
	if (n < at + WIRE_UDP_BYTES + VXLAN_BYTES)
		return false;
	if (read16(frame + at + 2) == ENCAP_MPLS_PORT) {
		e->type = GEN_MPLS_UDP;
		return find_labels(frame, n, at + WIRE_UDP_BYTES, e);
	}
	at += WIRE_UDP_BYTES;
	e->type = GEN_VXLAN;
	e->id = read32(frame + at + 4) >> VNI_SHIFT;
	e->inner = at + VXLAN_BYTES;
	e->is_ethernet = true;
	return read32(frame + at) == VXLAN_FLAGS && !frame[at + VXLAN_BYTES - 1];
}

// Options are a checksum, which is not verified, a key and a sequence number, in this order.
static bool find_in_gre(const uint8_t *frame, unsigned n, unsigned at, struct encap_found *e)
{
	const unsigned known = GRE_HAS_CHECKSUM | GRE_HAS_KEY | GRE_HAS_SEQUENCE;

	if (n < at + GRE_BYTES + 3 * GRE_OPTION_BYTES || read16(frame + at) & ~known)
		return false;
	unsigned flags = read16(frame + at), type = read16(frame + at + 2);

	at += GRE_BYTES + (flags & GRE_HAS_CHECKSUM ? GRE_OPTION_BYTES : 0);
	if (flags & GRE_HAS_KEY) {
		e->id = read32(frame + at);
		at += GRE_OPTION_BYTES;
	}
	at += flags & GRE_HAS_SEQUENCE ? GRE_OPTION_BYTES : 0;
	e->is_ethernet = type == TYPE_ETHERNET;
	e->type = e->is_ethernet ? GEN_GRETAP : GEN_GRE;
	if (type == TYPE_MPLS)
		return find_labels(frame, n, at, e);
	e->inner = at;
	e->inner_type_be = htobe16(type);
	return e->is_ethernet || type == WIRE_ETHERTYPE_IP4 || type == WIRE_ETHERTYPE_IP6;
}

// Steps over the outer IP header, which may have one extension header of options (as those of
// Linux's tunnels have) in IPv6. Returns the protocol; 0: not known.
static uint8_t find_outer(const uint8_t *frame, unsigned n, unsigned *at, struct encap_found *e)
{
	const uint8_t *ip = frame + *at;
	uint8_t protocol;

	if (e->family == 4) {
		const unsigned fragment = WIRE_IP4_MORE_FRAGMENTS | WIRE_IP4_FRAGMENT_OFFSET;

		*at += WIRE_IP4_BYTES;
		if (n < *at || ip[0] != 0x45 || read16(ip + 6) & fragment)
			return 0;
		return ip[offsetof(struct wire_ip4, protocol)];
	}
	*at += WIRE_IP6_BYTES;
	if (n < *at + IP6_OPTIONS_UNIT || ip[0] >> 4 != 6)
		return 0;
	protocol = ip[offsetof(struct wire_ip6, next_header)];
	if (protocol != WIRE_PROTO_DESTINATION)
		return protocol;
	protocol = frame[*at];
	*at += (frame[*at + 1] + 1) * IP6_OPTIONS_UNIT;
	return protocol;
}

static bool is_tag(unsigned type)
{
	return type == WIRE_ETHERTYPE_VLAN || type == WIRE_ETHERTYPE_QINQ;
}

bool encap_find(const uint8_t *frame, unsigned n, struct encap_found *e)
{
	unsigned at = WIRE_ETHER_BYTES, type;

	*e = (struct encap_found){.type = GEN_MPLS};
	if (n < WIRE_ETHER_BYTES + 2 * WIRE_VLAN_BYTES)
		return false;
	type = read16(frame + at - 2);
	for (int tag = 0; tag < 2 && is_tag(type); tag++) {
		at += WIRE_VLAN_BYTES;
		type = read16(frame + at - 2);
	}
	e->layer3 = at;
	if (type == TYPE_MPLS)
		return find_labels(frame, n, at, e);
	if (type != WIRE_ETHERTYPE_IP4 && type != WIRE_ETHERTYPE_IP6)
		return false;
	e->family = type == WIRE_ETHERTYPE_IP4 ? 4 : 6;
	uint8_t protocol = find_outer(frame, n, &at, e);

	e->layer4 = at;
	if (protocol == WIRE_PROTO_UDP)
		return find_in_udp(frame, n, at, e);
	return protocol == PROTO_GRE && find_in_gre(frame, n, at, e);
}
