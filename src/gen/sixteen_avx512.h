// Private to the vectorised recogniser: transposes the headers and stamps of sixteen untagged
// frames of UDP over IPv4 into one vector per four bytes; each check is then one operation for all
// sixteen. Worker.
#pragma once

#include <immintrin.h>
#include <stdint.h>

enum { SIXTEEN = 16, FIELDS_FROM = 2, FIELDS_END = 60 };

// Four bytes each, from byte 2 of the frame on, in memory order.
enum field {
	FIELD_TYPE = 2,     // end of source MAC address, EtherType
	FIELD_LENGTH = 3,   // version and header length, type of service, total length
	FIELD_FRAGMENT = 4, // identification, fragmentation
	FIELD_PROTOCOL = 5, // TTL, protocol, checksum
	FIELD_SRC = 6,
	FIELD_DST = 7,
	FIELD_PORTS = 8,
	FIELD_UDP = 9,       // length, checksum
	FIELD_IDENTITY = 10, // magic, run, stream, highest byte of the sequence number
	FIELD_SEQUENCE = 11,
	FIELD_DUE = 12,      // its upper 32 bits
	FIELD_DUE_SENT = 13, // lowest byte of due, upper 24 bits of sent
	FIELD_SENT = 14,     // its lowest 16 bits, then zeros
};

static inline __m512i all(uint32_t value)
{
	return _mm512_set1_epi32((int)value);
}

static inline __m512i any3(__m512i a, __m512i b, __m512i c)
{
	return _mm512_ternarylogic_epi32(a, b, c, 0xfe);
}

// Adds the lower and the upper half of each 32 bits.
static inline __m512i halves(__m512i v)
{
	return _mm512_add_epi32(_mm512_and_si512(v, all(0xffff)), _mm512_srli_epi32(v, 16));
}

static inline __m512i swap32(__m512i v)
{
	const __m512i order = _mm512_set4_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203);

	return _mm512_shuffle_epi8(v, order);
}

// The upper 16 bits of each 32, in host order.
static inline __m512i upper16(__m512i v)
{
	return _mm512_and_si512(swap32(v), all(0xffff));
}

// The lower 16 bits of each 32, in host order.
static inline __m512i lower16(__m512i v)
{
	return _mm512_srli_epi32(swap32(v), 16);
}

// Transposes 4 x 4 blocks within each 128 bits, of frames 4g to 4g + 3.
static inline void transpose_four(const __m512i frame[4], __m512i out[4])
{
	__m512i a = _mm512_unpacklo_epi32(frame[0], frame[1]);
	__m512i b = _mm512_unpackhi_epi32(frame[0], frame[1]);
	__m512i c = _mm512_unpacklo_epi32(frame[2], frame[3]);
	__m512i d = _mm512_unpackhi_epi32(frame[2], frame[3]);

	out[0] = _mm512_unpacklo_epi64(a, c);
	out[1] = _mm512_unpackhi_epi64(a, c);
	out[2] = _mm512_unpacklo_epi64(b, d);
	out[3] = _mm512_unpackhi_epi64(b, d);
}

// Collects bytes 4k to 4k + 3 of all sixteen frames in field[k].
static inline void transpose_sixteen(const __m512i frame[SIXTEEN], __m512i field[SIXTEEN])
{
	__m512i four[SIXTEEN];

	for (int g = 0; g < 4; g++)
		transpose_four(frame + 4 * g, four + 4 * g);
	for (int k = 0; k < 4; k++) {
		__m512i even = _mm512_shuffle_i32x4(four[k], four[4 + k], 0x88);
		__m512i odd = _mm512_shuffle_i32x4(four[k], four[4 + k], 0xdd);
		__m512i even2 = _mm512_shuffle_i32x4(four[8 + k], four[12 + k], 0x88);
		__m512i odd2 = _mm512_shuffle_i32x4(four[8 + k], four[12 + k], 0xdd);
		field[k] = _mm512_shuffle_i32x4(even, even2, 0x88);
		field[4 + k] = _mm512_shuffle_i32x4(odd, odd2, 0x88);
		field[8 + k] = _mm512_shuffle_i32x4(even, even2, 0xdd);
		field[12 + k] = _mm512_shuffle_i32x4(odd, odd2, 0xdd);
	}
}

// Stores sixteen 64-bit numbers, given as halves.
static inline void store_wide(uint64_t to[SIXTEEN], __m512i low, __m512i high)
{
	const __m512i first =
		_mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
	const __m512i second =
		_mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);

	_mm512_storeu_si512(to, _mm512_permutex2var_epi32(low, first, high));
	_mm512_storeu_si512(to + 8, _mm512_permutex2var_epi32(low, second, high));
}
