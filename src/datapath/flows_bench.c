// Cycles per packet and step of one worker that forwards packets of N uniformly random IPv4 flows,
// all found and counted: flows_bench FLOWS [SECONDS [route]]. FLOWS 0: without a flow table, by
// route. `route`: the flows' action is "by route". The devices are arrays; EAL is not used. Prints
// only, never fails.
#include "datapath/steps.h"

#include "datapath/datapath.h"
#include "datapath/variant.h"
#include "fib/fib.h"
#include "flow/flow.h"
#include "rcu/rcu.h"
#include "tap/tap.h"
#include "wire/build.h"
#include "wire/headers.h"

#include <rte_cycles.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	DEVICE = 0, // DPDK port id of the first port
	IN = 0,
	OUT = 1,
	N_PORTS = 2,
	N_HOPS = 10,
	FRAME = 62,
	N_PACKETS = 2048,
	HEADROOM = 128,
	ROOM = 256,
	CALIBRATE_US = 50 * 1000,
	LONG_GAP_US = 20,
	CHANGES = 64,
};

struct packet {
	struct rte_mbuf mbuf;
	uint8_t room[ROOM];
} LINE_ALIGNED;

static struct packet packets[N_PACKETS];
static uint8_t template[CACHE_LINE_BYTES] LINE_ALIGNED;
static unsigned n_taken;
static uint32_t n_flows, n_tuples;
static uint64_t seed = 88172645463325252ull;
static bool stop;

static struct worker worker;
static struct stats_worker stat;
static struct port_worker io;
static struct port_state states[N_PORTS];
static struct tap_worker taps;
static const bool drops_missing;

static void fail(const char *what)
{
	fprintf(stderr, "flows_bench: %s\n", what);
	exit(1);
}

// Addresses and ports of flow i, in network order: a bijection of i, so that no table of flows is
// read for frames.
struct ends {
	uint32_t src, dst;
	uint16_t src_port, dst_port;
};

static inline struct ends ends_of(uint32_t i)
{
	const uint32_t mixed = i * 0x9e3779b1u; // odd

	return (struct ends){.src = htobe32(0xc0000000 | mixed >> 8),
		.dst = htobe32(0x0a000000 | i % N_HOPS << 16 | (mixed & 0xff)),
		.src_port = htobe16(1024 + (mixed & 0xff)),
		.dst_port = htobe16(443)};
}

static inline uint32_t random_flow(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 32) * n_tuples >> 32;
}

static uint16_t receive(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++, n_taken++) {
		struct rte_mbuf *m = &packets[n_taken % N_PACKETS].mbuf;
		uint8_t *frame = (uint8_t *)m->buf_addr + HEADROOM;
		const struct ends ends = ends_of(random_flow());

		m->data_off = HEADROOM;
		m->data_len = FRAME;
		m->pkt_len = FRAME;
		m->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD;
		memcpy(frame, template, sizeof(template));
		memcpy(frame + WIRE_ETHER_BYTES + offsetof(struct wire_ip4, src), &ends,
			sizeof(ends));
		mbuf[i] = m;
	}
	return n;
}

static uint16_t transmit(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	return n;
}

static void open_devices(void)
{
	static void *queue[1], *none[1];

	for (uint16_t port = 0; port < N_PORTS; port++) {
		struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[DEVICE + port];

		ops->rx_pkt_burst = receive;
		ops->tx_pkt_burst = transmit;
		ops->rxq = ops->txq = (struct rte_ethdev_qdata){queue, none};
		io.out[port] = (struct port_out){.device = DEVICE + port};
		states[port] = (struct port_state){.mac = {2, 0, 0, 0, 0, port + 1}, .up = true};
	}
	io.n_queues = 1;
	io.queues[0] = (struct port_queue){.device = DEVICE, .port = IN};
	io.burst = BURST_MAX;
	for (unsigned i = 0; i < N_PACKETS; i++)
		packets[i].mbuf = (struct rte_mbuf){.buf_addr = packets[i].room,
			.buf_len = ROOM,
			.nb_segs = 1,
			.refcnt = 1};
}

static void make_template(void)
{
	struct wire_recipe recipe = wire_recipe(4);

	recipe.frame_bytes = FRAME;
	memcpy(recipe.dst_mac.bytes, states[IN].mac, sizeof(recipe.dst_mac.bytes));
	if (wire_build(&recipe, template, sizeof(template)))
		fail("a frame cannot be built");
}

// Routes to 10.0.0.0/16, 10.1.0.0/16 and so on, each with a next hop of its own. Those of flows
// are other ones.
static struct fib *make_table(uint32_t held[])
{
	struct fib *fib = fib_create(NULL);

