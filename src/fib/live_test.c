// A live table: what is replaced in it is kept for a grace period. With a worker simulated by this
// thread, and real workers running concurrently with a writer (for ThreadSanitizer). Tests only.
#include "fib/fib.h"

#include "base/clock.h"
#include "fib/fib_fast.h"
#include "fib/model.h"
#include "fib/table.h"
#include "rcu/rcu_fast.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static struct fib_change host_change(uint8_t family, uint32_t number, unsigned len, uint8_t port)
{
	struct fib_change change = {.op = FIB_REPLACE,
		.route.hop = {.iface = port, .kind = FIB_PEER}};
	model_bits bits = family == 4 ? (model_bits)number << 96
	                              : (model_bits)0x20010db8 << 96 | (model_bits)number << 64;

	change.route.prefix = (struct wire_prefix){model_addr(family, bits), len};
	return change;
}

static struct fib *attached(struct fib_live *live)
{
	struct fib *fib = fib_create(NULL);

	assert_null(fib_live_swap(live, fib));
	return fib;
}

static size_t pending(const struct fib *fib)
{
	struct fib_usage usage;

	fib_usage(fib, &usage);
	return usage.pending_frees;
}

static void frees_nothing_before_the_worker_reports(void **state)
{
	struct rcu *rcu = rcu_create(2, NULL);
	struct fib_live live = {.rcu = rcu};
	const struct rcu_readers *workers = rcu_readers(rcu);
	struct fib *fib = attached(&live);

	rcu_reader_online(workers, 0);
	for (unsigned i = 0; i < 100; i++) {
		struct fib_change change = host_change(i & 1 ? 4 : 6, i << 16, i & 1 ? 16 : 48, i);
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	}
	for (unsigned i = 0; i < 100; i++) {
		struct fib_change change = host_change(i & 1 ? 4 : 6, i << 16, i & 1 ? 16 : 48, i);
		change.op = FIB_DELETE;
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	}
	size_t n = pending(fib);
	assert_in_range(n, 100, 10000); // at least each hop
	rcu_poll(rcu);
	assert_int_equal(pending(fib), n);
	rcu_reader_report(workers, 0);
	rcu_poll(rcu);
	assert_int_equal(pending(fib), 0);
	rcu_reader_offline(workers, 0);
	assert_ptr_equal(fib_live_swap(&live, NULL), fib);
	fib_destroy(fib);
	rcu_destroy(rcu);
}

static void gives_no_hop_id_again_before_the_worker_reports(void **state)
{
	struct rcu *rcu = rcu_create(1, NULL);
	struct fib_live live = {.rcu = rcu};
	const struct rcu_readers *workers = rcu_readers(rcu);
	struct fib *fib = attached(&live);
	struct wire_addr addr = model_addr(4, (model_bits)20 << 120);
	bool was_used[64] = {false};

	rcu_reader_online(workers, 0);
	for (uint8_t i = 0; i < 50; i++) {
		struct fib_change change = host_change(4, 20 << 24, 8, i);
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
		uint32_t id = fib_lookup(fib, 0, &addr);
		assert_in_range(id, 1, 63);
		assert_false(was_used[id]);
		was_used[id] = true;
		rcu_poll(rcu);
	}
	rcu_reader_report(workers, 0);
	rcu_poll(rcu);
	struct fib_change change = host_change(4, 20 << 24, 8, 60);
	assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	assert_true(was_used[fib_lookup(fib, 0, &addr)]);
	rcu_reader_offline(workers, 0);
	fib_live_swap(&live, NULL);
	fib_destroy(fib);
	rcu_destroy(rcu);
}

// Workers look up while the writer changes routes: each result is the old or the new one. The
// address under test always has a route to port 1 or 2, over a default to port 3 that must never be
// seen.
enum { N_WORKERS = 2, N_WATCHED = 64 };
#ifdef __SANITIZE_THREAD__
enum { N_CHANGES = 4000 }; // each takes far longer, and TSan finds ordering errors without luck
#else
enum { N_CHANGES = 20000 };
#endif

struct watch {
	const struct rcu_readers *rcu;
	const struct fib_live *live;
	unsigned worker;
	const struct lookups *lookups;
	const int *stop;
	uint32_t dst4[N_WATCHED];
	struct fib_key6 dst6[N_WATCHED];
	uint64_t n_lookups; // atomic
	uint64_t n_wrong;
};

static void decide(struct watch *watch, const struct fib_view *view, const uint32_t hop[])
{
	for (unsigned i = 0; i < N_WATCHED; i++) {
		struct fib_hop_entry entry = fib_hop_load(&view->hops[hop[i]]);
		watch->n_wrong += entry.port != 1 && entry.port != 2;
		watch->n_wrong += entry.kind != FIB_HOP_PLAIN || entry.macs[5] != entry.port;
	}
	__atomic_store_n(&watch->n_lookups, watch->n_lookups + N_WATCHED, __ATOMIC_RELAXED);
}

