// Domains of bridges that filter by VLAN, and the VLANs that workers have of their ports.
#include "mac/testing.h"

#include <stdio.h>

enum { SECOND = 1 << 30, TAG = 0x8100, MANY = MAC_BRIDGES_BY_VLAN + 1 };

static struct mac_table *table;
static struct rcu *rcu;
static struct mac_vlans vlans[MANY];
static struct mac_member members[MANY];
static struct mac_bridge bridges[MANY];

// A bridge of one port each; bit 5: VLAN 5.
static int open_table(void **state)
{
	rcu = rcu_create(1, NULL);
	const struct mac_settings settings = {.hz = SECOND, .n_workers = 1, .rcu = rcu};

	assert_int_equal(mac_open(&table, &settings, NULL), 0);
	for (unsigned i = 0; i < MANY; i++) {
		vlans[i] = (struct mac_vlans){.pvid = i, .has = {32}};
		members[i] =
			(struct mac_member){.port = i, .flags = MAC_OF_LINUX, .vlans = &vlans[i]};
		bridges[i] = (struct mac_bridge){.linux_id = i + 1,
			.ageing_s = 1,
			.max = 10,
			.vlan_tag = TAG,
			.member = &members[i],
			.n_members = 1};
		snprintf(bridges[i].name, sizeof(bridges[i].name), "br%u", i);
	}
	return 0;
}

static int close_table(void **state)
{
	mac_close(table);
	rcu_destroy(rcu);
	return 0;
}

static void commit(unsigned first, unsigned n)
{
	struct mac_pending *pending;

	assert_int_equal(mac_prepare(table, bridges + first, n, &pending, NULL), 0);
	mac_commit(table, pending, SECOND);
}

static const struct mac_vlans *workers(unsigned port)
{
	return mac_live_view(mac_live(table))->port[port].vlans;
}

static struct mac_fixed at(unsigned port, uint16_t vlan)
{
	return (struct mac_fixed){{{2, 0, 0, 0, 0, 1}}, port, vlan, false};
}

static void follow(unsigned port, uint16_t vlan)
{
	const struct mac_fixed here = at(port, vlan);

	assert_true(mac_follow(table, mac_domain(table, bridges[port].name), &here, SECOND));
}

// How many of its addresses a bridge has, each once, where it must be.
static unsigned count(unsigned port, uint16_t vlan)
{
	const struct mac_choice all = {mac_domain(table, bridges[port].name), MAC_PORTS};
	struct mac_info info[8];
	uint32_t place = 0;
	const unsigned n = mac_page(table, &all, SECOND, &place, info, 8);

	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(info[i].port, port);
		assert_int_equal(info[i].vlan, vlan);
		assert_int_equal(info[i].domain, all.domain);
	}
	return n;
}

static void each_bridge_has_domains_of_its_own(void **state)
{
	commit(0, MANY - 1);
	for (unsigned i = 0; i < MANY - 1; i++) {
		assert_int_equal(workers(i)->tag, TAG);
		assert_int_equal(workers(i)->pvid, i);
		assert_int_equal(workers(i)->domain % MAC_VIDS, 0);
		assert_true(workers(i)->domain >= MAC_VIDS);
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(workers(i)->domain, workers(k)->domain);
		follow(i, 5);
	}
	for (unsigned i = 0; i < MANY - 1; i++) {
		struct mac_usage usage;

		assert_int_equal(count(i, 5), 1);
		assert_true(mac_usage(table, mac_domain(table, bridges[i].name), &usage));
		assert_true(usage.filters_vlans);
		assert_int_equal(usage.n_learnt, 1);
	}
}

static void a_bridge_keeps_its_domains_as_long_as_it_filters(void **state)
{
	commit(0, MANY - 1);
	const uint16_t domain = workers(3)->domain, first = workers(0)->domain;
	follow(3, 5);
	follow(0, 5);
	commit(1, MANY - 1); // one goes, another takes its place
	assert_int_equal(workers(3)->domain, domain);
	assert_int_equal(workers(MANY - 1)->domain, first);
	assert_int_equal(count(3, 5), 1);
	assert_int_equal(count(MANY - 1, 5), 0);
	assert_null(workers(0));
	bridges[3].vlan_tag = 0;
	commit(1, MANY - 1);
	assert_null(workers(3));
	assert_int_equal(count(3, 5), 0);
	follow(3, 0);
	assert_int_equal(count(3, 0), 1);
	bridges[3].vlan_tag = TAG;
	commit(1, MANY - 1);
	assert_int_equal(count(3, 0), 0);
}

static void addresses_are_forgotten_by_vlan(void **state)
{
	const struct mac_fixed five = at(0, 5), six = at(0, 6);

	commit(0, 1);
	follow(0, 5);
	follow(0, 6);
	mac_unfollow(table, 1, &six);
	mac_unfollow(table, 1, &six); // is not there any more
	assert_int_equal(count(0, 5), 1);
	mac_unfollow(table, 1, &five);
	assert_int_equal(count(0, 5), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_table, close_table)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_bridge_has_domains_of_its_own),
		TEST(a_bridge_keeps_its_domains_as_long_as_it_filters),
		TEST(addresses_are_forgotten_by_vlan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
