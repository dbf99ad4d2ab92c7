// Bulk lookups that compare a line at once. Worker.
#include "base/fetch_avx512.h"
#include "flow/stages4.h"
#include "flow/stages6.h"

#include <immintrin.h>
#include <stddef.h>

// The whole line. The parts may be read at different moments: the state before and after decides.
#if defined(WORD16_TSAN)
static inline __m512i line_load(const void *line)
{
	const uint8_t *from = line;
	__m512i whole = _mm512_castsi128_si512(word16_load(from));

	whole = _mm512_inserti32x4(whole, word16_load(from + 16), 1);
	whole = _mm512_inserti32x4(whole, word16_load(from + 32), 2);
	return _mm512_inserti32x4(whole, word16_load(from + 48), 3);
}
#else
static inline __m512i line_load(const void *line)
{
	__m512i whole = *(const volatile __m512i *)line;

	__asm__ volatile("" : : : "memory"); // x86 keeps loads in order, compilers may not
	return whole;
}
#endif

// The slot of a key; LINE4_SLOTS: none.
static inline __attribute__((always_inline)) unsigned slot4(const struct line4 *line,
	const struct flow_key4 *key)
{
	// Only the first word of a key has bits of the action.
	const __m512i care = _mm512_broadcast_i32x4(_mm_set_epi32(-1, -1, -1, KIND_MASK));
	const __m512i wanted =
		_mm512_broadcast_i32x4(_mm_load_si128((const __m128i *)(const void *)key));
	const __m512i differ = _mm512_xor_si512(line_load(line), wanted);
	const uint32_t halves = _mm512_testn_epi64_mask(differ, care);
	const uint32_t match = halves & halves >> 1 & 0x15; // bit 2 s: slot s

	return __builtin_ctz(match | 1 << 2 * LINE4_SLOTS) / 2u;
}

static inline __attribute__((always_inline)) struct probe4 probe4(const struct line4 *line,
	const struct flow_key4 *key)
{
	const uint32_t state = state_load(&line->state);
	const unsigned slot = slot4(line, key);
	const uint32_t value = line4_value_load(line, slot);

	return (struct probe4){
		.flow = slot < LINE4_SLOTS ? value & VALUE_FLOW : FLOW_NONE,
		.action = line4_action(line4_kind_load(line, slot), value, state, slot),
		.state = state,
		.is_sure = !(state & 1) & (state_load(&line->state) == state),
	};
}

// What was read of the lines of a burst, to be put together sixteen at a time.
struct words4 {
	uint32_t slot[FLOW_BURST], value[FLOW_BURST], kind[FLOW_BURST], again[FLOW_BURST];
} LINE_ALIGNED;

static inline __attribute__((always_inline)) void read_lines4(const struct line4 *lines,
	const struct flow_key4 key[], struct flow_lookup *lookup, struct words4 *words)
{
	const unsigned n = lookup->n;

	for (unsigned i = 0; i < n; i++) {
		const struct line4 *line = &lines[lookup->line[0][i]];
		const uint32_t state = state_load(&line->state);
		const unsigned slot = slot4(line, &key[i]);
		const uint32_t value = line4_value_load(line, slot);
		const uint32_t kind = line4_kind_load(line, slot);

		words->again[i] = state_load(&line->state);
		words->slot[i] = slot;
		words->value[i] = value;
		words->kind[i] = kind;
		lookup->seen[i] = state;
	}
}

// As line4_action().
static inline __m512i actions(__m512i kind, __m512i value, __m512i state, __m512i slot)
{
	const __m512i four_bits = _mm512_set1_epi32((1 << ACTION_STATE_BITS) - 1);
	const __m512i shift = _mm512_add_epi32(_mm512_slli_epi32(slot, 2),
		_mm512_set1_epi32(STATE_SEQUENCE_BITS));
	const __m512i high = _mm512_and_si512(_mm512_srlv_epi32(state, shift), four_bits);
	const __m512i middle = _mm512_srli_epi32(value, VALUE_FLOW_BITS);
	_Static_assert(ACTION_STATE_BITS == 1 << 2, "slli by 2");

	return _mm512_or_si512(_mm512_srli_epi32(kind, KIND_BITS),
		_mm512_or_si512(_mm512_slli_epi32(middle, ACTION_KEY_BITS),
			_mm512_slli_epi32(high, ACTION_KEY_BITS + ACTION_VALUE_BITS)));
}

static inline void put_together4(struct flow_lookup *lookup, const struct words4 *words,
	unsigned at)
{
	const __m512i slot = _mm512_load_si512(words->slot + at);
	const __m512i value = _mm512_load_si512(words->value + at);
	const __m512i state = _mm512_load_si512(lookup->seen + at);
	const __m512i again = _mm512_load_si512(words->again + at);
	const __mmask16 found = _mm512_cmplt_epu32_mask(slot, _mm512_set1_epi32(LINE4_SLOTS));
	const __m512i flow = _mm512_maskz_and_epi32(found, value, _mm512_set1_epi32(VALUE_FLOW));
	const __mmask16 is_missed = _mm512_testn_epi32_mask(flow, flow);
	const __mmask16 is_unsure = _mm512_cmpneq_epi32_mask(state, again) |
	                            _mm512_test_epi32_mask(state, _mm512_set1_epi32(1));

	_mm512_store_si512(lookup->flow + at, flow);
	_mm512_store_si512(lookup->action + at,
		actions(_mm512_load_si512(words->kind + at), value, state, slot));
	lookup->missed |= (uint64_t)is_missed << at;
	lookup->unsure |= (uint64_t)is_unsure << at;
}

