// tc filters of Linux on packets of the whole pipeline: workers judge what they forward, and leave
// to Linux what Linux gets.
#include "datapath/lists.h"

#include "wire/build.h"

#include <stdio.h>

enum { HANDED = 1 << 8, DSCP_AT = 15 };

static int open_tables(void **state)
{
	return lists_open(state, 0);
}

static void reset(const struct datapath_variant *variant)
{
	fake_reset(variant);
	fake.worker.acls = acl_live(lists);
	fake.worker.filters = acl_live(filters);
}

static void clear(struct acl_table *table)
{
	assert_int_equal(acl_apply(table, &(struct acl_set){.n_lists = 0}, NULL), 0);
}

#define USE(table, iface, direction, ...)                                                          \
	lists_use(table, iface, direction, false, (const char *[LISTS_MAX_RULES]){__VA_ARGS__})

static void run_one(const struct bytes *frame, unsigned verdict)
{
	fake_receive(0, frame);
	fake_run();
	if (verdict & HANDED)
		assert_int_equal(fake.stat.handed[verdict & ~HANDED], 1);
	else
		assert_int_equal(fake.stat.verdict[verdict], 1);
}

static uint64_t n_counted(unsigned rule)
{
	return acl_rule_count(filters, "list", rule).packets;
}

// Frames are UDP from 192.0.2.1 or 2001:db8::1.
static void packets_that_workers_forward_obey_the_filters_of_their_interface(void **state)
{
	static const struct row {
		const char *rule, *dst;
		uint16_t use, from;
		uint8_t direction;
		unsigned verdict;
	} rows[] = {
		{"deny udp", "10.1.2.3", PLAIN_IN, PLAIN_IN, ACL_IN, VERDICT_TC_DROPPED},
		{"deny udp", "2001:db8:1::3", PLAIN_IN, PLAIN_IN, ACL_IN, VERDICT_TC_DROPPED},
		{"deny tcp", "10.1.2.3", PLAIN_IN, PLAIN_IN, ACL_IN, VERDICT_FORWARD},
		{"permit udp", "10.1.2.3", PLAIN_IN, PLAIN_IN, ACL_IN, VERDICT_FORWARD},
		{"deny udp", "10.1.2.3", TAGGED_IN, TAGGED_IN, ACL_IN, VERDICT_TC_DROPPED},
		{"deny udp", "10.1.2.3", PLAIN_IN, TAGGED_IN, ACL_IN, VERDICT_FORWARD},
		{"deny udp", "10.1.2.3", RED_IN, RED_IN, ACL_IN, VERDICT_TC_DROPPED},
		{"deny udp", "10.1.2.3", PLAIN_OUT, PLAIN_IN, ACL_OUT, VERDICT_TC_DROPPED},
		{"deny udp", "10.20.2.3", TAGGED_OUT, PLAIN_IN, ACL_OUT, VERDICT_TC_DROPPED},
		{"deny tcp", "2001:db8:1::3", PLAIN_OUT, QINQ_IN, ACL_OUT, VERDICT_FORWARD},
		{"deny udp", "10.1.2.3", PLAIN_OUT, PLAIN_IN, ACL_IN, VERDICT_FORWARD},
	};

	clear(lists);
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			const struct bytes frame = frame_on(rows[i].from, rows[i].dst);

			reset(fake_variants[v]);
			USE(filters, rows[i].use, rows[i].direction, rows[i].rule);
			run_one(&frame, rows[i].verdict);
		}
}

// Its own filters judge them when they arrive there.
static void what_linux_gets_is_left_to_linux(void **state)
{
	static const struct row {
		const char *dst;
		unsigned verdict;
	} rows[] = {
		{"172.20.0.1", HANDED | VERDICT_LOCAL},
		{"172.21.0.1", HANDED | VERDICT_NEIGHBOUR_UNRESOLVED},
		{"224.0.0.5", HANDED | VERDICT_MULTICAST},
	};

	clear(lists);
	for (unsigned out = 0; out < 2; out++) // enum acl_direction
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			const struct bytes frame = frame_on(PLAIN_IN, rows[i].dst);

			reset(fake_variants[1]);
			USE(filters, out ? PLAIN_OUT : PLAIN_IN, out, "deny name what-linux-gets");
			const uint64_t before = n_counted(1);

			run_one(&frame, rows[i].verdict);
			assert_int_equal(n_counted(1), before);
		}
}

