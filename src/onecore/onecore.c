// A plugin for any DPDK program (EAL option -d) that measures the program's own cost per packet on
// one core, without a NIC or a second core. The public Rx callback turns the mbufs "received" by a
// net_null port into real frames of 64 bytes (114 in VXLAN), with destinations (or addresses and
// ports, or MAC addresses) from a table, and with the flags that a NIC would set. Frames sent by
// the program on a net_null port are counted and freed by it. The callback runs on the program's
// workers; a separate thread waits for the port, then writes counters ten times a second.
//
//    ONECORE_TABLE   the table of destinations (see table.h); required
//    ONECORE_SOURCE  number of the receiving port (0)
//    ONECORE_BACK    number of another receiving port, with the same frames on their way back; for
//                    tables of MAC addresses (none)
//    ONECORE_BACK_UNTIL  a path: the way back ends as soon as something is there (it does not end)
//    ONECORE_OUTER   a file of headers: frames on their way back, or all if there is no way back,
//                    are in VXLAN (see table_wrap)
//    ONECORE_MAC     destination MAC address of the frames (from the table)
//    ONECORE_BURST   maximum number of frames per poll (as requested by the program)
//    ONECORE_RING    descriptors: frames arrive at a rate, those that find the ring full are lost,
//                    and the rate is adapted to the zero-loss rate (see arrivals.h)
//    ONECORE_STAMP   id: stamp the frames of an IPv4 table for dl3gen's sink, 64 bytes with FCS;
//                    those of queue q belong to stream id + q
//    ONECORE_STATS   file that always contains one line: time_ns core_ns tsc_hz received sent;
//                    core_ns is the CPU time of the program, or with a ring that of the thread
//                    that polls queue 0
#include "onecore/arrivals.h"
#include "onecore/configured.h"
#include "onecore/stamped.h"
#include "onecore/table.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

enum {
	MAX_QUEUES = 64,
	PREFETCH_AHEAD = 4, // in frames; the mbuf's cache line is then cached when it is written
	WAIT_FOR_PORT_US = 1000,
	WRITE_STATS_US = 100 * 1000,
	MOST_DESCRIPTORS = 1 << 20,
};

// State of one receive queue; written by the worker that polls it.
struct feed {
	const struct table *table;
	uint32_t next;      // index of the next frame's record
	uint16_t max_burst; // frames per poll
	uint64_t received;  // frames returned; read by the statistics thread
	uint8_t stream;     // id, if frames are stamped
	struct arrivals arrivals;
} __rte_cache_aligned;

static struct table table, table_back;
static struct feed feeds[MAX_QUEUES], feeds_back[MAX_QUEUES];
static struct stamped stamped;
static bool is_stamped;
static uint32_t ring;                                     // 0: frames are always available
static clockid_t worker_clock = CLOCK_PROCESS_CPUTIME_ID; // with a ring: clock of the thread that
                                                          // polls queue 0
static bool has_worker_clock;
static uint16_t source_port;
static long back_port; // -1: none
static const char *back_until;
static bool has_back_ended;
static const char *stats_path;

static long number_from(const char *name, long absent)
{
	const char *text = getenv(name);

	return text && *text ? strtol(text, NULL, 0) : absent;
}

static void mark(struct rte_mbuf *m, uint16_t port, const struct table *from)
{
	uint16_t bytes = is_stamped ? STAMPED_FRAME_BYTES : table_bytes(from);

	m->packet_type = RTE_PTYPE_L2_ETHER | RTE_PTYPE_L4_UDP;
	m->packet_type |= from->is_ip6 && !from->has_outer ? RTE_PTYPE_L3_IPV6 : RTE_PTYPE_L3_IPV4;
	m->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	m->data_len = bytes;
	m->pkt_len = bytes;
	m->port = port;
}

// Frees unmodified mbufs of net_null's pool in the cheapest way, because the cost is charged to the
// program.
static void give_back(struct rte_mbuf *packets[], uint16_t n)
{
	rte_mempool_put_bulk(packets[0]->pool, (void **)packets, n);
}

