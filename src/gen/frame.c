// Templates, and frames built from them. A frame is its template overwritten with addresses, ports,
// stamp and checksums; checksums combine the template's sum with that of the varying parts. Worker;
// creation: control thread.
#include "gen/frame.h"

#include "gen/mix.h"
#include "wire/checksum.h"
#include "wire/headers.h"
#include "wire/stamp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	FCS_BYTES = 4,
	LAST_OF_IP6 = 12,
	WORKERS = 8, // arrays are filled in whole vectors of this many words
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "checksums in the lower half of words");

// What is written into the frames of a burst, in wire byte order, one array per part; checksums are
// in the lower half of their words. Filled by loops over whole arrays, which compilers vectorise:
// with 32-bit words where sufficient, because twice as many fit into a vector. Sums are over words
// in memory order, which gives the checksum in wire order (RFC 1071).
struct frame_words {
	uint32_t ip_sum[FRAME_VALUES] LINE_ALIGNED; // of the template, later the checksum
	uint32_t l4_sum[FRAME_VALUES];
	uint32_t ports[FRAME_VALUES];
	uint64_t addresses[FRAME_VALUES];
	uint64_t first[FRAME_VALUES], second[FRAME_VALUES]; // of the stamp
};

static void place_parts(struct frame_form *form, const struct gen_stream *stream)
{
	const struct wire_recipe *recipe = &stream->recipe;

	form->is_ip6 = recipe->src.family == 6;
	form->is_tcp = recipe->protocol == WIRE_PROTO_TCP;
	form->ip_at = WIRE_ETHER_BYTES + (recipe->has_vlan ? WIRE_VLAN_BYTES : 0) +
	              encap_bytes(&stream->encap);
	if (form->is_ip6) {
		form->src_at = form->ip_at + offsetof(struct wire_ip6, src) + LAST_OF_IP6;
		form->dst_at = form->ip_at + offsetof(struct wire_ip6, dst) + LAST_OF_IP6;
		form->l4_at = form->ip_at + WIRE_IP6_BYTES;
	} else {
		form->src_at = form->ip_at + offsetof(struct wire_ip4, src);
		form->dst_at = form->ip_at + offsetof(struct wire_ip4, dst);
		form->l4_at = form->ip_at + WIRE_IP4_BYTES;
	}
	form->checksum_at = form->l4_at + (form->is_tcp ? offsetof(struct wire_tcp, checksum_be)
							: offsetof(struct wire_udp, checksum_be));
	form->first_at =
		form->l4_at + (form->is_tcp ? offsetof(struct wire_tcp, seq_be) : WIRE_UDP_BYTES);
	form->second_at = form->l4_at + (form->is_tcp ? WIRE_TCP_BYTES : WIRE_UDP_BYTES + 8);
	form->tail_at = form->second_at + 8;
}

// Clears the varying parts, so that the template's sums cover only the rest.
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
	if (form->encap.has_macs) {
		memset(frame + form->encap.inner_at + 2, 0, 4);
		memset(frame + form->encap.inner_at + 8, 0, 4);
	}
}

static uint32_t fold(uint64_t sum)
{
	return ~wire_sum_finish_be(sum) & 0xffff;
}

static void sum_up(const struct frame_form *form, struct frame_size *size)
{
	const uint8_t *ip = size->bytes + form->ip_at, *l4 = size->bytes + form->l4_at;
	uint8_t protocol = form->is_tcp ? WIRE_PROTO_TCP : WIRE_PROTO_UDP;
	uint32_t l4_bytes = size->n_bytes - form->l4_at;
	uint64_t pseudo = form->is_ip6 ? wire_sum_pseudo6((const void *)ip, protocol, l4_bytes)
	                               : wire_sum_pseudo4((const void *)ip, protocol, l4_bytes);

	size->l4_sum = fold(wire_sum(pseudo, l4, l4_bytes));
	size->ip_sum = form->is_ip6 ? 0 : fold(wire_sum(0, ip, WIRE_IP4_BYTES));
}