// While filters change, interfaces leave their frames to Linux: the old ones say nothing then.
static void an_interface_of_linux_is_not_judged(void **state)
{
	const struct bytes frame = frame_on(PLAIN_IN, "10.1.2.3");
	const struct iface before = *fib_iface(fake.fib, PLAIN_IN);
	struct iface settings = before;

	clear(lists);
	reset(fake_variants[1]);
	USE(filters, PLAIN_IN, ACL_IN, "deny");
	settings.flags = IFACE_LINUX;
	fake_set(PLAIN_IN, &settings);
	run_one(&frame, HANDED | VERDICT_LINUX);
	fake_set(PLAIN_IN, &before);
}

static void both_the_lists_and_the_filters_must_permit(void **state)
{
	const struct bytes frame = frame_on(PLAIN_IN, "10.1.2.3");

	for (unsigned out = 0; out < 2; out++) { // enum acl_direction
		const uint16_t iface = out ? PLAIN_OUT : PLAIN_IN;

		reset(fake_variants[1]);
		USE(lists, iface, out, "permit udp");
		USE(filters, iface, out, "deny udp");
		run_one(&frame, VERDICT_TC_DROPPED);
		reset(fake_variants[1]);
		USE(lists, iface, out, "deny udp");
		USE(filters, iface, out, "permit udp");
		run_one(&frame, VERDICT_ACL_DENIED);
		reset(fake_variants[1]);
		USE(lists, iface, out, "permit udp");
		run_one(&frame, VERDICT_FORWARD);
		clear(lists);
		clear(filters);
	}
}

static void expect_left(const struct bytes *frame, uint8_t dscp)
{
	struct bytes left = frame_forwarded(frame, PLAIN_OUT);

	fake_receive(0, frame);
	fake_run();
	left.at[DSCP_AT] = dscp << 2 | (frame->at[DSCP_AT] & 3);
	frame_mend(&left);
	assert_int_equal(fake.device[1].n_sent, 1);
	expect_bytes(fake.device[1].sent[0], &left);
}

static void the_last_mark_counts_and_filters_see_those_before(void **state)
{
	const struct bytes frame = frame_on(PLAIN_IN, "10.1.2.3");

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		clear(lists);
		reset(fake_variants[v]);
		USE(filters, PLAIN_IN, ACL_IN, "permit udp mark 46");
		expect_left(&frame, 46);
		reset(fake_variants[v]);
		USE(lists, PLAIN_IN, ACL_IN, "permit udp mark 12");
		expect_left(&frame, 46);
		reset(fake_variants[v]);
		USE(filters, PLAIN_OUT, ACL_OUT, "permit dscp 12 mark 10", "deny");
		expect_left(&frame, 10);
	}
	clear(lists);
}

// What no rule can read is not guessed: Linux has the filters, too.
static void what_cannot_be_parsed_is_left_to_linux(void **state)
{
	for (unsigned out = 0; out < 2; out++) { // enum acl_direction
		struct bytes frame = frame_on(PLAIN_IN, "10.1.2.3");

		clear(lists);
		reset(fake_variants[1]);
		USE(filters, out ? PLAIN_OUT : PLAIN_IN, out, "deny tcp");
		frame.at[20] = 0x20; // a first fragment of 3 bytes of UDP
		frame.at[17] = 23;
		frame_mend(&frame);
		run_one(&frame, HANDED | VERDICT_LINUX);
		frame = frame_on(PLAIN_IN, "2001:db8:1::3");
		memmove(frame.at + 62, frame.at + 54, frame.n - 54);
		memcpy(frame.at + 54, (uint8_t[]){17, 0, 1, 4, 0, 0, 0, 0}, 8);
		frame.at[20] = 60; // destination options, behind which tc does not look
		frame.at[19] += 8;
		frame.n += 8;
		reset(fake_variants[1]);
		run_one(&frame, HANDED | VERDICT_LINUX);
	}
}

// An IPv4 packet that may be fragmented.
static struct bytes long_frame(uint16_t length)
{
	struct wire_recipe recipe = wire_recipe(4);
	struct bytes frame = {.n = WIRE_ETHER_BYTES + length};

	memcpy(recipe.dst_mac.bytes, fake.states[0].mac, sizeof(recipe.dst_mac.bytes));
	assert_int_equal(wire_addr_parse("10.1.2.3", &recipe.dst), 0);
	recipe.frame_bytes = frame.n;
	assert_int_equal(wire_build(&recipe, frame.at, sizeof(frame.at)), 0);
	frame.at[20] = 0;
	frame_mend(&frame);
	return frame;
}

