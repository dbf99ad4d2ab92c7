// A hash table with chaining that allocates nothing per entry: each entry embeds its node. The
// caller computes hashes and compares keys. No locks: one thread at a time.
#pragma once

#include "base/bits.h"

#include <stddef.h>
#include <stdint.h>

// Must be the first member of an entry: functions that return an entry return its address.
struct hash_node {
	struct hash_node *next; // next in the bucket
	uint32_t hash;
};

struct hash_table {
	struct hash_node **bucket; // indexed by the low bits of the hash
	uint32_t n_buckets, n;     // n_buckets: a power of two
};

// n_buckets: a power of two. 0, or -ENOMEM: the table is empty and may only be freed.
int hash_table_init(struct hash_table *table, uint32_t n_buckets);
// Also frees the entries, each with `free_entry`. A table of zeros may be freed, too.
void hash_table_free(struct hash_table *table, void (*free_entry)(void *entry));

// Doubles the number of buckets if there are as many entries; without memory for that, the table
// gets slower. Entries may have equal hashes; the one inserted last is found first, until the table
// grows. Owner: caller, until hash_table_free.
void hash_table_insert(struct hash_table *table, struct hash_node *node, uint32_t hash);
// `node` must be in the table.
void hash_table_remove(struct hash_table *table, const struct hash_node *node);

// Iterates over all entries in no particular order. Pass NULL to start; returns NULL at the end.
// Nothing may be inserted meanwhile, and an entry may be removed once the next one is known.
void *hash_table_next(const struct hash_table *table, const struct hash_node *after);

// Of the nodes of a chain, the first with this hash.
static inline void *hash_node_find(struct hash_node *node, uint32_t hash)
{
	while (node && node->hash != hash)
		node = node->next;
	return node;
}

// The first entry with this hash, NULL: none. / The next one with the same hash.
static inline void *hash_table_find(const struct hash_table *table, uint32_t hash)
{
	return hash_node_find(table->bucket[hash & (table->n_buckets - 1)], hash);
}

static inline void *hash_table_find_next(const struct hash_node *node)
{
	return hash_node_find(node->next, node->hash);
}

// The hash of 16 bytes, such as an IPv6 address, and a number.
static inline uint32_t hash_table_hash(const uint8_t key[16], uint32_t number)
{
	unsigned __int128 product = (unsigned __int128)(load64(key) ^ number ^ 0x9e3779b97f4a7c15) *
	                            (load64(key + 8) ^ 0xbf58476d1ce4e5b9);
	uint64_t folded = (uint64_t)product ^ (uint64_t)(product >> 64);

	return (uint32_t)(folded ^ folded >> 32);
}
