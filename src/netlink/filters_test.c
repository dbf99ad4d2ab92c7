// tc filters: what workers judge by, and when Linux gets the frames instead. Synthetic events, a
// real fib.
#include "netlink/fake_linux.h"

#include "base/clock.h"
#include "netlink/ifaces_inside.h"

#include <linux/if_ether.h>
#include <stdio.h>
#include <string.h>

enum { LEFT = FAKE_TAP, RIGHT = FAKE_TAP + 1, VLAN = 20, U32 = 0x80000000u, TABLE = 0x100000 };

static uint64_t now_ns;

static bool is_left_to_linux(int ifindex)
{
	const struct iface *iface = fake_fib_iface(&fake, ifindex);

	assert_non_null(iface);
	return iface->flags & (IFACE_LINUX | IFACE_OUT_LINUX);
}

static void qdisc(int ifindex, uint8_t sides, bool is_delete)
{
	struct event_foreign qdisc = {.ifindex = ifindex, .sides = sides, .name = "qdisc clsact"};

	fake_foreign(&fake, EVENT_QDISC, &qdisc, is_delete);
	fake_flush(&fake);
}

static struct event_filter filter_of(int ifindex, uint16_t priority, uint32_t handle,
	const char *rule)
{
	struct event_filter filter = {.ifindex = ifindex,
		.side = EVENT_INGRESS,
		.priority = priority,
		.protocol = ETH_P_IP,
		.handle = handle,
		.kind = "u32",
		.what = FILTER_RULES,
		.n_rules = 1};

	assert_int_equal(acl_rule_parse(&filter.rule[0], rule, NULL), 0);
	return filter;
}

static void put(const struct event_filter *filter)
{
	fake_filter(&fake, filter, false);
}

static void add(int ifindex, uint16_t priority, uint32_t handle, const char *rule)
{
	const struct event_filter filter = filter_of(ifindex, priority, handle, rule);

	put(&filter);
}

static void take_away(int ifindex, uint16_t priority, uint32_t handle)
{
	struct event_filter filter = {.ifindex = ifindex,
		.side = EVENT_INGRESS,
		.priority = priority,
		.handle = handle,
		.kind = "u32"};

	fake_filter(&fake, &filter, true);
}

// Later than anything before, and quiet since; a list may have to wait for a flush.
static void apply(void)
{
	now_ns += 10000000000;
	for (unsigned turn = 0; turn < 2; turn++) {
		mirror_apply_filters(fake.mirror, now_ns);
		fake_flush(&fake);
	}
}

// Ends the dumps that are asked for, all of them empty: what was not reported since is gone.
static void dump_rest(void)
{
	while (mirror_dump_filters(fake.mirror))
		mirror_filters_dumped(fake.mirror, true);
	fake_flush(&fake);
}

static void expect_list(const char *name, size_t n_rules, unsigned effects)
{
	const int i = fake_list(&fake, name);

	assert_int_not_equal(i, -1);
	assert_int_equal(fake.given_rules[i], n_rules);
	assert_int_equal(fake.given_effects[i], effects);
}

static void expect_no_list(const char *name)
{
	assert_int_equal(fake_list(&fake, name), -1);
}

// With clsact, of which the dump has been read.
static int setup(void **state)
{
	fake_setup(state);
	now_ns = clock_now_ns();
	qdisc(LEFT, EVENT_INGRESS | EVENT_EGRESS, false);
	dump_rest();
	return 0;
}

static void a_qdisc_without_filters_leaves_forwarding_to_workers(void **state)
{
	assert_false(is_left_to_linux(LEFT));
	assert_int_equal(fake_unsupported(&fake, "tc filters", NULL), 0);
	qdisc(RIGHT, EVENT_INGRESS, false);
	assert_true(is_left_to_linux(RIGHT)); // there may be filters
	assert_true(mirror_dump_filters(fake.mirror));
	assert_int_equal(fake.dumps_filters, RIGHT);
	assert_int_equal(fake.dumps_side, EVENT_INGRESS);
	assert_false(mirror_dump_filters(fake.mirror)); // one at a time
	mirror_filters_dumped(fake.mirror, true);
	fake_flush(&fake);
	assert_false(is_left_to_linux(RIGHT));
}

