// VRFs, ids, addresses, dumps and their sweep: synthetic events, a real fib. Tests only.
#include "netlink/fake_linux.h"
#include "netlink/ifaces_inside.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <stdio.h>
#include <string.h>

static int setup(void **state)
{
	fake_setup(state);
	fake_n_calls = 0;
	return 0;
}

static void add(struct event_link iface)
{
	fake_router(&fake, &iface);
	fake_flush(&fake);
}

static void put_in(struct event_link iface, int master)
{
	iface.master = master;
	add(iface);
}

static uint16_t vrf_of(int ifindex)
{
	const struct iface *iface = fake_fib_iface(&fake, ifindex);

	assert_non_null(iface);
	return iface->vrf;
}

static void gives_a_vrf_device_a_table(void **state)
{
	assert_int_equal(ifaces_vrf_of_table(fake.mirror, 254), 0);
	assert_int_equal(ifaces_vrf_of_table(fake.mirror, 255), 0);
	assert_int_equal(ifaces_vrf_of_table(fake.mirror, 253), 0);
	assert_int_equal(ifaces_vrf_of_table(fake.mirror, 10), IFACES_NO_VRF);
	add(fake_vrf(50, "red", 10));
	uint16_t vrf = ifaces_vrf_of_table(fake.mirror, 10);
	assert_in_range(vrf, 1, 4095);
	assert_true(fib_vrf_is_open(fake.fib, vrf));
	assert_string_equal(ifaces_vrf_name(fake.mirror, vrf), "red");
	assert_int_equal(ifaces_vrf_find(fake.mirror, "red"), vrf);
	assert_int_equal(ifaces_vrf_find(fake.mirror, "p0"), -ENOENT);
	assert_int_equal(ifaces_table_of_vrf(fake.mirror, vrf), 10);
	assert_int_equal(fake_call[0].kind, CALL_VRF);
	assert_int_equal(fake_call[0].table, 10);
	assert_int_equal(fake_call[0].vrf, vrf);
	fake_iface_gone(&fake, 50);
	fake_flush(&fake);
	assert_false(fib_vrf_is_open(fake.fib, vrf));
	assert_int_equal(ifaces_vrf_of_table(fake.mirror, 10), IFACES_NO_VRF);
	assert_null(ifaces_vrf_name(fake.mirror, vrf));
	assert_int_equal(fake_call[fake_n_calls - 1].vrf, IFACES_NO_VRF);
}

// As if flows had it.
static uint16_t used_vrf;

static bool is_used(void *arg, uint16_t vrf)
{
	return vrf == used_vrf;
}

static void remove_device(int ifindex)
{
	fake_iface_gone(&fake, ifindex);
	fake_flush(&fake);
}

static void a_vrf_does_not_get_a_number_that_another_one_has_left_in_use(void **state)
{
	fake.mirror->settings.is_vrf_used = is_used;
	add(fake_vrf(50, "red", 10));
	used_vrf = ifaces_vrf_find(fake.mirror, "red");
	remove_device(50);
	add(fake_vrf(51, "blue", 11));
	assert_int_not_equal(ifaces_vrf_find(fake.mirror, "blue"), used_vrf);
	add(fake_vrf(52, "red", 12)); // another table, too
	assert_int_equal(ifaces_vrf_find(fake.mirror, "red"), used_vrf);
	// Removed and created again before routes have settled.
	fake_iface_gone(&fake, 52);
	add(fake_vrf(53, "red", 12));
	fake_flush(&fake);
	assert_int_equal(ifaces_vrf_find(fake.mirror, "red"), used_vrf);
	remove_device(53);
	const uint16_t before = used_vrf;
	used_vrf = 0;
	add(fake_vrf(54, "green", 13));
	assert_int_equal(ifaces_vrf_find(fake.mirror, "green"), before);
}

