// Subscribers as the control thread changes them, and as a worker finds and polices them, without
// threads: mistakes, overlaps, batches, random changes beside a plain model. Tests only.
#include "qos/qos.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { HZ = 64000000, N_IFACES = 8, N_NAMES = 12, STEPS = 4000 };

static struct qos *qos;
static struct error why;
static const char *iface_names[N_IFACES] = {"east", "west", "east.100", "east.200"};

static const char *iface_name(void *ctx, unsigned iface)
{
	(void)ctx;
	return iface_names[iface];
}

static int open_one(void **state)
{
	const struct qos_settings settings = {.n_workers = 2,
		.hz = HZ,
		.n_ifaces = N_IFACES,
		.iface_name = iface_name};

	(void)state;
	return qos_open(&qos, &settings, &why);
}

static int close_one(void **state)
{
	(void)state;
	qos_close(qos);
	return 0;
}

// Each line is a change; all of them are one batch.
static int change(const char *text, uint64_t now)
{
	char copy[8192], *rest, *line;
	int err = 0;

	strcpy(copy, text);
	qos_begin(qos);
	for (line = strtok_r(copy, "\n", &rest); line && !err; line = strtok_r(NULL, "\n", &rest))
		err = qos_stage(qos, line, false, &why);
	if (!err)
		err = qos_prepare(qos, &why);
	if (err)
		qos_abort(qos);
	else
		qos_commit(qos, now);
	return err;
}

#define CHANGE(changes)                                                                            \
	do {                                                                                       \
		if (change(changes, 0))                                                            \
			fail_msg("%s", why.text);                                                  \
	} while (0)
#define REFUSED(changes, sentence)                                                                 \
	do {                                                                                       \
		assert_int_not_equal(change(changes, 0), 0);                                       \
		assert_string_equal(why.text, sentence);                                           \
	} while (0)

// The name of the subscriber that a worker finds; NULL: none.
static const char *found(const char *addr)
{
	static struct qos_info info;
	struct wire_addr parsed;
	uint32_t which = QOS_NONE;
	uint64_t key = 0;

	assert_int_equal(wire_addr_parse(addr, &parsed), 0);
	for (unsigned i = 0; i < (parsed.family == 4 ? 4 : 8); i++)
		key |= (uint64_t)parsed.bytes[i] << (56 - 8 * i);
	if (!qos_find(&qos_live(qos)->view, parsed.family == 4 ? QOS_IP4 : QOS_IP6, &key, 1,
		    &which))
		return NULL;
	which++;
	assert_true(qos_next(qos, &which, &info));
	return info.name;
}

static void expect(const char *addr, const char *name)
{
	const char *is = found(addr);

	if (name)
		assert_non_null(is);
	else
		assert_null(is);
	if (name)
		assert_string_equal(is, name);
}

static struct qos_info info_of(const char *name)
{
	struct qos_info info;

	assert_true(qos_find_name(qos, name, &info));
	return info;
}

// Packets of one subscriber; returns how many are dropped.
static unsigned police(const char *name, unsigned n, unsigned ip_bytes, uint64_t now,
	struct qos_verdicts *out)
{
	const struct qos_basis basis = {qos_live(qos), 1, QOS_DOWN, false, now};
	struct qos_packets packets = {.mask = n < 64 ? (1ull << n) - 1 : UINT64_MAX};

	for (unsigned i = 0; i < n; i++) {
		packets.subscriber[i] = info_of(name).number - 1;
		packets.ip_bytes[i] = ip_bytes;
		packets.frames[i] = 1;
		packets.dscp[i] = i % 2 ? 10 : 0;
	}
	qos_police(&basis, &packets, out);
	return __builtin_popcountll(out->dropped);
}

