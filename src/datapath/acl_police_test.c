// Rules with a rate on packets of the whole pipeline: which packets pass, what is counted for them,
// and who shares a bucket. Time stands still: tokens are those of the burst.
#include "datapath/lists.h"

#include <stdio.h>

enum {
	MAX_RULES = 3,
	N_IFACES = 64,
	N_FRAMES = 200,
	BURST_BYTES = 3000,
	ETHER_BYTES = 14,
	UDP_BYTES = 28
};
// So many ticks are a second that no rate has any tokens for the time of this test.
#define STANDSTILL (1ull << 62)
#define RATE "police.rate 10Mbit/s police.burst 3kB "

static int open_tables(void **state)
{
	return lists_open(state, STANDSTILL);
}

// Without lists, and with full buckets.
static void reset(const struct datapath_variant *variant)
{
	assert_int_equal(acl_apply(lists, &(struct acl_set){.n_lists = 0}, NULL), 0);
	assert_int_equal(acl_apply(filters, &(struct acl_set){.n_lists = 0}, NULL), 0);
	fake_reset(variant);
	fake.worker.acls = acl_live(lists);
	fake.worker.filters = acl_live(filters);
}

#define USE(table, iface, direction, ...)                                                          \
	lists_use(table, iface, direction, false, (const char *[LISTS_MAX_RULES]){__VA_ARGS__})

static unsigned n_sent(void)
{
	unsigned n = 0;

	for (unsigned port = 0; port < FAKE_PORTS; port++)
		n += fake.device[port].n_sent;
	return n;
}

static void run_frames(const struct bytes *frame, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fake_receive(0, frame);
	fake_run();
}

// So many of N_FRAMES have passed, and the counters of the rule say so.
static void expect_passed(const struct acl_table *table, size_t rule, unsigned passed,
	unsigned bytes)
{
	const struct acl_count all = acl_rule_count(table, "list", rule);
	const struct acl_count red = acl_rule_red(table, "list", rule);

	assert_int_equal(fake.stat.verdict[VERDICT_POLICE_RED], N_FRAMES - passed);
	assert_int_equal(all.packets, N_FRAMES);
	assert_int_equal(all.bytes, N_FRAMES * bytes);
	assert_int_equal(red.packets, N_FRAMES - passed);
	assert_int_equal(red.bytes, (N_FRAMES - passed) * bytes);
}

// Tags are not counted, on neither side.
static void what_is_above_the_rate_is_dropped_and_counted(void **state)
{
	static const struct row {
		const char *dst;
		uint16_t from, use;
		uint8_t direction;
	} rows[] = {
		{"10.1.2.3", PLAIN_IN, PLAIN_IN, ACL_IN},
		{"2001:db8:1::3", PLAIN_IN, PLAIN_IN, ACL_IN},
		{"10.1.2.3", QINQ_IN, QINQ_IN, ACL_IN},
		{"10.1.2.3", PLAIN_IN, PLAIN_OUT, ACL_OUT},
		{"10.20.2.3", TAGGED_IN, TAGGED_OUT, ACL_OUT},
	};

	(void)state;
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			const struct bytes frame = frame_on(rows[i].from, rows[i].dst);
			const struct bytes plain = frame_on(PLAIN_IN, rows[i].dst);

			reset(fake_variants[v]);
			USE(lists, rows[i].use, rows[i].direction, "deny tcp", "permit udp " RATE);
			run_frames(&frame, N_FRAMES);
			expect_passed(lists, 2, BURST_BYTES / plain.n, plain.n);
			assert_int_equal(n_sent(), BURST_BYTES / plain.n);
			assert_int_equal(acl_rule_red(lists, "list", 1).packets, 0);
		}
}

static void expect_filter_counts(const struct bytes *frame, enum acl_direction direction,
	unsigned bytes)
{
	USE(filters, direction == ACL_IN ? PLAIN_IN : PLAIN_OUT, direction, "permit " RATE);
	run_frames(frame, N_FRAMES);
	expect_passed(filters, 1, BURST_BYTES / bytes, frame->n);
}

// tc's police counts what Linux has there: packets that come in have no Ethernet header, and those
// that go out no padding.
static void filters_count_the_bytes_that_linux_counts(void **state)
{
	struct bytes padded = frame_on(PLAIN_IN, "10.1.2.3");
	const struct bytes frame[] = {padded, frame_on(PLAIN_IN, "2001:db8:1::3")};

	(void)state;
	padded.at[ETHER_BYTES + 3] = UDP_BYTES;
	frame_mend(&padded);
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(frame); i++) {
			reset(fake_variants[v]);
			expect_filter_counts(&frame[i], ACL_IN, frame[i].n - ETHER_BYTES);
			reset(fake_variants[v]);
			expect_filter_counts(&frame[i], ACL_OUT, frame[i].n);
			reset(fake_variants[v]);
			expect_filter_counts(&padded, ACL_IN, padded.n - ETHER_BYTES);
			reset(fake_variants[v]);
			expect_filter_counts(&padded, ACL_OUT, ETHER_BYTES + UDP_BYTES);
		}
}