// The two lines of eight hashes.
static inline void store_lines(struct flow_lookup *lookup, unsigned at, __m512i hash, __m512i n)
{
	__m512i first = _mm512_srli_epi64(_mm512_mul_epu32(hash, n), 32);
	__m512i second = _mm512_srli_epi64(_mm512_mul_epu32(_mm512_srli_epi64(hash, 32), n), 32);

	_mm256_store_si256((__m256i *)(lookup->line[0] + at), _mm512_cvtepi64_epi32(first));
	_mm256_store_si256((__m256i *)(lookup->line[1] + at), _mm512_cvtepi64_epi32(second));
}

// Computes the lines of a burst and fetches the first ones, sixteen at a time. Places of no key get
// line 0: hashes beyond `n` are 0.
static inline void begin(const void *lines, uint32_t n_lines, const uint64_t hash[],
	struct flow_lookup *lookup)
{
	const __m512i n = _mm512_set1_epi64(n_lines);

	for (unsigned i = 0; i < lookup->n; i += 16) {
		store_lines(lookup, i, _mm512_load_si512(hash + i), n);
		store_lines(lookup, i + 8, _mm512_load_si512(hash + i + 8), n);
		__m512i line = _mm512_load_si512(lookup->line[0] + i);
		fetch_sixteen(lines, _mm512_slli_epi32(line, 3));
	}
}

// So that all sixteen hashes of the last places are defined.
static inline void clear_rest(uint64_t hash[], unsigned n)
{
	if (n % 16)
		memset(hash + n, 0, (16 - n % 16) * sizeof(*hash));
}

void flow4_begin_avx512(const struct flow_view *view, const struct flow_key4 key[],
	struct flow_lookup *lookup)
{
	uint64_t hash[FLOW_BURST] LINE_ALIGNED;

	view->hash4(view, key, hash, lookup->n);
	clear_rest(hash, lookup->n);
	begin(view->lines4, view->n_lines4, hash, lookup);
}

void flow4_continue_avx512(const struct flow_view *view, const struct flow_key4 key[],
	struct flow_lookup *lookup)
{
	const uint64_t valid = lookup->n < 64 ? ((uint64_t)1 << lookup->n) - 1 : UINT64_MAX;
	struct words4 words;

	read_lines4(view->lines4, key, lookup, &words);
	lookup->missed = lookup->unsure = 0;
	for (unsigned i = 0; i < lookup->n; i += 16)
		put_together4(lookup, &words, i);
	lookup->missed &= valid;
	lookup->unsure &= valid;
	fetch4(view, lookup);
}

void flow4_end_avx512(const struct flow_view *view, const struct flow_key4 key[],
	struct flow_lookup *lookup)
{
	end4(view, key, lookup, probe4);
}

static inline __attribute__((always_inline)) struct probe6 probe6(const struct line6 *line,
	uint16_t tag)
{
	enum { FIRST_TAG = offsetof(struct line6, tag) / sizeof(uint16_t) };
	const uint32_t state = state_load(&line->state);
	const __m512i whole = line_load(line);
	const uint32_t equal = _mm512_cmpeq_epi16_mask(whole, _mm512_set1_epi16(tag));
	const uint32_t match = equal >> FIRST_TAG & ((1 << LINE6_SLOTS) - 1);
	const __m512i slot = _mm512_set1_epi32(__builtin_ctz(match | 1 << LINE6_SLOTS));
	const uint32_t record = _mm512_cvtsi512_si32(_mm512_permutexvar_epi32(slot, whole));

	return (struct probe6){
		.record = match ? record : 0,
		.state = state,
		.is_sure = !(state & 1) & (state_load(&line->state) == state),
	};
}

void flow6_begin_avx512(const struct flow_view *view, const struct flow_key6 key[],
	struct flow_lookup *lookup)
{
	uint64_t hash[FLOW_BURST] LINE_ALIGNED;

	view->hash6(view, key, hash, lookup->n);
	clear_rest(hash, lookup->n);
	begin(view->lines6, view->n_lines6, hash, lookup);
	for (unsigned i = 0; i < lookup->n; i++)
		lookup->tag[i] = hash_tag(hash[i]);
}

void flow6_continue_avx512(const struct flow_view *view, const struct flow_key6 key[],
	struct flow_lookup *lookup)
{
	continue6(view, lookup, probe6);
}

void flow6_end_avx512(const struct flow_view *view, const struct flow_key6 key[],
	struct flow_lookup *lookup)
{
	end6(view, key, lookup, probe6);
}