static void all_addresses_lead_to_the_subscriber(void **state)
{
	(void)state;
	CHANGE("profile p rate 1Mbit/s\n"
	       "add a up p address 10.0.0.1 address 10.1.0.0/24 address 2001:db8::/64 address "
	       "2001:db8:1::/56\n"
	       "add b down p address 10.0.0.2");
	expect("10.0.0.1", "a");
	expect("10.0.0.2", "b");
	expect("10.0.0.3", NULL);
	expect("10.1.0.255", "a");
	expect("10.1.1.0", NULL);
	expect("2001:db8::77", "a");
	expect("2001:db8:0:1::77", NULL);
	expect("2001:db8:1:ff::1", "a");
	expect("2001:db8:1:100::1", NULL);
	CHANGE("set a without 10.1.0.0/24 address 10.9.0.0/24\nset b address 10.1.0.7");
	expect("10.1.0.1", NULL);
	expect("10.1.0.7", "b");
	expect("10.9.0.9", "a");
	CHANGE("remove a");
	expect("10.0.0.1", NULL);
	expect("10.0.0.2", "b");
}

static void mistakes_are_named_and_change_nothing(void **state)
{
	(void)state;
	CHANGE("profile p rate 1Mbit/s\nadd a up p address 10.0.0.1 address 10.2.0.0/16 address "
	       "2001:db8::/48 interface east.100");
	REFUSED("add a", "subscriber 'a': exists already; use \"set\" to change it");
	REFUSED("set a without 10.0.0.1\nadd b up q",
		"subscriber 'b': up: there is no profile \"q\"; add it first");
	expect("10.0.0.1", "a");
	REFUSED("add b address 10.0.0.1",
		"subscriber 'b': address 10.0.0.1/32 overlaps with one of subscriber 'a'; a packet "
		"can have one subscriber only");
	REFUSED("add b address 10.2.3.4",
		"subscriber 'b': address 10.2.3.4/32 overlaps with one of subscriber 'a'; a packet "
		"can have one subscriber only");
	REFUSED("add b address 10.0.0.0/24",
		"subscriber 'b': address 10.0.0.0/24 overlaps with one of subscriber 'a'; a packet "
		"can have one subscriber only");
	REFUSED("add b address 2001:db8:0:5::/64",
		"subscriber 'b': address 2001:db8:0:5::/64 overlaps with one of subscriber 'a'; a "
		"packet can have one subscriber only");
	REFUSED("add b address 10.0.0.1/24",
		"subscriber 'b': address 10.0.0.1/24: has bits set behind the prefix; expected 0 "
		"there");
	REFUSED("add b address 2001:db8::1", "subscriber 'b': address 2001:db8::1: IPv6 prefixes "
					     "have at most 64 bits here; give "
					     "the /64");
	REFUSED("add b address ::ffff:0:0/32",
		"subscriber 'b': address ::ffff:0:0/32: has bits set behind the prefix; expected 0 "
		"there");
	REFUSED("add b address 0.0.0.0/0",
		"subscriber 'b': address 0.0.0.0/0: is everybody's; expected a longer prefix");
	REFUSED("add b address 224.0.0.1",
		"subscriber 'b': address 224.0.0.1: no address of a host; expected a unicast "
		"prefix");
	REFUSED("add b interface east.100",
		"subscriber 'b': interface east.100 is that of subscriber 'a'; it can have one "
		"subscriber only");
	REFUSED("add b number 1", "subscriber 'b': number 1 is that of subscriber 'a'; expected "
				  "another one, or none");
	REFUSED("add b number 1048577",
		"subscriber 'b': number is \"1048577\"; expected 1 to 1048576");
	REFUSED("add b address", "subscriber 'b': \"address\" has no value; expected one after it");
	REFUSED("add b port east", "subscriber 'b': unknown key \"port\"; expected up, down, "
				   "parent, up_parent, address, interface or "
				   "number");
	REFUSED("remove b", "there is no subscriber 'b'");
	REFUSED("no-profile p",
		"profile 'p': subscribers have it (1 times); give them another one first");
	REFUSED("grant x", "\"grant\": expected profile, no-profile, add, put, set or remove");
	REFUSED("add b address 10.5.0.0/20 address 10.6.0.0/18 address 10.7.128.0/17",
		"subscriber 'b': /17 is a fifth prefix length of IPv4; expected /20, /18, /16 or "
		"/32, or first a batch that removes the last prefix of one of them");
	struct qos_usage usage;

	qos_usage(qos, &usage);
	assert_int_equal(usage.n_subscribers, 1);
	assert_int_equal(usage.n_addresses, 3);
	expect("10.5.0.1", NULL);
}

