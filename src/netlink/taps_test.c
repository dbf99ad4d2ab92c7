// The settings of TAP interfaces that become those of their ports: synthetic events, a real fib.
// Tests only.
#include "netlink/fake_linux.h"

static void add(struct event_link iface)
{
	fake_router(&fake, &iface);
	fake_flush(&fake);
}

static void follows_the_tap_with_the_port(void **state)
{
	struct event_link tap = fake_tap(1);

	tap.mtu = 9000;
	tap.mac = fake_mac(0x77);
	tap.flags = 0;
	add(tap);
	assert_int_equal(fake.n_asked, 3);
	assert_int_equal(fake.port[1].mtu, 9000);
	assert_int_equal(fake.port[1].mac.bytes[5], 0x77);
	assert_false(fake.port[1].up);
	assert_int_equal(fake_fib_iface(&fake, 11)->mtu, 9000);
	add(tap);
	assert_int_equal(fake.n_asked, 3);
}

static void sets_the_tap_back_when_the_port_refuses_its_mtu(void **state)
{
	struct event_link tap = fake_tap(0);

	fake.mtu_max = 2000;
	tap.mtu = 65521;
	add(tap);
	assert_int_equal(fake.n_asked, 1);
	assert_int_equal(fake.refused_mtu[0], 65521);
	assert_int_equal(fake.restored_mtu[0], 1500);
	assert_int_equal(fake_fib_iface(&fake, 10)->mtu, 1500);
	tap.mtu = 1500; // the event that this causes
	add(tap);
	assert_int_equal(fake.n_asked, 1);
	assert_int_equal(fake_unsupported(&fake, "MTU that the port does not support", NULL), 0);
	tap.mtu = 9000; // again
	add(tap);
	assert_int_equal(fake.n_asked, 2);
	assert_int_equal(fake.refused_mtu[0], 9000);
}

static void goes_by_the_ports_mtu_when_it_refuses_the_taps(void **state)
{
	struct event_link tap = fake_tap(0), vlan = fake_vlan(20, 10, 5);

	fake.mtu_max = 2000;
	fake.keeps_mtu = true;
	tap.mtu = vlan.mtu = 9000;
	vlan.mac = tap.mac;
	add(tap);
	add(vlan);
	assert_int_equal(fake.n_asked, 1);
	assert_int_equal(fake_fib_iface(&fake, 10)->mtu, 1500);
	assert_int_equal(fake_fib_iface(&fake, 20)->mtu, 1500);
	assert_int_equal(fake_unsupported(&fake, "MTU that the port does not support", NULL), 2);
	fake_flush(&fake);
	add(tap);
	assert_int_equal(fake.n_asked, 1); // requested once only
	tap.mtu = 1800;
	add(tap);
	assert_int_equal(fake_fib_iface(&fake, 10)->mtu, 1800);
	assert_int_equal(fake_fib_iface(&fake, 20)->mtu, 1800);
}

// As if Linux deleted the TAP interface, and VLANs on it, only later.
static void a_removed_port_and_its_vlans_leave_the_fib(void **state)
{
	const struct mirror_port again = {.mac = fake_mac(0x55), .mtu = 1500, .up = true};
	struct event_link vlan = fake_vlan(20, 11, 5), tap = fake_tap(1);

	add(vlan);
	assert_non_null(fake_fib_iface(&fake, 20));
	mirror_port_removed(fake.mirror, 1);
	fake_flush(&fake);
	assert_null(fib_iface(fake.fib, 1));
	assert_null(fake_fib_iface(&fake, 20));
	assert_non_null(fib_iface(fake.fib, 0));
	fake_iface_gone(&fake, 20);
	fake_iface_gone(&fake, 11);
	fake_flush(&fake);
	assert_null(fib_iface(fake.fib, 1));
	fake.n_asked = 0;
	tap.ifindex = 30;
	tap.mac = again.mac;
	mirror_port_added(fake.mirror, 1, 30, &again);
	fake_flush(&fake);
	assert_int_equal(fib_iface(fake.fib, 1)->flags, IFACE_DOWN);
	add(tap);
	assert_int_equal(fake_fib_iface(&fake, 30)->port, 1);
	assert_int_equal(fake.n_asked, 0);
}

static void a_port_with_a_higher_number_may_be_added_beside_vlans(void **state)
{
	const struct mirror_port added = {.mac = fake_mac(0x56), .mtu = 1500, .up = true};
	struct event_link vlan = fake_vlan(20, 10, 5), tap = fake_tap(3);

	add(vlan);
	tap.mac = added.mac;
	mirror_port_added(fake.mirror, 3, tap.ifindex, &added);
	add(tap);
	assert_int_equal(fake_fib_iface(&fake, tap.ifindex)->port, 3);
	assert_int_equal(fake_fib_iface(&fake, 20)->n_tags, 1);
	assert_int_equal(fake_fib_iface(&fake, 10)->port, 0);
	assert_null(fib_iface(fake.fib, 2));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(follows_the_tap_with_the_port),
		TEST(sets_the_tap_back_when_the_port_refuses_its_mtu),
		TEST(goes_by_the_ports_mtu_when_it_refuses_the_taps),
		TEST(a_removed_port_and_its_vlans_leave_the_fib),
		TEST(a_port_with_a_higher_number_may_be_added_beside_vlans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
