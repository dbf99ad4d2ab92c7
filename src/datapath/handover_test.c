// Packets that one worker receives and others process: their order and their shares, also of flows
// in tunnels, their account, and the port on which they came in.
#include "datapath/fake.h"

#include "base/pages.h"
#include "datapath/steps.h"

#include <pthread.h>
#include <sched.h>

enum { N_WORKERS = 5, N_HANDS = N_WORKERS - 1, N_PACKETS = 60000, FEW_FLOWS = 97 };
enum { MANY_FLOWS = 10000, SHARE_PERCENT = 25, WITHIN_PERCENT = 5 };
enum { DEVICE = 3, IN_FLIGHT_MOST = 1000, BYTES = 128, TSC_HZ = 1000000000 };

// What packets are in: all that are in a tunnel have the same outer addresses and ports.
enum carrier { PLAIN, FRAGMENTS, MPLS_UDP, GRE, VXLAN, N_CARRIERS };

struct numbered {
	struct rte_mbuf mbuf;
	uint32_t flow, number; // in its flow
	uint8_t room[BYTES];
} LINE_ALIGNED;

// One receive worker and some that it hands packets to; frames go from port 0 to port 1.
static struct {
	struct worker *worker[N_WORKERS];
	struct port_worker *io;
	struct port_state states[2];
	struct handover_out *out[N_WORKERS];
	struct handover_in *in[N_WORKERS];
	struct rcu *rcu;
	struct numbered *packet;
	bool stop;
	enum carrier carrier;
	unsigned n_flows;
	unsigned n_most; // to receive
	unsigned in_flight_most;
	unsigned n_received;   // by the receive worker
	unsigned n_sent;       // atomic
	unsigned n_disordered; // atomic
	// By flow, not atomic: whoever processes a flow has seen all that the worker before it did.
	uint32_t n_of_flow[MANY_FLOWS], last[MANY_FLOWS];
	uint32_t n_by[N_WORKERS];
} lab;

static unsigned n_sent(void)
{
	return __atomic_load_n(&lab.n_sent, __ATOMIC_RELAXED);
}

static unsigned n_refused(void)
{
	return stats_read(&lab.worker[0]->stat->verdict[VERDICT_WORKER_RING_FULL]);
}

// --- Frames.

static uint8_t *add16(uint8_t *at, unsigned value)
{
	at[0] = value >> 8;
	at[1] = value;
	return at + 2;
}

static uint8_t *add_ether(uint8_t *at, unsigned type)
{
	memset(at, 2, 12);
	return add16(at + 12, type);
}

// From 10.0.0.1 to 10.1.0.1; `end` is that of the packet.
static uint8_t *add_ip4(uint8_t *at, const uint8_t *end, uint8_t proto)
{
	static const uint8_t addresses[] = {10, 0, 0, 1, 10, 1, 0, 1};

	memset(at, 0, 20);
	at[0] = 0x45;
	add16(at + 2, end - at);
	at[8] = 64;
	at[9] = proto;
	memcpy(at + 12, addresses, sizeof(addresses));
	return at + 20;
}

static uint8_t *add_udp(uint8_t *at, const uint8_t *end, unsigned src, unsigned dst)
{
	add16(add16(add16(at, src), dst), end - at);
	return add16(at + 6, 0);
}

static uint8_t *add_labels(uint8_t *at)
{
	for (unsigned i = 0; i < 4; i++) {
		const uint32_t label = (16 + i) << 12 | (i == 3) << 8 | 64; // the last one; TTL

		at = add16(add16(at, label >> 16), label & 0xffff);
	}
	return at;
}

static uint8_t *add_tunnel(uint8_t *at, const uint8_t *end, enum carrier carrier)
{
	static const uint8_t vxlan[] = {8, 0, 0, 0, 0, 0, 5, 0};

	at = add_ip4(at, end, carrier == GRE ? 47 : 17);
	if (carrier == GRE)
		return add16(add16(at, 0), 0x0800);
	at = add_udp(at, end, 50000, carrier == VXLAN ? 4789 : 6635);
	if (carrier == MPLS_UDP)
		return add_labels(at);
	memcpy(at, vxlan, sizeof(vxlan));
	return add_ether(at + sizeof(vxlan), 0x0800);
}

