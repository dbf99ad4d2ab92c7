// The checks against Linux: verify, the comparison for one address, and the audit. The mirror has a
// real fib and synthetic events; Linux's answers are the tables below. Tests only.
#include "netlink/fake_linux.h"

#include "netlink/inside.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/netlink.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 80, PORT = FAKE_TAP, OTHER_PORT = FAKE_TAP + 1, A_SECOND = 10 };

// What Linux has, in the order of a dump.
static struct event_route kernel_route[MOST];
static struct event_nexthop kernel_nexthop[MOST];
static unsigned n_kernel_routes, n_kernel_nexthops, n_dumps;
static struct event_route cached6; // the answer to a lookup for IPv6; no next hop: no route

static struct netlink checked;
static struct audit *audit;

static bool covers(const struct event_route *route, const struct wire_addr *addr)
{
	struct wire_prefix prefix = {*addr, route->prefix.len};

	wire_prefix_mask(&prefix);
	return addr->family == route->prefix.addr.family &&
	       wire_addr_equal(&prefix.addr, &route->prefix.addr);
}

static int answer_route(const struct listen_request *request)
{
	struct rtmsg *question = NLMSG_DATA((struct nlmsghdr *)request->message);
	struct event event = {.kind = EVENT_ROUTE};
	const struct event_route *best = NULL;
	struct wire_addr addr = {.family = 4};

	if (question->rtm_family == AF_INET6) {
		if (!cached6.n_hops)
			return -ENETUNREACH;
		event.route = cached6;
		request->take(request->arg, &event);
		return 0;
	}
	memcpy(addr.bytes, RTA_DATA(RTM_RTA(question)), 4);
	for (unsigned i = 0; i < n_kernel_routes; i++)
		if (covers(&kernel_route[i], &addr) &&
			(!best || kernel_route[i].prefix.len > best->prefix.len))
			best = &kernel_route[i];
	if (!best)
		return -ENETUNREACH;
	event.route = *best;
	request->take(request->arg, &event);
	return 0;
}

static int dump_routes(const struct listen_request *request)
{
	const struct rtmsg *question = NLMSG_DATA((struct nlmsghdr *)request->message);
	struct event event = {.kind = EVENT_ROUTE};

	for (unsigned i = 0; i < n_kernel_routes && question->rtm_family == AF_INET; i++) {
		event.route = kernel_route[i];
		request->take(request->arg, &event);
	}
	return 0;
}

static int answer_nexthops(const struct listen_request *request, bool is_dump)
{
	struct event event = {.kind = EVENT_NEXTHOP};
	bool found = is_dump;
	uint32_t id = 0;

	if (!is_dump)
		memcpy(&id,
			(const uint8_t *)request->message + NLMSG_LENGTH(sizeof(struct nhmsg)) +
				NLA_HDRLEN,
			sizeof(id));
	for (unsigned i = 0; i < n_kernel_nexthops; i++)
		if (is_dump || kernel_nexthop[i].id == id) {
			event.nexthop = kernel_nexthop[i];
			request->take(request->arg, &event);
			found = true;
		}
	return found ? 0 : -ENOENT;
}

