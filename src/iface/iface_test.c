// A table of interfaces: settings, and what workers read of them. Tests only.
#include "iface/iface.h"

#include "base/bits.h"
#include "iface/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static const struct wire_mac own = {{2, 0, 0, 0, 0, 1}}, other = {{2, 0, 0, 0, 0, 2}},
			     third = {{2, 0, 0, 0, 0, 3}};

static unsigned random_below(unsigned n)
{
	static uint64_t state = 88172645463325252ull; // xorshift

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % n;
}

static struct iface port_link(uint16_t port)
{
	return (struct iface){.mac = own, .port = port, .mtu = 1500};
}

static struct iface vlan(uint16_t port, uint16_t outer, uint16_t inner)
{
	struct iface iface = port_link(port);

	iface.tag[0] = (struct iface_tag){inner ? 0x88a8 : 0x8100, outer};
	iface.tag[1] = (struct iface_tag){0x8100, inner};
	iface.n_tags = inner ? 2 : 1;
	return iface;
}

static void set(struct iface_table *table, uint16_t iface, struct iface settings)
{
	assert_true(iface_is_sound(table, iface, &settings));
	if (iface_moves(table, iface, &settings)) {
		iface_delete(table, iface);
		iface_publish(table, iface);
	}
	iface_set(table, iface, &settings);
	iface_publish(table, iface);
}

static void del(struct iface_table *table, uint16_t iface)
{
	if (!iface_current(table, iface))
		return;
	iface_delete(table, iface);
	iface_publish(table, iface);
}

static uint16_t tagged(const struct iface_table *table, uint16_t port, uint16_t outer,
	uint16_t inner)
{
	const struct iface settings = vlan(0, outer, inner);
	const struct iface_tags frame = iface_wire_tags(&settings);

	return iface_tagged(&table->view, port, &frame);
}

static struct iface_table *make(void)
{
	struct iface_table *table = calloc(1, sizeof(*table));

	assert_non_null(table);
	assert_int_equal(iface_table_open(table), 0);
	return table;
}

static void drop(struct iface_table *table)
{
	iface_table_close(table);
	free(table);
}

static struct iface_table *with_ports(unsigned n)
{
	struct iface_table *table = make();

	for (unsigned port = 0; port < n; port++)
		set(table, port, port_link(port));
	return table;
}

static void keeps_the_latest_settings_of_a_deleted_iface(void **state)
{
	struct iface_table *table = with_ports(1);
	struct iface settings = vlan(0, 5, 0);

	assert_null(iface_latest(table, 9));
	settings.vrf = 7;
	set(table, 9, settings);
	del(table, 9);
	assert_null(iface_current(table, 9));
	assert_int_equal(iface_latest(table, 9)->tag[0].vid, 5);
	assert_int_equal(iface_vrf(table, 9), 7);
	assert_false(iface_moves(table, 9, &settings));
	settings.tag[0].vid = 6;
	assert_true(iface_moves(table, 9, &settings));
	drop(table);
}

static void a_bridge_has_an_index_of_no_port(void **state)
{
	struct iface_table *table = with_ports(1);
	struct iface bridge = {.is_bridge = true, .mac = own, .mtu = 1500, .vrf = 3};

	assert_false(iface_is_sound(table, 0, &bridge));
	assert_false(iface_is_sound(table, IFACE_MAX_PORTS - 1, &bridge));
	set(table, IFACE_MAX_PORTS, bridge);
	const struct iface_in in = iface_in_load(&table->view, IFACE_MAX_PORTS);
	assert_int_equal(in.kind, IFACE_BRIDGE);
	assert_int_equal(in.vrf, 3);
	assert_int_equal(in.flags | in.n_macs | in.n_tags, 0);
	bridge.n_tags = 1;
	assert_false(iface_is_sound(table, IFACE_MAX_PORTS, &bridge));
	bridge.n_tags = 0;
	bridge.is_bridge = false;
	assert_true(iface_moves(table, IFACE_MAX_PORTS, &bridge));
	drop(table);
}

