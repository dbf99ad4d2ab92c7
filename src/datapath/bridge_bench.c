// Cycles per frame of one worker that bridges frames between N uniformly random hosts, half of them
// behind each of two ports, all known: bridge_bench HOSTS [SECONDS]. The devices are arrays; EAL is
// not used. Prints only, never fails.
#include "datapath/steps.h"

#include "datapath/datapath.h"
#include "datapath/variant.h"
#include "fib/fib.h"
#include "mac/mac.h"
#include "rcu/rcu.h"

#include <rte_cycles.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	IN = 0,
	OUT = 1,
	N_PORTS = 2,
	FRAME = 60,
	N_PACKETS = 2048,
	HEADROOM = 128,
	ROOM = 256,
	CALIBRATE_US = 50 * 1000,
	LONG_GAP_US = 20,
	MTU = 1500,
};

struct packet {
	struct rte_mbuf mbuf;
	uint8_t room[ROOM];
} LINE_ALIGNED;

static struct packet packets[N_PACKETS];
static unsigned n_taken;
static uint32_t n_hosts;
static uint64_t seed = 88172645463325252ull;
static bool stop;

static struct worker worker;
static struct stats_worker stat;
static struct port_worker io;
static struct port_state states[N_PORTS];

static void fail(const char *what)
{
	fprintf(stderr, "bridge_bench: %s\n", what);
	exit(1);
}

// One of the hosts behind a port.
static inline uint32_t random_host(unsigned port)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return ((seed >> 32) * (n_hosts / 2) >> 32) * 2 + port;
}

static inline void write_mac(uint8_t *to, uint32_t host)
{
	const uint16_t first = 0x0002; // 02:00
	const uint32_t rest = htobe32(host);

	memcpy(to, &first, sizeof(first));
	memcpy(to + 2, &rest, sizeof(rest));
}

static uint16_t receive(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++, n_taken++) {
		struct rte_mbuf *m = &packets[n_taken % N_PACKETS].mbuf;
		uint8_t *frame = (uint8_t *)m->buf_addr + HEADROOM;

		m->data_off = HEADROOM;
		m->data_len = FRAME;
		m->pkt_len = FRAME;
		write_mac(frame, random_host(OUT));
		write_mac(frame + 6, random_host(IN));
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
		struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[port];

		ops->rx_pkt_burst = receive;
		ops->tx_pkt_burst = transmit;
		ops->rxq = ops->txq = (struct rte_ethdev_qdata){queue, none};
		io.out[port] = (struct port_out){.device = port};
		states[port] = (struct port_state){.up = true, .is_bridged = true, .mtu = MTU};
	}
	io.n_queues = 1;
	io.queues[0] = (struct port_queue){.device = IN, .port = IN};
	io.burst = BURST_MAX;
	for (unsigned i = 0; i < N_PACKETS; i++)
		packets[i].mbuf = (struct rte_mbuf){.buf_addr = packets[i].room,
			.buf_len = ROOM,
			.nb_segs = 1,
			.refcnt = 1};
}

static struct mac_table *make_table(const struct mac_settings *settings)
{
	struct mac_member members[N_PORTS] = {{.port = IN, .flags = MAC_LEARNS | MAC_FLOODS},
		{.port = OUT, .flags = MAC_LEARNS | MAC_FLOODS}};
	const struct mac_bridge bridge = {.name = "br0",
		.ageing_s = 300,
		.max = n_hosts,
		.member = members,
		.n_members = N_PORTS};
	struct mac_pending *pending;
	struct mac_table *table;

	if (mac_open(&table, settings, NULL) || mac_prepare(table, &bridge, 1, &pending, NULL))
		fail("not enough memory");
	mac_commit(table, pending, rte_rdtsc());
	for (uint32_t host = 0; host < n_hosts; host++) {
		uint8_t mac[8] = {0};

		write_mac(mac, host);
		const struct mac_told told = {.key = mac_key(1, mac),
			.port = host % 2,
			.tick = mac_tick(mac_live_view(mac_live(table)), rte_rdtsc())};
		if (!mac_tell(mac_live(table), 0, &told))
			fail("an address is not learnt");
		mac_poll(table, rte_rdtsc());
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
	for (unsigned i = 0; datapath_step_name(i); i++)
		if (stat.step_cycles[i])
			printf("%s %.1f  ", datapath_step_name(i),
				(double)stat.step_cycles[i] / stat.timed_packets);
	printf("cycles per frame\n");
}

int main(int argc, char **argv)
{
	const uint64_t hz = calibrate();

	n_hosts = argc > 1 ? atoi(argv[1]) : 4096;
	if (n_hosts < 2 || n_hosts > MAC_MAX)
		fail("expected 2 to 1000000 hosts");
	struct rcu *rcu = rcu_create(1, NULL);
	struct fib *fib = fib_create(NULL);
	if (!rcu || !fib)
		fail("not enough memory");
	const struct mac_settings settings = {.hz = hz, .n_workers = 1, .rcu = rcu};
	struct fib_live live = {.rcu = rcu};
	open_devices();
	fib_live_swap(&live, fib);
	worker = (struct worker){.io = &io,
		.states = states,
		.rcu = rcu_readers(rcu),
		.live = &live,
		.macs = mac_live(make_table(&settings)),
		.stat = &stat,
		.stop = &stop,
		.variant = datapath_choose_variant(),
		.poll = worker.polls,
		.tsc_hz = hz,
		.long_gap = hz / 1000000 * LONG_GAP_US};
	signal(SIGALRM, end);
	alarm(argc > 2 ? atoi(argv[2]) : 3);
	worker_run(&worker);
	print_cycles();
	if (stat.port[IN].rx_packets != stat.port[OUT].tx_packets)
		fail("not all frames were forwarded to the other port");
	return 0;
}
