// Kernel interfaces as fib interfaces: synthetic events, a real fib. Tests only.
#include "netlink/fake_linux.h"

#include <stdio.h>
#include <string.h>

static uint8_t flags_of(int ifindex)
{
	const struct iface *iface = fake_fib_iface(&fake, ifindex);

	assert_non_null(iface);
	return iface->flags & (uint8_t) ~(IFACE_REDIRECTS4 | IFACE_REDIRECTS6 | IFACE_OUT_LINUX);
}

static uint16_t way_out(int ifindex)
{
	return ifaces_state(fake.mirror, ifindex).iface;
}

static void add(struct event_link iface)
{
	fake_router(&fake, &iface);
	fake_flush(&fake);
}

static void remove_iface(int ifindex)
{
	fake_iface_gone(&fake, ifindex);
	fake_flush(&fake);
}

static void makes_a_tap_the_iface_of_its_port(void **state)
{
	const struct iface *iface = fake_fib_iface(&fake, 11);

	assert_non_null(iface);
	assert_ptr_equal(iface, fib_iface(fake.fib, 1));
	assert_int_equal(iface->port, 1);
	assert_int_equal(iface->mtu, 1500);
	assert_int_equal(iface->vrf, 0);
	assert_int_equal(iface->n_tags, 0);
	assert_int_equal(iface->mac.bytes[5], 1);
	assert_int_equal(iface->flags, IFACE_REDIRECTS4 | IFACE_REDIRECTS6);
	assert_int_equal(way_out(11), 1);
	assert_string_equal(ifaces_name(fake.mirror, 11), "p1");
	assert_string_equal(ifaces_name(fake.mirror, 99), "?");
	assert_int_equal(fake.n_asked, 0);
	assert_int_equal(fake_unsupported(&fake, "rp_filter on an interface with macvlans", NULL),
		0);
}

static void takes_nothing_in_on_a_port_without_its_tap(void **state)
{
	remove_iface(10);
	assert_true(fib_iface(fake.fib, 0)->flags & IFACE_DOWN);
	assert_int_equal(ifaces_ifindex(fake.mirror, 0), 0);
	assert_int_equal(way_out(10), IFACE_NONE);
	assert_int_equal(fake_calls(CALL_GONE, 10), 1);
	struct event_link anew = fake_tap(0);
	anew.ifindex = 77;
	add(anew);
	assert_true(fib_iface(fake.fib, 0)->flags & IFACE_DOWN);
	mirror_tap_changed(fake.mirror, 0, 77);
	fake_flush(&fake);
	assert_int_equal(flags_of(77), 0);
	assert_int_equal(way_out(77), 0);
}

static void forwards_nothing_before_linux_has_told_of_forwarding(void **state)
{
	struct fake_linux early;
	struct event_link tap = fake_tap(0);

	fake_open(&early, 1);
	fake_iface(&early, &tap);
	fake_flush(&early);
	assert_int_equal(fake_fib_iface(&early, 10)->flags & (IFACE_LINUX4 | IFACE_LINUX6),
		IFACE_LINUX4 | IFACE_LINUX6);
	fake_close(&early);
}

static void gives_vlans_ifaces_of_their_own(void **state)
{
	struct event_link vlan = fake_vlan(20, 10, 100);

	vlan.mtu = 1400;
	add(vlan);
	const struct iface *iface = fake_fib_iface(&fake, 20);
	assert_non_null(iface);
	assert_int_equal(iface->port, 0);
	assert_int_equal(iface->n_tags, 1);
	assert_int_equal(iface->tag[0].tpid, 0x8100);
	assert_int_equal(iface->tag[0].vid, 100);
	assert_int_equal(iface->mtu, 1400);
	assert_int_equal(iface->mac.bytes[5], 20);
	assert_true(way_out(20) >= 2);
	remove_iface(20);
	assert_null(fake_fib_iface(&fake, 20));
	assert_null(fib_iface(fake.fib, 2));
}

// Linux delivers priority-tagged frames (VLAN 0) to it; workers deliver them to the port.
// What was told about names, and whether workers knew the interface already.
static struct {
	char text[64];
	bool was_known;
} named;

