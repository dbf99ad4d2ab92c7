// Templates, and frames made of them. A frame is its template and, over it, addresses, ports, stamp
// and checksums; their sums are the template's and what varies. Lane; making: control thread.
#include "load/frame.h"

#include "wire/checksum.h"
#include "wire/headers.h"
#include "wire/stamp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FCS_BYTES = 4, LAST_OF_IP6 = 12 };

static inline void put16(uint8_t *to, uint16_t value)
{
	uint16_t be = htobe16(value);

	memcpy(to, &be, sizeof(be));
}

static inline void put32(uint8_t *to, uint32_t value)
{
	uint32_t be = htobe32(value);

	memcpy(to, &be, sizeof(be));
}

static inline void put64(uint8_t *to, uint64_t value)
{
	uint64_t be = htobe64(value);

	memcpy(to, &be, sizeof(be));
}

// A sum of 16-bit words, as 16 bits (RFC 1071), complemented. Adding a word to itself with its
// halves swapped leaves the folded sum in the upper half.
static inline uint16_t finish(uint64_t sum)
{
	uint32_t folded = (sum + (sum << 32 | sum >> 32)) >> 32;

	return ~((folded + (folded << 16 | folded >> 16)) >> 16);
}

static inline uint64_t halves(uint64_t word)
{
	return (word >> 32) + (word & 0xffffffff);
}

static void place_parts(struct frame_form *form, const struct wire_recipe *recipe)
{
	form->is_ip6 = recipe->src.family == 6;
	form->is_tcp = recipe->protocol == WIRE_PROTO_TCP;
	form->ip_at = WIRE_ETHER_BYTES + (recipe->has_vlan ? WIRE_VLAN_BYTES : 0);
	if (form->is_ip6) {
		form->src_at = form->ip_at + offsetof(struct wire_ip6, src) + LAST_OF_IP6;
		form->dst_at = form->ip_at + offsetof(struct wire_ip6, dst) + LAST_OF_IP6;
		form->l4_at = form->ip_at + WIRE_IP6_BYTES;
	} else {
		form->src_at = form->ip_at + offsetof(struct wire_ip4, src);
		form->dst_at = form->ip_at + offsetof(struct wire_ip4, dst);
		form->l4_at = form->ip_at + WIRE_IP4_BYTES;
	}
}

// Takes out what varies, so that sums over the template are those of the rest.
static void clear_parts(const struct frame_form *form, uint8_t *frame)
{
	uint8_t *l4 = frame + form->l4_at;

	memset(frame + form->src_at, 0, 4);
	memset(frame + form->dst_at, 0, 4);
	memset(l4, 0, 4); // ports
	if (form->is_tcp) {
		struct wire_tcp *tcp = (void *)l4;

		tcp->seq_be = tcp->ack_be = tcp->checksum_be = 0;
		tcp->flags = WIRE_TCP_ACK | WIRE_TCP_PSH;
		memset(l4 + WIRE_TCP_BYTES, 0, STAMP_TCP_PAYLOAD_BYTES);
	} else {
		((struct wire_udp *)l4)->checksum_be = 0;
		memset(l4 + WIRE_UDP_BYTES, 0, STAMP_BYTES);
	}
	if (!form->is_ip6)
		((struct wire_ip4 *)(frame + form->ip_at))->checksum_be = 0;
}

static uint32_t fold_host(uint64_t sum)
{
	return be16toh(~wire_sum_finish_be(sum) & 0xffff);
}

static void sum_up(const struct frame_form *form, struct frame_size *size)
{
	const uint8_t *ip = size->bytes + form->ip_at, *l4 = size->bytes + form->l4_at;
	uint8_t protocol = form->is_tcp ? WIRE_PROTO_TCP : WIRE_PROTO_UDP;
	uint32_t l4_bytes = size->n_bytes - form->l4_at;
	uint64_t pseudo = form->is_ip6 ? wire_sum_pseudo6((const void *)ip, protocol, l4_bytes)
	                               : wire_sum_pseudo4((const void *)ip, protocol, l4_bytes);

	size->l4_sum = fold_host(wire_sum(pseudo, l4, l4_bytes));
	size->ip_sum = form->is_ip6 ? 0 : fold_host(wire_sum(0, ip, WIRE_IP4_BYTES));
}

static int make_size(struct frame_form *form, struct frame_size *size, struct wire_recipe *recipe)
{
	size_t stamp_end = form->l4_at + (form->is_tcp ? WIRE_TCP_BYTES + STAMP_TCP_PAYLOAD_BYTES
						       : WIRE_UDP_BYTES + STAMP_BYTES);

	if (recipe->frame_bytes < stamp_end)
		return -EINVAL;
	size->n_bytes = recipe->frame_bytes;
	size->n_lines = (recipe->frame_bytes + FRAME_LINE - 1) / FRAME_LINE;
	size->bytes = aligned_alloc(FRAME_LINE, size->n_lines * FRAME_LINE);
	if (!size->bytes)
		return -ENOMEM;
	memset(size->bytes, 0, size->n_lines * FRAME_LINE);
	int err = wire_build(recipe, size->bytes, size->n_lines * FRAME_LINE);
	if (err)
		return err;
	clear_parts(form, size->bytes);
	sum_up(form, size);
	return 0;
}

