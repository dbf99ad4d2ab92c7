// VXLAN devices and their remote ends: what workers find, which hops lead there, also while a
// worker reads them (for ThreadSanitizer). Tests only.
#include "fib/fib.h"

#include "fib/fib_fast.h"
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

enum { UNDER = 1, DEVICE = 300, NUMBER = 5, UDP_PORT = 4789, VNI = 0x123456 };
#ifdef __SANITIZE_THREAD__
enum { CHANGES = 200 };
#else
enum { CHANGES = 3000 };
#endif

static const struct wire_addr local = {.family = 4, .bytes = {10, 0, 0, 1}};
static const struct wire_addr gateway = {.family = 4, .bytes = {10, 0, 0, 9}};
static const struct wire_addr remote = {.family = 4, .bytes = {20, 0, 0, 2}};

static struct iface device(uint32_t vni)
{
	return (struct iface){.mtu = 1450,
		.is_bridge = true,
		.tunnel = {.kind = IFACE_VXLAN,
			.local = local,
			.ttl = 64,
			.tos = 0x28,
			.vxlan = NUMBER,
			.dest_port = UDP_PORT,
			.key = vni}};
}

static void set_device(struct fib *fib, uint16_t iface, const struct iface *settings)
{
	assert_int_equal(fib_iface_set(fib, iface, settings), 0);
}

static void route(struct fib *fib, uint8_t op, const char *prefix, const struct wire_addr *via)
{
	struct fib_change change = {.op = op,
		.route.hop = {.kind = FIB_VIA, .iface = UNDER, .via = *via}};

	assert_int_equal(wire_prefix_parse(prefix, &change.route.prefix), 0);
	assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
}

static struct fib *open_fib(void)
{
	struct fib *fib = fib_create(NULL);
	const struct iface under = {.port = UNDER, .mtu = 1500};

	assert_non_null(fib);
	assert_int_equal(fib_iface_set(fib, UNDER, &under), 0);
	return fib;
}

static uint32_t hold(struct fib *fib, const struct wire_addr *addr)
{
	uint32_t number;

	assert_int_equal(fib_vtep_hold(fib, 0, addr, &number, NULL), 0);
	assert_int_equal(fib_vtep_find(fib, 0, addr), number);
	return number;
}

static uint16_t find(const struct fib *fib, bool is_ip6, uint16_t vrf, uint16_t port, uint32_t vni)
{
	const struct fib_vxlan_ends *ends = fib_vxlan_ends_load(fib->view.overlay);

	return ends ? fib_vxlan_find(ends, fib_vxlan_key(is_ip6, vrf, port, vni)) : FIB_MAX_VXLANS;
}

static void a_device_has_its_header_and_is_found_by_its_vni(void **state)
{
	static const uint8_t header[] = {0x45, 0x28, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 0,
		0, 0, 0, 0, 0, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0x12, 0x34, 0x56, 0};
	struct fib *fib = open_fib();
	struct iface settings = device(VNI);

	assert_null(fib_vxlan_ends_load(fib->view.overlay));
	set_device(fib, DEVICE, &settings);
	const struct fib_vxlan *vxlan = fib_vxlan_load(fib->view.overlay, NUMBER);
	assert_int_equal(vxlan->n_bytes, sizeof(header));
	assert_memory_equal(vxlan->bytes, header, sizeof(header));
	assert_int_equal(vxlan->first_port, 49152);
	assert_int_equal(vxlan->n_ports, 16384);
	assert_int_equal(find(fib, false, 0, UDP_PORT, VNI), NUMBER);
	assert_int_equal(find(fib, true, 0, UDP_PORT, VNI), FIB_MAX_VXLANS);
	assert_int_equal(find(fib, false, 1, UDP_PORT, VNI), FIB_MAX_VXLANS);
	assert_int_equal(find(fib, false, 0, 8472, VNI), FIB_MAX_VXLANS);
	assert_true(fib_vxlan_has_port(fib_vxlan_ends_load(fib->view.overlay), UDP_PORT));
	settings = device(7);
	settings.tunnel.source_port = settings.tunnel.last_source_port = 1000;
	set_device(fib, DEVICE, &settings);
	assert_int_equal(find(fib, false, 0, UDP_PORT, VNI), FIB_MAX_VXLANS);
	assert_int_equal(find(fib, false, 0, UDP_PORT, 7), NUMBER);
	assert_int_equal(fib_vxlan_load(fib->view.overlay, NUMBER)->n_ports, 1);
	fib_iface_delete(fib, DEVICE);
	assert_null(fib_vxlan_ends_load(fib->view.overlay));
	assert_null(fib_vxlan_load(fib->view.overlay, NUMBER));
	fib_destroy(fib);
}

