// Time buckets: made coarser during a run, readable at any time.
#include "gen/timeline.h"

enum { FINEST_SHIFT = 11 }; // less than a microsecond

void timeline_begin(struct timeline *t, uint64_t start, uint64_t cycles)
{
	uint64_t shift = FINEST_SHIFT;

	// The first bucket may start before `start`.
	while (cycles >> shift >= TIMELINE_BUCKETS - 1 && shift < TIMELINE_MOST_SHIFT)
		shift++;
	__atomic_store_n(&t->shift, shift, __ATOMIC_RELAXED);
	__atomic_store_n(&t->first, start >> shift, __ATOMIC_RELAXED);
	__atomic_store_n(&t->start, start, __ATOMIC_RELAXED);
}

// Merges pairs of buckets. Uses release stores, so that a reader that sees any of them detects the
// fold.
static void fold(struct timeline *t)
{
	uint64_t old_first = t->first, first = old_first >> 1;

	__atomic_store_n(&t->n_folds, t->n_folds + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&t->shift, t->shift + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&t->first, first, __ATOMIC_RELEASE);
	for (uint64_t i = 0; i < TIMELINE_BUCKETS; i++) {
		uint64_t n = t->count[i], place = ((old_first + i) >> 1) - first;

		__atomic_store_n(&t->count[i], 0, __ATOMIC_RELEASE);
		__atomic_store_n(&t->count[place], t->count[place] + n, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&t->n_folds, t->n_folds + 1, __ATOMIC_RELEASE);
}

static uint64_t find_place(struct timeline *t, uint64_t due)
{
	if (due < t->start)
		return 0;
	while ((due >> t->shift) - t->first >= TIMELINE_BUCKETS && t->shift < TIMELINE_MOST_SHIFT)
		fold(t);
	return MIN_OF((due >> t->shift) - t->first, (uint64_t)TIMELINE_BUCKETS - 1);
}

__attribute__((noinline)) void timeline_add_each(struct timeline *t, const uint64_t due[],
	unsigned n, uint64_t now)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t whole = now + ((int64_t)((due[i] - now) << 24) >> 24);
		uint64_t *count = &t->count[find_place(t, whole)];

		__atomic_store_n(count, *count + 1, __ATOMIC_RELAXED);
	}
}

static uint64_t copy(const struct timeline *t, struct timeline *out)
{
	out->n_folds = __atomic_load_n(&t->n_folds, __ATOMIC_ACQUIRE);
	out->shift = __atomic_load_n(&t->shift, __ATOMIC_ACQUIRE);
	out->first = __atomic_load_n(&t->first, __ATOMIC_ACQUIRE);
	out->start = __atomic_load_n(&t->start, __ATOMIC_ACQUIRE);
	for (unsigned i = 0; i < TIMELINE_BUCKETS; i++)
		out->count[i] = __atomic_load_n(&t->count[i], __ATOMIC_ACQUIRE);
	return __atomic_load_n(&t->n_folds, __ATOMIC_ACQUIRE);
}

void timeline_read(const struct timeline *t, struct timeline *out)
{
	while (copy(t, out) != out->n_folds || out->n_folds % 2)
		;
}

void timeline_match(struct timeline *a, struct timeline *b)
{
	while (a->shift < b->shift)
		fold(a);
	while (b->shift < a->shift)
		fold(b);
}

void timeline_merge(struct timeline *sum, struct timeline *other)
{
	timeline_match(sum, other);
	for (unsigned i = 0; i < TIMELINE_BUCKETS; i++)
		sum->count[i] += other->count[i];
}

unsigned timeline_length(const struct timeline *t)
{
	unsigned n = TIMELINE_BUCKETS;

	while (n && !t->count[n - 1])
		n--;
	return n;
}