// A program that uses a ring may run other threads on other cores, so its total CPU time is not the
// worker's. Only the thread of queue 0 is known.
static void know_worker_clock(void)
{
	clockid_t clock;

	if (!pthread_getcpuclockid(pthread_self(), &clock))
		__atomic_store_n(&worker_clock, clock, __ATOMIC_RELAXED);
	has_worker_clock = true;
}

// The Rx callback of ethdev: turns the n mbufs of net_null into frames. Those above the feed's
// limit, or not arrived yet, are returned to their pool.
static uint16_t fill(uint16_t port, uint16_t queue, struct rte_mbuf *packets[], uint16_t n,
	uint16_t max, void *arg)
{
	struct feed *feed = arg;
	uint16_t most = RTE_MIN(n, feed->max_burst);

	if (ring && !has_worker_clock && queue == 0)
		know_worker_clock();
	if (feed->table == &table_back && __atomic_load_n(&has_back_ended, __ATOMIC_RELAXED))
		most = 0;
	if (ring)
		most = arrivals_take(&feed->arrivals, rte_rdtsc(), most);
	if (n > most) {
		give_back(packets + most, n - most);
		n = most;
	}
	table_prefetch(feed->table, feed->next + n, n); // for the next poll
	for (uint16_t i = 0; i < n; i++) {
		if (i + PREFETCH_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(packets[i + PREFETCH_AHEAD], void *));
		table_write(feed->table, feed->next + i, rte_pktmbuf_mtod(packets[i], uint8_t *));
		mark(packets[i], port, feed->table);
	}
	feed->next += n;
	__atomic_store_n(&feed->received, feed->received + n, __ATOMIC_RELAXED);
	return n;
}

// Same as fill, with stamps: all frames of a poll are due now.
static uint16_t fill_stamped(uint16_t port, uint16_t queue, struct rte_mbuf *packets[], uint16_t n,
	uint16_t max, void *arg)
{
	struct feed *feed = arg;
	uint64_t now = rte_rdtsc();
	struct stamp stamp = {STAMP_MAGIC, feed->stream, feed->received, now, now};

	n = fill(port, queue, packets, n, max, arg);
	for (uint16_t i = 0; i < n; i++, stamp.sequence++)
		stamped_write(&stamped, &stamp, rte_pktmbuf_mtod(packets[i], uint8_t *));
	return n;
}

// The number of receive queues of the port, once the program has set up all of them.
static uint16_t queues_ready(uint16_t port)
{
	struct rte_eth_dev_info device;
	struct rte_eth_rxq_info queue;

	if (!port_is_configured(port) || rte_eth_dev_info_get(port, &device))
		return 0;
	for (uint16_t q = 0; q < device.nb_rx_queues; q++)
		if (rte_eth_rx_queue_info_get(port, q, &queue) == -EINVAL) // not set up yet
			return 0;
	return RTE_MIN(device.nb_rx_queues, MAX_QUEUES);
}

// Waits until the port is ready; then its queues receive the frames of `from`.
static void install(uint16_t port, const struct table *from, struct feed feed[])
{
	rte_rx_callback_fn make = is_stamped ? fill_stamped : fill;
	uint16_t n_queues;

	while (!(n_queues = queues_ready(port)))
		usleep(WAIT_FOR_PORT_US);
	for (uint16_t q = 0; q < n_queues; q++) {
		arrivals_begin(&feed[q].arrivals, ring, rte_get_tsc_hz(), rte_rdtsc());
		feed[q].table = from;
		feed[q].max_burst = number_from("ONECORE_BURST", UINT16_MAX);
		feed[q].stream = number_from("ONECORE_STAMP", 0) + q;
		feed[q].next = q * (from->mask / n_queues);
		if (!rte_eth_add_rx_callback(port, q, make, &feed[q]))
			fprintf(stderr, "onecore: no Rx callback on port %u, queue %u\n", port, q);
	}
}

static uint64_t count_received(void)
{
	uint64_t n = 0;

	for (int q = 0; q < MAX_QUEUES; q++)
		n += __atomic_load_n(&feeds[q].received, __ATOMIC_RELAXED) +
		     __atomic_load_n(&feeds_back[q].received, __ATOMIC_RELAXED);
	return n;
}

