// Held next hops: numbers, resolution, reloads, and workers that use them while they change (for
// ThreadSanitizer). Tests only.
#include "fib/fib.h"

#include "base/clock.h"
#include "fib/fib_fast.h"
#include "fib/model.h"
#include "fib/table.h"
#include "rcu/rcu_fast.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct wire_mac mac_a = {{2, 0, 0, 0, 0, 0xa}}, peer = {{2, 0, 0, 0, 0, 0xc}};

static struct fib_hop via(uint32_t addr, uint16_t iface)
{
	return (struct fib_hop){.via = model_addr(4, (model_bits)addr << 96),
		.iface = iface,
		.kind = FIB_VIA};
}

static struct fib *fib_with_iface(uint16_t iface)
{
	struct fib *fib = fib_create(NULL);
	const struct iface settings = {.port = iface, .mtu = 1500};

	assert_non_null(fib);
	assert_int_equal(fib_iface_set(fib, iface, &settings), 0);
	return fib;
}

static uint32_t hold(struct fib *fib, const struct fib_hop *hop)
{
	struct fib_hop found;
	uint32_t held = 0;

	assert_int_equal(fib_hold(fib, hop, &held, NULL), 0);
	assert_in_range(held, 1, FIB_MAX_HELD);
	assert_true(fib_held_hop(fib, held, &found));
	assert_memory_equal(&found, hop, sizeof(found));
	return held;
}

// What workers read.
static struct fib_hop_entry entry(const struct fib *fib, uint32_t held)
{
	return fib_hop_load(&fib->view.hops[fib_held_load(&fib->view, held)]);
}

static uint8_t verdict(const struct fib *fib, uint32_t held)
{
	const struct fib_hop_entry of = entry(fib, held);

	return fib_entry_verdict(&of);
}

static void is_resolved_like_the_hops_of_routes(void **state)
{
	struct fib *fib = fib_with_iface(1);
	const struct fib_hop hop = via(0x0a000001, 1);
	const uint32_t held = hold(fib, &hop), id = fib_held_load(&fib->view, held);
	const struct iface settings = {.port = 1, .mtu = 1500};

	assert_int_equal(verdict(fib, held), VERDICT_NEIGHBOUR_UNRESOLVED);
	assert_int_equal(fib_neighbour_set(fib, 1, &hop.via, &mac_a, NULL), 0);
	assert_int_equal(entry(fib, held).kind, FIB_HOP_PLAIN);
	assert_memory_equal(entry(fib, held).macs, mac_a.bytes, 6);
	assert_int_equal(entry(fib, held).frame_max, 1514);
	assert_int_equal(fib_neighbour_delete(fib, 1, &hop.via), 0);
	assert_int_equal(verdict(fib, held), VERDICT_NEIGHBOUR_UNRESOLVED);
	assert_int_equal(fib_neighbour_set(fib, 1, &hop.via, &mac_a, NULL), 0);
	fib_iface_delete(fib, 1);
	assert_int_equal(verdict(fib, held), VERDICT_NEIGHBOUR_UNRESOLVED);
	assert_int_equal(fib_iface_set(fib, 1, &settings), 0);
	assert_int_equal(verdict(fib, held), VERDICT_FORWARD);
	assert_int_equal(fib_held_load(&fib->view, held), id);
	fib_destroy(fib);
}

// A filter of the interface, for example.
static void only_linux_may_send_there(void **state)
{
	struct fib *fib = fib_with_iface(1);
	const struct fib_hop hop = via(0x0a000001, 1);
	const uint32_t held = hold(fib, &hop);
	struct iface settings = {.port = 1, .mtu = 1500, .flags = IFACE_OUT_LINUX};

	assert_int_equal(fib_neighbour_set(fib, 1, &hop.via, &mac_a, NULL), 0);
	assert_int_equal(verdict(fib, held), VERDICT_FORWARD);
	assert_int_equal(fib_iface_set(fib, 1, &settings), 0);
	assert_int_equal(verdict(fib, held), VERDICT_LINUX);
	settings.flags = 0;
	assert_int_equal(fib_iface_set(fib, 1, &settings), 0);
	assert_int_equal(verdict(fib, held), VERDICT_FORWARD);
	fib_destroy(fib);
}

