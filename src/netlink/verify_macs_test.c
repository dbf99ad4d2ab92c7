// What verify finds in the bridges that workers serve: Linux's answers are the events below.
#include "netlink/fake_linux.h"

#include "netlink/bridges_inside.h"
#include "netlink/inside.h"

#include <errno.h>
#include <linux/if_bridge.h>
#include <linux/if_ether.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

enum { LEFT = FAKE_TAP, RIGHT = FAKE_TAP + 1, BRIDGE = 40, MOST = 16, SECOND = 1000000000 };

static struct event answers[MOST]; // of Linux
static unsigned n_answers;
static int vlans_error;
static struct netlink checked;
static struct rcu *rcu;

int __wrap_listen_ask(struct listen *listen, const struct listen_request *request);
int __wrap_listen_ask(struct listen *listen, const struct listen_request *request)
{
	const struct nlmsghdr *head = request->message;
	const uint8_t kind = head->nlmsg_type == RTM_GETLINK   ? EVENT_LINK
	                     : head->nlmsg_type == RTM_GETVLAN ? EVENT_VLANS
	                                                       : EVENT_FDB;

	for (unsigned i = 0; i < n_answers; i++)
		if (answers[i].kind == kind)
			request->take(request->arg, &answers[i]);
	return kind == EVENT_VLANS ? vlans_error : 0;
}

static void tell(const struct event *event)
{
	mirror_event(fake.mirror, event);
	fake_flush(&fake);
}

// Both Linux and workers have it. Returns what Linux answers.
static struct event *both_have(const struct event *event)
{
	assert_true(n_answers < MOST);
	answers[n_answers] = *event;
	tell(event);
	return &answers[n_answers++];
}

static struct event fdb(int ifindex, uint8_t host, uint16_t vlan)
{
	return (struct event){.kind = EVENT_FDB,
		.fdb = {.ifindex = ifindex,
			.bridge = BRIDGE,
			.mac = fake_mac(host),
			.vlan = vlan,
			.is_plain = true}};
}

static struct event vlans(int ifindex, struct event_vlans is)
{
	struct event event = {.kind = EVENT_VLANS, .vlans = is};

	event.vlans.ifindex = ifindex;
	return event;
}

static struct event *bridge_answer, *left_answer, *vlans_answer;

static void furnish(bool filters)
{
	struct event bridge = {.kind = EVENT_LINK, .iface = fake_device(BRIDGE, "br0", "bridge")};
	const struct event right_vlans = vlans(RIGHT, (struct event_vlans){.has = {8}});
	const struct event left_vlans =
		vlans(LEFT, (struct event_vlans){.pvid = 1, .has = {6}, .untagged = {2}});

	bridge.iface.bridge = (struct event_bridge){.ageing_cs = 30000,
		.filters_vlans = filters,
		.vlan_protocol = ETH_P_8021Q};
	bridge_answer = both_have(&bridge);
	for (unsigned port = 0; port < 2; port++) {
		struct event link = {.kind = EVENT_LINK, .iface = fake_tap(port)};

		link.iface.master = BRIDGE;
		snprintf(link.iface.slave_kind, sizeof(link.iface.slave_kind), "bridge");
		link.iface.port = (struct event_bridge_port){.is_known = true,
			.state = BR_STATE_FORWARDING,
			.learns = true};
		left_answer = both_have(&link) - port;
	}
	if (!filters)
		return;
	both_have(&right_vlans);
	vlans_answer = both_have(&left_vlans);
}

static int setup(void **state)
{
	struct mac_settings settings = {.hz = SECOND, .n_workers = 1};

	rcu = rcu_create(1, NULL);
	settings.rcu = rcu;
	assert_int_equal(mac_open(&fake_macs, &settings, NULL), 0);
	n_answers = 0;
	vlans_error = 0;
	fake_setup(state);
	checked = (struct netlink){.ctx.fib = fake.fib, .mirror = fake.mirror};
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

static bool print(void *arg, const char *difference)
{
	snprintf(arg, 256, "%s", difference);
	return true;
}

// The only difference; NULL: there is none.
static void expect(const char *difference)
{
	char text[256] = "";
	const struct netlink_verification how = {.cb = print, .arg = text};

	assert_int_equal(verify_macs(&checked, NULL), difference != NULL);
	assert_int_equal(verify_macs(&checked, &how), difference != NULL);
	assert_string_equal(text, difference ? difference : "");
}

static void addresses_are_compared(void **state)
{
	const struct event first = fdb(LEFT, 1, 0), second = fdb(RIGHT, 2, 0);
	const struct event vlan = fdb(LEFT, 3, 1), elsewhere = fdb(99, 4, 0);

	vlans_error = -EOPNOTSUPP; // this kernel does not filter by VLAN
	furnish(false);
	expect(NULL);
	both_have(&first);
	struct event *answer = both_have(&second);
	both_have(&vlan);
	both_have(&elsewhere);
	expect(NULL);
	answer->fdb.ifindex = LEFT;
	expect("MAC address 02:00:00:00:00:02 in br0: Linux has it behind p0, workers behind p1");
	answer->fdb.mac.bytes[5] = 9;
	answer->fdb.is_plain = false;
	expect("MAC address 02:00:00:00:00:02 in br0: Linux does not have it");
	*answer = second;
	mac_unfollow(fake_macs, 1, &(struct mac_fixed){.mac = fake_mac(2)});
	expect("MAC address 02:00:00:00:00:02 in br0: workers do not have it");
	fake.mirror->bridges->is_short = true; // which is known
	expect(NULL);
	vlans_error = -EIO;
	assert_int_equal(verify_macs(&checked, NULL), -EIO);
}

static void addresses_are_compared_by_vlan(void **state)
{
	const struct event first = fdb(LEFT, 1, 1), second = fdb(LEFT, 1, 2);

	furnish(true);
	both_have(&first);
	struct event *answer = both_have(&second);
	expect(NULL);
	answer->fdb.vlan = 0; // does not count
	expect("MAC address 02:00:00:00:00:01 in br0 VLAN 2: Linux does not have it");
}

static void vlans_are_compared(void **state)
{
	furnish(true);
	expect(NULL);
	vlans_answer->vlans.pvid = 2;
	expect("p0: Linux and workers have different PVIDs");
	vlans_answer->vlans.pvid = 1;
	vlans_answer->vlans.untagged[0] = 6;
	expect("VLAN 2 of p0: Linux and workers send it with different tags");
	vlans_answer->vlans.has[0] = vlans_answer->vlans.untagged[0] = 2;
	expect("VLAN 2 of p0: either Linux or workers have it");
	vlans_answer->vlans.has[0] = 14;
	vlans_answer->vlans.odd[0] = 8; // is Linux's
	expect(NULL);
	bridge_answer->iface.bridge.vlan_protocol = ETH_P_8021AD;
	expect("br0: workers and Linux filter by VLAN in different ways");
}

static void ports_are_compared(void **state)
{
	furnish(true);
	left_answer->iface.master = BRIDGE + 1;
	expect("p0: workers have it in a bridge in which it is not in Linux");
	left_answer->iface.master = BRIDGE;
	left_answer->iface.port.state = BR_STATE_BLOCKING;
	expect("p0: workers forward by it, which Linux does not");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(addresses_are_compared),
		TEST(addresses_are_compared_by_vlan),
		TEST(vlans_are_compared),
		TEST(ports_are_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
