// Counters of rules by the names of list and rule, so that a rule keeps its counter when its list
// is built again. Control thread; workers count.
#include "acl/inside.h"

#include "base/pages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_BUCKETS = 64, COUNT_BYTES = ACL_MAX_COUNTERS * sizeof(struct acl_count) };

uint32_t key_hash(const char *key)
{
	uint64_t hash = 0xcbf29ce484222325; // FNV-1a

	for (; *key; key++)
		hash = (hash ^ (uint8_t)*key) * 0x100000001b3;
	return hash ^ hash >> 32;
}

int counters_open(struct counters *counters, unsigned n_workers)
{
	*counters = (struct counters){.n_workers = n_workers};
	counters->free = calloc(ACL_MAX_COUNTERS, sizeof(*counters->free));
	int err = counters->free ? hash_table_init(&counters->by_key, FEW_BUCKETS) : -ENOMEM;

	for (unsigned w = 0; w < n_workers && !err; w++) {
		counters->count[w] = pages_alloc(COUNT_BYTES);
		if (counters->count[w])
			pages_keep_small(counters->count[w], COUNT_BYTES);
		else
			err = -ENOMEM;
	}
	if (err) {
		counters_close(counters);
		return err;
	}
	for (uint32_t i = 0; i < ACL_MAX_COUNTERS; i++) // the lowest ones first
		counters->free[i] = ACL_MAX_COUNTERS - 1 - i;
	counters->n_free = ACL_MAX_COUNTERS;
	return 0;
}

void counters_close(struct counters *counters)
{
	for (unsigned w = 0; w < counters->n_workers; w++)
		if (counters->count[w])
			pages_free(counters->count[w], COUNT_BYTES);
	hash_table_free(&counters->by_key, free);
	free(counters->free);
}

struct counter *counters_get(struct counters *counters, const char *list, const char *rule)
{
	char key[COUNTER_KEY_MAX];

	snprintf(key, sizeof(key), "%s %s", list, rule); // names have no blanks
	const uint32_t hash = key_hash(key);
	struct counter *counter = hash_table_find(&counters->by_key, hash);

	while (counter && strcmp(counter->key, key))
		counter = hash_table_find_next(&counter->node);
	if (counter) {
		counter->n_users++;
		return counter;
	}
	counter = counters->n_free ? calloc(1, sizeof(*counter)) : NULL;
	if (!counter)
		return NULL;
	memcpy(counter->key, key, sizeof(key));
	counter->n_users = 1;
	counter->index = counters->free[--counters->n_free];
	hash_table_insert(&counters->by_key, &counter->node, hash);
	return counter;
}

void counters_put(struct counters *counters, struct counter *counter)
{
	if (!counter || --counter->n_users)
		return;
	for (unsigned w = 0; w < counters->n_workers; w++)
		counters->count[w][counter->index] = (struct acl_count){0};
	counters->free[counters->n_free++] = counter->index;
	hash_table_remove(&counters->by_key, &counter->node);
	free(counter);
}
