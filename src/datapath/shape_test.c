// Subscribers whose packets are shaped, through the whole pipeline in virtual time: rates, order,
// classes, changes, and what becomes of packets that are never sent.
#include "datapath/steps.h"
#include "datapath/vlans.h"

#include "qos/qos.h"

#include <stdio.h>

enum { N_IFACES = 64, MOST_HELD = 4096, IP_BYTES = 1000, COST = IP_BYTES + 18, NUMBER_AT = 42 };
enum { STEP_NS = 10000, TOS_AT = 15, SOURCE_AT = 26, FLAGS_AT = 20, FRAME_BYTES = IP_BYTES + 14 };
#define HZ 1000000000ull // a tick is a nanosecond
#define MS 1000000ull
#define NO_CODEL " target 10s interval 10s limit 10s"

static struct qos *qos;
static struct shape_worker shape;
static uint64_t clock_ns;
static unsigned n_received;

static const char *iface_name(void *ctx, unsigned iface)
{
	static char name[4];

	(void)ctx;
	snprintf(name, sizeof(name), "%u", iface);
	return name;
}

static int stage(const char *text, struct error *error)
{
	qos_begin(qos);
	int err = qos_stage(qos, text, false, error);

	err = err ? err : qos_prepare(qos, error);
	if (err)
		qos_abort(qos);
	else
		qos_commit(qos, clock_ns);
	return err;
}

static void poll(void)
{
	while (datapath_shape_poll(&fake.worker) || qos_shaper_has_news(shape.own))
		;
}

static void change(const char *text)
{
	struct error error;

	if (stage(text, &error))
		fail_msg("%s: %s", text, error.text);
	poll();
}

static void open_bed(unsigned variant, uint32_t most_held)
{
	const struct qos_settings settings = {.n_workers = 1,
		.hz = HZ,
		.most_held = most_held,
		.clock = &clock_ns,
		.n_ifaces = N_IFACES,
		.iface_name = iface_name};
	struct error error;

	fake_reset(fake_variants[variant]);
	qos_close(qos);
	qos = NULL;
	clock_ns = HZ;
	n_received = 0;
	assert_int_equal(qos_open(&qos, &settings, &error), 0);
	shape = (struct shape_worker){.all = qos_live(qos)->shapers,
		.own = qos_shaper(qos_live(qos)->shapers, 0),
		.offset = RTE_ALIGN_CEIL(offsetof(struct rte_mbuf, dynfield1), 8)};
	fake.worker.qos = qos_live(qos);
	fake.worker.shape = &shape;
	datapath_enable_steps(&fake.worker);
	datapath_shape_open(&fake.worker);
}

// Of IP_BYTES, with a number and a DSCP.
static struct bytes numbered(const char *dst, uint8_t dscp, uint32_t number)
{
	struct bytes frame = frame_to(0, dst);

	memset(frame.at + frame.n, 0, FRAME_BYTES - frame.n);
	frame.n = FRAME_BYTES;
	frame.at[16] = IP_BYTES >> 8;
	frame.at[17] = IP_BYTES & 255;
	frame.at[38] = (IP_BYTES - 20) >> 8;
	frame.at[39] = (IP_BYTES - 20) & 255;
	frame.at[TOS_AT] = dscp << 2;
	memcpy(frame.at + NUMBER_AT, &number, sizeof(number));
	frame_mend(&frame);
	return frame;
}

static void give(const struct bytes *frame)
{
	struct rte_mbuf *mbuf[BURST_MAX] = {fake_mbuf(frame)};
	struct received r = {.from = &fake.io.queues[0], .mbuf = mbuf, .n = 1};

	stats_add(&fake.stat.port[0].rx_packets, 1);
	n_received++;
	worker_process(&fake.worker, &r);
	burst_free_dropped(&fake.worker);
}

static void give_some(const char *dst, uint8_t dscp, uint32_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct bytes frame = numbered(dst, dscp, first + i);

		give(&frame);
	}
}

static struct stats_account account(void)
{
	struct stats_worker *stats[] = {&fake.stat};
	struct stats_account a = {0};

	stats_add_workers(&a, stats, 1);
	for (unsigned v = 0; v < N_VERDICTS; v++)
		a.punted += fake.stat.handed[v];
	return a;
}