static void note_name(void *arg, uint16_t iface, const char *name)
{
	if (iface < PORT_MAX)
		return;
	snprintf(named.text, sizeof(named.text), "%s", name ? name : "gone");
	named.was_known = fib_iface(fake.fib, iface) != NULL;
}

static void tells_names_before_workers_know_the_interface(void **state)
{
	struct event_link vlan = fake_vlan(20, 10, 100);

	fake.mirror->settings.iface_named = note_name;
	add(vlan);
	assert_string_equal(named.text, vlan.name);
	assert_false(named.was_known);
	assert_non_null(fake_fib_iface(&fake, 20));
	snprintf(vlan.name, sizeof(vlan.name), "renamed");
	add(vlan);
	assert_string_equal(named.text, "renamed");
	remove_iface(20);
	assert_string_equal(named.text, "gone");
	assert_false(named.was_known);
}

static void a_vlan_without_a_number_takes_what_is_untagged(void **state)
{
	add(fake_vlan(20, 10, 0));
	assert_int_equal(flags_of(10), IFACE_LINUX);
	assert_int_equal(flags_of(11), 0);
	remove_iface(20);
	assert_int_equal(flags_of(10), 0);
}

static void gives_vlans_up_with_their_tap(void **state)
{
	add(fake_vlan(20, 10, 100));
	mirror_tap_changed(fake.mirror, 0, 0);
	fake_flush(&fake);
	assert_null(fake_fib_iface(&fake, 20));
	assert_null(fib_iface(fake.fib, 2));
	assert_int_equal(way_out(20), IFACE_NONE);
	mirror_tap_changed(fake.mirror, 0, 11); // the TAP interfaces are exchanged
	mirror_tap_changed(fake.mirror, 1, 10);
	fake_flush(&fake);
	assert_int_equal(fake_fib_iface(&fake, 20)->port, 1);
	assert_int_equal(fake_fib_iface(&fake, 10)->port, 1);
	assert_int_equal(fake_fib_iface(&fake, 11)->port, 0);
}

static void stacks_tags_with_the_outer_one_first(void **state)
{
	struct event_link outer = fake_vlan(20, 10, 100), deeper = fake_vlan(22, 21, 3);

	outer.vlan_protocol = 0x88a8;
	add(fake_vlan(21, 20, 7)); // reported before its lower device
	assert_null(fake_fib_iface(&fake, 21));
	add(outer);
	const struct iface *iface = fake_fib_iface(&fake, 21);
	assert_non_null(iface);
	assert_int_equal(iface->n_tags, 2);
	assert_int_equal(iface->tag[0].tpid, 0x88a8);
	assert_int_equal(iface->tag[0].vid, 100);
	assert_int_equal(iface->tag[1].tpid, 0x8100);
	assert_int_equal(iface->tag[1].vid, 7);
	add(deeper);
	assert_null(fake_fib_iface(&fake, 22));
	assert_int_equal(way_out(22), IFACE_NONE);
	assert_int_equal(fake_unsupported(&fake, "VLAN interface with more than 2 tags", NULL), 1);
}

static void survives_vlans_in_a_circle(void **state)
{
	add(fake_vlan(20, 21, 1));
	add(fake_vlan(21, 20, 2));
	assert_null(fake_fib_iface(&fake, 20));
}

static void knows_no_iface_that_stands_on_no_tap(void **state)
{
	add(fake_device(30, "wg0", "wireguard"));
	add(fake_vlan(31, 30, 5));
	assert_null(fake_fib_iface(&fake, 30));
	assert_null(fake_fib_iface(&fake, 31));
	assert_true(ifaces_state(fake.mirror, 31).is_known);
	assert_int_equal(way_out(31), IFACE_NONE);
}

static void takes_a_iface_down_with_what_is_under_it(void **state)
{
	struct event_link tap = fake_tap(0);

	add(fake_vlan(20, 10, 100));
	tap.flags = 0;
	tap.carrier = false;
	add(tap);
	assert_int_equal(flags_of(10), IFACE_DOWN);
	assert_int_equal(flags_of(20), IFACE_DOWN);
	assert_false(ifaces_state(fake.mirror, 10).is_up);
	assert_false(ifaces_state(fake.mirror, 10).has_carrier);
	assert_false(fake.port[0].up);
}

