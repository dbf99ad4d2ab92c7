// Neighbours on interfaces of all kinds: synthetic events, a real fib. Tests only.
#include "netlink/fake_linux.h"

#include <linux/neighbour.h>
#include <stdio.h>
#include <string.h>

static unsigned n_in_fib(void)
{
	struct fib_usage usage;

	fake_flush(&fake);
	fib_usage(fake.fib, &usage);
	return usage.n_neighbours;
}

// The last byte of the MAC address that workers use for an on-link host, 0: unresolved.
static uint8_t mac_of(int ifindex, const char *text)
{
	struct fib_change change = {.op = FIB_REPLACE,
		.route.hop = {.kind = FIB_CONNECTED, .iface = IFACE_NONE}};
	struct fib_answer answer;
	struct wire_addr addr = fake_addr(text);

	fake_flush(&fake);
	change.route.prefix = (struct wire_prefix){addr, addr.family == 4 ? 24 : 64};
	wire_prefix_mask(&change.route.prefix);
	change.route.hop.iface = ifaces_state(fake.mirror, ifindex).iface;
	if (change.route.hop.iface == IFACE_NONE)
		return 0;
	change.route.vrf = fib_iface(fake.fib, change.route.hop.iface)->vrf;
	assert_int_equal(fib_change(fake.fib, &change, 1, NULL, NULL), 0);
	rib_lookup(fake.fib, change.route.vrf, &addr, &answer);
	return answer.verdict == VERDICT_FORWARD ? answer.mac.bytes[5] : 0;
}

static void uses_a_neighbour_while_its_state_is_valid(void **state)
{
	static const struct {
		uint16_t state;
		bool usable;
	} row[] = {{NUD_PERMANENT, true}, {NUD_NOARP, true}, {NUD_REACHABLE, true},
		{NUD_PROBE, true}, {NUD_STALE, true}, {NUD_DELAY, true}, {NUD_NONE, false},
		{NUD_INCOMPLETE, false}, {NUD_FAILED, false}};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		fake_neighbour(&fake, 10, "10.0.0.7", (struct fake_seen){7, row[i].state});
		assert_int_equal(mac_of(10, "10.0.0.7"), row[i].usable ? 7 : 0);
		fake_neighbour(&fake, 10, "2001:db8::7", (struct fake_seen){9, row[i].state});
		assert_int_equal(mac_of(10, "2001:db8::7"), row[i].usable ? 9 : 0);
	}
}

static void replaces_a_changed_address(void **state)
{
	fake_neighbour(&fake, 10, "10.0.0.7", (struct fake_seen){7, NUD_REACHABLE});
	assert_int_equal(mac_of(10, "10.0.0.7"), 7);
	fake_neighbour(&fake, 10, "10.0.0.7", (struct fake_seen){8, NUD_STALE});
	assert_int_equal(mac_of(10, "10.0.0.7"), 8);
	assert_int_equal(n_in_fib(), 1);
	fake_neighbour_gone(&fake, 10, "10.0.0.7");
	assert_int_equal(mac_of(10, "10.0.0.7"), 0);
	assert_int_equal(n_in_fib(), 0);
}

static void forgets_a_neighbour_that_has_no_address_any_more(void **state)
{
	fake_neighbour(&fake, 10, "10.0.0.7", (struct fake_seen){7, NUD_REACHABLE});
	assert_int_equal(n_in_fib(), 1);
	fake_neighbour(&fake, 10, "10.0.0.7", (struct fake_seen){0, NUD_FAILED});
	assert_int_equal(n_in_fib(), 0);
	fake_neighbour(&fake, 10, "10.0.0.8", (struct fake_seen){0, NUD_NOARP});
	assert_int_equal(n_in_fib(), 0);
}

static void ignores_what_is_no_neighbour(void **state)
{
	struct event event = {.kind = EVENT_NEIGHBOUR,
		.neighbour = {.ifindex = 10,
			.addr = fake_addr("10.0.0.9"),
			.mac = fake_mac(9),
			.has_mac = true,
			.state = NUD_PERMANENT,
			.flags = NTF_PROXY}};

	mirror_event(fake.mirror, &event);
	event.neighbour.flags = 0;
	event.neighbour.state = NUD_NOARP;
	memset(&event.neighbour.mac, 0xff, 6); // a broadcast address
	mirror_event(fake.mirror, &event);
	fake_neighbour(&fake, 10, "224.0.0.5", (struct fake_seen){5, NUD_NOARP});
	fake_neighbour(&fake, 10, "ff02::16", (struct fake_seen){5, NUD_NOARP});
	fake_neighbour(&fake, 1, "127.0.0.1", (struct fake_seen){5, NUD_NOARP});
	assert_int_equal(n_in_fib(), 0);
}