static void a_vlan_may_be_on_a_bridge(void **state)
{
	enum { BRIDGE = 300, ON = 400 };
	struct iface_table *table = with_ports(2);
	struct iface on = vlan(BRIDGE, 10, 0),
		     bridge = {.is_bridge = true, .mac = own, .mtu = 1500};

	on.is_bridge = true;
	assert_false(iface_is_sound(table, ON, &on)); // there is no bridge
	set(table, BRIDGE, bridge);
	assert_false(iface_is_sound(table, 5, &on)); // the index of a port
	assert_false(iface_is_sound(table, BRIDGE, &on));
	set(table, ON, on);
	assert_int_equal(tagged(table, BRIDGE, 10, 0), ON);
	assert_int_equal(tagged(table, 0, 10, 0), IFACE_NONE);
	assert_int_equal(iface_in_load(&table->view, BRIDGE).n_tags, 1);
	assert_int_equal(iface_in_load(&table->view, ON).kind, IFACE_VLAN);
	assert_false(iface_is_sound(table, ON + 1, &on)); // these tags are taken
	on.port = ON;
	on.tag[0].vid = 11;
	assert_false(iface_is_sound(table, ON + 1, &on)); // on a VLAN
	on = vlan(BRIDGE, 10, 5);
	on.is_bridge = true;
	assert_false(iface_is_sound(table, ON + 1, &on)); // two tags
	on = vlan(0, 10, 0);
	assert_true(iface_moves(table, ON, &on));
	del(table, ON);
	assert_int_equal(tagged(table, BRIDGE, 10, 0), IFACE_NONE);
	assert_int_equal(iface_in_load(&table->view, BRIDGE).n_tags, 0);
	drop(table);
}

static void takes_frames_of_a_port_that_was_never_told_of(void **state)
{
	struct iface_table *table = make();

	for (uint16_t port = 0; port < IFACE_MAX_PORTS; port++) {
		struct iface_in in = iface_in_load(&table->view, port);
		assert_int_equal(in.iface, port);
		assert_int_equal(in.flags | in.vrf | in.n_macs | in.n_tags, 0);
		assert_null(iface_current(table, port));
	}
	assert_int_equal(tagged(table, 0, 10, 0), IFACE_NONE);
	drop(table);
}

static void finds_a_vlan_by_its_port_and_tags(void **state)
{
	struct iface_table *table = with_ports(254);

	set(table, 300, vlan(0, 10, 0));
	set(table, 301, vlan(1, 10, 0));
	set(table, 302, vlan(253, 10, 0));
	set(table, 303, vlan(0, 10, 10));
	set(table, 4095, vlan(0, 4094, 4094));
	assert_int_equal(tagged(table, 0, 10, 0), 300);
	assert_int_equal(tagged(table, 1, 10, 0), 301);
	assert_int_equal(tagged(table, 253, 10, 0), 302);
	assert_int_equal(tagged(table, 0, 10, 10), 303);
	assert_int_equal(tagged(table, 0, 4094, 4094), 4095);
	assert_int_equal(tagged(table, 2, 10, 0), IFACE_NONE);
	assert_int_equal(tagged(table, 0, 11, 0), IFACE_NONE);
	assert_int_equal(tagged(table, 1, 10, 10), IFACE_NONE);
	struct iface_tags service = {{0x88, 0xa8, 0, 10}}; // another TPID is another interface
	assert_int_equal(iface_tagged(&table->view, 0, &service), IFACE_NONE);
	drop(table);
}

static void tells_workers_how_many_tags_to_look_for(void **state)
{
	struct iface_table *table = with_ports(2);

	set(table, 10, vlan(0, 10, 0));
	set(table, 11, vlan(0, 11, 0));
	set(table, 12, vlan(0, 10, 20));
	assert_int_equal(iface_in_load(&table->view, 0).n_tags, 2);
	assert_int_equal(iface_in_load(&table->view, 1).n_tags, 0);
	assert_int_equal(iface_in_load(&table->view, 10).n_tags, 1);
	del(table, 12);
	assert_int_equal(iface_in_load(&table->view, 0).n_tags, 1);
	set(table, 0, port_link(0)); // set again: VLANs are unaffected
	assert_int_equal(iface_in_load(&table->view, 0).n_tags, 1);
	del(table, 10);
	del(table, 11);
	assert_int_equal(iface_in_load(&table->view, 0).n_tags, 0);
	drop(table);
}