static void mistakes_in_profiles_are_named(void **state)
{
	(void)state;
	REFUSED("profile p", "profile 'p': no rate; add \"rate 100Mbit/s\"");
	REFUSED("profile p rate 7999bit/s",
		"profile 'p': rate is \"7999bit/s\"; expected 8 kbit/s to 400 Gbit/s, such as "
		"100Mbit/s");
	REFUSED("profile p rate 401Gbit/s",
		"profile 'p': rate is \"401Gbit/s\"; expected 8 kbit/s to 400 Gbit/s, such as "
		"100Mbit/s");
	REFUSED("profile p rate nan",
		"profile 'p': rate is \"nan\"; expected 8 kbit/s to 400 Gbit/s, such as 100Mbit/s");
	REFUSED("profile p rate 20Mbit/s peak_rate 10Mbit/s",
		"profile 'p': rate is above peak_rate; expected at most that");
	REFUSED("profile p rate 1Mbit/s burst 1517B",
		"profile 'p': burst is \"1517B\"; expected 1518B (one MTU) to 4294967295B, or a "
		"time such as 20ms");
	REFUSED("profile p rate 1Mbit/s burst 1ms",
		"profile 'p': burst is \"1ms\"; expected 1518B (one MTU) to 4294967295B, or a time "
		"such as 20ms");
	REFUSED("profile p rate 1Mbit/s counts wire burst 1537B",
		"profile 'p': burst is \"1537B\"; expected 1538B (one MTU) to 4294967295B, or a "
		"time such as 20ms");
	REFUSED("profile p rate 1Mbit/s excess_burst 1kB",
		"profile 'p': excess_burst is \"1kB\"; expected 1518B (one MTU) to 4294967295B, or "
		"a time such as 20ms");
	REFUSED("profile p rate 1Mbit/s yellow dscp:64",
		"profile 'p': yellow is \"dscp:64\"; expected pass, drop, dscp:0 to dscp:63, "
		"priority:0 to priority:7");
	REFUSED("profile p rate 1Mbit/s red_dscp 64",
		"profile 'p': red_dscp is \"64\"; expected DSCPs from 0 to 63, such as 10,12");
	REFUSED("profile p rate 1Mbit/s yellow_dscp 10",
		"profile 'p': yellow_dscp needs a second bucket: add peak_rate, excess_rate or "
		"excess_burst");
	REFUSED("profile p rate 1Mbit/s overhead 65",
		"profile 'p': overhead is \"65\"; expected bytes from -32 to 64");
	REFUSED("profile none rate 1Mbit/s",
		"profile 'none': means no profile; expected another name");
}

static void a_batch_is_applied_whole_or_not_at_all(void **state)
{
	(void)state;
	CHANGE("profile p rate 1Mbit/s\nprofile q rate 2Mbit/s\nadd a up p address 10.0.0.1\nadd b "
	       "address 10.0.0.2 number 7");
	REFUSED("set a without 10.0.0.1 address 10.0.1.0/24 up q\nremove b\nprofile q rate "
		"3Mbit/s\nadd c address 10.0.0.2\nno-profile p\nadd c",
		"subscriber 'c': exists already; use \"set\" to change it");
	expect("10.0.0.1", "a");
	expect("10.0.0.2", "b");
	expect("10.0.1.1", NULL);
	assert_string_equal(info_of("a").profile[QOS_UP], "p");
	assert_int_equal(info_of("b").number, 7);
	// The addresses of two change hands.
	CHANGE("set a without 10.0.0.1\nset b without 10.0.0.2 address 10.0.0.1\nset a address "
	       "10.0.0.2");
	expect("10.0.0.1", "b");
	expect("10.0.0.2", "a");
	// One that goes and comes keeps its number; one that comes and goes leaves nothing.
	CHANGE("remove b\nadd c address 10.0.0.9\nadd b address 10.0.0.3\nremove c");
	assert_int_equal(info_of("b").number, 7);
	expect("10.0.0.9", NULL);
	REFUSED("remove b\nadd d number 7",
		"subscriber 'd': number 7 is that of one whom these changes remove; expected "
		"another one, or none");
	CHANGE("remove b");
	CHANGE("add d number 7");
}

