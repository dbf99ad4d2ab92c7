// Parse with AVX-512 VBMI: sixteen frames at a time, all taken as the family of the first one; each
// check is one operation on all sixteen. Frames that are not plain go to parse_one. Worker.
#include "datapath/sixteen_avx512.h"

static inline __m512i all(uint32_t value)
{
	return _mm512_set1_epi32((int)value);
}

// Non-zero where the frame is not to our MAC or not of this EtherType (its bytes read as
// little-endian).
static inline __m512i bad_ethernet(const struct parse *p, const struct fields *f, uint32_t type)
{
	return _mm512_or_si512(differs(f->mac_high, p->mac >> 16),
		differs(f->mac_low_type, p->mac >> 48 | type << 16));
}

// Sum of the two halves of each 32-bit word.
static inline __m512i halves(__m512i words)
{
	return _mm512_add_epi32(_mm512_and_si512(words, all(0xffff)), _mm512_srli_epi32(words, 16));
}

// Finds headers of 20 bytes with a good checksum (RFC 1071). Out of line: devices with checksum
// offload never need it, all others always do.
static __attribute__((noinline)) __mmask16 find_good_sums(uint8_t *const frame[STEP], unsigned n)
{
	__m256i header[STEP];

	for (unsigned i = 0; i < n; i++)
		header[i] = _mm256_maskz_loadu_epi32(0x1f, frame[i] + 14);
	for (unsigned i = n; i < STEP; i++)
		header[i] = _mm256_setzero_si256();
	struct fields word =
		transpose(header); // the first five are the header's words, whatever their names
	__m512i sum = _mm512_add_epi32(halves(word.first), halves(word.second));
	sum = _mm512_add_epi32(sum,
		_mm512_add_epi32(halves(word.ttl_length), halves(word.pkt_len)));
	sum = halves(halves(_mm512_add_epi32(sum, halves(word.mac_high))));
	return _mm512_cmpeq_epi32_mask(sum, all(0xffff));
}

// Finds frames whose header checksum the device reports as good, or is good where the device does
// not report it.
static inline __mmask16 find_trusted4(const struct fields *f, const struct sixteen *from,
	unsigned n)
{
	const uint32_t good = (uint32_t)RTE_MBUF_F_RX_IP_CKSUM_GOOD << 24;
	const uint32_t bad = (uint32_t)RTE_MBUF_F_RX_IP_CKSUM_BAD << 24;
	__m512i marks = _mm512_and_si512(f->ttl_length, all(RTE_MBUF_F_RX_IP_CKSUM_MASK << 24));
	__mmask16 trusted = _mm512_cmpeq_epi32_mask(marks, all(good));

	if (likely(trusted == UINT16_MAX))
		return trusted;
	return trusted |
	       (find_good_sums(from->frame, n) & _mm512_cmpneq_epi32_mask(marks, all(bad)));
}

// Non-zero where a packet that ends at `end` is not whole, or is followed by more than padding; as
// is_whole in parse.c, except for segments.
static inline __m512i bad_end(const struct fields *f, __m512i end)
{
	__m512i padded = _mm512_min_epu32(f->pkt_len, all(PADDED_BYTES));

	return _mm512_xor_si512(f->pkt_len, _mm512_max_epu32(end, padded));
}

// The same conditions as is_plain4 in parse.c except for the checksum. Faults are collected in
// vectors (in parallel), not in masks (one after another).
static inline __mmask16 find_plain4(const struct parse *p, const struct fields *f)
{
	__m512i total = _mm512_and_si512(f->ttl_length, all(0xffff));
	__m512i length_and_ihl = _mm512_xor_si512(f->pkt_len, all(0x45450000));
	__m512i bad_frame = _mm512_or_si512(bad_ethernet(p, f, 0x0008),
		_mm512_xor_si512(f->data_len, length_and_ihl));
	__m512i bad_length =
		_mm512_or_si512(below(total, 20), bad_end(f, _mm512_add_epi32(total, all(14))));
	__m512i bad_source = above(_mm512_sub_epi32(f->second, all(0x01000000)), all(0xdeffffff));
	__mmask16 plain = _mm512_cmpeq_epi32_mask(any3(bad_frame, bad_length, bad_source), all(0));
	__mmask16 loopback = _mm512_cmpeq_epi32_mask(_mm512_srli_epi32(f->second, 24), all(127));
	__mmask16 link_local =
		_mm512_cmpeq_epi32_mask(_mm512_srli_epi32(f->second, 16), all(0xa9fe));

	return plain & ~(loopback | link_local);
}

