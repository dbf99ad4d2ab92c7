// See index.h. Control thread.
#include "qos/index.h"

#include "base/pages.h"

#define FULL_PER_LINE 3.25
enum { LINES_PER_OVER = 2 }; // so many lines at least for one with is_over

struct qos_index *index_create(uint64_t n)
{
	uint64_t n_lines = INDEX_LEAST_LINES;

	while ((double)n > (double)n_lines * FULL_PER_LINE)
		n_lines *= 2;
	const uint64_t n_bytes =
		sizeof(struct qos_index) + CACHE_LINE_BYTES + n_lines * sizeof(struct qos_line);
	struct qos_index *index = pages_alloc(n_bytes);

	if (!index)
		return NULL;
	index->mask = n_lines - 1;
	index->n_bytes = n_bytes;
	return index;
}

void index_free(struct qos_index *index)
{
	if (index)
		pages_free(index, index->n_bytes);
}

bool index_has_space(const struct qos_index *index, uint64_t n)
{
	return (double)n <= (double)(index->mask + 1) * FULL_PER_LINE &&
	       index->n_over * LINES_PER_OVER <= index->mask + 1;
}

// The key first: whoever finds it without a tag goes on.
void index_add(struct qos_index *index, uint64_t key, uint32_t kind, uint32_t value)
{
	uint64_t at = index_hash(key, kind) & index->mask;

	for (;; at = (at + 1) & index->mask) {
		struct qos_line *line = &index->line[at];

		for (unsigned i = 0; i < QOS_LINE_KEYS; i++) {
			if (line->tag[i])
				continue;
			__atomic_store_n(&line->key[i], key, __ATOMIC_RELAXED);
			__atomic_store_n(&line->tag[i], kind << QOS_VALUE_BITS | value,
				__ATOMIC_RELEASE);
			return;
		}
		index->n_over += !line->is_over;
		__atomic_store_n(&line->is_over, 1, __ATOMIC_RELAXED);
	}
}

static uint32_t *find_tag(struct qos_index *index, uint64_t key, uint32_t kind, uint64_t *place)
{
	uint64_t at = index_hash(key, kind) & index->mask;

	for (;; at = (at + 1) & index->mask) {
		struct qos_line *line = &index->line[at];

		for (unsigned i = 0; i < QOS_LINE_KEYS; i++)
			if (line->key[i] == key && line->tag[i] >> QOS_VALUE_BITS == kind) {
				*place = at * QOS_LINE_KEYS + i;
				return &line->tag[i];
			}
	}
}

void index_set(struct qos_index *index, uint64_t key, uint32_t kind, uint32_t value)
{
	uint64_t place;

	__atomic_store_n(find_tag(index, key, kind, &place), kind << QOS_VALUE_BITS | value,
		__ATOMIC_RELEASE); // partner: index_find
}

void index_remove(struct qos_index *index, uint64_t key, uint32_t kind)
{
	uint64_t place;

	*find_tag(index, key, kind, &place) = 0;
}

uint64_t index_withdraw(struct qos_index *index, uint64_t key, uint32_t kind)
{
	uint64_t place;

	__atomic_store_n(find_tag(index, key, kind, &place), (uint32_t)QOS_DEAD << QOS_VALUE_BITS,
		__ATOMIC_RELAXED);
	return place;
}

// The old key goes first, so that nobody takes the next value at this place for its own.
void index_reuse(struct qos_index *index, uint64_t place)
{
	struct qos_line *line = &index->line[place / QOS_LINE_KEYS];

	__atomic_store_n(&line->key[place % QOS_LINE_KEYS], QOS_NO_KEY, __ATOMIC_RELAXED);
	__atomic_store_n(&line->tag[place % QOS_LINE_KEYS], 0, __ATOMIC_RELEASE);
}

void index_copy_line(struct qos_index *to, const struct qos_index *from, uint64_t at)
{
	for (unsigned i = 0; i < QOS_LINE_KEYS; i++) {
		const uint32_t tag = from->line[at].tag[i];

		if (tag && tag >> QOS_VALUE_BITS != QOS_DEAD)
			index_add(to, from->line[at].key[i], tag >> QOS_VALUE_BITS,
				tag & ((1u << QOS_VALUE_BITS) - 1));
	}
}

void index_copy(struct qos_index *to, const struct qos_index *from)
{
	for (uint64_t at = 0; at <= from->mask; at++)
		index_copy_line(to, from, at);
}