static void a_file_replaces_those_of_the_file_before(void **state)
{
	struct qos_usage usage;

	(void)state;
	CHANGE("profile p rate 1Mbit/s\nadd rpc address 10.9.0.1 up p");
	for (unsigned i = 0; i < 2; i++) {
		char text[] = "a address 10.0.0.1 up q # kept\n\n# none\nb address 10.0.0.2\n";
		char other[] = "b address 10.0.0.1\nc address 10.0.0.2\n";

		qos_begin(qos);
		assert_int_equal(qos_stage_file_begin(qos, &why), 0);
		if (i == 0)
			assert_int_equal(qos_stage(qos, "profile q rate 1Mbit/s", true, &why), 0);
		assert_int_equal(qos_stage_lines(qos, "f", i ? other : text,
					 i ? sizeof(other) - 1 : sizeof(text) - 1, true, &why),
			0);
		assert_int_equal(qos_stage_file_end(qos, &why), 0);
		assert_int_equal(qos_prepare(qos, &why), 0);
		qos_commit(qos, 0);
	}
	expect("10.0.0.1", "b");
	expect("10.0.0.2", "c");
	expect("10.9.0.1", "rpc");
	qos_usage(qos, &usage);
	assert_int_equal(usage.n_subscribers, 3);
	assert_int_equal(usage.n_profiles, 1);
	char wrong[] = "d address 10.3.0.1\n\ne address 10.3.0.1\n";

	qos_begin(qos);
	assert_int_not_equal(qos_stage_lines(qos, "f", wrong, sizeof(wrong) - 1, true, &why), 0);
	qos_abort(qos);
	assert_string_equal(why.text,
		"f:3: subscriber 'e': address 10.3.0.1/32 overlaps with one of subscriber 'd'; a "
		"packet can have one subscriber only");
	expect("10.3.0.1", NULL);
}

static void interfaces_have_subscribers_when_they_have_names(void **state)
{
	(void)state;
	CHANGE("add a interface east.100\nadd b interface east.300");
	const struct qos_view *view = &qos_live(qos)->view;

	assert_int_equal(qos_of_iface(view, 2), info_of("a").number - 1);
	assert_int_equal(qos_of_iface(view, 3), QOS_NONE);
	qos_bind(qos, 4, "east.300");
	assert_int_equal(qos_of_iface(view, 4), info_of("b").number - 1);
	qos_bind(qos, 4, NULL);
	assert_int_equal(qos_of_iface(view, 4), QOS_NONE);
	CHANGE("remove a");
	assert_int_equal(qos_of_iface(view, 2), QOS_NONE);
}

static void what_counts_as_a_byte(void **state)
{
	static const struct {
		const char *keys;
		unsigned ip_bytes, cost;
	} rows[] = {
		{"counts ip", 100, 100},
		{"counts ip overhead -32", 20, 1},
		{"counts ethernet", 1500, 1518},
		{"counts ethernet", 40, 64}, // padded
		{"counts wire", 1500, 1538},
		{"counts wire", 40, 84},
		{"counts wire overhead -4", 1500, 1534},
		{"overhead 8", 1500, 1526},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct qos_verdicts verdicts;
		char text[128];

		snprintf(text, sizeof(text), "profile p rate 1Mbit/s %s\nput a down p",
			rows[i].keys);
		CHANGE(text);
		const uint64_t before = info_of("a").count[QOS_DOWN].bytes[POLICE_GREEN];

		police("a", 1, rows[i].ip_bytes, 0, &verdicts);
		assert_int_equal(info_of("a").count[QOS_DOWN].bytes[POLICE_GREEN] - before,
			rows[i].cost);
	}
}