int __wrap_listen_ask(struct listen *listen, const struct listen_request *request);
int __wrap_listen_ask(struct listen *listen, const struct listen_request *request)
{
	const struct nlmsghdr *head = request->message;
	bool is_dump = (head->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;

	if (head->nlmsg_type == RTM_GETNEXTHOP)
		return answer_nexthops(request, is_dump);
	if (head->nlmsg_type != RTM_GETROUTE)
		return 0;
	return is_dump ? dump_routes(request) : answer_route(request);
}

bool __wrap_listen_poll(struct listen *listen, uint64_t budget_ns);
bool __wrap_listen_poll(struct listen *listen, uint64_t budget_ns)
{
	return false;
}

bool __wrap_listen_is_dumping(const struct listen *listen);
bool __wrap_listen_is_dumping(const struct listen *listen)
{
	return false;
}

void __wrap_listen_dump_again(struct listen *listen);
void __wrap_listen_dump_again(struct listen *listen)
{
	n_dumps++;
}

void __wrap_listen_info(const struct listen *listen, struct listen_info *out);
void __wrap_listen_info(const struct listen *listen, struct listen_info *out)
{
	*out = (struct listen_info){.dumps = n_dumps};
}

static int setup(void **state)
{
	n_kernel_routes = n_kernel_nexthops = n_dumps = 0;
	fake_setup(state);
	checked = (struct netlink){.ctx.fib = fake.fib, .mirror = fake.mirror};
	assert_int_equal(audit_open(&audit, &checked, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	audit_close(audit);
	return fake_teardown(state);
}

static struct event_route to(const char *prefix, const char *via, int ifindex)
{
	struct event_route route = {.table = RT_TABLE_MAIN, .type = RTN_UNICAST, .n_hops = 1};

	assert_int_equal(wire_prefix_parse(prefix, &route.prefix), 0);
	route.hop[0] = (struct event_hop){.ifindex = ifindex, .weight = 1};
	if (via)
		route.hop[0].via = fake_addr(via);
	return route;
}

static struct event_route local(const char *addr)
{
	struct event_route route = to(addr, NULL, PORT);

	route.table = RT_TABLE_LOCAL;
	route.type = RTN_LOCAL;
	route.scope = RT_SCOPE_HOST;
	return route;
}

static void tell_route(const struct event_route *route)
{
	struct event event = {.kind = EVENT_ROUTE, .nl_flags = NLM_F_CREATE};

	event.route = *route;
	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
}

// As `ip route append` does.
static void tell_route_after(const struct event_route *route)
{
	struct event event = {.kind = EVENT_ROUTE, .nl_flags = NLM_F_CREATE | NLM_F_APPEND};

	event.route = *route;
	mirror_event(fake.mirror, &event);
	fake_flush(&fake);
}

static void tell_nexthop(const struct event_nexthop *nexthop)
{
	struct event event = {.kind = EVENT_NEXTHOP};

	event.nexthop = *nexthop;
	mirror_event(fake.mirror, &event);
}

// Without a notification.
static void kernel_has(struct event_route route)
{
	kernel_route[n_kernel_routes++] = route;
}

static void both_have(struct event_route route)
{
	kernel_has(route);
	tell_route(&route);
}

static void both_have_nexthop(uint32_t id, const char *via, int ifindex)
{
	struct event_nexthop *one = &kernel_nexthop[n_kernel_nexthops++];

	*one = (struct event_nexthop){.id = id,
		.hop = {.via = fake_addr(via), .ifindex = ifindex, .weight = 1}};
	tell_nexthop(one);
}

// Of the next hops 1 to n.
static struct event_nexthop *both_have_group(uint32_t id, unsigned n, const uint16_t weight[])
{
	struct event_nexthop *group = &kernel_nexthop[n_kernel_nexthops++];

	*group = (struct event_nexthop){.id = id, .is_group = true, .n_members = n};
	for (unsigned i = 0; i < n; i++) {
		group->member[i].id = i + 1;
		group->member[i].weight = weight[i];
	}
	tell_nexthop(group);
	return group;
}

// A route by a group, with the copies that Linux puts into it: weights of 8 bits.
static struct event_route by_group(const char *prefix, const struct event_nexthop *group)
{
	struct event_route route = to(prefix, NULL, 0);

	route.nh_id = group->id;
	route.n_hops = group->n_members;
	for (unsigned i = 0; i < group->n_members; i++) {
		route.hop[i] = kernel_nexthop[i].hop;
		route.hop[i].weight = ((group->member[i].weight - 1) & 0xff) + 1;
	}
	return route;
}

static bool print(void *arg, const char *difference)
{
	snprintf(arg, 256, "%s", difference);
	return true;
}

// The one difference that verify finds; "": none.
static const char *verified(void)
{
	static char text[256];
	struct netlink_verification how = {.cb = print, .arg = text};
	struct error error;
	int n;

	text[0] = 0;
	n = netlink_verify(&checked, &how, &error);
	assert_int_equal(n, text[0] != 0);
	return text;
}

static bool agrees_on(const char *text)
{
	struct wire_addr addr = fake_addr(text);
	struct netlink_route_check check;

	assert_int_equal(netlink_explain(&checked, 0, &addr, &check, NULL), 0);
	return check.agrees;
}

static struct netlink_info audited(void)
{
	struct netlink_info info = {0};

	audit_info(audit, &info);
	return info;
}

static void poll_audit(unsigned n_ticks)
{
	while (n_ticks--)
		audit_poll(audit);
}

static void judges_routes_by_their_nexthop_objects(void **state)
{
	static const uint16_t weight[] = {1000, 3000};
	struct event_nexthop *group;

	both_have_nexthop(1, "10.0.0.2", PORT);
	both_have_nexthop(2, "10.1.0.2", OTHER_PORT);
	group = both_have_group(100, 2, weight);
	both_have(by_group("20.0.0.0/8", group));
	assert_string_equal(verified(), "");
	assert_true(agrees_on("20.1.1.1"));
	group->member[0].weight = 4000; // without a notification
	assert_string_equal(verified(),
		"20.0.0.0/8: Linux sends via 2 next hops, workers via 2 next hops (others)");
	assert_false(agrees_on("20.1.1.1"));
	kernel_route[0].n_hops = 0; // nexthop_compat_mode 0
	assert_false(agrees_on("20.1.1.1"));
	assert_string_not_equal(verified(), "");
	group->member[0].weight = 1000;
	assert_true(agrees_on("20.1.1.1"));
	assert_string_equal(verified(), "");
}

static void judges_weights_as_far_as_workers_can_represent_them(void **state)
{
	uint16_t weight[64];
	char via[16];

	for (unsigned i = 0; i < 64; i++) {
		snprintf(via, sizeof(via), "10.0.0.%u", i + 2);
		both_have_nexthop(i + 1, via, PORT);
		weight[i] = i ? 1 : UINT16_MAX;
	}
	both_have(by_group("20.0.0.0/8", both_have_group(100, 64, weight)));
	assert_string_equal(verified(), "");
	assert_true(agrees_on("20.1.1.1"));
}

static void a_group_that_linux_no_longer_has_is_a_difference(void **state)
{
	static const uint16_t weight[] = {1};

	both_have_nexthop(1, "10.0.0.2", PORT);
	both_have(by_group("20.0.0.0/8", both_have_group(100, 1, weight)));
	assert_true(agrees_on("20.1.1.1"));
	n_kernel_nexthops = 0;
	assert_false(agrees_on("20.1.1.1"));
	assert_string_not_equal(verified(), "");
}

static void ranks_the_tables_as_linux_does(void **state)
{
	struct event_route last = to("20.0.0.0/8", "10.1.0.2", OTHER_PORT);
	struct event_route main_route = to("20.0.0.0/8", "10.0.0.2", PORT);

	last.table = RT_TABLE_DEFAULT;
	main_route.metric = 100; // the table decides first
	both_have(last);
	both_have(main_route);
	assert_string_equal(verified(), "");
}

static void finds_local_routes_that_linux_has_not(void **state)
{
	struct event_route own = local("10.9.9.9/32");

	tell_route(&own);
	assert_false(agrees_on("10.9.9.9"));
	assert_string_equal(verified(),
		"10.9.9.9/32: workers have a route that Linux does not have");
	poll_audit(A_SECOND + 2);
	assert_int_equal(audited().drifted, 1);
	assert_int_equal(n_dumps, 1);
}

// Linux would forward what workers punt to it as addressed to the router.
static void a_local_route_in_place_of_another_is_a_difference(void **state)
{
	struct event_route own = local("10.9.9.9/32");

	kernel_has(to("10.9.9.9/32", "10.0.0.2", PORT));
	tell_route(&own);
	assert_false(agrees_on("10.9.9.9"));
	assert_string_equal(verified(),
		"10.9.9.9/32: Linux has a route of type unicast, workers local");
}

static void finds_routes_left_to_linux_that_it_has_not(void **state)
{
	struct event_route foreign = to("20.0.0.0/8", "10.5.0.2", 77);

	tell_route(&foreign); // over an interface that is no port
	assert_false(agrees_on("20.1.1.1"));
	kernel_has(to("0.0.0.0/0", "10.0.0.2", PORT));
	assert_false(agrees_on("20.1.1.1"));
	poll_audit(A_SECOND + 2);
	assert_int_equal(audited().drifted, 1);
	kernel_has(foreign);
	assert_true(agrees_on("20.1.1.1"));
}

// Linux's answer for a destination alone does not show them.
static void routes_for_some_packets_are_no_difference(void **state)
{
	struct event_route narrow = to("20.0.0.0/8", "10.0.0.2", PORT);
	struct event_route last = to("21.0.0.0/8", "10.0.0.2", PORT);

	narrow.tos = 0x10;
	tell_route(&narrow);
	last.table = RT_TABLE_DEFAULT;
	tell_route(&last);
	kernel_has(to("0.0.0.0/0", "10.0.0.2", PORT));
	assert_true(agrees_on("20.1.1.1"));
	assert_true(agrees_on("21.1.1.1"));
	poll_audit(2 * A_SECOND);
	assert_int_equal(audited().drifted, 0);
}

// Linux answers for a packet of its own, and workers use the first route, as forwarded packets do.
static void any_of_several_default_routes_is_no_difference(void **state)
{
	struct event_route first = to("0.0.0.0/0", "10.0.0.3", PORT);
	struct event_route next = to("0.0.0.0/0", "10.0.0.2", PORT);

	tell_route(&first);
	kernel_has(next);
	assert_false(agrees_on("20.1.1.1"));
	tell_route_after(&next);
	assert_true(agrees_on("20.1.1.1"));
	n_kernel_routes = 0;
	assert_false(agrees_on("20.1.1.1"));
}

// Linux answers with the cached entry of another route via the same object.
static void routes_via_one_nexthop_object_may_share_their_answer(void **state)
{
	static const uint16_t weight[] = {1, 3};
	struct event_route ours = to("2001:db8:1::/48", NULL, 0);
	struct wire_addr addr = fake_addr("2001:db8:1::1");
	struct netlink_route_check check;

	both_have_nexthop(1, "fe80::2", PORT);
	both_have_nexthop(2, "fe80::3", PORT);
	both_have_nexthop(3, "fe80::4", PORT);
	both_have_group(100, 2, weight);
	ours.nh_id = 1;
	ours.n_hops = 0;
	tell_route(&ours);
	cached6 = to("2001:db8:2::/48", "fe80::2", PORT);
	assert_false(agrees_on("2001:db8:1::1")); // not by an object
	cached6.nh_id = 1;
	assert_int_equal(netlink_explain(&checked, 0, &addr, &check, NULL), 0);
	assert_true(check.agrees);
	assert_int_equal(check.prefix.addr.family, 0);
	cached6.nh_id = 100;
	assert_true(agrees_on("2001:db8:1::1"));
	cached6.nh_id = 3;
	assert_false(agrees_on("2001:db8:1::1"));
	cached6.n_hops = 0; // its route was deleted
	assert_true(agrees_on("2001:db8:1::1"));
	ours = to("2001:db8:3::/48", "fe80::2", PORT);
	tell_route(&ours);
	assert_false(agrees_on("2001:db8:3::1")); // has no object
}

static void routes_chosen_by_other_rules_are_no_difference(void **state)
{
	struct event_rule rule = {.family = 4,
		.priority = 100,
		.table = 100,
		.action = FR_ACT_TO_TBL};
	struct event_route own = to("20.0.0.0/8", "10.0.0.2", PORT);

	tell_route(&own);
	assert_false(agrees_on("20.1.1.1"));
	fake_rule(&fake, &rule, false);
	assert_true(agrees_on("20.1.1.1"));
	fake_rule(&fake, &rule, true);
	assert_false(agrees_on("20.1.1.1"));
}

static void a_dump_that_cures_nothing_is_repeated_ever_more_rarely(void **state)
{
	struct event_route own = local("10.9.9.9/32");

	tell_route(&own);
	poll_audit(A_SECOND + 2);
	assert_int_equal(n_dumps, 1);
	assert_int_equal(audited().drift_lasting, 0);
	poll_audit(A_SECOND);
	assert_int_equal(n_dumps, 2);
	assert_int_equal(audited().drift_lasting, 1);
	poll_audit(2 * A_SECOND);
	assert_int_equal(n_dumps, 3);
	poll_audit(600 * A_SECOND); // after 4, 8, 16, 32, then every 64 s
	assert_int_equal(n_dumps, 15);
	assert_int_equal(audited().drifted, 1);
	kernel_has(own);
	poll_audit(65 * A_SECOND);
	assert_int_equal(audited().drift_lasting, 0);
	assert_int_equal(n_dumps, 15);
	n_kernel_routes = 0;
	poll_audit(2 * A_SECOND + 4); // the intervals begin anew
	assert_int_equal(n_dumps, 17);
	assert_int_equal(audited().drifted, 2);
}

// When the route has been removed, the address is that of a shorter prefix.
static void a_difference_ends_with_its_route(void **state)
{
	struct event_route own = local("10.9.9.9/32"), shorter = to("0.0.0.0/0", "10.0.0.2", PORT);
	struct event gone = {.kind = EVENT_ROUTE, .is_delete = true, .route = own};

	tell_route(&own);
	poll_audit(A_SECOND + 2);
	assert_int_equal(n_dumps, 1);
	mirror_event(fake.mirror, &gone); // as its absence from the dump does
	tell_route(&shorter);             // which Linux has not
	poll_audit(A_SECOND - 2);
	assert_int_equal(n_dumps, 1);
	poll_audit(6);
	assert_int_equal(audited().drifted, 2);
	assert_int_equal(audited().drift_lasting, 0);
	assert_int_equal(n_dumps, 2);
}

static void what_is_found_meanwhile_waits_for_the_next_dump(void **state)
{
	struct event_route own = local("10.9.9.9/32"), other = local("10.9.9.8/32");

	tell_route(&own);
	poll_audit(A_SECOND + 2 + 3 * A_SECOND); // the next dump is due after 4 s
	assert_int_equal(n_dumps, 3);
	tell_route(&other);
	poll_audit(2 * A_SECOND);
	assert_int_equal(audited().drifted, 2);
	assert_int_equal(n_dumps, 3);
	kernel_has(own);
	poll_audit(2 * A_SECOND);
	assert_int_equal(n_dumps, 4);
	assert_int_equal(audited().drift_lasting, 1);
	kernel_has(other);
	poll_audit(8 * A_SECOND);
	assert_int_equal(n_dumps, 4);
	assert_int_equal(audited().drift_lasting, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(judges_routes_by_their_nexthop_objects),
		TEST(judges_weights_as_far_as_workers_can_represent_them),
		TEST(a_group_that_linux_no_longer_has_is_a_difference),
		TEST(ranks_the_tables_as_linux_does),
		TEST(finds_local_routes_that_linux_has_not),
		TEST(a_local_route_in_place_of_another_is_a_difference),
		TEST(finds_routes_left_to_linux_that_it_has_not),
		TEST(routes_for_some_packets_are_no_difference),
		TEST(any_of_several_default_routes_is_no_difference),
		TEST(routes_via_one_nexthop_object_may_share_their_answer),
		TEST(routes_chosen_by_other_rules_are_no_difference),
		TEST(a_dump_that_cures_nothing_is_repeated_ever_more_rarely),
		TEST(a_difference_ends_with_its_route),
		TEST(what_is_found_meanwhile_waits_for_the_next_dump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
