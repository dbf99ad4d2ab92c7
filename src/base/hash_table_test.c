// Entries by hash, with and without memory for more buckets. The tests replace calloc.
#include "base/hash_table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

#include <cmocka.h>

enum { FIRST_BUCKETS = 4, MANY = 1000 };

struct entry {
	struct hash_node node;
	uint32_t key;
	unsigned n_found;
};

static bool is_out_of_memory;
static unsigned n_freed;

void *__real_calloc(size_t n, size_t each);
void *__wrap_calloc(size_t n, size_t each);
void *__wrap_calloc(size_t n, size_t each)
{
	return is_out_of_memory ? NULL : __real_calloc(n, each);
}

static void count_entry(void *entry)
{
	n_freed++;
}

static struct entry *find(const struct hash_table *table, uint32_t hash, uint32_t key)
{
	struct entry *entry = hash_table_find(table, hash);

	while (entry && entry->key != key)
		entry = hash_table_find_next(&entry->node);
	return entry;
}

static uint32_t own_hash(uint32_t key)
{
	return key;
}

static uint32_t half_as_many_hashes(uint32_t key)
{
	return key / 2 * 0x9e3779b1u;
}

static uint32_t same_bucket(uint32_t key)
{
	return key << 20;
}

static uint32_t same_hash(uint32_t key)
{
	return 5;
}

static uint32_t (*const hashes[])(
	uint32_t key) = {own_hash, half_as_many_hashes, same_bucket, same_hash};

static void fill(struct hash_table *table, struct entry *entry, uint32_t (*hash)(uint32_t key))
{
	for (uint32_t i = 0; i < MANY; i++) {
		entry[i] = (struct entry){.key = i};
		hash_table_insert(table, &entry[i].node, hash(i));
	}
	assert_int_equal(table->n, MANY);
}

// That exactly the entries whose key divides by `step` are missing.
static void check(const struct hash_table *table, struct entry *entry,
	uint32_t (*hash)(uint32_t key), uint32_t step)
{
	for (uint32_t i = 0; i < MANY; i++) {
		assert_ptr_equal(find(table, hash(i), i), i % step ? &entry[i] : NULL);
		entry[i].n_found = 0;
	}
	for (struct entry *at = NULL; (at = hash_table_next(table, at ? &at->node : NULL));)
		at->n_found++;
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(entry[i].n_found, i % step ? 1 : 0);
}

static void fill_and_remove(uint32_t (*hash)(uint32_t key), uint32_t n_buckets)
{
	static struct entry entry[MANY];
	struct hash_table table;

	assert_int_equal(hash_table_init(&table, FIRST_BUCKETS), 0);
	is_out_of_memory = n_buckets == FIRST_BUCKETS;
	fill(&table, entry, hash);
	is_out_of_memory = false;
	assert_int_equal(table.n_buckets, n_buckets);
	hash_table_remove(&table, &entry[0].node);
	check(&table, entry, hash, MANY);
	for (uint32_t i = 3; i < MANY; i += 3)
		hash_table_remove(&table, &entry[i].node);
	check(&table, entry, hash, 3);
	assert_int_equal(table.n, MANY - (MANY + 2) / 3);
	n_freed = 0;
	hash_table_free(&table, count_entry);
	assert_int_equal(n_freed, MANY - (MANY + 2) / 3);
}

static void finds_what_was_inserted_and_not_removed(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(hashes); i++)
		fill_and_remove(hashes[i], 1024);
}

static void works_without_memory_for_more_buckets(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(hashes); i++)
		fill_and_remove(hashes[i], FIRST_BUCKETS);
}

static void grows_as_soon_as_there_is_memory_again(void **state)
{
	static struct entry entry[MANY];
	struct entry last = {.key = MANY};
	struct hash_table table;

	assert_int_equal(hash_table_init(&table, FIRST_BUCKETS), 0);
	is_out_of_memory = true;
	fill(&table, entry, own_hash);
	is_out_of_memory = false;
	hash_table_insert(&table, &last.node, MANY);
	assert_int_equal(table.n_buckets, 2 * FIRST_BUCKETS);
	assert_ptr_equal(find(&table, MANY, MANY), &last);
	hash_table_remove(&table, &last.node);
	hash_table_remove(&table, &entry[0].node);
	check(&table, entry, own_hash, MANY);
	hash_table_free(&table, count_entry);
}

