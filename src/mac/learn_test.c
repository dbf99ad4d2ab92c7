// Learning, ageing, moves, limits, storm control and changes of bridges, in virtual time.
#include "mac/testing.h"

enum { SECOND = 1 << 30, PORTS = 5, AGEING_S = 20, BRIDGE_MAX = 100 };

static struct mac_table *table;
static struct rcu *rcu;
static uint64_t now;
static unsigned n_held_calls;
static struct mac_info held_info;
static uint16_t held_other;

static struct mac_member members[PORTS] = {
	{.port = 0, .flags = MAC_LEARNS | MAC_FLOODS},
	{.port = 1, .flags = MAC_LEARNS | MAC_FLOODS},
	{.port = 2, .flags = MAC_LEARNS, .max = 10},
	{.port = 3, .flags = MAC_FLOODS | MAC_ISOLATED},
	{.port = 4, .flags = MAC_LEARNS | MAC_FLOODS | MAC_ISOLATED | MAC_HAIRPIN},
};
static struct mac_fixed fixed[] = {{{{2, 0, 0, 0, 0xff, 1}}, 1, 0, false}};

static struct mac_bridge bridge_of(const char *name)
{
	struct mac_bridge bridge = {.ageing_s = AGEING_S,
		.max = BRIDGE_MAX,
		.storm_pps = {100, 0, 10},
		.member = members,
		.n_members = PORTS,
		.fixed = fixed,
		.n_fixed = 1};

	strcpy(bridge.name, name);
	return bridge;
}

static void commit(const struct mac_bridge bridges[], unsigned n)
{
	struct mac_pending *pending;

	assert_int_equal(mac_prepare(table, bridges, n, &pending, NULL), 0);
	mac_commit(table, pending, now);
}

static void note_held(void *ctx, const struct mac_info *info, uint16_t other)
{
	n_held_calls++;
	held_info = *info;
	held_other = other;
}

static int open_table(void **state)
{
	const struct mac_bridge bridge = bridge_of("br0");

	rcu = rcu_create(1, NULL);
	const struct mac_settings settings = {.hz = SECOND,
		.n_workers = 1,
		.rcu = rcu,
		.held = note_held};

	now = 1000ull * SECOND;
	n_held_calls = 0;
	assert_int_equal(mac_open(&table, &settings, NULL), 0);
	commit(&bridge, 1);
	return 0;
}

static int close_table(void **state)
{
	mac_close(table);
	rcu_destroy(rcu);
	return 0;
}

// As the bridge step does it.
static void see(unsigned number, uint16_t port)
{
	const struct mac_view *view = mac_live_view(mac_live(table));
	const uint64_t key = testing_key(view->port[port].domain, number);
	const uint32_t tick = mac_tick(view, now);
	struct mac_found found;

	mac_lookup(view->slots, &key, 1, &found);
	if (found.slot)
		mac_mark(&found, tick);
	if (!found.slot || (found.port != port && !found.flags))
		assert_true(mac_tell(mac_live(table), 0,
			&(struct mac_told){.key = key, .port = port, .tick = tick}));
}

static void poll_all(void)
{
	while (mac_poll(table, now))
		;
}

static int port_of(unsigned number)
{
	const struct mac_slot *slot = macs_find(table_slots(table), testing_key(1, number));

	return slot ? slot->port : -1;
}

static struct mac_usage usage(void)
{
	struct mac_usage out;

	assert_true(mac_usage(table, 1, &out));
	return out;
}

static void pass(unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		now += SECOND;
		mac_poll(table, now);
	}
}

static void addresses_are_learnt_where_ports_learn(void **state)
{
	see(1, 0);
	see(2, 2);
	see(3, 3);
	see(3, 3); // told once only in a tick
	assert_int_equal(port_of(1), -1);
	poll_all();
	assert_int_equal(port_of(1), 0);
	assert_int_equal(port_of(2), 2);
	assert_int_equal(port_of(3), -1);
	assert_int_equal(usage().n_learnt, 2);
}

