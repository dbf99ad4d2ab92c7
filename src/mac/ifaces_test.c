// Which interface of a bridge leads to which addresses, and with which tags.
#include "mac/testing.h"

#include "base/bits.h"

#include <stdio.h>

enum { HZ = 1 << 30, FIRST = 300, N_MEMBERS = 2, VLAN_10 = 1 << 10, VLAN_20 = 1 << 20 };
enum { CUSTOMER = 0x8100, SERVICE = 0x88a8 };

static struct mac_table *table;
static struct rcu *rcu;
static const struct wire_mac own = {{2, 0, 0, 0, 0xfe, 1}}, host = {{2, 0, 0, 0, 0xfe, 2}};

static int setup(void **state)
{
	rcu = rcu_create(1, NULL);
	const struct mac_settings settings = {.hz = HZ, .n_workers = 1, .rcu = rcu};

	return mac_open(&table, &settings, NULL);
}

static int teardown(void **state)
{
	mac_close(table);
	rcu_destroy(rcu);
	return 0;
}

static void commit(const struct mac_bridge bridges[], unsigned n)
{
	struct mac_pending *pending;

	assert_int_equal(mac_prepare(table, bridges, n, &pending, NULL), 0);
	mac_commit(table, pending, 0);
}

static const struct mac_view *view_now(void)
{
	return mac_live_view(mac_live(table));
}

static struct mac_bridge bridge_of(const char *name, uint16_t iface)
{
	struct mac_bridge bridge = {.linux_id = iface,
		.ageing_s = 300,
		.max = 10,
		.is_routed = true,
		.iface = iface,
		.mac = own};

	memcpy(bridge.name, name, strlen(name) + 1);
	return bridge;
}

static uint16_t domain_of(uint16_t iface)
{
	const struct mac_iface *found = mac_iface_of(view_now(), iface);

	return found ? found->domain : 0;
}

static void follow(uint16_t port, uint16_t vlan)
{
	assert_true(mac_follow(table, mac_domain(table, "br0"),
		&(struct mac_fixed){host, port, vlan, false}, 0));
}

// The tag with which workers send to the host; -1: they do not.
static int64_t tag_to(uint16_t iface, uint16_t port)
{
	struct mac_way way;

	if (!mac_way_to(table, iface, &host, &way))
		return -1;
	assert_int_equal(way.port, port);
	return way.tag;
}

// As many as compete for few places, and some that are not routed on.
static void bridges_are_found_by_their_interfaces(void **state)
{
	enum { N = 40, STEP = 256 };
	struct mac_bridge bridges[N];
	char name[MAC_NAME_MAX];

	for (unsigned i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "br%u", i);
		bridges[i] = bridge_of(name, FIRST + i * STEP);
		bridges[i].is_routed = i % 2;
	}
	commit(bridges, N);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(domain_of(FIRST + i * STEP),
			i % 2 ? mac_domain(table, bridges[i].name) : 0);
	assert_int_equal(domain_of(7), 0);
	commit(bridges, 0);
	assert_int_equal(domain_of(FIRST + STEP), 0);
}

static void without_filtering_each_vlan_interface_has_its_tag(void **state)
{
	const struct mac_vlan_iface ifaces[] = {{FIRST + 1, CUSTOMER, 10},
		{FIRST + 2, SERVICE, 10}};
	struct mac_member member[N_MEMBERS] = {{.port = 0}, {.port = 1}};
	struct mac_bridge bridge = bridge_of("br0", FIRST);

	bridge.member = member;
	bridge.n_members = N_MEMBERS;
	bridge.vlan_iface = ifaces;
	bridge.n_vlan_ifaces = ARRAY_LEN(ifaces);
	commit(&bridge, 1);
	assert_int_equal(tag_to(FIRST, 1), -1);
	follow(1, 0);
	assert_int_equal(tag_to(FIRST, 1), 0);
	assert_int_equal(tag_to(FIRST + 1, 1), (int64_t)CUSTOMER << 16 | 10);
	assert_int_equal(tag_to(FIRST + 2, 1), (int64_t)SERVICE << 16 | 10);
	assert_int_equal(tag_to(FIRST + 3, 1), -1);
	assert_memory_equal(&view_now()->port[1].own, own.bytes, sizeof(own.bytes));
	assert_null(view_now()->port[1].own_vlans);
	assert_null(mac_own_vlans(table, mac_domain(table, "br0")));
	follow(MAC_PORTS, 0);
	assert_int_equal(tag_to(FIRST, 1), -1);
}

// Port 0 has VLANs 10 and 20, 20 without tags; port 1 has VLAN 20 only.
static void with_filtering_the_port_decides(void **state)
{
	const struct mac_vlan_iface ifaces[] = {{FIRST + 1, CUSTOMER, 10},
		{FIRST + 2, CUSTOMER, 20}};
	struct mac_vlans own_vlans = {.pvid = 20,
		.has = {VLAN_10 | VLAN_20},
		.untagged = {VLAN_20}};
	const struct mac_vlans vlans[N_MEMBERS] = {{.has = {VLAN_10 | VLAN_20},
							   .untagged = {VLAN_20}},
		{.has = {VLAN_20}}};
	struct mac_member member[N_MEMBERS] = {{.port = 0, .vlans = &vlans[0]},
		{.port = 1, .vlans = &vlans[1]}};
	struct mac_bridge bridge = bridge_of("br0", FIRST);

	bridge.vlan_tag = CUSTOMER;
	bridge.member = member;
	bridge.n_members = N_MEMBERS;
	bridge.own_vlans = &own_vlans;
	bridge.vlan_iface = ifaces;
	bridge.n_vlan_ifaces = ARRAY_LEN(ifaces);
	commit(&bridge, 1);
	assert_int_equal(mac_own_vlans(table, mac_domain(table, "br0"))->pvid, 20);
	assert_int_equal(domain_of(FIRST) - domain_of(FIRST + 1), 10);
	assert_int_equal(domain_of(FIRST), domain_of(FIRST + 2));
	follow(0, 10);
	assert_int_equal(tag_to(FIRST, 0), -1);
	assert_int_equal(tag_to(FIRST + 1, 0), (int64_t)CUSTOMER << 16 | 10);
	follow(0, 20);
	assert_int_equal(tag_to(FIRST, 0), 0);
	assert_int_equal(tag_to(FIRST + 2, 0), 0);
	follow(1, 20);
	assert_int_equal(tag_to(FIRST, 1), (int64_t)CUSTOMER << 16 | 20);
	follow(1, 10); // which that port has no more
	assert_int_equal(tag_to(FIRST + 1, 1), -1);
	own_vlans.pvid = 0;
	own_vlans.has[0] = VLAN_20;
	commit(&bridge, 1);
	assert_int_equal(domain_of(FIRST), 0);
	assert_int_equal(domain_of(FIRST + 1), 0);
	assert_int_equal(tag_to(FIRST + 2, 1), (int64_t)CUSTOMER << 16 | 20);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bridges_are_found_by_their_interfaces),
		TEST(without_filtering_each_vlan_interface_has_its_tag),
		TEST(with_filtering_the_port_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