// An upper device of the TAP interface, and its effect on the TAP interface and a VLAN on it.
static void leaves_to_linux_what_workers_do_not_know(void **state)
{
	static const struct {
		const char *kind; // "": a master; otherwise an upper device
		uint8_t tap, vlan;
	} row[] = {
		{"", IFACE_LINUX, 0},
		{"ipvlan", IFACE_LINUX, 0},
		{"macsec", IFACE_LINUX, 0},
		{"macvtap", IFACE_LINUX, 0},
		{"vxlan", 0, 0},
		{"gre", 0, 0},
		{"vlan", 0, 0},
	};
	add(fake_vlan(20, 10, 100));
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct event_link tap = fake_tap(0), other = fake_device(40, "br0", "bridge");

		if (row[i].kind[0]) {
			other = fake_device(40, "up0", row[i].kind);
			other.lower = 10;
			other.vlan_id = 9;
			other.vlan_protocol = 0x8100;
		} else {
			tap.master = 40;
		}
		add(other);
		add(tap);
		assert_int_equal(flags_of(10), row[i].tap);
		assert_int_equal(way_out(10), row[i].tap ? IFACE_NONE : 0);
		assert_int_equal(flags_of(20), row[i].vlan);
		add(fake_tap(0));
		remove_iface(40);
		assert_int_equal(flags_of(10), 0);
		assert_int_equal(way_out(10), 0);
	}
}

// Ring ports have no master, and the ring, unlike a VLAN, has no IFLA_LINK to them.
static void leaves_what_is_in_a_ring_to_linux(void **state)
{
	struct event_link ring = fake_device(40, "hsr0", "hsr");
	char where[64];

	ring.ring[0] = 11;
	ring.ring[1] = 12; // does not exist
	add(ring);
	assert_int_equal(flags_of(10), 0);
	assert_int_equal(flags_of(11), IFACE_LINUX);
	assert_int_equal(way_out(11), IFACE_NONE);
	assert_int_equal(fake_unsupported(&fake, "interface below one of an unsupported type",
				 where),
		1);
	assert_string_equal(where, "p1");
	remove_iface(40);
	assert_int_equal(flags_of(11), 0);
}

static void treats_a_master_not_yet_told_of_as_unknown(void **state)
{
	struct event_link tap = fake_tap(0);
	char where[64];

	tap.master = 50;
	add(tap);
	assert_int_equal(flags_of(10), IFACE_LINUX);
	assert_int_equal(fake_unsupported(&fake, "interface in a bridge, bond or similar device",
				 where),
		1);
	assert_string_equal(where, "p0");
	add(fake_vrf(50, "red", 10));
	assert_int_equal(flags_of(10), 0);
	assert_int_equal(fake_fib_iface(&fake, 10)->vrf, 1);
}

static void hands_all_frames_to_linux_where_tc_or_xdp_is(void **state)
{
	struct event_foreign ingress = {.ifindex = 10,
		.sides = EVENT_INGRESS,
		.name = "qdisc ingress"};
	struct event_foreign plain = {.ifindex = 10,
		.sides = EVENT_EGRESS,
		.is_harmless = true,
		.name = "qdisc fq_codel"};
	struct event_link tap = fake_tap(0);

	add(fake_vlan(20, 10, 100));
	fake_foreign(&fake, EVENT_QDISC, &plain, false);
	fake_foreign(&fake, EVENT_QDISC, &ingress, false);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), IFACE_LINUX);
	assert_int_equal(flags_of(20), IFACE_LINUX); // it also receives tagged frames
	assert_int_equal(way_out(20), IFACE_NONE);
	assert_int_equal(fake_unsupported(&fake, "tc filters", NULL), 1);
	assert_int_equal(fake_unsupported(&fake, "tc ingress on an interface", NULL), 1);
	fake_foreign(&fake, EVENT_QDISC, &ingress, true);
	tap.has_xdp = true;
	add(tap);
	assert_int_equal(flags_of(20), IFACE_LINUX);
	assert_int_equal(flags_of(11), 0);
	add(fake_tap(0));
	assert_int_equal(flags_of(10) | flags_of(20), 0);
}

