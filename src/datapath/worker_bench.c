// One worker forwards frames from one port to another; the argument is the name of a task below,
// which says what frames come and what is done with them. The devices are arrays; EAL is not used.
// Writes its counters as the plugin onecore does (to ONECORE_STATS, see onecore/onecore.c) until
// SIGINT or SIGTERM.
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
	N_ROUTES = 10,     // of a VRF, each with a next hop of its own
	TUNNEL = 400,      // interface
	FIRST_LABEL = 100, // received; one for each route
	LABEL_OUT = 1000,  // the first one of those that are sent
	MPLS_PORT = 6635,
	FRAME = 64, // without a tag
	N_FRAMES = 1024,
	N_PACKETS = 2048,
	HEADROOM = 128,
	ROOM = 256,
	N_HANDS = 3,
	WRITE_STATS_US = 100 * 1000,
	CALIBRATE_US = 50 * 1000,
};

// What frames are in when they come: 16 VLANs in turns, a label, or a label in UDP. They go to as
// many routes, with a next hop each.
enum form { UNTAGGED, TAGGED, LABELLED, IN_UDP };

// What the worker does with them.
struct task {
	const char *name;
	enum form form;
	unsigned n_vrfs;  // that the VLANs are in
	bool hands;       // to other workers, which are not there: its rings are emptied at once
	bool is_into_udp; // routes lead into MPLS over UDP
};

static const struct task tasks[] = {
	{.name = "vlans-1-vrf", .form = TAGGED, .n_vrfs = 1},
	{.name = "vlans-16-vrfs", .form = TAGGED, .n_vrfs = N_VLANS},
	{.name = "handover", .form = TAGGED, .n_vrfs = 1, .hands = true},
	{.name = "ipv4", .form = UNTAGGED},
	{.name = "mpls-swap", .form = LABELLED},
	{.name = "mpls-udp-encap", .form = UNTAGGED, .is_into_udp = true},
	{.name = "mpls-udp-decap", .form = IN_UDP},
};

static const struct task *task;

struct packet {
	struct rte_mbuf mbuf;
	uint8_t room[ROOM];
} LINE_ALIGNED;

static struct packet packets[N_PACKETS];
static uint8_t frames[N_FRAMES][CACHE_LINE_BYTES * 2] LINE_ALIGNED;
static uint16_t frame_bytes;
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
		m->data_len = frame_bytes;
		m->pkt_len = frame_bytes;
		m->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD;
		memcpy((uint8_t *)m->buf_addr + HEADROOM, frames[n_taken % N_FRAMES], frame_bytes);
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

static const struct wire_addr here = {.family = 4, .bytes = {198, 51, 100, 1}};
static const struct wire_addr there = {.family = 4, .bytes = {203, 0, 113, 1}};

static void precede(uint8_t *frame, const void *bytes, unsigned n)
{
	memmove(frame + WIRE_ETHER_BYTES + n, frame + WIRE_ETHER_BYTES,
		frame_bytes - WIRE_ETHER_BYTES);
	memcpy(frame + WIRE_ETHER_BYTES, bytes, n);
	frame_bytes += n;
}

static void push(uint8_t *frame, uint32_t label)
{
	const uint32_t word_be = htobe32(label << 12 | 1 << 8 | 64); // the only one; TTL 64

	precede(frame, &word_be, sizeof(word_be));
	frame[12] = WIRE_ETHERTYPE_MPLS >> 8;
	frame[13] = WIRE_ETHERTYPE_MPLS & 0xff;
}

// The headers are those of a whole UDP frame; without a UDP checksum.
static void put_into_udp(uint8_t *frame)
{
	enum { HEADERS = WIRE_ETHER_BYTES + sizeof(struct wire_ip4) + WIRE_UDP_BYTES };
	struct wire_recipe outer = wire_recipe(4);
	uint8_t built[sizeof(frames[0])];

	outer.src = there;
	outer.dst = here;
	outer.src_port = 50000;
	outer.dst_port = MPLS_PORT;
	outer.dst_mac = *(const struct wire_mac *)frame;
	outer.frame_bytes = frame_bytes + HEADERS - WIRE_ETHER_BYTES;
	if (wire_build(&outer, built, sizeof(built)))
		fail("an outer header cannot be built");
	memset(built + HEADERS - 2, 0, 2);
	precede(frame, built + WIRE_ETHER_BYTES, HEADERS - WIRE_ETHER_BYTES);
	memcpy(frame, built, WIRE_ETHER_BYTES);
}

// To 10.0.0.0/16 to 10.9.0.0/16.
static void make_frame(unsigned i)
{
	struct wire_recipe recipe = wire_recipe(4);
	const unsigned route = dice(N_ROUTES);

	recipe.has_vlan = task->form == TAGGED;
	recipe.frame_bytes = FRAME + (recipe.has_vlan ? WIRE_VLAN_BYTES : 0);
	recipe.vlan_tag = 1 + i % N_VLANS;
	memcpy(recipe.dst_mac.bytes, states[IN].mac, sizeof(recipe.dst_mac.bytes));
	recipe.dst = (struct wire_addr){.family = 4, .bytes = {10, route, dice(256), dice(256)}};
	if (wire_build(&recipe, frames[i], sizeof(frames[i])))
		fail("a frame cannot be built");
	frame_bytes = recipe.frame_bytes;
	if (task->form == LABELLED || task->form == IN_UDP)
		push(frames[i], FIRST_LABEL + route);
	if (task->form == IN_UDP)
		put_into_udp(frames[i]);
}

