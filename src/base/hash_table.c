// A hash table with chaining whose entries embed their nodes.
#include "base/hash_table.h"

#include <errno.h>
#include <stdlib.h>

int hash_table_init(struct hash_table *table, uint32_t n_buckets)
{
	*table = (struct hash_table){.bucket = calloc(n_buckets, sizeof(struct hash_node *))};
	if (!table->bucket)
		return -ENOMEM;
	table->n_buckets = n_buckets;
	return 0;
}

void hash_table_free(struct hash_table *table, void (*free_entry)(void *entry))
{
	uint32_t left = table->n; // most buckets may be untouched memory

	for (uint32_t i = 0; left; i++)
		for (struct hash_node *node = table->bucket[i], *next; node; node = next, left--) {
			next = node->next;
			free_entry(node);
		}
	free(table->bucket);
	*table = (struct hash_table){0};
}

static struct hash_node **bucket_of(const struct hash_table *table, uint32_t hash)
{
	return &table->bucket[hash & (table->n_buckets - 1)];
}

static void put(struct hash_table *table, struct hash_node *node)
{
	struct hash_node **first = bucket_of(table, node->hash);

	node->next = *first;
	*first = node;
}

static void grow(struct hash_table *table)
{
	struct hash_table old = *table;
	struct hash_node **bucket = calloc(2ul * old.n_buckets, sizeof(struct hash_node *));

	if (!bucket)
		return;
	table->bucket = bucket;
	table->n_buckets = 2 * old.n_buckets;
	for (uint32_t i = 0; i < old.n_buckets; i++)
		for (struct hash_node *node = old.bucket[i], *next; node; node = next) {
			next = node->next;
			put(table, node);
		}
	free(old.bucket);
}

void hash_table_insert(struct hash_table *table, struct hash_node *node, uint32_t hash)
{
	if (table->n >= table->n_buckets && table->n_buckets <= UINT32_MAX / 2)
		grow(table);
	node->hash = hash;
	put(table, node);
	table->n++;
}

void hash_table_remove(struct hash_table *table, const struct hash_node *node)
{
	struct hash_node **at = bucket_of(table, node->hash);

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	table->n--;
}

void *hash_table_next(const struct hash_table *table, const struct hash_node *after)
{
	uint32_t i = 0;

	if (after && after->next)
		return after->next;
	if (after)
		i = (after->hash & (table->n_buckets - 1)) + 1;
	while (i < table->n_buckets && !table->bucket[i])
		i++;
	return i < table->n_buckets ? table->bucket[i] : NULL;
}
