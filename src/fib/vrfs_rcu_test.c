// Real workers running concurrently with a writer that changes interfaces, VRFs, neighbours and
// routes (for ThreadSanitizer): what workers read between two reports is always consistent. Tests
// only.
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

#include <cmocka.h>

// VRF v's routes lead to ports 2 v + 1 and 2 v + 2 only; VRF 2 is opened and closed. VLANs are
// added and deleted on three ports; all settings of a VLAN are derived from its tag. The moving
// port is in VRF 0 or 1, and has a neighbour at times.
enum { N_WORKERS = 2, N_CHANGES = 1000, N_WATCHED = 16, N_VRFS = 3, N_TAGS = 12, N_VLANS = 4 };
enum { FIRST_VLAN = 100, VLAN_PORT = 40, MOVING_PORT = 30 };

static const uint32_t VIA_VLANS = 0x1e000000, CONNECTED = 0x28000000;

struct watch {
	const struct rcu_readers *rcu;
	const struct fib_live *live;
	unsigned worker;
	const int *stop;
	uint32_t dst4[N_WATCHED];
	struct fib_key6 dst6[N_WATCHED];
	uint64_t n_forwarded[N_VRFS], n_tagged_in, n_tagged_out, n_neighbour, n_wrong;
	bool has_seen_all; // of these but the last; atomic
};

static uint8_t port_of_tag(uint16_t tag)
{
	return VLAN_PORT + tag % 3;
}

static uint16_t vrf_of_tag(uint16_t tag)
{
	return tag / 3 % 2;
}

static struct iface vlan(uint16_t tag)
{
	return (struct iface){.mac.bytes[5] = tag,
		.peer.bytes[5] = tag,
		.has_peer = true,
		.port = port_of_tag(tag),
		.vrf = vrf_of_tag(tag),
		.n_tags = 1,
		.mtu = 1000 + tag,
		.tag = {{0x8100, tag}}};
}

// Workers.

static void decide(struct watch *watch, const struct fib_view *view, unsigned vrf,
	const uint32_t hop[])
{
	for (unsigned i = 0; i < N_WATCHED; i++) {
		struct fib_hop_entry entry = fib_hop_load(&view->hops[hop[i]]);
		bool is_own = entry.port == 2 * vrf + 1 || entry.port == 2 * vrf + 2;

		if (!hop[i] && vrf == 2)
			continue;
		watch->n_forwarded[vrf]++;
		watch->n_wrong += !is_own || entry.kind != FIB_HOP_PLAIN;
		watch->n_wrong += entry.macs[5] != entry.port;
	}
}

static void look_in_all_vrfs(struct watch *watch, const struct fib_view *view)
{
	uint32_t hop[N_WATCHED];

	for (unsigned vrf = 0; vrf < N_VRFS; vrf++) {
		const struct fib_view *own = &view->vrfs[vrf];
		fib_lookup4(own, watch->dst4, hop, N_WATCHED);
		decide(watch, own, vrf, hop);
		fib_lookup6(own, watch->dst6, hop, N_WATCHED);
		decide(watch, own, vrf, hop);
	}
}

// Receives a tagged frame: finds its interface, then how to handle it.
static void take_in(struct watch *watch, const struct fib_view *view, uint16_t tag)
{
	const struct iface settings = vlan(tag);
	const struct iface_tags tags = iface_wire_tags(&settings);
	uint16_t iface = iface_tagged(&view->ifaces, settings.port, &tags);

	if (iface == IFACE_NONE)
		return;
	struct iface_in in = iface_in_load(&view->ifaces, iface);
	watch->n_wrong += in.iface != iface || iface < FIRST_VLAN || iface >= FIRST_VLAN + N_VLANS;
	if (in.flags & IFACE_DOWN)
		return;
	watch->n_tagged_in++;
	watch->n_wrong += in.vrf != settings.vrf || in.n_tags != 1;
}

// Sends a packet: checks its next hop's entry, which is read again for the header.
static void send_out(struct watch *watch, const struct fib_view *view, uint16_t vlan_number)
{
	uint32_t dst = VIA_VLANS + (vlan_number << 8);
	uint32_t hop;

	fib_lookup4(view, &dst, &hop, 1);
	struct fib_hop_entry checked = fib_hop_load(&view->hops[hop]);
	if (checked.kind != FIB_HOP_TEMPLATE)
		return;
	const struct fib_template *header = fib_template_load(view, hop);
	const uint8_t tag = header->bytes[15];
	watch->n_tagged_out++;
	watch->n_wrong += checked.port != port_of_tag(tag) || checked.frame_max != 1014 + tag;
	watch->n_wrong += header->bytes[5] != tag || header->bytes[11] != tag;
}

