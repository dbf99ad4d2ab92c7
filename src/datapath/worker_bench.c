// One worker forwards frames of 16 VLANs, received on one port in turns, to another port; the VLANs
// are in as many VRFs as the argument says. Frames, routes and next hops do not depend on that.
// With 0 VRFs, it hands them to other workers instead, which are not there: its rings are emptied
// at once. The devices are arrays; EAL is not used. Writes its counters as the plugin onecore does
// (to ONECORE_STATS, see onecore/onecore.c) until SIGINT or SIGTERM.
#include "datapath/steps.h"

#include "datapath/datapath.h"
#include "datapath/dice.h"
#include "datapath/handover.h"
#include "datapath/variant.h"
#include "fib/fib.h"
#include "rcu/rcu.h"
#include "tap/tap.h"
#include "wire/build.h"

#include <fcntl.h>
#include <pthread.h>
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
	N_VLANS = 16,
	FIRST_VLAN = 300, // interface
	FIRST_VRF = 1,
	N_ROUTES = 10, // of a VRF, each with a next hop of its own
	FRAME = 68,
	N_FRAMES = 1024,
	N_PACKETS = 2048,
	HEADROOM = 128,
	ROOM = 256,
	N_HANDS = 3,
	WRITE_STATS_US = 100 * 1000,
	CALIBRATE_US = 50 * 1000,
};

struct packet {
	struct rte_mbuf mbuf;
	uint8_t room[ROOM];
} LINE_ALIGNED;

static struct packet packets[N_PACKETS];
static uint8_t frames[N_FRAMES][CACHE_LINE_BYTES * 2] LINE_ALIGNED;
static unsigned n_taken;
static bool stop;

static struct worker worker;
static struct stats_worker stat;
static struct port_worker io;
static struct port_state states[N_PORTS];
static struct tap_worker taps;
static struct handover_out *hands[1 + N_HANDS];
static uint64_t n_handed;

static void fail(const char *what)
{
	fprintf(stderr, "worker_bench: %s\n", what);
	exit(1);
}

// As if the other workers had processed all that was handed to them.
static void empty_rings(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; hands[0] && i < N_HANDS; i++) {
		struct handover_ring *ring = hands[0]->ring[i];

		__atomic_store_n(&ring->done, ring->put, __ATOMIC_RELEASE);
		n += ring->put;
	}
	__atomic_store_n(&n_handed, n, __ATOMIC_RELAXED);
}

