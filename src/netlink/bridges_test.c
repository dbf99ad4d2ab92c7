// Bridges of Linux: which ports workers serve, and which addresses they know. Synthetic events, a
// real MAC table.
#include "netlink/fake_linux.h"

#include "base/fail_alloc.h"
#include "netlink/bridges_inside.h"

#include <linux/if_bridge.h>
#include <linux/netfilter.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <string.h>

enum { LEFT = FAKE_TAP, RIGHT = FAKE_TAP + 1, BRIDGE = 40, OTHER = 41, VETH = 50, NOWHERE = -1 };
enum { SECOND = 1000000000 };

static struct rcu *rcu;
static uint64_t now_ns;

static struct event_link bridge_link(int ifindex)
{
	struct event_link link = fake_device(ifindex, ifindex == BRIDGE ? "br0" : "br1", "bridge");

	link.bridge.ageing_cs = 30000;
	return link;
}

static struct event_link member(int ifindex, int bridge)
{
	struct event_link link = ifindex == VETH ? fake_device(VETH, "veth0", "veth")
	                                         : fake_tap((unsigned)(ifindex - FAKE_TAP));

	link.master = bridge;
	snprintf(link.slave_kind, sizeof(link.slave_kind), "bridge");
	link.port = (struct event_bridge_port){.is_known = true,
		.state = BR_STATE_FORWARDING,
		.learns = true,
		.floods = true};
	return link;
}

// Attributes of a port that forwards, but for one.
#define PORT(state_is, ...)                                                                        \
	{                                                                                          \
		.is_known = true, .state = state_is, .learns = true, __VA_ARGS__                   \
	}

static void put(const struct event_link *link)
{
	fake_iface(&fake, link);
	fake_flush(&fake);
}

static void join(int ifindex, int bridge)
{
	const struct event_link link = member(ifindex, bridge);

	put(&link);
}

static void tell_mac(struct event_fdb fdb, bool is_delete)
{
	const struct event event = {.kind = EVENT_FDB, .is_delete = is_delete, .fdb = fdb};

	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
}

static struct event_fdb entry(int ifindex, uint8_t host)
{
	return (struct event_fdb){.ifindex = ifindex,
		.bridge = BRIDGE,
		.mac = fake_mac(host),
		.is_plain = true};
}

static void learn(int ifindex, uint8_t host)
{
	tell_mac(entry(ifindex, host), false);
}

// The port behind which workers know the address.
static int port_of(uint8_t host)
{
	const struct mac_choice all = {0, MAC_PORTS};
	const struct wire_mac mac = fake_mac(host);
	struct mac_info info[64];
	uint32_t place = 0;
	int found = NOWHERE;

	do {
		const unsigned n = mac_page(fake_macs, &all, SECOND, &place, info, 64);

		for (unsigned i = 0; i < n; i++)
			if (wire_mac_equal(&info[i].mac, &mac)) {
				assert_int_equal(found, NOWHERE);
				assert_true(info[i].is_linux);
				found = info[i].port;
			}
	} while (place);
	return found;
}

static void expect_served(bool left, bool right)
{
	struct mac_member member;
	uint32_t n;
	uint16_t domain;

	assert_int_equal(fake.is_bridged[0], left);
	assert_int_equal(fake.is_bridged[1], right);
	assert_int_equal(mac_member(fake_macs, 0, &member, &domain, &n), left);
	assert_int_equal(mac_member(fake_macs, 1, &member, &domain, &n), right);
	// The remaining frames are Linux's, as before.
	assert_true(fake_fib_iface(&fake, LEFT)->flags & IFACE_LINUX);
}

static int setup(void **state)
{
	struct mac_settings settings = {.hz = SECOND, .n_workers = 1};

	rcu = rcu_create(1, NULL);
	settings.rcu = rcu;
	assert_int_equal(mac_open(&fake_macs, &settings, NULL), 0);
	fake_setup(state);
	now_ns = SECOND;
	const struct event_link bridge = bridge_link(BRIDGE);
	put(&bridge);
	join(LEFT, BRIDGE);
	join(RIGHT, BRIDGE);
	return 0;
}

static int teardown(void **state)
{
	fake_teardown(state);
	mac_close(fake_macs);
	fake_macs = NULL;
	rcu_destroy(rcu);
	return 0;
}

