// Qdiscs of interfaces: which ones workers get, in which words, and that Linux has the packets
// until they have.
#include "netlink/fake_linux.h"
#include "netlink/ifaces_inside.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <stdlib.h>
#include <string.h>

enum { LEFT = FAKE_TAP, RIGHT = FAKE_TAP + 1, VLAN = 20, OTHER = 21, ROOT = 1 << 16 };
enum { CLASS = ROOT | 1, LEAF = 2 << 16, TXQUEUE = 1000 };
#define TBF_WORDS                                                                                  \
	"shape 8000000bit/s burst 98486B queue fifo limit_bytes 150000B class_dscp 0:3 "           \
	"counts ip overhead 14"

// What workers have been given.
static struct given {
	char profile[4][QUEUES_PROFILE]; // of name[i]; "": none
	char name[4][EVENT_NAME_MAX];
	char of[IFACE_MAX + 1][EVENT_NAME_MAX]; // by interface; "": none
	int error;
	unsigned n_calls;
} given;

static int shape(void *arg, const char *name, const char *profile, struct error *error)
{
	unsigned at = 0;

	given.n_calls++;
	if (given.error && profile)
		return error_set(error, given.error, "no such luck");
	while (at < 4 && strcmp(given.name[at], name) != 0 && given.name[at][0])
		at++;
	assert_true(at < 4);
	snprintf(given.name[at], EVENT_NAME_MAX, "%s", name);
	snprintf(given.profile[at], QUEUES_PROFILE, "%s", profile ? profile : "");
	return 0;
}

static void shape_iface(void *arg, uint16_t iface, const char *name)
{
	snprintf(given.of[iface], EVENT_NAME_MAX, "%s", name ? name : "");
}

static const char *profile_of(const char *name)
{
	for (unsigned i = 0; i < 4; i++)
		if (!strcmp(given.name[i], name))
			return given.profile[i];
	return "";
}

static struct interface *one_of(int ifindex)
{
	return interfaces_find(&fake.mirror->ifaces->all, ifindex);
}

static const struct event_queue tbf = {.what = QUEUE_TBF,
	.handle = ROOT,
	.parent = TC_H_ROOT,
	.rate = 1000000,
	.burst = 100000,
	.limit_bytes = 150000,
	.kind = "tbf"};
static const struct event_queue htb = {.what = QUEUE_HTB,
	.handle = ROOT,
	.parent = TC_H_ROOT,
	.default_class = CLASS,
	.kind = "htb"};
static const struct event_queue class = {.what = QUEUE_CLASS,
	.handle = CLASS,
	.parent = TC_H_ROOT,
	.rate = 1000000,
	.burst = 100000,
	.kind = "htb"};
static const struct event_queue fq_codel = {.what = QUEUE_FQ_CODEL,
	.handle = LEAF,
	.parent = CLASS,
	.target_us = 5000,
	.interval_us = 100000,
	.limit_packets = 10240,
	.limit_bytes = 32000000,
	.marks = true,
	.kind = "fq_codel"};

static void queue(int ifindex, const struct event_queue *what, bool is_delete)
{
	const bool is_class = what->what == QUEUE_CLASS || what->what == QUEUE_FILTER;
	struct event event = {.kind = is_class ? EVENT_CLASS : EVENT_QDISC,
		.is_delete = is_delete,
		.is_dump = fake.in_dump,
		.queue = *what};

	event.queue.ifindex = ifindex;
	if (!is_class) {
		event.foreign.ifindex = ifindex;
		event.foreign.sides = EVENT_EGRESS;
		event.foreign.is_harmless =
			what->what == QUEUE_FQ_CODEL || what->what == QUEUE_FIFO;
		snprintf(event.foreign.name, sizeof(event.foreign.name), "qdisc %s %x:", what->kind,
			what->handle);
	}
	mirror_event(fake.mirror, &event);
}

static void settle(void)
{
	for (unsigned i = 0; i < 4; i++) {
		fake_flush(&fake);
		fake.mirror->ifaces->queues.applied_ns = 0;
		mirror_apply_filters(fake.mirror, clock_now_ns() + 10000000000);
		mirror_dump_filters(fake.mirror);
	}
	fake_flush(&fake);
}

static bool lets_out(int ifindex)
{
	const struct interface *one = one_of(ifindex);

	return one->id != IFACE_NONE && check_lets_out(one->reasons);
}

