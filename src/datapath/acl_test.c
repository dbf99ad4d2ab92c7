// Access lists on packets of the whole pipeline: which of them a list stops, by input and output
// interface, and that none gets around it by being punted.
#include "datapath/lists.h"

#include "wire/headers.h"

#include <stdio.h>

enum { TTL_AT = 22, HANDED = 1 << 8, FLAGS_AT = 20, OUT = 1, REST = 2 };

static int open_lists(void **state)
{
	return lists_open(state, 0);
}

static void use_rules(unsigned iface, enum acl_direction direction, bool denies_rest,
	const char *const text[])
{
	lists_use(lists, iface, direction, denies_rest, text);
}

static void reset(const struct datapath_variant *variant)
{
	fake_reset(variant);
	fake.worker.acls = acl_live(lists);
}

// How many packets got a verdict; HANDED: with it, Linux got them.
static uint64_t n_with(unsigned verdict)
{
	return verdict & HANDED ? fake.stat.handed[verdict & ~HANDED] : fake.stat.verdict[verdict];
}

static uint64_t n_counted(unsigned rule)
{
	return acl_rule_count(lists, "list", rule).packets;
}

static void run_one(const struct bytes *frame, unsigned verdict)
{
	fake_receive(0, frame);
	fake_run();
	if (n_with(verdict) != 1)
		for (unsigned v = 0; v < N_VERDICTS; v++)
			if (fake.stat.verdict[v] || fake.stat.handed[v])
				print_message("verdict %u: %lu, handed %lu; expected %u\n", v,
					fake.stat.verdict[v], fake.stat.handed[v], verdict);
	assert_int_equal(n_with(verdict), 1);
}

// Frames are UDP from 192.0.2.1 or 2001:db8::1.
static const struct row {
	const char *rules[LISTS_MAX_RULES];
	const char *dst;
	uint16_t use, from; // interfaces
	unsigned verdict;
	unsigned how;
} rows[] = {
	{{"deny udp"}, "10.1.2.3", PLAIN_IN, PLAIN_IN, VERDICT_ACL_DENIED, 0},
	{{"deny udp"}, "2001:db8:1::3", PLAIN_IN, PLAIN_IN, VERDICT_ACL_DENIED, 0},
	{{"deny tcp"}, "10.1.2.3", PLAIN_IN, PLAIN_IN, VERDICT_FORWARD, 0},
	{{"deny tcp"}, "10.1.2.3", PLAIN_IN, PLAIN_IN, VERDICT_ACL_DENIED, REST},
	{{"permit to 10.1.0.0/16", "deny"}, "10.1.2.3", PLAIN_IN, PLAIN_IN, VERDICT_FORWARD, 0},
	{{"permit to 10.1.0.0/16", "deny"}, "10.20.2.3", PLAIN_IN, PLAIN_IN, VERDICT_ACL_DENIED, 0},
	{{"reject udp"}, "10.1.2.3", PLAIN_IN, PLAIN_IN, HANDED | VERDICT_ACL_REJECTED, 0},
	{{"punt udp"}, "2001:db8:1::3", PLAIN_IN, PLAIN_IN, HANDED | VERDICT_ACL_PUNTED, 0},
	// By interface: a VLAN is not its port.
	{{"deny udp"}, "10.1.2.3", TAGGED_IN, PLAIN_IN, VERDICT_FORWARD, 0},
	{{"deny udp"}, "10.1.2.3", TAGGED_IN, TAGGED_IN, VERDICT_ACL_DENIED, 0},
	{{"deny udp"}, "2001:db8:1::3", QINQ_IN, QINQ_IN, VERDICT_ACL_DENIED, 0},
	{{"deny udp"}, "10.1.2.3", PLAIN_IN, TAGGED_IN, VERDICT_FORWARD, 0},
	// For rejects in other VRFs than the main one there is no ICMP error.
	{{"reject udp"}, "10.1.2.3", RED_IN, RED_IN, VERDICT_ACL_REJECTED, 0},
	// Packets for the router itself are judged by rules with `local` only, others never.
	{{"deny udp"}, "172.20.0.1", PLAIN_IN, PLAIN_IN, HANDED | VERDICT_LOCAL, 0},
	{{"deny tcp"}, "172.20.0.1", PLAIN_IN, PLAIN_IN, HANDED | VERDICT_LOCAL, REST},
	{{"deny udp local"}, "172.20.0.1", PLAIN_IN, PLAIN_IN, VERDICT_ACL_DENIED, 0},
	{{"deny udp local"}, "10.1.2.3", PLAIN_IN, PLAIN_IN, VERDICT_FORWARD, 0},
	{{"deny tcp local"}, "172.20.0.1", PLAIN_IN, PLAIN_IN, HANDED | VERDICT_LOCAL, REST},
	// By output interface.
	{{"deny udp"}, "10.1.2.3", PLAIN_OUT, PLAIN_IN, VERDICT_ACL_DENIED, OUT},
	{{"deny udp"}, "10.20.2.3", PLAIN_OUT, PLAIN_IN, VERDICT_FORWARD, OUT},
	{{"deny udp"}, "10.20.2.3", TAGGED_OUT, PLAIN_IN, VERDICT_ACL_DENIED, OUT},
	{{"deny udp"}, "2001:db8:1::3", PLAIN_OUT, QINQ_IN, VERDICT_ACL_DENIED, OUT},
	{{"reject"}, "10.1.2.3", PLAIN_OUT, PLAIN_IN, HANDED | VERDICT_ACL_REJECTED, OUT},
	{{"punt"}, "10.1.2.3", PLAIN_OUT, PLAIN_IN, HANDED | VERDICT_ACL_PUNTED, OUT},
	{{"deny"}, "172.20.0.1", PLAIN_OUT, PLAIN_IN, HANDED | VERDICT_LOCAL, OUT},
	// Linux would forward these.
	{{"deny tcp"}, "172.21.0.1", PLAIN_OUT, PLAIN_IN, HANDED | VERDICT_NEIGHBOUR_UNRESOLVED,
		OUT},
	{{"deny udp"}, "172.21.0.1", PLAIN_OUT, PLAIN_IN, VERDICT_ACL_DENIED, OUT},
	{{"punt udp"}, "172.21.0.1", PLAIN_OUT, PLAIN_IN, HANDED | VERDICT_NEIGHBOUR_UNRESOLVED,
		OUT},
};

