// Rewrite with AVX-512: reads, changes and writes the first 32 bytes of a frame as one vector.
// Equivalent to rewrite.c. Worker.
#include "datapath/variant.h"

#include <immintrin.h>

// 32-bit words 0 to 2 are the MACs. 16-bit words 10 and 11 end in the hop limit (IPv6) or start
// with the TTL (IPv4); word 12 is the IPv4 checksum.
enum { MACS = 0x07, CHECKSUM = 1 << 12 };

static inline __m256i change4(__m256i frame)
{
	// RFC 1624: decrementing the TTL increments the checksum, with end-around carry.
	const __m256i less_ttl = _mm256_setr_epi16(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 1, 0, 0, 0);
	const __m256i last = _mm256_set1_epi16((short)0xfffe);
	__mmask16 carries = _mm256_mask_cmpge_epu16_mask(CHECKSUM, frame, last);

	frame = _mm256_add_epi16(frame, less_ttl);
	return _mm256_mask_sub_epi16(frame, carries, frame, _mm256_set1_epi16(-1));
}

static inline __m256i change6(__m256i frame)
{
	const __m256i less_limit =
		_mm256_setr_epi16(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -0x100, 0, 0, 0, 0, 0);

	return _mm256_add_epi16(frame, less_limit);
}

static inline void rewrite_one(uint8_t *at, __m256i hop, bool is_ip6)
{
	__m256i frame = _mm256_loadu_si256((const __m256i *)at);

	frame = is_ip6 ? change6(frame) : change4(frame);
	_mm256_storeu_si256((__m256i *)at, _mm256_mask_blend_epi32(MACS, frame, hop));
}

static inline __m256i read_hop(const struct fib_hop_entry *hop)
{
	return _mm256_castsi128_si256(word16_load(hop));
}

static inline __attribute__((always_inline)) void rewrite(struct stats_worker *stat,
	struct burst *b, bool is_ip6)
{
	// Frames may alias anything.
	const unsigned n = b->n;
	const struct fib_hop_entry *const hops = b->view->hops;
	uint64_t *const uses = stat->hop;

	if (b->has_one_hop) {
		__m256i hop = read_hop(&hops[b->hop[0]]);

		for (unsigned i = 0; i < n; i++)
			rewrite_one(b->frame[i], hop, is_ip6);
		stats_add(&uses[b->hop[0]], n);
		return;
	}
#pragma GCC unroll 4 // if each packet has a different hop: saves 0.5 of 3.6 cycles per packet
	for (unsigned i = 0; i < n; i++) {
		const size_t hop = b->hop[i];

		rewrite_one(b->frame[i], read_hop(&hops[hop]), is_ip6);
		stats_add(uses + hop, 1);
	}
}

void rewrite4_avx512(struct stats_worker *stat, struct burst *b)
{
	rewrite(stat, b, false);
}

void rewrite6_avx512(struct stats_worker *stat, struct burst *b)
{
	rewrite(stat, b, true);
}