// Both were removed and created again with the table of the other one, before the next flush.
static void flows_of_a_vrf_follow_its_name_to_another_table(void **state)
{
	fake.mirror->settings.is_vrf_used = is_used;
	add(fake_vrf(50, "red", 10));
	add(fake_vrf(51, "blue", 11));
	used_vrf = ifaces_vrf_find(fake.mirror, "red");
	fake_iface_gone(&fake, 50);
	fake_iface_gone(&fake, 51);
	struct event_link red = fake_vrf(52, "red", 11), blue = fake_vrf(53, "blue", 10);
	fake_router(&fake, &red);
	fake_router(&fake, &blue);
	fake_flush(&fake);
	assert_int_equal(ifaces_vrf_find(fake.mirror, "red"), used_vrf);
	assert_int_equal(ifaces_table_of_vrf(fake.mirror, used_vrf), 11);
	assert_int_not_equal(ifaces_vrf_find(fake.mirror, "blue"), used_vrf);
	assert_in_range(ifaces_vrf_find(fake.mirror, "blue"), 1, 4095);
	used_vrf = 0;
}

// As if flows had it for this name.
static uint16_t kept_iface;
static const char *kept_name;

static const char *keep_iface(void *arg, uint16_t iface)
{
	return iface == kept_iface ? kept_name : NULL;
}

static uint16_t id_of(int ifindex)
{
	const uint16_t id = ifaces_state(fake.mirror, ifindex).iface;

	assert_int_not_equal(id, IFACE_NONE);
	return id;
}

static void a_vlan_gets_the_number_back_that_others_have_for_its_name(void **state)
{
	struct iface_ids *ids = &fake.mirror->ifaces->ids;

	fake.mirror->settings.iface_kept = keep_iface;
	add(fake_tap(0));
	add(fake_vlan(20, FAKE_TAP, 7));
	kept_iface = id_of(20);
	char name[16];
	snprintf(name, sizeof(name), "%s", fake_vlan(20, FAKE_TAP, 7).name);
	kept_name = name;
	remove_device(20);
	ids->next = kept_iface;
	add(fake_vlan(21, FAKE_TAP, 8));
	assert_int_not_equal(id_of(21), kept_iface);
	add(fake_vlan(22, FAKE_TAP, 7));
	assert_int_equal(id_of(22), kept_iface);
	// Removed and created again, by another VLAN ID, before the next flush.
	fake_iface_gone(&fake, 22);
	struct event_link other = fake_vlan(23, FAKE_TAP, 9);
	snprintf(other.name, sizeof(other.name), "%s", name);
	add(other);
	assert_int_equal(id_of(23), kept_iface);
	remove_device(23);
	kept_name = NULL;
	add(fake_vlan(24, FAKE_TAP, 10));
	remove_device(24);
	ids->next = kept_iface;
	add(fake_vlan(25, FAKE_TAP, 11));
	assert_int_equal(id_of(25), kept_iface);
}

static void puts_each_iface_into_the_vrf_of_its_own_master(void **state)
{
	add(fake_vrf(50, "red", 10));
	add(fake_vrf(51, "blue", 11));
	put_in(fake_tap(0), 50);
	put_in(fake_vlan(20, 10, 7), 51);
	add(fake_vlan(21, 10, 8));
	assert_int_equal(vrf_of(10), ifaces_vrf_find(fake.mirror, "red"));
	assert_int_equal(vrf_of(20), ifaces_vrf_find(fake.mirror, "blue"));
	assert_int_equal(vrf_of(21), 0);
	add(fake_tap(0));
	assert_int_equal(vrf_of(10), 0);
}

static void leaves_ifaces_of_a_vrf_that_is_down_to_linux(void **state)
{
	struct event_link vrf = fake_vrf(50, "red", 10);

	put_in(fake_tap(0), 50);
	vrf.flags = 0;
	add(vrf);
	assert_true(fake_fib_iface(&fake, 10)->flags & IFACE_LINUX);
	assert_int_equal(fake_unsupported(&fake, "interface in a VRF that is set down", NULL), 1);
	add(fake_vrf(50, "red", 10));
	assert_false(fake_fib_iface(&fake, 10)->flags & IFACE_LINUX);
}