static void expect_account(void)
{
	const struct stats_account a = account();

	assert_int_equal(a.received, n_received);
	assert_int_equal(a.received + a.copied, a.sent + a.punted + a.dropped + a.held);
}

static struct qos_shaping shaping_of(const char *name)
{
	struct qos_shaping shaping;
	struct qos_info info;

	assert_true(qos_find_name(qos, name, &info));
	assert_true(qos_shaping(qos, info.number, QOS_DOWN, &shaping));
	return shaping;
}

static uint32_t number_of(const struct rte_mbuf *m)
{
	uint32_t number;

	memcpy(&number, rte_pktmbuf_mtod_offset(m, const uint8_t *, NUMBER_AT), sizeof(number));
	return number;
}

static void run_ns(uint64_t ns)
{
	for (const uint64_t end = clock_ns + ns; clock_ns < end;) {
		clock_ns += STEP_NS;
		poll();
	}
}

static unsigned sent(void)
{
	return fake.device[1].n_sent;
}

static void packets_leave_at_the_rate_and_in_order(void **state)
{
	enum { N = 1500 };
	const double rate = 100e6 / 8 / HZ; // bytes a tick

	for (unsigned v = 0; v < 2; v++) {
		open_bed(v, MOST_HELD);
		change("profile p shape 100Mbit/s burst 10000B queue codel" NO_CODEL);
		change("add a down p address 10.1.2.3");
		const uint64_t began = clock_ns;

		give_some("10.1.2.3", 0, 0, N);
		expect_account();
		assert_int_equal(account().held + sent(), N);
		for (unsigned before = 0; sent() < N; before = sent()) {
			run_ns(MS);
			assert_true(sent() > before);
			const double bytes = (double)sent() * COST,
				     most = rate * (double)(clock_ns - began);

			assert_true(bytes <= most + COST);
			assert_true(bytes >= most * 0.999 - COST - rate * STEP_NS || sent() == N);
			expect_account();
		}
		for (unsigned i = 0; i < N; i++)
			assert_int_equal(number_of(fake.device[1].sent[i]), i);
		const struct qos_shaping shaping = shaping_of("a");
		uint64_t n_delays = 0;

		for (unsigned i = 0; i < SHAPE_DELAYS; i++)
			n_delays += shaping.class[3].delays[i];
		assert_int_equal(shaping.class[3].packets, N);
		assert_int_equal(shaping.class[3].bytes, N * COST);
		assert_int_equal(n_delays, N);
		assert_int_equal(shaping.held, 0);
		assert_int_equal(account().dropped, 0);
	}
}

static void an_idle_subscriber_sends_at_once_and_others_are_not_shaped(void **state)
{
	open_bed(1, MOST_HELD);
	change("profile p shape 10Mbit/s");
	change("add a down p address 10.1.2.3");
	run_ns(10 * MS);
	give_some("10.1.2.3", 0, 0, 1);
	poll();
	assert_int_equal(sent(), 1);
	give_some("10.1.2.4", 0, 0, 50);
	assert_int_equal(sent(), 51);
	expect_account();
}

static void the_strict_class_goes_first_and_is_limited(void **state)
{
	open_bed(1, MOST_HELD);
	change("profile p shape 10Mbit/s burst 3076B strict 50 weights 4,2,1 queue codel "
	       "class_dscp 46:0,10:1,18:2" NO_CODEL);
	change("add a down p address 10.1.2.3");
	for (unsigned i = 0; i < 100; i++) {
		give_some("10.1.2.3", 0, i, 1);
		give_some("10.1.2.3", 18, i, 1);
		give_some("10.1.2.3", 10, i, 1);
		give_some("10.1.2.3", 46, i, 1);
	}
	run_ns(140ull * COST * 8 * 100); // the time of 140 packets
	const struct qos_shaping s = shaping_of("a");

	assert_in_range(s.class[0].packets, 69, 72); // a half
	assert_in_range(s.class[1].packets, 38, 42); // 4/7 of the rest
	assert_in_range(s.class[2].packets, 18, 22);
	assert_in_range(s.class[3].packets, 8, 12);
	expect_account();
	run_ns(400ull * COST * 8 * 100);
	assert_int_equal(sent(), 400);
	unsigned next[64] = {0};
	for (unsigned i = 0; i < sent(); i++) { // each class keeps its order
		const struct rte_mbuf *m = fake.device[1].sent[i];
		const uint8_t dscp = *rte_pktmbuf_mtod_offset(m, const uint8_t *, TOS_AT) >> 2;

		assert_int_equal(number_of(m), next[dscp]++);
	}
	expect_account();
}

