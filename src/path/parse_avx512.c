// Parse with AVX-512 VBMI: sixteen frames at a time; what is not plain IPv4 goes to parse_one.
// Lane. Per frame one permutation picks 32 bytes out of the mbuf's and the frame's first cache
// lines; a transposition makes vectors of fields out of sixteen of them, and each check is one
// comparison for all sixteen.
#include "path/parse.h"

#include <immintrin.h>

enum { STEP = 16, FROM_MBUF = 64 };

// Where the permutation finds each byte of a record: 0 to 63 in the frame, from 64 on in the mbuf.
enum {
	PKT_LEN = FROM_MBUF + offsetof(struct rte_mbuf, pkt_len),
	DATA_LEN = FROM_MBUF + offsetof(struct rte_mbuf, data_len),
	MARKS = FROM_MBUF + offsetof(struct rte_mbuf, ol_flags),
};
_Static_assert(PKT_LEN < 128 && DATA_LEN < 128 && MARKS < 128,
	"fields in the mbuf's first cache line");
_Static_assert(RTE_MBUF_F_RX_IP_CKSUM_MASK < 256, "checksum marks in the lowest byte of ol_flags");

// Eight 32-bit fields of a record, in the order of this table.
static const uint8_t record_bytes[32] = {
	33, 32, 31, 30,                                 // destination, host order
	29, 28, 27, 26,                                 // source, host order
	17, 16, 22, MARKS,                              // total length, TTL, checksum marks
	PKT_LEN, PKT_LEN + 1, PKT_LEN + 2, PKT_LEN + 3, // packet length
	0, 1, 2, 3,                                     // destination MAC
	4, 5, 12, 13,                                   // destination MAC, EtherType
	DATA_LEN, DATA_LEN + 1, 14, 14, // first segment's length, version and IHL (twice)
	0, 0, 0, 0,                     // unused
};

// The frames at work.
struct sixteen {
	struct rte_mbuf *const *mbuf;
	uint8_t *frame[STEP] LINE_ALIGNED;
};

struct fields {
	__m512i dst, src, ttl_length, pkt_len, mac_high, mac_low_type, data_len;
};

