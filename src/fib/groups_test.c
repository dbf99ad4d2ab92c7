// Next-hop groups: shares, identity, lifetime. Control thread.
#include "fib/fib.h"
#include "fib/fib_fast.h"
#include "fib/table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct fib_member via(const char *text, uint8_t port, uint8_t weight)
{
	struct fib_member member = {.hop = {.iface = port, .kind = FIB_VIA}, .weight = weight};

	assert_int_equal(wire_addr_parse(text, &member.hop.via), 0);
	return member;
}

static struct fib_change change(enum fib_op op, const char *prefix, struct fib_hop hop)
{
	struct fib_change change = {.op = op, .route.hop = hop};

	assert_int_equal(wire_prefix_parse(prefix, &change.route.prefix), 0);
	return change;
}

static unsigned count_buckets(const struct fib *fib, const struct fib_hop *group,
	const struct fib_hop *member)
{
	const uint32_t *bucket = &fib->groups.bucket[groups_number(group) * FIB_GROUP_BUCKETS];
	uint32_t id = hops_find(&fib->hops, member);
	unsigned n = 0;

	for (unsigned i = 0; i < FIB_GROUP_BUCKETS; i++)
		n += bucket[i] == id;
	return n;
}

static void each_member_gets_its_share_of_the_buckets(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct fib_member members[] = {via("10.0.0.1", 0, 1), via("10.0.0.2", 1, 2),
		via("10.0.0.3", 2, 13)};
	struct fib_hop group;

	assert_int_equal(fib_group(fib, members, 3, &group, NULL), 0);
	assert_int_equal(count_buckets(fib, &group, &members[0].hop), 64);
	assert_int_equal(count_buckets(fib, &group, &members[1].hop), 128);
	assert_int_equal(count_buckets(fib, &group, &members[2].hop), 832);
	fib_destroy(fib);
}

static void each_family_has_its_hash_in_all_vrfs(void **state)
{
	struct fib *fib = fib_create(NULL);

	assert_int_equal(*fib->view.layer3_hash, 0);
	fib_set_layer3_hash(fib, 6, true);
	assert_int_equal(*fib->view.layer3_hash, FIB_LAYER3_IP6);
	fib_set_layer3_hash(fib, 4, true);
	assert_int_equal(fib_vrf_open(fib, 4095, NULL), 0);
	for (unsigned vrf = 0; vrf < FIB_MAX_VRFS; vrf += 4095)
		assert_int_equal(*fib->view.vrfs[vrf].layer3_hash, FIB_LAYER3_IP4 | FIB_LAYER3_IP6);
	fib_set_layer3_hash(fib, 6, false);
	assert_int_equal(*fib->view.layer3_hash, FIB_LAYER3_IP4);
	fib_destroy(fib);
}

