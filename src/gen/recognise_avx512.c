// Recogniser using AVX-512: sixteen frames at a time, for bursts in which all frames are long
// enough and have one segment. Frames that are not plain and valid in every respect are passed to
// recognise_one. Worker.
#include "gen/recognise.h"

#include "gen/sixteen_avx512.h"
#include "gen/sum.h"
#include "wire/headers.h"
#include "wire/stamp.h"

#include <string.h>

enum {
	LAYER4 = WIRE_ETHER_BYTES + WIRE_IP4_BYTES,
	LEAST_LAYER4_BYTES = WIRE_UDP_BYTES + STAMP_BYTES, // which end at FIELDS_END
	FEW = 5,                                           // up to this many are faster one by one
};

// The frames being processed.
struct group {
	const uint8_t *const *at;
	const uint32_t *length; // without FCS
	uint16_t from, n;
	__m512i field[SIXTEEN];
};

static inline void load_fields(struct group *g)
{
	const __mmask64 bytes = (1ull << (FIELDS_END - FIELDS_FROM)) - 1;
	__m512i frame[SIXTEEN];

	for (int i = 0; i < SIXTEEN; i++)
		frame[i] = _mm512_maskz_loadu_epi8(bytes, g->at[i] + FIELDS_FROM);
	transpose_sixteen(frame, g->field);
}

// 0 for frames with the headers of a plain frame of this run, consistent lengths and a valid header
// checksum.
static inline __m512i find_faults(const struct group *g, uint8_t run)
{
	const __m512i *f = g->field;
	__m512i total = upper16(f[FIELD_LENGTH]), udp = lower16(f[FIELD_UDP]);
	__m512i type = _mm512_xor_si512(_mm512_srli_epi32(f[FIELD_TYPE], 16),
		all(htobe16(WIRE_ETHERTYPE_IP4)));
	__m512i version = _mm512_xor_si512(_mm512_and_si512(f[FIELD_LENGTH], all(0xff)), all(0x45));
	__m512i fragment = _mm512_and_si512(f[FIELD_FRAGMENT], all(0xff3f0000));
	__m512i protocol = _mm512_xor_si512(_mm512_and_si512(f[FIELD_PROTOCOL], all(0xff00)),
		all(WIRE_PROTO_UDP << 8));
	__m512i magic = _mm512_xor_si512(_mm512_and_si512(f[FIELD_IDENTITY], all(0xffff)),
		all(htobe16(STAMP_MAGIC | run)));
	__m512i length = _mm512_xor_si512(_mm512_sub_epi32(total, all(WIRE_IP4_BYTES)), udp);
	__m512i sum = _mm512_add_epi32(halves(f[FIELD_LENGTH]), halves(f[FIELD_FRAGMENT]));
	__m512i addresses = _mm512_add_epi32(halves(f[FIELD_SRC]), halves(f[FIELD_DST]));

	sum = _mm512_add_epi32(_mm512_add_epi32(sum, addresses), halves(f[FIELD_PROTOCOL]));
	sum = _mm512_xor_si512(halves(halves(sum)), all(0xffff));
	return any3(any3(type, version, fragment), any3(protocol, magic, length), sum);
}

// Frames whose packet contains a stamp and ends within the frame, and is not one of labels, which
// may look like a stamp.
static inline __mmask16 find_enclosed(const struct group *g)
{
	__m512i bytes = lower16(g->field[FIELD_UDP]), room = _mm512_loadu_si512(g->length);
	__m512i to_port = _mm512_srli_epi32(g->field[FIELD_PORTS], 16);

	return _mm512_cmpneq_epu32_mask(to_port, all(htobe16(ENCAP_MPLS_PORT))) &
	       _mm512_cmpge_epu32_mask(bytes, all(LEAST_LAYER4_BYTES)) &
	       _mm512_cmple_epu32_mask(_mm512_add_epi32(bytes, all(LAYER4)), room);
}

// Sums of the bytes after the stamps, for the frames in `which`. Does not use masked loads, which
// would wait for cache lines after the frame that were not prefetched.
static __attribute__((noinline)) __m512i sum_rests(const struct group *g, uint32_t which)
{
	uint32_t rest[SIXTEEN] LINE_ALIGNED = {0};

	for (; which; which &= which - 1) {
		unsigned i = __builtin_ctz(which);
		const uint8_t *length = g->at[i] + LAYER4 + offsetof(struct wire_udp, length_be);
		unsigned n = (length[0] << 8 | length[1]) - LEAST_LAYER4_BYTES;
		uint64_t sum = sum_bytes(0, g->at[i] + FIELDS_END, n);
		sum = (sum & 0xffffffff) + (sum >> 32);
		rest[i] = (sum & 0xffff) + (sum >> 16);
	}
	return _mm512_load_si512(rest);
}