static void *run_worker(void *arg)
{
	struct watch *watch = arg;
	uint32_t hop[N_WATCHED];

	rcu_reader_online(watch->rcu, watch->worker);
	while (!__atomic_load_n(watch->stop, __ATOMIC_RELAXED)) {
		const struct fib_view *view = fib_live_view(watch->live);
		watch->lookups->near4(view, watch->dst4, hop, N_WATCHED);
		decide(watch, view, hop);
		watch->lookups->six(view, watch->dst6, hop, N_WATCHED);
		decide(watch, view, hop);
		fib_lookup4(view, watch->dst4, hop, N_WATCHED);
		decide(watch, view, hop);
		struct fib_lookup4_state lookup = {.n = N_WATCHED};
		watch->lookups->begin4(view, watch->dst4, hop, &lookup);
		fib_lookup4_continue(view, hop, &lookup);
		fib_lookup4_end(view, watch->dst4, hop, &lookup);
		decide(watch, view, hop);
		rcu_reader_report(watch->rcu, watch->worker);
	}
	rcu_reader_offline(watch->rcu, watch->worker);
	return NULL;
}

static void set_ports(struct fib *fib)
{
	for (uint8_t port = 1; port <= 3; port++) {
		struct iface settings = {.port = port,
			.peer.bytes[5] = port,
			.has_peer = true,
			.mtu = 1500};
		assert_int_equal(fib_iface_set(fib, port, &settings), 0);
	}
}

// The watched route of one index: a shorter route to port 1 covers it, so that it may be added and
// deleted.
static struct fib_change random_watched(uint8_t family)
{
	static const uint8_t lens4[] = {9, 16, 18, 22, 24, 25, 28, 32},
			     lens6[] = {33, 40, 48, 50, 56, 62, 63, 64};
	unsigned len = (family == 4 ? lens4 : lens6)[model_random(8)];
	uint32_t number = model_random(0xffffffff);

	number = family == 4 ? 0x14000000 | (number & 0x7fffff & (model_random(2) ? ~0u : 0x3fff))
	                     : number & 0xffff001f;
	unsigned host_bits = family == 4 ? 32 - len : 64 - len;
	return host_change(family, number >> host_bits << host_bits, len, 1 + model_random(2));
}

static void churn(struct fib *fib)
{
	for (unsigned i = 0; i < N_CHANGES; i++) {
		struct fib_change change = random_watched(i & 1 ? 4 : 6);
		struct fib_route old;
		struct wire_prefix before = change.route.prefix;
		bool gone = model_random(2) && before.len &&
		            model_next(fib, i & 1 ? 4 : 6, &before, &old) &&
		            old.prefix.len > (i & 1 ? 8 : 32);
		if (gone)
			change = (struct fib_change){.op = FIB_DELETE, .route = old};
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	}
}

// Takes all narrow ids that are left.
static void take_narrow_ids(struct fib *fib)
{
	struct fib_hop hop = {.via.family = 4, .iface = 1};

	for (uint32_t i = 0; fib->hops.max_id < HOP_WIDE - 1; i++) {
		memcpy(hop.via.bytes, &i, sizeof(i));
		assert_int_not_equal(change_acquire_hop(fib, &hop), 0);
	}
}

// With wide ids: the hop of port 2 has one, so that nodes and lines become wide and narrow again.
static struct fib *watched_fib(bool has_wide_ids)
{
	struct fib *fib = fib_create(NULL);
	struct fib_change change[] = {host_change(4, 0x14000000, 8, 1), host_change(6, 0, 32, 1),
		host_change(4, 0, 0, 3), host_change(6, 0, 32, 1)};

	set_ports(fib);
	change[3].route.prefix = (struct wire_prefix){model_addr(6, 0), 0};
	change[3].route.hop.iface = 3;
	assert_int_equal(fib_change(fib, change, 4, NULL, NULL), 0);
	if (has_wide_ids)
		take_narrow_ids(fib);
	return fib;
}