static void silent_addresses_age_and_used_ones_stay(void **state)
{
	see(1, 0);
	see(2, 0);
	poll_all();
	for (unsigned i = 0; i < AGEING_S - 1; i++) {
		pass(1);
		see(2, 0);
	}
	assert_int_equal(port_of(1), 0);
	pass(4); // one tick more, and the search for old ones
	assert_int_equal(port_of(1), -1);
	assert_int_equal(port_of(2), 0);
	assert_int_equal(port_of(0xff01), 1); // static
	assert_int_equal(usage().n_aged, 1);
	pass(2 * AGEING_S);
	assert_int_equal(usage().n_learnt, 0);
}

static void a_static_address_stays_where_it_is(void **state)
{
	const uint64_t key = testing_key(1, 0xff01);

	assert_true(mac_tell(mac_live(table), 0, &(struct mac_told){.key = key, .tick = 1}));
	poll_all();
	assert_int_equal(port_of(0xff01), 1);
}

static void an_address_moves_and_is_held_when_it_moves_too_often(void **state)
{
	see(1, 0);
	poll_all();
	for (unsigned i = 1; i <= MAC_MOVES + 1; i++) {
		see(1, i % 2);
		poll_all();
		assert_int_equal(port_of(1), i <= MAC_MOVES ? i % 2 : 1);
	}
	assert_int_equal(usage().n_moved, MAC_MOVES);
	assert_int_equal(usage().n_held, 1);
	assert_int_equal(n_held_calls, 1);
	assert_true(held_info.is_held && held_info.port == 1 && held_other == 0);
	for (unsigned i = 1; i < MAC_HOLD_S; i++) {
		pass(1);
		see(1, 0);
		poll_all();
		assert_int_equal(port_of(1), 1);
	}
	pass(2);
	see(1, 0);
	poll_all();
	assert_int_equal(port_of(1), 0);
	assert_int_equal(n_held_calls, 1);
}

static void slow_moves_are_never_held(void **state)
{
	for (unsigned i = 0; i < 50; i++) {
		see(1, i % 2);
		poll_all();
		assert_int_equal(port_of(1), i % 2);
		pass(1);
	}
	assert_int_equal(n_held_calls, 0);
}

static void a_port_learns_no_more_than_its_limit(void **state)
{
	for (unsigned i = 0; i < 30; i++)
		see(i, 2);
	see(100, 0);
	poll_all();
	assert_int_equal(table->n_learnt[2], 10);
	assert_int_equal(usage().n_refused, 20);
	assert_int_equal(port_of(100), 0);
	see(100, 2); // nor does one move there
	poll_all();
	assert_int_equal(port_of(100), 0);
}

static void at_the_limit_the_busiest_port_makes_room(void **state)
{
	for (unsigned i = 0; i < 4 * BRIDGE_MAX; i++)
		see(i, 0);
	poll_all();
	assert_int_equal(usage().n_learnt, BRIDGE_MAX - 1); // and a static one
	for (unsigned i = 0; i < 10; i++)
		see(10000 + i, 1);
	poll_all();
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(port_of(10000 + i), 1);
	assert_int_equal(usage().n_learnt, BRIDGE_MAX - 1);
	assert_int_equal(usage().n_evicted, 10);
	// A flood of another port takes no more than half.
	for (unsigned i = 0; i < 4 * BRIDGE_MAX; i++)
		see(20000 + i, 4);
	poll_all();
	assert_int_equal(usage().n_learnt, BRIDGE_MAX - 1);
	assert_true(table->n_learnt[4] <= BRIDGE_MAX / 2 && table->n_learnt[0] >= 40);
	assert_int_equal(table->n_learnt[1], 10);
}

static void a_full_ring_refuses(void **state)
{
	unsigned n = 0;

	while (n < 2 * MAC_RING && mac_tell(mac_live(table), 0,
					   &(struct mac_told){.key = testing_key(1, n), .tick = 1}))
		n++;
	assert_int_equal(n, MAC_RING);
	poll_all();
	assert_true(mac_tell(mac_live(table), 0,
		&(struct mac_told){.key = testing_key(1, n), .tick = 1}));
}