// There are no notifications for these: they are polled.
static void leaves_to_linux_where_programs_hang_by_tcx(void **state)
{
	fake.tcx[10] = EVENT_INGRESS;
	fake.tcx[11] = EVENT_EGRESS;
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), IFACE_LINUX);
	assert_int_equal(flags_of(11), 0);
	assert_int_equal(way_out(10), IFACE_NONE);
	assert_int_equal(way_out(11), IFACE_NONE);
	assert_int_equal(fake_unsupported(&fake, "tc ingress on an interface", NULL), 1);
	assert_int_equal(fake_unsupported(&fake, "tc egress on an interface", NULL), 1);
	fake.tcx[10] = fake.tcx[11] = 0;
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), 0);
	assert_int_equal(way_out(11), 1);
}

static void sends_nothing_itself_where_tc_shapes(void **state)
{
	struct event_foreign htb = {.ifindex = 10, .sides = EVENT_EGRESS, .name = "qdisc htb 1:"};

	add(fake_vlan(20, 10, 100));
	fake_foreign(&fake, EVENT_QDISC, &htb, false);
	fake_flush(&fake);
	assert_int_equal(flags_of(10) | flags_of(20), 0);
	assert_int_equal(way_out(10), IFACE_NONE);
	assert_true(fake_fib_iface(&fake, 10)->flags & IFACE_OUT_LINUX);
	assert_true(fake_fib_iface(&fake, 20)->flags & IFACE_OUT_LINUX);
	assert_int_equal(way_out(20), IFACE_NONE);
	fake_foreign(&fake, EVENT_QDISC, &htb, true);
	fake_flush(&fake);
	assert_int_equal(way_out(10), 0);
}

static void sends_nothing_itself_where_linux_sets_priorities(void **state)
{
	struct event_link vlan = fake_vlan(20, 10, 100);

	vlan.sets_priorities = true;
	add(vlan);
	add(fake_vlan(21, 20, 7));
	assert_int_equal(flags_of(20) | flags_of(21), 0);
	assert_int_equal(way_out(20), IFACE_NONE);
	assert_int_equal(way_out(21), IFACE_NONE);
	assert_int_equal(way_out(10), 0);
	assert_int_equal(fake_unsupported(&fake, "egress-qos-map on a VLAN interface", NULL), 2);
	add(fake_vlan(20, 10, 100));
	assert_int_not_equal(way_out(21), IFACE_NONE);
}

static struct event_link macvlan(int ifindex, int lower)
{
	char name[16];

	snprintf(name, sizeof(name), "vrrp%d", ifindex);
	struct event_link iface = fake_device(ifindex, name, "macvlan");
	iface.lower = lower;
	return iface;
}

static void counts_macvlan_addresses_as_ours(void **state)
{
	struct event_link down = macvlan(31, 10);

	add(macvlan(30, 10));
	down.flags = 0;
	add(down);
	const struct iface *iface = fake_fib_iface(&fake, 10);
	assert_int_equal(iface->n_macs, 1);
	assert_int_equal(iface->macs[0].bytes[5], 30);
	assert_int_equal(flags_of(10), 0);
	assert_int_equal(way_out(30), IFACE_NONE);
	remove_iface(30);
	assert_int_equal(fake_fib_iface(&fake, 10)->n_macs, 0);
}

// Real hardware filters frames that are not for its port's address.
static void takes_all_frames_in_where_linux_wants_those_for_others(void **state)
{
	struct event_link tap = fake_tap(0), vlan = fake_vlan(20, 10, 100);

	assert_false(fake.port[0].promiscuous);
	vlan.mac = tap.mac;
	add(vlan);
	assert_false(fake.port[0].promiscuous);
	add(macvlan(30, 10)); // VRRP
	assert_true(fake.port[0].promiscuous);
	assert_false(fake.port[1].promiscuous);
	remove_iface(30);
	assert_false(fake.port[0].promiscuous);
	tap.master = 40;
	add(fake_device(40, "br0", "bridge"));
	add(tap);
	assert_true(fake.port[0].promiscuous);
	add(fake_tap(0));
	assert_false(fake.port[0].promiscuous);
	vlan.mac = fake_mac(20);
	add(vlan);
	assert_true(fake.port[0].promiscuous);
	tap = fake_tap(0);
	tap.mac = vlan.mac; // the port takes over the address
	add(tap);
	assert_false(fake.port[0].promiscuous);
}