static void each_colour_has_its_action(void **state)
{
	struct qos_verdicts out;

	(void)state;
	// Two packets in each bucket.
	CHANGE("profile p rate 8kbit/s burst 2000B excess_burst 2000B counts ip green priority:5 "
	       "yellow dscp:12,priority:1 red drop\nadd a down p");
	assert_int_equal(police("a", 6, 1000, 0, &out), 2);
	assert_int_equal(out.dropped, 0x30);
	assert_int_equal(out.has_dscp, 0x0c);
	assert_int_equal(out.has_priority, 0x0f);
	assert_int_equal(out.priority[0], 5);
	assert_int_equal(out.priority[3], 1);
	assert_int_equal(out.dscp[2], 12);
	CHANGE("profile p rate 8kbit/s burst 2000B excess_burst 2000B counts ip yellow_dscp 10 "
	       "red_dscp 0 red dscp:1\nput b down p");
	assert_int_equal(police("b", 6, 1000, 0, &out), 0);
	assert_int_equal(out.has_dscp, 0x35); // 0, 2, 4 were red; 1 and 3 are yellow, 5 is red
	const struct qos_count count = info_of("b").count[QOS_DOWN];

	assert_int_equal(count.packets[POLICE_GREEN], 0);
	assert_int_equal(count.packets[POLICE_YELLOW], 2);
	assert_int_equal(count.packets[POLICE_RED], 4);
	assert_int_equal(count.bytes[POLICE_RED], 4000);
	assert_int_equal(info_of("b").count[QOS_UP].packets[POLICE_RED], 0);
}

static void changes_of_the_rate_give_no_bytes(void **state)
{
	struct qos_verdicts out;

	(void)state;
	CHANGE("profile slow rate 8kbit/s burst 3000B counts ip\nprofile fast rate 80kbit/s burst "
	       "3000B counts ip\nprofile two rate 8kbit/s burst 3000B excess_burst 3000B counts "
	       "ip\nadd a down slow");
	assert_int_equal(police("a", 4, 1000, 0, &out), 1);
	for (unsigned i = 0; i < 100; i++) {
		CHANGE(i % 3 == 0    ? "set a down fast"
			: i % 3 == 1 ? "set a down two"
				     : "set a down slow");
		assert_int_equal(police("a", 1, 100, 0, &out), 1);
	}
	for (unsigned i = 0; i < 10; i++) { // a change of the profile itself, and off and on
		CHANGE(i & 1 ? "profile slow rate 8kbit/s burst 3000B counts ip"
			     : "profile slow rate 16kbit/s burst 3000B counts ip");
		CHANGE("remove a\nadd a down slow");
		assert_int_equal(police("a", 1, 100, 0, &out), 1);
	}
	assert_int_equal(change("set a down fast", 0), 0);
	assert_int_equal(police("a", 3, 1000, HZ / 10 + 1, &out), 2); // 10 kB/s, in force at once
}

// Packets of several subscribers in turns are judged as if each were alone.
static void a_burst_of_many_is_judged_one_by_one(void **state)
{
	const struct qos_basis basis = {qos_live(qos), 0, QOS_UP, false, 0};
	struct qos_packets packets = {.mask = UINT64_MAX};
	struct qos_verdicts out;
	uint32_t numbers[3] = {1, 129, 257}; // in one chain
	char text[200];

	(void)state;
	CHANGE("profile p rate 8kbit/s burst 10000B counts ip");
	for (unsigned i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "add s%u up p number %u", i, numbers[i]);
		CHANGE(text);
	}
	for (unsigned i = 0; i < 64; i++) {
		packets.subscriber[i] = numbers[i % 3] - 1;
		packets.ip_bytes[i] = 1000;
		packets.frames[i] = 1;
	}
	qos_police(&basis, &packets, &out);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(out.dropped >> i & 1, i / 3 >= 10);
}

// What each address should lead to: prefixes of random subscribers, which may be refused.
struct model {
	uint32_t first[N_NAMES][4], last[N_NAMES][4]; // ranges of the last 16 bits
	unsigned n[N_NAMES];
	bool exists[N_NAMES];
};