static void knows_neighbours_that_came_before_their_iface(void **state)
{
	struct event_link vlan = fake_vlan(20, 10, 7), vrf = fake_vrf(50, "red", 10);

	vlan.master = 50;
	fake_neighbour(&fake, 20, "10.0.0.7", (struct fake_seen){7, NUD_REACHABLE});
	fake_neighbour(&fake, 10, "10.0.0.7", (struct fake_seen){8, NUD_REACHABLE});
	assert_int_equal(n_in_fib(), 1);
	fake_router(&fake, &vlan);
	fake_router(&fake, &vrf);
	assert_int_equal(mac_of(20, "10.0.0.7"), 7);
	assert_int_equal(mac_of(10, "10.0.0.7"), 8);
	assert_int_not_equal(fake_fib_iface(&fake, 20)->vrf, 0);
}

static void forgets_neighbours_with_their_iface(void **state)
{
	struct event_link vlan = fake_vlan(20, 10, 7);

	fake_router(&fake, &vlan);
	fake_neighbour(&fake, 20, "10.0.0.7", (struct fake_seen){7, NUD_PERMANENT});
	assert_int_equal(n_in_fib(), 1);
	fake_iface_gone(&fake, 20);
	fake_router(&fake, &vlan); // the same again, before any flush
	assert_int_equal(n_in_fib(), 0);
	struct neighbour found;
	struct wire_addr addr = fake_addr("10.0.0.7");
	assert_false(neighbours_find(fake.mirror->neighbours, 20, &addr, &found));
}

// The removal is reported late: the event was lost, and the dump has not ended yet.
static void keeps_the_neighbours_of_a_tap_that_was_made_anew(void **state)
{
	struct event_link anew = fake_tap(0);

	anew.ifindex = 30;
	fake_neighbour(&fake, 10, "10.0.0.7", (struct fake_seen){7, NUD_REACHABLE});
	fake_neighbour(&fake, 10, "10.0.0.8", (struct fake_seen){8, NUD_REACHABLE});
	assert_int_equal(n_in_fib(), 2);
	fake_router(&fake, &anew);
	fake_neighbour(&fake, 30, "10.0.0.7", (struct fake_seen){9, NUD_REACHABLE});
	fake_flush(&fake);
	mirror_tap_changed(fake.mirror, 0, 30);
	assert_int_equal(mac_of(30, "10.0.0.7"), 9);
	assert_int_equal(mac_of(30, "10.0.0.8"), 0);
	fake_iface_gone(&fake, 10);
	assert_int_equal(mac_of(30, "10.0.0.7"), 9);
	assert_int_equal(n_in_fib(), 1);
}

static void takes_neighbours_away_where_only_linux_may_send(void **state)
{
	struct event_link tap = fake_tap(0);

	fake_neighbour(&fake, 10, "10.0.0.7", (struct fake_seen){7, NUD_PERMANENT});
	assert_int_equal(n_in_fib(), 1);
	tap.master = 40;
	fake_router(&fake, &tap);
	assert_int_equal(n_in_fib(), 0);
	tap.master = 0;
	fake_router(&fake, &tap);
	assert_int_equal(mac_of(10, "10.0.0.7"), 7);
}

static void shows_all_to_those_who_keep_them_alive(void **state)
{
	struct wire_addr addr;
	struct neighbour found;
	unsigned n = 0, n_published = 0;
	char text[32];

	for (unsigned i = 1; i <= 3000; i++) {
		snprintf(text, sizeof(text), "10.1.%u.%u", i / 250, i % 250);
		fake_neighbour(&fake, i % 2 ? 10 : 99, text, (struct fake_seen){7, NUD_STALE});
	}
	fake_flush(&fake);
	for (uint32_t at = 0; neighbours_next(fake.mirror->neighbours, &at, &found); n++)
		n_published += found.iface != IFACE_NONE;
	assert_int_equal(n, 3000);
	assert_int_equal(n_published, 1500);
	addr = fake_addr("10.1.0.1");
	assert_true(neighbours_find(fake.mirror->neighbours, 10, &addr, &found));
	assert_int_equal(found.state, NUD_STALE);
	assert_int_equal(found.iface, 0);
	assert_int_equal(ifaces_ifindex(fake.mirror, found.iface), 10);
	assert_false(neighbours_find(fake.mirror->neighbours, 11, &addr, &found));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(uses_a_neighbour_while_its_state_is_valid),
		TEST(replaces_a_changed_address),
		TEST(forgets_a_neighbour_that_has_no_address_any_more),
		TEST(ignores_what_is_no_neighbour),
		TEST(knows_neighbours_that_came_before_their_iface),
		TEST(forgets_neighbours_with_their_iface),
		TEST(keeps_the_neighbours_of_a_tap_that_was_made_anew),
		TEST(takes_neighbours_away_where_only_linux_may_send),
		TEST(shows_all_to_those_who_keep_them_alive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