static void leaves_a_tap_with_many_macvlans_to_linux(void **state)
{
	for (int i = 0; i < IFACE_MACS; i++)
		add(macvlan(30 + i, 10));
	assert_int_equal(fake_fib_iface(&fake, 10)->n_macs, IFACE_MACS);
	assert_int_equal(flags_of(10), 0);
	add(macvlan(60, 10));
	assert_int_equal(flags_of(10), IFACE_LINUX);
	assert_int_equal(fake_unsupported(&fake, "more than 8 macvlans on an interface", NULL), 1);
}

static void leaves_a_macvlan_that_goes_its_own_way_to_linux(void **state)
{
	struct event_link one = macvlan(30, 10);

	one.mac = fake_mac(0); // same as the TAP interface: passthru
	add(one);
	assert_int_equal(flags_of(10), IFACE_LINUX);
	one.mac = fake_mac(30);
	one.master = 50;
	add(fake_vrf(50, "red", 10));
	add(one);
	assert_int_equal(flags_of(10), IFACE_LINUX);
	one.master = 0;
	add(one);
	fake_rp_filter(&fake, 30, 1);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), IFACE_LINUX4);
}

static void leaves_packets_to_linux_where_forwarding_is_off(void **state)
{
	fake_conf(&fake, 10, 4, 0);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), IFACE_LINUX4);
	assert_int_equal(flags_of(11), 0);
	assert_int_equal(way_out(10), 0);
	fake_conf(&fake, 10, 4, 1);
	fake_conf(&fake, 10, 6, 0); // only means "accepts router advertisements"
	fake_flush(&fake);
	assert_int_equal(flags_of(10), 0);
	fake_conf(&fake, -1, 6, 0);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), IFACE_LINUX6);
	assert_int_equal(flags_of(11), IFACE_LINUX6);
	assert_int_equal(fake_unsupported(&fake, "IPv6 forwarding is off", NULL), 2);
}

static void workers_check_sources_as_rp_filter_says(void **state)
{
	static const struct {
		int all, own;
		enum iface_rpf rpf;
	} row[] = {{0, 0, IFACE_RPF_OFF}, {0, 1, IFACE_RPF_STRICT}, {1, 0, IFACE_RPF_STRICT},
		{0, 2, IFACE_RPF_LOOSE}, {1, 2, IFACE_RPF_LOOSE}, {2, 1, IFACE_RPF_LOOSE}};

	fake_address(&fake, 10, "10.0.0.1/24", false);
	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		fake_rp_filter(&fake, -1, row[i].all);
		fake_rp_filter(&fake, 10, row[i].own);
		fake_flush(&fake);
		assert_int_equal(fake_fib_iface(&fake, 10)->rpf4, row[i].rpf);
		assert_int_equal(flags_of(10), 0);
	}
	assert_int_equal(fake_fib_iface(&fake, 11)->rpf4,
		IFACE_RPF_STRICT); // by the last `all`: it has no address
	assert_int_equal(fake_unsupported(&fake, "rp_filter on an interface with macvlans", NULL),
		0);
}

static void an_interface_without_an_ipv4_address_is_never_loose(void **state)
{
	fake_rp_filter(&fake, 10, 2);
	fake_address(&fake, 10, "2001:db8::1/64", false);
	fake_flush(&fake);
	assert_int_equal(fake_fib_iface(&fake, 10)->rpf4, IFACE_RPF_STRICT);
	fake_address(&fake, 10, "10.0.0.1/24", false);
	fake_address(&fake, 10, "10.0.0.2/24", false);
	fake_address(&fake, 10, "10.0.0.1/24", true);
	fake_flush(&fake);
	assert_int_equal(fake_fib_iface(&fake, 10)->rpf4, IFACE_RPF_LOOSE);
	fake_address(&fake, 10, "10.0.0.2/24", true);
	fake_flush(&fake);
	assert_int_equal(fake_fib_iface(&fake, 10)->rpf4, IFACE_RPF_STRICT);
}