static void build(uint8_t room[BYTES], uint32_t flow, uint32_t number)
{
	const uint8_t *end = room + BYTES;
	uint8_t *at = add_ether(room, 0x0800);

	memset(at, 0, end - at);
	if (lab.carrier > FRAGMENTS)
		at = add_tunnel(at, end, lab.carrier);
	uint8_t *ip = at;

	at = add_ip4(at, end, 17);
	add16(ip + 14, flow);
	add_udp(at, end, 1024 + flow, 9);
	if (lab.carrier != FRAGMENTS)
		return;
	// The first one, one between, the last one: only the first one has ports.
	static const uint16_t fragment[] = {0x2000, 0x2002, 0x0004};

	add16(ip + 6, fragment[number % 3]);
	if (number % 3)
		memset(at, number * 31, 8);
}

static struct rte_mbuf *next_packet(void)
{
	struct numbered *p = &lab.packet[lab.n_received % N_PACKETS];
	const uint32_t flow = lab.n_received++ * 7919u % lab.n_flows;

	p->mbuf = (struct rte_mbuf){.buf_addr = p->room,
		.buf_len = BYTES,
		.nb_segs = 1,
		.refcnt = 2,
		.data_len = BYTES,
		.pkt_len = BYTES};
	p->flow = flow;
	p->number = ++lab.n_of_flow[flow];
	build(p->room, flow, p->number);
	return &p->mbuf;
}

// --- Devices and workers.

static uint16_t receive(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	uint16_t got = 0;

	while (got < n && lab.n_received < lab.n_most &&
		lab.n_received - n_sent() - n_refused() < lab.in_flight_most)
		mbuf[got++] = next_packet();
	if (!got)
		sched_yield();
	return got;
}

static void check_order(const struct rte_mbuf *mbuf)
{
	const struct numbered *p = (const void *)mbuf;

	if (p->number <= lab.last[p->flow] || mbuf->port != 0)
		__atomic_add_fetch(&lab.n_disordered, 1, __ATOMIC_RELAXED);
	lab.last[p->flow] = p->number;
}

static uint16_t transmit(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	uint32_t *n_by = queue;

	for (uint16_t i = 0; i < n; i++)
		check_order(mbuf[i]);
	*n_by += n;
	__atomic_add_fetch(&lab.n_sent, n, __ATOMIC_RELAXED);
	return n;
}

static void open_devices(void)
{
	static void *queue[N_WORKERS], *none[N_WORKERS];

	for (unsigned i = 0; i < N_WORKERS; i++)
		queue[i] = &lab.n_by[i];
	for (uint16_t port = 0; port < 2; port++) {
		struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[DEVICE + port];

		ops->rx_pkt_burst = receive;
		ops->tx_pkt_burst = transmit;
		ops->rxq = ops->txq = (struct rte_ethdev_qdata){queue, none};
		lab.states[port] =
			(struct port_state){.up = true, .is_xconnect = true, .xconnect = 1};
	}
}

static void open_worker(unsigned i)
{
	struct port_worker *io = &lab.io[i];

	io->id = i;
	io->burst = BURST_MAX;
	for (uint16_t port = 0; port < 2; port++)
		io->out[port] = (struct port_out){.device = DEVICE + port, .queue = i};
	lab.worker[i] = pages_alloc(sizeof(struct worker));
	*lab.worker[i] = (struct worker){.io = io,
		.states = lab.states,
		.rcu = rcu_readers(lab.rcu),
		.stat = pages_alloc(sizeof(struct stats_worker)),
		.stop = &lab.stop,
		.variant = datapath_choose_variant(),
		.poll = lab.worker[i]->polls,
		.tsc_hz = TSC_HZ,
		.long_gap = TSC_HZ,
		.handover_out = lab.out[i],
		.handover_in = lab.in[i]};
}

static int open_lab(void **state)
{
	const struct port_worker *io[N_WORKERS];

	memset(&lab, 0, sizeof(lab));
	lab.n_flows = FEW_FLOWS;
	lab.io = pages_alloc(N_WORKERS * sizeof(*lab.io));
	lab.packet = pages_alloc(N_PACKETS * sizeof(*lab.packet));
	lab.rcu = rcu_create(N_WORKERS, NULL);
	open_devices();
	for (unsigned i = 0; i < N_WORKERS; i++)
		io[i] = &lab.io[i];
	lab.io[0].n_queues = 1;
	lab.io[0].queues[0] = (struct port_queue){.device = DEVICE, .port = 0};
	for (unsigned i = 1; i < N_WORKERS; i++)
		lab.io[0].hands_to[lab.io[0].n_hands_to++] = i;
	assert_int_equal(handover_make(N_WORKERS, io, lab.out, lab.in, NULL), 0);
	for (unsigned i = 0; i < N_WORKERS; i++)
		open_worker(i);
	return 0;
}