static void the_peer_of_an_interface_can_be_held(void **state)
{
	struct fib *fib = fib_with_iface(1);
	const struct fib_hop hop = {.kind = FIB_PEER, .iface = 1};
	const struct iface settings = {.port = 1, .mtu = 1500, .peer = peer, .has_peer = true};
	const uint32_t held = hold(fib, &hop);

	assert_int_equal(verdict(fib, held), VERDICT_NEIGHBOUR_UNRESOLVED);
	assert_int_equal(fib_iface_set(fib, 1, &settings), 0);
	assert_memory_equal(entry(fib, held).macs, peer.bytes, 6);
	fib_destroy(fib);
}

static struct fib_hop_info info_of(const struct fib *fib, uint32_t held)
{
	struct fib_hop_info info;

	assert_true(fib_hop_info(fib, fib_held_load(&fib->view, held), &info));
	return info;
}

static uint32_t n_held(const struct fib *fib)
{
	struct fib_usage usage;

	fib_usage(fib, &usage);
	return usage.n_held;
}

static void has_one_number_however_often_it_is_held(void **state)
{
	struct fib *fib = fib_with_iface(1);
	const struct fib_hop hop = via(0x0a000001, 1), other = via(0x0a000002, 1);
	const uint32_t held = hold(fib, &hop), second = hold(fib, &other);
	struct fib_hop found;

	assert_int_equal(hold(fib, &hop), held);
	assert_int_not_equal(second, held);
	assert_int_equal(n_held(fib), 2);
	fib_release(fib, held);
	assert_true(fib_held_hop(fib, held, &found));
	assert_true(info_of(fib, held).is_held);
	fib_release(fib, held);
	assert_false(fib_held_hop(fib, held, &found));
	assert_false(fib_held_hop(fib, 0, &found));
	assert_false(fib_held_hop(fib, FIB_MAX_HELD, &found));
	assert_int_equal(n_held(fib), 1);
	assert_int_equal(hold(fib, &(struct fib_hop){.kind = FIB_PEER, .iface = 1}), held);
	fib_destroy(fib);
}

static void keeps_its_id_while_routes_come_and_go(void **state)
{
	struct fib *fib = fib_with_iface(1);
	const struct fib_hop hop = via(0x0a000001, 1);
	struct fib_change change = {.op = FIB_ADD, .route.hop = hop};
	struct wire_addr dst = model_addr(4, (model_bits)0x14000001 << 96);

	assert_int_equal(wire_prefix_parse("20.0.0.0/8", &change.route.prefix), 0);
	assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	const uint32_t held = hold(fib, &hop), id = fib_lookup(fib, 0, &dst);
	assert_int_equal(fib_held_load(&fib->view, held), id);
	assert_int_equal(info_of(fib, held).n_routes, 1);
	change.op = FIB_DELETE;
	assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	assert_int_equal(fib_held_load(&fib->view, held), id);
	assert_int_equal(info_of(fib, held).n_routes, 0);
	assert_true(info_of(fib, held).is_held);
	change.op = FIB_ADD;
	assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	assert_int_equal(fib_lookup(fib, 0, &dst), id);
	fib_release(fib, held);
	assert_int_equal(fib_lookup(fib, 0, &dst), id);
	fib_destroy(fib);
}

static void refuses_what_is_not_a_neighbour(void **state)
{
	struct fib *fib = fib_with_iface(1);
	const struct fib_hop refused[] = {{.kind = FIB_CONNECTED, .iface = 1}, {.kind = FIB_GROUP},
		{.kind = FIB_LOCAL, .iface = IFACE_NONE},
		{.kind = FIB_BLACKHOLE, .iface = IFACE_NONE}, {.kind = FIB_VIA, .iface = 1},
		{.kind = FIB_PEER, .iface = IFACE_NONE}, {.kind = N_FIB_KINDS, .iface = 1}};
	struct error error;
	uint32_t held;

	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		assert_int_equal(fib_hold(fib, &refused[i], &held, &error), -EINVAL);
		assert_string_equal(error.text,
			"a held next hop needs an interface, and a neighbour or its peer");
	}
	assert_int_equal(n_held(fib), 0);
	fib_destroy(fib);
}

static void as_many_can_be_held_as_there_are_hops(void **state)
{
	struct fib *fib = fib_with_iface(1);
	struct error error;
	uint32_t held = 0, n = 0;
	struct fib_hop hop = via(0, 1);
	int err;

	do
		hop = via(0x0a000000 + n++, 1);
	while (!(err = fib_hold(fib, &hop, &held, &error)));
	assert_int_equal(err, -ENOSPC);
	assert_string_equal(error.text,
		"no space for another next hop: the table holds at most 1048575");
	assert_in_range(n, FIB_MAX_HOPS - N_FIB_KINDS, FIB_MAX_HELD);
	fib_release(fib, 1000);
	assert_int_equal(hold(fib, &hop), 1000);
	fib_destroy(fib);
}

