// Next hop checks with AVX-512: a whole burst by the summary table, or each hop's limits, gathered,
// so that vector loads do not follow a loop of small stores. Worker.
#include "datapath/hop_limits.h"
#include "datapath/judge.h"

#include <immintrin.h>
#include <rte_atomic.h>

enum { STEP = 16 };

// Bytes of 128 ports, each by the lowest seven bits of its id.
static inline __m512i ports_in(const uint8_t port[128], __m512i id)
{
	return _mm512_permutex2var_epi8(_mm512_load_si512(port), id, _mm512_load_si512(port + 64));
}

// Ports of 64 hops by the lowest nine bits of their ids: the lowest eight as bytes, and the ninth.
static inline __m512i ports_of(const uint8_t port[FIB_PLAIN_HOPS], __m512i id, __mmask64 ninth)
{
	__mmask64 eighth = _mm512_movepi8_mask(id);
	__m512i a = ports_in(port, id), b = ports_in(port + 128, id);
	__m512i c = ports_in(port + 256, id), d = ports_in(port + 384, id);

	return _mm512_mask_blend_epi8(ninth, _mm512_mask_blend_epi8(eighth, a, b),
		_mm512_mask_blend_epi8(eighth, c, d));
}
_Static_assert(FIB_PLAIN_HOPS == 512, "nine bits");

// The hops of a burst, sixteen in each vector; those of no packet are the first one.
struct hops {
	__m512i id[4], first;
};

static inline struct hops hops_of(const struct burst *b, __mmask64 valid)
{
	struct hops hops = {.first = _mm512_set1_epi32((int)b->hop[0])};

	for (unsigned i = 0; i < ARRAY_LEN(hops.id); i++)
		hops.id[i] = _mm512_mask_loadu_epi32(hops.first, (__mmask16)(valid >> 16 * i),
			b->hop + 16 * i);
	return hops;
}

// The low halves of 32 ids.
static inline __m512i low_halves(__m512i a, __m512i b)
{
	const __m512i even = _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38,
		36, 34, 32, 30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);

	return _mm512_permutex2var_epi16(a, even, b);
}

// Whether all ids are in the summary table. / Whether they are the same.
static inline bool are_in_summary(const struct hops *hops)
{
	__m512i any = _mm512_or_si512(_mm512_or_si512(hops->id[0], hops->id[1]),
		_mm512_or_si512(hops->id[2], hops->id[3]));

	return !_mm512_test_epi32_mask(any, _mm512_set1_epi32(~(FIB_PLAIN_HOPS - 1)));
}

static inline bool are_same(const struct hops *hops)
{
	__m512i differ = _mm512_xor_si512(hops->id[0], hops->first);

	for (unsigned i = 1; i < ARRAY_LEN(hops->id); i++)
		differ = _mm512_or_si512(differ, _mm512_xor_si512(hops->id[i], hops->first));
	return !_mm512_test_epi32_mask(differ, differ);
}

// Read before and after the ports.
static inline uint32_t limit_of(const struct fib_view *view)
{
	rte_compiler_barrier(); // x86 keeps loads in order
	return __atomic_load_n(&view->plain->limit, __ATOMIC_ACQUIRE);
}

// If the limit has changed meanwhile, each packet is checked by itself: 0.
static inline uint16_t frame_max_of(uint32_t before, uint32_t after)
{
	struct fib_plain_hops plain;

	plain.limit = after;
	return before == after ? plain.frame_max : 0;
}

bool all_plain_avx512(struct burst *b)
{
	const struct fib_view *view = b->view;
	const uint32_t before = limit_of(view);
	const __m512i bit8 = _mm512_set1_epi16(0x100);
	const __mmask64 valid = _bzhi_u64(UINT64_MAX, b->n);
	const struct hops hops = hops_of(b, valid);
	const __m512i low = low_halves(hops.id[0], hops.id[1]);
	const __m512i high = low_halves(hops.id[2], hops.id[3]);
	const __m512i id = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(low)),
		_mm512_cvtepi16_epi8(high), 1);
	const __mmask64 ninth = _mm512_test_epi16_mask(low, bit8) |
	                        (uint64_t)_mm512_test_epi16_mask(high, bit8) << 32;
	const __m512i ttl = _mm512_load_si512(b->ttl);
	const __m512i port = ports_of(view->plain->port, id, ninth);
	const uint32_t after = limit_of(view);
	const __m512i most = _mm512_set1_epi16((short)frame_max_of(before, after));
	__mmask64 odd = judge_are_expired(ttl) |
	                _mm512_cmpeq_epi8_mask(port, _mm512_set1_epi8((char)FIB_NOT_PLAIN));

	odd |= judge_are_too_long(_mm512_load_si512(b->length), most);
	odd |= (uint64_t)judge_are_too_long(_mm512_load_si512(b->length + 32), most) << 32;
	if ((odd & valid) || !are_in_summary(&hops))
		return false;
	_mm512_store_si512(b->port, port);
	b->has_one_hop = are_same(&hops);
	b->has_one_port = !(_mm512_cmpneq_epi8_mask(port,
				    _mm512_broadcastb_epi8(_mm512_castsi512_si128(port))) &
			    valid);
	return true;
}

void limits_avx512(const struct fib_view *view, const uint32_t hop[], uint32_t limits[], unsigned n)
{
	const uint8_t *first = (const uint8_t *)view->hops + LIMITS_AT;

	_Static_assert(sizeof(struct fib_hop_entry) == 1 << 4, "the shift below");
	for (unsigned i = 0; i < n; i += STEP) {
		__mmask16 valid = n - i < STEP ? (__mmask16)((1u << (n - i)) - 1) : UINT16_MAX;
		__m512i place = _mm512_slli_epi32(_mm512_maskz_loadu_epi32(valid, hop + i), 4);

		_mm512_storeu_si512(limits + i, _mm512_i32gather_epi32(place, first, 1));
	}
}