static void workers_get_filters_in_linuxs_order(void **state)
{
	add(LEFT, 20, U32 + 0x800, "permit udp");
	add(LEFT, 10, U32 + TABLE + 0x801, "deny udp");
	add(LEFT, 10, U32 + TABLE + 0x800, "permit tcp");
	fake_flush(&fake);
	assert_true(is_left_to_linux(LEFT)); // until workers have them
	apply();
	expect_list("tc:p0:in", 3, 0010);
	assert_false(is_left_to_linux(LEFT));
	assert_int_equal(fake_unsupported(&fake, "tc filters", NULL), 0);
	add(LEFT, 10, U32 + TABLE + 0x801, "permit udp"); // replaced
	apply();
	expect_list("tc:p0:in", 3, 0000);
	take_away(LEFT, 10, U32 + TABLE + 0x800);
	apply();
	expect_list("tc:p0:in", 2, 0000);
	qdisc(LEFT, EVENT_INGRESS | EVENT_EGRESS, true);
	apply();
	expect_no_list("tc:p0:in");
	assert_false(is_left_to_linux(LEFT));
}

static void a_filter_that_is_not_understood_keeps_frames_with_linux(void **state)
{
	struct event_filter strange = {.ifindex = LEFT,
		.side = EVENT_INGRESS,
		.priority = 5,
		.handle = 1,
		.kind = "bpf",
		.reason = "kind bpf"};
	char where[64];

	add(LEFT, 10, U32 + 0x800, "deny udp");
	apply();
	fake.linuxs = LEFT;
	put(&strange);
	apply();
	fake.linuxs = 0;
	assert_true(is_left_to_linux(LEFT));
	expect_no_list("tc:p0:in");
	assert_int_equal(fake_unsupported(&fake, "filter bpf pref 5 handle 0x1", where), 1);
	assert_string_equal(where, "dev p0 ingress");
	fake_filter(&fake, &strange, true);
	apply();
	assert_false(is_left_to_linux(LEFT));
	expect_list("tc:p0:in", 1, 1);
}

static void both_sides_have_lists_of_their_own(void **state)
{
	struct event_filter out = filter_of(LEFT, 1, U32 + 0x800, "deny tcp");

	out.side = EVENT_EGRESS;
	put(&out);
	add(LEFT, 1, U32 + 0x800, "permit tcp");
	apply();
	expect_list("tc:p0:in", 1, 0);
	expect_list("tc:p0:out", 1, 1);
	snprintf(out.kind, sizeof(out.kind), "flower");
	out.what = FILTER_UNKNOWN;
	out.n_rules = 0;
	put(&out);
	apply();
	assert_true(fake_fib_iface(&fake, LEFT)->flags & IFACE_OUT_LINUX);
	assert_false(fake_fib_iface(&fake, LEFT)->flags & IFACE_LINUX);
	expect_list("tc:p0:in", 1, 0);
	expect_no_list("tc:p0:out");
}

// Linux says so in one message without a handle.
static void what_goes_all_at_once_is_dumped_again(void **state)
{
	add(LEFT, 10, U32 + 0x800, "deny udp");
	add(LEFT, 20, U32 + TABLE + 0x800, "deny tcp");
	apply();
	take_away(LEFT, 10, 0);
	apply();
	assert_true(is_left_to_linux(LEFT));
	assert_true(mirror_dump_filters(fake.mirror));
	fake.in_dump = true;
	add(LEFT, 20, U32 + TABLE + 0x800, "deny tcp");
	fake.in_dump = false;
	mirror_filters_dumped(fake.mirror, true);
	apply();
	expect_list("tc:p0:in", 1, 1);
	assert_false(is_left_to_linux(LEFT));
}