static void names_vrfs_beyond_what_workers_hold(void **state)
{
	char name[16];

	for (int i = 1; i <= FIB_MAX_VRFS; i++) {
		snprintf(name, sizeof(name), "vrf%d", i);
		struct event_link vrf = fake_vrf(100 + i, name, 1000 + (uint32_t)i);

		fake_router(&fake, &vrf);
		if (i == FIB_MAX_VRFS - 1)
			fake_flush(&fake); // the last one is beyond
	}
	put_in(fake_tap(0), 100 + FIB_MAX_VRFS);
	put_in(fake_tap(1), 101);
	assert_true(fake_fib_iface(&fake, 10)->flags & IFACE_LINUX);
	assert_false(fake_fib_iface(&fake, 11)->flags & IFACE_LINUX);
	assert_int_equal(fake_unsupported(&fake,
				 "interface in a VRF beyond the 4095 that workers support", NULL),
		1);
	fake_iface_gone(&fake, 102); // frees an id
	fake_flush(&fake);
	assert_false(fake_fib_iface(&fake, 10)->flags & IFACE_LINUX);
	assert_int_not_equal(vrf_of(10), 0);
}

static void names_rules_that_stand_in_the_way_of_vrfs(void **state)
{
	struct event_rule l3mdev = {.family = 4, .priority = 1000, .is_l3mdev = true, .action = 1};
	struct event_rule local = {.family = 4, .table = 255, .action = 1};
	struct event_rule later = {.family = 4, .priority = 32765, .table = 255, .action = 1};
	static const char *const before = "rule for table local before the rule for VRFs";
	static const char *const missing = "rule for VRFs (l3mdev) is missing";

	assert_int_equal(fake_unsupported(&fake, before, NULL), 0); // no VRF, no effect
	add(fake_vrf(50, "red", 10));
	put_in(fake_tap(0), 50);
	assert_int_equal(fake_unsupported(&fake, before, NULL), 2);
	fake_rule(&fake, &later, false);
	fake_rule(&fake, &local, true);
	fake_flush(&fake);
	assert_int_equal(fake_unsupported(&fake, before, NULL), 1); // that of IPv6
	assert_false(fake_fib_iface(&fake, 10)->flags & IFACE_LINUX4);
	fake_rule(&fake, &l3mdev, true);
	fake_flush(&fake);
	assert_int_equal(fake_unsupported(&fake, missing, NULL), 1);
	assert_true(fake_fib_iface(&fake, 10)->flags & IFACE_LINUX4);
	assert_false(fake_fib_iface(&fake, 11)->flags & IFACE_LINUX4);
}

// A rule after the VRF rule applies to packets for which no VRF has a route; one before it applies
// to all.
static void a_rule_that_refuses_vrfs_before_their_tables_counts(void **state)
{
	struct event_rule refuses = {.family = 4, .priority = 2000, .is_l3mdev = true, .action = 7};
	static const char *const rule = "policy rule";

	fake_rule(&fake, &refuses, false);
	fake_flush(&fake);
	assert_int_equal(fake_unsupported(&fake, rule, NULL), 0);
	refuses.priority = 500;
	fake_rule(&fake, &refuses, false);
	fake_flush(&fake);
	assert_int_equal(fake_unsupported(&fake, rule, NULL), 1);
	assert_true(fake_fib_iface(&fake, 10)->flags & IFACE_LINUX4);
	fake_rule(&fake, &refuses, true);
	fake_flush(&fake);
	assert_false(fake_fib_iface(&fake, 10)->flags & IFACE_LINUX4);
}

static void lets_vrf_devices_share_a_table(void **state)
{
	add(fake_vrf(50, "red", 10));
	add(fake_vrf(51, "redder", 10));
	put_in(fake_tap(0), 50);
	put_in(fake_tap(1), 51);
	assert_int_equal(vrf_of(10), vrf_of(11));
	fake_iface_gone(&fake, 50);
	fake_flush(&fake);
	assert_true(fib_vrf_is_open(fake.fib, vrf_of(11)));
}

static unsigned n_beyond(void)
{
	return fake_unsupported(&fake,
		"VLAN, bridge or tunnel beyond the 65534 interfaces of workers", NULL);
}

