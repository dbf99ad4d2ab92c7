// Workers that own shapers, workers that hand them packets, and the control thread that changes
// subscribers, all at once: no packet is lost, and none of a class overtakes another one, unless
// its subscriber moves to another owner.
#include "datapath/fake.h"

#include "base/pages.h"
#include "datapath/steps.h"
#include "qos/qos.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

enum { N_GIVERS = 2, N_OWNERS = 2, N_WORKERS = N_GIVERS + N_OWNERS, N_SUBSCRIBERS = 8 };
enum { N_PACKETS = 20000, N_CHANGES = 300, DEVICE = 3, BYTES = 100, MOST_HELD = 1 << 16 };
#define HZ 1000000000ull

struct numbered {
	struct rte_mbuf mbuf;
	uint32_t subscriber, giver, number;
} LINE_ALIGNED;

static struct {
	struct worker *worker[N_WORKERS];
	struct port_worker *io;
	struct port_state states[2];
	struct shape_worker *shape[N_WORKERS], shapes[N_WORKERS];
	struct numbered *packet[N_GIVERS];
	struct qos *qos;
	uint64_t clock; // atomic
	bool stop;
	unsigned n_sent, n_disordered;          // atomic
	uint32_t last[N_SUBSCRIBERS][N_GIVERS]; // atomic
} lab;

static uint16_t transmit(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	(void)queue;
	for (uint16_t i = 0; i < n; i++) {
		const struct numbered *p = (const void *)mbuf[i];
		uint32_t *last = &lab.last[p->subscriber][p->giver];

		if (p->number <= __atomic_exchange_n(last, p->number, __ATOMIC_RELAXED))
			__atomic_add_fetch(&lab.n_disordered, 1, __ATOMIC_RELAXED);
	}
	__atomic_add_fetch(&lab.n_sent, n, __ATOMIC_RELAXED);
	return n;
}

static void stage(const char *text)
{
	struct error error;

	qos_begin(lab.qos);
	if (qos_stage(lab.qos, text, false, &error) || qos_prepare(lab.qos, &error))
		fail_msg("%s: %s", text, error.text);
	qos_commit(lab.qos, 0);
}

static void open_qos(void)
{
	const struct qos_settings settings = {.n_workers = N_WORKERS,
		.hz = HZ,
		.most_held = N_OWNERS * MOST_HELD,
		.n_shapers = N_OWNERS,
		.shaper = {N_GIVERS, N_GIVERS + 1},
		.clock = &lab.clock};
	struct error error;
	char text[64];

	assert_int_equal(qos_open(&lab.qos, &settings, &error), 0);
	stage("profile slow shape 1Gbit/s queue codel target 10s interval 10s limit 10s");
	stage("profile fast shape 4Gbit/s queue codel target 10s interval 10s limit 10s");
	stage("profile link aggregate 8Gbit/s oversubscribe yes"); // of the first owner
	stage("profile other aggregate 8Gbit/s");
	stage("profile street aggregate 8Gbit/s parent link");
	for (unsigned i = 0; i < N_SUBSCRIBERS; i++) {
		snprintf(text, sizeof(text), "add s%u number %u down slow", i, i + 1);
		stage(text);
	}
}

static void open_worker(unsigned i)
{
	struct shape_worker *shape = lab.shape[i] = &lab.shapes[i];

	shape->all = qos_live(lab.qos)->shapers;
	shape->own = i < N_GIVERS ? NULL : qos_shaper(shape->all, i - N_GIVERS);
	shape->offset = RTE_ALIGN_CEIL(offsetof(struct rte_mbuf, dynfield1), 8);
	for (unsigned k = 0; k < N_OWNERS; k++) {
		struct shape_worker *owner = &lab.shapes[N_GIVERS + k];

		if (owner == shape)
			continue;
		shape->to[k] = pages_alloc(sizeof(*shape->to[k]));
		owner->from[owner->n_from++] = shape->to[k];
	}
	if (i < N_GIVERS)
		lab.packet[i] = pages_alloc(N_PACKETS * sizeof(*lab.packet[i]));
	lab.io[i].out[1] = (struct port_out){.device = DEVICE};
	lab.worker[i] = pages_alloc(sizeof(struct worker));
	*lab.worker[i] = (struct worker){.io = &lab.io[i],
		.states = lab.states,
		.stat = pages_alloc(sizeof(struct stats_worker)),
		.shape = shape};
}

