// The action police of tc: a filter recorded from Debian's kernel 6.1, some bytes of which are
// others, and what is not understood of it.
#include "netlink/event.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MESSAGE_MAX = 512, MOST_CHANGES = 8 };
// Where the options of the action are in the message: struct tc_police, and behind it the times
// (TCA_POLICE_TM, 36 bytes), in place of which other attributes can be.
enum {
	INDEX = 0xbc,
	ABOVE = 0xc0,
	BURST = 0xc8,
	LONGEST = 0xcc,
	LAYER = 0xd1,
	OVERHEAD = 0xd2,
	MPU = 0xd6,
	BYTES_S = 0xd8,
	PEAK = 0xe4,
	FIRST = 0xf4,
	SECOND = FIRST + 12,
	THIRD = SECOND + 12,
	BEHIND = THIRD + 12,
};

struct change {
	uint16_t at;
	uint8_t bytes; // 0: no more
	uint64_t value;
};

// An attribute of 8 bytes in one of the three places.
#define ATTRIBUTE(place, type, value)                                                              \
	{(place), 4, 12 | (type) << 16},                                                           \
	{                                                                                          \
		(place) + 4, 8, (value)                                                            \
	}
#define NOTHING(place) ATTRIBUTE(place, TCA_POLICE_PAD, 0)

static struct event decoded(const struct change change[MOST_CHANGES])
{
	uint8_t message[MESSAGE_MAX] __attribute__((aligned(4)));
	struct event event;
	FILE *file = fopen(NETLINK_CORPUS "/filter_matchall_police", "r");

	assert_non_null(file);
	const size_t n = fread(message, 1, sizeof(message), file);

	fclose(file);
	assert_int_equal(n, BEHIND);
	for (unsigned i = 0; i < MOST_CHANGES && change[i].bytes; i++)
		memcpy(message + change[i].at, &change[i].value, change[i].bytes);
	assert_int_equal(decode_route(message, n, &event), DECODE_EVENT);
	return event;
}