int frame_form_make(struct frame_form *form, const struct load_stream *stream, uint8_t run)
{
	struct wire_recipe recipe = stream->recipe;
	uint16_t magic = STAMP_MAGIC | run;

	*form = (struct frame_form){0};
	if (recipe.protocol != WIRE_PROTO_UDP && recipe.protocol != WIRE_PROTO_TCP)
		return -EINVAL;
	place_parts(form, &recipe);
	form->head = (uint64_t)magic << 48 | (uint64_t)stream->id << 40;
	form->has_macs =
		stream->fields[LOAD_SRC_MAC].count > 1 || stream->fields[LOAD_DST_MAC].count > 1;
	recipe.padding_bytes = 0;
	for (; form->n_sizes < stream->n_sizes; form->n_sizes++) {
		recipe.frame_bytes = stream->sizes[form->n_sizes].bytes - FCS_BYTES;
		int err = make_size(form, &form->sizes[form->n_sizes], &recipe);
		if (err)
			return err;
	}
	return 0;
}

void frame_form_free(struct frame_form *form)
{
	for (unsigned i = 0; i < LOAD_MAX_SIZES; i++)
		free(form->sizes[i].bytes);
	*form = (struct frame_form){0};
}

static inline void copy_lines(uint8_t *to, const uint8_t *from, unsigned n)
{
	for (unsigned i = 0; i < n; i++, to += FRAME_LINE, from += FRAME_LINE)
		memcpy(to, from, FRAME_LINE);
}

struct stamp_words {
	uint64_t sequence, due, sent;
};

// Both write ports, stamp and checksum, `sum` being that of all else.
static inline void put_udp(uint8_t *l4, uint64_t head, const struct stamp_words *s, uint64_t sum)
{
	uint64_t first = head | s->sequence;
	uint64_t times = s->due << 24 | (s->sent >> 16 & 0xffffff);
	uint16_t tail = s->sent;
	uint16_t checksum = finish(sum + halves(first) + halves(times) + tail);

	put16(l4 + 6, checksum ? checksum : 0xffff); // 0 would say "none" (RFC 768)
	put64(l4 + 8, first);
	put64(l4 + 16, times);
	put16(l4 + 24, tail);
}

static inline void put_tcp(uint8_t *l4, uint64_t head, const struct stamp_words *s, uint64_t sum)
{
	uint64_t low = s->sequence << 32 | (s->due & 0xffffffff);
	uint64_t high = head | s->sequence >> 32 << 32 | (s->due >> 32 & 0xff) << 24 |
	                (s->sent >> 16 & 0xffffff);
	uint16_t tail = s->sent;

	put64(l4 + 4, low);
	put16(l4 + 16, finish(sum + halves(low) + halves(high) + tail));
	put64(l4 + 20, high);
	put16(l4 + 28, tail);
}

// Constant flags make functions of it that have no trace of the others.
static inline __attribute__((always_inline)) void build(const struct frame_form *form,
	const struct frame_values *v, bool is_ip6, bool is_tcp)
{
	const unsigned ip_at = form->ip_at, l4_at = form->l4_at;
	const uint8_t *pick = form->n_sizes > 1 ? v->size : NULL;
	const uint64_t head = form->head;
	const unsigned n = v->n; // frames may alias anything

	for (unsigned i = 0; i < n; i++) {
		const struct frame_size *size = &form->sizes[pick ? pick[i] : 0];
		uint32_t src = v->field[LOAD_SRC_IP][i], dst = v->field[LOAD_DST_IP][i];
		uint32_t ports = v->field[LOAD_SRC_PORT][i] << 16 | v->field[LOAD_DST_PORT][i];
		struct stamp_words stamp = {(v->sequence + i) & STAMP_40_BITS, v->due[i], v->sent};
		uint64_t addresses = (uint64_t)src + dst;
		uint8_t *frame = v->to[i], *ip = frame + ip_at, *l4 = frame + l4_at;

		copy_lines(frame, size->bytes, size->n_lines);
		if (is_ip6) {
			put32(ip + offsetof(struct wire_ip6, src) + LAST_OF_IP6, src);
			put32(ip + offsetof(struct wire_ip6, dst) + LAST_OF_IP6, dst);
		} else {
			put16(ip + offsetof(struct wire_ip4, checksum_be),
				finish(size->ip_sum + addresses));
			put64(ip + offsetof(struct wire_ip4, src), (uint64_t)src << 32 | dst);
		}
		put32(l4, ports);
		if (is_tcp)
			put_tcp(l4, head, &stamp, size->l4_sum + addresses + ports);
		else
			put_udp(l4, head, &stamp, size->l4_sum + addresses + ports);
	}
}

static void put_macs(const struct frame_values *v)
{
	const unsigned n = v->n;

	for (unsigned i = 0; i < n; i++) {
		put32(v->to[i] + 2, v->field[LOAD_DST_MAC][i]);
		put32(v->to[i] + 8, v->field[LOAD_SRC_MAC][i]);
	}
}

void frame_build(const struct frame_form *form, const struct frame_values *values)
{
	if (!form->is_ip6 && !form->is_tcp)
		build(form, values, false, false);
	else if (!form->is_ip6)
		build(form, values, false, true);
	else if (!form->is_tcp)
		build(form, values, true, false);
	else
		build(form, values, true, true);
	if (form->has_macs)
		put_macs(values);
}