static void what_is_no_device_is_refused(void **state)
{
	struct fib *fib = open_fib();
	struct iface settings = device(IFACE_MAX_VNI + 1);

	assert_int_equal(fib_iface_set(fib, DEVICE, &settings), -EINVAL);
	settings = device(1);
	settings.is_bridge = false;
	assert_int_equal(fib_iface_set(fib, DEVICE, &settings), -EINVAL);
	settings = device(1);
	settings.tunnel.vxlan = IFACE_MAX_VXLANS;
	assert_int_equal(fib_iface_set(fib, DEVICE, &settings), -EINVAL);
	settings = device(1);
	settings.tunnel.dest_port = 0;
	assert_int_equal(fib_iface_set(fib, DEVICE, &settings), -EINVAL);
	settings = device(1);
	settings.tunnel.source_port = 2;
	assert_int_equal(fib_iface_set(fib, DEVICE, &settings), -EINVAL);
	assert_int_equal(fib_iface_set(fib, UNDER, &(struct iface){.mtu = 1500, .port = UNDER}), 0);
	fib_destroy(fib);
}

static uint32_t hop_of(const struct fib *fib, uint32_t vtep)
{
	return fib->view.overlay->vtep[vtep].hop;
}

static void a_remote_end_follows_its_route(void **state)
{
	const struct wire_mac mac = {{2, 0, 0, 0, 0, 9}};
	struct fib *fib = open_fib();
	const uint32_t vtep = hold(fib, &remote);

	assert_int_equal(hop_of(fib, vtep), 0);
	route(fib, FIB_ADD, "20.0.0.0/8", &gateway);
	assert_int_equal(hop_of(fib, vtep), fib_lookup(fib, 0, &remote));
	assert_int_not_equal(hop_of(fib, vtep), 0);
	assert_int_equal(fib_verdict_load(&fib->view, hop_of(fib, vtep)),
		VERDICT_NEIGHBOUR_UNRESOLVED);
	assert_int_equal(fib_neighbour_set(fib, UNDER, &gateway, &mac, NULL), 0);
	assert_int_equal(fib_verdict_load(&fib->view, hop_of(fib, vtep)), VERDICT_FORWARD);
	route(fib, FIB_ADD, "20.0.0.2/32", &local);
	assert_int_equal(hop_of(fib, vtep), fib_lookup(fib, 0, &remote));
	route(fib, FIB_DELETE, "20.0.0.2/32", &local);
	assert_int_equal(fib_verdict_load(&fib->view, hop_of(fib, vtep)), VERDICT_FORWARD);
	route(fib, FIB_DELETE, "20.0.0.0/8", &gateway);
	assert_int_equal(hop_of(fib, vtep), 0);
	assert_int_equal(hold(fib, &remote), vtep);
	fib_vtep_release(fib, vtep);
	assert_int_equal(fib_vtep_find(fib, 0, &remote), vtep);
	fib_vtep_release(fib, vtep);
	assert_int_equal(fib_vtep_find(fib, 0, &remote), 0);
	fib_destroy(fib);
}

static void a_group_has_members_that_are_held(void **state)
{
	struct fib *fib = open_fib();
	const uint32_t members[] = {hold(fib, &remote), hold(fib, &gateway)};
	const uint32_t unknown[] = {members[0], 99};
	struct error error;
	uint32_t group;

	assert_int_equal(fib_vtep_hold_group(fib, unknown, 2, &group, &error), -EINVAL);
	assert_int_equal(fib_vtep_hold_group(fib, members, 2, &group, NULL), 0);
	fib_vtep_release(fib, members[0]);
	assert_int_equal(fib_vtep_find(fib, 0, &remote), members[0]);
	assert_int_equal(fib->view.overlay->vtep[group].group->n, 2);
	assert_int_equal(fib_vtep_set_group(fib, group, unknown, 2, &error), -EINVAL);
	assert_int_equal(fib_vtep_set_group(fib, group, &members[1], 1, NULL), 0);
	assert_int_equal(fib->view.overlay->vtep[group].group->vtep[0], members[1]);
	assert_int_equal(fib_vtep_find(fib, 0, &remote), 0);
	assert_int_equal(fib_vtep_hold_group(fib, &group, 1, &group, &error), -EINVAL);
	fib_vtep_release(fib, group);
	fib_vtep_release(fib, members[1]);
	assert_int_equal(fib_vtep_find(fib, 0, &gateway), 0);
	fib_destroy(fib);
}