static void a_dump_that_fails_is_repeated(void **state)
{
	qdisc(RIGHT, EVENT_INGRESS, false);
	assert_true(mirror_dump_filters(fake.mirror));
	const uint64_t failed_ns = clock_now_ns();

	mirror_filters_dumped(fake.mirror, false);
	fake_flush(&fake);
	assert_true(is_left_to_linux(RIGHT));
	qdisc(LEFT, EVENT_INGRESS | EVENT_EGRESS, false);
	dump_rest(); // of others meanwhile
	assert_int_equal(fake.dumps_filters, LEFT);
	while (!mirror_dump_filters(fake.mirror))
		;
	assert_true(clock_now_ns() - failed_ns >= 1000000000);
	assert_int_equal(fake.dumps_filters, RIGHT);
	qdisc(RIGHT, EVENT_INGRESS, false); // replaced during its dump
	mirror_filters_dumped(fake.mirror, true);
	fake_flush(&fake);
	assert_true(is_left_to_linux(RIGHT));
	dump_rest();
	assert_false(is_left_to_linux(RIGHT));
}

static void filters_are_dumped_when_workers_get_the_interface(void **state)
{
	struct event_link vlan = fake_vlan(VLAN, LEFT + 1000, 5); // on an interface of others

	fake_router(&fake, &vlan);
	qdisc(VLAN, EVENT_INGRESS, false);
	assert_false(mirror_dump_filters(fake.mirror));
	vlan.lower = LEFT;
	fake_iface(&fake, &vlan);
	fake_flush(&fake);
	assert_true(is_left_to_linux(VLAN));
	assert_true(mirror_dump_filters(fake.mirror));
	assert_int_equal(fake.dumps_filters, VLAN);
}

// A loss of messages is followed by a dump of all tables.
static void after_a_dump_of_all_filters_are_dumped_too(void **state)
{
	add(LEFT, 10, U32 + 0x800, "deny udp");
	apply();
	mirror_dump_begins(fake.mirror);
	fake.in_dump = true;
	fake_basics(&fake);
	fake_taps(&fake, 2);
	qdisc(LEFT, EVENT_INGRESS | EVENT_EGRESS, false);
	fake.in_dump = false;
	mirror_dump_ends(fake.mirror, 0);
	fake_flush(&fake);
	expect_list("tc:p0:in", 1, 1); // as before, meanwhile
	assert_false(is_left_to_linux(LEFT));
	dump_rest();
	apply();
	expect_no_list("tc:p0:in");
	assert_false(is_left_to_linux(LEFT));
}

static void many_changes_make_one_list(void **state)
{
	add(LEFT, 1, U32 + 0x800, "deny tcp");
	apply();
	const unsigned before = fake.n_given;

	for (unsigned i = 1; i < 1000; i++) {
		add(LEFT, 1, U32 + 0x800 + i, "deny udp");
		mirror_apply_filters(fake.mirror, now_ns + 1000 * i);
	}
	assert_int_equal(fake.n_given, before);
	fake_flush(&fake);
	assert_true(is_left_to_linux(LEFT));
	apply();
	assert_int_equal(fake.n_given, before + 1);
	assert_int_equal(fake.given_rules[fake_list(&fake, "tc:p0:in")], 1000);
}

static void without_a_list_frames_stay_with_linux(void **state)
{
	fake.refuses_filters = true;
	add(LEFT, 1, U32 + 0x800, "deny tcp");
	apply();
	assert_true(is_left_to_linux(LEFT));
	assert_int_equal(fake_unsupported(&fake, "tc filters", NULL), 1);
	fake.refuses_filters = false;
	apply();
	assert_true(is_left_to_linux(LEFT)); // not tried again before it changes
	add(LEFT, 1, U32 + 0x801, "deny udp");
	apply();
	assert_false(is_left_to_linux(LEFT));
}

static void too_many_filters_stay_with_linux(void **state)
{
	for (unsigned i = 0; i <= FILTERS_MOST_RULES; i++)
		add(LEFT, 1 + i / 2000, (U32 + i / 2000 * TABLE) + 0x800 + i % 2000, "deny udp");
	apply();
	assert_true(is_left_to_linux(LEFT));
	expect_no_list("tc:p0:in");
	take_away(LEFT, 1, U32 + 0x800);
	apply();
	assert_false(is_left_to_linux(LEFT));
}

