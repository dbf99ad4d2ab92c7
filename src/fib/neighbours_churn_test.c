// Random changes of routes, neighbours, interfaces and VRFs, each compared with plain lists: where
// packets to a few hosts, present in all VRFs, are sent. Tests only.
#include "fib/fib.h"

#include "fib/churn.h"
#include "fib/table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { N_VRFS = 3, N_IFACES = 4, N_HOSTS = 16, N_STEPS = 20000 };

// Model of an interface: two ports, and a VLAN on each.
struct iface_model {
	uint16_t number;
	bool is_reported;
	struct iface reported;   // kept after the interface is deleted
	uint8_t mac[2][N_HOSTS]; // last byte, by family and host; 0: unknown
};

static const uint16_t number_of_vrf[N_VRFS] = {0, 1, 4095};
static struct model model[N_VRFS];
static struct iface_model ifaces[N_IFACES];

static struct wire_addr host_addr(uint8_t family, unsigned host)
{
	model_bits base = family == 4 ? (model_bits)10 << 120 : (model_bits)0x20010db8 << 96;

	return model_addr(family, base | (model_bits)host << (family == 4 ? 96 : 0));
}

static uint8_t random_family(void)
{
	return model_random(2) ? 4 : 6;
}

static struct fib_hop random_hop(uint8_t family)
{
	const struct iface_model *iface = &ifaces[model_random(N_IFACES)];

	if (!model_random(8))
		return (struct fib_hop){.kind = FIB_LINUX, .iface = IFACE_NONE};
	if (model_random(3))
		return (struct fib_hop){.kind = FIB_CONNECTED, .iface = iface->number};
	return (struct fib_hop){.kind = FIB_VIA,
		.iface = iface->number,
		.via = host_addr(family, model_random(N_HOSTS))};
}

static void change_route(struct fib *fib)
{
	const unsigned vrf = model_random(N_VRFS);
	const uint8_t family = random_family();
	struct fib_change change = {.op = FIB_REPLACE,
		.route = {.vrf = number_of_vrf[vrf], .hop = random_hop(family)}};

	change.route.prefix.addr = host_addr(family, model_random(N_HOSTS));
	change.route.prefix.len = (family == 4 ? 28 : 124) + model_random(5);
	wire_prefix_mask(&change.route.prefix);
	if (model_find(&model[vrf], &change.route.prefix) >= 0 && model_random(2))
		change.op = FIB_DELETE;
	if (!fib_vrf_is_open(fib, number_of_vrf[vrf])) {
		assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), -EINVAL);
		return;
	}
	assert_int_equal(churn_apply(&model[vrf], &change), 0);
	assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
}

static void change_neighbour(struct fib *fib)
{
	struct iface_model *iface = &ifaces[model_random(N_IFACES)];
	const uint8_t family = random_family();
	const unsigned host = model_random(N_HOSTS);
	const struct wire_addr addr = host_addr(family, host);
	uint8_t *known = &iface->mac[family == 6][host];
	const struct wire_mac mac = {{2, 0, 0, 0, 0, 1 + model_random(200)}};

	if (model_random(2)) {
		assert_int_equal(fib_neighbour_delete(fib, iface->number, &addr),
			*known ? 0 : -ENOENT);
		*known = 0;
		return;
	}
	assert_int_equal(fib_neighbour_set(fib, iface->number, &addr, &mac, NULL), 0);
	*known = mac.bytes[5];
}

static void change_iface(struct fib *fib)
{
	const unsigned at = model_random(N_IFACES);
	struct iface_model *iface = &ifaces[at];
	struct iface settings = {.port = at % 2,
		.vrf = number_of_vrf[model_random(N_VRFS)],
		.mac.bytes = {2, 1, 0, 0, 0, at},
		.n_tags = at / 2,
		.mtu = 1000 + model_random(500),
		.tag = {{0x8100, 5 + model_random(2)}}};

	if (!model_random(4)) {
		fib_iface_delete(fib, iface->number);
		iface->is_reported = false;
		return;
	}
	bool is_sound = fib_vrf_is_open(fib, settings.vrf);
	assert_int_equal(fib_iface_set(fib, iface->number, &settings), is_sound ? 0 : -EINVAL);
	if (!is_sound)
		return;
	iface->reported = settings;
	iface->is_reported = true;
}

static void change_vrf(struct fib *fib)
{
	const unsigned vrf = 1 + model_random(N_VRFS - 1);

	if (fib_vrf_is_open(fib, number_of_vrf[vrf])) {
		fib_vrf_close(fib, number_of_vrf[vrf]);
		model[vrf].n = 0;
		return;
	}
	assert_int_equal(fib_vrf_open(fib, number_of_vrf[vrf], NULL), 0);
	churn_reset(&model[vrf], number_of_vrf[vrf]);
}

