// Several workers that shape, polled in turns by one thread in virtual time: whose queues packets
// come to, subscribers and aggregates that move from one to another, packets that wait twice, and
// what a stall, a full ring and a stop leave. The account closes after each step.
#include "datapath/fake.h"

#include "base/pages.h"
#include "datapath/steps.h"
#include "qos/qos.h"

#include <stdio.h>
#include <unistd.h>

enum { N_WORKERS = 3, N_OWNERS = 2, GIVER = 2, DEVICE = 4, BYTES = 1000, MOST_HELD = 1 << 14 };
enum { N_PACKETS = 160000, N_SUBSCRIBERS = 64000, STEP_NS = 10000 };
#define HZ 1000000000ull // a tick is a nanosecond
#define MS 1000000ull
#define NO_CODEL " queue codel target 10s interval 10s limit 10s limit_bytes 1GB"

struct numbered {
	struct rte_mbuf mbuf;
	uint32_t subscriber, number;
} LINE_ALIGNED;

#ifdef __SANITIZE_THREAD__
enum { MOST_MIB = 8192 }; // with what it knows of each word
#else
enum { MOST_MIB = 1024 };
#endif

static struct {
	struct worker *worker[N_WORKERS];
	struct port_worker *io;
	struct port_state states[2];
	struct shape_worker *shape[N_WORKERS];
	struct numbered *packet;
	struct qos *qos;
	uint64_t clock;
	unsigned n_given, n_sent, n_disordered;
	unsigned sent[N_SUBSCRIBERS];
	uint32_t last[N_SUBSCRIBERS];
	bool is_stalled[N_OWNERS];
} lab;

static uint16_t transmit(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	(void)queue;
	for (uint16_t i = 0; i < n; i++) {
		const struct numbered *p = (const void *)mbuf[i];

		lab.n_disordered += p->number <= lab.last[p->subscriber];
		lab.last[p->subscriber] = p->number;
		lab.sent[p->subscriber]++;
	}
	lab.n_sent += n;
	return n;
}

static struct stats_account account(void)
{
	struct stats_worker *stats[N_WORKERS];
	struct stats_account a = {0};

	for (unsigned i = 0; i < N_WORKERS; i++)
		stats[i] = lab.worker[i]->stat;
	stats_add_workers(&a, stats, N_WORKERS);
	return a;
}

static unsigned in_rings(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N_WORKERS; i++)
		for (unsigned k = 0; k < N_OWNERS; k++) {
			const struct handover_ring *ring = lab.shape[i]->to[k];

			n += ring ? (unsigned)(ring->put - ring->taken) : 0;
		}
	return n;
}

static void expect_account(void)
{
	const struct stats_account a = account();

	assert_int_equal(a.received, lab.n_given);
	assert_int_equal(a.received, a.sent + a.dropped + a.held + in_rings());
	assert_int_equal(a.sent, lab.n_sent);
}

static uint64_t held_by(unsigned owner)
{
	return stats_read(&lab.worker[owner]->stat->held_packets);
}

static bool poll_owner(unsigned i)
{
	return !lab.is_stalled[i] && datapath_shape_poll(lab.worker[i]);
}

static void poll(void)
{
	for (unsigned n = 0; n < 200; n++) {
		bool goes_on = false;

		for (unsigned i = 0; i < N_OWNERS; i++)
			goes_on |= poll_owner(i) ||
			           (!lab.is_stalled[i] && qos_shaper_has_news(lab.shape[i]->own));
		if (!goes_on)
			return;
	}
}

static void run_ns(uint64_t ns)
{
	for (const uint64_t end = lab.clock + ns; lab.clock < end;) {
		lab.clock += STEP_NS;
		poll();
	}
}

static void stage(const char *text)
{
	struct error error;

	qos_begin(lab.qos);
	if (qos_stage(lab.qos, text, false, &error) || qos_prepare(lab.qos, &error))
		fail_msg("%s: %s", text, error.text);
	qos_commit(lab.qos, lab.clock);
}

static void change(const char *text)
{
	stage(text);
	poll();
}

