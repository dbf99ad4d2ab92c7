// The filter of our own addresses: a counting Bloom filter, so that addresses can be removed.
// Control thread; workers read it concurrently.
#include "fib/sources.h"

enum { HOST = 32, LOOPBACK = 127, WORDS_AT_ONCE = sizeof(word16) / sizeof(uint32_t) };

static uint32_t word_of(const struct sources *sources, unsigned number)
{
	uint32_t word = 0;

	if (sources->n_broad)
		return UINT32_MAX;
	for (unsigned bit = 0; bit < 32; bit++)
		word |= (uint32_t)(sources->n_by_bit[32 * number + bit] > 0) << bit;
	return word;
}

// Publishes the aligned part that contains a word.
static void show_part(struct sources *sources, unsigned number)
{
	const unsigned first = number - number % WORDS_AT_ONCE;
	uint32_t words[WORDS_AT_ONCE];
	word16 part;

	for (unsigned i = 0; i < WORDS_AT_ONCE; i++)
		words[i] = word_of(sources, first + i);
	memcpy(&part, words, sizeof(part));
	word16_store(&sources->shown.word[first], part);
}

static void count_host(struct sources *sources, uint32_t addr, int by)
{
	const struct fib_source_place place = fib_source_place(addr);
	uint32_t *n_by_bit = &sources->n_by_bit[32 * place.word];

	n_by_bit[place.first] += by;
	n_by_bit[place.second] += by;
	show_part(sources, place.word);
}

static void count_broad(struct sources *sources, int by)
{
	sources->n_broad += by;
	for (unsigned i = 0; i < FIB_SOURCE_WORDS; i += WORDS_AT_ONCE)
		show_part(sources, i);
}

static void count(struct sources *sources, const struct rib_prefix *prefix, int by)
{
	const uint32_t addr = prefix->key.high >> 32;

	if (!rib_tree_is4(prefix->tree) || addr >> 24 == LOOPBACK)
		return;
	if (prefix->len == HOST)
		count_host(sources, addr, by);
	else
		count_broad(sources, by);
}

void sources_add(struct sources *sources, const struct rib_prefix *prefix)
{
	count(sources, prefix, 1);
}

void sources_remove(struct sources *sources, const struct rib_prefix *prefix)
{
	count(sources, prefix, -1);
}