static void priorities_of_tags_decide_the_class(void **state)
{
	static const uint16_t tci[] = {5 << 13 | 10, 1 << 13 | 10};
	struct bytes frame = numbered("10.1.2.3", 46, 0);

	open_bed(1, MOST_HELD);
	change("profile p shape 10Mbit/s class_priority 5:2");
	change("add a down p address 10.1.2.3");
	give(&frame); // without a tag: by DSCP
	for (unsigned i = 0; i < ARRAY_LEN(tci); i++) {
		struct bytes tagged = frame;

		frame_tag_for(&tagged, TAGGED_IN);
		tagged.at[14] = (tagged.at[14] & 0x0f) | (uint8_t)(tci[i] >> 8 & 0xe0);
		give(&tagged);
	}
	run_ns(100 * MS);
	const struct qos_shaping s = shaping_of("a");

	assert_int_equal(s.class[0].packets, 1);
	assert_int_equal(s.class[2].packets, 1);
	assert_int_equal(s.class[3].packets, 1);
	expect_account();
}

static void aggregates_and_links_limit_who_is_below_them(void **state)
{
	open_bed(1, MOST_HELD);
	change("profile link aggregate 20Mbit/s oversubscribe yes");
	change("profile olt aggregate 15Mbit/s parent link oversubscribe yes");
	change("profile p shape 10Mbit/s burst 3076B queue codel" NO_CODEL);
	change("add a down p parent olt address 10.1.0.1");
	change("add b down p parent olt address 10.1.0.2");
	change("add c down p parent link address 10.1.0.3");
	for (unsigned i = 0; i < 600; i++) {
		give_some("10.1.0.1", 0, i, 1);
		give_some("10.1.0.2", 0, i, 1);
		give_some("10.1.0.3", 0, i, 1);
	}
	run_ns(200 * MS); // 20 Mbit/s: 491 packets
	const uint64_t a = shaping_of("a").class[3].packets, b = shaping_of("b").class[3].packets,
		       c = shaping_of("c").class[3].packets;

	assert_in_range(a + b + c, 488, 496);
	assert_in_range(c, 240, 250); // its own 10 Mbit/s, which is a half of the link
	assert_in_range(a, 120, 127);
	assert_in_range(b, 120, 127);
	expect_account();
}

static void rates_change_within_10_ms_lose_nothing_and_add_no_bytes(void **state)
{
	enum { N = 1000 };

	open_bed(1, MOST_HELD);
	change("profile slow shape 1Mbit/s burst 3076B queue codel" NO_CODEL);
	change("profile fast shape 100Mbit/s burst 12500B queue codel" NO_CODEL);
	change("add a down slow address 10.1.2.3");
	give_some("10.1.2.3", 0, 0, N);
	run_ns(50 * MS);
	const unsigned slow = sent();

	assert_in_range(slow, 4, 8);
	change("set a down fast");
	run_ns(10 * MS); // 122 packets at the new rate
	assert_in_range(sent() - slow, 110, 124);
	const unsigned before = sent();
	const uint64_t began = clock_ns;

	for (unsigned i = 0; i < 200; i++) {
		change(i & 1 ? "set a down fast" : "set a down slow");
		change(i & 1 ? "profile slow shape 1Mbit/s burst 3076B queue codel" NO_CODEL
			     : "profile slow shape 2Mbit/s burst 3076B queue codel" NO_CODEL);
	}
	assert_int_equal(clock_ns, began);
	assert_in_range(sent() - before, 0, 2); // time stood still
	change("set a down fast");
	run_ns(100 * MS);
	assert_int_equal(sent(), N);
	assert_int_equal(account().dropped, 0);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(number_of(fake.device[1].sent[i]), i);
	expect_account();
}