static void the_same_members_in_any_order_are_one_group(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct fib_member one[] = {via("10.0.0.1", 0, 1), via("fe80::2", 1, 2)};
	struct fib_member other[] = {one[1], one[0]};
	struct fib_member third[] = {via("10.0.0.1", 0, 2), one[1]};
	struct fib_hop a, b, c;

	assert_int_equal(fib_group(fib, one, 2, &a, NULL), 0);
	assert_int_equal(fib_group(fib, other, 2, &b, NULL), 0);
	assert_int_equal(fib_group(fib, third, 2, &c, NULL), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_memory_not_equal(&a, &c, sizeof(a));
	fib_destroy(fib);
}

static void workers_see_a_group_and_then_nothing(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct fib_member members[] = {via("10.0.0.1", 0, 1), via("10.0.0.2", 1, 1)}, seen[2];
	struct wire_addr dst;
	struct fib_hop group;
	struct fib_hop_info info;

	wire_addr_parse("20.1.2.3", &dst);
	assert_int_equal(fib_group(fib, members, 2, &group, NULL), 0);
	struct fib_change add = change(FIB_ADD, "20.0.0.0/8", group),
			  del = change(FIB_DELETE, "20.0.0.0/8", group);
	assert_int_equal(fib_change(fib, &add, 1, NULL, NULL), 0);
	uint32_t id = fib_lookup(fib, 0, &dst);
	assert_int_equal(fib->view.hops[id].kind, FIB_HOP_GROUP);
	assert_true(fib_hop_info(fib, id, &info));
	assert_int_equal(info.verdict, VERDICT_FORWARD);
	uint32_t first = fib_entry_group(&fib->view.hops[id]);
	assert_int_equal(fib->view.bucket[first], hops_find(&fib->hops, &members[0].hop));
	assert_int_equal(fib_group_members(fib, &group, seen, 2), 2);
	assert_int_equal(fib_change(fib, &del, 1, NULL, NULL), 0);
	assert_int_equal(fib_lookup(fib, 0, &dst), 0);
	assert_int_equal(hops_find(&fib->hops, &group), 0);
	assert_int_equal(fib_change(fib, &add, 1, NULL, NULL),
		-EINVAL); // the group was freed with its last route
	assert_int_equal(fib_change(fib, &del, 1, NULL, NULL), -ENOENT);
	assert_int_equal(hops_find(&fib->hops, &members[0].hop), 0);
	fib_destroy(fib);
}

static void groups_that_come_and_go_leave_nothing_behind(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct fib_usage before, after;

	fib_usage(fib, &before);
	for (unsigned i = 0; i < 20000; i++) {
		struct fib_member members[] = {via("10.0.0.1", i % 50, 1 + i % 7),
			via("10.0.0.2", 1 + i % 11, 1)};
		struct fib_hop group;
		assert_int_equal(fib_group(fib, members, 2, &group, NULL), 0);
		struct fib_change set = change(FIB_REPLACE, "20.0.0.0/24", group);
		assert_int_equal(fib_change(fib, &set, 1, NULL, NULL), 0);
	}
	struct fib_change del = change(FIB_DELETE, "20.0.0.0/24", (struct fib_hop){0});
	assert_int_equal(fib_change(fib, &del, 1, NULL, NULL), 0);
	fib_change(fib, &del, 1, NULL, NULL);
	struct fib_change other = change(FIB_ADD, "30.0.0.0/24",
		(struct fib_hop){.kind = FIB_BLACKHOLE, .iface = IFACE_NONE});
	assert_int_equal(fib_change(fib, &other, 1, NULL, NULL), 0);
	fib_usage(fib, &after);
	assert_int_equal(after.n_hops, before.n_hops + 1);
	assert_true(fib->groups.n_groups < 8);
	fib_destroy(fib);
}

static bool leads_to(const struct fib *fib, const struct fib_hop *group, uint16_t iface,
	bool is_known)
{
	struct fib_hop_entry entry = fib_hop_load(&fib->view.hops[hops_find(&fib->hops, group)]);
	bool found_known, found = fib_group_leads_to(&fib->view, &entry, iface, &found_known);

	assert_int_equal(found_known, is_known);
	return found;
}

static void workers_see_where_the_members_of_a_group_lead(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct fib_member members[] = {via("10.0.0.1", 3, 1), via("10.0.0.2", 0, 2),
		via("10.0.0.3", 3, 1)};
	struct fib_resilience resilience = {.key = 1};
	struct fib_hop group, resilient;

	assert_int_equal(fib_group(fib, members, 3, &group, NULL), 0);
	assert_int_equal(fib_resilient_group(fib, &resilience, members, 1, &resilient, NULL), 0);
	for (uint16_t iface = 0; iface < 100; iface++) {
		assert_int_equal(leads_to(fib, &group, iface, true), iface == 0 || iface == 3);
		assert_int_equal(leads_to(fib, &resilient, iface, true), iface == 3);
	}
	assert_int_equal(fib_resilient_group(fib, &resilience, members + 1, 1, &resilient, NULL),
		0);
	assert_true(leads_to(fib, &resilient, 0, true));
	assert_false(leads_to(fib, &resilient, 3, true));
	fib_destroy(fib);
}

static void workers_see_that_members_lead_to_more_interfaces_than_they_know(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct fib_member members[FIB_GROUP_OIFS + 2];
	struct fib_hop group, smaller;

	for (uint8_t i = 0; i < ARRAY_LEN(members); i++)
		members[i] = via("10.0.0.1", i, 1);
	assert_int_equal(fib_group(fib, members, FIB_GROUP_OIFS, &smaller, NULL), 0);
	assert_int_equal(fib_group(fib, members, ARRAY_LEN(members), &group, NULL), 0);
	for (uint16_t i = 0; i < FIB_GROUP_OIFS; i++)
		assert_true(leads_to(fib, &smaller, i, true));
	assert_false(leads_to(fib, &smaller, FIB_GROUP_OIFS, true));
	assert_true(leads_to(fib, &group, 0, false));
	assert_false(leads_to(fib, &group, FIB_GROUP_OIFS + 1, false));
	fib_destroy(fib);
}

static void workers_see_where_a_hop_leads(void **state)
{
	struct fib *fib = fib_create(NULL);
	static const struct {
		struct fib_hop hop;
		uint16_t oif;
	} row[] = {
		{{.kind = FIB_CONNECTED, .iface = 0}, 0},
		{{.kind = FIB_CONNECTED, .iface = 7}, 7},
		{{.kind = FIB_PEER, .iface = 9}, 9},
		{{.kind = FIB_LOCAL, .iface = IFACE_NONE}, FIB_NO_OIF},
		{{.kind = FIB_LINUX, .iface = IFACE_NONE}, FIB_NO_OIF},
	};

	assert_int_equal(fib_oif_load(&fib->view, 0), FIB_NO_OIF);
	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		struct fib_change set = change(FIB_REPLACE, "20.0.0.0/24", row[i].hop);
		assert_int_equal(fib_change(fib, &set, 1, NULL, NULL), 0);
		uint32_t id = hops_find(&fib->hops, &row[i].hop);
		assert_int_not_equal(id, 0);
		assert_int_equal(fib_oif_load(&fib->view, id), row[i].oif);
	}
	fib_destroy(fib);
}

static void refuses_what_is_no_group(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct fib_member members[2] = {via("10.0.0.1", 0, 0), via("10.0.0.2", 1, 1)};
	struct error error;
	struct fib_hop group;

	assert_int_equal(fib_group(fib, members, 2, &group, &error), -EINVAL);
	assert_string_equal(error.text,
		"next hop 1 of 2 needs a neighbour, a port, and a weight of 1 to 255");
	assert_int_equal(fib_group(fib, members, 0, &group, &error), -EINVAL);
	assert_int_equal(fib_group(fib, members, 65, &group, &error), -EINVAL);
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_member_gets_its_share_of_the_buckets),
		cmocka_unit_test(each_family_has_its_hash_in_all_vrfs),
		cmocka_unit_test(the_same_members_in_any_order_are_one_group),
		cmocka_unit_test(workers_see_a_group_and_then_nothing),
		cmocka_unit_test(groups_that_come_and_go_leave_nothing_behind),
		cmocka_unit_test(workers_see_where_the_members_of_a_group_lead),
		cmocka_unit_test(workers_see_that_members_lead_to_more_interfaces_than_they_know),
		cmocka_unit_test(workers_see_where_a_hop_leads),
		cmocka_unit_test(refuses_what_is_no_group),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