static uint16_t receive(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	empty_rings();
	for (uint16_t i = 0; i < n; i++, n_taken++) {
		struct rte_mbuf *m = &packets[n_taken % N_PACKETS].mbuf;

		m->data_off = HEADROOM;
		m->data_len = FRAME;
		m->pkt_len = FRAME;
		m->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD;
		memcpy((uint8_t *)m->buf_addr + HEADROOM, frames[n_taken % N_FRAMES], FRAME);
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

// 10.0.0.0/16 to 10.9.0.0/16.
static void make_frames(void)
{
	for (unsigned i = 0; i < N_FRAMES; i++) {
		struct wire_recipe recipe = wire_recipe(4);

		recipe.frame_bytes = FRAME;
		recipe.has_vlan = true;
		recipe.vlan_tag = 1 + i % N_VLANS;
		memcpy(recipe.dst_mac.bytes, states[IN].mac, sizeof(recipe.dst_mac.bytes));
		recipe.dst = (struct wire_addr){.family = 4,
			.bytes = {10, dice(N_ROUTES), dice(256), dice(256)}};
		if (wire_build(&recipe, frames[i], sizeof(frames[i])))
			fail("a frame cannot be built");
	}
}

static void set_iface(struct fib *fib, uint16_t iface, const struct iface *settings)
{
	if (fib_iface_set(fib, iface, settings))
		fail("the table does not accept an interface");
}

static struct wire_addr neighbour(unsigned route)
{
	return (struct wire_addr){.family = 4, .bytes = {192, 0, 2, route + 1}};
}

static void add_routes(struct fib *fib, uint16_t vrf)
{
	for (unsigned i = 0; i < N_ROUTES; i++) {
		struct fib_change change = {.op = FIB_REPLACE, .route.vrf = vrf};

		change.route.prefix =
			(struct wire_prefix){.addr = {.family = 4, .bytes = {10, i}}, .len = 16};
		change.route.hop =
			(struct fib_hop){.kind = FIB_VIA, .iface = OUT, .via = neighbour(i)};
		if (fib_change(fib, &change, 1, NULL, NULL))
			fail("the table does not accept a route");
	}
}

static struct fib *make_table(unsigned n_vrfs)
{
	struct fib *fib = fib_create(NULL);

	if (!fib)
		fail("not enough memory for the table");
	for (uint16_t port = 0; port < N_PORTS; port++)
		set_iface(fib, port,
			&(struct iface){.port = port,
				.mtu = 1500,
				.mac = {{2, 0, 0, 0, 0, port + 1}}});
	for (unsigned i = 0; i < N_ROUTES; i++) {
		const struct wire_mac mac = {{2, 1, 0, 0, 0, i}};
		const struct wire_addr addr = neighbour(i);

		if (fib_neighbour_set(fib, OUT, &addr, &mac, NULL))
			fail("the table does not accept a neighbour");
	}
	for (unsigned i = 0; i < n_vrfs; i++) {
		if (fib_vrf_open(fib, FIRST_VRF + i, NULL))
			fail("the table does not accept a VRF");
		add_routes(fib, FIRST_VRF + i);
	}
	for (unsigned i = 0; i < N_VLANS; i++)
		set_iface(fib, FIRST_VLAN + i,
			&(struct iface){.port = IN,
				.vrf = FIRST_VRF + i % n_vrfs,
				.mtu = 1500,
				.mac = {{2, 0, 0, 0, 0, IN + 1}},
				.n_tags = 1,
				.tag = {{.tpid = 0x8100, .vid = 1 + i}}});
	return fib;
}

static unsigned long long read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static unsigned long long calibrate(void)
{
	unsigned long long ns = read_clock(CLOCK_MONOTONIC), cycles = rte_rdtsc();

	usleep(CALIBRATE_US);
	cycles = rte_rdtsc() - cycles;
	return cycles * 1000000000ull / (read_clock(CLOCK_MONOTONIC) - ns);
}

static unsigned long long count_sent(void)
{
	return stats_read(&stat.port[OUT].tx_packets) +
	       __atomic_load_n(&n_handed, __ATOMIC_RELAXED);
}

// All frames are forwarded, or handed over.
static void *write_stats(void *path)
{
	const unsigned long long tsc_hz = calibrate();
	int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	char line[128];

	if (file < 0)
		fail("cannot write the file of ONECORE_STATS");
	for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); usleep(WRITE_STATS_US)) {
		unsigned long long time_ns = read_clock(CLOCK_MONOTONIC);
		unsigned long long core_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
		unsigned long long received = stats_read(&stat.port[IN].rx_packets);
		unsigned long long sent = count_sent();
		int n = snprintf(line, sizeof(line), "%020llu %020llu %020llu %020llu %020llu\n",
			time_ns, core_ns, tsc_hz, received, sent);
		if (pwrite(file, line, n, 0) != n)
			fail("cannot write the file of ONECORE_STATS");
	}
	return NULL;
}

static void end(int signal)
{
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
}

static void make_hands(void)
{
	static struct port_worker other[N_HANDS];
	static struct handover_in *in[1 + N_HANDS];
	const struct port_worker *all[1 + N_HANDS] = {&io};

	io.n_hands_to = N_HANDS;
	for (unsigned i = 0; i < N_HANDS; i++) {
		io.hands_to[i] = 1 + i;
		other[i] = (struct port_worker){.id = 1 + i};
		all[1 + i] = &other[i];
	}
	if (handover_make(1 + N_HANDS, all, hands, in, NULL))
		fail("not enough memory for rings");
}

int main(int argc, char **argv)
{
	int n_vrfs = argc == 2 ? atoi(argv[1]) : -1;
	char *path = getenv("ONECORE_STATS");
	struct tap_settings settings;
	pthread_t thread;

	if (n_vrfs < 0 || n_vrfs > N_VLANS)
		fail("expected a number of VRFs to 16, or 0 for packets that are handed over");
	signal(SIGINT, end);
	signal(SIGTERM, end);
	tap_settings_default(&settings);
	struct rcu *rcu = rcu_create(1, NULL);
	struct fib_live live = {.rcu = rcu};
	if (!rcu || tap_worker_make(&taps, settings.class))
		fail("not enough memory");
	open_devices();
	make_frames();
	if (!n_vrfs)
		make_hands();
	struct fib *fib = make_table(MAX_OF(n_vrfs, 1));
	fib_live_swap(&live, fib);
	worker = (struct worker){.io = &io,
		.states = states,
		.rcu = rcu_readers(rcu),
		.live = &live,
		.stat = &stat,
		.stop = &stop,
		.variant = datapath_choose_variant(),
		.poll = worker.polls,
		.tap = &taps,
		.handover_out = hands[0],
		.long_gap = 1ull << 40};
	if (path && pthread_create(&thread, NULL, write_stats, path))
		fail("cannot start a thread");
	worker_run(&worker);
	for (unsigned i = 0; datapath_step_name(i); i++)
		if (stat.step_cycles[i])
			printf("%s %.1f\n", datapath_step_name(i),
				(double)stat.step_cycles[i] / stat.timed_packets);
	empty_rings();
	if (stat.port[IN].rx_packets != count_sent())
		fail("not all frames were forwarded");
	return 0;
}
