// What verify finds in the labels of workers: Linux's answers are the events below.
#include "netlink/fake_linux.h"

#include "fib/fib_fast.h"
#include "netlink/inside.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { LO = 1, LEFT = FAKE_TAP, RIGHT, OTHER = 60, MOST = 8 };

static struct event answers[MOST]; // of Linux
static unsigned n_answers;
static int answers_with;
static bool has_mpls;
static struct netlink checked;

int __wrap_listen_ask(struct listen *listen, const struct listen_request *request);
int __wrap_listen_ask(struct listen *listen, const struct listen_request *request)
{
	const struct nlmsghdr *head = request->message;
	const struct rtmsg *route = (const void *)(head + 1);

	assert_int_equal(head->nlmsg_type, RTM_GETROUTE);
	assert_int_equal(route->rtm_family, AF_MPLS);
	for (unsigned i = 0; i < n_answers; i++)
		request->take(request->arg, &answers[i]);
	return answers_with;
}

static bool mpls(void *ops, struct mirror_mpls *out)
{
	*out = (struct mirror_mpls){1000, true, 77};
	return has_mpls;
}

static struct event_hop to(const char *via, int ifindex, uint32_t label)
{
	return (struct event_hop){.via = fake_addr(via),
		.ifindex = ifindex,
		.weight = 1,
		.n_labels = 1,
		.label = {label}};
}

static struct event label_event(uint32_t label, struct event_hop hop)
{
	struct event event = {.kind = EVENT_LABEL};

	event.label.label = label;
	event.label.propagates = -1;
	event.label.n_hops = 1;
	event.label.hop[0] = hop;
	return event;
}

static void tell(const struct event *event)
{
	mirror_event(fake.mirror, event);
	fake_flush(&fake);
}

// Both Linux and workers have it.
static void both_have(struct event event)
{
	assert_true(n_answers < MOST);
	answers[n_answers++] = event;
	tell(&event);
}

static int setup(void **state)
{
	struct event_link lo = fake_device(LO, "lo", "");
	struct event_link other = fake_device(OTHER, "wg0", "wireguard");
	struct event group = label_event(103, to("10.0.0.2", LEFT, 300));

	fake_setup(state);
	fake.mirror->settings.ops.mpls = mpls;
	has_mpls = true;
	n_answers = 0;
	answers_with = 0;
	lo.flags |= IFF_LOOPBACK;
	fake_iface(&fake, &lo);
	fake_iface(&fake, &other);
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	checked = (struct netlink){.ctx.fib = fake.fib, .mirror = fake.mirror};
	group.label.n_hops = 2;
	group.label.hop[1] = to("10.0.1.2", RIGHT, 301);
	both_have(label_event(100, to("10.0.0.2", LEFT, 200)));
	both_have(label_event(101, (struct event_hop){.ifindex = LO, .weight = 1}));
	both_have(label_event(102, to("10.0.0.2", OTHER, 201)));
	both_have(group);
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

	assert_int_equal(verify_labels(&checked, NULL), difference != NULL);
	assert_int_equal(verify_labels(&checked, &how), difference != NULL);
	assert_string_equal(text, difference ? difference : "");
}

static void labels_that_are_as_linux_has_them_are_no_differences(void **state)
{
	struct fib_label label;

	expect(NULL);
	assert_true(fib_label_next(fake.fib, 102, &label));
	assert_int_equal(label.op, FIB_LABEL_LINUX);
	assert_true(
		fib_label_next(fake.fib, 0, &label)); // explicit null, which Linux does not tell
	assert_int_equal(label.label, 0);
}

static void a_label_that_only_one_of_both_has_is_named(void **state)
{
	assert_int_equal(fib_label_delete(fake.fib, 100), 0);
	expect("MPLS label 100: Linux has a route for it, workers drop its packets");
	tell(&answers[0]);
	expect(NULL);
	n_answers--;
	expect("MPLS label 103: workers have a route for it, which Linux does not have");
}

static void other_hops_labels_and_ttls_are_named(void **state)
{
	static const char other[] =
		"MPLS label 100: workers do something else with its packets than Linux";
	static const char group[] =
		"MPLS label 103: workers do something else with its packets than Linux";
	const struct event first = answers[0], last = answers[3];

	answers[0].label.hop[0].via = fake_addr("10.0.0.3");
	expect(other);
	answers[0] = first;
	answers[0].label.hop[0].label[0] = 999;
	expect(other);
	answers[0] = first;
	answers[0].label.propagates = 0;
	expect(other);
	answers[0] = label_event(100, (struct event_hop){.ifindex = LO, .weight = 1});
	expect(other);
	answers[0] = first;
	answers[3].label.hop[1].weight = 3;
	expect(group);
	answers[3] = last;
	answers[3].label.hop[1].label[0] = 302;
	expect(group);
	answers[3] = last;
	expect(NULL);
}

static void a_route_that_workers_do_not_support_is_linuxs(void **state)
{
	answers[0] = label_event(100, to("10.0.0.2", OTHER, 200));
	expect("MPLS label 100: workers do not leave it to Linux, though they do not support its "
	       "route");
	tell(&answers[0]);
	expect(NULL);
}

static void a_kernel_without_mpls_is_not_asked(void **state)
{
	answers_with = -EIO;
	assert_int_equal(verify_labels(&checked, NULL), -EIO);
	has_mpls = false;
	mirror_poll(fake.mirror);
	fake_flush(&fake);
	assert_int_equal(verify_labels(&checked, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(labels_that_are_as_linux_has_them_are_no_differences),
		TEST(a_label_that_only_one_of_both_has_is_named),
		TEST(other_hops_labels_and_ttls_are_named),
		TEST(a_route_that_workers_do_not_support_is_linuxs),
		TEST(a_kernel_without_mpls_is_not_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