static void open_worker(unsigned i)
{
	lab.worker[i] = pages_alloc(sizeof(struct worker));
	lab.io[i].out[1] = (struct port_out){.device = DEVICE};
	*lab.worker[i] = (struct worker){.io = &lab.io[i],
		.states = lab.states,
		.stat = pages_alloc(sizeof(struct stats_worker)),
		.shape = lab.shape[i]};
	datapath_shape_open(lab.worker[i]);
}

// Rings as shape_workers_make makes them, without EAL.
static void make_rings(void)
{
	const struct qos_shapers *all = qos_live(lab.qos)->shapers;

	for (unsigned i = 0; i < N_WORKERS; i++) {
		lab.shape[i] = pages_alloc(sizeof(*lab.shape[i]));
		lab.shape[i]->all = all;
		lab.shape[i]->offset = RTE_ALIGN_CEIL(offsetof(struct rte_mbuf, dynfield1), 8);
		lab.shape[i]->own = i < N_OWNERS ? qos_shaper(all, i) : NULL;
	}
	for (unsigned k = 0; k < N_OWNERS; k++)
		for (unsigned i = 0; i < N_WORKERS; i++) {
			if (i == k)
				continue;
			lab.shape[i]->to[k] = pages_alloc(sizeof(struct handover_ring));
			lab.shape[k]->from[lab.shape[k]->n_from++] = lab.shape[i]->to[k];
		}
}

static int open_holding(uint32_t most_held)
{
	static void *queue[1], *none[1];
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[DEVICE];
	const struct qos_settings settings = {.n_workers = N_WORKERS,
		.hz = HZ,
		.most_held = most_held,
		.n_shapers = N_OWNERS,
		.shaper = {0, 1},
		.clock = &lab.clock};
	struct error error;

	memset(&lab, 0, sizeof(lab));
	lab.clock = HZ;
	ops->tx_pkt_burst = transmit;
	ops->txq = (struct rte_ethdev_qdata){queue, none};
	lab.states[1].up = true;
	lab.io = pages_alloc(N_WORKERS * sizeof(*lab.io));
	lab.packet = pages_alloc(N_PACKETS * sizeof(*lab.packet));
	assert_int_equal(qos_open(&lab.qos, &settings, &error), 0);
	make_rings();
	for (unsigned i = 0; i < N_WORKERS; i++)
		open_worker(i);
	change("profile p shape 10Mbit/s burst 3076B" NO_CODEL);
	change("profile one aggregate 100Mbit/s oversubscribe yes"); // of the first owner
	change("profile two aggregate 100Mbit/s oversubscribe yes"); // of the second one
	return 0;
}

static int open_lab(void **state)
{
	(void)state;
	return open_holding(MOST_HELD);
}

static int open_large(void **state)
{
	(void)state;
	return open_holding(4 * N_SUBSCRIBERS);
}

static int close_lab(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_WORKERS; i++) {
		for (unsigned k = 0; k < N_OWNERS; k++)
			pages_free(lab.shape[i]->to[k], sizeof(struct handover_ring));
		pages_free(lab.shape[i], sizeof(*lab.shape[i]));
		pages_free(lab.worker[i]->stat, sizeof(struct stats_worker));
		pages_free(lab.worker[i], sizeof(struct worker));
	}
	pages_free(lab.packet, N_PACKETS * sizeof(*lab.packet));
	pages_free(lab.io, N_WORKERS * sizeof(*lab.io));
	qos_close(lab.qos);
	return 0;
}

// `second`: QOS_NONE, or the subscriber to whom the packets go, too.
static void give_burst(unsigned from, uint32_t up, uint32_t down, unsigned n)
{
	struct worker *w = lab.worker[from];
	static struct burst b;

	b = (struct burst){.has = BURST_PACKETS | BURST_SHAPED, .has_one_port = true};
	b.port[0] = 1;
	for (unsigned i = 0; i < n; i++) {
		struct numbered *p = &lab.packet[lab.n_given++];
		struct shape_packet *packet = shape_packet_of(w->shape, &p->mbuf);
		const struct shape_second second = {qos_shaped(QOS_DOWN, down), BYTES, 1};

		assert_true(lab.n_given <= N_PACKETS);
		p->subscriber = down;
		p->number = lab.n_given;
		p->mbuf = (struct rte_mbuf){.nb_segs = 1,
			.refcnt = 2,
			.data_len = BYTES,
			.pkt_len = BYTES};
		packet->since = up == QOS_NONE ? second.shaped : qos_shaped(QOS_UP, up);
		packet->bytes = BYTES;
		packet->class = 1;
		packet->is_first = up != QOS_NONE;
		shape_write_second(&p->mbuf, &second);
		b.mbuf[b.n] = &p->mbuf;
		b.shape_mask |= 1ull << b.n++;
	}
	stats_add(&w->stat->port[0].rx_packets, n);
	datapath_shape(w, &b);
	burst_free_dropped(w);
}