static int close_lab(void **state)
{
	for (unsigned i = 0; i < N_WORKERS; i++) {
		pages_free(lab.worker[i]->stat, sizeof(struct stats_worker));
		pages_free(lab.worker[i], sizeof(struct worker));
	}
	handover_free(N_WORKERS, lab.out, lab.in);
	rcu_destroy(lab.rcu);
	pages_free(lab.packet, N_PACKETS * sizeof(*lab.packet));
	pages_free(lab.io, N_WORKERS * sizeof(*lab.io));
	return 0;
}

static void open_again(void)
{
	close_lab(NULL);
	open_lab(NULL);
}

static void *run(void *worker)
{
	worker_run(worker);
	return NULL;
}

static void start(pthread_t thread[], unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run, lab.worker[i]), 0);
}

static void stop(const pthread_t thread[])
{
	__atomic_store_n(&lab.stop, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < N_WORKERS; i++)
		pthread_join(thread[i], NULL);
}

// Packets that came for some slots.
static unsigned n_came(unsigned first, unsigned end)
{
	unsigned n = 0;

	for (unsigned i = first; i < end; i++)
		n += stats_read(&lab.out[0]->n_came[i]);
	return n;
}

// Received = sent + dropped, and each worker has counted what it did.
static void expect_account(void)
{
	struct stats_worker *stats[N_WORKERS];
	struct stats_account account = {0};
	uint64_t n_taken = 0;

	for (unsigned i = 0; i < N_WORKERS; i++) {
		stats[i] = lab.worker[i]->stat;
		n_taken += stats[i]->taken_packets;
		if (i)
			assert_true(handover_is_over(lab.in[i]));
	}
	stats_add_workers(&account, stats, N_WORKERS);
	assert_int_equal(account.received, lab.n_received);
	assert_int_equal(account.received, account.sent + account.dropped);
	assert_int_equal(account.sent, n_sent());
	assert_int_equal(account.dropped, account.verdict[VERDICT_WORKER_RING_FULL]);
	assert_int_equal(stats[0]->port[0].rx_packets, lab.n_received);
	assert_int_equal(stats[0]->handover_packets, n_taken);
	assert_int_equal(n_came(0, HANDOVER_SLOTS), lab.n_received);
	assert_int_equal(n_taken, account.sent);
	assert_int_equal(lab.n_by[0], 0);
	assert_int_equal(lab.n_disordered, 0);
}

static uint32_t number(uint32_t below)
{
	static uint64_t seed = 12345;

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 32) % below;
}

static void move_some(void)
{
	bool slots[HANDOVER_SLOTS];
	const unsigned one_in = 1 + number(20);

	for (unsigned i = 0; i < HANDOVER_SLOTS; i++)
		slots[i] = !number(one_in);
	handover_move(lab.out[0], slots, number(N_HANDS));
}

static void keep_order_while_slots_move(void)
{
	pthread_t thread[N_WORKERS];
	unsigned n_moves = 0;

	lab.n_most = N_PACKETS;
	lab.in_flight_most = IN_FLIGHT_MOST;
	start(thread, 0, N_WORKERS);
	while (n_sent() + n_refused() < N_PACKETS || n_moves < 20) {
		move_some();
		for (n_moves++; number(4) && !handover_has_moved(lab.out[0]);)
			sched_yield();
		sched_yield();
	}
	while (!handover_has_moved(lab.out[0]))
		sched_yield();
	for (unsigned i = 0; i < HANDOVER_SLOTS; i++)
		assert_int_equal(handover_slot(lab.out[0], i), lab.out[0]->wanted[i]);
	stop(thread);
	expect_account();
	assert_int_equal(n_refused(), 0);
}

static void flows_stay_in_order_while_their_slots_move(void **state)
{
	for (enum carrier carrier = 0; carrier < N_CARRIERS; carrier++) {
		open_again();
		lab.carrier = carrier;
		keep_order_while_slots_move();
	}
}

