// Workers look addresses up and mark them while the control thread changes a nearly full table, in
// which entries move all the time (for ThreadSanitizer). Addresses that stay are always found.
#include "mac/testing.h"

#include <pthread.h>

// STAY: addresses that stay where they are; COME: come and go. The buckets hold few more.
enum { STAY = 40, COME = 40, BUCKETS = 15, WORKERS = 2 };
#ifdef __SANITIZE_THREAD__
enum { N_CHANGES = 20000, LOOKUPS = 1000 };
#else
enum { N_CHANGES = 400000, LOOKUPS = 20000 };
#endif

struct watch {
	const struct mac_slots *slots;
	const int *stop;
	uint64_t n_lookups, n_missing, n_wrong;
};

static uint16_t port_of(unsigned number)
{
	return 1 + number % 200;
}

static void look_up(struct watch *watch, unsigned from, unsigned n)
{
	struct mac_found found[MAC_BURST];
	uint64_t key[MAC_BURST];

	for (unsigned i = 0; i < n; i++)
		key[i] = testing_key(1, from + i);
	mac_lookup(watch->slots, key, n, found);
	for (unsigned i = 0; i < n; i++) {
		if (!found[i].slot) {
			watch->n_missing += from + i < STAY;
			continue;
		}
		watch->n_wrong += found[i].port != port_of(from + i);
		mac_mark(&found[i], watch->n_lookups);
	}
}

static void *run_worker(void *arg)
{
	struct watch *watch = arg;

	while (!__atomic_load_n(watch->stop, __ATOMIC_RELAXED)) {
		look_up(watch, 0, STAY);
		look_up(watch, STAY, COME);
		__atomic_store_n(&watch->n_lookups, watch->n_lookups + 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void change(struct mac_slots *slots, unsigned number)
{
	const struct mac_slot value = {.key = testing_key(1, number), .port = port_of(number)};
	struct mac_slot *slot = macs_find(slots, value.key);

	if (slot)
		macs_clear(slot);
	else
		macs_add(slots, &value);
}

static void addresses_that_stay_are_found_while_others_move(void **state)
{
	const uint64_t secret[4] = {1, 0x9e3779b97f4a7c15, 3, 0xbf58476d1ce4e5b9};
	struct mac_slots *slots = macs_alloc(0, secret);
	struct watch watch[WORKERS];
	pthread_t thread[WORKERS];
	int stop = 0;

	slots->n_buckets = BUCKETS;
	for (unsigned i = 0; i < STAY; i++)
		change(slots, i);
	for (unsigned i = 0; i < WORKERS; i++) {
		watch[i] = (struct watch){.slots = slots, .stop = &stop};
		assert_int_equal(pthread_create(&thread[i], NULL, run_worker, &watch[i]), 0);
	}
	for (unsigned done = 0, i = 0; !done; i++) {
		change(slots, STAY + testing_random() % COME);
		done = i >= N_CHANGES;
		for (unsigned w = 0; w < WORKERS; w++)
			done &= __atomic_load_n(&watch[w].n_lookups, __ATOMIC_RELAXED) >= LOOKUPS;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < WORKERS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(watch[i].n_missing, 0);
		assert_int_equal(watch[i].n_wrong, 0);
	}
	assert_true(slots->version > 100); // entries moved
	slots->n_buckets = 16;
	macs_free(slots);
}

// All tell what they see through their rings while the control thread takes it.
enum { TOLD = 20000, HZ = 1 << 30 };

struct teller {
	const struct mac_live *live;
	unsigned worker;
};

static void *tell_all(void *arg)
{
	const struct teller *teller = arg;

	for (uint32_t i = 0; i < TOLD;) {
		const struct mac_told told = {.key = testing_key(1, teller->worker * TOLD + i),
			.port = teller->worker,
			.tick = 1};
		i += mac_tell(teller->live, teller->worker, &told);
	}
	return NULL;
}

static void all_that_workers_tell_is_learnt(void **state)
{
	struct mac_member members[] = {{.port = 0, .flags = MAC_LEARNS},
		{.port = 1, .flags = MAC_LEARNS}};
	const struct mac_bridge bridge = {.name = "br0",
		.ageing_s = 300,
		.max = 2 * TOLD,
		.member = members,
		.n_members = 2};
	struct mac_settings settings = {.hz = HZ, .n_workers = 2, .rcu = rcu_create(1, NULL)};
	struct teller teller[2];
	pthread_t thread[2];
	struct mac_pending *pending;
	struct mac_usage usage;
	struct mac_table *table;

	assert_int_equal(mac_open(&table, &settings, NULL), 0);
	assert_int_equal(mac_prepare(table, &bridge, 1, &pending, NULL), 0);
	mac_commit(table, pending, 0);
	for (unsigned i = 0; i < 2; i++) {
		teller[i] = (struct teller){mac_live(table), i};
		assert_int_equal(pthread_create(&thread[i], NULL, tell_all, &teller[i]), 0);
	}
	do {
		mac_poll(table, HZ);
		assert_true(mac_usage(table, 1, &usage));
	} while (usage.n_learnt < 2 * TOLD);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	mac_close(table);
	rcu_destroy(settings.rcu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_that_stay_are_found_while_others_move),
		cmocka_unit_test(all_that_workers_tell_is_learnt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
