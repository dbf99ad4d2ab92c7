// A hash table from keys of 64 bits and a kind to values, which one thread writes while others
// look up. Private to qos. Control thread, but for index_find.
#pragma once

#include "qos/qos_fast.h"

enum { INDEX_LEAST_LINES = 64 };

static inline uint64_t index_hash(uint64_t key, uint32_t kind)
{
	uint64_t x = key ^ kind * 0x9e3779b97f4a7c15;

	x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
	return x ^ x >> 32;
}

static inline const struct qos_line *index_first(const struct qos_index *index, uint64_t key,
	uint32_t kind)
{
	return &index->line[index_hash(key, kind) & index->mask];
}

// The value; QOS_NONE: there is none. A place may get another key between the two reads of it: the
// key is read again after a tag that fits. Any thread.
static inline uint32_t index_find(const struct qos_index *index, uint64_t key, uint32_t kind)
{
	const uint64_t first = index_hash(key, kind) & index->mask;

	for (uint64_t at = first;;) {
		const struct qos_line *line = &index->line[at];

		for (unsigned i = 0; i < QOS_LINE_KEYS; i++) {
			if (__atomic_load_n(&line->key[i], __ATOMIC_RELAXED) != key)
				continue;
			const uint32_t tag = __atomic_load_n(&line->tag[i], __ATOMIC_ACQUIRE);

			if (tag >> QOS_VALUE_BITS == kind &&
				likely(__atomic_load_n(&line->key[i], __ATOMIC_RELAXED) == key))
				return tag & ((1u << QOS_VALUE_BITS) - 1);
		}
		at = (at + 1) & index->mask;
		if (!__atomic_load_n(&line->is_over, __ATOMIC_RELAXED) || unlikely(at == first))
			return QOS_NONE;
	}
}

// An empty table with space for n entries. NULL: no memory. Owner: caller.
struct qos_index *index_create(uint64_t n);
void index_free(struct qos_index *index);
// Whether n entries, with those that were removed, are few enough for this size, and lookups that
// find nothing still end soon: lines that were once full lead on to the next one for ever. If not,
// all are to be copied to a new table.
bool index_has_space(const struct qos_index *index, uint64_t n);
// Adds a key that is not there, / gives one that is there another value. `kind`: 1 to 254.
void index_add(struct qos_index *index, uint64_t key, uint32_t kind, uint32_t value);
void index_set(struct qos_index *index, uint64_t key, uint32_t kind, uint32_t value);
// Removes a key that is there. Nobody looks up: its place is free at once. / Others do: it is free
// once index_reuse was called for the place returned, after a grace period.
void index_remove(struct qos_index *index, uint64_t key, uint32_t kind);
uint64_t index_withdraw(struct qos_index *index, uint64_t key, uint32_t kind);
void index_reuse(struct qos_index *index, uint64_t place);
// Adds the entries of a line, / all entries to a table that has space for them.
void index_copy_line(struct qos_index *to, const struct qos_index *from, uint64_t at);
void index_copy(struct qos_index *to, const struct qos_index *from);