static void each_packet_obeys_the_list_of_its_interface(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			const struct row *row = &rows[i];
			struct bytes frame = frame_on(row->from, row->dst);

			reset(fake_variants[v]);
			use_rules(row->use, row->how & OUT ? ACL_OUT : ACL_IN, row->how & REST,
				row->rules);
			run_one(&frame, row->verdict);
		}
}

static void without_lists_nothing_is_judged(void **state)
{
	struct bytes frame = frame_on(PLAIN_IN, "10.1.2.3");

	reset(fake_variants[1]);
	assert_int_equal(acl_apply(lists, &(struct acl_set){.n_lists = 0}, NULL), 0);
	run_one(&frame, VERDICT_FORWARD);
}

static void add_options(struct bytes *frame)
{
	memmove(frame->at + 38, frame->at + 34, frame->n - 34);
	memset(frame->at + 34, 1, 4);
	frame->at[14] = 0x46;
	frame->at[17] += 4;
	frame->n += 4;
}

// Both a neighbour's resolution and IP options would make Linux forward what a list denies.
static void options_are_judged_before_linux_gets_them(void **state)
{
	struct bytes frame = frame_on(PLAIN_IN, "10.1.2.3");
	struct bytes six = frame_on(PLAIN_IN, "2001:db8:1::3");

	add_options(&frame);
	frame_mend(&frame);
	memmove(six.at + 62, six.at + 54, six.n - 54);
	memcpy(six.at + 54, (uint8_t[]){WIRE_PROTO_UDP, 0, 1, 4, 0, 0, 0, 0}, 8);
	six.at[20] = WIRE_PROTO_HOP_BY_HOP;
	six.at[19] += 8;
	six.n += 8;
	for (unsigned out = 0; out < 2; out++) { // enum acl_direction
		const unsigned iface = out ? PLAIN_OUT : PLAIN_IN;

		reset(fake_variants[1]);
		use_rules(iface, out, false, (const char *[]){"deny udp", NULL});
		run_one(&frame, VERDICT_ACL_DENIED);
		reset(fake_variants[1]);
		run_one(&six, VERDICT_ACL_DENIED);
		reset(fake_variants[1]);
		use_rules(iface, out, false, (const char *[]){"deny tcp", NULL});
		run_one(&frame, HANDED | VERDICT_IP4_OPTIONS);
		reset(fake_variants[1]);
		run_one(&six, HANDED | VERDICT_IP6_HOP_BY_HOP);
	}
}

// Frames that parse hands to Linux, which takes them for itself, without a lookup.
enum taken { GROUP_MAC, GROUP_MAC_OPTIONS, FROM_LINK_LOCAL, FROM_NOBODY, N_TAKEN };

static struct bytes taken_frame(enum taken how, uint16_t iface)
{
	static const uint8_t link_local[16] = {0xfe, 0x80, [15] = 1};
	struct bytes frame =
		frame_to(0, how == FROM_LINK_LOCAL ? "2001:db8:1::3" : "255.255.255.255");

