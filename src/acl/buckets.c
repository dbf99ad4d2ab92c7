// Buckets of policers by the names of list and rule, or by a name that several rules give, so that
// the tokens of a rule outlive its list. Control thread; workers take tokens.
#include "acl/inside.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_BUCKETS = 64 };

int buckets_open(struct buckets *buckets, uint64_t hz)
{
	*buckets = (struct buckets){.hz = hz ? hz : rte_get_tsc_hz()};
	return hash_table_init(&buckets->by_key, FEW_BUCKETS);
}

// Lists have put all of them back.
void buckets_close(struct buckets *buckets)
{
	hash_table_free(&buckets->by_key, free);
}

static struct police_rate rate_of(const struct buckets *buckets, const struct acl_police *police)
{
	return (struct police_rate){
		.bits = police->packets ? 8 * police->rate : police->rate,
		.burst = police->burst,
		.hz = buckets->hz,
	};
}

static struct bucket *make_bucket(struct buckets *buckets, const char *key, uint32_t hash,
	const struct acl_police *police)
{
	struct bucket *bucket = aligned_alloc(_Alignof(struct bucket), sizeof(*bucket));
	const struct police_rate rate = rate_of(buckets, police);

	if (!bucket)
		return NULL;
	*bucket = (struct bucket){.n_users = 1};
	snprintf(bucket->key, sizeof(bucket->key), "%s", key);
	police_start(&bucket->police, &rate, rte_rdtsc());
	hash_table_insert(&buckets->by_key, &bucket->node, hash);
	return bucket;
}

struct bucket *buckets_get(struct buckets *buckets, const struct acl_source *source, size_t rule)
{
	const struct acl_police *police = &source->rule[rule].police;
	char key[COUNTER_KEY_MAX], name[ACL_NAME_MAX];

	if (police->bucket[0])
		snprintf(key, sizeof(key), "%s", police->bucket);
	else // names have no blanks
		snprintf(key, sizeof(key), "%s %s", source->name, rule_name(source, rule, name));
	const uint32_t hash = key_hash(key);
	struct bucket *bucket = hash_table_find(&buckets->by_key, hash);

	while (bucket && strcmp(bucket->key, key))
		bucket = hash_table_find_next(&bucket->node);
	if (!bucket)
		return make_bucket(buckets, key, hash, police);
	bucket->n_users++;
	return bucket;
}

void buckets_set(struct buckets *buckets, struct bucket *bucket, const struct acl_police *police)
{
	const struct police_rate rate = rate_of(buckets, police);

	if (bucket->changed == buckets->n_commits)
		return;
	bucket->changed = buckets->n_commits;
	police_change(&bucket->police, &rate, rte_rdtsc());
}

void buckets_put(struct buckets *buckets, struct bucket *bucket)
{
	if (!bucket || --bucket->n_users)
		return;
	hash_table_remove(&buckets->by_key, &bucket->node);
	free(bucket);
}
