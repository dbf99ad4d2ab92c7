// What else acts on packets in Linux (nftables, xfrm, tc, policy rules): synthetic events, a real
// fib. Tests only.
#include "netlink/fake_linux.h"

#include <linux/fib_rules.h>
#include <linux/netfilter.h>
#include <stdio.h>

static uint8_t flags_of(int ifindex)
{
	const struct iface *iface = fake_fib_iface(&fake, ifindex);

	assert_non_null(iface);
	return iface->flags & (uint8_t) ~(IFACE_REDIRECTS4 | IFACE_REDIRECTS6);
}

static void leaves_packets_to_linux_under_foreign_rules(void **state)
{
	static const struct {
		enum event_kind kind;
		struct event_foreign what;
		uint8_t flags;
	} row[] = {
		{EVENT_CHAIN, {.hook = NF_INET_FORWARD, .name = "chain inet a"},
			IFACE_LINUX4 | IFACE_LINUX6},
		{EVENT_CHAIN, {.family = 4, .hook = NF_INET_PRE_ROUTING, .name = "chain ip a"},
			IFACE_LINUX4},
		{EVENT_CHAIN, {.family = 6, .hook = NF_INET_POST_ROUTING, .name = "chain ip6 a"},
			IFACE_LINUX6},
		{EVENT_CHAIN, {.hook = NF_INET_INGRESS, .name = "chain netdev a"},
			IFACE_LINUX4 | IFACE_LINUX6},
		{EVENT_CHAIN,
			{.hook = NF_INET_LOCAL_IN, .is_harmless = true, .name = "chain inet b"}, 0},
		{EVENT_POLICY, {.family = 4, .name = "policy out"}, IFACE_LINUX4},
		{EVENT_POLICY, {.family = 6, .is_harmless = true, .name = "policy in"}, 0},
		{EVENT_POLICY_DEFAULT, {.name = "default"}, IFACE_LINUX4 | IFACE_LINUX6},
		{EVENT_MROUTE, {.family = 4, .is_harmless = true, .name = "239.1.1.1"}, 0},
	};
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		fake_foreign(&fake, row[i].kind, &row[i].what, false);
		fake_foreign(&fake, row[i].kind, &row[i].what, false); // reported again: changed
		fake_flush(&fake);
		assert_int_equal(flags_of(10), row[i].flags);
		assert_int_equal(flags_of(11), row[i].flags);
		fake_foreign(&fake, row[i].kind, &row[i].what, true);
		fake_flush(&fake);
		assert_int_equal(flags_of(10), 0);
	}
}

// Only a new dump shows whether it has other devices.
static void a_chain_that_loses_a_device_stays_until_a_dump(void **state)
{
	struct event_foreign chain = {.hook = NF_INET_INGRESS, .name = "table netdev f chain c"};
	struct event_foreign part = chain;

	part.is_part = true;
	fake_foreign(&fake, EVENT_CHAIN, &chain, false);
	fake_foreign(&fake, EVENT_CHAIN, &part, true);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), IFACE_LINUX4 | IFACE_LINUX6);
	assert_int_equal(fake.n_dumps_requested, 1);
	fake_foreign(&fake, EVENT_CHAIN, &chain, true);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), 0);
	assert_int_equal(fake.n_dumps_requested, 1);
}

static void qdiscs_below_one_that_is_deleted_are_looked_for(void **state)
{
	struct event_foreign prio = {.ifindex = 10, .sides = EVENT_EGRESS, .name = "qdisc prio 1:"};
	struct event_foreign netem = prio, other = prio;

	snprintf(netem.name, sizeof(netem.name), "qdisc netem 10: parent 1:1");
	other.ifindex = 11;
	fake_foreign(&fake, EVENT_QDISC, &prio, false);
	fake_foreign(&fake, EVENT_QDISC, &other, false);
	fake_foreign(&fake, EVENT_QDISC, &other, true);
	assert_int_equal(fake.n_dumps_requested, 0);
	fake_foreign(&fake, EVENT_QDISC, &netem, false);
	fake_foreign(&fake, EVENT_QDISC, &prio, true);
	assert_int_equal(fake.n_dumps_requested, 1);
}

static void names_what_is_foreign(void **state)
{
	struct event_foreign chain = {.hook = NF_INET_FORWARD, .name = "table inet f chain fwd"};
	struct event_foreign mroute = {.family = 4, .is_harmless = true, .name = "239.1.1.1"};
	char where[64];

	fake_foreign(&fake, EVENT_CHAIN, &chain, false);
	fake_foreign(&fake, EVENT_MROUTE, &mroute, false);
	fake_flush(&fake);
	assert_int_equal(fake_unsupported(&fake, "nftables hook", where), 1);
	assert_string_equal(where, "table inet f chain fwd");
	assert_int_equal(fake_unsupported(&fake, "multicast routes", where), 1);
	assert_string_equal(where, "IPv4");
}

static void forgets_all_policies_at_once(void **state)
{
	struct event_foreign a = {.family = 4, .name = "a"}, b = {.family = 4, .name = "b"};
	struct event_foreign all = {.name = ""};

	fake_foreign(&fake, EVENT_POLICY, &a, false);
	fake_foreign(&fake, EVENT_POLICY, &b, false);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), IFACE_LINUX4);
	fake_foreign(&fake, EVENT_POLICY, &all, true);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), 0);
}