	if (how == GROUP_MAC || how == GROUP_MAC_OPTIONS)
		memset(frame.at, 0xff, 6);
	if (how == GROUP_MAC_OPTIONS)
		add_options(&frame);
	if (how == FROM_LINK_LOCAL)
		memcpy(frame.at + 22, link_local, sizeof(link_local));
	if (how == FROM_NOBODY)
		memset(frame.at + 26, 0, 4);
	frame_mend(&frame);
	frame_tag_for(&frame, iface);
	return frame;
}

static void what_linux_takes_for_itself_obeys_rules_with_local(void **state)
{
	static const unsigned verdicts[N_TAKEN] = {VERDICT_MAC_GROUP, VERDICT_MAC_GROUP,
		VERDICT_LINK_LOCAL_SOURCE, VERDICT_LOCAL};
	static const uint16_t ifaces[] = {PLAIN_IN, TAGGED_IN};

	for (unsigned how = 0; how < N_TAKEN; how++)
		for (unsigned k = 0; k < ARRAY_LEN(ifaces); k++) {
			const struct bytes frame = taken_frame(how, ifaces[k]);
			const struct case_of_rule {
				const char *rule;
				unsigned verdict;
			} cases[] = {
				{"deny udp local", VERDICT_ACL_DENIED},
				{"reject udp local", HANDED | VERDICT_ACL_REJECTED},
				{"punt udp local", HANDED | verdicts[how]},
				{"deny tcp local", HANDED | verdicts[how]},
				{"deny udp", HANDED | verdicts[how]},
			};

			for (unsigned c = 0; c < ARRAY_LEN(cases); c++) {
				reset(fake_variants[1]);
				use_rules(ifaces[k], ACL_IN, true,
					(const char *[]){cases[c].rule, NULL});
				run_one(&frame, cases[c].verdict);
			}
			use_rules(ifaces[!k], ACL_IN, false, (const char *[]){"deny local", NULL});
			reset(fake_variants[1]);
			run_one(&frame, HANDED | verdicts[how]);
		}
}

// Behind the group address, no header is there to be read.
static void no_rule_judges_broken_packets_to_a_group(void **state)
{
	static const struct {
		unsigned at;
		uint8_t value;
	} faults[] = {{14, 0x55}, {14, 0x41}, {16, 0xff}, {24, 0x55}};

	for (unsigned i = 0; i < ARRAY_LEN(faults); i++) {
		struct bytes frame = taken_frame(GROUP_MAC, PLAIN_IN);

		frame.at[faults[i].at] = faults[i].value;
		reset(fake_variants[1]);
		use_rules(PLAIN_IN, ACL_IN, false, (const char *[]){"deny local", NULL});
		run_one(&frame, HANDED | VERDICT_MAC_GROUP);
	}
	struct bytes frame = taken_frame(GROUP_MAC, PLAIN_IN);

	frame.n = 30; // the header is cut
	reset(fake_variants[1]);
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(n_with(VERDICT_ACL_DENIED), 0);
}

// A packet that the list of its output interface punts was judged by it once.
static void what_the_output_list_punts_is_counted_once(void **state)
{
	const struct bytes frame = frame_on(PLAIN_IN, "10.1.2.3");

	reset(fake_variants[1]);
	use_rules(PLAIN_OUT, ACL_OUT, false,
		(const char *[]){"punt udp name punted-by-the-output-list", NULL});
	const uint64_t before = n_counted(1);

	run_one(&frame, HANDED | VERDICT_ACL_PUNTED);
	assert_int_equal(n_counted(1) - before, 1);
}

// A packet that acl_in punts, or that Linux forwards for its interface, meets the list of its
// output interface as well.
static void linux_does_not_forward_around_the_output_list(void **state)
{
	struct acl_rule punt, deny;
	struct acl_source sources[] = {{"in", &punt, 1, false}, {"out", &deny, 1, false}};
	struct acl_use uses[] = {{"0", "in", ACL_IN}, {"1", "out", ACL_OUT}};
	struct bytes frame = frame_on(PLAIN_IN, "10.1.2.3");
	struct iface settings = *fib_iface(fake.fib, PLAIN_IN);

	assert_int_equal(acl_rule_parse(&punt, "punt", NULL), 0);
	assert_int_equal(acl_rule_parse(&deny, "deny", NULL), 0);
	reset(fake_variants[1]);
	assert_int_equal(acl_apply(lists, &(struct acl_set){sources, uses, 2, 2}, NULL), 0);
	run_one(&frame, VERDICT_ACL_DENIED);
	reset(fake_variants[1]);
	assert_int_equal(acl_apply(lists, &(struct acl_set){&sources[1], &uses[1], 1, 1}, NULL), 0);
	settings.flags = IFACE_LINUX4;
	fake_set(PLAIN_IN, &settings);
	run_one(&frame, VERDICT_ACL_DENIED);
}