static void leaves_packets_to_linux_under_rp_filter_beside_macvlans(void **state)
{
	add(macvlan(30, 10));
	assert_int_equal(flags_of(10), 0);
	fake_rp_filter(&fake, 10, 2);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), IFACE_LINUX4);
	assert_int_equal(flags_of(11), 0);
	assert_int_equal(fake_unsupported(&fake, "rp_filter on an interface with macvlans", NULL),
		1);
	fake_iface_gone(&fake, 30);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), 0);
}

static void ipv6_routes_that_go_without_a_notification_are_dumped_again(void **state)
{
	struct event_link tap = fake_tap(0), red = fake_vrf(50, "red", 10);
	unsigned n;

	fake_router(&fake, &red);
	for (unsigned hides = 0; hides < 2; hides++) {
		fake.hides_lost_routes = hides;
		n = fake.n_dumps_requested;
		tap.master = 50;
		fake_iface(&fake, &tap);
		assert_int_equal(fake.n_dumps_requested - n, hides);
		tap.mtu = 1200; // the least for IPv6 is 1280
		fake_iface(&fake, &tap);
		assert_int_equal(fake.n_dumps_requested - n, 2 * hides);
		tap.mtu = 1500;
		fake_iface(&fake, &tap);
		assert_int_equal(fake.n_dumps_requested - n, 2 * hides);
		tap.master = 0;
		fake_iface(&fake, &tap);
		assert_int_equal(fake.n_dumps_requested - n, 3 * hides);
	}
}

static void routes_without_carrier_do_not_count_where_all_say_so(void **state)
{
	struct event conf = {.kind = EVENT_NETCONF,
		.netconf = {-1, 4, -1, -1, .ignore_linkdown = 1, -1, -1}};

	assert_false(ifaces_state(fake.mirror, 10).ignores_linkdown4);
	fake_n_calls = 0;
	mirror_event(fake.mirror, &conf);
	fake_flush(&fake);
	assert_true(ifaces_state(fake.mirror, 10).ignores_linkdown4);
	assert_false(ifaces_state(fake.mirror, 10).ignores_linkdown6); // reported for each
	                                                               // interface
	assert_int_equal(fake_calls(CALL_CHANGED, 10), 1);
	assert_int_equal(fake_calls(CALL_CHANGED, 11), 1);
}

static void leaves_ipv6_to_linux_where_it_is_disabled(void **state)
{
	snprintf(fake.no_ipv6, sizeof(fake.no_ipv6), "p0");
	fake_address(&fake, 10, "fe80::1/64", true); // what the kernel reports in that case
	fake_flush(&fake);
	assert_int_equal(flags_of(10), IFACE_LINUX6);
	assert_int_equal(flags_of(11), 0);
	assert_int_equal(fake.n_dumps_requested, 1); // for its next hops
	fake.no_ipv6[0] = 0;
	fake_address(&fake, 10, "fe80::1/64", false);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), 0);
	assert_int_equal(fake.n_dumps_requested, 2);
}

static void dump_without_ipv6_settings(uint32_t partial)
{
	struct event_link tap = fake_tap(0);

	mirror_dump_begins(fake.mirror);
	fake.in_dump = true;
	fake_basics(&fake);
	fake_iface(&fake, &tap);
	fake_conf(&fake, 10, 4, 1);
	mirror_dump_ends(fake.mirror, partial);
	fake.in_dump = false;
	fake_flush(&fake);
}

static void leaves_ipv6_to_linux_where_its_settings_are_gone(void **state)
{
	struct event gone = {.kind = EVENT_NETCONF,
		.is_delete = true,
		.netconf = {.ifindex = 10, .family = 6}};
	struct event_link tap = fake_tap(0);

	tap.mtu = 1000; // IPv6 requires 1280: the kernel disables it
	fake_iface(&fake, &tap);
	mirror_event(fake.mirror, &gone);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), IFACE_LINUX6);
	fake_router(&fake, &tap);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), 0);
	dump_without_ipv6_settings(1 << EVENT_NETCONF); // the kernel could not dump them all
	assert_int_equal(flags_of(10), 0);
	dump_without_ipv6_settings(0);
	assert_int_equal(flags_of(10), IFACE_LINUX6);
}