static void a_default_policy_stays_without_policies_and_can_be_taken_back(void **state)
{
	struct event_foreign all = {.name = ""}, block = {.name = "default"}, accept = block;
	char where[64];

	accept.is_harmless = true;
	fake_foreign(&fake, EVENT_POLICY_DEFAULT, &block, false);
	fake_foreign(&fake, EVENT_POLICY, &all, true);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), IFACE_LINUX4 | IFACE_LINUX6);
	assert_int_equal(fake_unsupported(&fake, "xfrm policy", where), 1);
	assert_string_equal(where, "default");
	fake_foreign(&fake, EVENT_POLICY_DEFAULT, &accept, false);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), 0);
	assert_int_equal(fake_unsupported(&fake, "xfrm policy", NULL), 0);
}

static void dump_of(uint32_t lacking)
{
	mirror_dump_begins(fake.mirror);
	fake.in_dump = true;
	fake_basics(&fake);
	fake_taps(&fake, 2);
	for (enum event_kind kind = 0; kind < N_EVENT_KINDS; kind++)
		if (event_kinds_have(lacking, kind))
			mirror_dump_lacks(fake.mirror, kind);
	fake_flush(&fake); // packets arrive during the dump
	uint8_t flags_meanwhile = flags_of(10);
	mirror_dump_ends(fake.mirror, lacking);
	fake.in_dump = false;
	fake_flush(&fake);
	if (lacking)
		assert_int_equal(flags_of(10), flags_meanwhile);
}

// As long as it is unknown whether there is a firewall, packets must not bypass it.
static void leaves_packets_to_linux_until_it_has_told_what_acts_on_them(void **state)
{
	static const struct {
		enum event_kind kind;
		const char *where;
	} row[] = {{EVENT_RULE, "policy rules"}, {EVENT_QDISC, "tc qdiscs"},
		{EVENT_CHAIN, "nftables hooks"}, {EVENT_POLICY, "xfrm policies"},
		{EVENT_POLICY_DEFAULT, "default xfrm policy"}};
	static const char *const what = "failed query";
	char where[64];

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		fake_teardown(state);
		fake_setup(state);
		dump_of(1u << row[i].kind);
		assert_int_equal(flags_of(10), IFACE_LINUX4 | IFACE_LINUX6);
		assert_int_equal(fake_unsupported(&fake, what, where), 1);
		assert_string_equal(where, row[i].where);
		dump_of(0);
		assert_int_equal(flags_of(10), 0);
		assert_int_equal(fake_unsupported(&fake, what, NULL), 0);
		dump_of(1u << row[i].kind); // what was known before is still known
		assert_int_equal(flags_of(10), 0);
	}
	fake_teardown(state);
	fake_setup(state);
	dump_of(1u << EVENT_MROUTE);
	assert_int_equal(flags_of(10), 0);
}

static void leaves_packets_to_linux_under_old_iptables(void **state)
{
	static const char *const what = "iptables-legacy";
	char where[64];

	for (uint8_t family = 4; family <= 6; family += 2) {
		fake.old_tables = family;
		mirror_poll(fake.mirror);
		fake_flush(&fake);
		assert_int_equal(flags_of(10), family == 4 ? IFACE_LINUX4 : IFACE_LINUX6);
		assert_int_equal(fake_unsupported(&fake, what, where), 1);
		assert_string_equal(where, family == 4 ? "IPv4" : "IPv6");
	}
	fake.old_tables = 0;
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), 0);
	assert_int_equal(fake_unsupported(&fake, what, NULL), 0);
}

static void leaves_packets_to_linux_under_policy_rules(void **state)
{
	struct event_rule rule = {.family = 4,
		.priority = 100,
		.table = 5,
		.has_selector = true,
		.action = FR_ACT_TO_TBL};
	struct event_rule main = {.family = 6,
		.priority = 32766,
		.table = 254,
		.action = FR_ACT_TO_TBL};
	char where[64];

	fake_rule(&fake, &rule, false);
	fake_rule(&fake, &rule, false); // two that we cannot tell apart
	fake_rule(&fake, &rule, true);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), IFACE_LINUX4);
	assert_int_equal(fake_unsupported(&fake, "policy rule", where), 1);
	assert_string_equal(where, "IPv4, priority 100, table 5");
	fake_rule(&fake, &rule, true);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), 0);
	fake_rule(&fake, &main, true);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), IFACE_LINUX6);
}

static void takes_the_usual_rules_in_another_order(void **state)
{
	struct event_rule first = {.family = 4, .table = 255, .action = FR_ACT_TO_TBL};
	struct event_rule later = first;

	later.priority = 32765; // as required by VRFs
	fake_rule(&fake, &later, false);
	fake_rule(&fake, &first, true);
	fake_flush(&fake);
	assert_int_equal(flags_of(10), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(leaves_packets_to_linux_under_foreign_rules),
		TEST(a_chain_that_loses_a_device_stays_until_a_dump),
		TEST(qdiscs_below_one_that_is_deleted_are_looked_for),
		TEST(names_what_is_foreign),
		TEST(forgets_all_policies_at_once),
		TEST(a_default_policy_stays_without_policies_and_can_be_taken_back),
		TEST(leaves_packets_to_linux_until_it_has_told_what_acts_on_them),
		TEST(leaves_packets_to_linux_under_old_iptables),
		TEST(leaves_packets_to_linux_under_policy_rules),
		TEST(takes_the_usual_rules_in_another_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