static void names_are_those_of_interfaces(void **state)
{
	struct event_link vlan = fake_vlan(VLAN, LEFT, 5);

	fake_router(&fake, &vlan);
	qdisc(VLAN, EVENT_INGRESS, false);
	dump_rest();
	add(VLAN, 1, U32 + 0x800, "deny tcp");
	apply();
	expect_list("tc:if10.5:in", 1, 1);
	snprintf(vlan.name, sizeof(vlan.name), "other");
	fake_iface(&fake, &vlan);
	fake_flush(&fake);
	assert_true(is_left_to_linux(VLAN));
	apply();
	expect_no_list("tc:if10.5:in");
	expect_list("tc:other:in", 1, 1);
	assert_false(is_left_to_linux(VLAN));
}

static void another_interface_may_get_the_name_at_once(void **state)
{
	struct event_link vlan = fake_vlan(VLAN, LEFT, 5), next = fake_vlan(VLAN + 1, LEFT, 6);

	fake_router(&fake, &vlan);
	qdisc(VLAN, EVENT_INGRESS, false);
	dump_rest();
	add(VLAN, 1, U32 + 0x800, "deny tcp");
	apply();
	memcpy(next.name, vlan.name, sizeof(next.name));
	snprintf(vlan.name, sizeof(vlan.name), "other");
	fake.linuxs = VLAN;
	fake_iface(&fake, &vlan);
	fake_router(&fake, &next);
	now_ns += 10000000000;
	mirror_apply_filters(fake.mirror, now_ns);
	expect_no_list("tc:other:in"); // not before the flush
	fake_flush(&fake);
	expect_no_list("tc:if10.5:in");
	assert_false(is_left_to_linux(VLAN + 1));
	assert_true(is_left_to_linux(VLAN));
	apply();
	expect_no_list("tc:if10.5:in");
	expect_list("tc:other:in", 1, 1);
	assert_false(is_left_to_linux(VLAN));
}

static void lists_go_with_their_interface(void **state)
{
	struct event_link vlan = fake_vlan(VLAN, LEFT, 5);
	char name[ACL_NAME_MAX];

	fake_router(&fake, &vlan);
	qdisc(VLAN, EVENT_INGRESS, false);
	dump_rest();
	add(VLAN, 1, U32 + 0x800, "deny tcp");
	apply();
	snprintf(name, sizeof(name), "tc:%s:in", vlan.name);
	expect_list(name, 1, 1);
	fake_iface_gone(&fake, VLAN);
	vlan.ifindex = VLAN + 1;
	fake_router(&fake, &vlan); // before the flush
	fake_flush(&fake);
	expect_no_list(name);
	assert_false(is_left_to_linux(VLAN + 1));
}

static void vlans_are_judged_by_the_interface_below_only_if_it_sees_tags(void **state)
{
	struct event_link vlan = fake_vlan(VLAN, LEFT, 5);
	struct event_filter all = filter_of(LEFT, 5, U32 + TABLE + 0x800, "deny udp");

	fake_router(&fake, &vlan);
	add(LEFT, 1, U32 + 0x800, "deny tcp");
	apply();
	assert_false(is_left_to_linux(VLAN));
	all.protocol = ETH_P_ALL;
	put(&all);
	apply();
	assert_false(is_left_to_linux(LEFT));
	assert_true(is_left_to_linux(VLAN));
}

static void several_tables_of_u32_are_not_guessed(void **state)
{
	struct event_filter table = filter_of(LEFT, 1, U32 + TABLE, "deny");

	add(LEFT, 1, U32 + 0x800, "deny tcp");
	table.what = FILTER_TABLE;
	table.n_rules = 0;
	put(&table);
	apply();
	assert_true(is_left_to_linux(LEFT));
	assert_true(mirror_dump_filters(fake.mirror)); // the first table was not reported
	fake.in_dump = true;
	add(LEFT, 1, U32 + 0x800, "deny tcp");
	put(&table);
	fake.in_dump = false;
	mirror_filters_dumped(fake.mirror, true);
	apply();
	assert_true(is_left_to_linux(LEFT));
}