static void workers_serve_the_ports_of_a_plain_bridge(void **state)
{
	struct mac_usage usage;
	char where[64];

	expect_served(true, true);
	assert_true(mac_usage(fake_macs, 1, &usage));
	assert_string_equal(usage.name, "br0");
	assert_int_equal(usage.ageing_s, 300);
	assert_true(fake.port[0].promiscuous);
	assert_int_equal(fake_unsupported(&fake, "port of a bridge left to Linux", where), 0);
	assert_int_equal(fake_unsupported(&fake, "flooding by a bridge", where), 2);
	const struct event_link alone = fake_tap(0);
	put(&alone);
	assert_false(fake.is_bridged[0]);
	assert_true(fake.is_bridged[1]);
	fake_iface_gone(&fake, BRIDGE);
	fake_flush(&fake);
	assert_false(fake.is_bridged[1]);
}

static void flags_of_ports_are_those_of_workers(void **state)
{
	struct event event = {.kind = EVENT_BRIDGE_PORT,
		.port = {LEFT, BRIDGE,
			{.is_known = true,
				.state = BR_STATE_FORWARDING,
				.is_isolated = true,
				.is_hairpin = true}}};
	struct mac_member member;
	uint16_t domain;
	uint32_t n;

	assert_true(mac_member(fake_macs, 0, &member, &domain, &n));
	assert_int_equal(member.flags, MAC_OF_LINUX | MAC_LEARNS | MAC_FLOODS);
	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
	assert_true(mac_member(fake_macs, 0, &member, &domain, &n));
	assert_int_equal(member.flags, MAC_OF_LINUX | MAC_ISOLATED | MAC_HAIRPIN);
	event.port.master = OTHER; // it has left that one, or is not in it yet
	event.port.port.state = BR_STATE_BLOCKING;
	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
	expect_served(true, true);
}

struct naming {
	const char *word;
	unsigned n;
};

static bool look_for_word(void *arg, const struct netlink_unsupported *one)
{
	struct naming *naming = arg;

	naming->n += !strcmp(one->what, "port of a bridge left to Linux") &&
	             strstr(one->effect, naming->word) != NULL;
	return true;
}

// So many ports are left to Linux for this reason.
static void expect_named(const char *word, unsigned n)
{
	struct naming naming = {.word = word};

	mirror_unsupported(fake.mirror, look_for_word, &naming);
	assert_int_equal(naming.n, n);
}

// Each row makes `left` alone, or both ports, Linux's; then all is as before.
static void what_workers_do_not_do_is_left_to_linux_and_named(void **state)
{
	static const struct {
		struct event_bridge_port port; // in place of left's attributes
		struct event_bridge bridge;
		bool keeps_right;
		const char *word;
	} row[] = {
		{PORT(BR_STATE_FORWARDING, .is_odd = true), {.ageing_cs = 30000}, true, "locked"},
		{PORT(BR_STATE_BLOCKING), {.ageing_cs = 30000}, true, "forwarding"},
		{PORT(BR_STATE_LEARNING), {.ageing_cs = 30000}, true, "forwarding"},
		{PORT(BR_STATE_DISABLED), {.ageing_cs = 30000}, true, "forwarding"},
		{{.is_known = false}, {.ageing_cs = 30000}, true, "attributes"},
		{PORT(BR_STATE_FORWARDING, .answers = true), {.ageing_cs = 30000}, false,
			"proxy_arp"},
		{PORT(BR_STATE_FORWARDING), {.ageing_cs = 30000, .is_odd = true}, false,
			"mst_enabled"},
		{PORT(BR_STATE_FORWARDING), {.ageing_cs = 30000, .max_macs = 100}, false,
			"fdb_max_learned"},
	};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct event_link left = member(LEFT, BRIDGE), bridge = bridge_link(BRIDGE);

		learn(RIGHT, 9);
		left.port = row[i].port;
		bridge.bridge = row[i].bridge;
		put(&bridge);
		put(&left);
		expect_served(false, row[i].keeps_right);
		assert_int_equal(port_of(9), row[i].keeps_right ? 1 : NOWHERE);
		expect_named(row[i].word, row[i].keeps_right ? 1 : 2);
		bridge = bridge_link(BRIDGE);
		put(&bridge);
		join(LEFT, BRIDGE);
		expect_served(true, true);
		assert_int_equal(port_of(9), 1);
	}
}

