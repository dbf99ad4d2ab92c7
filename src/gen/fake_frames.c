// Builds stamped frames with wire_build and simple checksum code.
#include "gen/fake_frames.h"

#include "gen/encap.h"
#include "wire/checksum.h"
#include "wire/headers.h"

#include <stdlib.h>
#include <string.h>

struct gen_stream fake_stream(uint8_t id)
{
	struct gen_stream stream = {
		.id = id,
		.from = 0,
		.to = 1,
		.recipe = wire_recipe(4),
		.n_flows = 1,
		.n_sizes = 1,
		.sizes = {{64, 1}},
	};

	for (int i = 0; i < GEN_N_FIELDS; i++)
		stream.fields[i].count = 1;
	return stream;
}

// Sets the checksum of layer 4, which starts at `layer4`, to match its bytes.
static void sum_layer4(uint8_t *frame, unsigned layer4, bool is_ip6)
{
	const struct wire_ip4 *ip4 = (const void *)(frame + layer4 - WIRE_IP4_BYTES);
	const struct wire_ip6 *ip6 = (const void *)(frame + layer4 - WIRE_IP6_BYTES);
	unsigned n = is_ip6 ? be16toh(ip6->payload_length_be)
	                    : be16toh(ip4->total_length_be) - WIRE_IP4_BYTES;
	uint8_t protocol = is_ip6 ? ip6->next_header : ip4->protocol;
	uint8_t *sum_at = frame + layer4 + (protocol == WIRE_PROTO_TCP ? 16 : 6);
	uint16_t sum_be = 0;

	memcpy(sum_at, &sum_be, 2);
	sum_be = wire_sum_finish_be(wire_sum(is_ip6 ? wire_sum_pseudo6(ip6, protocol, n)
						    : wire_sum_pseudo4(ip4, protocol, n),
		frame + layer4, n));
	if (!sum_be && protocol == WIRE_PROTO_UDP)
		sum_be = 0xffff;
	memcpy(sum_at, &sum_be, 2);
}

// The packet at `at`, up to the end of the frame.
static void repair_packet(uint8_t *frame, unsigned at, unsigned n, bool is_ip6)
{
	struct wire_ip4 *ip4 = (void *)(frame + at);
	struct wire_ip6 *ip6 = (void *)(frame + at);
	unsigned layer4 = at + (is_ip6 ? WIRE_IP6_BYTES : WIRE_IP4_BYTES);
	uint16_t bytes_be = htobe16(n - layer4);

	if (n < layer4 + WIRE_TCP_BYTES)
		return;
	uint8_t protocol = is_ip6 ? ip6->next_header : ip4->protocol;

	if (is_ip6) {
		ip6->payload_length_be = bytes_be;
	} else {
		ip4->version_ihl = 0x45;
		ip4->total_length_be = htobe16(n - at);
		ip4->checksum_be = wire_ip4_checksum_be(ip4);
	}
	if (protocol == WIRE_PROTO_UDP)
		memcpy(frame + layer4 + 4, &bytes_be, 2);
	if (protocol == WIRE_PROTO_UDP || protocol == WIRE_PROTO_TCP)
		sum_layer4(frame, layer4, is_ip6);
}

static void repair_ethernet(uint8_t *frame, unsigned at, unsigned n)
{
	uint16_t type = n < at + WIRE_ETHER_BYTES ? 0 : frame[at + 12] << 8 | frame[at + 13];

	if (type == WIRE_ETHERTYPE_IP4 || type == WIRE_ETHERTYPE_IP6)
		repair_packet(frame, at + WIRE_ETHER_BYTES, n, type == WIRE_ETHERTYPE_IP6);
}

void fake_repair(uint8_t *frame, unsigned n)
{
	struct encap_found encap;

	if (!encap_find(frame, n, &encap)) {
		repair_ethernet(frame, 0, n);
		return;
	}
	if (encap.is_ethernet)
		repair_ethernet(frame, encap.inner, n);
	else
		repair_packet(frame, encap.inner, n,
			encap.inner_type_be == htobe16(WIRE_ETHERTYPE_IP6));
	if (encap.family)
		repair_packet(frame, encap.layer3, n, encap.family == 6);
}

// The outer headers of a frame, with the first id.
static void wrap(const struct gen_stream *stream, uint8_t *frame, unsigned n_bytes)
{
	const struct encap_form form = encap_form(stream);
	uint32_t word_be = htobe32(stream->encap.id << form.id_shift | form.id_rest);

	encap_write(stream, frame, n_bytes);
	if (form.id_at)
		memcpy(frame + form.id_at, &word_be, sizeof(word_be));
	if (form.has_checksum)
		sum_layer4(frame, form.udp_at, stream->encap.src.family == 6);
}

void fake_frame_build(struct fake_frame *f, const struct gen_stream *stream,
	const struct stamp *stamp, unsigned frame_bytes)
{
	struct wire_recipe recipe = stream->recipe;
	const unsigned at = encap_form(stream).inner_at;
	bool is_ip6 = recipe.src.family == 6;
	unsigned layer4 = WIRE_ETHER_BYTES + (recipe.has_vlan ? WIRE_VLAN_BYTES : 0) +
	                  encap_bytes(&stream->encap) + (is_ip6 ? WIRE_IP6_BYTES : WIRE_IP4_BYTES);
	uint8_t *frame = fake_frame_bytes(f);

	recipe.frame_bytes = frame_bytes - WIRE_FCS_BYTES - at;
	recipe.has_vlan &= !stream->encap.type;
	if (wire_build(&recipe, frame + at, FAKE_ROOM - FAKE_HEADROOM - at))
		abort();
	if (recipe.protocol == WIRE_PROTO_TCP)
		stamp_write_tcp(frame + layer4, stamp);
	else
		stamp_write(frame + layer4 + WIRE_UDP_BYTES, stamp);
	sum_layer4(frame, layer4, is_ip6);
	if (stream->encap.type)
		wrap(stream, frame, frame_bytes - WIRE_FCS_BYTES);
	f->mbuf = (struct rte_mbuf){
		.buf_addr = f->room,
		.data_off = FAKE_HEADROOM,
		.nb_segs = 1,
		.refcnt = 2,
		.buf_len = FAKE_ROOM,
		.data_len = frame_bytes - WIRE_FCS_BYTES,
		.pkt_len = frame_bytes - WIRE_FCS_BYTES,
	};
}
