// The hash, sixteen keys at a time. Any thread.
#include "flow/hash.h"

#include <immintrin.h>

enum { AT_ONCE = 16, VECTORS = AT_ONCE / 4 };

struct round_keys {
	__m512i key[1 + FLOW_HASH_ROUNDS];
};

static inline struct round_keys round_keys_of(const struct flow_secret *secret)
{
	struct round_keys keys;

	for (unsigned i = 0; i <= FLOW_HASH_ROUNDS; i++)
		keys.key[i] =
			_mm512_broadcast_i32x4(_mm_load_si128((const __m128i *)secret->round[i]));
	return keys;
}

static inline __attribute__((always_inline)) void encrypt(const struct round_keys *keys,
	__m512i state[VECTORS])
{
	for (unsigned round = 1; round <= FLOW_HASH_ROUNDS; round++)
		for (unsigned i = 0; i < VECTORS; i++)
			state[i] = _mm512_aesenc_epi128(state[i], keys->key[round]);
}

// The lower half of each 16-byte block.
static inline __attribute__((always_inline)) void store_hashes(uint64_t hash[AT_ONCE],
	const __m512i state[VECTORS])
{
	for (unsigned i = 0; i < VECTORS; i += 2) {
		const __m512i low = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
		_mm512_storeu_si512(hash + 4 * i,
			_mm512_permutex2var_epi64(state[i], low, state[i + 1]));
	}
}

void hash4_vaes(const struct flow_view *view, const struct flow_key4 key[], uint64_t hash[],
	unsigned n)
{
	const struct round_keys keys = round_keys_of(&view->secret);
	unsigned at = 0;

	for (; at + AT_ONCE <= n; at += AT_ONCE) {
		__m512i state[VECTORS];
		for (unsigned i = 0; i < VECTORS; i++)
			state[i] =
				_mm512_xor_si512(_mm512_loadu_si512(&key[at + 4 * i]), keys.key[0]);
		encrypt(&keys, state);
		store_hashes(hash + at, state);
	}
	if (at < n)
		hash4_aes(view, key + at, hash + at, n - at);
}

// One 16-byte block of each of four keys.
static inline __m512i four_blocks(const struct flow_key6 key[], unsigned block)
{
	const uint8_t *from = (const uint8_t *)key + 16 * block;
	const size_t each = sizeof(*key);
	__m512i four = _mm512_castsi128_si512(_mm_loadu_si128((const void *)from));

	four = _mm512_inserti32x4(four, _mm_loadu_si128((const void *)(from + each)), 1);
	four = _mm512_inserti32x4(four, _mm_loadu_si128((const void *)(from + 2 * each)), 2);
	return _mm512_inserti32x4(four, _mm_loadu_si128((const void *)(from + 3 * each)), 3);
}

// The last eight bytes of each.
static inline __m512i four_ends(const struct flow_key6 key[])
{
	const uint8_t *from = (const uint8_t *)key + 32;
	const size_t each = sizeof(*key);

	return _mm512_set_epi64(0, load64(from + 3 * each), 0, load64(from + 2 * each), 0,
		load64(from + each), 0, load64(from));
}

void hash6_vaes(const struct flow_view *view, const struct flow_key6 key[], uint64_t hash[],
	unsigned n)
{
	const struct round_keys keys = round_keys_of(&view->secret);
	unsigned at = 0;

	for (; at + AT_ONCE <= n; at += AT_ONCE) {
		__m512i state[VECTORS];
		for (unsigned i = 0; i < VECTORS; i++)
			state[i] = _mm512_xor_si512(four_blocks(key + at + 4 * i, 0), keys.key[0]);
		encrypt(&keys, state);
		for (unsigned i = 0; i < VECTORS; i++)
			state[i] = _mm512_xor_si512(four_blocks(key + at + 4 * i, 1), state[i]);
		encrypt(&keys, state);
		for (unsigned i = 0; i < VECTORS; i++)
			state[i] = _mm512_xor_si512(four_ends(key + at + 4 * i), state[i]);
		encrypt(&keys, state);
		store_hashes(hash + at, state);
	}
	if (at < n)
		hash6_aes(view, key + at, hash + at, n - at);
}