// Frames in `which` with a valid layer 4 checksum.
static inline __mmask16 find_right(const struct group *g, __mmask16 which)
{
	const __m512i *f = g->field;
	__m512i udp_length = _mm512_and_si512(f[FIELD_UDP], all(0xffff));
	__mmask16 is_long =
		_mm512_cmpgt_epu32_mask(lower16(f[FIELD_UDP]), all(LEAST_LAYER4_BYTES)) & which;
	__m512i sum = _mm512_add_epi32(udp_length, all(htobe16(WIRE_PROTO_UDP)));

	for (int k = FIELD_SRC; k <= FIELD_SENT; k++)
		sum = _mm512_add_epi32(sum, halves(f[k]));
	if (is_long)
		sum = _mm512_add_epi32(sum, sum_rests(g, is_long));
	return _mm512_mask_cmpeq_epi32_mask(which, halves(halves(sum)), all(0xffff));
}

// Frames in `which` of streams that end here.
static inline __mmask16 find_streams(const struct recognise *r, const struct group *g,
	__mmask16 which)
{
	__m512i ids = _mm512_and_si512(_mm512_srli_epi32(g->field[FIELD_IDENTITY], 16), all(0xff));
	uint32_t left = which, found = 0;

	while (left) {
		uint8_t id = g->at[__builtin_ctz(left)][LAYER4 + WIRE_UDP_BYTES + 2];
		const struct sink_stream *s = r->sink->by_id[id];
		uint32_t same = _mm512_mask_cmpeq_epi32_mask(left, ids, all(id));

		if (s && s->stream->to == r->port)
			found |= same;
		left &= ~same;
	}
	return found;
}

// Reads all stamps into entries n and following.
static inline void read_stamps(const struct group *g, struct whole *out, uint16_t n)
{
	const __m128i first_sixteen =
		_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	const __m512i *f = g->field;
	__m512i id = _mm512_srli_epi32(f[FIELD_IDENTITY], 16);
	__m512i due_low = _mm512_or_si512(_mm512_slli_epi32(swap32(f[FIELD_DUE]), 8),
		_mm512_and_si512(f[FIELD_DUE_SENT], all(0xff)));
	__m512i sent_low = _mm512_or_si512(_mm512_srli_epi32(f[FIELD_DUE_SENT], 16),
		_mm512_slli_epi32(f[FIELD_SENT], 16));
	__m512i sent_high = _mm512_and_si512(_mm512_srli_epi32(f[FIELD_DUE_SENT], 8), all(0xff));
	__m512i bytes = _mm512_add_epi32(_mm512_loadu_si512(g->length), all(WIRE_FCS_BYTES));

	_mm_storeu_si128((void *)(out->id + n), _mm512_cvtepi32_epi8(id));
	_mm_storeu_si128((void *)(out->from + n),
		_mm_add_epi8(_mm_set1_epi8((char)g->from), first_sixteen));
	store_wide(out->sequence + n, swap32(f[FIELD_SEQUENCE]),
		_mm512_srli_epi32(f[FIELD_IDENTITY], 24));
	store_wide(out->due + n, due_low, _mm512_and_si512(f[FIELD_DUE], all(0xff)));
	store_wide(out->sent + n, swap32(sent_low), sent_high);
	_mm512_storeu_si512(out->bytes + n, bytes);
}

// Some are valid, the others are checked one by one; the order is preserved.
static __attribute__((noinline)) void take_mixed(const struct recognise *r, const struct group *g,
	struct whole *out, uint32_t good)
{
	struct whole all_of_them;

	read_stamps(g, &all_of_them, 0);
	for (uint16_t i = 0; i < g->n; i++) {
		if (!(good >> i & 1)) {
			recognise_one(r, g->from + i, out);
			continue;
		}
		out->id[out->n] = all_of_them.id[i];
		out->from[out->n] = all_of_them.from[i];
		out->sequence[out->n] = all_of_them.sequence[i];
		out->due[out->n] = all_of_them.due[i];
		out->sent[out->n] = all_of_them.sent[i];
		out->bytes[out->n] = all_of_them.bytes[i];
		out->n++;
	}
}

static inline void take_group(const struct recognise *r, uint16_t from, struct whole *out)
{
	struct group g = {r->at + from, r->length + from, from, MIN_OF(r->n - from, SIXTEEN), {}};
	uint32_t every = (1u << g.n) - 1;

	load_fields(&g);
	__m512i faults = find_faults(&g, r->sink->run);
	__mmask16 good = _mm512_testn_epi32_mask(faults, faults) & find_enclosed(&g) & every;
	good = find_streams(r, &g, find_right(&g, good));
	if (likely(good == every)) {
		read_stamps(&g, out, out->n);
		out->n += g.n;
	} else {
		take_mixed(r, &g, out, good);
	}
}

// Streams of other kinds mostly arrive in separate bursts.
static inline bool begins_plain(const uint8_t *frame)
{
	return frame[12] == WIRE_ETHERTYPE_IP4 >> 8 && frame[23] == WIRE_PROTO_UDP &&
	       frame[LAYER4 + WIRE_UDP_BYTES] == STAMP_MAGIC >> 8;
}

void recognise_avx512(const struct recognise *r, struct whole *out)
{
	if (unlikely(!r->is_long || r->n < FEW || !begins_plain(r->at[0]))) {
		recognise_scalar(r, out);
		return;
	}
	out->n = 0;
	// Entries are written sixteen at a time, beyond those that are valid: there is space,
	// because no more are taken than were there before.
	for (uint16_t i = 0; i < r->n; i += SIXTEEN)
		take_group(r, i, out);
}
