// MPLS: from routes of labels, settings and interfaces to what workers do. Synthetic events, a real
// fib.
#include "netlink/fake_linux.h"

#include "base/bits.h"
#include "fib/fib_fast.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>

enum {
	LO = 1,
	LEFT = FAKE_TAP,
	RIGHT,
	RED = 50,
	OTHER = 60,
	TUNNEL = 70,
	TABLE_RED = 1001,
	N_MANY = 20000
};

static struct mirror_mpls settings;
static bool has_mpls;

static bool mpls(void *ops, struct mirror_mpls *out)
{
	if (has_mpls)
		*out = settings;
	return has_mpls;
}

static int setup(void **state)
{
	struct event_link lo = fake_device(LO, "lo", ""), red = fake_vrf(RED, "red", TABLE_RED);
	struct event_link other = fake_device(OTHER, "wg0", "wireguard");

	fake_setup(state);
	fake.mirror->settings.ops.mpls = mpls;
	has_mpls = true;
	settings = (struct mirror_mpls){1000, true, 77};
	lo.flags |= IFF_LOOPBACK;
	fake_iface(&fake, &lo);
	fake_iface(&fake, &red);
	fake_iface(&fake, &other);
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	return 0;
}

static struct event_hop to(const char *via, int ifindex, unsigned n, const uint32_t labels[])
{
	struct event_hop hop = {.ifindex = ifindex, .weight = 1, .n_labels = n};

	if (via)
		hop.via = fake_addr(via);
	for (unsigned i = 0; i < n; i++)
		hop.label[i] = labels[i];
	return hop;
}

static struct event label_event(uint32_t label, int propagates, const struct event_hop *hop)
{
	struct event event = {.kind = EVENT_LABEL};

	event.label.label = label;
	event.label.propagates = propagates;
	event.label.n_hops = 1;
	event.label.hop[0] = *hop;
	return event;
}

static void say(uint32_t label, int propagates, struct event_hop hop)
{
	struct event event = label_event(label, propagates, &hop);

	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
}

static struct fib_label get(uint32_t label)
{
	struct fib_label found = {.op = FIB_LABEL_NONE};

	if (fib_label_next(fake.fib, label, &found) && found.label != label)
		found = (struct fib_label){.op = FIB_LABEL_NONE};
	return found;
}

static void labels_lead_where_linux_has_them(void **state)
{
	say(100, -1, to("10.0.0.2", LEFT, 2, (uint32_t[]){200, 201}));
	struct fib_label label = get(100);
	assert_int_equal(label.op, FIB_LABEL_FORWARD);
	assert_int_equal(label.hop.kind, FIB_VIA);
	assert_int_equal(label.hop.n_labels, 2);
	assert_int_equal(label.hop.label[1], 201);
	assert_false(label.is_pipe);
	say(100, 0, to("2001:db8::2", RIGHT, 0, NULL));
	label = get(100);
	assert_int_equal(label.hop.n_labels, 0);
	assert_int_equal(label.hop.via.family, 6);
	assert_true(label.is_pipe);
	say(101, -1, to(NULL, LO, 0, NULL));
	label = get(101);
	assert_true(label.op == FIB_LABEL_LOOKUP && label.vrf == 0 && label.loops);
	say(102, -1, to(NULL, RED, 0, NULL));
	label = get(102);
	assert_true(label.op == FIB_LABEL_LOOKUP && label.vrf != 0 && !label.loops);
}

static void let_lo_take_labels(int input)
{
	struct event event = {.kind = EVENT_NETCONF};

	event.netconf = (struct event_netconf){LO, EVENT_MPLS, -1, -1, -1, -1, -1, input};
	mirror_event(fake.mirror, &event);
	mirror_poll(fake.mirror);
	fake_flush(&fake);
}

static void labels_below_are_read_if_lo_takes_labels(void **state)
{
	say(101, -1, to(NULL, LO, 0, NULL));
	say(102, -1, to(NULL, RED, 0, NULL));
	assert_true(get(101).ends_stack && get(102).ends_stack && get(0).ends_stack);
	let_lo_take_labels(1);
	assert_false(get(101).ends_stack || get(0).ends_stack);
	assert_true(get(102).ends_stack);
	let_lo_take_labels(0);
	assert_true(get(101).ends_stack && get(102).ends_stack && get(2).ends_stack);
}

static void what_workers_cannot_do_is_linuxs(void **state)
{
	struct event_hop by_mac = to(NULL, LEFT, 0, NULL);
	char where[64];

	by_mac.has_encap = true;
	say(100, -1, to(NULL, LEFT, 1, (uint32_t[]){200}));
	say(101, -1, to("10.0.0.2", OTHER, 0, NULL));
	say(102, -1, by_mac);
	say(103, -1, to(NULL, RED, 1, (uint32_t[]){200}));
	for (uint32_t label = 100; label < 104; label++)
		assert_int_equal(get(label).op, FIB_LABEL_LINUX);
	assert_int_equal(fake_unsupported(&fake, "MPLS labels whose routes workers do not support",
				 where),
		1);
	assert_string_equal(where, "label 100 and others");
	say(100, -1, to("10.0.0.2", LEFT, 0, NULL));
	assert_int_equal(get(100).op, FIB_LABEL_FORWARD);
}