static int open_lab(void **state)
{
	static void *queue[1], *none[1];
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[DEVICE];

	memset(&lab, 0, sizeof(lab));
	lab.clock = HZ;
	ops->tx_pkt_burst = transmit;
	ops->txq = (struct rte_ethdev_qdata){queue, none};
	lab.states[1].up = true;
	lab.io = pages_alloc(N_WORKERS * sizeof(*lab.io));
	open_qos();
	for (unsigned i = 0; i < N_WORKERS; i++)
		open_worker(i);
	return 0;
}

static int close_lab(void **state)
{
	for (unsigned i = 0; i < N_WORKERS; i++) {
		for (unsigned k = 0; k < N_OWNERS; k++)
			pages_free(lab.shapes[i].to[k], sizeof(struct handover_ring));
		pages_free(lab.worker[i]->stat, sizeof(struct stats_worker));
		pages_free(lab.worker[i], sizeof(struct worker));
	}
	for (unsigned i = 0; i < N_GIVERS; i++)
		pages_free(lab.packet[i], N_PACKETS * sizeof(*lab.packet[i]));
	pages_free(lab.io, N_WORKERS * sizeof(*lab.io));
	qos_close(lab.qos);
	return 0;
}

static void give(unsigned giver, unsigned from, unsigned n)
{
	struct worker *w = lab.worker[giver];
	static __thread struct burst b;

	b = (struct burst){.has = BURST_PACKETS | BURST_SHAPED, .has_one_port = true};
	b.port[0] = 1;
	for (unsigned i = from; i < from + n; i++) {
		struct numbered *p = &lab.packet[giver][i];
		struct shape_packet *packet = shape_packet_of(w->shape, &p->mbuf);

		*p = (struct numbered){.subscriber = i % N_SUBSCRIBERS,
			.giver = giver,
			.number = i + 1};
		p->mbuf = (struct rte_mbuf){.nb_segs = 1,
			.refcnt = 2,
			.data_len = BYTES,
			.pkt_len = BYTES};
		packet->since = p->subscriber;
		packet->bytes = BYTES;
		packet->class = 1;
		b.mbuf[b.n] = &p->mbuf;
		b.shape_mask |= 1ull << b.n++;
	}
	stats_add(&w->stat->port[0].rx_packets, n);
	datapath_shape(w, &b);
	burst_free_dropped(w);
}

static void *run_giver(void *worker)
{
	struct worker *w = worker;
	const unsigned giver = w == lab.worker[0] ? 0 : 1;

	datapath_shape_open(w);
	for (unsigned i = 0; i < N_PACKETS; i += BURST_MAX / 2) {
		give(giver, i, MIN_OF(N_PACKETS - i, (unsigned)BURST_MAX / 2));
		sched_yield();
	}
	datapath_shape_close(w);
	return NULL;
}

static void *run_owner(void *worker)
{
	struct worker *w = worker;

	datapath_shape_open(w);
	while (!__atomic_load_n(&lab.stop, __ATOMIC_RELAXED)) {
		__atomic_add_fetch(&lab.clock, 10000, __ATOMIC_RELAXED);
		datapath_shape_poll(w);
	}
	datapath_shape_close(w);
	return NULL;
}

// What changes: only settings, / also the owners, / also who there is.
enum changes { SETTINGS, OWNERS, SUBSCRIBERS };

