// Groups of bridges that snoop: where workers find that frames to them go, and that they always
// find one version whole while the control thread replaces them (for ThreadSanitizer).
#include "mac/testing.h"

#include "rcu/rcu_fast.h"

#include <pthread.h>

enum { HZ = 1 << 30, N_GROUPS = 50 };
#ifdef __SANITIZE_THREAD__
enum { N_CHANGES = 300 };
#else
enum { N_CHANGES = 3000 };
#endif

static struct rcu *rcu;
static struct mac_table *table;
static struct mac_group group[N_GROUPS];
static struct mac_snooping snooping;
static struct mac_member members[] = {{.port = 0}, {.port = 1}, {.port = 70}};
static struct mac_vlans vlans;
static struct mac_bridge bridges[] = {
	{.name = "br0", .ageing_s = 300, .max = 10, .member = members, .n_members = 2},
	{.name = "br1", .ageing_s = 300, .max = 10, .member = members + 2, .n_members = 1},
};

static void commit(void)
{
	struct mac_pending *pending;

	assert_int_equal(mac_prepare(table, bridges, 2, &pending, NULL), 0);
	mac_commit(table, pending, 0);
}

static int setup(void **state)
{
	struct mac_settings settings = {.hz = HZ, .n_workers = 1};

	rcu = rcu_create(1, NULL);
	settings.rcu = rcu;
	memset(group, 0, sizeof(group));
	for (unsigned i = 0; i < N_GROUPS; i++)
		group[i] = (struct mac_group){.family = MAC_OF_IP4, .addr = {239, 0, 0, i}};
	snooping = (struct mac_snooping){.group = group, .n_groups = N_GROUPS};
	bridges[0].snooping = &snooping;
	bridges[0].vlan_tag = bridges[1].vlan_tag = 0;
	assert_int_equal(mac_open(&table, &settings, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	mac_close(table);
	rcu_destroy(rcu);
	return 0;
}

static const struct mac_view *view(void)
{
	return mac_live_view(mac_live(table));
}

static const struct mac_out *look_up(uint16_t domain, enum mac_family family, uint8_t last)
{
	const uint8_t addr[16] = {239, 0, 0, last};
	const struct mac_group_key key = mac_group_key(domain, family, addr);

	return mac_group_find(view(), &key);
}

static void a_group_goes_to_its_ports_and_to_routers_of_its_family(void **state)
{
	group[7].out.ports[0] = 2;
	group[8].out.linux_too = true;
	group[9].family = MAC_OF_MACS;
	snooping.routers[MAC_OF_IP4].ports[1] = 1 << 6;
	snooping.has_querier[MAC_OF_IP4] = true;
	commit();
	assert_int_equal(look_up(1, MAC_OF_IP4, 7)->ports[0], 2);
	assert_int_equal(look_up(1, MAC_OF_IP4, 7)->ports[1], 1 << 6);
	assert_false(look_up(1, MAC_OF_IP4, 7)->linux_too);
	assert_true(look_up(1, MAC_OF_IP4, 8)->linux_too);
	assert_null(look_up(1, MAC_OF_IP4, 9));
	assert_int_equal(look_up(1, MAC_OF_MACS, 9)->ports[1], 0);
	assert_null(look_up(1, MAC_OF_IP6, 7));
	assert_null(look_up(2, MAC_OF_IP4, 7));
	assert_null(look_up(1, MAC_OF_IP4, N_GROUPS));
	assert_true(mac_snoop_of(view(), 1)->has_querier[MAC_OF_IP4]);
	assert_false(mac_snoop_of(view(), 1)->has_querier[MAC_OF_IP6]);
	assert_int_equal(mac_snoop_of(view(), 1)->n_groups, N_GROUPS);
	assert_null(mac_snoop_of(view(), 2));
}

static unsigned count(uint16_t domain)
{
	struct mac_group one;
	uint32_t place = 0;
	uint16_t of;
	unsigned n = 0;

	while (mac_group_page(table, &place, &one, &of))
		n += of == domain && one.family == MAC_OF_IP4 && one.addr[0] == 239;
	return n;
}

static void groups_are_replaced_alone_and_with_their_bridges(void **state)
{
	bridges[0].snooping = NULL;
	commit();
	assert_null(mac_snoop_of(view(), 1));
	assert_null(look_up(1, MAC_OF_IP4, 1));
	bridges[0].snooping = &snooping;
	assert_int_equal(mac_set_groups(table, bridges, 2, NULL), 0);
	assert_non_null(look_up(1, MAC_OF_IP4, N_GROUPS - 1));
	assert_int_equal(count(1), N_GROUPS);
	assert_int_equal(count(2), 0);
	snooping.n_groups = 1;
	assert_int_equal(mac_set_groups(table, bridges, 2, NULL), 0);
	assert_null(look_up(1, MAC_OF_IP4, N_GROUPS - 1));
	assert_int_equal(count(1), 1);
	commit();
	assert_int_equal(count(1), 1);
	assert_int_equal(mac_set_groups(table, bridges + 1, 1, NULL), 0);
	assert_null(mac_snoop_of(view(), 1));
}

static void each_vlan_has_groups_of_its_own(void **state)
{
	group[1].vlan = 5;
	group[2].vlan = 6;
	for (unsigned i = 0; i < 2; i++)
		members[i].vlans = &vlans;
	bridges[0].vlan_tag = 0x8100;
	commit();
	const uint16_t domain = view()->port[0].vlans->domain;
	assert_non_null(look_up(domain + 5, MAC_OF_IP4, 1));
	assert_null(look_up(domain + 6, MAC_OF_IP4, 1));
	assert_non_null(look_up(domain + 6, MAC_OF_IP4, 2));
	assert_null(look_up(1, MAC_OF_IP4, 3)); // of none
	assert_int_equal(count(1), 2);
	for (unsigned i = 0; i < 2; i++)
		members[i].vlans = NULL;
}

static void ports_that_may_exchange_frames_are_known(void **state)
{
	commit();
	assert_int_equal(view()->port[0].others[0], 2);
	members[0].flags = MAC_ISOLATED | MAC_HAIRPIN;
	members[1].flags = MAC_ISOLATED | MAC_NO_MULTICASTS;
	commit();
	assert_int_equal(view()->port[0].others[0], 0); // nor to itself
	members[0].flags = MAC_HAIRPIN;
	commit();
	assert_int_equal(view()->port[0].others[0], 3);
	members[0].flags = members[1].flags = 0;
}

// All groups of a version have the same ports.
static void *read_versions(void *arg)
{
	const int *stop = arg;
	unsigned n_wrong = 0;

	rcu_reader_online(rcu_readers(rcu), 0);
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		const struct mac_out *first = look_up(1, MAC_OF_IP4, 0);
		const struct mac_snoop *snoop = mac_snoop_of(view(), 1);

		n_wrong += !first || !snoop || snoop->n_groups != N_GROUPS;
		for (unsigned i = 0; first && i < sizeof(first->ports) / 8; i++)
			n_wrong += first->ports[i] != first->ports[0];
		rcu_reader_report(rcu_readers(rcu), 0);
	}
	rcu_reader_offline(rcu_readers(rcu), 0);
	return (void *)(uintptr_t)n_wrong;
}

static void workers_read_one_version_while_groups_change(void **state)
{
	pthread_t worker;
	void *n_wrong;
	int stop = 0;

	commit();
	assert_int_equal(pthread_create(&worker, NULL, read_versions, &stop), 0);
	for (unsigned change = 0; change < N_CHANGES; change++) {
		for (unsigned i = 0; i < MAC_PORTS / 64; i++)
			group[0].out.ports[i] = change;
		if (change % 8)
			assert_int_equal(mac_set_groups(table, bridges, 2, NULL), 0);
		else
			commit();
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(worker, &n_wrong);
	assert_null(n_wrong);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_group_goes_to_its_ports_and_to_routers_of_its_family),
		TEST(groups_are_replaced_alone_and_with_their_bridges),
		TEST(each_vlan_has_groups_of_its_own),
		TEST(ports_that_may_exchange_frames_are_known),
		TEST(workers_read_one_version_while_groups_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