static const struct row {
	const char *says;
	struct change change[MOST_CHANGES];
} rows[] = {
	{"permit police.rate 1Mbit/s police.burst 10240B police.mtu 2040 police.bucket "
	 "1",
		{{0}}},
	{"permit police.rate 1Mbit/s police.burst 10240B police.mtu 2040 "
	 "police.bucket 4294967295",
		{{INDEX, 4, UINT32_MAX}}},
	{"permit police.rate 8kbit/s police.burst 1kB police.overhead 24 police.bucket "
	 "1",
		{{BYTES_S, 4, 1000}, {BURST, 4, 15625000}, {LONGEST, 4, UINT32_MAX},
			{OVERHEAD, 2, 24}}},
	{"permit police.rate 8bit/s police.burst 1B police.mtu 2040 police.bucket 1",
		{{BYTES_S, 4, 1}, {BURST, 4, 15625000}}},
	{"permit police.rate 400Gbit/s police.burst 3200B police.mtu 2040 "
	 "police.bucket 1",
		{{BYTES_S, 4, UINT32_MAX}, {BURST, 4, 1},
			ATTRIBUTE(FIRST, TCA_POLICE_RATE64, 50000000000), NOTHING(SECOND),
			NOTHING(THIRD)}},
	{"permit police.rate 1Mbit/s police.burst 10240B police.mtu 2040 police.bucket "
	 "1",
		{ATTRIBUTE(FIRST, TCA_POLICE_RESULT, TC_ACT_OK), NOTHING(SECOND), NOTHING(THIRD)}},
	{"permit police.rate 1Mbit/s police.burst 10240B police.mtu 2040 police.bucket "
	 "1",
		{ATTRIBUTE(FIRST, TCA_POLICE_RESULT, TC_ACT_PIPE), NOTHING(SECOND),
			NOTHING(THIRD)}},
	{"permit police.rate 3packets/s police.burst 1packets police.mtu 2040 "
	 "police.bucket 1",
		{{BYTES_S, 4, 0}, ATTRIBUTE(FIRST, TCA_POLICE_PKTRATE64, 3),
			ATTRIBUTE(SECOND, TCA_POLICE_PKTBURST64, 5208333), NOTHING(THIRD)}},
	{"action police that does not drop what is above the rate (pass)", {{ABOVE, 4, TC_ACT_OK}}},
	{"action police that does not drop what is above the rate (pipe)",
		{{ABOVE, 4, TC_ACT_PIPE}}},
	{"action police that does not drop what is above the rate (continue)",
		{{ABOVE, 4, UINT32_MAX}}},
	{"action police that does not drop what is above the rate (reclassify)",
		{{ABOVE, 4, TC_ACT_RECLASSIFY}}},
	{"action police that does not drop what is above the rate (goto chain)",
		{{ABOVE, 4, TC_ACT_GOTO_CHAIN | 5}}},
	{"action police before a drop", {ATTRIBUTE(FIRST, TCA_POLICE_RESULT, TC_ACT_SHOT),
						NOTHING(SECOND), NOTHING(THIRD)}},
	{"action police continue",
		{ATTRIBUTE(FIRST, TCA_POLICE_RESULT, UINT32_MAX), NOTHING(SECOND), NOTHING(THIRD)}},
	{"action police reclassify", {ATTRIBUTE(FIRST, TCA_POLICE_RESULT, TC_ACT_RECLASSIFY),
					     NOTHING(SECOND), NOTHING(THIRD)}},
	{"action police peakrate", {{PEAK, 4, 1}}},
	{"action police peakrate",
		{ATTRIBUTE(FIRST, TCA_POLICE_PEAKRATE64, 1), NOTHING(SECOND), NOTHING(THIRD)}},
	{"action police avrate",
		{ATTRIBUTE(FIRST, TCA_POLICE_AVRATE, 1), NOTHING(SECOND), NOTHING(THIRD)}},
	{"action police linklayer other than ethernet", {{LAYER, 1, 2}}},
	{"action police mpu", {{MPU, 2, 64}}},
	{"action police without a rate, or with two", {{BYTES_S, 4, 0}}},
	{"action police without a rate, or with two",
		{ATTRIBUTE(FIRST, TCA_POLICE_PKTRATE64, 3), NOTHING(SECOND), NOTHING(THIRD)}},
	{"action police with a rate of more than 400 Gbit/s",
		{ATTRIBUTE(FIRST, TCA_POLICE_RATE64, 50000000001), NOTHING(SECOND),
			NOTHING(THIRD)}},
	{"action police with a burst of more than 4 GB",
		{{BURST, 4, UINT32_MAX}, {BYTES_S, 4, UINT32_MAX}}},
	{"action police with a burst of 0", {{BURST, 4, 0}}},
};

// As Linux reports what tc was told.
static const struct {
	const char *name, *says;
} recorded[] = {
	// rate 100gbit burst 1m drop
	{"fast", "permit family ipv4 police.rate 100Gbit/s police.burst 1036800B police.mtu 2040 "
		 "police.bucket 1"},
	// pkts_rate 1000 pkts_burst 10 drop
	{"packets", "permit family ipv4 police.rate 1000packets/s police.burst 10packets "
		    "police.bucket 2"},
	// rate 1mbit burst 10k conform-exceed drop/pipe
	{"pipe", "permit family ipv4 police.rate 1Mbit/s police.burst 10240B police.mtu 2040 "
		 "police.bucket 3"},
	// rate 1mbit burst 10k
	{"reclassify", "action police that does not drop what is above the rate (reclassify)"},
	{"peakrate", "action police peakrate"},
	// rate 1mbit burst 10k overhead 24 mtu 1514 drop
	{"overhead", "permit family ipv4 police.rate 1Mbit/s police.burst 10240B police.mtu 1514 "
		     "police.overhead 24 police.bucket 6"},
	{"atm", "action police linklayer other than ethernet"},
	// rate 1mbit burst 10k index 77 drop; index 77
	{"shared", "permit family ipv4 police.rate 1Mbit/s police.burst 10240B police.mtu 2040 "
		   "police.bucket 77"},
	{"sharing", "permit family ipv4 police.rate 1Mbit/s police.burst 10240B police.mtu 2040 "
		    "police.bucket 77"},
	// rate 3mbit burst 7777 conform-exceed drop/ok
	{"rounded", "permit family ipv4 police.rate 3Mbit/s police.burst 7777B police.mtu 2040 "
		    "police.bucket 10"},
	// u32 match u32 0 0 police rate 1mbit burst 10k drop
	{"u32", "permit family ipv4 police.rate 1Mbit/s police.burst 10240B police.mtu 2040 "
		"police.bucket 11"},
	// rate 1mbit burst 10k conform-exceed drop/pipe action drop
	{"drop", "action police before a drop"},
};