// The first VLANs are on a port, the others on these.
static void holds_as_many_vlans_as_there_are_ids(void **state)
{
	enum { VLANS = IFACE_MAX - PORT_MAX, OUTER = 17, FIRST = 1000 };

	for (int i = 0; i < VLANS + 3; i++) {
		int lower = i < OUTER ? 10 : FIRST + i % OUTER;
		struct event_link vlan = fake_vlan(FIRST + i, lower, (uint16_t)(1 + i / OUTER));

		if (i < OUTER)
			vlan.vlan_id = (uint16_t)(1 + i);
		fake_router(&fake, &vlan);
	}
	fake_flush(&fake);
	unsigned n_without = 0;
	for (int i = 0; i < VLANS + 3; i++)
		n_without += ifaces_state(fake.mirror, FIRST + i).iface == IFACE_NONE;
	assert_int_equal(n_without, 3);
	assert_int_equal(n_beyond(), 3);
	for (int i = OUTER; i < VLANS; i += 1000)
		fake_iface_gone(&fake, FIRST + i);
	fake_flush(&fake);
	assert_int_equal(n_beyond(), 0);
}

// Hops may still refer to the id of a VLAN that was removed in the same round.
static void reuses_no_id_before_routes_have_left_it(void **state)
{
	add(fake_vlan(20, 10, 7));
	uint16_t old = ifaces_state(fake.mirror, 20).iface;
	struct event_link again = fake_vlan(20, 10, 8); // same index, different VLAN

	fake_iface_gone(&fake, 20);
	add(again);
	uint16_t now = ifaces_state(fake.mirror, 20).iface;
	assert_int_not_equal(now, old);
	assert_int_equal(fib_iface(fake.fib, now)->tag[0].vid, 8);
	assert_null(fib_iface(fake.fib, old));
}

static void tells_routes_at_once_that_a_iface_went_down(void **state)
{
	struct event_link down = fake_tap(0), up = fake_tap(0);

	down.flags = 0;
	fake_iface(&fake, &down);
	assert_int_equal(fake_calls(CALL_CHANGED, 10), 1);
	assert_false(ifaces_state(fake.mirror, 10).is_up);
	fake_iface(&fake, &up);
	assert_int_equal(fake_calls(CALL_CHANGED, 10), 2);
	up.carrier = false;
	fake_iface(&fake, &up);
	assert_int_equal(fake_calls(CALL_CHANGED, 10), 3);
	fake_iface(&fake, &up);
	assert_int_equal(fake_calls(CALL_CHANGED, 10), 3);
	fake_iface_gone(&fake, 10);
	assert_int_equal(fake_calls(CALL_GONE, 10), 1);
}

static void tells_routes_of_a_new_iface_id(void **state)
{
	add(fake_vlan(20, 10, 7)); // known first, then a fib interface
	assert_int_equal(fake_calls(CALL_CHANGED, 20), 2);
}

static void tells_which_source_addresses_are_gone(void **state)
{
	struct wire_addr local = fake_addr("10.0.0.1");

	fake_address(&fake, 10, "10.0.0.1/24", false);
	fake_address(&fake, 10, "10.0.0.9/24", false);
	fake_address(&fake, 11, "10.0.0.1/32", false);
	fake_address(&fake, 10, "10.0.0.1/24", true);
	assert_int_equal(fake_calls(CALL_ADDRESS, 0), 0); // the other interface still has it
	fake_address(&fake, 11, "10.0.0.1/32", true);
	assert_int_equal(fake_calls(CALL_ADDRESS, 0), 1);
	assert_true(wire_addr_equal(&fake_call[0].addr, &local));
	assert_int_equal(fake_call[0].table, 0);
	assert_int_equal(fake_calls(CALL_IP4_GONE, 11), 1);
	assert_int_equal(fake_calls(CALL_IP4_GONE, 10), 0);
	fake_address(&fake, 10, "10.0.0.9/24", true);
	assert_int_equal(fake_calls(CALL_IP4_GONE, 10), 1);
	fake_address(&fake, 10, "10.0.0.9/24", true);
	assert_int_equal(fake_calls(CALL_IP4_GONE, 10), 1);
}

static void keeps_source_addresses_of_vrfs_apart(void **state)
{
	struct event_link tap = fake_tap(0), vrf = fake_vrf(50, "red", 10);

	tap.master = 50;
	fake_router(&fake, &vrf);
	fake_router(&fake, &tap);
	fake_address(&fake, 10, "10.0.0.1/24", false);
	fake_address(&fake, 11, "10.0.0.1/24", false);
	fake_n_calls = 0;
	fake_address(&fake, 10, "10.0.0.1/24", true); // everything before the first flush
	assert_int_equal(fake_calls(CALL_ADDRESS, 0), 1);
	assert_int_equal(fake_call[0].table, ifaces_vrf_of_table(fake.mirror, 10));
}