static void expect_left_to_linux(const char *thing)
{
	if (fake.is_bridged[0])
		fail_msg("workers serve a port of a bridge with %s", thing);
}

static void filters_on_the_path_keep_a_bridge_in_linux(void **state)
{
	struct event_foreign chain = {.hook = NF_INET_FORWARD, .is_bridge = true, .name = "c"};
	struct event_foreign qdisc = {.ifindex = LEFT, .sides = EVENT_INGRESS, .name = "clsact"};
	const struct event_link vlan = fake_vlan(20, LEFT, 7);

	fake_foreign(&fake, EVENT_CHAIN, &chain, false);
	fake_flush(&fake);
	expect_left_to_linux("a hook");
	assert_false(fake_fib_iface(&fake, RIGHT)->flags & IFACE_LINUX4); // it does not see routing
	fake_foreign(&fake, EVENT_CHAIN, &chain, true);
	fake_flush(&fake);
	expect_served(true, true);
	fake_foreign(&fake, EVENT_QDISC, &qdisc, false);
	fake_flush(&fake);
	expect_left_to_linux("filters that are not known");
	fake_foreign(&fake, EVENT_QDISC, &qdisc, true);
	fake_flush(&fake);
	expect_served(true, true);
	put(&vlan);
	expect_left_to_linux("a VLAN interface");
	fake_iface_gone(&fake, 20);
	fake_flush(&fake);
	expect_served(true, true);
	fake.bridge_filters = FILTERS_TABLES;
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	expect_left_to_linux("ebtables");
}

// Linux enters what it is told of a host for each of them, unless it filters by them.
static void a_port_with_more_than_one_vlan_is_left_to_linux(void **state)
{
	struct event event = {.kind = EVENT_VLANS, .vlans = {.ifindex = LEFT, .has = {6}}};
	struct event_link bridge = bridge_link(BRIDGE);

	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
	expect_served(false, true);
	expect_named("more than one VLAN", 1);
	join(LEFT, BRIDGE);
	expect_served(false, true);
	bridge.bridge.filters_vlans = true;
	put(&bridge);
	expect_served(true, true);
	bridge.bridge.filters_vlans = false;
	put(&bridge);
	expect_served(false, true);
	event.vlans.has[0] = 4;
	event.is_delete = true;
	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
	expect_served(true, true);
}

// Most kernels have it on, and nothing that it would call.
static void br_netfilter_alone_keeps_nothing_in_linux(void **state)
{
	struct event_foreign chain = {.hook = NF_INET_FORWARD, .name = "c"};

	fake.bridge_filters = FILTERS_CALLS;
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	expect_served(true, true);
	fake_foreign(&fake, EVENT_CHAIN, &chain, false);
	fake_flush(&fake);
	expect_left_to_linux("a hook of IP");
	fake.bridge_filters = 0;
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	expect_served(true, true);
}

static void workers_know_what_linux_knows_behind_served_ports(void **state)
{
	struct event_fdb vlan = entry(LEFT, 5), local = entry(RIGHT, 6), other = entry(LEFT, 7);

	vlan.vlan = 3;
	local.is_plain = false;
	other.bridge = OTHER;
	learn(LEFT, 1);
	learn(RIGHT, 2);
	join(VETH, BRIDGE);
	learn(VETH, 3);
	tell_mac(vlan, false);
	tell_mac(local, false);
	tell_mac(other, false);
	assert_int_equal(port_of(1), 0);
	assert_int_equal(port_of(2), 1);
	for (uint8_t host = 3; host < 8; host++)
		assert_int_equal(port_of(host), NOWHERE);
	learn(RIGHT, 1); // it moves
	assert_int_equal(port_of(1), 1);
	learn(VETH, 1); // to where only Linux can send
	assert_int_equal(port_of(1), NOWHERE);
	learn(LEFT, 1);
	assert_int_equal(port_of(1), 0);
	local = entry(LEFT, 1); // it becomes an address of the bridge
	local.is_plain = false;
	tell_mac(local, false);
	assert_int_equal(port_of(1), NOWHERE);
	tell_mac(entry(RIGHT, 2), true);
	assert_int_equal(port_of(2), NOWHERE);
}