static void tells_hashes_of_one_bucket_apart(void **state)
{
	struct entry low = {.key = 1}, high = {.key = 2}, again = {.key = 3};
	struct hash_table table;

	assert_int_equal(hash_table_init(&table, FIRST_BUCKETS), 0);
	hash_table_insert(&table, &low.node, 1);
	hash_table_insert(&table, &high.node, 1 + FIRST_BUCKETS);
	hash_table_insert(&table, &again.node, 1);
	assert_ptr_equal(hash_table_find(&table, 1), &again);
	assert_ptr_equal(hash_table_find_next(&again.node), &low);
	assert_null(hash_table_find_next(&low.node));
	assert_ptr_equal(hash_table_find(&table, 1 + FIRST_BUCKETS), &high);
	assert_null(hash_table_find_next(&high.node));
	assert_null(hash_table_find(&table, 1 + 2 * FIRST_BUCKETS));
	hash_table_free(&table, count_entry);
}

static void entries_may_be_removed_during_an_iteration(void **state)
{
	static struct entry entry[MANY];
	struct hash_table table;

	assert_int_equal(hash_table_init(&table, FIRST_BUCKETS), 0);
	fill(&table, entry, half_as_many_hashes);
	for (struct entry *at = hash_table_next(&table, NULL), *next; at; at = next) {
		next = hash_table_next(&table, &at->node);
		if (at->key % 3 == 0)
			hash_table_remove(&table, &at->node);
	}
	check(&table, entry, half_as_many_hashes, 3);
	hash_table_free(&table, count_entry);
}

static void is_empty_without_memory_for_the_first_buckets(void **state)
{
	struct hash_table table;

	n_freed = 0;
	is_out_of_memory = true;
	assert_int_equal(hash_table_init(&table, FIRST_BUCKETS), -ENOMEM);
	is_out_of_memory = false;
	assert_null(hash_table_next(&table, NULL));
	hash_table_free(&table, count_entry);
	assert_int_equal(n_freed, 0);
}

static void frees_its_entries(void **state)
{
	struct hash_table table;

	assert_int_equal(hash_table_init(&table, FIRST_BUCKETS), 0);
	for (uint32_t i = 0; i < 100; i++) {
		struct entry *entry = malloc(sizeof(*entry));

		assert_non_null(entry);
		hash_table_insert(&table, &entry->node, i / 2);
	}
	hash_table_free(&table, free); // the address sanitiser finds what is left
	assert_null(hash_table_next(&table, NULL));
}

// The longest chain of 1024 keys that differ in two bytes, in as many buckets.
static unsigned longest_chain(const uint8_t prefix[2], unsigned high, unsigned low)
{
	unsigned n_in[1024] = {0}, longest = 0;
	uint8_t key[16] = {prefix[0], prefix[1]};

	for (unsigned i = 0; i < 1024; i++) {
		key[high] = i >> 8;
		key[low] = i;
		unsigned n = ++n_in[hash_table_hash(key, 3) & 1023];
		longest = MAX_OF(longest, n);
	}
	return longest;
}

static void spreads_addresses_over_the_buckets(void **state)
{
	static const uint8_t ip4[] = {10, 0}, ip6[] = {0x20, 0x01};

	assert_in_range(longest_chain(ip4, 2, 3), 1, 10);
	for (unsigned low = 3; low < 16; low++)
		assert_in_range(longest_chain(ip6, low - 1, low), 1, 10);
}

static void hashes_each_bit_of_key_and_number(void **state)
{
	uint8_t key[16] = {10, 0, 0, 0};
	uint32_t hash = hash_table_hash(key, 0);

	for (unsigned bit = 0; bit < 128; bit++) {
		key[bit / 8] ^= 1 << bit % 8;
		assert_int_not_equal(hash_table_hash(key, 0), hash);
		key[bit / 8] ^= 1 << bit % 8;
	}
	for (unsigned bit = 0; bit < 32; bit++)
		assert_int_not_equal(hash_table_hash(key, 1u << bit), hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_was_inserted_and_not_removed),
		cmocka_unit_test(works_without_memory_for_more_buckets),
		cmocka_unit_test(grows_as_soon_as_there_is_memory_again),
		cmocka_unit_test(tells_hashes_of_one_bucket_apart),
		cmocka_unit_test(entries_may_be_removed_during_an_iteration),
		cmocka_unit_test(is_empty_without_memory_for_the_first_buckets),
		cmocka_unit_test(frees_its_entries),
		cmocka_unit_test(spreads_addresses_over_the_buckets),
		cmocka_unit_test(hashes_each_bit_of_key_and_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