// Linux drops them without a notification and adds them to the other table when the interface comes
// up.
static void tells_that_ipv4_routes_are_gone_with_a_move_between_vrfs(void **state)
{
	struct event_link other = fake_tap(1);

	add(fake_vrf(50, "red", 10));
	add(fake_vrf(51, "blue", 11));
	add(fake_device(60, "br0", "bridge"));
	put_in(fake_tap(0), 50);
	assert_int_equal(fake_calls(CALL_IP4_GONE, 10), 1);
	add(fake_tap(0));
	assert_int_equal(fake_calls(CALL_IP4_GONE, 10), 2);
	put_in(fake_tap(0), 60);
	add(fake_tap(0));
	assert_int_equal(fake_calls(CALL_IP4_GONE, 10), 2);
	other.master = 51;
	fake.in_dump = true; // it contains the routes, too
	fake_iface(&fake, &other);
	assert_int_equal(fake_calls(CALL_IP4_GONE, 11), 0);
}

static void forgets_addresses_with_their_interface(void **state)
{
	add(fake_vlan(20, 10, 7));
	fake_address(&fake, 20, "10.0.0.1/24", false);
	fake_iface_gone(&fake, 20);
	assert_int_equal(fake_calls(CALL_ADDRESS, 0), 1);
	assert_int_equal(fake_calls(CALL_GONE, 20), 1);
}

// Sweep after a dump.

static void dump_begins(void)
{
	mirror_dump_begins(fake.mirror);
	fake.in_dump = true;
}

static void dump_ends_in_part(uint32_t partial)
{
	mirror_dump_ends(fake.mirror, partial);
	fake.in_dump = false;
	fake_flush(&fake);
}

static void dump_ends(void)
{
	dump_ends_in_part(0);
}

// One object of each kind that is not contained in the dumps below.
static void furnish(void)
{
	struct event_foreign chain = {.hook = NF_INET_FORWARD, .name = "chain"};
	struct event_rule rule = {.family = 6, .priority = 5, .has_selector = true};

	add(fake_vrf(50, "red", 10));
	add(fake_vlan(20, 10, 7));
	fake_address(&fake, 11, "10.0.0.1/24", false);
	fake_neighbour(&fake, 11, "10.0.0.7", (struct fake_seen){7, 0x02});
	fake_foreign(&fake, EVENT_CHAIN, &chain, false);
	fake_rule(&fake, &rule, false);
	fake_flush(&fake);
}

static void dump_the_rest(uint32_t partial)
{
	dump_begins();
	fake_basics(&fake);
	fake_taps(&fake, 2);
	dump_ends_in_part(partial);
}

static bool has_neighbour(void)
{
	struct wire_addr addr = fake_addr("10.0.0.7");
	struct neighbour found;

	return neighbours_find(fake.mirror->neighbours, 11, &addr, &found);
}

static void sweeps_what_a_dump_does_not_name(void **state)
{
	furnish();
	dump_begins();
	fake_basics(&fake);
	fake_taps(&fake, 2);
	fake_flush(&fake); // forwarding continues meanwhile
	assert_non_null(fake_fib_iface(&fake, 20));
	fake_n_calls = 0;
	dump_ends();
	assert_null(fake_fib_iface(&fake, 20));
	assert_int_equal(ifaces_vrf_of_table(fake.mirror, 10), IFACES_NO_VRF);
	assert_int_equal(fake_calls(CALL_GONE, 20), 1);
	assert_int_equal(fake_calls(CALL_ADDRESS, 0), 0); // the dump contained the routes, too
	assert_false(has_neighbour());
	assert_int_equal(fake_fib_iface(&fake, 11)->flags &
				 (IFACE_LINUX | IFACE_LINUX4 | IFACE_LINUX6),
		0);
}