static void a_dump_removes_what_it_does_not_contain(void **state)
{
	learn(LEFT, 1);
	learn(LEFT, 2);
	mirror_dump_begins(fake.mirror);
	learn(LEFT, 1);
	mirror_dump_ends(fake.mirror, ~0u); // of all kinds, only a part
	fake_flush(&fake);
	assert_int_equal(port_of(2), 0);
	mirror_dump_begins(fake.mirror);
	learn(LEFT, 1);
	mirror_dump_ends(fake.mirror, ~(1u << EVENT_FDB));
	fake_flush(&fake);
	assert_int_equal(port_of(1), 0);
	assert_int_equal(port_of(2), NOWHERE);
}

// Different ones, without a turn between them.
static void tell_many(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct event event = {.kind = EVENT_FDB, .fdb = entry(LEFT, 0)};

		event.fdb.mac.bytes[4] = (uint8_t)i;
		event.fdb.mac.bytes[3] = (uint8_t)(i >> 8);
		mirror_event(fake.mirror, &event);
	}
}

static void a_bridge_gets_space_for_as_many_as_linux_has(void **state)
{
	struct mac_usage usage;
	const unsigned n = MAC_DEFAULT_MAX * 2 + 100;

	tell_many(n);
	fake_flush(&fake);
	assert_true(mac_usage(fake_macs, 1, &usage));
	assert_int_equal(usage.n_learnt, n);
	assert_true(usage.max >= n);
	assert_int_equal(usage.n_refused, 0); // they waited
}

static void without_memory_for_more_a_bridge_keeps_what_it_has(void **state)
{
	const unsigned n = MAC_DEFAULT_MAX + 10;
	struct mac_usage usage;

	tell_many(n);
	fail_alloc_often(1, 1);
	fake_flush(&fake);
	assert_true(fail_alloc_n_failed() > 0);
	fail_alloc_at(0);
	expect_served(true, true);
	assert_true(mac_usage(fake_macs, 1, &usage));
	assert_int_equal(usage.n_learnt, MAC_DEFAULT_MAX);
	assert_true(usage.n_refused >= 10);
	mirror_refresh_macs(fake.mirror, now_ns);
	fake_flush(&fake);
	assert_true(mac_usage(fake_macs, 1, &usage));
	assert_int_equal(usage.n_learnt, MAC_DEFAULT_MAX); // not yet
	mirror_refresh_macs(fake.mirror, now_ns + 10ull * SECOND);
	fake_flush(&fake);
	assert_true(mac_usage(fake_macs, 1, &usage));
	assert_int_equal(usage.n_learnt, n);
}

static void without_memory_ports_that_leave_a_bridge_leave_it(void **state)
{
	struct event_link blocked = member(LEFT, BRIDGE);

	learn(RIGHT, 1);
	blocked.port.state = BR_STATE_BLOCKING;
	fake_iface(&fake, &blocked);
	fail_alloc_often(1, 1);
	fake_flush(&fake);
	fail_alloc_at(0);
	assert_false(fake.is_bridged[0] || fake.is_bridged[1]);
	// Nor do frames from a VXLAN device, of whose bridge they were, leave by them.
	assert_int_equal(mac_live_view(mac_live(fake_macs))->port[0].domain, 0);
	mirror_refresh_macs(fake.mirror, now_ns);
	mirror_refresh_macs(fake.mirror, now_ns + 10ull * SECOND);
	fake_flush(&fake);
	expect_served(false, true);
	assert_int_equal(port_of(1), 1);
}

static bool look_for_more(void *arg, const struct netlink_unsupported *one)
{
	*(bool *)arg |= strstr(one->effect, "knows more than workers") != NULL;
	return true;
}

static void expect_over(bool is_over)
{
	bool found = false;

	mirror_unsupported(fake.mirror, look_for_more, &found);
	assert_int_equal(found, is_over);
}