static void a_parent_changes_under_load(void **state)
{
	open_bed(1, MOST_HELD);
	change("profile one aggregate 20Mbit/s");
	change("profile two aggregate 5Mbit/s oversubscribe yes");
	change("profile p shape 10Mbit/s burst 3076B queue codel" NO_CODEL);
	change("add a down p parent one address 10.1.2.3");
	give_some("10.1.2.3", 0, 0, 500);
	run_ns(100 * MS);
	const unsigned first = sent();

	assert_in_range(first, 121, 125);
	change("set a parent two");
	run_ns(100 * MS);
	assert_in_range(sent() - first, 61, 66); // and its burst
	change("set a parent none");
	change("no-profile two");
	run_ns(1000 * MS);
	assert_int_equal(sent(), 500);
	expect_account();
}

static void what_is_too_much_is_dropped_by_name(void **state)
{
	open_bed(1, MOST_HELD);
	change("profile l shape 1Mbit/s queue codel target 10s interval 10s limit 200ms");
	change("profile c shape 1Mbit/s limit 10s");
	change("add a down l address 10.1.2.1");
	change("add b down c address 10.1.2.2");
	give_some("10.1.2.1", 0, 0, 200);
	const unsigned n_limit = account().verdict[VERDICT_SHAPE_LIMIT];

	assert_in_range(n_limit, 170, 180); // 200 ms are 24 packets
	assert_int_equal(shaping_of("a").class[3].dropped[SHAPE_DROP_LIMIT], n_limit);
	give_some("10.1.2.2", 0, 0, 200);
	run_ns(3000 * MS);
	assert_true(account().verdict[VERDICT_SHAPE_CODEL] > 0);
	expect_account();
	open_bed(1, 64);
	change("profile p shape 1Mbit/s limit 10s");
	change("add a down p address 10.1.2.1");
	give_some("10.1.2.1", 0, 0, 100);
	assert_in_range(account().verdict[VERDICT_SHAPE_POOL], 60, 70); // a half is its share
	expect_account();
}

static void who_is_removed_and_a_stop_drop_by_name(void **state)
{
	open_bed(1, MOST_HELD);
	change("profile p shape 1Mbit/s" NO_CODEL);
	change("add a down p address 10.1.2.1");
	change("add b down p address 10.1.2.2");
	change("add c down p address 10.1.2.5");
	give_some("10.1.2.1", 0, 0, 300);
	give_some("10.1.2.2", 0, 0, 300);
	give_some("10.1.2.5", 0, 0, 10);
	poll();
	const struct stats_account first = account();

	change("remove a");
	change("set c down none"); // what it holds is dropped, what comes passes
	give_some("10.1.2.5", 0, 0, 10);
	assert_int_equal(account().verdict[VERDICT_SHAPE_FLUSHED],
		first.held - shaping_of("b").held);
	expect_account();
	change("add d down p address 10.1.2.1"); // has the number that is free
	assert_int_equal(shaping_of("d").class[3].packets, 0);
	datapath_shape_close(&fake.worker);
	assert_int_equal(account().held, 0);
	expect_account();
}

// As the worker ends: fake_run checks the account.
static void the_worker_holds_nothing_when_it_has_ended(void **state)
{
	open_bed(1, MOST_HELD);
	change("profile p shape 1Mbit/s" NO_CODEL);
	change("add a down p address 10.1.2.3");
	for (unsigned i = 0; i < 100; i++) {
		const struct bytes frame = numbered("10.1.2.3", 0, i);

		fake_receive(0, &frame);
	}
	fake_run();
	assert_in_range(fake.stat.verdict[VERDICT_SHAPE_FLUSHED], 90, 100);
	assert_int_equal(fake.stat.sleeps, 0);
}

static void packets_for_a_removed_port_are_dropped(void **state)
{
	open_bed(1, MOST_HELD);
	change("profile p shape 10Mbit/s" NO_CODEL);
	change("add a down p address 10.1.2.3");
	give_some("10.1.2.3", 0, 0, 100);
	const unsigned before = sent();

	qos_port_gone(qos, 1);
	run_ns(200 * MS);
	assert_int_equal(sent(), before);
	assert_int_equal(account().verdict[VERDICT_PORT_DOWN], 100 - before);
	give_some("10.1.2.3", 0, 0, 1); // another port has the index
	run_ns(MS);
	assert_int_equal(sent(), before + 1);
	expect_account();
}