struct told {
	char what[64], where[64], effect[2048];
	unsigned n;
};

static bool tell(void *arg, const struct netlink_unsupported *one)
{
	struct told *told = arg;

	memcpy(told->what, one->what, sizeof(told->what));
	memcpy(told->where, one->where, sizeof(told->where));
	memcpy(told->effect, one->effect, sizeof(told->effect));
	told->n++;
	return true;
}

// Exactly one thing is named, with this reason.
static void expect_named(const char *what, const char *where, const char *reason)
{
	struct told told = {.n = 0};

	mirror_unsupported(fake.mirror, tell, &told);
	assert_int_equal(told.n, 1);
	assert_string_equal(told.what, what);
	assert_string_equal(told.where, where);
	assert_non_null(strstr(told.effect, reason));
}

static void expect_nothing_named(void)
{
	struct told told = {.n = 0};

	mirror_unsupported(fake.mirror, tell, &told);
	assert_int_equal(told.n, 0);
}

// Classes that Linux lists when it is asked.
static const struct event_queue *listed;
static unsigned n_listed;

static int dump_classes(void *ops, int ifindex, void (*take)(void *arg, const struct event *event),
	void *arg)
{
	for (unsigned i = 0; i < n_listed; i++) {
		struct event event = {.kind = EVENT_CLASS, .is_dump = true, .queue = listed[i]};

		event.queue.ifindex = ifindex;
		take(arg, &event);
	}
	return fake.dump_error;
}

static int setup(void **state)
{
	struct event_link vlan = fake_vlan(VLAN, LEFT, 100);

	memset(&given, 0, sizeof(given));
	listed = NULL;
	n_listed = 0;
	fake_setup(state);
	fake.mirror->settings.shape = shape;
	fake.mirror->settings.shape_iface = shape_iface;
	fake.mirror->settings.ops.dump_classes = dump_classes;
	vlan.queue_packets = TXQUEUE;
	fake_router(&fake, &vlan);
	settle();
	assert_true(lets_out(VLAN));
	return 0;
}

static void a_tbf_of_a_vlan_becomes_a_queue_of_workers(void **state)
{
	queue(VLAN, &tbf, false);
	fake_flush(&fake);
	assert_false(lets_out(VLAN)); // until they have it
	assert_true(lets_out(LEFT));
	expect_named("qdisc tbf 1:", one_of(VLAN)->iface.name, "latest state");
	settle();
	assert_true(lets_out(VLAN));
	expect_nothing_named();
	assert_string_equal(profile_of(one_of(VLAN)->iface.name), TBF_WORDS);
	assert_string_equal(given.of[one_of(VLAN)->id], one_of(VLAN)->iface.name);
	assert_string_equal(given.of[0], ""); // not the port
	queue(VLAN, &tbf, true);
	settle();
	assert_true(lets_out(VLAN));
	assert_string_equal(given.of[one_of(VLAN)->id], "");
	assert_string_equal(profile_of(one_of(VLAN)->iface.name), "");
	assert_null(one_of(VLAN)->queues);
}

static void another_rate_is_given_and_linux_has_the_packets_meanwhile(void **state)
{
	struct event_queue faster = tbf;

	queue(VLAN, &tbf, false);
	settle();
	faster.rate = 2000000;
	faster.overhead = 4;
	faster.mpu = 64;
	queue(VLAN, &faster, false);
	fake_flush(&fake);
	assert_false(lets_out(VLAN));
	settle();
	assert_true(lets_out(VLAN));
	assert_string_equal(profile_of(one_of(VLAN)->iface.name),
		"shape 16000000bit/s burst 98486B queue fifo limit_bytes 150000B class_dscp 0:3 "
		"counts ip overhead 18 mpu 64");
	// Deleted and made again, as sessions do that are given another rate.
	queue(VLAN, &faster, true);
	queue(VLAN, &tbf, false);
	settle();
	assert_true(lets_out(VLAN));
	assert_string_equal(profile_of(one_of(VLAN)->iface.name), TBF_WORDS);
}