// Those of a bridge; Linux is asked again when there is space again.
static void addresses_over_the_limit_are_counted_and_left_to_linux(void **state)
{
	struct event_fdb others = entry(VETH, 20);
	struct mac_usage usage;

	fake.mirror->bridges->fdb.most = 4;
	for (uint8_t host = 1; host <= 6; host++)
		learn(LEFT, host);
	assert_int_equal(port_of(4), 0);
	assert_int_equal(port_of(5), NOWHERE);
	assert_true(mac_usage(fake_macs, 1, &usage));
	assert_int_equal(usage.n_refused, 2);
	expect_over(true);
	others.bridge = OTHER;
	tell_mac(others, false); // has a limit of its own
	learn(RIGHT, 4);         // moves all the same
	assert_int_equal(port_of(4), 1);
	const unsigned n_before = fake.n_dumps_requested;
	tell_mac(entry(LEFT, 5), true); // was never stored
	assert_int_equal(fake.n_dumps_requested, n_before);
	tell_mac(entry(LEFT, 1), true);
	assert_int_equal(fake.n_dumps_requested, n_before + 1);
	expect_over(false);
	learn(LEFT, 6);
	assert_int_equal(port_of(6), 0);
}

// One turn does a part, so that routes do not wait.
static void many_addresses_take_several_turns(void **state)
{
	struct mac_usage usage;
	unsigned n_turns = 1;

	tell_many(MAC_DEFAULT_MAX);
	while (mirror_flush(fake.mirror))
		n_turns++;
	assert_true(n_turns > 1);
	join(RIGHT, 0);
	join(RIGHT, BRIDGE);
	mirror_dump_begins(fake.mirror);
	learn(LEFT, 1); // told once more during the dump
	mirror_dump_ends(fake.mirror, ~(1u << EVENT_FDB));
	for (n_turns = 1; mirror_flush(fake.mirror); n_turns++)
		assert_true(n_turns < 1000);
	assert_true(n_turns > 1);
	assert_true(mac_usage(fake_macs, 1, &usage));
	assert_int_equal(usage.n_learnt, 1);
	assert_int_equal(port_of(1), 0);
}

// All of it in one turn, as after a dump.
static void a_bridge_that_replaces_another_has_none_of_its_addresses(void **state)
{
	enum { NEW = 42 };
	struct event event = {.kind = EVENT_FDB, .is_delete = true, .fdb = entry(LEFT, 1)};
	struct event_link bridge = bridge_link(BRIDGE);
	const struct event_link left = member(LEFT, NEW), right = member(RIGHT, NEW);

	learn(LEFT, 1);
	learn(RIGHT, 2);
	bridge.ifindex = NEW;
	mirror_event(fake.mirror, &event);
	fake_iface_gone(&fake, BRIDGE);
	fake_iface(&fake, &bridge);
	fake_iface(&fake, &left);
	fake_iface(&fake, &right);
	event = (struct event){.kind = EVENT_FDB, .fdb = entry(LEFT, 2)};
	event.fdb.bridge = NEW;
	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
	expect_served(true, true);
	assert_int_equal(port_of(1), NOWHERE);
	assert_int_equal(port_of(2), 0);
}

static void a_port_that_is_removed_leaves_its_bridge(void **state)
{
	const struct mirror_port added = {.mac = fake_mac(0), .mtu = 1500, .up = true};

	learn(LEFT, 1);
	mirror_port_removed(fake.mirror, 0);
	assert_false(fake.is_bridged[0]); // another may get its number now
	fake_iface_gone(&fake, LEFT);
	fake_flush(&fake);
	assert_int_equal(port_of(1), NOWHERE);
	mirror_port_added(fake.mirror, 0, LEFT, &added);
	fake_flush(&fake);
	assert_false(fake.is_bridged[0]);
	join(LEFT, BRIDGE);
	assert_true(fake.is_bridged[0]);
}

// As a worker that forwards a frame from there.
static void see(uint8_t host, uint64_t tsc)
{
	const struct mac_view *view = mac_live_view(mac_live(fake_macs));
	const struct wire_mac mac = fake_mac(host);
	uint8_t bytes[8] = {0};
	struct mac_found found;

	memcpy(bytes, mac.bytes, sizeof(mac.bytes));
	const uint64_t key = mac_key(view->port[0].domain, bytes);
	mac_lookup(view->slots, &key, 1, &found);
	assert_non_null(found.slot);
	mac_mark(&found, mac_tick(view, tsc));
}