static void a_port_without_link_drops_what_is_due(void **state)
{
	open_bed(1, MOST_HELD);
	change("profile p shape 10Mbit/s" NO_CODEL);
	change("add a down p address 10.1.2.3");
	fake.states[1].up = false;
	give_some("10.1.2.3", 0, 0, 100);
	run_ns(200 * MS);
	fake.states[1].up = true;
	assert_int_equal(account().verdict[VERDICT_PORT_DOWN], 100);
	expect_account();
}

static void fragments_are_shaped_like_the_packet(void **state)
{
	struct iface iface = {.port = 1, .mtu = 600, .mac = {{2, 0, 0, 0, 0, 2}}};
	struct bytes frame = numbered("10.1.2.3", 0, 0);

	frame.at[FLAGS_AT] = 0;
	frame_mend(&frame);

	open_bed(1, MOST_HELD);
	fake_set(1, &iface);
	change("profile p shape 1Mbit/s burst 3076B" NO_CODEL);
	change("add a down p address 10.1.2.3");
	for (unsigned i = 0; i < 20; i++)
		give(&frame);
	assert_in_range(sent(), 0, 8);
	run_ns(500 * MS);
	assert_int_equal(sent(), 40);
	assert_int_equal(shaping_of("a").class[3].packets, 40);
	assert_int_equal(shaping_of("a").class[3].bytes, 20 * (IP_BYTES + 20 + 2 * 18));
	expect_account();
	iface.mtu = 1500;
	fake_set(1, &iface);
}

static struct qos_shaping up_shaping_of(const char *name)
{
	struct qos_shaping shaping;
	struct qos_info info;

	assert_true(qos_find_name(qos, name, &info));
	assert_true(qos_shaping(qos, info.number, QOS_UP, &shaping));
	return shaping;
}

static struct bytes from_a(const char *dst, uint32_t number)
{
	static const uint8_t source[] = {172, 16, 0, 2};
	struct bytes frame = numbered(dst, 10, number);

	memcpy(frame.at + SOURCE_AT, source, sizeof(source));
	frame_mend(&frame);
	return frame;
}

// From one to another, and to somebody else: each direction has queues and classes of its own.
static void both_directions_are_shaped(void **state)
{
	open_bed(1, MOST_HELD);
	change("profile u shape 10Mbit/s burst 3076B counts ip class_dscp 10:2 queue "
	       "codel" NO_CODEL);
	change("profile d shape 4Mbit/s burst 3076B class_dscp 10:1 queue codel" NO_CODEL);
	change("add a up u address 172.16.0.2");
	change("add b down d address 10.1.2.3");
	run_ns(10 * MS);
	for (unsigned i = 0; i < 100; i++) {
		const struct bytes one = from_a("10.1.2.3", i), other = from_a("10.1.2.4", i);

		give(&one);
		give(&other);
	}
	run_ns(100 * MS); // 125 packets from a, 49 to b
	assert_in_range(up_shaping_of("a").class[2].packets, 122, 132);
	assert_in_range(shaping_of("b").class[1].packets, 47, 54);
	assert_int_equal(up_shaping_of("a").class[2].bytes,
		up_shaping_of("a").class[2].packets * IP_BYTES);
	assert_int_equal(shaping_of("b").class[1].bytes, shaping_of("b").class[1].packets * COST);
	expect_account();
	run_ns(200 * MS);
	assert_int_equal(account().dropped, 0);
	assert_int_equal(account().held, 0);
	assert_int_equal(up_shaping_of("a").class[2].packets, 200);
	assert_int_equal(shaping_of("b").class[1].packets, 100);
	expect_account();
	change("set a up none"); // only downstream now
	for (unsigned i = 0; i < 10; i++) {
		const struct bytes one = from_a("10.1.2.3", i);

		give(&one);
	}
	run_ns(100 * MS);
	assert_int_equal(sent(), 210);
	assert_int_equal(shaping_of("b").class[1].packets, 110);
	expect_account();
}

static void a_traced_packet_waits_in_no_queue(void **state)
{
	const struct bytes frame = numbered("10.1.2.3", 0, 0);

	open_bed(1, MOST_HELD);
	change("profile p shape 64kbit/s" NO_CODEL);
	change("add a down p address 10.1.2.3");
	fake.worker.shape = NULL; // as the worker of a trace
	datapath_enable_steps(&fake.worker);
	give(&frame);
	assert_int_equal(sent(), 1);
	fake.worker.shape = &shape;
}