static void no_number_is_given_again_before_workers_have_passed(void **state)
{
	struct rcu *rcu = rcu_create(1, NULL);
	struct fib_live live = {.rcu = rcu};
	struct fib *fib = fib_with_iface(1);
	struct fib_hop hop = via(0x0a000000, 1), other = via(0x0b000000, 1);

	fib_live_swap(&live, fib);
	rcu_reader_online(rcu_readers(rcu), 0);
	const uint32_t held = hold(fib, &hop), id = fib_held_load(&fib->view, held);
	fib_release(fib, held);
	rcu_poll(rcu);
	const uint32_t again = hold(fib, &hop), third = hold(fib, &other);
	assert_int_not_equal(again, held);
	assert_int_not_equal(third, held);
	assert_int_equal(fib_held_load(&fib->view, held), id);
	assert_int_not_equal(fib_held_load(&fib->view, third), id);
	rcu_reader_report(rcu_readers(rcu), 0);
	fib_release(fib, third);
	rcu_poll(rcu);
	other = via(0x0b000001, 1);
	assert_int_equal(hold(fib, &other), held);
	rcu_reader_offline(rcu_readers(rcu), 0);
	fib_live_swap(&live, NULL);
	fib_destroy(fib);
	rcu_destroy(rcu);
}

static void a_second_fib_gets_the_same_numbers(void **state)
{
	enum { N = 100 };
	struct fib *from = fib_with_iface(1), *to = fib_with_iface(1);
	uint32_t held[N];

	for (unsigned i = 0; i < N; i++) {
		const struct fib_hop hop = via(i, i % 3);
		held[i] = hold(from, &hop);
		if (i % 2)
			hold(from, &hop);
	}
	for (unsigned i = 0; i < N; i += 10)
		fib_release(from, held[i]);
	const struct fib_hop first = via(1, 1);
	assert_int_equal(fib_neighbour_set(to, 1, &first.via, &mac_a, NULL), 0);
	assert_int_equal(fib_copy_held(to, from, NULL), 0);
	fib_destroy(from);
	assert_int_equal(n_held(to), N - N / 10);
	assert_int_equal(verdict(to, held[1]), VERDICT_FORWARD);
	for (unsigned i = 0; i < N; i++) {
		const struct fib_hop hop = via(i, i % 3);
		struct fib_hop found;
		assert_int_equal(fib_held_hop(to, held[i], &found), i % 10 != 0);
		if (i % 10 == 0)
			continue;
		assert_memory_equal(&found, &hop, sizeof(hop));
		assert_int_equal(hold(to, &hop), held[i]);
		fib_release(to, held[i]);
		fib_release(to, held[i]);
		assert_int_equal(fib_held_hop(to, held[i], &found), i % 2 != 0);
	}
	fib_destroy(to);
}

// Slot s holds the neighbours s.0.0.x of interface s, one after the other, all with MAC ...:s; only
// the number of the latest is shown to workers.
enum { N_WORKERS = 2, N_SLOTS = 8, N_ADDRESSES = 5 };
#ifdef __SANITIZE_THREAD__
enum { N_CHANGES = 300, N_LOOKUPS = 100, RELOAD_EVERY = 100 };
#else
enum { N_CHANGES = 40000, N_LOOKUPS = 1000, RELOAD_EVERY = 500 };
#endif

struct watch {
	const struct rcu_readers *rcu;
	const struct fib_live *live;
	const uint32_t *shown; // by slot: atomic, release
	const int *stop;
	unsigned worker;
	uint64_t n, n_wrong;
};

static void *run_worker(void *arg)
{
	struct watch *watch = arg;

	rcu_reader_online(watch->rcu, watch->worker);
	while (!__atomic_load_n(watch->stop, __ATOMIC_RELAXED)) {
		const struct fib_view *view = fib_live_view(watch->live);
		for (unsigned slot = 0; slot < N_SLOTS; slot++) {
			const uint32_t held =
				__atomic_load_n(&watch->shown[slot], __ATOMIC_ACQUIRE);
			const uint32_t id = fib_held_load(view, held);
			const struct fib_hop_entry of = fib_hop_load(&view->hops[id]);
			watch->n_wrong += of.macs[5] != slot || fib_oif_load(view, id) != slot;
		}
		__atomic_store_n(&watch->n, watch->n + 1, __ATOMIC_RELAXED);
		rcu_reader_report(watch->rcu, watch->worker);
	}
	rcu_reader_offline(watch->rcu, watch->worker);
	return NULL;
}

