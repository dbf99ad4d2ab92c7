// The hash with AES instructions. Any thread.
#include "flow/hash.h"

#include <immintrin.h>

struct round_keys {
	__m128i key[1 + FLOW_HASH_ROUNDS];
};

static inline struct round_keys round_keys_of(const struct flow_secret *secret)
{
	struct round_keys keys;

	memcpy(&keys, secret->round, sizeof(keys));
	return keys;
}

static inline __m128i encrypt(const struct round_keys *keys, __m128i state)
{
	for (unsigned i = 1; i <= FLOW_HASH_ROUNDS; i++)
		state = _mm_aesenc_si128(state, keys->key[i]);
	return state;
}

void hash4_aes(const struct flow_view *view, const struct flow_key4 key[], uint64_t hash[],
	unsigned n)
{
	const struct round_keys keys = round_keys_of(&view->secret);

	for (unsigned i = 0; i < n; i++) {
		__m128i block = _mm_load_si128((const __m128i *)&key[i]);
		hash[i] = _mm_cvtsi128_si64(encrypt(&keys, _mm_xor_si128(block, keys.key[0])));
	}
}

void hash6_aes(const struct flow_view *view, const struct flow_key6 key[], uint64_t hash[],
	unsigned n)
{
	const struct round_keys keys = round_keys_of(&view->secret);

	for (unsigned i = 0; i < n; i++) {
		const uint8_t *from = (const uint8_t *)&key[i];
		__m128i state = keys.key[0];

		state = encrypt(&keys, _mm_xor_si128(state, _mm_loadu_si128((const void *)from)));
		state = encrypt(&keys,
			_mm_xor_si128(state, _mm_loadu_si128((const void *)(from + 16))));
		state = encrypt(&keys,
			_mm_xor_si128(state, _mm_loadl_epi64((const void *)(from + 32))));
		hash[i] = _mm_cvtsi128_si64(state);
	}
}