// Of the outer datagram, whose IP header directly precedes it.
static uint32_t sum_outer(const struct frame_form *form, const struct frame_size *size,
	uint8_t family)
{
	const uint8_t *udp = size->bytes + form->encap.udp_at;
	uint32_t n = size->n_bytes - form->encap.udp_at;
	const void *ip4 = udp - WIRE_IP4_BYTES, *ip6 = udp - WIRE_IP6_BYTES;
	uint64_t pseudo = family == 6 ? wire_sum_pseudo6(ip6, WIRE_PROTO_UDP, n)
	                              : wire_sum_pseudo4(ip4, WIRE_PROTO_UDP, n);

	return fold(wire_sum(pseudo, udp, n));
}

// Builds the packet, or the inner frame, and the headers around it.
static int build_template(const struct frame_form *form, const struct gen_stream *stream,
	struct frame_size *size)
{
	const size_t room = size->n_lines * FRAME_LINE;
	struct wire_recipe inner = stream->recipe;

	inner.padding_bytes = 0;
	inner.frame_bytes = size->n_bytes - form->encap.inner_at;
	if (form->encap.type) {
		inner.has_vlan = false;
		inner.src_mac = stream->encap.inner_src;
		inner.dst_mac = stream->encap.inner_dst;
	}
	int err =
		wire_build(&inner, size->bytes + form->encap.inner_at, room - form->encap.inner_at);
	if (!err && form->encap.type)
		encap_write(stream, size->bytes, size->n_bytes);
	return err;
}

static int make_size(struct frame_form *form, struct frame_size *size,
	const struct gen_stream *stream, unsigned frame_bytes)
{
	size_t stamp_end = form->l4_at + (form->is_tcp ? WIRE_TCP_BYTES + STAMP_TCP_PAYLOAD_BYTES
						       : WIRE_UDP_BYTES + STAMP_BYTES);

	if (frame_bytes < stamp_end)
		return -EINVAL;
	size->n_bytes = frame_bytes;
	size->n_lines = (frame_bytes + FRAME_LINE - 1) / FRAME_LINE;
	size->bytes = aligned_alloc(FRAME_LINE, size->n_lines * FRAME_LINE);
	if (!size->bytes)
		return -ENOMEM;
	memset(size->bytes, 0, size->n_lines * FRAME_LINE);
	int err = build_template(form, stream, size);
	if (err)
		return err;
	clear_parts(form, size->bytes);
	sum_up(form, size);
	if (form->encap.has_checksum)
		size->outer_sum = sum_outer(form, size, stream->encap.src.family);
	return 0;
}

int frame_form_make(struct frame_form *form, const struct gen_stream *stream, uint8_t run)
{
	const uint8_t protocol = stream->recipe.protocol;
	uint16_t magic = STAMP_MAGIC | run;

	*form = (struct frame_form){.encap = encap_form(stream)};
	if (protocol != WIRE_PROTO_UDP && protocol != WIRE_PROTO_TCP)
		return -EINVAL;
	place_parts(form, stream);
	form->head = (uint64_t)magic << 48 | (uint64_t)stream->id << 40;
	form->has_macs =
		stream->fields[GEN_SRC_MAC].count > 1 || stream->fields[GEN_DST_MAC].count > 1;
	for (; form->n_sizes < stream->n_sizes; form->n_sizes++) {
		int err = make_size(form, &form->sizes[form->n_sizes], stream,
			stream->sizes[form->n_sizes].bytes - FCS_BYTES);
		if (err)
			return err;
	}
	return 0;
}

void frame_form_free(struct frame_form *form)
{
	for (unsigned i = 0; i < GEN_MAX_SIZES; i++)
		free(form->sizes[i].bytes);
	*form = (struct frame_form){0};
}

// The sums of each frame's template.
static inline void fill_sums(const struct frame_form *form, const struct frame_values *v,
	struct frame_words *w)
{
	if (form->n_sizes == 1) {
		for (unsigned i = 0; i < v->n; i += WORKERS)
			for (unsigned k = i; k < i + WORKERS; k++) {
				w->ip_sum[k] = form->sizes[0].ip_sum;
				w->l4_sum[k] = form->sizes[0].l4_sum;
			}
		return;
	}
	for (unsigned i = 0; i < v->n; i++) {
		w->ip_sum[i] = form->sizes[v->size[i]].ip_sum;
		w->l4_sum[i] = form->sizes[v->size[i]].l4_sum;
	}
}

static inline uint64_t halves(uint64_t word)
{
	return (word >> 32) + (word & 0xffffffff);
}

