// Checks bursts while a neighbour on an interface with a short MTU is added and removed: no frame
// passes at any moment that is too long for its output interface. Tests only.
#include "datapath/hop_limits.h"

#include "datapath/steps.h"
#include "datapath/variant.h"
#include "fib/fib.h"
#include "rcu/rcu.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { LONG_WAY = 3, SHORT_WAY = 4, FRAME_BYTES = 1000 };
#ifdef __SANITIZE_THREAD__
enum { N_CHANGES = 20000 }; // each takes far longer, and TSan finds ordering errors without luck
#else
enum { N_CHANGES = 200000 };
#endif

static struct worker worker;
static struct stats_worker stat;
static struct rte_mbuf mbuf[BURST_MAX];
// FRAME_BYTES long, not to be fragmented.
static uint8_t frame[64] = {[12] = 8, [14] = 0x45, [16] = 3, [17] = 0xda, [20] = 0x40};

struct watch {
	const struct rcu_readers *rcu;
	const struct fib_live *live;
	int stop;
	uint32_t dst[BURST_MAX]; // every other one has the short MTU
	uint64_t n_passed, n_stopped, n_wrong;
};

static void decide(struct watch *watch, const struct fib_view *view)
{
	static struct burst b;

	b.n = BURST_MAX;
	b.view = view;
	for (unsigned i = 0; i < BURST_MAX; i++) {
		mbuf[i].pkt_len = FRAME_BYTES;
		b.mbuf[i] = &mbuf[i];
		b.frame[i] = frame;
		b.length[i] = FRAME_BYTES;
		b.ttl[i] = 64;
	}
	fib_lookup4(view, watch->dst, b.hop, BURST_MAX);
	worker.n_dropped = 0;
	datapath_check(&worker, &b);
	for (unsigned i = 0; i < b.n; i++)
		watch->n_wrong += burst_port(&b, i) != LONG_WAY;
	watch->n_passed += b.n;
	watch->n_stopped += worker.n_dropped;
}

static void *run_worker(void *arg)
{
	struct watch *watch = arg;

	rcu_reader_online(watch->rcu, 0);
	while (!__atomic_load_n(&watch->stop, __ATOMIC_RELAXED)) {
		decide(watch, fib_live_view(watch->live));
		rcu_reader_report(watch->rcu, 0);
	}
	rcu_reader_offline(watch->rcu, 0);
	return NULL;
}

static void tell_iface(struct fib *fib, uint8_t port, uint16_t mtu)
{
	struct iface settings = {.mac.bytes = {2}, .port = port, .mtu = mtu};

	assert_int_equal(fib_iface_set(fib, port, &settings), 0);
}

static void no_long_frame_passes_while_a_short_link_comes_and_goes(void **state)
{
	const struct wire_addr far = {.family = 4, .bytes = {10, 3, 0, 1}},
			       near = {.family = 4, .bytes = {10, 4, 0, 1}};
	const struct wire_mac mac = {{2, 0, 0, 0, 0, 9}};
	struct rcu *rcu = rcu_create(1, NULL);
	struct fib_live live = {.rcu = rcu};
	struct fib *fib = fib_create(NULL);
	struct watch watch = {.rcu = rcu_readers(rcu), .live = &live};
	struct fib_change change[2] = {
		{.op = FIB_ADD, .route.hop = {.via = far, .iface = LONG_WAY, .kind = FIB_VIA}},
		{.op = FIB_ADD, .route.hop = {.via = near, .iface = SHORT_WAY, .kind = FIB_VIA}}};
	pthread_t thread;

	assert_int_equal(wire_prefix_parse("20.0.0.0/8", &change[0].route.prefix), 0);
	assert_int_equal(wire_prefix_parse("30.0.0.0/8", &change[1].route.prefix), 0);
	tell_iface(fib, LONG_WAY, 1500);
	tell_iface(fib, SHORT_WAY, 576);
	assert_int_equal(fib_change(fib, change, 2, NULL, NULL), 0);
	assert_int_equal(fib_neighbour_set(fib, LONG_WAY, &far, &mac, NULL), 0);
	for (unsigned i = 0; i < BURST_MAX; i++)
		watch.dst[i] = (i % 2 ? 30u : 20u) << 24 | i;
	worker = (struct worker){.stat = &stat, .variant = datapath_choose_variant()};
	fib_live_swap(&live, fib);
	assert_int_equal(pthread_create(&thread, NULL, run_worker, &watch), 0);
	for (unsigned i = 0; i < N_CHANGES; i++) {
		assert_int_equal(fib_neighbour_set(fib, SHORT_WAY, &near, &mac, NULL), 0);
		assert_int_equal(fib_neighbour_delete(fib, SHORT_WAY, &near), 0);
	}
	__atomic_store_n(&watch.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(watch.n_wrong, 0);
	assert_true(watch.n_passed && watch.n_passed == watch.n_stopped);
	fib_live_swap(&live, NULL);
	fib_destroy(fib);
	rcu_destroy(rcu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_long_frame_passes_while_a_short_link_comes_and_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