static void flower_of_one_priority_may_not_contradict_itself(void **state)
{
	struct event_filter a = filter_of(LEFT, 1, 1, "deny to 10.0.0.0/8");
	struct event_filter b = filter_of(LEFT, 1, 2, "permit tcp to 11.0.0.0/8");
	struct event_filter c = filter_of(LEFT, 1, 3, "permit udp");

	snprintf(a.kind, sizeof(a.kind), "flower");
	memcpy(b.kind, a.kind, sizeof(a.kind));
	memcpy(c.kind, a.kind, sizeof(a.kind));
	put(&a);
	put(&b);
	apply();
	assert_false(is_left_to_linux(LEFT));
	put(&c);
	apply();
	assert_true(is_left_to_linux(LEFT));
	assert_int_equal(fake_unsupported(&fake, "filter flower pref 1 handle 0x3", NULL), 1);
	c.rule[0].effect = ACL_DENY; // contradicts b no more than 10.0.0.0/8
	c.rule[0].protocol = 132;
	put(&c);
	apply();
	assert_false(is_left_to_linux(LEFT));
}

// Two policers are one only if they have the same bucket.
static void flower_of_one_priority_may_share_a_policer(void **state)
{
	for (unsigned shares = 0; shares < 2; shares++) {
		const char *rule = shares ? "permit udp police.rate 1Mbit/s police.bucket 1"
		                          : "permit udp police.rate 1Mbit/s police.bucket 2";
		struct event_filter a = filter_of(LEFT, 1, 1,
			"permit family ipv4 police.rate 1Mbit/s police.bucket 1");
		struct event_filter b = filter_of(LEFT, 1, 2, rule);

		snprintf(a.kind, sizeof(a.kind), "flower");
		snprintf(b.kind, sizeof(b.kind), "flower");
		put(&a);
		put(&b);
		fake_flush(&fake);
		assert_int_equal(fake_unsupported(&fake, "filter flower pref 1 handle 0x2", NULL),
			!shares);
	}
	apply();
	expect_list("tc:p0:in", 2, 0);
}

// None of them meets another of its priority.
static void comparisons_are_limited(void **state)
{
	enum { N = 256, MOST = 8 }; // filters of a priority; priorities that are compared

	for (unsigned i = 0; i < N * (MOST + 1); i++) {
		char text[64];

		snprintf(text, sizeof(text), "%s to 10.0.%u.0/24", i % 2 ? "deny" : "permit",
			i % N);
		struct event_filter filter = filter_of(LEFT, 1 + i / N, 1 + i % N, text);

		snprintf(filter.kind, sizeof(filter.kind), "flower");
		put(&filter);
		if (i == N * MOST) {
			apply();
			assert_false(is_left_to_linux(LEFT));
			assert_int_equal(fake.given_rules[fake_list(&fake, "tc:p0:in")], i + 1);
		}
	}
	apply();
	assert_true(is_left_to_linux(LEFT));
	assert_int_equal(fake_unsupported(&fake, "filter flower pref 8 handle 0x2", NULL), 0);
	assert_int_equal(fake_unsupported(&fake, "filter flower pref 9 handle 0x2", NULL), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_qdisc_without_filters_leaves_forwarding_to_workers),
		TEST(workers_get_filters_in_linuxs_order),
		TEST(a_filter_that_is_not_understood_keeps_frames_with_linux),
		TEST(both_sides_have_lists_of_their_own),
		TEST(what_goes_all_at_once_is_dumped_again),
		TEST(a_dump_that_fails_is_repeated),
		TEST(filters_are_dumped_when_workers_get_the_interface),
		TEST(after_a_dump_of_all_filters_are_dumped_too),
		TEST(many_changes_make_one_list),
		TEST(without_a_list_frames_stay_with_linux),
		TEST(too_many_filters_stay_with_linux),
		TEST(names_are_those_of_interfaces),
		TEST(another_interface_may_get_the_name_at_once),
		TEST(lists_go_with_their_interface),
		TEST(vlans_are_judged_by_the_interface_below_only_if_it_sees_tags),
		TEST(several_tables_of_u32_are_not_guessed),
		TEST(flower_of_one_priority_may_not_contradict_itself),
		TEST(flower_of_one_priority_may_share_a_policer),
		TEST(comparisons_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