static void floods_go_where_flags_say(void **state)
{
	const struct mac_view *view = mac_live_view(mac_live(table));

	assert_int_equal(view->port[0].copies[MAC_BROADCAST][0], 0x1e);
	assert_int_equal(view->port[0].copies[MAC_UNKNOWN][0], 0x1a);
	assert_int_equal(view->port[3].copies[MAC_BROADCAST][0], 0x07);
	// Hairpin: but it is isolated from itself, too.
	assert_int_equal(view->port[4].copies[MAC_BROADCAST][0], 0x07);
	assert_int_equal(view->port[5].domain, 0);
}

static void storm_control_lets_its_rate_pass(void **state)
{
	const struct mac_live *live = mac_live(table);
	const struct mac_view *view = mac_live_view(live);
	unsigned n[MAC_STORMS] = {0};

	for (unsigned i = 0; i < 10000; i++, now += SECOND / 1000)
		for (unsigned kind = 0; kind < MAC_STORMS; kind++)
			n[kind] += mac_storm_passes(live, view, 0, kind, now);
	assert_in_range(n[MAC_BROADCAST], 1000, 1006);
	assert_int_equal(n[MAC_MULTICAST], 10000);
	assert_in_range(n[MAC_UNKNOWN], 100, 101);
}

static void a_change_keeps_what_is_still_valid(void **state)
{
	struct mac_bridge bridges[2] = {bridge_of("other"), bridge_of("br0")};

	see(1, 0);
	see(2, 1);
	see(3, 2);
	poll_all();
	bridges[0].member = &members[4];
	bridges[0].n_members = 1;
	bridges[0].n_fixed = 0;
	bridges[1].n_members = 2; // port 2 has gone
	commit(bridges, 2);
	assert_int_equal(mac_domain(table, "br0"), 1);
	assert_int_equal(mac_domain(table, "other"), 2);
	assert_int_equal(port_of(1), 0);
	assert_int_equal(port_of(2), 1);
	assert_int_equal(port_of(3), -1);
	assert_int_equal(port_of(0xff01), 1);
	assert_int_equal(usage().n_learnt, 2);
	assert_int_equal(usage().n_added, 3);
	see(1, 4); // the same address in another bridge is another one
	poll_all();
	assert_int_equal(port_of(1), 0);
	commit(NULL, 0);
	assert_false(mac_usage(table, 1, &(struct mac_usage){0}));
	commit(bridges, 2);
	assert_int_equal(port_of(1), -1);
}

static void a_bridge_of_another_name_keeps_nothing(void **state)
{
	const struct mac_bridge bridge = bridge_of("new");

	see(1, 0);
	poll_all();
	commit(&bridge, 1);
	assert_int_equal(mac_domain(table, "br0"), 0);
	assert_null(macs_find(table_slots(table), testing_key(mac_domain(table, "new"), 1)));
}

static void a_bridge_of_linux_in_place_of_another_keeps_nothing(void **state)
{
	struct mac_bridge bridge = bridge_of("br0");

	bridge.linux_id = 7;
	commit(&bridge, 1);
	see(1, 0);
	poll_all();
	assert_int_equal(port_of(1), 0);
	commit(&bridge, 1);
	assert_int_equal(port_of(1), 0);
	bridge.linux_id = 8; // of the same name
	commit(&bridge, 1);
	assert_int_equal(port_of(1), -1);
	assert_int_equal(usage().n_added, 0);
}

static void flush_forgets_learnt_addresses_only(void **state)
{
	see(1, 0);
	see(2, 1);
	poll_all();
	assert_int_equal(mac_flush(table, &(struct mac_choice){1, 1}), 1);
	assert_int_equal(port_of(1), 0);
	assert_int_equal(port_of(2), -1);
	assert_int_equal(mac_flush(table, &(struct mac_choice){0, MAC_PORTS}), 1);
	see(1, 0); // told again, although it was told in this tick
	poll_all();
	assert_int_equal(port_of(1), 0);
	assert_int_equal(mac_flush(table, &(struct mac_choice){0, MAC_PORTS}), 1);
	assert_int_equal(port_of(0xff01), 1);
	assert_int_equal(table->n_learnt[0] + table->n_learnt[1], 0);
}