static const struct mistake {
	const char *before, *text, *sentence;
} mistakes[] = {
	{NULL, "profile x shape 100Mbit/s burst 1000B",
		"profile 'x': burst is \"1000B\"; expected 1518B (one MTU) to 4294967295B, or a "
		"time such as 20ms"},
	{NULL, "profile x shape 32kbit/s",
		"profile 'x': a rate of 32000 bit/s is not 64 kbit/s to 400 Gbit/s"},
	{NULL, "profile x rate 1Mbit/s shape 1Mbit/s",
		"profile 'x': rate and shape are given; keep one of them"},
	{NULL, "profile x shape 1Mbit/s queue fifo ecn yes",
		"profile 'x': ecn has no meaning with queue fifo; remove one of them"},
	{NULL, "profile x shape 1Mbit/s limit_packets 70000",
		"profile 'x': limit_packets is \"70000\"; expected 1 to 65535 packets"},
	{NULL, "profile x shape 1Mbit/s mpu 2000",
		"profile 'x': mpu is \"2000\"; expected bytes from 0 to 1500"},
	{NULL, "profile x rate 1Mbit/s strict 10",
		"profile 'x': strict has no meaning with rate; remove one of them"},
	{NULL, "profile x rate 1Mbit/s weight 10",
		"profile 'x': weight has no meaning with rate; remove one of them"},
	{NULL, "profile x shape 1Mbit/s yellow drop",
		"profile 'x': yellow has no meaning with shape; remove one of them"},
	{NULL, "profile x shape 1Mbit/s parent olt",
		"profile 'x': parent has no meaning with shape; remove one of them"},
	{NULL, "profile x shape 1Mbit/s class_dscp 64:1",
		"profile 'x': class_dscp is \"64:1\"; expected DSCPs from 0 to 63 with classes "
		"from 0 to 3, such as 46:0,10:1"},
	{NULL, "profile x shape 1Mbit/s weights 1,2",
		"profile 'x': weights is \"1\"; expected three weights from 1 to 64 for the "
		"classes 1 to 3, such as 4,2,1"},
	{NULL, "profile x aggregate 1Gbit/s parent nobody",
		"profile 'x': parent: there is no other profile \"nobody\"; add it first"},
	{NULL, "profile x aggregate 200Mbit/s parent olt",
		"profile 'x': 200Mbit/s is above 100Mbit/s of the parent 'olt'; lower it, or add "
		"\"oversubscribe yes\" to the parent"},
	{NULL, "profile olt aggregate 1Mbit/s",
		"subscriber 'a': down: profile 'p' shapes to 50Mbit/s, which is above 1Mbit/s of "
		"the parent 'olt'; lower it, or add \"oversubscribe yes\" to the parent"},
	{NULL, "profile p shape 200Mbit/s",
		"subscriber 'a': down: profile 'p' shapes to 200Mbit/s, which is above 100Mbit/s "
		"of the parent 'olt'; lower it, or add \"oversubscribe yes\" to the parent"},
	{"profile q aggregate 1Mbit/s parent olt", "profile x aggregate 1Mbit/s parent q",
		"profile 'x': parent: profile 'q' is no aggregate without a parent; name one"},
	{NULL, "set a parent nobody",
		"subscriber 'a': parent: there is no profile \"nobody\"; add it first"},
	{NULL, "set a parent p", "subscriber 'a': parent: profile 'p' is no aggregate; name one"},
	{NULL, "set a up olt",
		"subscriber 'a': up: profile 'olt' is an aggregate; name it as the parent"},
	{NULL, "set a up p up_parent p",
		"subscriber 'a': up_parent: profile 'p' is no aggregate; name one"},
	{NULL, "set a up_parent olt",
		"subscriber 'a': up_parent: it needs a profile with shape; add \"up PROFILE\", or "
		"remove the parent"},
	{NULL, "set a down olt",
		"subscriber 'a': down: profile 'olt' is an aggregate; name it as the parent"},
	{NULL, "set a down none",
		"subscriber 'a': parent: it needs a profile with shape; add \"down PROFILE\", or "
		"remove the parent"},
	{NULL, "no-profile olt",
		"profile 'olt': subscribers have it (1 times); give them another one first"},
};