static void shows_redirects_to_linux_where_it_sends_them(void **state)
{
	struct event_link vlan = fake_vlan(20, 10, 100);

	snprintf(fake.no_redirects, sizeof(fake.no_redirects), "%s", vlan.name);
	add(vlan);
	assert_int_equal(fake_fib_iface(&fake, 20)->flags, 0);
	assert_int_equal(fake_fib_iface(&fake, 10)->flags, IFACE_REDIRECTS4 | IFACE_REDIRECTS6);
}

static void looks_at_sysctls_now_and_then(void **state)
{
	snprintf(fake.no_redirects, sizeof(fake.no_redirects), "p1");
	fake_flush(&fake);
	assert_int_not_equal(fake_fib_iface(&fake, 11)->flags, 0);
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	assert_int_equal(fake_fib_iface(&fake, 11)->flags, 0);
	assert_int_not_equal(fake_fib_iface(&fake, 10)->flags, 0);
}

static void takes_over_a_lower_mtu_of_ipv6(void **state)
{
	struct event_link tap = fake_tap(1);

	snprintf(fake.has_mtu6, sizeof(fake.has_mtu6), "p1");
	fake.mtu6 = 1400;
	mirror_poll(fake.mirror); // there is no notification
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	assert_int_equal(fake_fib_iface(&fake, 11)->mtu6, 1400);
	assert_int_equal(fake_fib_iface(&fake, 11)->mtu, 1500);
	assert_int_equal(fake_fib_iface(&fake, 10)->mtu6, 0);
	fake.mtu6 = tap.mtu = 1600; // Linux sets the IPv6 MTU with the interface's MTU
	fake_iface(&fake, &tap);
	fake_flush(&fake);
	assert_int_equal(fake_fib_iface(&fake, 11)->mtu6, 0);
	assert_int_equal(fake_fib_iface(&fake, 11)->mtu, 1600);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(makes_a_tap_the_iface_of_its_port),
		TEST(takes_nothing_in_on_a_port_without_its_tap),
		TEST(forwards_nothing_before_linux_has_told_of_forwarding),
		TEST(gives_vlans_ifaces_of_their_own),
		TEST(a_vlan_without_a_number_takes_what_is_untagged),
		TEST(tells_names_before_workers_know_the_interface),
		TEST(gives_vlans_up_with_their_tap),
		TEST(stacks_tags_with_the_outer_one_first),
		TEST(survives_vlans_in_a_circle),
		TEST(knows_no_iface_that_stands_on_no_tap),
		TEST(takes_a_iface_down_with_what_is_under_it),
		TEST(leaves_to_linux_what_workers_do_not_know),
		TEST(leaves_what_is_in_a_ring_to_linux),
		TEST(treats_a_master_not_yet_told_of_as_unknown),
		TEST(hands_all_frames_to_linux_where_tc_or_xdp_is),
		TEST(leaves_to_linux_where_programs_hang_by_tcx),
		TEST(sends_nothing_itself_where_tc_shapes),
		TEST(sends_nothing_itself_where_linux_sets_priorities),
		TEST(counts_macvlan_addresses_as_ours),
		TEST(takes_all_frames_in_where_linux_wants_those_for_others),
		TEST(leaves_a_tap_with_many_macvlans_to_linux),
		TEST(leaves_a_macvlan_that_goes_its_own_way_to_linux),
		TEST(leaves_packets_to_linux_where_forwarding_is_off),
		TEST(workers_check_sources_as_rp_filter_says),
		TEST(an_interface_without_an_ipv4_address_is_never_loose),
		TEST(leaves_packets_to_linux_under_rp_filter_beside_macvlans),
		TEST(ipv6_routes_that_go_without_a_notification_are_dumped_again),
		TEST(routes_without_carrier_do_not_count_where_all_say_so),
		TEST(leaves_ipv6_to_linux_where_it_is_disabled),
		TEST(leaves_ipv6_to_linux_where_its_settings_are_gone),
		TEST(shows_redirects_to_linux_where_it_sends_them),
		TEST(looks_at_sysctls_now_and_then),
		TEST(takes_over_a_lower_mtu_of_ipv6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
