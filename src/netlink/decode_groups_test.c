// Messages about groups of bridges, as Linux sent them, and wrong ones.
#include "netlink/event.h"

#include <linux/if_bridge.h>
#include <linux/netlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { BRIDGE = 40, LEFT, RIGHT, MOST = 8192 };

static uint8_t bytes[MOST] __attribute__((aligned(4)));
static struct event event; // large

static size_t load(const char *name)
{
	char path[256];
	size_t n;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", NETLINK_CORPUS, name);
	file = fopen(path, "rb");
	assert_non_null(file);
	n = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	return n;
}

static const struct event_group *read_group(const char *name)
{
	const size_t n = load(name);

	assert_int_equal(decode_route(bytes, n, &event), DECODE_EVENT);
	assert_int_equal(event.kind, EVENT_GROUPS);
	assert_int_equal(event.groups.bridge, BRIDGE);
	return &event.groups.group[0];
}

static void reads_who_wants_a_group(void **state)
{
	static const uint8_t group4[16] = {239, 1, 1, 1}, group6[16] = {0xff, 5, [15] = 9};
	const struct event_group *group = read_group("groups_added");

	assert_false(event.is_delete);
	assert_int_equal(event.groups.n, 1);
	assert_int_equal(group->ifindex, LEFT);
	assert_int_equal(group->family, 4);
	assert_int_equal(group->vlan, 0);
	assert_memory_equal(group->addr, group4, sizeof(group4));
	assert_false(group->has_source || group->is_odd);
	read_group("groups_deleted");
	assert_true(event.is_delete);
	group = read_group("groups_ip6");
	assert_int_equal(group->family, 6);
	assert_memory_equal(group->addr, group6, sizeof(group6));
	group = read_group("groups_bridge");
	assert_int_equal(group->ifindex, BRIDGE);
	group = read_group("groups_mac");
	assert_int_equal(group->family, 0);
	assert_int_equal(group->addr[0], 1);
	assert_int_equal(group->addr[5], 7);
}

static void reads_from_whom_it_is_wanted(void **state)
{
	const struct event_group *group = read_group("groups_source");

	assert_true(group->has_source);
	assert_int_equal(group->source[0], 10);
	assert_int_equal(group->source[3], 1);
}

static void reads_ports_with_routers(void **state)
{
	read_group("groups_router");
	assert_int_equal(event.groups.n, 0);
	assert_int_equal(event.groups.n_routers, 1);
	assert_int_equal(event.groups.router[0].ifindex, LEFT);
	assert_false(event.groups.router[0].for4 || event.groups.router[0].for6);
	read_group("groups_dump");
	assert_true(event.groups.n >= 4);
	assert_int_equal(event.groups.n_routers, 1);
	assert_true(event.groups.router[0].for4 && event.groups.router[0].for6);
	assert_false(event.groups.too_many);
}

static void reads_how_a_bridge_snoops(void **state)
{
	const struct event_snooping *snooping = &event.iface.bridge.snooping;
	const size_t n = load("link_bridge_snooping");

	assert_int_equal(decode_route(bytes, n, &event), DECODE_EVENT);
	assert_true(event.iface.bridge.snoops && snooping->is_querier);
	assert_int_equal(snooping->router, MDB_RTR_TYPE_TEMP_QUERY);
	assert_true(snooping->sees_sources[0]);
	assert_false(snooping->sees_sources[1] || snooping->by_vlan);
	assert_int_equal(snooping->response_cs, 1000);
	assert_int_equal(snooping->query_cs, 12500);
	assert_true(snooping->startup_cs > 3000);
	assert_int_equal(snooping->other_cs[0], 0);
}

// Cut anywhere, it is malformed, or says nothing.
static void refuses_what_is_cut(void **state)
{
	static const char *const names[] = {"groups_added", "groups_ip6", "groups_source",
		"groups_router", "link_bridge_snooping"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const size_t n = load(names[i]);
		struct nlmsghdr *head = (void *)bytes;

		for (size_t cut = head->nlmsg_len; cut-- > sizeof(*head);) {
			const bool is_between = cut <= sizeof(*head) + sizeof(struct br_port_msg);

			head->nlmsg_len = cut;
			assert_true(decode_route(bytes, n, &event) != DECODE_EVENT || !is_between ||
				    i == 4);
		}
	}
	load("groups_added");
	((struct nlmsghdr *)bytes)->nlmsg_len -= 4;
	assert_int_equal(decode_route(bytes, MOST, &event), DECODE_MALFORMED);
}

static void refuses_impossible_values(void **state)
{
	enum { ENTRY_AT = 16 + 8 + 4 + 4 + 4, VLAN_AT = ENTRY_AT + 6, PROTOCOL_AT = ENTRY_AT + 24 };
	const struct {
		unsigned at;
		uint8_t value;
	} wrong[] = {{20, 0}, {ENTRY_AT, 0}, {VLAN_AT + 1, 0x10}, {PROTOCOL_AT, 9}};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const size_t n = load("groups_added");

		bytes[wrong[i].at] = wrong[i].value;
		assert_int_equal(decode_route(bytes, n, &event), DECODE_MALFORMED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_who_wants_a_group),
		cmocka_unit_test(reads_from_whom_it_is_wanted),
		cmocka_unit_test(reads_ports_with_routers),
		cmocka_unit_test(reads_how_a_bridge_snoops),
		cmocka_unit_test(refuses_what_is_cut),
		cmocka_unit_test(refuses_impossible_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