static void each_worker_gets_a_quarter_of_the_flows_of_one_tunnel(void **state)
{
	for (enum carrier carrier = MPLS_UDP; carrier < N_CARRIERS; carrier++) {
		pthread_t thread[N_WORKERS];

		open_again();
		lab.carrier = carrier;
		lab.n_flows = MANY_FLOWS;
		lab.n_most = N_PACKETS;
		lab.in_flight_most = IN_FLIGHT_MOST;
		start(thread, 0, N_WORKERS);
		while (n_sent() < N_PACKETS)
			sched_yield();
		stop(thread);
		expect_account();
		for (unsigned i = 1; i < N_WORKERS; i++)
			assert_in_range(lab.n_by[i] * 100 / N_PACKETS,
				SHARE_PERCENT - WITHIN_PERCENT, SHARE_PERCENT + WITHIN_PERCENT);
	}
}

// The rings fill while nobody reads them; what they have is processed all the same.
static void what_a_full_ring_does_not_take_is_dropped_by_name(void **state)
{
	pthread_t thread[N_WORKERS];

	lab.n_most = N_PACKETS;
	lab.in_flight_most = N_PACKETS;
	start(thread, 0, 1);
	while (n_refused() < N_PACKETS - N_HANDS * HANDOVER_RING)
		sched_yield();
	assert_int_equal(n_refused(), N_PACKETS - N_HANDS * HANDOVER_RING);
	start(thread, 1, N_WORKERS);
	while (n_sent() < N_HANDS * HANDOVER_RING)
		sched_yield();
	stop(thread);
	expect_account();
}

// Also with held packets, and in full flow: whatever is on its way is processed.
static void nothing_is_left_when_workers_are_stopped(void **state)
{
	for (unsigned i = 0; i < 20; i++) {
		pthread_t thread[N_WORKERS];

		if (i)
			open_again();
		lab.n_most = N_PACKETS;
		lab.in_flight_most = number(2) ? IN_FLIGHT_MOST : N_PACKETS;
		start(thread, 0, N_WORKERS);
		while (n_sent() < i * 100)
			sched_yield();
		move_some();
		stop(thread);
		expect_account();
	}
}

// --- In virtual time: each worker processes so many packets in a tick, and so many arrive.

enum { TICK_PACKETS = 32, N_TICKS = 4000, MOVED_SLOTS = 8, TICKS_PER_MOVE = 50 };

static void receive_some(unsigned n)
{
	static const struct port_queue queue = {.device = DEVICE, .port = 0};
	struct worker *w = lab.worker[0];

	handover_follow(w);
	while (n) {
		struct rte_mbuf *mbuf[HANDOVER_BURST];
		const uint16_t some = MIN_OF(n, (unsigned)HANDOVER_BURST);

		for (uint16_t i = 0; i < some; i++)
			mbuf[i] = next_packet();
		datapath_handover(w, &(struct received){.from = &queue, .mbuf = mbuf, .n = some});
		burst_free_dropped(w);
		n -= some;
	}
}

static void process_some(struct worker *w)
{
	struct rte_mbuf *mbuf[BURST_MAX];
	struct received r = {.from = &w->handover_in->from,
		.ring = w->handover_in->ring[0],
		.mbuf = mbuf};

	for (unsigned left = TICK_PACKETS; left && handover_take(w, &r); left -= r.n)
		for (uint16_t i = 0; i < r.n; i++)
			check_order(mbuf[i]);
	handover_done(r.ring);
}

// Some slots of one worker go to the next one, which gives as many to the one after it.
static void move_around(unsigned turn)
{
	for (unsigned ring = 0; ring < N_HANDS; ring++) {
		bool slots[HANDOVER_SLOTS] = {false};

		for (unsigned i = 0; i < MOVED_SLOTS; i++)
			slots[(turn * MOVED_SLOTS + i) * N_HANDS % HANDOVER_SLOTS + ring] = true;
		handover_move(lab.out[0], slots, (ring + 1 + turn) % N_HANDS);
	}
}