// The same conditions as is_plain6 in parse.c.
static inline __mmask16 find_plain6(const struct parse *p, const struct fields *f)
{
	__m512i length = _mm512_and_si512(f->ttl_length, all(0xffff));
	__m512i version = _mm512_and_si512(f->data_len, all(0xf0f0ffff));
	__m512i bad_frame = any3(bad_ethernet(p, f, 0xdd86),
		_mm512_xor_si512(version, _mm512_xor_si512(f->pkt_len, all(0x60600000))),
		bad_end(f, _mm512_add_epi32(length, all(54))));
	__mmask16 plain = _mm512_cmpeq_epi32_mask(bad_frame, all(0));
	__mmask16 has_source = _mm512_test_epi32_mask(_mm512_or_si512(f->first, f->second),
		_mm512_or_si512(f->first, f->second));
	__mmask16 has_next = _mm512_test_epi32_mask(f->ttl_length, all(0xff000000));
	__mmask16 link_local =
		_mm512_cmpeq_epi32_mask(_mm512_srli_epi32(f->first, 22), all(0xfe80 >> 6));
	__mmask16 multicast = _mm512_cmpeq_epi32_mask(_mm512_srli_epi32(f->first, 24), all(0xff));

	return plain & has_source & has_next & ~(link_local | multicast);
}

// Whether frames of this EtherType are among those that are not plain: parse_one may accept them.
static inline bool has_type(const struct fields *f, __mmask16 odd, uint32_t type)
{
	__m512i types = _mm512_srli_epi32(f->mac_low_type, 16);

	return _mm512_mask_cmpeq_epi32_mask(odd, types, all(type)) != 0;
}

static inline void store_lengths(struct burst *b, unsigned at, const struct fields *f)
{
	__m512i ttl = _mm512_srli_epi32(f->ttl_length, 16);

	_mm256_storeu_si256((__m256i *)&b->length[at], _mm512_cvtepi32_epi16(f->pkt_len));
	_mm_storeu_si128((__m128i *)&b->ttl[at], _mm512_cvtepi32_epi8(ttl));
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

// Compresses the fields of the plain frames.
static inline struct fields squeeze(const struct fields *f, __mmask16 plain)
{
	return (struct fields){
		.first = _mm512_maskz_compress_epi32(plain, f->first),
		.second = _mm512_maskz_compress_epi32(plain, f->second),
		.pkt_len = _mm512_maskz_compress_epi32(plain, f->pkt_len),
		.ttl_length = _mm512_maskz_compress_epi32(plain, f->ttl_length),
	};
}

// Finds which of the first n sources may be our own, as fib_source_may_be_ours does: selects words
// by the hash's highest five bits, then rotates both bits to the lowest position.
static inline __mmask16 find_own_sources(const struct fib_sources *sources, __m512i source,
	unsigned n)
{
	__m512i low = _mm512_load_si512(&sources->word[0]);
	__m512i high = _mm512_load_si512(&sources->word[STEP]);
	__m512i hash = _mm512_mullo_epi32(source, all(FIB_SOURCE_FACTOR));
	__m512i word = _mm512_permutex2var_epi32(low, _mm512_srli_epi32(hash, 27), high);
	__m512i first = _mm512_rorv_epi32(word, _mm512_srli_epi32(hash, 22));
	__m512i second = _mm512_rorv_epi32(word, _mm512_srli_epi32(hash, 17));

	return _mm512_test_epi32_mask(_mm512_and_si512(first, second), all(1)) & ((1u << n) - 1);
}
_Static_assert(FIB_SOURCE_WORDS == 2 * STEP, "the filter is two vectors");

static inline void store_dst6(struct burst *b, unsigned at, unsigned n)
{
	const __m128i host_order =
		_mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8);

	for (unsigned i = at; i < at + n; i++) {
		__m128i dst = _mm_loadu_si128((const __m128i *)(b->frame[i] + 38));
		_mm_storeu_si128((__m128i *)&b->dst6[i], _mm_shuffle_epi8(dst, host_order));
	}
}

static inline void append(struct burst *b, const struct fields *f, bool is_ip6, unsigned n)
{
	unsigned at = b->n;

	store_lengths(b, at, f);
	if (is_ip6) {
		store_dst6(b, at, n);
	} else {
		_mm512_storeu_si512(&b->dst4[at], f->first);
		b->own_source_mask |= (uint64_t)find_own_sources(b->sources, f->second, n) << at;
	}
	b->n = at + n;
}

// Appends the plain frames to the burst of their family, in order.
static __attribute__((noinline)) void take_plain(struct burst *b, const struct fields *f,
	const struct sixteen *from, __mmask16 plain)
{
	const struct fields dense = squeeze(f, plain);

	store_pointers(&b->mbuf[b->n], from->mbuf, plain);
	store_pointers(&b->frame[b->n], from->frame, plain);
	append(b, &dense, from->is_ip6, __builtin_popcount(plain));
}

