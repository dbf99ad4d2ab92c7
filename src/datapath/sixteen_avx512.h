// Internal to the vector parser: loads sixteen frames into one vector per header field. For each
// frame one permutation picks 32 bytes from the first cache lines of the mbuf and the frame; a
// transposition does the rest. Worker.
#pragma once

#include "datapath/parse.h"

#include <immintrin.h>

enum { STEP = 16, FROM_MBUF = 64 };

// Permutation indices of record bytes: 0 to 63 are in the frame, from 64 on in the mbuf.
enum {
	PKT_LEN = FROM_MBUF + offsetof(struct rte_mbuf, pkt_len),
	DATA_LEN = FROM_MBUF + offsetof(struct rte_mbuf, data_len),
	MARKS = FROM_MBUF + offsetof(struct rte_mbuf, ol_flags),
};
_Static_assert(PKT_LEN < 128 && DATA_LEN < 128 && MARKS < 128,
	"fields in the mbuf's first cache line");
_Static_assert(RTE_MBUF_F_RX_IP_CKSUM_MASK < 256, "checksum marks in the lowest byte of ol_flags");

// Eight 32-bit fields of a record, in the order of struct fields.
static const uint8_t record4_bytes[32] = {
	33, 32, 31, 30,                                 // destination, host order
	29, 28, 27, 26,                                 // source, host order
	17, 16, 22, MARKS,                              // total length, TTL, checksum marks
	PKT_LEN, PKT_LEN + 1, PKT_LEN + 2, PKT_LEN + 3, // packet length
	0, 1, 2, 3,                                     // destination MAC
	4, 5, 12, 13,                                   // destination MAC, EtherType
	DATA_LEN, DATA_LEN + 1, 14, 14, // first segment's length, version and IHL (twice)
	0, 0, 0, 0,                     // unused
};
static const uint8_t record6_bytes[32] = {
	25,
	24,
	23,
	22, // source, first 32 bits, host order
	29,
	28,
	27,
	26, // source, next 32 bits
	19,
	18,
	21,
	20, // payload length, hop limit, next header
	PKT_LEN,
	PKT_LEN + 1,
	PKT_LEN + 2,
	PKT_LEN + 3,
	0,
	1,
	2,
	3,
	4,
	5,
	12,
	13,
	DATA_LEN,
	DATA_LEN + 1,
	14,
	14, // version in the high half of the byte
	0,
	0,
	0,
	0,
};

// The frames being parsed, all taken as one family.
struct sixteen {
	bool is_ip6;
	struct rte_mbuf *const *mbuf;
	uint8_t **frame; // where to write frame pointers if all are plain
};

// One vector per field. `first` and `second` are destination and source for IPv4, the first 64 bits
// of the source for IPv6; `ttl_length` has the length field in its low half, then TTL or hop limit.
struct fields {
	__m512i first, second, ttl_length, pkt_len, mac_high, mac_low_type, data_len;
};

// Collects field f of all sixteen records into one vector.
static inline struct fields transpose(const __m256i record[STEP])
{
	__m512i row[8], pair[8];

	for (int i = 0; i < 8; i++) // records i and i + 8 side by side
		row[i] = _mm512_inserti64x4(_mm512_castsi256_si512(record[i]), record[i + 8], 1);
	for (int i = 0; i < 8; i += 2) {
		pair[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
		pair[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
	}
	// pair[0] holds fields 0, 1 (and 4, 5) of records 0, 1; pair[1] fields 2, 3 (6, 7); the
	// other pairs do so for records 2,3 | 4,5 | 6,7.
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
		.first = _mm512_permutex2var_epi64(f0a, low, f0b),
		.second = _mm512_permutex2var_epi64(f1a, low, f1b),
		.ttl_length = _mm512_permutex2var_epi64(f2a, low, f2b),
		.pkt_len = _mm512_permutex2var_epi64(f3a, low, f3b),
		.mac_high = _mm512_permutex2var_epi64(f0a, high, f0b),
		.mac_low_type = _mm512_permutex2var_epi64(f1a, high, f1b),
		.data_len = _mm512_permutex2var_epi64(f2a, high, f2b),
	};
}

// 0 if equal. / 0 if a <= b. / 0 if a >= b. Unsigned.
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