// Linux's filters see fragments, of which later ones have no ports.
static void what_is_fragmented_is_left_to_the_filters_of_linux(void **state)
{
	const struct bytes fits = long_frame(576), is_long = long_frame(577);
	struct iface settings = *fib_iface(fake.fib, PLAIN_OUT);

	clear(lists);
	settings.mtu = 576;
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		reset(fake_variants[v]);
		fake_set(PLAIN_OUT, &settings);
		USE(filters, PLAIN_OUT, ACL_OUT, "permit udp");
		run_one(&is_long, HANDED | VERDICT_LINUX);
		assert_int_equal(fake.device[1].n_sent, 0);
		run_one(&fits, VERDICT_FORWARD);
		reset(fake_variants[v]);
		fake_set(PLAIN_OUT, &settings);
		USE(filters, PLAIN_IN, ACL_IN, "permit udp");
		fake_receive(0, &is_long);
		fake_run();
		assert_int_equal(fake.device[1].n_sent, 2);
	}
}

static void each_packet_is_counted_once(void **state)
{
	const struct bytes frame = frame_on(PLAIN_IN, "10.1.2.3");

	clear(lists);
	reset(fake_variants[1]);
	USE(filters, PLAIN_IN, ACL_IN, "deny tcp name none", "permit udp name all");
	const uint64_t before = n_counted(2);

	for (unsigned i = 0; i < 10; i++)
		fake_receive(0, &frame);
	fake_run();
	assert_int_equal(fake.stat.verdict[VERDICT_FORWARD], 10);
	assert_int_equal(n_counted(2) - before, 10);
}

static struct fib_hop hop_with_label(uint32_t label)
{
	struct fib_hop hop = {.kind = FIB_VIA, .iface = PLAIN_OUT, .n_labels = 1, .label = {label}};

	assert_int_equal(wire_addr_parse("10.1.0.2", &hop.via), 0);
	return hop;
}

// They match labels, or do not match IP that is behind them.
static void what_leaves_with_labels_is_left_to_the_filters_of_linux(void **state)
{
	static const uint8_t head[] = {0x88, 0x47, 0, 100 >> 4, (100 & 15) << 4 | 1, 64};
	const struct fib_label label = {.label = 100,
		.op = FIB_LABEL_FORWARD,
		.hop = hop_with_label(200)};
	const struct bytes routed = frame_on(PLAIN_IN, "10.66.2.3");
	struct bytes labelled = frame_on(PLAIN_IN, "10.66.2.3");

	memmove(labelled.at + 18, labelled.at + 14, labelled.n - 14);
	memcpy(labelled.at + 12, head, sizeof(head));
	labelled.n += 4;
	clear(lists);
	clear(filters);
	for (unsigned filtered = 0; filtered < 2; filtered++) {
		const unsigned verdict = filtered ? HANDED | VERDICT_LINUX : VERDICT_FORWARD;

		for (unsigned i = 0; i < 2; i++) {
			reset(fake_variants[1]);
			struct iface settings = *fib_iface(fake.fib, PLAIN_IN);
			settings.flags |= IFACE_MPLS;
			fake_set(PLAIN_IN, &settings);
			assert_int_equal(fib_label_set(fake.fib, &label, NULL), 0);
			fake_route(0, "10.66.0.0/16", &label.hop);
			if (filtered)
				USE(filters, PLAIN_OUT, ACL_OUT, "permit udp");
			run_one(i ? &labelled : &routed, verdict);
		}
	}
	assert_int_equal(fib_label_delete(fake.fib, label.label), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_that_workers_forward_obey_the_filters_of_their_interface),
		cmocka_unit_test(what_linux_gets_is_left_to_linux),
		cmocka_unit_test(an_interface_of_linux_is_not_judged),
		cmocka_unit_test(both_the_lists_and_the_filters_must_permit),
		cmocka_unit_test(the_last_mark_counts_and_filters_see_those_before),
		cmocka_unit_test(what_cannot_be_parsed_is_left_to_linux),
		cmocka_unit_test(what_is_fragmented_is_left_to_the_filters_of_linux),
		cmocka_unit_test(what_leaves_with_labels_is_left_to_the_filters_of_linux),
		cmocka_unit_test(each_packet_is_counted_once),
	};

	return cmocka_run_group_tests(tests, open_tables, lists_close);
}