	if (!fib)
		fail("not enough memory for the table");
	for (uint16_t port = 0; port < N_PORTS; port++)
		if (fib_iface_set(fib, port,
			    &(struct iface){.port = port,
				    .mtu = 1500,
				    .mac = {{2, 0, 0, 0, 0, port + 1}}}))
			fail("the table does not accept an interface");
	for (unsigned i = 0; i < 2 * N_HOPS; i++) {
		const struct wire_mac mac = {{2, 1, 0, 0, 0, i}};
		struct fib_change change = {.op = FIB_REPLACE};
		struct fib_hop hop = {.kind = FIB_VIA,
			.iface = OUT,
			.via = {.family = 4, .bytes = {192, 0, 2, i + 1}}};

		change.route.prefix =
			(struct wire_prefix){.addr = {.family = 4, .bytes = {10, i}}, .len = 16};
		change.route.hop = hop;
		if (fib_neighbour_set(fib, OUT, &hop.via, &mac, NULL) ||
			fib_change(fib, &change, 1, NULL, NULL))
			fail("the table does not accept a route");
		if (i >= N_HOPS && fib_hold(fib, &hop, &held[i - N_HOPS], NULL))
			fail("the table does not hold a next hop");
	}
	return fib;
}

static uint32_t use_action(struct flow_table *table, uint32_t held)
{
	const struct flow_action action = {.effect = held ? FLOW_TO_HOP : FLOW_BY_ROUTE,
		.held = held,
		.dscp = FLOW_KEEP_DSCP,
		.mirror = FLOW_NO_MIRROR};
	uint32_t number;

	if (flow_action_use(table, &action, &number, NULL))
		fail("the flow table does not accept an action");
	return number;
}

static struct flow_change addition(uint32_t i, const uint32_t action[])
{
	const struct ends ends = ends_of(i);

	return (struct flow_change){.op = FLOW_REPLACE,
		.key = {.family = 4,
			.four = {.kind = flow_kind4(0, WIRE_PROTO_UDP),
				.src_be = ends.src,
				.dst_be = ends.dst,
				.src_port_be = ends.src_port,
				.dst_port_be = ends.dst_port}},
		.action = action[i % N_HOPS]};
}

static struct flow_table *make_flows(const uint32_t held[], uint64_t hz)
{
	const struct flow_settings settings = {.max4 = n_flows, .n_workers = 1, .hz = hz};
	struct flow_table *table = flow_create(&settings, rte_rdtsc(), NULL);
	uint32_t action[N_HOPS];

	if (!table)
		fail("not enough memory for the flow table");
	for (unsigned i = 0; i < N_HOPS; i++)
		action[i] = use_action(table, held[i]);
	for (uint32_t i = 0; i < n_flows; i++) {
		const struct flow_change change = addition(i, action);
		int result;

		if (flow_change(table, &change, 1, rte_rdtsc(), &result) != 1)
			fail("the flow table does not accept a flow");
	}
	return table;
}

static uint64_t calibrate(void)
{
	struct timespec from, to;
	uint64_t cycles;

	clock_gettime(CLOCK_MONOTONIC, &from);
	cycles = rte_rdtsc();
	usleep(CALIBRATE_US);
	cycles = rte_rdtsc() - cycles;
	clock_gettime(CLOCK_MONOTONIC, &to);
	return cycles * 1000000000ull /
	       ((to.tv_sec - from.tv_sec) * 1000000000ull + to.tv_nsec - from.tv_nsec);
}

static void end(int signal)
{
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
}

static void print_cycles(void)
{
	double sum = 0;

	for (unsigned i = 0; datapath_step_name(i); i++) {
		const double cycles = (double)stat.step_cycles[i] / stat.timed_packets;

		if (!stat.step_cycles[i])
			continue;
		printf("%s %.1f  ", datapath_step_name(i), cycles);
		sum += i ? cycles : 0;
	}
	printf("| all but rx %.1f\n", sum);
}

int main(int argc, char **argv)
{
	const uint64_t hz = calibrate();
	uint32_t held[N_HOPS] = {0};
	struct tap_settings settings;

	n_flows = argc > 1 ? atoi(argv[1]) : 65536;
	n_tuples = n_flows ? n_flows : 65536;
	tap_settings_default(&settings);
	struct rcu *rcu = rcu_create(1, NULL);
	struct fib_live live = {.rcu = rcu};
	if (!rcu || tap_worker_make(&taps, settings.class))
		fail("not enough memory");
	open_devices();
	make_template();
	fib_live_swap(&live, make_table(held));
	if (argc > 3)
		memset(held, 0, sizeof(held));
	worker = (struct worker){.io = &io,
		.states = states,
		.rcu = rcu_readers(rcu),
		.live = &live,
		.flows = n_flows ? flow_view(make_flows(held, hz)) : NULL,
		.drops_missing = &drops_missing,
		.stat = &stat,
		.stop = &stop,
		.variant = datapath_choose_variant(),
		.poll = worker.polls,
		.tap = &taps,
		.tsc_hz = hz,
		.long_gap = hz / 1000000 * LONG_GAP_US};
	signal(SIGALRM, end);
	alarm(argc > 2 ? atoi(argv[2]) : 3);
	worker_run(&worker);
	print_cycles();
	if (stat.port[IN].rx_packets != stat.port[OUT].tx_packets)
		fail("not all frames were forwarded");
	return 0;
}