static void a_mistake_is_one_sentence_and_changes_nothing(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		struct error error;

		open_bed(1, MOST_HELD);
		change("profile olt aggregate 100Mbit/s");
		change("profile p shape 50Mbit/s");
		change("add a down p parent olt address 10.1.2.3");
		if (mistakes[i].before)
			change(mistakes[i].before);
		assert_int_not_equal(stage(mistakes[i].text, &error), 0);
		assert_string_equal(error.text, mistakes[i].sentence);
		give_some("10.1.2.3", 0, 0, 100);
		assert_true(account().held > 0);
		run_ns(20 * MS); // 16.3 ms at the rate
		assert_int_equal(sent(), 100);
		expect_account();
	}
}

#define TC_WORDS                                                                                   \
	"shape 8Mbit/s burst 10000B queue fifo limit_bytes 20280B class_dscp 0:3 counts ip "       \
	"overhead 14"

// What leaves by interface 1 passes this qdisc of Linux; NULL: none.
static void set_qdisc(const char *profile)
{
	struct error error;

	if (!profile)
		qos_bind_tc(qos, 1, NULL);
	qos_begin(qos);
	if (qos_stage_tc(qos, "east", profile, &error) || qos_prepare(qos, &error))
		fail_msg("%s", error.text);
	qos_commit(qos, clock_ns);
	if (profile)
		qos_bind_tc(qos, 1, "east");
	poll();
	run_ns(STEP_NS);
	clock_ns += HZ; // the bucket is full
}

// As Linux: a burst passes, what the queue may hold waits, and all else is dropped.
static void a_qdisc_lets_its_burst_pass_and_holds_its_limit(void **state)
{
	enum { N = 100, BURST = 10, LIMIT = 20 };

	for (unsigned v = 0; v < 2; v++) {
		open_bed(v, MOST_HELD);
		set_qdisc(TC_WORDS);
		give_some("10.1.2.3", 0, 0, N);
		expect_account();
		poll();
		assert_int_equal(sent(), BURST);
		assert_int_equal(account().held, LIMIT);
		assert_int_equal(account().verdict[VERDICT_SHAPE_LIMIT], N - BURST - LIMIT);
		expect_account();
		run_ns((LIMIT + 1) * (FRAME_BYTES * MS / 1000));
		assert_int_equal(sent(), BURST + LIMIT);
		for (unsigned i = 0; i < BURST + LIMIT; i++)
			assert_int_equal(number_of(fake.device[1].sent[i]), i);
		assert_int_equal(shaping_of("tc:east").class[3].packets, BURST + LIMIT);
		assert_int_equal(shaping_of("tc:east").class[3].bytes,
			(BURST + LIMIT) * FRAME_BYTES);
		set_qdisc(NULL);
		give_some("10.1.2.3", 0, 0, N);
		assert_int_equal(sent(), BURST + LIMIT + N);
		expect_account();
	}
}

// Subscribers are policed before; who has waited in queues of its own does not wait again.
static void subscribers_come_before_the_qdisc(void **state)
{
	open_bed(1, MOST_HELD);
	change("profile slow rate 8kbit/s burst 3100B counts ip");
	change("profile wide shape 1Gbit/s burst 200000B" NO_CODEL);
	change("add a down slow address 10.1.2.3");
	set_qdisc(TC_WORDS);
	give_some("10.1.2.3", 0, 0, 10);
	poll();
	assert_int_equal(account().verdict[VERDICT_POLICE_RED], 7);
	assert_int_equal(sent(), 3);
	assert_int_equal(shaping_of("tc:east").class[3].packets, 3);
	change("set a down wide");
	clock_ns += HZ;
	give_some("10.1.2.3", 0, 0, 100);
	run_ns(STEP_NS);
	assert_int_equal(sent(), 103);
	assert_int_equal(shaping_of("tc:east").class[3].packets, 3);
	expect_account();
	change("set a down none up wide address 172.16.0.2"); // who sends them
	clock_ns += HZ;
	give_some("10.1.2.3", 0, 0, 10);
	run_ns(STEP_NS);
	assert_int_equal(sent(), 113);
	assert_int_equal(shaping_of("tc:east").class[3].packets, 13);
	expect_account();
}