static uint64_t count_sent(void)
{
	struct rte_eth_stats stats;
	uint64_t n = 0;
	uint16_t port;

	RTE_ETH_FOREACH_DEV (port)
		if (!rte_eth_stats_get(port, &stats))
			n += stats.opackets;
	return n;
}

static unsigned long long read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void write_stats(int file)
{
	unsigned long long time_ns = read_clock(CLOCK_MONOTONIC);
	unsigned long long core_ns = read_clock(__atomic_load_n(&worker_clock, __ATOMIC_RELAXED));
	unsigned long long sent = count_sent(), received = count_received(),
			   tsc_hz = rte_get_tsc_hz();
	char line[128];

	// Fixed width: the file is overwritten by a single write, so that a reader never sees a
	// mixture of lengths.
	int n = snprintf(line, sizeof(line), "%020llu %020llu %020llu %020llu %020llu\n", time_ns,
		core_ns, tsc_hz, received, sent);
	if (pwrite(file, line, n, 0) != n)
		fprintf(stderr, "onecore: cannot write %s: %s\n", stats_path, strerror(errno));
}

static void *watch(void *arg)
{
	install(source_port, &table, feeds);
	if (back_port >= 0)
		install(back_port, &table_back, feeds_back);
	if (!stats_path)
		return NULL;
	int file = open(stats_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (file < 0) {
		fprintf(stderr, "onecore: cannot write %s: %s\n", stats_path, strerror(errno));
		return NULL;
	}
	for (;; usleep(WRITE_STATS_US)) {
		if (back_until && access(back_until, F_OK) == 0)
			__atomic_store_n(&has_back_ended, true, __ATOMIC_RELAXED);
		write_stats(file);
	}
}

static int load(const char *path)
{
	struct rte_ether_addr mac;
	const char *text = getenv("ONECORE_MAC");

	if (text && rte_ether_unformat_addr(text, &mac)) {
		fprintf(stderr, "onecore: ONECORE_MAC is '%s', expected a MAC address\n", text);
		return -EINVAL;
	}
	int error = table_load(&table, path, text ? mac.addr_bytes : NULL);
	if (error == -EINVAL)
		fprintf(stderr, "onecore: %s is not a table of destinations\n", path);
	else if (error)
		fprintf(stderr, "onecore: cannot read %s: %s\n", path, strerror(-error));
	return error;
}

static int prepare_way_back(const char *path)
{
	back_port = number_from("ONECORE_BACK", -1);
	if (back_port >= 0 && !table.has_macs) {
		fprintf(stderr,
			"onecore: a way back requires a table of MAC addresses; %s has none\n",
			path);
		return -EINVAL;
	}
	table_turn(&table, &table_back);
	back_until = getenv("ONECORE_BACK_UNTIL");
	return 0;
}

static int prepare_outer(void)
{
	const char *path = getenv("ONECORE_OUTER");
	int error = !path        ? 0
	            : is_stamped ? -ENOTSUP
	                         : table_wrap(back_port >= 0 ? &table_back : &table, path);

	if (error)
		fprintf(stderr, "onecore: %s has no outer headers: %s\n", path, strerror(-error));
	return error;
}

static int prepare_stamps(const char *path)
{
	if (!getenv("ONECORE_STAMP"))
		return 0;
	if (stamped_prepare(&stamped, &table)) {
		fprintf(stderr,
			"onecore: stamps require a table of IPv4 destinations; %s has none\n",
			path);
		return -EINVAL;
	}
	is_stamped = true;
	return 0;
}

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("ONECORE_TABLE");
	pthread_t thread;

	if (!path) {
		fprintf(stderr, "onecore: ONECORE_TABLE is not set; the ports remain unchanged\n");
		return;
	}
	if (load(path) || prepare_stamps(path) || prepare_way_back(path) || prepare_outer())
		return;
	source_port = number_from("ONECORE_SOURCE", 0);
	ring = RTE_MAX(0, RTE_MIN(number_from("ONECORE_RING", 0), MOST_DESCRIPTORS));
	stats_path = getenv("ONECORE_STATS");
	if (pthread_create(&thread, NULL, watch, NULL))
		fprintf(stderr, "onecore: cannot start a thread; the ports remain unchanged\n");
	else
		pthread_detach(thread);
}