// Changes that keep packets, unless subscribers are removed.
static void change_some(enum changes changes)
{
	static const char *const parents[] = {"link", "other", "street", "none"};
	char text[64];

	for (unsigned i = 0; i < N_CHANGES; i++) {
		const unsigned which = i % N_SUBSCRIBERS;

		snprintf(text, sizeof(text), "set s%u down %s parent %s", which,
			i & 1 ? "slow" : "fast",
			changes == SETTINGS ? "link" : parents[i / 3 % ARRAY_LEN(parents)]);
		stage(text);
		if (changes != SETTINGS && i % 5 == 0)
			stage(i & 1 ? "profile street aggregate 8Gbit/s parent link"
				    : "profile street aggregate 8Gbit/s parent other");
		if (i % 10 == 0)
			stage(i & 4 ? "profile link aggregate 8Gbit/s oversubscribe yes"
				    : "profile link aggregate 5Gbit/s oversubscribe yes");
		if (changes != SUBSCRIBERS || i % 7)
			continue;
		snprintf(text, sizeof(text), "remove s%u", which);
		stage(text);
		snprintf(text, sizeof(text), "add s%u number %u down slow", which, which + 1);
		stage(text);
	}
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

// Whatever moves meanwhile, nothing is counted twice.
static void expect_no_more(void)
{
	const struct stats_account a = account();

	assert_true(a.sent + a.dropped + a.held <= a.received);
}

static void run_all(enum changes changes)
{
	pthread_t thread[N_WORKERS];
	struct qos_shaping shaping;
	uint64_t n_sent = 0;

	for (unsigned i = 0; i < N_WORKERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL,
					 i < N_GIVERS ? run_giver : run_owner, lab.worker[i]),
			0);
	change_some(changes);
	for (unsigned i = 0; i < N_GIVERS; i++)
		pthread_join(thread[i], NULL);
	while (account().sent + account().dropped < N_GIVERS * N_PACKETS) {
		for (unsigned i = 1; i <= N_SUBSCRIBERS; i++) // read while the owner writes
			assert_true(qos_shaping(lab.qos, i, QOS_DOWN, &shaping));
		expect_no_more();
		sched_yield();
	}
	__atomic_store_n(&lab.stop, true, __ATOMIC_RELAXED);
	for (unsigned i = N_GIVERS; i < N_WORKERS; i++)
		pthread_join(thread[i], NULL);
	const struct stats_account a = account();

	assert_int_equal(a.received, N_GIVERS * N_PACKETS);
	assert_int_equal(a.received, a.sent + a.dropped);
	assert_int_equal(a.held, 0);
	assert_int_equal(a.sent, lab.n_sent);
	if (changes == SETTINGS)
		assert_int_equal(lab.n_disordered, 0);
	assert_true(a.sent > 0);
	if (changes == SUBSCRIBERS)
		return;
	assert_int_equal(a.dropped, a.verdict[VERDICT_WORKER_RING_FULL]);
	for (unsigned i = 1; i <= N_SUBSCRIBERS; i++) {
		assert_true(qos_shaping(lab.qos, i, QOS_DOWN, &shaping));
		n_sent += shaping.class[1].packets;
	}
	assert_int_equal(n_sent, a.sent);
}

static void changes_lose_no_packet_and_keep_the_order(void **state)
{
	for (unsigned i = 0; i < N_SUBSCRIBERS; i++) { // all below one aggregate
		char text[64];

		snprintf(text, sizeof(text), "set s%u parent link", i);
		stage(text);
	}
	run_all(SETTINGS);
}

static void moves_between_owners_lose_no_packet(void **state)
{
	run_all(OWNERS);
}

static void the_account_closes_while_subscribers_come_and_go(void **state)
{
	run_all(SUBSCRIBERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(changes_lose_no_packet_and_keep_the_order, open_lab,
			close_lab),
		cmocka_unit_test_setup_teardown(moves_between_owners_lose_no_packet, open_lab,
			close_lab),
		cmocka_unit_test_setup_teardown(the_account_closes_while_subscribers_come_and_go,
			open_lab, close_lab),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