// Packets lost of those that arrived, a tick at a time.
static unsigned lost_at(unsigned per_tick, bool moves)
{
	open_again();
	lab.carrier = MPLS_UDP;
	lab.n_flows = MANY_FLOWS;
	for (unsigned i = 1; i < N_WORKERS; i++)
		lab.io[i].burst = TICK_PACKETS;
	for (unsigned tick = 0; tick < N_TICKS; tick++) {
		if (moves && tick % TICKS_PER_MOVE == 0)
			move_around(tick / TICKS_PER_MOVE);
		receive_some(per_tick);
		for (unsigned i = 1; i < N_WORKERS; i++)
			process_some(lab.worker[i]);
	}
	assert_int_equal(lab.n_disordered, 0);
	assert_int_equal(n_came(0, HANDOVER_SLOTS), per_tick * N_TICKS);
	return n_refused();
}

static void nothing_is_lost_at_80_percent_of_the_rate_at_which_it_is(void **state)
{
	unsigned rate = N_HANDS * TICK_PACKETS * 7 / 8;

	while (!lost_at(rate, false))
		rate++;
	// The shares are so even that little of what the workers can do is left.
	assert_in_range(rate, N_HANDS * TICK_PACKETS * 9 / 10, N_HANDS * TICK_PACKETS + 1);
	assert_int_equal(lost_at(rate * 8 / 10, false), 0);
	assert_int_equal(lost_at(rate * 8 / 10, true), 0);
	assert_true(lost_at(N_HANDS * TICK_PACKETS * 11 / 10, true) > 0);
}

// --- With the table: what a worker does with packets that another one has received.

static struct handover_ring *ring_of(struct handover_in *in)
{
	struct handover_ring *ring = pages_alloc(sizeof(*ring));

	*in = (struct handover_in){.n = 1, .ring = {ring}};
	fake.worker.handover_in = in;
	return ring;
}

static void put(struct handover_ring *ring, uint16_t port, const struct bytes *frame)
{
	struct rte_mbuf *m = fake_mbuf(frame);

	m->port = port;
	ring->packet[ring->put++ % HANDOVER_RING] = m;
	fake.stat.port[port].rx_packets++; // of the worker that received it
}

static void handed_packets_have_the_port_on_which_they_came_in(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		struct handover_in in;
		struct handover_ring *ring;
		unsigned n = 0, n_others = 0;

		fake_reset(fake_variants[v]);
		fake.io.burst = BURST_MAX;
		ring = ring_of(&in);
		while (n < FAKE_FRAMES - 300) {
			const uint16_t port = number(2) ? 0 : 2;

			for (unsigned run = number(200); run; run--, n++) {
				const bool is_other = !number(9);
				struct bytes frame = frame_to(is_other ? 3 : port, "10.1.0.2");

				memcpy(frame.at + frame.n - sizeof(n), &n, sizeof(n));
				put(ring, port, &frame);
				n_others += is_other;
			}
		}
		fake_run();
		assert_true(handover_is_over(&in));
		assert_int_equal(fake.stat.taken_packets, n);
		assert_int_equal(fake.stat.verdict[VERDICT_MAC_NOT_OURS], n_others);
		assert_int_equal(fake.device[1].n_sent, n - n_others);
		for (unsigned i = 0, last = 0; i < fake.device[1].n_sent; i++) {
			const struct rte_mbuf *m = fake.device[1].sent[i];
			const unsigned is =
				load32(rte_pktmbuf_mtod(m, uint8_t *) + m->data_len - 4);

			assert_true(!i || is > last);
			last = is;
		}
		pages_free(ring, sizeof(*ring));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handed_packets_have_the_port_on_which_they_came_in),
	};
	const struct CMUnitTest threads[] = {
		cmocka_unit_test_setup_teardown(flows_stay_in_order_while_their_slots_move,
			open_lab, close_lab),
		cmocka_unit_test_setup_teardown(
			each_worker_gets_a_quarter_of_the_flows_of_one_tunnel, open_lab, close_lab),
		cmocka_unit_test_setup_teardown(
			nothing_is_lost_at_80_percent_of_the_rate_at_which_it_is, open_lab,
			close_lab),
		cmocka_unit_test_setup_teardown(what_a_full_ring_does_not_take_is_dropped_by_name,
			open_lab, close_lab),
		cmocka_unit_test_setup_teardown(nothing_is_left_when_workers_are_stopped, open_lab,
			close_lab),
	};
	const int failed = cmocka_run_group_tests(tests, fake_open, fake_close);

	return failed + cmocka_run_group_tests(threads, NULL, NULL);
}