// Checks what a packet routed to an interface gets: the interface's settings, and the MAC's last
// byte.
static void check_way_out(const struct fib *fib, const struct fib_answer *answer,
	const struct iface_model *iface, uint8_t mac)
{
	const struct fib_hop_entry entry = fib_hop_load(&fib->view.hops[answer->hop_id]);
	const struct iface_tags tags = iface_wire_tags(&iface->reported);
	const uint8_t *header = entry.macs;

	assert_int_equal(answer->hop.iface, iface->number);
	if (!iface->is_reported || !mac) {
		assert_int_equal(answer->verdict, VERDICT_NEIGHBOUR_UNRESOLVED);
		assert_int_equal(fib_entry_verdict(&entry), VERDICT_NEIGHBOUR_UNRESOLVED);
		return;
	}
	assert_int_equal(answer->verdict, VERDICT_FORWARD);
	assert_int_equal(answer->mac.bytes[5], mac);
	if (entry.kind == FIB_HOP_TEMPLATE)
		header = fib_template_load(&fib->view, answer->hop_id)->bytes;
	assert_int_equal(header[5], mac);
	assert_memory_equal(header + 6, iface->reported.mac.bytes, 6);
	assert_int_equal(entry.port, iface->reported.port);
	assert_int_equal(entry.frame_max, iface->reported.mtu + 14);
	assert_int_equal(entry.kind, iface->reported.n_tags ? FIB_HOP_TEMPLATE : FIB_HOP_PLAIN);
	if (iface->reported.n_tags)
		assert_memory_equal(header + 12, &tags, 4 * iface->reported.n_tags);
}

// The summary table agrees with the entries; its limit is that of the smallest entry.
static void check_plain(const struct fib *fib)
{
	const struct fib_plain_hops *plain = fib->view.plain;
	uint16_t least = UINT16_MAX;

	for (unsigned id = 0; id < FIB_PLAIN_HOPS; id++) {
		struct fib_hop_entry entry = fib_hop_load(&fib->view.hops[id]);
		bool is_plain = id <= fib->hops.max_id &&
		                fib->hops.hop[id].key.kind < N_FIB_KINDS &&
		                entry.kind == FIB_HOP_PLAIN;

		assert_int_equal(plain->port[id], is_plain ? entry.port : FIB_NOT_PLAIN);
		if (is_plain && entry.frame_max < least)
			least = entry.frame_max;
	}
	assert_int_equal(plain->frame_max, least);
}

static const struct iface_model *iface_of(uint16_t number)
{
	for (unsigned i = 0; i < N_IFACES; i++)
		if (ifaces[i].number == number)
			return &ifaces[i];
	fail();
	return NULL;
}

static void check_host(const struct fib *fib, unsigned vrf, uint8_t family, unsigned host)
{
	const struct wire_addr addr = host_addr(family, host);
	const int best = model_longest(&model[vrf], &addr);
	struct fib_answer answer;

	rib_lookup(fib, number_of_vrf[vrf], &addr, &answer);
	assert_int_equal(fib_lookup(fib, number_of_vrf[vrf], &addr), answer.hop_id);
	assert_int_equal(answer.found, best >= 0);
	if (best < 0) {
		assert_int_equal(answer.verdict, VERDICT_NO_ROUTE);
		return;
	}
	const struct fib_hop *hop = &model[vrf].route[best].hop;
	if (hop->kind == FIB_LINUX) {
		assert_int_equal(answer.verdict, VERDICT_LINUX);
		return;
	}
	const struct iface_model *iface = iface_of(hop->iface);
	unsigned to = hop->kind == FIB_VIA ? hop->via.bytes[family == 4 ? 3 : 15] : host;
	bool may = hop->kind == FIB_VIA || iface->reported.vrf == number_of_vrf[vrf];
	check_way_out(fib, &answer, iface, may ? iface->mac[family == 6][to] : 0);
}

static void agrees_with_plain_lists_after_each_step(void **state)
{
	struct fib *fib = fib_create(NULL);

	for (unsigned vrf = 0; vrf < N_VRFS; vrf++) {
		if (vrf)
			assert_int_equal(fib_vrf_open(fib, number_of_vrf[vrf], NULL), 0);
		churn_reset(&model[vrf], number_of_vrf[vrf]);
	}
	for (unsigned i = 0; i < N_IFACES; i++)
		ifaces[i] = (struct iface_model){.number = i < 2 ? i : 1000 + i};
	for (unsigned step = 0; step < N_STEPS; step++) {
		unsigned what = model_random(100);
		if (what < 45)
			change_route(fib);
		else if (what < 85)
			change_neighbour(fib);
		else if (what < 98)
			change_iface(fib);
		else
			change_vrf(fib);
		check_plain(fib);
		for (unsigned vrf = 0; vrf < N_VRFS; vrf++)
			for (unsigned host = 0; host < N_HOSTS; host++) {
				check_host(fib, vrf, 4, host);
				check_host(fib, vrf, 6, host);
			}
	}
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_plain_lists_after_each_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