// A tunnel, of which nothing else is known: with or without labels in it.
static void say_tunnel(uint32_t flags)
{
	struct event_link link = fake_device(TUNNEL, "mu1", "ipip");

	link.mtu = 1472;
	link.tunnel = (struct event_tunnel){.is_tunnel = true};
	link.tunnel.settings = (struct iface_tunnel){.local = fake_addr("10.0.0.1"),
		.remote = fake_addr("192.0.2.1"),
		.kind = IFACE_IPIP,
		.ttl = 64,
		.flags = flags | IFACE_TUNNEL_LINUX};
	fake_router(&fake, &link);
	fake_flush(&fake);
}

static void labels_lead_into_tunnels(void **state)
{
	fake_address(&fake, LEFT, "10.0.0.1/24", false);
	say_tunnel(IFACE_TUNNEL_MPLS);
	say(100, -1, to(NULL, TUNNEL, 1, (uint32_t[]){200}));
	say(101, -1, to("10.9.0.2", TUNNEL, 0, NULL));
	assert_int_equal(get(100).op, FIB_LABEL_FORWARD);
	assert_int_equal(get(100).hop.kind, FIB_PEER);
	assert_int_equal(get(100).hop.label[0], 200);
	assert_int_equal(get(100).hop.iface, get(101).hop.iface);
	assert_int_equal(get(101).hop.kind, FIB_PEER);
	assert_int_equal(get(101).hop.via.family, 0);
	say_tunnel(IFACE_TUNNEL_IP4); // what is popped to IP may still be sent
	assert_int_equal(get(100).op, FIB_LABEL_LINUX);
	assert_int_equal(get(101).op, FIB_LABEL_FORWARD);
	fake_iface_gone(&fake, TUNNEL);
	fake_flush(&fake);
	assert_int_equal(get(101).op, FIB_LABEL_LINUX);
}

static void hops_that_are_down_have_no_share(void **state)
{
	const struct event_hop left = to("10.0.0.2", LEFT, 1, (uint32_t[]){200});
	struct event event = label_event(100, -1, &left);
	struct event_link tap = fake_tap(0);

	event.label.n_hops = 2;
	event.label.hop[1] = to("10.0.1.2", RIGHT, 1, (uint32_t[]){300});
	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
	assert_int_equal(get(100).hop.kind, FIB_GROUP);
	tap.flags &= ~IFF_UP;
	fake_iface(&fake, &tap);
	fake_flush(&fake);
	assert_int_equal(get(100).hop.kind, FIB_VIA);
	assert_int_equal(get(100).hop.label[0], 300);
	tap = fake_tap(0);
	fake_iface(&fake, &tap);
	fake_flush(&fake);
	assert_int_equal(get(100).hop.kind, FIB_GROUP);
}

static void a_label_goes_with_its_route_and_its_vrf(void **state)
{
	struct event event = label_event(100, -1, &(struct event_hop){.ifindex = RED, .weight = 1});

	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
	assert_int_equal(get(100).op, FIB_LABEL_LOOKUP);
	fake_iface_gone(&fake, RED);
	fake_flush(&fake);
	assert_int_equal(get(100).op, FIB_LABEL_LINUX);
	event.is_delete = true;
	mirror_event(fake.mirror, &event);
	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
	assert_int_equal(get(100).op, FIB_LABEL_NONE);
}

// Many labels take several rounds: the VRF is not closed, and so not opened for another one, before
// the last of them has left it.
static void a_vrf_stays_until_its_labels_have_left_it(void **state)
{
	const struct event_hop hop = {.ifindex = RED, .weight = 1};

	for (uint32_t label = 16; label < 16 + N_MANY; label++) {
		struct event event = label_event(label, -1, &hop);
		mirror_event(fake.mirror, &event);
	}
	fake_flush(&fake);
	const uint16_t vrf = get(16 + N_MANY - 1).vrf;

	assert_true(fib_vrf_is_open(fake.fib, vrf));
	fake_iface_gone(&fake, RED);
	while (mirror_flush(fake.mirror))
		if (!fib_vrf_is_open(fake.fib, vrf))
			assert_int_equal(get(16 + N_MANY - 1).op, FIB_LABEL_LINUX);
	assert_false(fib_vrf_is_open(fake.fib, vrf));
	assert_int_equal(get(16 + N_MANY - 1).op, FIB_LABEL_LINUX);
}

static void explicit_null_is_there_with_mpls(void **state)
{
	assert_true(get(0).op == FIB_LABEL_LOOKUP && get(2).op == FIB_LABEL_LOOKUP);
	assert_true(get(0).loops && !get(0).is_pipe);
	settings.n_labels = 1;
	mirror_poll(fake.mirror);
	assert_int_equal(get(0).op, FIB_LABEL_LOOKUP);
	assert_int_equal(get(2).op, FIB_LABEL_NONE);
	has_mpls = false;
	mirror_poll(fake.mirror);
	assert_int_equal(get(0).op, FIB_LABEL_NONE);
}