static void the_overhead_the_longest_packet_and_packets_are_counted(void **state)
{
	const struct bytes frame = frame_on(PLAIN_IN, "10.1.2.3");
	char rule[ACL_RULE_TEXT];

	(void)state;
	reset(fake_variants[1]);
	USE(lists, PLAIN_IN, ACL_IN, "permit " RATE "police.overhead 24");
	run_frames(&frame, N_FRAMES);
	expect_passed(lists, 1, BURST_BYTES / (frame.n + 24), frame.n);
	reset(fake_variants[1]);
	USE(lists, PLAIN_IN, ACL_IN, "permit police.rate 1packets/s police.burst 17packets");
	run_frames(&frame, N_FRAMES);
	expect_passed(lists, 1, 17, frame.n);
	for (unsigned is_long = 0; is_long < 2; is_long++) {
		reset(fake_variants[1]);
		snprintf(rule, sizeof(rule), "permit " RATE "police.mtu %u", frame.n - is_long);
		USE(lists, PLAIN_IN, ACL_IN, rule);
		run_frames(&frame, N_FRAMES);
		expect_passed(lists, 1, is_long ? 0 : BURST_BYTES / frame.n, frame.n);
	}
}

// Bursts with packets of two rules, in turns.
static void rules_share_a_bucket_if_they_name_it(void **state)
{
	const struct bytes one = frame_on(PLAIN_IN, "10.1.2.3"),
			   other = frame_on(PLAIN_IN, "10.1.2.4");
	const unsigned each = BURST_BYTES / one.n;

	(void)state;
	for (unsigned shares = 0; shares < 2; shares++)
		for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
			reset(fake_variants[v]);
			USE(lists, PLAIN_IN, ACL_IN,
				shares ? "permit to 10.1.2.3 " RATE "police.bucket both"
				       : "permit to 10.1.2.3 " RATE,
				shares ? "permit to 10.1.2.4 " RATE "police.bucket both"
				       : "permit to 10.1.2.4 " RATE);
			for (unsigned i = 0; i < N_FRAMES; i++)
				fake_receive(0, i & 1 ? &one : &other);
			fake_run();
			assert_int_equal(n_sent(), shares ? each : 2 * each);
			assert_int_equal(acl_rule_count(lists, "list", 1).packets, N_FRAMES / 2);
			assert_int_equal(acl_rule_red(lists, "list", 1).packets +
						 acl_rule_red(lists, "list", 2).packets,
				fake.stat.verdict[VERDICT_POLICE_RED]);
		}
}

static void a_red_packet_has_no_copy(void **state)
{
	const struct bytes frame = frame_on(PLAIN_IN, "10.1.2.3");

	(void)state;
	reset(fake_variants[1]);
	USE(lists, PLAIN_IN, ACL_IN,
		"permit police.rate 1packets/s police.burst 3packets mirror 3");
	run_frames(&frame, 10);
	assert_int_equal(fake.device[1].n_sent, 3);
	assert_int_equal(fake.stat.verdict[VERDICT_POLICE_RED], 7);
	assert_true(fake.device[3].n_sent <= 3);
}

// What Linux gets: for itself, or to forward it.
static void packets_for_linux_are_policed_by_the_rules_about_them(void **state)
{
	static const struct row {
		const char *rule, *dst;
		uint16_t use;
		uint8_t direction, verdict;
	} rows[] = {
		{"permit local police.rate 1packets/s police.burst 3packets", "172.20.0.1",
			PLAIN_IN, ACL_IN, VERDICT_LOCAL},
		{"permit local police.rate 1packets/s police.burst 3packets", "224.0.0.5", PLAIN_IN,
			ACL_IN, VERDICT_MULTICAST},
		{"permit police.rate 1packets/s police.burst 3packets", "172.21.0.1", PLAIN_OUT,
			ACL_OUT, VERDICT_NEIGHBOUR_UNRESOLVED},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct bytes frame = frame_on(PLAIN_IN, rows[i].dst);

		reset(fake_variants[1]);
		USE(lists, rows[i].use, rows[i].direction, rows[i].rule);
		run_frames(&frame, 10);
		assert_int_equal(fake.stat.handed[rows[i].verdict], 3);
		assert_int_equal(fake.stat.verdict[VERDICT_POLICE_RED], 7);
		assert_int_equal(acl_rule_red(lists, "list", 1).packets, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_above_the_rate_is_dropped_and_counted),
		cmocka_unit_test(filters_count_the_bytes_that_linux_counts),
		cmocka_unit_test(the_overhead_the_longest_packet_and_packets_are_counted),
		cmocka_unit_test(rules_share_a_bucket_if_they_name_it),
		cmocka_unit_test(a_red_packet_has_no_copy),
		cmocka_unit_test(packets_for_linux_are_policed_by_the_rules_about_them),
	};

	return cmocka_run_group_tests(tests, open_tables, lists_close);
}