static void look_at_neighbour(struct watch *watch, const struct fib_view *view)
{
	const struct iface_in in = iface_in_load(&view->ifaces, MOVING_PORT);
	uint32_t dst = CONNECTED + 7;
	uint32_t hop;

	watch->n_wrong += in.vrf > 1 || in.flags;
	fib_lookup4(&view->vrfs[in.vrf], &dst, &hop, 1);
	struct fib_hop_entry entry = fib_hop_load(&view->hops[hop]);
	if (fib_entry_verdict(&entry) == VERDICT_NEIGHBOUR_UNRESOLVED)
		return;
	watch->n_neighbour++;
	watch->n_wrong += entry.kind != FIB_HOP_PLAIN || entry.port != MOVING_PORT;
}

static bool has_seen_all(const struct watch *watch)
{
	return watch->n_forwarded[0] && watch->n_forwarded[1] && watch->n_forwarded[2] &&
	       watch->n_tagged_in && watch->n_tagged_out && watch->n_neighbour;
}

static void *run_worker(void *arg)
{
	struct watch *watch = arg;

	rcu_reader_online(watch->rcu, watch->worker);
	while (!__atomic_load_n(watch->stop, __ATOMIC_RELAXED)) {
		const struct fib_view *view = fib_live_view(watch->live);
		look_in_all_vrfs(watch, view);
		for (uint16_t tag = 1; tag <= N_TAGS; tag++)
			take_in(watch, view, tag);
		for (uint16_t number = 0; number < N_VLANS; number++)
			send_out(watch, view, number);
		look_at_neighbour(watch, view);
		__atomic_store_n(&watch->has_seen_all, has_seen_all(watch), __ATOMIC_RELAXED);
		rcu_reader_report(watch->rcu, watch->worker);
	}
	rcu_reader_offline(watch->rcu, watch->worker);
	return NULL;
}

// The writer.

static struct fib_change host_change(unsigned vrf, uint8_t family, uint32_t number, unsigned len)
{
	struct fib_change change = {.op = FIB_REPLACE, .route.vrf = vrf};
	model_bits bits = family == 4 ? (model_bits)number << 96
	                              : (model_bits)0x20010db8 << 96 | (model_bits)number << 64;

	change.route.prefix = (struct wire_prefix){model_addr(family, bits), len};
	change.route.hop =
		(struct fib_hop){.iface = 2 * vrf + 1 + model_random(2), .kind = FIB_PEER};
	return change;
}

static void set_all_covering(struct fib *fib, unsigned vrf)
{
	struct fib_change change[] = {host_change(vrf, 4, 0x14000000, 8),
		host_change(vrf, 6, 0, 32)};

	assert_int_equal(fib_change(fib, change, 2, NULL, NULL), 0);
}

static void change_routes(struct fib *fib)
{
	static const uint8_t lens4[] = {9, 16, 18, 24, 25, 32}, lens6[] = {40, 48, 50, 56, 62, 64};
	struct fib_change change[6];

	for (unsigned i = 0; i < 6; i++) {
		uint16_t vrf = model_random(fib_vrf_is_open(fib, 2) ? 3 : 2);
		uint8_t family = i & 1 ? 4 : 6;
		unsigned len = (family == 4 ? lens4 : lens6)[model_random(6)];
		unsigned host_bits = family == 4 ? 32 - len : 64 - len;
		uint32_t number = model_random(0xffffffff);
		number = family == 4 ? 0x14000000 | (number & 0x3fff) : number & 0xffff001f;
		change[i] = host_change(vrf, family, number >> host_bits << host_bits, len);
	}
	assert_int_equal(fib_change(fib, change, 6, NULL, NULL), 0);
}

static void change_vlan(struct fib *fib)
{
	uint16_t iface = FIRST_VLAN + model_random(N_VLANS);
	struct iface settings = vlan(1 + model_random(N_TAGS));

	if (fib_iface(fib, iface) && model_random(2))
		fib_iface_delete(fib, iface);
	else
		fib_iface_set(fib, iface, &settings); // refused if another one has the tag
}

static void change_neighbour(struct fib *fib)
{
	struct iface settings = {.port = MOVING_PORT, .vrf = model_random(2), .mtu = 1500};
	const struct wire_addr addr = model_addr(4, (model_bits)(CONNECTED + 7) << 96);

	switch (model_random(3)) {
	case 0:
		assert_int_equal(fib_iface_set(fib, MOVING_PORT, &settings), 0);
		break;
	case 1:
		assert_int_equal(fib_neighbour_set(fib, MOVING_PORT, &addr, &settings.mac, NULL),
			0);
		break;
	default:
		fib_neighbour_delete(fib, MOVING_PORT, &addr);
	}
}

static void change_vrf(struct fib *fib)
{
	if (fib_vrf_is_open(fib, 2)) {
		fib_vrf_close(fib, 2);
		return;
	}
	assert_int_equal(fib_vrf_open(fib, 2, NULL), 0);
	set_all_covering(fib, 2);
}

static bool all_have_seen_all(const struct watch *watch)
{
	for (unsigned i = 0; i < N_WORKERS; i++)
		if (!__atomic_load_n(&watch[i].has_seen_all, __ATOMIC_RELAXED))
			return false;
	return true;
}