static inline void take_all(struct burst *b, const struct fields *f, const struct sixteen *from)
{
	memcpy(&b->mbuf[b->n], from->mbuf, STEP * sizeof(from->mbuf[0]));
	append(b, f, from->is_ip6, STEP);
}

static inline struct fields read_fields(const struct sixteen *from, unsigned n)
{
	const uint8_t *bytes = from->is_ip6 ? record6_bytes : record4_bytes;
	const __m512i pick = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)bytes));
	__m256i record[STEP];

	if (n < STEP)
		memset(record, 0, sizeof(record));
	for (unsigned i = 0; i < n; i++) {
		__m512i head = _mm512_loadu_si512(from->mbuf[i]);
		from->frame[i] = rte_pktmbuf_mtod(from->mbuf[i], uint8_t *);
		__m512i frame = _mm512_loadu_si512(from->frame[i]);
		record[i] = _mm512_castsi512_si256(_mm512_permutex2var_epi8(frame, pick, head));
	}
	return transpose(record);
}

// `n` and `is_ip6` are constants in all hot callers.
static inline __attribute__((always_inline)) uint64_t parse_step(struct parse *p,
	struct rte_mbuf *const mbuf[], unsigned n, bool is_ip6)
{
	struct burst *b = is_ip6 ? &p->w->poll->ip6 : &p->w->poll->ip4;
	__mmask16 valid = (__mmask16)((1u << n) - 1);
	const struct sixteen from = {.is_ip6 = is_ip6, .mbuf = mbuf, .frame = &b->frame[b->n]};
	struct fields f = read_fields(&from, n);
	__mmask16 plain = valid & (is_ip6 ? find_plain6(p, &f)
					  : find_plain4(p, &f) & find_trusted4(&f, &from, n));
	if (unlikely(has_type(&f, valid & ~plain, is_ip6 ? 0xdd86 : 0x0008)))
		plain = 0; // one by one, so that packets of a flow stay in order
	if (likely(plain == UINT16_MAX)) {
		take_all(b, &f, &from);
	} else {
		const struct fields apart = f; // a copy: f itself stays in registers

		take_plain(b, &apart, &from, plain);
	}
	if (!is_ip6)
		fib_prefetch4_sixteen(p->view, f.first); // a few unneeded prefetches do no harm
	for (unsigned odd = valid & ~plain; odd; odd &= odd - 1)
		parse_one(p, mbuf[__builtin_ctz(odd)]);
	return _mm512_mask_reduce_add_epi32(valid, f.pkt_len);
}

static __attribute__((noinline)) uint64_t parse_some(struct parse *p, struct rte_mbuf *const mbuf[],
	unsigned n)
{
	return parse_step(p, mbuf, n, false);
}

static __attribute__((noinline)) uint64_t parse_sixteen6(struct parse *p,
	struct rte_mbuf *const mbuf[])
{
	return parse_step(p, mbuf, STEP, true);
}

// Prefetches where a frame's headers usually are.
static inline void prefetch_frame(const struct rte_mbuf *m)
{
	rte_prefetch0((const uint8_t *)m->buf_addr + RTE_PKTMBUF_HEADROOM);
}

static inline void prefetch_sixteen(struct rte_mbuf *const mbuf[])
{
	for (unsigned i = 0; i < STEP; i++)
		prefetch_frame(mbuf[i]);
}

// For fewer than sixteen frames at a burst's end. Out of line: otherwise compilers merge both loops
// into one that compares before each frame.
static __attribute__((noinline)) void prefetch_some(struct rte_mbuf *const mbuf[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		prefetch_frame(mbuf[i]);
}

void parse_avx512(struct parse *p)
{
	uint64_t bytes = 0;
	unsigned i = 0;

	for (; i + STEP <= p->n; i += STEP) {
		const uint8_t *frame = rte_pktmbuf_mtod(p->mbuf[i], const uint8_t *);

		if (likely(i + 2 * STEP <= p->n))
			prefetch_sixteen(p->mbuf + i + STEP);
		else if (unlikely(i + STEP < p->n))
			prefetch_some(p->mbuf + i + STEP, p->n - i - STEP);
		if (frame[12] == 0x86)
			bytes += parse_sixteen6(p, p->mbuf + i);
		else
			bytes += parse_step(p, p->mbuf + i, STEP, false);
	}
	if (i < p->n)
		bytes += parse_some(p, p->mbuf + i, p->n - i);
	stats_add(p->rx_bytes, bytes);
}
