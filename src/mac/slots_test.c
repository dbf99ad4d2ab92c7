// The table of addresses against a plain map, in tables that are nearly full, so that addresses
// collide and entries move; and its size.
#include "mac/testing.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { N_KEYS = 200, N_CHANGES = 5000, N_MANY = 50000 };
#else
enum { N_KEYS = 200, N_CHANGES = 60000, N_MANY = MAC_MAX };
#endif

static struct mac_slots *slots_of(uint32_t n_buckets)
{
	const uint64_t secret[4] = {testing_random(), testing_random() | 1, testing_random(),
		testing_random() | 1};
	struct mac_slots *slots = macs_alloc(0, secret);

	assert_non_null(slots);
	assert_true(n_buckets <= slots->n_buckets);
	slots->n_buckets = n_buckets;
	return slots;
}

static void close_slots(struct mac_slots *slots)
{
	slots->n_buckets = slots->n_buckets < 16 ? 16 : slots->n_buckets; // the memory it has
	macs_free(slots);
}

// The model: by number of the address, its port, or 0.
struct model {
	uint16_t port[N_KEYS];
	unsigned n;
};

static void expect_all(const struct mac_slots *slots, const struct model *model)
{
	struct mac_found found[MAC_BURST];
	uint64_t key[MAC_BURST];

	for (unsigned from = 0; from < N_KEYS; from += MAC_BURST) {
		const unsigned n = MIN_OF(N_KEYS - from, (unsigned)MAC_BURST);

		for (unsigned i = 0; i < n; i++)
			key[i] = testing_key(1 + (from + i) % 3, from + i);
		mac_lookup(slots, key, n, found);
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(!found[i].slot, !model->port[from + i]);
			if (found[i].slot)
				assert_int_equal(found[i].port, model->port[from + i]);
		}
	}
}

static void change(struct mac_slots *slots, struct model *model, unsigned *n_refused)
{
	const unsigned number = testing_random() % N_KEYS;
	struct mac_slot value = {.key = testing_key(1 + number % 3, number),
		.port = 1 + testing_random() % 250};
	struct mac_slot *slot = macs_find(slots, value.key);

	assert_int_equal(!slot, !model->port[number]);
	if (!slot && macs_add(slots, &value)) {
		model->port[number] = value.port;
		model->n++;
	} else if (!slot) {
		++*n_refused;
	} else if (testing_random() % 2) {
		macs_set(slot, &value);
		model->port[number] = value.port;
	} else {
		macs_clear(slot);
		model->port[number] = 0;
		model->n--;
	}
}

static unsigned count_used(const struct mac_slots *slots)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < macs_n_places(slots); i++)
		n += macs_at(slots, i)->key != 0;
	return n;
}

static void random_changes_leave_what_a_map_has(void **state)
{
	static const uint32_t n_buckets[] = {1, 2, 3, 8, 16};

	for (unsigned i = 0; i < ARRAY_LEN(n_buckets); i++) {
		struct mac_slots *slots = slots_of(n_buckets[i]);
		struct model model = {.n = 0};
		unsigned n_refused = 0;

		for (unsigned k = 0; k < N_CHANGES; k++) {
			change(slots, &model, &n_refused);
			if (k % 64 == 0)
				expect_all(slots, &model);
		}
		expect_all(slots, &model);
		assert_int_equal(count_used(slots), model.n);
		assert_true(n_refused > 0);                               // it was full
		assert_true(slots->n_buckets == 1 || slots->version > 0); // entries moved
		close_slots(slots);
	}
}

static void a_table_is_full_only_when_nearly_all_slots_are_used(void **state)
{
	struct mac_slots *slots = slots_of(16);
	unsigned n = 0;

	while (n < 64 && macs_add(slots, &(struct mac_slot){.key = testing_key(1, n), .port = 1}))
		n++;
	assert_true(n > 64 * 8 / 10);
	close_slots(slots);
}

static void a_million_addresses_fit_into_32_mib(void **state)
{
	const uint64_t secret[4] = {testing_random(), testing_random() | 1, testing_random(),
		testing_random() | 1};
	struct mac_slots *slots = macs_alloc(N_MANY, secret);

	assert_true(mac_bytes(MAC_MAX) <= 32 << 20);
	assert_true(mac_bytes(4096) <= 128 << 10);
	assert_non_null(slots);
	for (unsigned i = 0; i < N_MANY; i++)
		assert_true(macs_add(slots,
			&(struct mac_slot){.key = testing_key(1, i), .port = i % 251}));
	for (unsigned i = 0; i < N_MANY; i++)
		assert_int_equal(macs_find(slots, testing_key(1, i))->port, i % 251);
	assert_null(macs_find(slots, testing_key(1, N_MANY)));
	assert_null(macs_find(slots, testing_key(2, 0)));
	macs_free(slots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_changes_leave_what_a_map_has),
		cmocka_unit_test(a_table_is_full_only_when_nearly_all_slots_are_used),
		cmocka_unit_test(a_million_addresses_fit_into_32_mib),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