static void what_cannot_be_parsed_is_dropped(void **state)
{
	struct bytes frame = frame_on(PLAIN_IN, "10.1.2.3");

	reset(fake_variants[1]);
	use_rules(PLAIN_IN, ACL_IN, false, (const char *[]){"deny tcp", NULL});
	frame.at[FLAGS_AT] = 0x20; // a first fragment of 3 bytes of UDP
	frame.at[17] = 23;
	frame_mend(&frame);
	run_one(&frame, VERDICT_ACL_UNPARSABLE);
}

static void without_taps_rejected_packets_are_dropped(void **state)
{
	struct bytes frame = frame_on(PLAIN_IN, "10.1.2.3");

	reset(fake_variants[1]);
	fake.worker.tap = NULL;
	use_rules(PLAIN_IN, ACL_IN, false, (const char *[]){"reject udp", NULL});
	run_one(&frame, VERDICT_ACL_REJECTED);
}

static void marks_are_written_and_mirrors_sent(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		struct bytes frame = frame_on(PLAIN_IN, "10.1.2.3"), left;

		reset(fake_variants[v]);
		use_rules(PLAIN_IN, ACL_IN, false,
			(const char *[]){"permit udp mark 46 mirror 3", NULL});
		fake_receive(0, &frame);
		fake_run();
		left = frame_forwarded(&frame, PLAIN_OUT);
		left.at[15] = 46 << 2 | (frame.at[15] & 3);
		frame_mend(&left);
		assert_int_equal(fake.device[1].n_sent, 1);
		expect_bytes(fake.device[1].sent[0], &left);
		assert_int_equal(fake.device[3].n_sent, 1);
		expect_bytes(fake.device[3].sent[0], &frame);
	}
}

static void packets_of_one_burst_are_judged_each_by_its_list(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		reset(fake_variants[v]);
		use_rules(TAGGED_IN, ACL_IN, false,
			(const char *[]){"deny udp to 10.1.2.0/28 name some", "permit", NULL});
		const uint64_t before = n_counted(1), rest = n_counted(2);

		for (unsigned i = 0; i < BURST_MAX; i++) {
			char dst[16];

			snprintf(dst, sizeof(dst), "10.1.2.%u", i);
			const struct bytes frame = frame_on(i % 2 ? TAGGED_IN : PLAIN_IN, dst);

			fake_receive(0, &frame);
		}
		fake_run();
		assert_int_equal(n_with(VERDICT_ACL_DENIED), 8);
		assert_int_equal(fake.device[1].n_sent, BURST_MAX - 8);
		assert_int_equal(n_counted(1) - before, 8);
		assert_int_equal(n_counted(2) - rest, 24);
	}
}

// Linux may bridge frames to other MAC addresses that it gets from its interfaces.
static void linuxs_frames_to_other_addresses_obey_the_list(void **state)
{
	struct bytes frame = frame_on(PLAIN_IN, "10.1.2.3");
	const struct iface before = *fib_iface(fake.fib, PLAIN_IN);
	struct iface settings = before;

	memcpy(frame.at, (uint8_t[]){2, 0xaa, 0xbb, 0xcc, 0xdd, 1}, 6);
	settings.flags = IFACE_LINUX;
	for (unsigned denied = 0; denied < 2; denied++) {
		reset(fake_variants[1]);
		use_rules(PLAIN_IN, ACL_IN, false,
			(const char *[]){denied ? "deny udp" : "deny tcp", NULL});
		fake_set(PLAIN_IN, &settings);
		run_one(&frame, denied ? VERDICT_ACL_DENIED : HANDED | VERDICT_LINUX);
	}
	fake_set(PLAIN_IN, &before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_packet_obeys_the_list_of_its_interface),
		cmocka_unit_test(without_lists_nothing_is_judged),
		cmocka_unit_test(options_are_judged_before_linux_gets_them),
		cmocka_unit_test(what_linux_takes_for_itself_obeys_rules_with_local),
		cmocka_unit_test(no_rule_judges_broken_packets_to_a_group),
		cmocka_unit_test(what_the_output_list_punts_is_counted_once),
		cmocka_unit_test(linux_does_not_forward_around_the_output_list),
		cmocka_unit_test(linuxs_frames_to_other_addresses_obey_the_list),
		cmocka_unit_test(what_cannot_be_parsed_is_dropped),
		cmocka_unit_test(without_taps_rejected_packets_are_dropped),
		cmocka_unit_test(marks_are_written_and_mirrors_sent),
		cmocka_unit_test(packets_of_one_burst_are_judged_each_by_its_list),
	};

	return cmocka_run_group_tests(tests, open_lists, lists_close);
}