static struct fib_hop hop_of(unsigned slot, unsigned number)
{
	return via(slot << 24 | number, slot);
}

static struct fib *fib_of_slots(void)
{
	struct fib *fib = fib_create(NULL);

	for (unsigned slot = 0; slot < N_SLOTS; slot++) {
		const struct iface settings = {.port = slot, .mtu = 1500};
		const struct wire_mac mac = {{2, 0, 0, 0, 0, slot}};
		assert_int_equal(fib_iface_set(fib, slot, &settings), 0);
		for (unsigned i = 0; i < N_ADDRESSES; i++) {
			const struct fib_hop hop = hop_of(slot, i);
			fib_neighbour_set(fib, slot, &hop.via, &mac, NULL);
		}
	}
	return fib;
}

static void change_slot(struct fib *fib, uint32_t shown[N_SLOTS], unsigned slot)
{
	const struct fib_hop hop = hop_of(slot, model_random(N_ADDRESSES));
	const uint32_t old = shown[slot];

	__atomic_store_n(&shown[slot], hold(fib, &hop), __ATOMIC_RELEASE);
	if (old)
		fib_release(fib, old);
}

static void reload(struct fib_live *live)
{
	struct fib *fib = fib_of_slots();

	assert_int_equal(fib_copy_held(fib, live->fib, NULL), 0);
	fib_destroy(fib_live_swap(live, fib));
}

static bool all_have_looked(const struct watch *watch, uint64_t n)
{
	for (unsigned i = 0; i < N_WORKERS; i++)
		if (__atomic_load_n(&watch[i].n, __ATOMIC_RELAXED) < n)
			return false;
	return true;
}

static void workers_see_the_hop_of_a_number_whatever_changes(void **state)
{
	struct rcu *rcu = rcu_create(N_WORKERS, NULL);
	struct fib_live live = {.rcu = rcu};
	uint32_t shown[N_SLOTS] = {0};
	struct watch watch[N_WORKERS];
	pthread_t thread[N_WORKERS];
	int stop = 0;

	fib_live_swap(&live, fib_of_slots());
	for (unsigned slot = 0; slot < N_SLOTS; slot++)
		change_slot(live.fib, shown, slot);
	for (unsigned i = 0; i < N_WORKERS; i++) {
		watch[i] = (struct watch){.rcu = rcu_readers(rcu),
			.live = &live,
			.shown = shown,
			.stop = &stop,
			.worker = i};
		assert_int_equal(pthread_create(&thread[i], NULL, run_worker, &watch[i]), 0);
	}
	const uint64_t start_ns = clock_now_ns();
	for (unsigned n = 0; n < N_CHANGES || !all_have_looked(watch, N_LOOKUPS); n++) {
		change_slot(live.fib, shown, n % N_SLOTS);
		if (n % RELOAD_EVERY == 0)
			reload(&live);
		rcu_poll(rcu);
		assert_true(clock_now_ns() - start_ns < 400000000000);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < N_WORKERS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < N_WORKERS; i++)
		assert_int_equal(watch[i].n_wrong, 0);
	assert_int_equal(n_held(live.fib), N_SLOTS);
	for (unsigned slot = 0; slot < N_SLOTS; slot++)
		fib_release(live.fib, shown[slot]);
	assert_int_equal(n_held(live.fib), 0);
	fib_destroy(fib_live_swap(&live, NULL));
	rcu_destroy(rcu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_resolved_like_the_hops_of_routes),
		cmocka_unit_test(only_linux_may_send_there),
		cmocka_unit_test(the_peer_of_an_interface_can_be_held),
		cmocka_unit_test(has_one_number_however_often_it_is_held),
		cmocka_unit_test(keeps_its_id_while_routes_come_and_go),
		cmocka_unit_test(refuses_what_is_not_a_neighbour),
		cmocka_unit_test(as_many_can_be_held_as_there_are_hops),
		cmocka_unit_test(no_number_is_given_again_before_workers_have_passed),
		cmocka_unit_test(a_second_fib_gets_the_same_numbers),
		cmocka_unit_test(workers_see_the_hop_of_a_number_whatever_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