static bool model_overlaps(const struct model *model, unsigned but, uint32_t first, uint32_t last)
{
	for (unsigned i = 0; i < N_NAMES; i++)
		for (unsigned k = 0; model->exists[i] && i != but && k < model->n[i]; k++)
			if (first <= model->last[i][k] && model->first[i][k] <= last)
				return true;
	return false;
}

static void expect_model(const struct model *model)
{
	for (uint32_t addr = 0; addr < 65536; addr += 1 + rand() % 997) {
		const char *is;
		char text[32], name[8] = "";

		for (unsigned i = 0; i < N_NAMES; i++)
			for (unsigned k = 0; model->exists[i] && k < model->n[i]; k++)
				if (addr >= model->first[i][k] && addr <= model->last[i][k])
					snprintf(name, sizeof(name), "s%u", i);
		snprintf(text, sizeof(text), "10.0.%u.%u", addr >> 8, addr & 255);
		is = found(text);
		assert_string_equal(is ? is : "", name);
	}
}

static void random_batches_agree_with_a_plain_model(void **state)
{
	static const unsigned lengths[] = {20, 24, 28, 32};
	struct model model = {.n = {0}};

	(void)state;
	srand(7);
	for (unsigned step = 0; step < STEPS; step++) {
		struct model next = model;
		bool is_sound = true;
		char batch[4096] = "";

		for (unsigned op = 0; op < 1 + (unsigned)rand() % 4; op++) {
			const unsigned who = rand() % N_NAMES;
			char line[512];

			if (rand() % 3 == 0) {
				snprintf(line, sizeof(line), "remove s%u\n", who);
				is_sound &= next.exists[who];
				next.exists[who] = false;
				strcat(batch, line);
				if (!is_sound)
					break;
				continue;
			}
			next.exists[who] = true;
			next.n[who] = rand() % 4;
			snprintf(line, sizeof(line), "put s%u", who);
			for (unsigned k = 0; k < next.n[who]; k++) {
				const unsigned length = lengths[rand() % 4];
				const uint32_t size = 1u << (32 - length);
				const uint32_t first = (uint32_t)rand() % 65536 / size * size;

				for (unsigned j = 0; j < k; j++) // not twice
					is_sound &= first != next.first[who][j] ||
					            first + size - 1 != next.last[who][j];
				next.first[who][k] = first;
				next.last[who][k] = first + size - 1;
				is_sound &= !model_overlaps(&next, who, first, first + size - 1);
				sprintf(line + strlen(line), " address 10.0.%u.%u/%u", first >> 8,
					first & 255, length);
			}
			strcat(strcat(batch, line), "\n");
			if (!is_sound)
				break;
		}
		assert_int_equal(!change(batch, 0), is_sound);
		if (is_sound)
			model = next;
		if (step % 8 == 0)
			expect_model(&model);
	}
}

static void what_is_exported_can_be_loaded(void **state)
{
	char *text, *again;
	size_t n, n_again;
	FILE *out;

	(void)state;
	CHANGE("profile p rate 1Mbit/s burst 20kB peak_rate 2Mbit/s yellow dscp:3 red_dscp 1,2\n"
	       "add a up p down p address 10.0.0.1 address 2001:db8::/56 interface east\nadd b "
	       "number 1048576");
	out = open_memstream(&text, &n);
	assert_true(qos_export(qos, out));
	fclose(out);
	CHANGE("remove a\nremove b\nno-profile p");
	char *copy = strdup(text);

	qos_begin(qos);
	if (qos_stage_lines(qos, "f", copy, n, false, &why) || qos_prepare(qos, &why))
		fail_msg("%s", why.text);
	qos_commit(qos, 0);
	out = open_memstream(&again, &n_again);
	assert_true(qos_export(qos, out));
	fclose(out);
	assert_string_equal(text, again);
	free(text);
	free(again);
	free(copy);
}