static void give(unsigned from, uint32_t up, uint32_t down, unsigned n)
{
	for (; n; n -= MIN_OF(n, (unsigned)BURST_MAX)) {
		give_burst(from, up, down, MIN_OF(n, (unsigned)BURST_MAX));
		poll();
	}
	expect_account();
}

static struct qos_shaping shaping_of(const char *name, enum qos_direction direction)
{
	struct qos_shaping shaping;
	struct qos_info info;

	assert_true(qos_find_name(lab.qos, name, &info));
	assert_true(qos_shaping(lab.qos, info.number, direction, &shaping));
	return shaping;
}

static void an_aggregate_has_one_owner_and_keeps_its_rate(void **state)
{
	change("profile one aggregate 15Mbit/s oversubscribe yes");
	change("add a number 1 down p parent one");
	change("add b number 2 down p parent one");
	change("add c number 3 down p parent two");
	change("add d number 4 down p"); // without a parent: the number decides
	run_ns(10 * MS);
	for (unsigned i = 0; i < 4; i++)
		give(GIVER, QOS_NONE, i, 500);
	give(0, QOS_NONE, 2, 100); // from one owner to the other one
	assert_int_equal(shaping_of("a", QOS_DOWN).worker, 0);
	assert_int_equal(shaping_of("b", QOS_DOWN).worker, 0);
	assert_int_equal(shaping_of("c", QOS_DOWN).worker, 1);
	assert_int_equal(shaping_of("d", QOS_DOWN).worker, 1);
	assert_int_equal(held_by(0) + lab.sent[0] + lab.sent[1], 1000);
	assert_int_equal(held_by(1) + lab.sent[2] + lab.sent[3], 1100);
	run_ns(200 * MS);
	assert_in_range(lab.sent[0] + lab.sent[1], 373, 382); // 15 Mbit/s for 200 ms, and bursts
	assert_in_range(lab.sent[2], 249, 257);
	assert_in_range(lab.sent[3], 249, 257);
	expect_account();
	assert_int_equal(lab.n_disordered, 0);
}

static void who_moves_loses_nothing_and_gains_no_bytes(void **state)
{
	change("add a number 1 down p parent one");
	give(GIVER, QOS_NONE, 0, 1500);
	const uint64_t began = lab.clock;

	for (unsigned i = 0; i < 200; i++) {
		const unsigned before = lab.n_sent;

		change(i & 1 ? "set a down p parent one" : "set a down p parent two");
		assert_int_equal(shaping_of("a", QOS_DOWN).worker, i & 1 ? 0 : 1);
		assert_in_range(lab.n_sent - before, 0, 1); // time stood still
		expect_account();
		assert_int_equal(held_by(i & 1), 0);
		run_ns(3 * STEP_NS);
		if (i % 4 == 0)
			give(GIVER, QOS_NONE, 0, 10);
	}
	const double most = 10e6 / 8 * (double)(lab.clock - began) / HZ + 2 * 3076 + BYTES;

	assert_true(lab.n_sent * (double)BYTES <= most);
	run_ns(2000 * MS);
	assert_int_equal(lab.n_sent, lab.n_given);
	assert_int_equal(account().dropped, 0);
	assert_int_equal(lab.n_disordered, 0);
	assert_int_equal(shaping_of("a", QOS_DOWN).class[1].packets, lab.n_given);
	expect_account();
}