// Brings field f of all sixteen into one vector.
static inline struct fields transpose(const __m256i record[STEP])
{
	__m512i row[8], pair[8];

	for (int i = 0; i < 8; i++) // records i and i + 8 side by side
		row[i] = _mm512_inserti64x4(_mm512_castsi256_si512(record[i]), record[i + 8], 1);
	for (int i = 0; i < 8; i += 2) {
		pair[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
		pair[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
	}
	// Now pair[0] holds fields 0, 1 (and 4, 5) of records 0, 1; pair[1] fields 2, 3 (6, 7);
	// likewise 2,3 | 4,5 | 6,7.
	__m512i f0a = _mm512_unpacklo_epi64(pair[0], pair[2]),
		f0b = _mm512_unpacklo_epi64(pair[4], pair[6]);
	__m512i f1a = _mm512_unpackhi_epi64(pair[0], pair[2]),
		f1b = _mm512_unpackhi_epi64(pair[4], pair[6]);
	__m512i f2a = _mm512_unpacklo_epi64(pair[1], pair[3]),
		f2b = _mm512_unpacklo_epi64(pair[5], pair[7]);
	__m512i f3a = _mm512_unpackhi_epi64(pair[1], pair[3]),
		f3b = _mm512_unpackhi_epi64(pair[5], pair[7]);
	// Each 128-bit quarter of fNa: field N of records 0-3 | field N+4 of 0-3 | field N of 8-11
	// | field N+4 of 8-11; fNb: 4-7, 12-15.
	const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
	const __m512i high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);

	return (struct fields){
		.dst = _mm512_permutex2var_epi64(f0a, low, f0b),
		.src = _mm512_permutex2var_epi64(f1a, low, f1b),
		.ttl_length = _mm512_permutex2var_epi64(f2a, low, f2b),
		.pkt_len = _mm512_permutex2var_epi64(f3a, low, f3b),
		.mac_high = _mm512_permutex2var_epi64(f0a, high, f0b),
		.mac_low_type = _mm512_permutex2var_epi64(f1a, high, f1b),
		.data_len = _mm512_permutex2var_epi64(f2a, high, f2b),
	};
}

// 0 where both are equal. / 0 where a <= b. / 0 where a >= b. Unsigned.
static inline __m512i differs(__m512i a, uint32_t b)
{
	return _mm512_xor_si512(a, _mm512_set1_epi32((int)b));
}

static inline __m512i above(__m512i a, __m512i b)
{
	return _mm512_xor_si512(_mm512_max_epu32(a, b), b);
}

static inline __m512i below(__m512i a, uint32_t b)
{
	__m512i bound = _mm512_set1_epi32((int)b);

	return _mm512_xor_si512(_mm512_min_epu32(a, bound), bound);
}

static inline __m512i any3(__m512i a, __m512i b, __m512i c)
{
	return _mm512_ternarylogic_epi32(a, b, c, 0xfe);
}

// The same conditions as is_plain4 in parse.c. Faults are collected in vectors (many at once), not
// in masks (one after the other).
static inline __mmask16 find_plain4(const struct parse *p, const struct fields *f)
{
	__m512i total = _mm512_and_si512(f->ttl_length, _mm512_set1_epi32(0xffff));
	__m512i marks = _mm512_and_si512(f->ttl_length,
		_mm512_set1_epi32((int)(RTE_MBUF_F_RX_IP_CKSUM_MASK << 24)));
	__m512i length_and_ihl = _mm512_or_si512(f->pkt_len, _mm512_set1_epi32(0x45450000));
	__m512i not_for_us = any3(differs(f->mac_high, p->mac >> 16),
		differs(f->mac_low_type, p->mac >> 48 | 0x00080000),
		_mm512_xor_si512(f->data_len, length_and_ihl));
	__m512i bad_length = any3(below(total, 20),
		above(_mm512_add_epi32(total, _mm512_set1_epi32(14)), f->pkt_len),
		differs(marks, (uint32_t)RTE_MBUF_F_RX_IP_CKSUM_GOOD << 24));
	__m512i bad_source = above(_mm512_sub_epi32(f->src, _mm512_set1_epi32(0x01000000)),
		_mm512_set1_epi32((int)0xdeffffff));
	__mmask16 plain = _mm512_cmpeq_epi32_mask(any3(not_for_us, bad_length, bad_source),
		_mm512_setzero_si512());
	__mmask16 loopback =
		_mm512_cmpeq_epi32_mask(_mm512_srli_epi32(f->src, 24), _mm512_set1_epi32(127));
	__mmask16 link_local =
		_mm512_cmpeq_epi32_mask(_mm512_srli_epi32(f->src, 16), _mm512_set1_epi32(0xa9fe));

	return plain & ~(loopback | link_local);
}

static inline bool has_odd_ip4(const struct fields *f, __mmask16 odd)
{
	__m512i type = _mm512_srli_epi32(f->mac_low_type, 16);

	return _mm512_mask_cmpeq_epi32_mask(odd, type, _mm512_set1_epi32(0x0008)) != 0;
}

static inline void store_fields(struct burst *b, unsigned at, const struct fields *f)
{
	__m512i ttl = _mm512_srli_epi32(f->ttl_length, 16);

	_mm512_storeu_si512(&b->dst4[at], f->dst);
	_mm256_storeu_si256((__m256i *)&b->length[at], _mm512_cvtepi32_epi16(f->pkt_len));
	_mm_storeu_si128((__m128i *)&b->ttl[at], _mm512_cvtepi32_epi8(ttl));
}

// Appends all sixteen to the IPv4 burst.
static inline void take_all4(struct burst *b, const struct fields *f, const struct sixteen *from)
{
	memcpy(&b->mbuf[b->n], from->mbuf, STEP * sizeof(from->mbuf[0]));
	memcpy(&b->frame[b->n], from->frame, STEP * sizeof(from->frame[0]));
	store_fields(b, b->n, f);
	b->n += STEP;
}

static inline void store_pointers(void *to, const void *from, __mmask16 plain)
{
	unsigned n_low = __builtin_popcount(plain & 0xff);
	__m512i low = _mm512_loadu_si512(from);
	__m512i high = _mm512_loadu_si512((const uint8_t *)from + 64);

	_mm512_storeu_si512(to, _mm512_maskz_compress_epi64(plain & 0xff, low));
	_mm512_storeu_si512((uint8_t *)to + 8 * n_low,
		_mm512_maskz_compress_epi64(plain >> 8, high));
}

// Appends the plain ones to the IPv4 burst, dense and in order.
static inline void take_some4(struct burst *b, const struct fields *f, const struct sixteen *from,
	__mmask16 plain)
{
	struct fields dense = {
		.dst = _mm512_maskz_compress_epi32(plain, f->dst),
		.pkt_len = _mm512_maskz_compress_epi32(plain, f->pkt_len),
		.ttl_length = _mm512_maskz_compress_epi32(plain, f->ttl_length),
	};

	store_pointers(&b->mbuf[b->n], from->mbuf, plain);
	store_pointers(&b->frame[b->n], from->frame, plain);
	store_fields(b, b->n, &dense);
	b->n += __builtin_popcount(plain);
}

static inline __attribute__((always_inline)) uint64_t parse_step(struct parse *p,
	struct rte_mbuf *const mbuf[], unsigned n)
{
	const __m512i pick =
		_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)record_bytes));
	__m256i record[STEP];
	struct sixteen from;
	struct burst *b = &p->w->ip4;

	from.mbuf = mbuf;
	if (n < STEP)
		memset(record, 0, sizeof(record));
	for (unsigned i = 0; i < n; i++) {
		__m512i head = _mm512_loadu_si512(mbuf[i]);
		from.frame[i] = rte_pktmbuf_mtod(mbuf[i], uint8_t *);
		__m512i bytes =
			_mm512_permutex2var_epi8(_mm512_loadu_si512(from.frame[i]), pick, head);
		record[i] = _mm512_castsi512_si256(bytes);
	}
	__mmask16 valid = (__mmask16)((1u << n) - 1);
	struct fields f = transpose(record);
	__mmask16 plain = find_plain4(p, &f) & valid;

	if (rarely(has_odd_ip4(&f, valid & ~plain)))
		plain = 0; // one by one, so that packets of a flow stay in order
	if (likely_to(plain == UINT16_MAX))
		take_all4(b, &f, &from);
	else
		take_some4(b, &f, &from, plain);
	for (unsigned odd = valid & ~plain; odd; odd &= odd - 1)
		parse_one(p, mbuf[__builtin_ctz(odd)]);
	return _mm512_mask_reduce_add_epi32(valid, f.pkt_len);
}

void parse_avx512(struct parse *p)
{
	uint64_t bytes = 0;
	unsigned i = 0;

	for (; i + STEP <= p->n; i += STEP)
		bytes += parse_step(p, p->mbuf + i, STEP);
	if (i < p->n)
		bytes += parse_step(p, p->mbuf + i, p->n - i);
	stat_add(p->rx_bytes, bytes);
}