static void htb_with_one_class_is_followed(void **state)
{
	queue(VLAN, &htb, false);
	settle();
	assert_false(lets_out(VLAN));
	expect_named("qdisc htb 1:", one_of(VLAN)->iface.name, "no class that is its default");
	queue(VLAN, &class, false);
	settle();
	assert_true(lets_out(VLAN));
	assert_string_equal(profile_of(one_of(VLAN)->iface.name),
		"shape 8000000bit/s burst 100000B queue fifo limit_bytes 4294967295B "
		"limit_packets 1000 class_dscp 0:3 counts ip overhead 14");
	queue(VLAN, &fq_codel, false);
	settle();
	assert_true(lets_out(VLAN));
	assert_string_equal(profile_of(one_of(VLAN)->iface.name),
		"shape 8000000bit/s burst 100000B queue fq_codel target 5000us interval 100000us "
		"limit 10s limit_bytes 32000000B limit_packets 10240 ecn yes class_dscp 0:3 "
		"counts ip overhead 14");
	queue(VLAN, &fq_codel, true); // Linux has a plain queue again
	settle();
	assert_non_null(strstr(profile_of(one_of(VLAN)->iface.name), "limit_packets 1000 "));
	queue(VLAN, &class, true);
	settle();
	assert_false(lets_out(VLAN));
}

// What is not understood is named, Linux has the packets, and workers have no queue for it.
static void what_is_not_followed_is_left_to_linux(void **state)
{
	static const struct {
		struct event_queue what[4];
		const char *reason;
	} rows[] = {
		{{{.what = QUEUE_OTHER,
			 .handle = ROOT,
			 .parent = TC_H_ROOT,
			 .kind = "htb",
			 .reason = "workers do not follow this kind"}},
			"do not follow this kind"},
		{{htb, class, {.what = QUEUE_CLASS, .handle = CLASS + 1, .rate = 1, .kind = "htb"}},
			"more than one class"},
		{{htb, class, {.what = QUEUE_FILTER, .parent = ROOT}}, "filters choose"},
		{{htb, class,
			 {.what = QUEUE_OTHER,
				 .handle = LEAF,
				 .parent = CLASS,
				 .kind = "sfq",
				 .reason = "workers do not follow this kind"}},
			"the kind of the qdisc below"},
		{{htb, class,
			 {.what = QUEUE_FIFO,
				 .handle = LEAF,
				 .parent = 5 << 16 | 1,
				 .limit_packets = 5}},
			"more than one class"},
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		queue(VLAN, &tbf, false); // workers have this first
		settle();
		assert_true(lets_out(VLAN));
		queue(VLAN, &tbf, true);
		for (unsigned k = 0; k < 4 && rows[i].what[k].what; k++)
			queue(VLAN, &rows[i].what[k], false);
		settle();
		assert_false(lets_out(VLAN));
		expect_named("qdisc htb 1:", one_of(VLAN)->iface.name, rows[i].reason);
		assert_string_equal(profile_of(one_of(VLAN)->iface.name), "");
		assert_string_equal(given.of[one_of(VLAN)->id], "");
		for (unsigned k = 4; k--;)
			if (rows[i].what[k].what && rows[i].what[k].what != QUEUE_FILTER)
				queue(VLAN, &rows[i].what[k], true);
		settle();
		assert_true(lets_out(VLAN));
		expect_nothing_named();
	}
}

static void a_tbf_whose_queue_was_removed_is_left_to_linux(void **state)
{
	struct event_queue leaf = fq_codel;

	leaf.parent = CLASS;
	queue(VLAN, &tbf, false);
	queue(VLAN, &leaf, false);
	settle();
	assert_true(lets_out(VLAN));
	queue(VLAN, &leaf, true);
	settle();
	assert_false(lets_out(VLAN));
	expect_named("qdisc tbf 1:", one_of(VLAN)->iface.name, "Linux drops all");
}