// Waits for workers to report, however long they are preempted.
static void await_frees(struct rcu *rcu, const struct fib *fib)
{
	uint64_t start_ns = clock_now_ns();

	for (rcu_poll(rcu); pending(fib); rcu_poll(rcu)) {
		assert_true(clock_now_ns() - start_ns < 60000000000);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

// A worker's thread may not get a core before all changes are made.
static void await_lookups(const struct watch *watch)
{
	const uint64_t start_ns = clock_now_ns();

	for (unsigned i = 0; i < N_WORKERS; i++)
		while (!__atomic_load_n(&watch[i].n_lookups, __ATOMIC_RELAXED)) {
			assert_true(clock_now_ns() - start_ns < 60000000000);
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		}
}

static void watch_changes(bool has_wide_ids)
{
	struct rcu *rcu = rcu_create(N_WORKERS, NULL);
	struct fib_live live = {.rcu = rcu};
	struct fib *fib = watched_fib(has_wide_ids);
	static struct watch watch[N_WORKERS];
	pthread_t thread[N_WORKERS];
	unsigned n_variants;
	const struct lookups *variants = lookup_variants(&n_variants);
	int stop = 0;

	assert_null(fib_live_swap(&live, fib));
	for (unsigned i = 0; i < N_WORKERS; i++) {
		watch[i] = (struct watch){.rcu = rcu_readers(rcu),
			.live = &live,
			.worker = i,
			.lookups = &variants[i % n_variants],
			.stop = &stop};
		for (unsigned k = 0; k < N_WATCHED; k++) {
			watch[i].dst4[k] =
				0x14000000 | (model_random(0x7fffff) & (k & 1 ? ~0u : 0x3fff));
			watch[i].dst6[k] =
				(struct fib_key6){0x20010db800000000ull |
							  (model_random(0xffffffff) & 0xffff001f),
					k};
		}
		assert_int_equal(pthread_create(&thread[i], NULL, run_worker, &watch[i]), 0);
	}
	await_lookups(watch);
	churn(fib);
	struct fib *second = watched_fib(has_wide_ids); // a reload while workers run
	assert_ptr_equal(fib_live_swap(&live, second), fib);
	fib_destroy(fib);
	churn(second);
	assert_in_range(pending(second), 0, RCU_DEFER_MAX);
	await_frees(rcu, second);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < N_WORKERS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(watch[i].n_wrong, 0);
	}
	assert_ptr_equal(fib_live_swap(&live, NULL), second);
	assert_int_equal(pending(second), 0);
	fib_destroy(second);
	rcu_destroy(rcu);
}

static void workers_see_the_old_route_or_the_new_one(void **state)
{
	watch_changes(false);
}

static void workers_see_the_old_route_or_the_new_one_with_wide_ids(void **state)
{
	watch_changes(true);
}

struct sleeper {
	const struct rcu_readers *rcu;
	int stop;
};

static void *report_now_and_then(void *arg)
{
	struct sleeper *sleeper = arg;

	while (!__atomic_load_n(&sleeper->stop, __ATOMIC_RELAXED)) {
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
		rcu_reader_report(sleeper->rcu, 0);
	}
	rcu_reader_offline(sleeper->rcu, 0);
	return NULL;
}

static void slows_down_for_a_late_worker_rather_than_grow(void **state)
{
	struct rcu *rcu = rcu_create(1, NULL);
	struct fib_live live = {.rcu = rcu};
	struct sleeper sleeper = {.rcu = rcu_readers(rcu)};
	struct fib *fib = attached(&live);
	pthread_t thread;

	size_t most = 0;

	rcu_reader_online(sleeper.rcu, 0);
	assert_int_equal(pthread_create(&thread, NULL, report_now_and_then, &sleeper), 0);
	for (unsigned i = 0; i < 3 * RCU_DEFER_MAX; i++) {
		struct fib_change change = host_change(4, 20 << 24 | (i & 63) << 8, 24, i >> 6 & 1);
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
		most = MAX_OF(most, pending(fib));
	}
	assert_in_range(most, 256, RCU_DEFER_MAX);
	struct fib_usage usage;
	fib_usage(fib, &usage);
	assert_in_range(usage.worker_bytes4, (8 << 20) + 1, 16 << 20);
	__atomic_store_n(&sleeper.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	fib_live_swap(&live, NULL);
	fib_destroy(fib);
	rcu_destroy(rcu);
}

// A change of the default route replaces what workers read for every prefix below it.
static void frees_more_than_it_can_keep_while_workers_pass_at_once(void **state)
{
	enum { N_ROUTES = RCU_DEFER_MAX + RCU_DEFER_MAX / 4, PAIR_BITS = 18 };
	struct rcu *rcu = rcu_create(1, NULL); // its worker is offline
	struct fib_live live = {.rcu = rcu};
	struct fib *fib = attached(&live);
	struct fib_change *changes = calloc(N_ROUTES, sizeof(*changes));
	struct fib_usage before, after;

	for (uint32_t i = 0; i < N_ROUTES; i++)
		changes[i] = host_change(4, (i + (1 << 16)) << (32 - PAIR_BITS), 25, 1);
	assert_int_equal(fib_change(fib, changes, N_ROUTES, NULL, NULL), 0);
	fib_usage(fib, &before);
	for (unsigned port = 2; port < 10; port++) {
		struct fib_change change = host_change(4, 0, 0, port);
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
		assert_in_range(pending(fib), 0, RCU_DEFER_MAX);
	}
	rcu_poll(rcu);
	assert_int_equal(pending(fib), 0);
	fib_usage(fib, &after);
	assert_in_range(after.worker_bytes4, before.worker_bytes4, 2 * before.worker_bytes4);
	free(changes);
	fib_live_swap(&live, NULL);
	fib_destroy(fib);
	rcu_destroy(rcu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frees_nothing_before_the_worker_reports),
		cmocka_unit_test(gives_no_hop_id_again_before_the_worker_reports),
		cmocka_unit_test(workers_see_the_old_route_or_the_new_one),
		cmocka_unit_test(workers_see_the_old_route_or_the_new_one_with_wide_ids),
		cmocka_unit_test(slows_down_for_a_late_worker_rather_than_grow),
		cmocka_unit_test(frees_more_than_it_can_keep_while_workers_pass_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