static void a_reload_keeps_numbers(void **state)
{
	struct fib *from = open_fib(), *to = open_fib();
	const uint32_t a = hold(from, &gateway), b = hold(from, &remote);

	fib_vtep_release(from, a);
	route(to, FIB_ADD, "20.0.0.0/8", &gateway);
	assert_int_equal(fib_copy_vteps(to, from, NULL), 0);
	assert_int_equal(fib_vtep_find(to, 0, &remote), b);
	assert_int_equal(hop_of(to, b), fib_lookup(to, 0, &remote));
	assert_int_equal(hold(to, &gateway), a);
	fib_destroy(from);
	fib_destroy(to);
}

// 4096 devices and 64,000 remote ends; with the MAC table's part (mac_remotes) less than 16 MiB.
static void many_take_little_memory(void **state)
{
	enum { VTEPS = 64000 };
	struct fib *fib = open_fib();
	struct fib_usage usage;

	for (unsigned i = 0; i < IFACE_MAX_VXLANS; i++) {
		struct iface settings = device(i);

		settings.tunnel.vxlan = i;
		set_device(fib, DEVICE + i, &settings);
	}
	for (uint32_t i = 0; i < VTEPS; i++)
		hold(fib, &(struct wire_addr){.family = 4, .bytes = {30, i >> 16, i >> 8, i}});
	fib_usage(fib, &usage);
	assert_true(usage.worker_bytes_vxlan < 4 << 20);
	for (unsigned i = 0; i < IFACE_MAX_VXLANS; i += 100)
		assert_int_equal(find(fib, false, 0, UDP_PORT, i), i);
	fib_destroy(fib);
}

struct reader {
	const struct fib_live *live;
	const struct rcu_readers *readers;
	uint64_t n_read, n_wrong;
	uint32_t vtep;
	int stop;
};

// As a worker sends and receives.
static void *read_all(void *arg)
{
	struct reader *reader = arg;

	rcu_reader_online(reader->readers, 0);
	while (!__atomic_load_n(&reader->stop, __ATOMIC_RELAXED)) {
		const struct fib_view *view = fib_live_view(reader->live);
		const struct fib_vxlan_ends *ends = fib_vxlan_ends_load(view->overlay);
		const struct fib_vxlan *vxlan = fib_vxlan_load(view->overlay, NUMBER);
		const uint32_t hop =
			__atomic_load_n(&view->overlay->vtep[reader->vtep].hop, __ATOMIC_ACQUIRE);

		if (ends)
			reader->n_wrong += !fib_vxlan_has_port(ends, UDP_PORT);
		if (vxlan)
			reader->n_wrong += vxlan->iface != DEVICE || vxlan->n_bytes != 36;
		reader->n_wrong += fib_verdict_load(view, hop) == VERDICT_FORWARD;
		__atomic_store_n(&reader->n_read, reader->n_read + 1, __ATOMIC_RELAXED);
		rcu_reader_report(reader->readers, 0);
	}
	rcu_reader_offline(reader->readers, 0);
	return NULL;
}

static void workers_read_while_all_changes(void **state)
{
	struct rcu *rcu = rcu_create(1, NULL);
	struct fib_live live = {.rcu = rcu};
	struct fib *fib = open_fib();
	struct reader reader = {.live = &live,
		.readers = rcu_readers(rcu),
		.vtep = hold(fib, &remote)};
	pthread_t thread;

	fib_live_swap(&live, fib);
	assert_int_equal(pthread_create(&thread, NULL, read_all, &reader), 0);
	for (unsigned i = 0; i < CHANGES || !__atomic_load_n(&reader.n_read, __ATOMIC_RELAXED);
		i++) {
		const struct iface settings = device(i % 1000);

		set_device(fib, DEVICE, &settings);
		route(fib, FIB_REPLACE, "20.0.0.0/8", i % 2 ? &gateway : &local);
		if (i % 7 == 0)
			fib_iface_delete(fib, DEVICE);
	}
	__atomic_store_n(&reader.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(reader.n_wrong, 0);
	fib_live_swap(&live, NULL);
	fib_destroy(fib);
	rcu_destroy(rcu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_has_its_header_and_is_found_by_its_vni),
		cmocka_unit_test(what_is_no_device_is_refused),
		cmocka_unit_test(a_remote_end_follows_its_route),
		cmocka_unit_test(a_group_has_members_that_are_held),
		cmocka_unit_test(a_reload_keeps_numbers),
		cmocka_unit_test(many_take_little_memory),
		cmocka_unit_test(workers_read_while_all_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