static void tells_workers_flags_vrf_and_addresses(void **state)
{
	struct iface_table *table = with_ports(1);
	struct iface settings = port_link(0);

	settings.flags = IFACE_LINUX4 | IFACE_REDIRECTS6;
	settings.vrf = 4095;
	settings.macs[settings.n_macs++] = other;
	set(table, 0, settings);
	struct iface_in in = iface_in_load(&table->view, 0);
	assert_int_equal(in.flags, IFACE_LINUX4 | IFACE_REDIRECTS6);
	assert_int_equal(in.vrf, 4095);
	assert_int_equal(in.n_macs, 1);
	assert_int_equal(in.kind, IFACE_PORT);
	assert_true(iface_has_mac(&table->view, 0, own.bytes));
	assert_true(iface_has_mac(&table->view, 0, other.bytes));
	assert_false(iface_has_mac(&table->view, 0, third.bytes));
	assert_false(iface_has_mac(&table->view, 1, (uint8_t[6]){0}));
	assert_memory_equal(iface_current(table, 0), &settings, sizeof(settings));
	settings.n_macs = 0;
	set(table, 0, settings);
	assert_false(iface_has_mac(&table->view, 0, other.bytes));
	settings = vlan(0, 5, 0);
	settings.mac = third; // not the port's: workers have to check for it
	set(table, 9, settings);
	assert_int_equal(iface_in_load(&table->view, 9).n_macs, 1);
	assert_int_equal(iface_in_load(&table->view, 9).kind, IFACE_VLAN);
	assert_true(iface_has_mac(&table->view, 9, third.bytes));
	drop(table);
}

static void drops_what_comes_in_on_a_deleted_iface(void **state)
{
	struct iface_table *table = with_ports(1);

	set(table, 9, vlan(0, 5, 0));
	del(table, 9);
	assert_int_equal(tagged(table, 0, 5, 0), IFACE_NONE);
	assert_int_equal(iface_in_load(&table->view, 9).flags, IFACE_DOWN);
	del(table, 0);
	assert_int_equal(iface_in_load(&table->view, 0).flags, IFACE_DOWN);
	del(table, 0);
	del(table, IFACE_NONE);
	set(table, 0, port_link(0));
	assert_int_equal(iface_in_load(&table->view, 0).flags, 0);
	drop(table);
}

// Adds and deletes interfaces in random order, so that slots are deleted and reused; an unknown tag
// must still be found missing quickly, which would fail if the table filled up with deleted slots.
static void finds_every_vlan_while_others_come_and_go(void **state)
{
	enum { N_PORTS = 4, N_INNER = 4, N_STEPS = 300000 };
	static uint16_t iface_of[N_PORTS][4095][N_INNER];
	static struct iface settings_of[IFACE_MAX]; // mtu 0: none
	struct iface_table *table = with_ports(N_PORTS);

	memset(iface_of, 0xff, sizeof(iface_of));
	for (unsigned i = 0; i < N_STEPS; i++) {
		const uint16_t iface = N_PORTS + random_below(IFACE_MAX - N_PORTS);
		struct iface *has = &settings_of[iface];
		if (has->mtu) {
			uint16_t *known = &iface_of[has->port][has->tag[0].vid][has->tag[1].vid];
			assert_int_equal(*known, iface);
			assert_int_equal(tagged(table, has->port, has->tag[0].vid, has->tag[1].vid),
				iface);
			*known = IFACE_NONE;
			has->mtu = 0;
			del(table, iface);
			continue;
		}
		struct iface settings =
			vlan(random_below(N_PORTS), 1 + random_below(4094), random_below(N_INNER));
		uint16_t *known =
			&iface_of[settings.port][settings.tag[0].vid][settings.tag[1].vid];
		assert_int_equal(iface_is_sound(table, iface, &settings), *known == IFACE_NONE);
		if (*known != IFACE_NONE)
			continue;
		set(table, iface, settings);
		*known = iface;
		*has = settings;
	}
	for (unsigned port = 0; port < N_PORTS; port++)
		for (uint16_t outer = 1; outer < 4095; outer++)
			for (uint16_t inner = 0; inner < N_INNER; inner++)
				assert_int_equal(tagged(table, port, outer, inner),
					iface_of[port][outer][inner]);
	for (unsigned iface = N_PORTS; iface < IFACE_MAX; iface++)
		del(table, iface);
	for (unsigned at = 0; at < IFACE_SLOTS; at++)
		assert_int_equal(table->slot[at].tags, SLOT_EMPTY);
	drop(table);
}