// Whoever comes and goes leaves lines behind that lead on to the next one: if all did, looking for
// a stranger would never end.
static void strangers_are_soon_unknown_after_many_changes(void **state)
{
	enum { N = 1600, CHANGES = 40000 };
	const struct qos_index *index;
	static char addr[N][16];
	char text[80];
	uint64_t n_over = 0;

	(void)state;
	srand(2410);
	for (unsigned i = 0; i < CHANGES; i++) {
		const unsigned k = (unsigned)rand() % N;

		snprintf(addr[k], sizeof(addr[k]), "10.%u.%u.7", i >> 8, i & 255);
		snprintf(text, sizeof(text), "put s%u address %s", k, addr[k]);
		CHANGE(text);
	}
	index = qos_live(qos)->view.index;
	for (uint64_t at = 0; at <= index->mask; at++)
		n_over += index->line[at].is_over;
	assert_true(n_over <= (index->mask + 1) * 3 / 4);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "11.1.%u.%u", i >> 8, i & 255);
		expect(text, NULL);
	}
	for (unsigned k = 0; k < N; k++) {
		snprintf(text, sizeof(text), "s%u", k);
		expect(addr[k], text);
	}
}

// A line of an export is one subscriber, whatever its names are.
static void what_a_file_cannot_say_is_refused(void **state)
{
	(void)state;
	REFUSED("add a#b", "subscriber 'a#b': names have printable ASCII characters, but no \", no "
			   "\\ and no #");
	REFUSED("profile p#1 rate 1Mbit/s",
		"profile 'p#1': names have printable ASCII characters, but no \", no \\ and no #");
	REFUSED("add remove", "subscriber 'remove': begins another kind of line in a file; "
			      "expected another name");
	REFUSED("put no-profile", "subscriber 'no-profile': begins another kind of line in a file; "
				  "expected another name");
	REFUSED("add a interface x#1", "subscriber 'a': interface \"x#1\": its name has a blank, a "
				       "control character or #; rename it");
	qos_begin(qos);
	assert_int_not_equal(qos_stage(qos, "add a interface x\nremove", false, &why), 0);
	qos_abort(qos);
	assert_string_equal(why.text, "subscriber 'a': interface \"x?remove\": its name has a "
				      "blank, a control character or #; rename it");
}

static void lines_end_with_lf_or_crlf(void **state)
{
	char crlf[] = "a address 10.0.0.1\r\n\r\n# none\r\nb address 10.0.0.2 # kept\r\n",
	     cr[] = "a address 10.0.0.1\rb address 10.0.0.2\r# none\rc\r";

	(void)state;
	qos_begin(qos);
	assert_int_equal(qos_stage_lines(qos, "f", crlf, sizeof(crlf) - 1, false, &why), 0);
	assert_int_equal(qos_prepare(qos, &why), 0);
	qos_commit(qos, 0);
	expect("10.0.0.1", "a");
	expect("10.0.0.2", "b");
	qos_begin(qos);
	assert_int_not_equal(qos_stage_lines(qos, "f", cr, sizeof(cr) - 1, false, &why), 0);
	qos_abort(qos);
	assert_string_equal(why.text, "f:1: a carriage return within a line; expected lines that "
				      "end with LF or CR LF");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_one, close_one)
		TEST(all_addresses_lead_to_the_subscriber),
		TEST(mistakes_are_named_and_change_nothing),
		TEST(mistakes_in_profiles_are_named),
		TEST(a_batch_is_applied_whole_or_not_at_all),
		TEST(a_file_replaces_those_of_the_file_before),
		TEST(interfaces_have_subscribers_when_they_have_names),
		TEST(what_counts_as_a_byte),
		TEST(each_colour_has_its_action),
		TEST(changes_of_the_rate_give_no_bytes),
		TEST(a_burst_of_many_is_judged_one_by_one),
		TEST(random_batches_agree_with_a_plain_model),
		TEST(what_is_exported_can_be_loaded),
		TEST(strangers_are_soon_unknown_after_many_changes),
		TEST(what_a_file_cannot_say_is_refused),
		TEST(lines_end_with_lf_or_crlf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