static void linux_is_told_of_the_hosts_that_workers_see(void **state)
{
	learn(LEFT, 1);
	learn(RIGHT, 2);
	mirror_refresh_macs(fake.mirror, now_ns);
	assert_int_equal(fake.n_seen, 0); // what Linux has told is not told back
	see(2, rte_rdtsc());
	mirror_refresh_macs(fake.mirror, now_ns + SECOND); // not yet
	assert_int_equal(fake.n_seen, 0);
	mirror_refresh_macs(fake.mirror, now_ns + 30ull * SECOND); // a tenth of the ageing time
	assert_int_equal(fake.n_seen, 1);
	assert_int_equal(fake.seen.ifindex, RIGHT);
	assert_true(fake.seen.mac.bytes[5] == 2);
}

// Which forgets sooner after a change of the spanning tree.
static void a_bridge_with_stp_is_told_more_often(void **state)
{
	struct event_link bridge = bridge_link(BRIDGE);

	bridge.bridge.stp = 1;
	put(&bridge);
	learn(RIGHT, 2);
	mirror_refresh_macs(fake.mirror, now_ns);
	see(2, rte_rdtsc());
	mirror_refresh_macs(fake.mirror, now_ns + 4ull * SECOND);
	assert_int_equal(fake.n_seen, 0);
	mirror_refresh_macs(fake.mirror, now_ns + 5ull * SECOND);
	assert_int_equal(fake.n_seen, 1);
}

static void the_table_neither_ages_nor_flushes_what_is_linuxs(void **state)
{
	const struct mac_choice all = {0, MAC_PORTS};

	learn(LEFT, 1);
	for (unsigned i = 0; i < 1000; i++)
		mac_poll(fake_macs, rte_rdtsc() + i * (uint64_t)SECOND);
	assert_int_equal(port_of(1), 0);
	assert_int_equal(mac_flush(fake_macs, &all), 0);
	assert_int_equal(port_of(1), 0);
}

// With forwarding enabled, as an interface that routes.
static void put_router(const struct event_link *bridge)
{
	fake_router(&fake, bridge);
	fake_flush(&fake);
}

static const struct mac_view *view_now(void)
{
	return mac_live_view(mac_live(fake_macs));
}

// What Linux gets of its packets.
static uint16_t flags_of(int ifindex)
{
	return fake_fib_iface(&fake, ifindex)->flags & ~(IFACE_REDIRECTS4 | IFACE_REDIRECTS6);
}

// Frames on port 0 to this address are routed.
static void expect_routed(const struct event_link *bridge)
{
	const struct mac_port *port = &view_now()->port[0];
	uint8_t bytes[8] = {0};

	memcpy(bytes, bridge->mac.bytes, sizeof(bridge->mac.bytes));
	assert_int_not_equal(port->domain, 0);
	assert_true(port->own == mac_key(port->domain, bytes));
	assert_ptr_equal(fib_iface(fake.fib, port->iface), fake_fib_iface(&fake, bridge->ifindex));
	assert_int_equal(mac_iface_of(view_now(), port->iface)->domain, port->domain);
}

static void a_bridge_is_an_interface_of_workers(void **state)
{
	struct event_link bridge = bridge_link(BRIDGE);
	const struct iface *iface = fake_fib_iface(&fake, BRIDGE);
	struct wire_addr addr = fake_addr("10.9.0.2");
	const struct fib_hop connected = {.kind = FIB_CONNECTED};
	struct fib_change change = {.op = FIB_ADD, .route.hop = connected};
	struct fib_answer answer;
	struct mac_way way;

	assert_true(iface->is_bridge);
	assert_int_equal(flags_of(BRIDGE), IFACE_LINUX4 | IFACE_LINUX6); // forwarding is off
	bridge.mac = fake_mac(77);
	bridge.mtu = 1400;
	put_router(&bridge);
	iface = fake_fib_iface(&fake, BRIDGE);
	assert_int_equal(flags_of(BRIDGE), 0);
	assert_int_equal(iface->mtu, 1400);
	expect_routed(&bridge);
	fake_neighbour(&fake, BRIDGE, "10.9.0.2", (struct fake_seen){5, 2});
	change.route.hop.iface = view_now()->port[0].iface;
	assert_int_equal(wire_prefix_parse("10.9.0.0/16", &change.route.prefix), 0);
	assert_int_equal(fib_change(fake.fib, &change, 1, NULL, NULL), 0);
	fake_flush(&fake);
	rib_lookup(fake.fib, 0, &addr, &answer);
	assert_int_equal(answer.verdict, VERDICT_FORWARD);
	assert_false(mac_way_to(fake_macs, answer.hop.iface, &answer.mac, &way));
	learn(RIGHT, 5);
	assert_true(mac_way_to(fake_macs, answer.hop.iface, &answer.mac, &way));
	assert_int_equal(way.port, 1);
	learn(LEFT, 5);
	assert_true(mac_way_to(fake_macs, answer.hop.iface, &answer.mac, &way));
	assert_int_equal(way.port, 0);
}