static bool is_sound(const uint8_t *ip4)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)(ip4[i] << 8 | ip4[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

static void codel_marks_packets_with_ecn_and_drops_others(void **state)
{
	enum { N = 100, ECT0 = 2, CE = 3 };

	for (unsigned ect = 0; ect <= ECT0; ect += ECT0) {
		unsigned n_marked = 0;

		open_bed(1, MOST_HELD);
		set_qdisc("shape 8Mbit/s burst 3000B queue fq_codel target 1ms interval 5ms limit "
			  "10s ecn yes class_dscp 0:3 counts ip overhead 14");
		for (unsigned i = 0; i < N; i++) {
			struct bytes frame = numbered("10.1.2.3", 10, i);

			frame.at[TOS_AT] |= ect;
			frame_mend(&frame);
			give(&frame);
		}
		run_ns((N + 2) * (FRAME_BYTES * MS / 1000));
		for (unsigned i = 0; i < sent(); i++) {
			const uint8_t *ip4 = rte_pktmbuf_mtod_offset(fake.device[1].sent[i],
				const uint8_t *, 14);

			n_marked += (ip4[1] & 3) == CE;
			assert_int_equal(ip4[1] >> 2, 10);
			assert_true((ip4[1] & 3) == CE || (ip4[1] & 3) == ect);
			assert_true(is_sound(ip4));
		}
		assert_int_equal(account().held, 0);
		assert_int_equal(sent() + account().verdict[VERDICT_SHAPE_CODEL], N);
		assert_true(ect ? sent() == N && n_marked > 5 : sent() < N - 5 && !n_marked);
		expect_account();
	}
}

static void only_linux_changes_its_qdiscs(void **state)
{
	static const char *const texts[] = {"remove tc:east", "set tc:east address 10.1.0.0/16",
		"add tc:west", "profile tc:x rate 1Mbit/s"};
	char exported[4096] = "", line[64];
	struct error error;
	uint32_t number = 0, n_users;
	char text[QOS_PROFILE_TEXT];
	FILE *out = fmemopen(exported, sizeof(exported), "w");

	open_bed(1, MOST_HELD);
	set_qdisc(TC_WORDS);
	for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_equal(stage(texts[i], &error), -EINVAL);
		assert_non_null(strstr(error.text, "use tc, or another name"));
	}
	assert_true(qos_next_profile(qos, &number, text, &n_users));
	assert_int_equal(n_users, 1);
	snprintf(line, sizeof(line), "add a down %.*s", (int)strcspn(text, " "), text);
	assert_int_equal(stage(line, &error), -EINVAL);
	assert_non_null(out);
	assert_true(qos_export(qos, out));
	fclose(out);
	assert_null(strstr(exported, QOS_TC));
	set_qdisc(NULL); // the profile goes with its last user
	number = 0;
	assert_false(qos_next_profile(qos, &number, text, &n_users));
}

static int close_all(void **state)
{
	qos_close(qos);
	return fake_close(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_leave_at_the_rate_and_in_order),
		cmocka_unit_test(an_idle_subscriber_sends_at_once_and_others_are_not_shaped),
		cmocka_unit_test(the_strict_class_goes_first_and_is_limited),
		cmocka_unit_test(priorities_of_tags_decide_the_class),
		cmocka_unit_test(aggregates_and_links_limit_who_is_below_them),
		cmocka_unit_test(rates_change_within_10_ms_lose_nothing_and_add_no_bytes),
		cmocka_unit_test(a_parent_changes_under_load),
		cmocka_unit_test(what_is_too_much_is_dropped_by_name),
		cmocka_unit_test(who_is_removed_and_a_stop_drop_by_name),
		cmocka_unit_test(the_worker_holds_nothing_when_it_has_ended),
		cmocka_unit_test(packets_for_a_removed_port_are_dropped),
		cmocka_unit_test(a_port_without_link_drops_what_is_due),
		cmocka_unit_test(fragments_are_shaped_like_the_packet),
		cmocka_unit_test(both_directions_are_shaped),
		cmocka_unit_test(a_traced_packet_waits_in_no_queue),
		cmocka_unit_test(a_mistake_is_one_sentence_and_changes_nothing),
		cmocka_unit_test(a_qdisc_lets_its_burst_pass_and_holds_its_limit),
		cmocka_unit_test(subscribers_come_before_the_qdisc),
		cmocka_unit_test(codel_marks_packets_with_ecn_and_drops_others),
		cmocka_unit_test(only_linux_changes_its_qdiscs),
	};

	return cmocka_run_group_tests(tests, vlans_open, close_all);
}