// 65,534 interfaces: every index below IFACE_MAX. All are found, have their own VRF and flags,
// and can be deleted again.
static void holds_as_many_vlans_as_there_are_indices(void **state)
{
	enum { N_PORTS = IFACE_MAX_PORTS };
	struct iface_table *table = with_ports(N_PORTS);

	for (unsigned i = N_PORTS; i < IFACE_MAX; i++) {
		struct iface settings = vlan(i % N_PORTS, 1 + i % 4094, i / 4094);
		settings.vrf = i % IFACE_MAX_VRFS;
		settings.flags = i & IFACE_LINUX4;
		set(table, i, settings);
	}
	for (unsigned i = N_PORTS; i < IFACE_MAX; i++) {
		assert_int_equal(tagged(table, i % N_PORTS, 1 + i % 4094, i / 4094), i);
		struct iface_in in = iface_in_load(&table->view, i);
		assert_int_equal(in.iface, i);
		assert_int_equal(in.vrf, i % IFACE_MAX_VRFS);
		assert_int_equal(in.flags, i & IFACE_LINUX4);
	}
	struct iface more = vlan(0, 4094, 4094);
	assert_false(iface_is_sound(table, IFACE_NONE, &more));
	for (unsigned i = N_PORTS; i < IFACE_MAX; i++)
		del(table, i);
	for (unsigned port = 0; port < N_PORTS; port++)
		assert_int_equal(iface_in_load(&table->view, port).n_tags, 0);
	drop(table);
}

// Memory of this process, in bytes.
static size_t resident_bytes(void)
{
	size_t n_pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*s %zu", &n_pages), 1);
	fclose(file);
	return n_pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void takes_little_memory_for_a_few_interfaces(void **state)
{
	drop(with_ports(4)); // makes code and stack resident first
	const size_t before = resident_bytes();
	struct iface_table *table = with_ports(4);

	for (unsigned i = 4; i < 20; i++)
		set(table, i, vlan(0, i, 0));
	assert_in_range(resident_bytes() - before, 4096, 1 << 20); // huge pages: 2 MiB each
	drop(table);
}

static void refuses_what_is_no_iface(void **state)
{
	struct iface_table *table = with_ports(2);
	struct iface bad[] = {port_link(1), vlan(IFACE_MAX_PORTS, 5, 0), vlan(0, 0, 0),
		vlan(0, 4095, 0), vlan(0, 5, 0), vlan(0, 5, 0), vlan(0, 5, 0), vlan(0, 5, 0),
		vlan(0, 5, 0), vlan(0, 10, 20)};

	set(table, 8, vlan(0, 10, 20));
	bad[4].vrf = IFACE_MAX_VRFS;
	bad[5].mtu = 67;
	bad[6].mtu = 9601;
	bad[7].n_macs = IFACE_MACS + 1;
	bad[8].tag[0].tpid = 0x9100;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(iface_is_sound(table, 9, &bad[i]), false);
		assert_null(iface_current(table, 9));
		assert_int_equal(iface_is_sound(table, IFACE_MAX, &bad[i]), false);
	}
	bad[0] = vlan(0, 11, 0);
	bad[0].n_tags = 3;
	assert_int_equal(iface_is_sound(table, 9, &bad[0]), false);
	bad[0].n_tags = 1;
	assert_int_equal(iface_is_sound(table, 0, &bad[0]), false); // the port's own number
	assert_int_equal(iface_is_sound(table, 9, &bad[0]), true);
	drop(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_latest_settings_of_a_deleted_iface),
		cmocka_unit_test(a_bridge_has_an_index_of_no_port),
		cmocka_unit_test(a_vlan_may_be_on_a_bridge),
		cmocka_unit_test(takes_frames_of_a_port_that_was_never_told_of),
		cmocka_unit_test(finds_a_vlan_by_its_port_and_tags),
		cmocka_unit_test(tells_workers_how_many_tags_to_look_for),
		cmocka_unit_test(tells_workers_flags_vrf_and_addresses),
		cmocka_unit_test(drops_what_comes_in_on_a_deleted_iface),
		cmocka_unit_test(finds_every_vlan_while_others_come_and_go),
		cmocka_unit_test(holds_as_many_vlans_as_there_are_indices),
		cmocka_unit_test(takes_little_memory_for_a_few_interfaces),
		cmocka_unit_test(refuses_what_is_no_iface),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