// Reduces a sum of 16-bit words below 2^48 to one below 2^18.
static inline uint32_t narrow(uint64_t sum)
{
	return (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
}

static inline uint32_t both(uint32_t word)
{
	return (word >> 16) + (word & 0xffff);
}

static inline uint32_t finish(uint32_t sum)
{
	return ~both(both(sum)) & 0xffff;
}

// Specialised by the constant `is_tcp`.
static inline __attribute__((always_inline)) void fill_words(const struct frame_form *form,
	const struct frame_values *v, struct frame_words *w, bool is_tcp)
{
	const uint64_t head = form->head, sequence = v->sequence;
	const uint64_t sent_high = v->sent >> 16 & 0xffffff;
	const uint64_t tail_be = htobe16(v->sent & 0xffff);
	const unsigned n = round_up(v->n, WORKERS);

	for (unsigned i = 0; i < n; i++) {
		uint64_t s = (sequence + i) & STAMP_40_BITS, due = v->due[i] & STAMP_40_BITS;
		uint64_t first, second;

		if (is_tcp) {
			first = s << 32 | (due & 0xffffffff);
			second = head | s >> 32 << 32 | due >> 32 << 24 | sent_high;
		} else {
			first = head | s;
			second = due << 24 | sent_high;
		}
		w->first[i] = htobe64(first);
		w->second[i] = htobe64(second);
		w->l4_sum[i] += narrow(halves(w->first[i]) + halves(w->second[i]) + tail_be);
	}
}

static inline void fill_addresses(const struct frame_values *v, struct frame_words *w)
{
	const unsigned n = round_up(v->n, WORKERS);

	for (unsigned i = 0; i < n; i++) {
		uint32_t src = htobe32(v->field[GEN_SRC_IP][i]);
		uint32_t dst = htobe32(v->field[GEN_DST_IP][i]), sum = both(src) + both(dst);
		uint32_t ports =
			htobe32(v->field[GEN_SRC_PORT][i] << 16 | v->field[GEN_DST_PORT][i]);

		w->addresses[i] = (uint64_t)dst << 32 | src;
		w->ports[i] = ports;
		w->ip_sum[i] = finish(w->ip_sum[i] + sum);
		w->l4_sum[i] = finish(w->l4_sum[i] + sum + both(ports));
	}
}

// UDP only: a checksum of 0 would mean that there is none (RFC 768).
static inline void avoid_zeros(struct frame_words *w, unsigned n)
{
	for (unsigned i = 0; i < round_up(n, WORKERS); i++)
		w->l4_sum[i] = w->l4_sum[i] ? w->l4_sum[i] : 0xffff;
}

static inline void copy_lines(uint8_t *to, const struct frame_size *size)
{
	memcpy(to, size->bytes, FRAME_LINE);
	for (unsigned at = FRAME_LINE; at < size->n_lines * FRAME_LINE; at += FRAME_LINE)
		memcpy(to + at, size->bytes + at, FRAME_LINE);
}

// Copies the templates and overwrites the varying words. Specialised by the constant `is_ip6`.
static inline __attribute__((always_inline)) void write_frames(const struct frame_form *form,
	const struct frame_values *v, const struct frame_words *w, bool is_ip6)
{
	const unsigned n = v->n; // in a local, because frames may alias anything
	const unsigned src_at = form->src_at, dst_at = form->dst_at, l4_at = form->l4_at;
	const unsigned checksum_at = form->checksum_at, first_at = form->first_at;
	const unsigned second_at = form->second_at, tail_at = form->tail_at;
	const uint16_t tail_be = htobe16(v->sent & 0xffff);

	for (unsigned i = 0; i < n; i++) {
		uint8_t *frame = v->to[i];

		copy_lines(frame, &form->sizes[v->size[i]]);
		if (is_ip6) {
			memcpy(frame + src_at, &w->addresses[i], 4);
			memcpy(frame + dst_at, (const uint8_t *)&w->addresses[i] + 4, 4);
		} else {
			memcpy(frame + src_at - 2, &w->ip_sum[i], 2);
			memcpy(frame + src_at, &w->addresses[i], 8);
		}
		memcpy(frame + l4_at, &w->ports[i], 4);
		memcpy(frame + first_at, &w->first[i], 8);
		memcpy(frame + second_at, &w->second[i], 8);
		memcpy(frame + tail_at, &tail_be, 2);
		memcpy(frame + checksum_at, &w->l4_sum[i], 2);
	}
}

static void write_macs(const struct frame_values *v)
{
	for (unsigned i = 0; i < v->n; i++) {
		uint32_t dst_be = htobe32(v->field[GEN_DST_MAC][i]);
		uint32_t src_be = htobe32(v->field[GEN_SRC_MAC][i]);

		memcpy(v->to[i] + 2, &dst_be, sizeof(dst_be));
		memcpy(v->to[i] + 8, &src_be, sizeof(src_be));
	}
}

// The ephemeral ports (RFC 6335): 49152 and the upper 14 bits of a hash of addresses and ports.
static inline uint16_t hash_port(uint64_t addresses, uint32_t ports)
{
	uint64_t h = mix(addresses ^ ports * MIX_STEP);

	return 49152 + (h >> 50);
}

// The varying words of the outer datagram that are not its own: those of the packet.
static inline uint32_t sum_inner(const struct frame_form *form, const struct frame_words *w,
	uint16_t tail_be, unsigned i)
{
	uint32_t sum = both(w->addresses[i] >> 32) + both(w->addresses[i]) + both(w->ports[i]);

	sum += narrow(halves(w->first[i]) + halves(w->second[i]) + tail_be);
	return sum + w->l4_sum[i] + (form->is_ip6 ? 0 : w->ip_sum[i]);
}

static uint32_t write_inner_macs(const struct frame_form *form, const struct frame_values *v,
	unsigned i)
{
	uint8_t *ether = v->to[i] + form->encap.inner_at;
	uint32_t dst_be = htobe32(v->field[GEN_INNER_DST_MAC][i]);
	uint32_t src_be = htobe32(v->field[GEN_INNER_SRC_MAC][i]);

	memcpy(ether + 2, &dst_be, sizeof(dst_be));
	memcpy(ether + 8, &src_be, sizeof(src_be));
	return both(dst_be) + both(src_be);
}

static uint32_t write_id(const struct frame_form *form, const struct frame_values *v, unsigned i)
{
	uint32_t id = v->field[GEN_ENCAP_ID][i] << form->encap.id_shift;
	uint32_t word_be = htobe32(id | form->encap.id_rest);

	memcpy(v->to[i] + form->encap.id_at, &word_be, sizeof(word_be));
	return both(htobe32(id));
}

// Writes what varies outside of the packets, which are complete.
static __attribute__((noinline)) void write_encap(const struct frame_form *form,
	const struct frame_values *v, const struct frame_words *w)
{
	const struct encap_form *encap = &form->encap;
	const uint16_t tail_be = htobe16(v->sent & 0xffff);

	for (unsigned i = 0; i < v->n; i++) {
		uint8_t *udp = v->to[i] + encap->udp_at;
		uint32_t sum = encap->id_at ? write_id(form, v, i) : 0;

		sum += encap->has_macs ? write_inner_macs(form, v, i) : 0;
		if (!encap->udp_at)
			continue;
		uint16_t port_be =
			htobe16(encap->hashes_port ? hash_port(w->addresses[i], w->ports[i])
						   : encap->src_port);

		memcpy(udp, &port_be, sizeof(port_be));
		if (!encap->has_checksum)
			continue;
		sum += port_be + form->sizes[v->size[i]].outer_sum;
		uint16_t checksum_be = finish(sum + sum_inner(form, w, tail_be, i));

		checksum_be = checksum_be ? checksum_be : 0xffff;
		memcpy(udp + ENCAP_UDP_CHECKSUM_AT, &checksum_be, sizeof(checksum_be));
	}
}

void frame_build(const struct frame_form *form, const struct frame_values *values)
{
	struct frame_words words;

	fill_sums(form, values, &words);
	if (form->is_tcp)
		fill_words(form, values, &words, true);
	else
		fill_words(form, values, &words, false);
	fill_addresses(values, &words);
	if (!form->is_tcp)
		avoid_zeros(&words, values->n);
	if (form->is_ip6)
		write_frames(form, values, &words, true);
	else
		write_frames(form, values, &words, false);
	if (form->has_macs)
		write_macs(values);
	if (unlikely(form->encap.type))
		write_encap(form, values, &words);
}
