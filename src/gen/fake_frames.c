// Builds stamped frames with wire_build and simple checksum code.
#include "gen/fake_frames.h"

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
static void sum_layer4(uint8_t *frame, unsigned layer4)
{
	bool is_ip6 = layer4 >= WIRE_ETHER_BYTES + WIRE_IP6_BYTES;
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

void fake_repair(uint8_t *frame, unsigned n)
{
	struct wire_ip4 *ip4 = (void *)(frame + WIRE_ETHER_BYTES);
	struct wire_ip6 *ip6 = (void *)(frame + WIRE_ETHER_BYTES);
	bool is_ip6 = n > 13 && frame[12] == 0x86 && frame[13] == 0xdd;
	bool is_ip4 = n > 13 && frame[12] == 0x08 && frame[13] == 0x00;
	unsigned layer4 = WIRE_ETHER_BYTES + (is_ip6 ? WIRE_IP6_BYTES : WIRE_IP4_BYTES);
	uint16_t bytes_be = htobe16(n - layer4);
	uint8_t protocol;

	if ((!is_ip4 && !is_ip6) || n < layer4 + WIRE_TCP_BYTES)
		return;
	protocol = is_ip6 ? ip6->next_header : ip4->protocol;
	if (protocol != WIRE_PROTO_UDP && protocol != WIRE_PROTO_TCP)
		return;
	if (is_ip6) {
		ip6->payload_length_be = bytes_be;
	} else {
		ip4->version_ihl = 0x45;
		ip4->total_length_be = htobe16(n - WIRE_ETHER_BYTES);
		ip4->checksum_be = wire_ip4_checksum_be(ip4);
	}
	if (protocol == WIRE_PROTO_UDP)
		memcpy(frame + layer4 + 4, &bytes_be, 2);
	sum_layer4(frame, layer4);
}

void fake_frame_build(struct fake_frame *f, const struct gen_stream *stream,
	const struct stamp *stamp, unsigned frame_bytes)
{
	struct wire_recipe recipe = stream->recipe;
	unsigned layer4 = WIRE_ETHER_BYTES + (recipe.has_vlan ? WIRE_VLAN_BYTES : 0) +
	                  (recipe.src.family == 6 ? WIRE_IP6_BYTES : WIRE_IP4_BYTES);
	uint8_t *frame = fake_frame_bytes(f);

	recipe.frame_bytes = frame_bytes - WIRE_FCS_BYTES;
	if (wire_build(&recipe, frame, FAKE_ROOM - FAKE_HEADROOM))
		abort();
	if (recipe.protocol == WIRE_PROTO_TCP)
		stamp_write_tcp(frame + layer4, stamp);
	else
		stamp_write(frame + layer4 + WIRE_UDP_BYTES, stamp);
	sum_layer4(frame, layer4);
	f->mbuf = (struct rte_mbuf){
		.buf_addr = f->room,
		.data_off = FAKE_HEADROOM,
		.nb_segs = 1,
		.refcnt = 2,
		.buf_len = FAKE_ROOM,
		.data_len = recipe.frame_bytes,
		.pkt_len = recipe.frame_bytes,
	};
}