// Goes on until each worker, which may not get a core for long, has seen all that there is at
// times.
static void churn(struct rcu *rcu, struct fib *fib, const struct watch *watch)
{
	const uint64_t start_ns = clock_now_ns();

	for (unsigned i = 0; i < N_CHANGES || !all_have_seen_all(watch); i++) {
		assert_true(clock_now_ns() - start_ns < 400000000000);
		change_routes(fib);
		if (i % 3 == 0)
			change_vlan(fib);
		if (i % 5 == 0)
			change_neighbour(fib);
		if (i % 40 == 0)
			change_vrf(fib);
		if (i % 10 == 0)
			rcu_poll(rcu);
	}
}

static struct fib *watched_fib(void)
{
	struct fib *fib = fib_create(NULL);
	struct fib_change change[N_VLANS + 2];

	for (uint8_t port = 1; port <= 2 * N_VRFS; port++) {
		struct iface settings = {.port = port,
			.peer.bytes[5] = port,
			.has_peer = true,
			.mtu = 1500};
		assert_int_equal(fib_iface_set(fib, port, &settings), 0);
	}
	assert_int_equal(fib_vrf_open(fib, 1, NULL), 0);
	assert_int_equal(fib_vrf_open(fib, 2, NULL), 0); // workers read a VRF once it was open
	fib_vrf_close(fib, 2);
	for (unsigned vrf = 0; vrf < 2; vrf++) {
		set_all_covering(fib, vrf);
		change[vrf] = host_change(vrf, 4, CONNECTED, 24);
		change[vrf].route.hop =
			(struct fib_hop){.iface = MOVING_PORT, .kind = FIB_CONNECTED};
	}
	for (unsigned i = 0; i < N_VLANS; i++) {
		change[2 + i] = host_change(0, 4, VIA_VLANS + (i << 8), 24);
		change[2 + i].route.hop.iface = FIRST_VLAN + i;
	}
	assert_int_equal(fib_change(fib, change, N_VLANS + 2, NULL, NULL), 0);
	return fib;
}

static void what_workers_read_of_links_and_vrfs_fits_together(void **state)
{
	struct rcu *rcu = rcu_create(N_WORKERS, NULL);
	struct fib_live live = {.rcu = rcu};
	struct fib *fib = watched_fib();
	static struct watch watch[N_WORKERS];
	pthread_t thread[N_WORKERS];
	int stop = 0;

	assert_null(fib_live_swap(&live, fib));
	for (unsigned i = 0; i < N_WORKERS; i++) {
		watch[i] = (struct watch){.rcu = rcu_readers(rcu),
			.live = &live,
			.worker = i,
			.stop = &stop};
		for (unsigned k = 0; k < N_WATCHED; k++) {
			watch[i].dst4[k] = 0x14000000 | model_random(0x3fff);
			watch[i].dst6[k].high =
				0x20010db800000000ull | (model_random(0xffffffff) & 0xffff001f);
		}
		assert_int_equal(pthread_create(&thread[i], NULL, run_worker, &watch[i]), 0);
	}
	churn(rcu, fib, watch);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < N_WORKERS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(watch[i].n_wrong, 0);
	}
	assert_ptr_equal(fib_live_swap(&live, NULL), fib);
	fib_destroy(fib);
	rcu_destroy(rcu);
}

// A VLAN's number is reused only after a grace period.
struct slow_worker {
	const struct rcu_readers *rcu;
	int has_reported;
};

static void *report_late(void *arg)
{
	struct slow_worker *worker = arg;

	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	__atomic_store_n(&worker->has_reported, 1, __ATOMIC_RELEASE);
	rcu_reader_report(worker->rcu, 0);
	return NULL;
}

static void gives_no_iface_other_tags_before_the_worker_reports(void **state)
{
	struct rcu *rcu = rcu_create(1, NULL);
	struct fib_live live = {.rcu = rcu};
	struct slow_worker worker = {.rcu = rcu_readers(rcu)};
	struct fib *fib = watched_fib();
	struct iface first = vlan(1), second = vlan(2);
	pthread_t thread;

	fib_live_swap(&live, fib);
	assert_int_equal(fib_iface_set(fib, FIRST_VLAN, &first), 0);
	first.mtu = 1300;
	rcu_reader_online(worker.rcu, 0);
	assert_int_equal(fib_iface_set(fib, FIRST_VLAN, &first), 0); // does not wait
	fib_iface_delete(fib, FIRST_VLAN);
	assert_int_equal(fib_iface_set(fib, FIRST_VLAN, &first), 0); // nor does setting it again
	assert_int_equal(pthread_create(&thread, NULL, report_late, &worker), 0);
	assert_int_equal(fib_iface_set(fib, FIRST_VLAN, &second), 0);
	assert_int_equal(__atomic_load_n(&worker.has_reported, __ATOMIC_ACQUIRE), 1);
	pthread_join(thread, NULL);
	rcu_reader_offline(worker.rcu, 0);
	fib_live_swap(&live, NULL);
	fib_destroy(fib);
	rcu_destroy(rcu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_workers_read_of_links_and_vrfs_fits_together),
		cmocka_unit_test(gives_no_iface_other_tags_before_the_worker_reports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