static void a_bridge_in_a_vrf_is_routed_in_it(void **state)
{
	const struct event_link vrf = fake_vrf(60, "red", 100);
	struct event_link bridge = bridge_link(BRIDGE);

	put(&vrf);
	bridge.master = 60;
	put_router(&bridge);
	assert_int_not_equal(fake_fib_iface(&fake, BRIDGE)->vrf, 0);
	assert_int_equal(flags_of(BRIDGE), 0);
	expect_routed(&bridge);
	expect_served(true, true);
}

static void a_bridge_without_ports_of_workers_is_linuxs(void **state)
{
	struct event_link bridge = bridge_link(OTHER);

	put_router(&bridge);
	assert_null(fake_fib_iface(&fake, OTHER));
	join(VETH, OTHER);
	assert_null(fake_fib_iface(&fake, OTHER));
	join(LEFT, OTHER);
	assert_non_null(fake_fib_iface(&fake, OTHER));
	expect_routed(&bridge);
	fake_iface_gone(&fake, OTHER);
	fake_flush(&fake);
	assert_int_equal(view_now()->port[0].domain, 0);
}

static void what_else_is_on_a_bridge_stays_with_linux(void **state)
{
	const struct event_link vlan = fake_vlan(61, BRIDGE, 10);
	struct event_link ipvlan = fake_device(62, "ipvl0", "ipvlan");
	struct event_link bridge = bridge_link(BRIDGE);

	put_router(&bridge);
	put_router(&vlan);
	assert_int_equal(flags_of(61), 0);
	assert_int_equal(flags_of(BRIDGE), 0);
	ipvlan.lower = BRIDGE;
	put(&ipvlan);
	assert_true(fake_fib_iface(&fake, BRIDGE)->flags & IFACE_LINUX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(workers_serve_the_ports_of_a_plain_bridge),
		TEST(flags_of_ports_are_those_of_workers),
		TEST(what_workers_do_not_do_is_left_to_linux_and_named),
		TEST(filters_on_the_path_keep_a_bridge_in_linux),
		TEST(a_port_with_more_than_one_vlan_is_left_to_linux),
		TEST(br_netfilter_alone_keeps_nothing_in_linux),
		TEST(workers_know_what_linux_knows_behind_served_ports),
		TEST(a_dump_removes_what_it_does_not_contain),
		TEST(a_bridge_gets_space_for_as_many_as_linux_has),
		TEST(without_memory_for_more_a_bridge_keeps_what_it_has),
		TEST(without_memory_ports_that_leave_a_bridge_leave_it),
		TEST(addresses_over_the_limit_are_counted_and_left_to_linux),
		TEST(many_addresses_take_several_turns),
		TEST(a_bridge_that_replaces_another_has_none_of_its_addresses),
		TEST(a_port_that_is_removed_leaves_its_bridge),
		TEST(linux_is_told_of_the_hosts_that_workers_see),
		TEST(a_bridge_with_stp_is_told_more_often),
		TEST(the_table_neither_ages_nor_flushes_what_is_linuxs),
		TEST(a_bridge_is_an_interface_of_workers),
		TEST(a_bridge_in_a_vrf_is_routed_in_it),
		TEST(a_bridge_without_ports_of_workers_is_linuxs),
		TEST(what_else_is_on_a_bridge_stays_with_linux),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