static const char *says(const struct event *event, char text[ACL_RULE_TEXT])
{
	const struct event_filter *filter = &event->filter;

	text[0] = 0;
	if (filter->what == FILTER_RULES && filter->n_rules == 1)
		acl_rule_print(&filter->rule[0], text);
	return filter->what == FILTER_UNKNOWN ? filter->reason : text;
}

static size_t load_recorded(const char *name, uint8_t message[MESSAGE_MAX])
{
	char path[256];

	snprintf(path, sizeof(path), "%s/filter_police_%s", NETLINK_CORPUS, name);
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	const size_t n = fread(message, 1, MESSAGE_MAX, file);

	fclose(file);
	return n;
}

static void reads_what_debian_reports(void **state)
{
	bool is_wrong = false;

	(void)state;
	for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++) {
		uint8_t message[MESSAGE_MAX] __attribute__((aligned(4)));
		const size_t n = load_recorded(recorded[i].name, message);
		char text[ACL_RULE_TEXT];
		struct event event;

		assert_int_equal(decode_route(message, n, &event), DECODE_EVENT);
		if (strcmp(says(&event, text), recorded[i].says)) {
			print_error("%s: %s\n", recorded[i].name, says(&event, text));
			is_wrong = true;
		}
	}
	assert_false(is_wrong);
}

// accel-ppp writes its filters for all protocols: of kind u32 with a key that fits all, at the
// qdisc ingress (up-limiter=police), or matchall at clsact (down-limiter=clsact).
static void what_accel_ppp_writes_is_understood(void **state)
{
	static const struct {
		const char *name, *says;
		uint32_t parent;
		uint8_t side;
	} filters[] = {
		{"u32",
			"permit police.rate 1Mbit/s police.burst 10240B police.mtu 2040 "
			"police.bucket 11",
			TC_H_INGRESS, EVENT_INGRESS},
		{"rounded",
			"permit police.rate 3Mbit/s police.burst 7777B police.mtu 2040 "
			"police.bucket 10",
			TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS), EVENT_INGRESS},
		{"rounded",
			"permit police.rate 3Mbit/s police.burst 7777B police.mtu 2040 "
			"police.bucket 10",
			TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS), EVENT_EGRESS},
	};

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		uint8_t message[MESSAGE_MAX] __attribute__((aligned(4)));
		const size_t n = load_recorded(filters[i].name, message);
		struct tcmsg *head = NLMSG_DATA((struct nlmsghdr *)message);
		char text[ACL_RULE_TEXT];
		struct event event;

		head->tcm_parent = filters[i].parent;
		head->tcm_info = TC_H_MAKE(100 << 16, htons(ETH_P_ALL));
		assert_int_equal(decode_route(message, n, &event), DECODE_EVENT);
		assert_string_equal(says(&event, text), filters[i].says);
		assert_int_equal(event.filter.side, filters[i].side);
	}
}

static void the_policer_of_a_rule_says_it_or_there_is_a_reason(void **state)
{
	bool is_wrong = false;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct event event = decoded(rows[i].change);
		char text[ACL_RULE_TEXT];

		if (strcmp(says(&event, text), rows[i].says)) {
			print_error("row %zu: %s\n", i, says(&event, text));
			is_wrong = true;
		}
	}
	assert_false(is_wrong);
}

// Counters of use and times change all the time.
static void what_says_the_same_is_equal(void **state)
{
	const struct change nothing[MOST_CHANGES] = {{0}};
	const struct change other[MOST_CHANGES] = {{PEAK + 4, 4, 9}, {PEAK + 8, 4, 9},
		{FIRST + 4, 8, 1}};
	const struct event a = decoded(nothing), b = decoded(other);

	(void)state;
	assert_memory_equal(&a.filter, &b.filter, sizeof(a.filter));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_debian_reports),
		cmocka_unit_test(what_accel_ppp_writes_is_understood),
		cmocka_unit_test(the_policer_of_a_rule_says_it_or_there_is_a_reason),
		cmocka_unit_test(what_says_the_same_is_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