static void an_aggregate_moves_with_those_below_it(void **state)
{
	char text[64];

	change("profile street aggregate 20Mbit/s parent one oversubscribe yes");
	for (unsigned i = 0; i < 8; i++) {
		snprintf(text, sizeof(text), "add s%u number %u down p parent street", i, i + 1);
		change(text);
		give(GIVER, QOS_NONE, i, 100);
	}
	assert_int_equal(held_by(1), 0);
	const uint64_t began = lab.clock;
	const unsigned before = lab.n_sent;

	for (unsigned i = 0; i < 20; i++) {
		change(i & 1 ? "profile street aggregate 20Mbit/s parent one oversubscribe yes"
			     : "profile street aggregate 20Mbit/s parent two oversubscribe yes");
		assert_int_equal(held_by(i & 1), 0);
		assert_int_equal(shaping_of("s3", QOS_DOWN).worker, i & 1 ? 0 : 1);
		expect_account();
		run_ns(MS);
	}
	assert_true((lab.n_sent - before) * (double)BYTES <=
		    20e6 / 8 * (double)(lab.clock - began) / HZ + 3076 + BYTES);
	change("profile street aggregate 20Mbit/s oversubscribe yes"); // has no parent any more
	run_ns(1000 * MS);
	assert_int_equal(lab.n_sent, 800);
	assert_int_equal(account().dropped, 0);
	for (unsigned i = 0; i < 8; i++) {
		snprintf(text, sizeof(text), "remove s%u", i);
		change(text);
	}
	change("no-profile street");
	expect_account();
}

// A batch of a hundred changes each 10 ms, of rates, profiles and parents of either owner: each is
// in force before the next batch, none loses a packet, and none gives bytes.
static void ten_thousand_changes_a_second_lose_nothing(void **state)
{
	enum { N_BATCHES = 200, EACH = 100, N = 50 };
	char text[80];

	change("profile q shape 2Mbit/s burst 3076B" NO_CODEL);
	for (unsigned i = 0; i < N; i++) {
		snprintf(text, sizeof(text), "add s%u number %u down p", i, i + 1);
		change(text);
		give(GIVER, QOS_NONE, i, 100);
	}
	const uint64_t began = lab.clock;

	for (unsigned k = 0; k < N_BATCHES; k++) {
		struct error error;

		qos_begin(lab.qos);
		for (unsigned i = 0; i < EACH; i++) {
			snprintf(text, sizeof(text), "set s%u down %s parent %s", i % N,
				(i + k) & 1 ? "p" : "q", (i / 3 + k) & 1 ? "one" : "two");
			if (qos_stage(lab.qos, text, false, &error))
				fail_msg("%s: %s", text, error.text);
		}
		assert_int_equal(qos_prepare(lab.qos, &error), 0);
		qos_commit(lab.qos, lab.clock);
		poll();
		for (unsigned i = 0; i < N_OWNERS; i++)
			assert_false(qos_shaper_has_news(lab.shape[i]->own));
		assert_int_equal(shaping_of("s49", QOS_DOWN).worker, (99 / 3 + k) & 1 ? 0 : 1);
		expect_account();
		run_ns(10 * MS);
		for (unsigned i = 0; i < N; i++) // at most at the higher rate
			assert_true(lab.sent[i] * (double)BYTES <=
				    10e6 / 8 * (double)(lab.clock - began) / HZ + 2 * 3076 + BYTES);
	}
	run_ns(1000 * MS);
	assert_int_equal(lab.n_sent, N * 100);
	assert_int_equal(account().dropped, 0);
	assert_int_equal(lab.n_disordered, 0);
	expect_account();
}

// The other owner does not run: who is to move waits, and so does what it holds.
static void a_full_ring_delays_a_move_and_loses_nothing(void **state)
{
	change("add a number 1 down p parent one");
	change("add b number 2 down p parent two");
	give(GIVER, QOS_NONE, 0, 3000);
	lab.is_stalled[1] = true;
	stage("set a down p parent two");
	poll();
	expect_account();
	assert_int_equal(in_rings(), HANDOVER_RING);
	assert_true(held_by(0) > 0);
	run_ns(100 * MS);
	expect_account();
	lab.is_stalled[1] = false;
	run_ns(3000 * MS);
	assert_int_equal(lab.n_sent, 3000);
	assert_int_equal(account().dropped, 0);
	assert_int_equal(lab.n_disordered, 0);
	expect_account();
}