// The kernel could not dump a kind completely: whether the missing objects still exist is unknown.
static void keeps_kinds_that_a_dump_told_in_part(void **state)
{
	furnish();
	dump_the_rest(1 << EVENT_LINK | 1 << EVENT_NETCONF | 1 << EVENT_NEIGHBOUR);
	assert_non_null(fake_fib_iface(&fake, 20));
	assert_int_not_equal(ifaces_vrf_of_table(fake.mirror, 10), IFACES_NO_VRF);
	assert_true(has_neighbour());
	assert_int_equal(fake_fib_iface(&fake, 11)->flags & IFACE_LINUX6, 0);
	furnish();
	dump_the_rest(1 << EVENT_CHAIN);
	assert_null(fake_fib_iface(&fake, 20));
	assert_false(has_neighbour());
	assert_int_equal(fake_fib_iface(&fake, 11)->flags & IFACE_LINUX4, IFACE_LINUX4);
	furnish();
	dump_the_rest(1 << EVENT_RULE);
	assert_int_equal(fake_fib_iface(&fake, 11)->flags & IFACE_LINUX4, 0);
	assert_int_equal(fake_fib_iface(&fake, 11)->flags & IFACE_LINUX6, IFACE_LINUX6);
	furnish();
	dump_the_rest(1 << EVENT_ADDRESS);
	fake_n_calls = 0;
	fake_address(&fake, 11, "10.0.0.1/24", true); // it was not swept
	assert_int_equal(fake_calls(CALL_ADDRESS, 0), 1);
	furnish();
	dump_the_rest(0);
	fake_n_calls = 0;
	fake_address(&fake, 11, "10.0.0.1/24", true);
	assert_int_equal(fake_calls(CALL_ADDRESS, 0), 0);
}

static void keeps_what_is_told_while_a_dump_runs(void **state)
{
	dump_begins();
	fake_basics(&fake);
	fake_taps(&fake, 2);
	fake.in_dump = false;
	add(fake_vlan(20, 10, 7)); // after the section of interfaces
	fake_address(&fake, 20, "10.0.0.1/24", false);
	dump_ends();
	assert_non_null(fake_fib_iface(&fake, 20));
	assert_int_equal(fake_calls(CALL_ADDRESS, 0), 0);
}

static void sweeps_by_the_last_dump_when_one_is_begun_anew(void **state)
{
	add(fake_vlan(20, 10, 7));
	struct event_link vlan = fake_vlan(20, 10, 7);

	dump_begins();
	fake_iface(&fake, &vlan);
	dump_begins();
	fake_basics(&fake);
	fake_taps(&fake, 2);
	dump_ends();
	assert_null(fake_fib_iface(&fake, 20));
}

static void counts_what_it_holds(void **state)
{
	struct netlink_info info = {0};

	add(fake_vlan(20, 10, 7));
	fake_neighbour(&fake, 20, "10.0.0.7", (struct fake_seen){7, 0x02});
	mirror_info(fake.mirror, &info);
	assert_int_equal(info.ifaces, 3);
	assert_int_equal(info.neighbours, 1);
	assert_true(info.control_bytes > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(gives_a_vrf_device_a_table),
		TEST(a_vrf_does_not_get_a_number_that_another_one_has_left_in_use),
		TEST(flows_of_a_vrf_follow_its_name_to_another_table),
		TEST(a_vlan_gets_the_number_back_that_others_have_for_its_name),
		TEST(puts_each_iface_into_the_vrf_of_its_own_master),
		TEST(leaves_ifaces_of_a_vrf_that_is_down_to_linux),
		TEST(names_vrfs_beyond_what_workers_hold),
		TEST(names_rules_that_stand_in_the_way_of_vrfs),
		TEST(a_rule_that_refuses_vrfs_before_their_tables_counts),
		TEST(lets_vrf_devices_share_a_table),
		TEST(holds_as_many_vlans_as_there_are_ids),
		TEST(reuses_no_id_before_routes_have_left_it),
		TEST(tells_routes_at_once_that_a_iface_went_down),
		TEST(tells_routes_of_a_new_iface_id),
		TEST(tells_which_source_addresses_are_gone),
		TEST(keeps_source_addresses_of_vrfs_apart),
		TEST(tells_that_ipv4_routes_are_gone_with_a_move_between_vrfs),
		TEST(forgets_addresses_with_their_interface),
		TEST(sweeps_what_a_dump_does_not_name),
		TEST(keeps_kinds_that_a_dump_told_in_part),
		TEST(keeps_what_is_told_while_a_dump_runs),
		TEST(sweeps_by_the_last_dump_when_one_is_begun_anew),
		TEST(counts_what_it_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