static void pages_have_each_address_once(void **state)
{
	struct mac_info page[7];
	unsigned n = 0, n_static = 0;
	uint32_t place = 0;

	for (unsigned i = 0; i < 50; i++)
		see(i, i % 2);
	poll_all();
	do {
		unsigned got =
			mac_page(table, &(struct mac_choice){1, MAC_PORTS}, now, &place, page, 7);
		for (unsigned i = 0; i < got; i++)
			n_static += page[i].is_static;
		n += got;
	} while (place);
	assert_int_equal(n, 51);
	assert_int_equal(n_static, 1);
	assert_int_equal(mac_page(table, &(struct mac_choice){1, 0}, now, &place, page, 7), 7);
	assert_int_equal(page[0].port, 0);
	place = UINT32_MAX;
	assert_int_equal(mac_page(table, &(struct mac_choice){1, 0}, now, &place, page, 7), 0);
	assert_int_equal(place, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_table, close_table)

static bool follow(unsigned number, uint16_t port)
{
	const uint64_t key = testing_key(1, number);
	struct mac_fixed at = {.port = port};

	memcpy(at.mac.bytes, &key, sizeof(at.mac.bytes));
	return mac_follow(table, 1, &at, now);
}

static unsigned count_unseen(void)
{
	struct mac_info info[8];
	uint32_t place = 0;
	unsigned n_unseen = 0;
	const unsigned n =
		mac_page(table, &(struct mac_choice){1, MAC_PORTS}, now, &place, info, 8);

	for (unsigned i = 0; i < n; i++)
		n_unseen += info[i].is_unseen;
	return n_unseen;
}

static void addresses_of_linux_are_moved_and_forgotten_by_linux_only(void **state)
{
	struct mac_bridge bridge = bridge_of("br0");

	bridge.n_fixed = 0;
	bridge.max = 3;
	commit(&bridge, 1);
	for (unsigned i = 0; i < 3; i++)
		assert_true(follow(i, 0));
	assert_false(follow(3, 0)); // over the limit
	assert_int_equal(port_of(3), -1);
	assert_int_equal(count_unseen(), 3); // by workers
	assert_true(follow(2, 1));           // moves at the limit, too
	assert_int_equal(port_of(2), 1);
	see(0, 4); // no worker moves it
	poll_all();
	assert_int_equal(port_of(0), 0);
	now += 10ull * AGEING_S * SECOND;
	poll_all();
	assert_int_equal(usage().n_learnt, 3);
	bridge.max = 5;
	commit(&bridge, 1);
	assert_int_equal(port_of(0), 0);
	assert_true(follow(3, 0));
	bridge.n_members = 1; // port 1 leaves
	commit(&bridge, 1);
	assert_int_equal(port_of(2), -1);
	assert_int_equal(usage().n_learnt, 3);
	mac_unfollow(table, 1, &(struct mac_fixed){.mac = {{2, 0, 0, 0, 0, 0}}});
	mac_unfollow(table, 1, &(struct mac_fixed){.mac = {{2, 9, 9, 9, 9, 9}}}); // never known
	assert_int_equal(port_of(0), -1);
	assert_int_equal(usage().n_learnt, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(addresses_are_learnt_where_ports_learn),
		TEST(silent_addresses_age_and_used_ones_stay),
		TEST(a_static_address_stays_where_it_is),
		TEST(an_address_moves_and_is_held_when_it_moves_too_often),
		TEST(slow_moves_are_never_held),
		TEST(a_port_learns_no_more_than_its_limit),
		TEST(at_the_limit_the_busiest_port_makes_room),
		TEST(a_full_ring_refuses),
		TEST(floods_go_where_flags_say),
		TEST(storm_control_lets_its_rate_pass),
		TEST(a_change_keeps_what_is_still_valid),
		TEST(a_bridge_of_another_name_keeps_nothing),
		TEST(a_bridge_of_linux_in_place_of_another_keeps_nothing),
		TEST(flush_forgets_learnt_addresses_only),
		TEST(pages_have_each_address_once),
		TEST(addresses_of_linux_are_moved_and_forgotten_by_linux_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