static void a_stalled_owner_sends_a_burst_at_most(void **state)
{
	change("add a number 1 down p parent one");
	change("add b number 2 down p parent two");
	run_ns(10 * MS);
	give(GIVER, QOS_NONE, 0, 600);
	give(GIVER, QOS_NONE, 1, 600);
	run_ns(50 * MS);
	const unsigned a = lab.sent[0], b = lab.sent[1];

	lab.is_stalled[1] = true;
	run_ns(200 * MS);
	assert_int_equal(lab.sent[1], b);
	assert_in_range(lab.sent[0] - a, 249, 251); // the other one does not care
	lab.is_stalled[1] = false;
	poll();
	assert_true(lab.sent[1] > b);
	assert_true((lab.sent[1] - b) * BYTES <= 3076 + BYTES);
	expect_account();
	run_ns(1000 * MS);
	assert_int_equal(lab.n_sent, 1200);
	expect_account();
}

// From one subscriber to another one: upstream first, in queues of another owner.
static void packets_between_subscribers_wait_twice(void **state)
{
	change("profile u shape 5Mbit/s burst 3076B" NO_CODEL);
	change("add a number 1 up u up_parent two");
	change("add b number 2 down p parent one");
	run_ns(10 * MS);
	give(GIVER, 0, 1, 500);
	run_ns(200 * MS);
	assert_in_range(lab.n_sent, 124, 130); // 5 Mbit/s
	expect_account();
	change("profile u shape 50Mbit/s burst 6152B" NO_CODEL);
	const unsigned before = lab.n_sent;

	run_ns(200 * MS);
	assert_in_range(lab.n_sent - before, 249, 255); // 10 Mbit/s: now the other one is slower
	expect_account();
	run_ns(200 * MS);
	assert_int_equal(lab.n_sent, 500);
	assert_int_equal(lab.n_disordered, 0);
	assert_int_equal(shaping_of("a", QOS_UP).class[1].packets, 500);
	assert_int_equal(shaping_of("a", QOS_UP).worker, 1);
	assert_int_equal(shaping_of("b", QOS_DOWN).class[1].packets, 500);
	expect_account();
}

static void a_full_pool_drops_by_name_in_its_own_part(void **state)
{
	change("add a number 1 down p parent one");
	change("add b number 2 down p parent two");
	give(GIVER, QOS_NONE, 0, MOST_HELD / N_OWNERS);
	give(GIVER, QOS_NONE, 1, 100);
	const struct stats_account a = account();

	assert_in_range(held_by(0), MOST_HELD / N_OWNERS / 2 - 8, MOST_HELD / N_OWNERS / 2 + 8);
	assert_int_equal(a.dropped, a.verdict[VERDICT_SHAPE_POOL]);
	assert_in_range(held_by(1), 97, 100); // has a pool of its own
	expect_account();
}

static void ports_that_go_drop_by_name_at_all_owners(void **state)
{
	change("add a number 1 down p parent one");
	change("add b number 2 down p parent two");
	give(GIVER, QOS_NONE, 0, 50);
	give(GIVER, QOS_NONE, 1, 50);
	const unsigned before = lab.n_sent;

	qos_port_gone(lab.qos, 1);
	run_ns(100 * MS);
	assert_int_equal(lab.n_sent, before);
	assert_int_equal(account().verdict[VERDICT_PORT_DOWN], 100 - before);
	expect_account();
}

// Also while a subscriber moves: packets are held, on the way, and in both owners' queues.
static void a_stop_drops_what_all_owners_hold(void **state)
{
	change("add a number 1 down p parent one");
	change("add b number 2 down p parent two");
	give(GIVER, QOS_NONE, 0, 3000);
	give(GIVER, QOS_NONE, 1, 300);
	lab.is_stalled[1] = true;
	stage("set a down p parent two");
	poll();
	assert_int_equal(in_rings(), HANDOVER_RING);
	for (unsigned i = 0; i < N_WORKERS; i++) {
		struct shape_worker *shape = lab.shape[i];

		for (unsigned k = 0; k < N_OWNERS; k++) // as the other threads do meanwhile
			if (i != GIVER && lab.shape[1 - i]->to[i])
				lab.shape[1 - i]->to[i]->is_open = false;
		if (i == 0)
			datapath_shape_close(lab.worker[GIVER]);
		if (shape->own)
			datapath_shape_close(lab.worker[i]);
	}
	const struct stats_account a = account();

	assert_int_equal(a.held, 0);
	assert_int_equal(in_rings(), 0);
	assert_int_equal(a.verdict[VERDICT_SHAPE_FLUSHED], a.dropped);
	assert_int_equal(a.sent + a.dropped, lab.n_given);
	expect_account();
}