// Frames of VLANs pass the qdisc of their port.
static void vlans_pass_the_queue_of_their_port(void **state)
{
	struct event_link other = fake_vlan(OTHER, LEFT, 200);

	queue(LEFT, &tbf, false);
	fake_flush(&fake);
	assert_false(lets_out(LEFT) || lets_out(VLAN));
	settle();
	assert_true(lets_out(LEFT) && lets_out(VLAN) && lets_out(RIGHT));
	assert_string_equal(given.of[0], one_of(LEFT)->iface.name);
	assert_string_equal(given.of[one_of(VLAN)->id], one_of(LEFT)->iface.name);
	fake_router(&fake, &other); // one that comes later
	fake_flush(&fake);
	assert_false(lets_out(OTHER));
	settle();
	assert_true(lets_out(OTHER));
	assert_string_equal(given.of[one_of(OTHER)->id], one_of(LEFT)->iface.name);
	queue(VLAN, &tbf, false); // frames would wait twice
	settle();
	assert_false(lets_out(VLAN));
	expect_named("qdisc tbf 1:", one_of(VLAN)->iface.name, "the interface below it has one");
	queue(LEFT, &tbf, true);
	settle();
	assert_true(lets_out(VLAN) && lets_out(OTHER) && lets_out(LEFT));
	assert_string_equal(given.of[one_of(VLAN)->id], one_of(VLAN)->iface.name);
	assert_string_equal(given.of[one_of(OTHER)->id], "");
	assert_string_equal(profile_of(one_of(LEFT)->iface.name), "");
}

static void without_queues_the_remedy_is_named(void **state)
{
	fake.mirror->settings.shape = NULL;
	queue(VLAN, &tbf, false);
	settle();
	assert_false(lets_out(VLAN));
	expect_named("qdisc tbf 1:", one_of(VLAN)->iface.name, "add qos.held_packets");
}

static void what_is_refused_is_named_until_it_changes(void **state)
{
	struct event_queue faster = tbf;

	given.error = -EINVAL;
	queue(VLAN, &tbf, false);
	settle();
	assert_false(lets_out(VLAN));
	expect_named("qdisc tbf 1:", one_of(VLAN)->iface.name, "no such luck");
	const unsigned n = given.n_calls;

	settle();
	assert_int_equal(given.n_calls, n); // not again and again
	given.error = 0;
	faster.rate *= 2;
	queue(VLAN, &faster, false);
	settle();
	assert_true(lets_out(VLAN));
}

static void a_load_that_runs_is_waited_for(void **state)
{
	given.error = -EBUSY;
	queue(VLAN, &tbf, false);
	settle();
	assert_false(lets_out(VLAN));
	given.error = 0;
	settle();
	assert_true(lets_out(VLAN));
}

static void interfaces_that_go_or_get_another_name_take_their_queues_along(void **state)
{
	struct event_link vlan = fake_vlan(VLAN, LEFT, 100);
	char before[EVENT_NAME_MAX];

	queue(VLAN, &tbf, false);
	settle();
	memcpy(before, one_of(VLAN)->iface.name, sizeof(before));
	snprintf(vlan.name, sizeof(vlan.name), "carol");
	fake_iface(&fake, &vlan);
	settle();
	assert_true(lets_out(VLAN));
	assert_string_equal(profile_of(before), "");
	assert_string_equal(profile_of("carol"), TBF_WORDS);
	assert_string_equal(given.of[one_of(VLAN)->id], "carol");
	fake_iface_gone(&fake, VLAN);
	settle();
	assert_string_equal(profile_of("carol"), "");
	fake_router(&fake, &vlan); // the same name and number, without a qdisc
	settle();
	assert_true(lets_out(VLAN));
	assert_string_equal(profile_of("carol"), "");
}

static void interfaces_that_swap_names_keep_their_queues(void **state)
{
	struct event_link one = fake_vlan(VLAN, LEFT, 100), other = fake_vlan(VLAN + 1, LEFT, 101);
	struct event_queue faster = tbf;
	char fast[QUEUES_PROFILE];

	snprintf(one.name, sizeof(one.name), "east");
	snprintf(other.name, sizeof(other.name), "west");
	fake_iface(&fake, &one);
	fake_router(&fake, &other);
	faster.rate *= 2;
	queue(VLAN, &tbf, false);
	queue(VLAN + 1, &faster, false);
	settle();
	snprintf(fast, sizeof(fast), "%s", profile_of("west"));
	assert_string_equal(profile_of("east"), TBF_WORDS);
	snprintf(one.name, sizeof(one.name), "west");
	snprintf(other.name, sizeof(other.name), "east");
	fake_iface(&fake, &one);
	fake_iface(&fake, &other);
	settle();
	assert_string_equal(profile_of("west"), TBF_WORDS);
	assert_string_equal(profile_of("east"), fast);
	assert_string_equal(given.of[one_of(VLAN)->id], "west");
	assert_string_equal(given.of[one_of(VLAN + 1)->id], "east");
	assert_true(lets_out(VLAN) && lets_out(VLAN + 1));
}