static void mpls_that_comes_later_is_dumped(void **state)
{
	const unsigned before = fake.n_dumps_requested;

	has_mpls = false;
	mirror_poll(fake.mirror);
	assert_int_equal(fake.n_dumps_requested, before);
	has_mpls = true;
	mirror_poll(fake.mirror);
	mirror_poll(fake.mirror);
	assert_int_equal(fake.n_dumps_requested, before + 1);
}

static struct fib_hop route_hop(const char *addr)
{
	const struct wire_addr dst = fake_addr(addr);
	struct fib_answer answer;

	rib_lookup(fake.fib, 0, &dst, &answer);
	return answer.hop;
}

static void routes_push_labels_with_the_ttl_that_is_set(void **state)
{
	static const int16_t ttls[] = {-1, 0, 9};
	static const uint8_t uniform[] = {0, 0, 9}, pipe[] = {77, 0, 9};
	struct event event = {.kind = EVENT_ROUTE, .nl_flags = NLM_F_CREATE | NLM_F_EXCL};
	static const char *const prefixes[] = {"20.0.0.0/8", "21.0.0.0/8", "22.0.0.0/8"};
	static const char *const addrs[] = {"20.0.0.1", "21.0.0.1", "22.0.0.1"};

	for (unsigned i = 0; i < 3; i++) {
		event.route = (struct event_route){.table = RT_TABLE_MAIN,
			.type = RTN_UNICAST,
			.n_hops = 1,
			.hop = {to("10.0.0.2", LEFT, 2, (uint32_t[]){300, 301})}};
		event.route.hop[0].label_ttl = ttls[i];
		assert_int_equal(wire_prefix_parse(prefixes[i], &event.route.prefix), 0);
		mirror_event(fake.mirror, &event);
	}
	fake_flush(&fake);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(route_hop(addrs[i]).n_labels, 2);
		assert_int_equal(route_hop(addrs[i]).label[1], 301);
		assert_int_equal(route_hop(addrs[i]).label_ttl, uniform[i]);
	}
	settings.propagates_ttl = false;
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(route_hop(addrs[i]).label_ttl, pipe[i]);
	assert_true(get(0).is_pipe);
}

static void interfaces_take_labels_that_are_told_to(void **state)
{
	struct event event = {.kind = EVENT_NETCONF};

	event.netconf = (struct event_netconf){LEFT, EVENT_MPLS, -1, -1, -1, -1, -1, 1};
	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
	assert_true(fake_fib_iface(&fake, LEFT)->flags & IFACE_MPLS);
	assert_false(fake_fib_iface(&fake, RIGHT)->flags & IFACE_MPLS);
	event.netconf.input = 0;
	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
	assert_false(fake_fib_iface(&fake, LEFT)->flags & IFACE_MPLS);
}

static void a_dump_removes_labels_that_it_does_not_have(void **state)
{
	const struct event_hop hop = to("10.0.0.2", LEFT, 1, (uint32_t[]){200});

	for (uint32_t label = 16; label < 16 + N_MANY; label++) {
		struct event event = label_event(label, -1, &hop);
		mirror_event(fake.mirror, &event);
	}
	fake_flush(&fake);
	mirror_dump_begins(fake.mirror);
	struct event event = label_event(20, -1, &hop);
	mirror_event(fake.mirror, &event);
	mirror_dump_ends(fake.mirror, UINT32_MAX);
	fake_flush(&fake);
	assert_int_equal(get(16 + N_MANY - 1).op, FIB_LABEL_FORWARD);
	mirror_dump_begins(fake.mirror);
	mirror_event(fake.mirror, &event);
	mirror_dump_ends(fake.mirror, ~(1u << EVENT_LABEL)); // interfaces are left as they are
	fake_flush(&fake);
	assert_int_equal(get(20).op, FIB_LABEL_FORWARD);
	assert_int_equal(get(16).op, FIB_LABEL_NONE);
	assert_int_equal(get(16 + N_MANY - 1).op, FIB_LABEL_NONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(labels_lead_where_linux_has_them),
		TEST(labels_below_are_read_if_lo_takes_labels),
		TEST(what_workers_cannot_do_is_linuxs),
		TEST(labels_lead_into_tunnels),
		TEST(hops_that_are_down_have_no_share),
		TEST(a_label_goes_with_its_route_and_its_vrf),
		TEST(a_vrf_stays_until_its_labels_have_left_it),
		TEST(explicit_null_is_there_with_mpls),
		TEST(mpls_that_comes_later_is_dumped),
		TEST(routes_push_labels_with_the_ttl_that_is_set),
		TEST(interfaces_take_labels_that_are_told_to),
		TEST(a_dump_removes_labels_that_it_does_not_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