static void make_frames(void)
{
	for (unsigned i = 0; i < N_FRAMES; i++)
		make_frame(i);
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

static void add_route(struct fib *fib, uint16_t vrf, struct wire_prefix prefix, struct fib_hop hop)
{
	const struct fib_change change = {.op = FIB_REPLACE,
		.route = {.vrf = vrf, .prefix = prefix, .hop = hop}};

	if (fib_change(fib, &change, 1, NULL, NULL))
		fail("the table does not accept a route");
}

static struct fib_hop hop_of(unsigned route)
{
	if (task->is_into_udp)
		return (struct fib_hop){.kind = FIB_PEER,
			.iface = TUNNEL,
			.n_labels = 1,
			.label = {LABEL_OUT + route}};
	return (struct fib_hop){.kind = FIB_VIA, .iface = OUT, .via = neighbour(route)};
}

static void add_routes(struct fib *fib, uint16_t vrf)
{
	for (unsigned i = 0; i < N_ROUTES; i++) {
		const struct wire_addr addr = {.family = 4, .bytes = {10, i}};

		add_route(fib, vrf, (struct wire_prefix){.addr = addr, .len = 16}, hop_of(i));
	}
}

// Labels are swapped, or popped where the packet below goes by the routes.
static void add_labels(struct fib *fib)
{
	for (unsigned i = 0; i < N_ROUTES; i++) {
		struct fib_label label = {.label = FIRST_LABEL + i,
			.op = FIB_LABEL_LOOKUP,
			.hop = {.iface = IFACE_NONE}};

		if (task->form == LABELLED) {
			label.op = FIB_LABEL_FORWARD;
			label.hop = hop_of(i);
			label.hop.n_labels = 1;
			label.hop.label[0] = LABEL_OUT + i;
		}
		if (fib_label_set(fib, &label, NULL))
			fail("the table does not accept a label");
	}
}

static void add_tunnel(struct fib *fib)
{
	const struct fib_hop local = {.kind = FIB_LOCAL, .iface = IFACE_NONE};
	const struct fib_hop via = {.kind = FIB_VIA, .iface = OUT, .via = neighbour(0)};

	add_route(fib, 0, (struct wire_prefix){.addr = here, .len = 32}, local);
	add_route(fib, 0, (struct wire_prefix){.addr = there, .len = 32}, via);
	set_iface(fib, TUNNEL,
		&(struct iface){.mtu = 1500,
			.has_peer = true,
			.flags = IFACE_MPLS,
			.tunnel = {.local = here,
				.remote = there,
				.kind = IFACE_IPIP,
				.ttl = 64,
				.dest_port = MPLS_PORT,
				.flags = IFACE_TUNNEL_UDP | IFACE_TUNNEL_MPLS | IFACE_TUNNEL_DF |
	                                 IFACE_TUNNEL_TOS | IFACE_TUNNEL_LABELLED_TOS}});
}

static void add_vlans(struct fib *fib)
{
	for (unsigned i = 0; i < task->n_vrfs; i++) {
		if (fib_vrf_open(fib, FIRST_VRF + i, NULL))
			fail("the table does not accept a VRF");
		add_routes(fib, FIRST_VRF + i);
	}
	for (unsigned i = 0; i < N_VLANS; i++)
		set_iface(fib, FIRST_VLAN + i,
			&(struct iface){.port = IN,
				.vrf = FIRST_VRF + i % task->n_vrfs,
				.mtu = 1500,
				.mac = {{2, 0, 0, 0, 0, IN + 1}},
				.n_tags = 1,
				.tag = {{.tpid = 0x8100, .vid = 1 + i}}});
}

static struct fib *make_table(void)
{
	struct fib *fib = fib_create(NULL);

	if (!fib)
		fail("not enough memory for the table");
	for (uint16_t port = 0; port < N_PORTS; port++)
		set_iface(fib, port,
			&(struct iface){.port = port,
				.mtu = 1500,
				.flags = IFACE_MPLS,
				.mac = {{2, 0, 0, 0, 0, port + 1}}});
	for (unsigned i = 0; i < N_ROUTES; i++) {
		const struct wire_mac mac = {{2, 1, 0, 0, 0, i}};
		const struct wire_addr addr = neighbour(i);

		if (fib_neighbour_set(fib, OUT, &addr, &mac, NULL))
			fail("the table does not accept a neighbour");
	}
	if (task->form == TAGGED) {
		add_vlans(fib);
		return fib;
	}
	if (task->is_into_udp || task->form == IN_UDP)
		add_tunnel(fib);
	if (task->form != UNTAGGED)
		add_labels(fib);
	add_routes(fib, 0);
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

static const struct task *task_named(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(tasks); i++)
		if (!strcmp(tasks[i].name, name))
			return &tasks[i];
	return NULL;
}

int main(int argc, char **argv)
{
	char *path = getenv("ONECORE_STATS");
	struct tap_settings settings;
	pthread_t thread;

	task = argc == 2 ? task_named(argv[1]) : NULL;
	if (!task)
		fail("expected a task: vlans-1-vrf, vlans-16-vrfs, handover, ipv4, mpls-swap, "
		     "mpls-udp-encap or mpls-udp-decap");
	signal(SIGINT, end);
	signal(SIGTERM, end);
	tap_settings_default(&settings);
	struct rcu *rcu = rcu_create(1, NULL);
	struct fib_live live = {.rcu = rcu};
	if (!rcu || tap_worker_make(&taps, settings.class))
		fail("not enough memory");
	open_devices();
	make_frames();
	if (task->hands)
		make_hands();
	struct fib *fib = make_table();
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
