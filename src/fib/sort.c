// Radix sort, least significant byte first, skipping bytes in which all edits agree; insertion sort
// for short lists. Control thread.
#include "fib/publish.h"

#include <string.h>

enum { N_DIGITS = 19, INSERTION_MAX = 32 };

// Digit 0 is the length, 1 to 16 the key from its last byte on, 17 and 18 the tree.
static inline unsigned digit_of(const struct edit *edit, unsigned digit)
{
	if (digit == 0)
		return edit->len;
	if (digit >= 17)
		return edit->tree >> (8 * digit - 136) & 255;
	return (digit <= 8 ? edit->key.low >> (8 * digit - 8)
			   : edit->key.high >> (8 * digit - 72)) &
	       255;
}

static bool comes_before(const struct edit *a, const struct edit *b)
{
	if (a->tree != b->tree)
		return a->tree < b->tree;
	if (a->key.high != b->key.high)
		return a->key.high < b->key.high;
	if (a->key.low != b->key.low)
		return a->key.low < b->key.low;
	return a->len < b->len;
}

static void sort_short(struct edit *edits, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct edit edit = edits[i];
		size_t at = i;
		for (; at && comes_before(&edit, &edits[at - 1]); at--)
			edits[at] = edits[at - 1];
		edits[at] = edit;
	}
}

struct sorting {
	struct edit *from, *to;
	size_t n;
	size_t counts[N_DIGITS][256];
};

static void count(struct sorting *sorting)
{
	memset(sorting->counts, 0, sizeof(sorting->counts));
	for (size_t i = 0; i < sorting->n; i++)
		for (unsigned digit = 0; digit < N_DIGITS; digit++)
			sorting->counts[digit][digit_of(&sorting->from[i], digit)]++;
}

static void spread(struct sorting *sorting, unsigned digit)
{
	size_t place[256], sum = 0;

	for (unsigned value = 0; value < 256; value++) {
		place[value] = sum;
		sum += sorting->counts[digit][value];
	}
	for (size_t i = 0; i < sorting->n; i++)
		sorting->to[place[digit_of(&sorting->from[i], digit)]++] = sorting->from[i];
	struct edit *swap = sorting->from;
	sorting->from = sorting->to;
	sorting->to = swap;
}

struct edit *sort_edits(struct edit *edits, struct edit *other, size_t n)
{
	struct sorting sorting = {.from = edits, .to = other, .n = n};

	if (n <= INSERTION_MAX) {
		sort_short(edits, n);
		return edits;
	}
	count(&sorting);
	for (unsigned digit = 0; digit < N_DIGITS; digit++)
		if (sorting.counts[digit][digit_of(sorting.from, digit)] != n)
			spread(&sorting, digit);
	return sorting.from;
}