static double resident_mib(void)
{
	FILE *in = fopen("/proc/self/statm", "r");
	unsigned long all, resident;

	assert_non_null(in);
	assert_int_equal(fscanf(in, "%lu %lu", &all, &resident), 2);
	fclose(in);
	return (double)resident * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static void add_a_million(void)
{
	enum { N_BATCH = 4096 };
	struct error error;
	char text[80];

	for (uint32_t i = 0; i < QOS_MAX;) {
		qos_begin(lab.qos);
		for (const uint32_t end = i + N_BATCH; i < end; i++) {
			snprintf(text, sizeof(text), "add n%u number %u down p parent %s", i, i + 1,
				i & 1 ? "one" : "two");
			assert_int_equal(qos_stage(lab.qos, text, false, &error), 0);
		}
		assert_int_equal(qos_prepare(lab.qos, &error), 0);
		qos_commit(lab.qos, lab.clock);
		poll();
	}
}

// 64,000 of 1,048,576 subscribers hold packets, wait for their aggregates, and change meanwhile.
static void a_million_subscribers_of_whom_64000_hold_packets(void **state)
{
	const double before_mib = resident_mib();
	char text[80];

	change("profile one aggregate 64kbit/s oversubscribe yes");
	change("profile two aggregate 64kbit/s oversubscribe yes");
	add_a_million();
	const double configured_mib = resident_mib();

	for (uint32_t i = 0; i < N_SUBSCRIBERS; i++) {
		give_burst(GIVER, QOS_NONE, i, 2);
		if (i % 32 == 0)
			poll();
	}
	poll();
	expect_account();
	assert_int_equal(account().dropped, 0);
	assert_true(account().held >= 2 * N_SUBSCRIBERS - 8);
	const double active_mib = resident_mib();

	print_message("resident: %.0f MiB more for %u subscribers, %.0f MiB more for %u active\n",
		configured_mib - before_mib, QOS_MAX, active_mib - configured_mib, N_SUBSCRIBERS);
	assert_true(active_mib - before_mib < MOST_MIB);
	for (unsigned i = 0; i < 1000; i++) { // also to the other owner
		snprintf(text, sizeof(text), "set n%u parent %s", i, i & 2 ? "one" : "two");
		change(text);
	}
	expect_account();
	change("profile one aggregate 200Gbit/s oversubscribe yes");
	change("profile two aggregate 200Gbit/s oversubscribe yes");
	run_ns(20 * MS);
	assert_int_equal(lab.n_sent, 2 * N_SUBSCRIBERS);
	assert_int_equal(lab.n_disordered, 0);
	assert_int_equal(account().held, 0);
	expect_account();
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, open_lab, close_lab)
	const struct CMUnitTest tests[] = {
		ROW(an_aggregate_has_one_owner_and_keeps_its_rate),
		ROW(who_moves_loses_nothing_and_gains_no_bytes),
		ROW(an_aggregate_moves_with_those_below_it),
		ROW(ten_thousand_changes_a_second_lose_nothing),
		ROW(a_full_ring_delays_a_move_and_loses_nothing),
		ROW(a_stalled_owner_sends_a_burst_at_most),
		ROW(packets_between_subscribers_wait_twice),
		ROW(a_full_pool_drops_by_name_in_its_own_part),
		ROW(ports_that_go_drop_by_name_at_all_owners),
		ROW(a_stop_drops_what_all_owners_hold),
		cmocka_unit_test_setup_teardown(a_million_subscribers_of_whom_64000_hold_packets,
			open_large, close_lab),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