// A filter that is deleted may have been the last one.
static void a_deleted_filter_is_asked_for(void **state)
{
	const struct event_queue filter = {.what = QUEUE_FILTER, .parent = ROOT};

	listed = &class;
	n_listed = 1;
	queue(VLAN, &htb, false);
	queue(VLAN, &class, false);
	queue(VLAN, &filter, false);
	settle();
	assert_false(lets_out(VLAN));
	queue(VLAN, &filter, true);
	settle();
	assert_true(lets_out(VLAN));
	expect_nothing_named();
}

static void classes_are_asked_for_after_a_dump(void **state)
{
	static const struct event_queue both[] = {class,
		{.what = QUEUE_CLASS, .handle = CLASS + 1, .rate = 1, .kind = "htb"}};

	listed = both;
	n_listed = 1;
	mirror_dump_begins(fake.mirror);
	fake.in_dump = true;
	queue(VLAN, &htb, false);
	fake.in_dump = false;
	mirror_dump_ends(fake.mirror, ~(1u << EVENT_QDISC));
	fake_flush(&fake);
	assert_false(lets_out(VLAN));
	settle();
	assert_true(lets_out(VLAN));
	n_listed = 2; // a change of which no message came
	mirror_dump_begins(fake.mirror);
	fake.in_dump = true;
	queue(VLAN, &htb, false);
	fake.in_dump = false;
	mirror_dump_ends(fake.mirror, ~(1u << EVENT_QDISC));
	settle();
	assert_false(lets_out(VLAN));
	n_listed = 1;
	queue(VLAN, &both[1], true); // which ones are left?
	settle();
	assert_true(lets_out(VLAN));
	mirror_dump_begins(fake.mirror); // a dump without it
	mirror_dump_ends(fake.mirror, ~(1u << EVENT_QDISC));
	settle();
	assert_true(lets_out(VLAN));
	assert_string_equal(profile_of(one_of(VLAN)->iface.name), "");
}

// Any order of events: in the end an interface is let out exactly if workers have what they should,
// or if Linux has no qdisc.
static void random_events_end_in_what_linux_has(void **state)
{
	srand(4);
	for (unsigned round = 0; round < 300; round++) {
		const int of = rand() % 2 ? VLAN : LEFT;
		const struct event_queue *root = rand() % 2 ? &tbf : &htb;
		struct interface *one = one_of(of);

		switch (rand() % 6) {
		case 0:
		case 1:
			if (!one->queues || !one->queues->root.what)
				queue(of, root, false);
			break;
		case 2:
			queue(of, &class, false);
			break;
		case 3:
			queue(of, &class, true);
			break;
		case 4:
			if (one->queues && one->queues->root.what)
				queue(of, &one->queues->root, true);
			break;
		default:
			given.error = rand() % 3 ? 0 : -EBUSY;
		}
		if (rand() % 2)
			fake_flush(&fake);
		if (rand() % 4)
			continue;
		given.error = 0;
		settle();
		for (int i = 0; i < 2; i++) {
			const struct interface *at = one_of(i ? VLAN : LEFT);
			const bool has_own = at->queues && at->queues->root.what;
			const char *of_it = given.of[at->id];

			assert_true(!has_own || !lets_out(at->ifindex) ||
				    !strcmp(of_it, at->iface.name));
			assert_true(!of_it[0] || profile_of(of_it)[0]); // no queue that is gone
			assert_true(has_own || (i && one_of(LEFT)->queues) || !of_it[0]);
		}
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tbf_of_a_vlan_becomes_a_queue_of_workers),
		TEST(another_rate_is_given_and_linux_has_the_packets_meanwhile),
		TEST(htb_with_one_class_is_followed),
		TEST(what_is_not_followed_is_left_to_linux),
		TEST(a_tbf_whose_queue_was_removed_is_left_to_linux),
		TEST(vlans_pass_the_queue_of_their_port),
		TEST(without_queues_the_remedy_is_named),
		TEST(what_is_refused_is_named_until_it_changes),
		TEST(a_load_that_runs_is_waited_for),
		TEST(interfaces_that_go_or_get_another_name_take_their_queues_along),
		TEST(interfaces_that_swap_names_keep_their_queues),
		TEST(a_deleted_filter_is_asked_for),
		TEST(classes_are_asked_for_after_a_dump),
		TEST(random_events_end_in_what_linux_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
