// Ports, TAP interfaces and frames for tests.
#include "tap/fixture.h"

#include "base/clock.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MARK_AT = 40 };

struct port_table_settings port_settings = {
	.n_ports = 2,
	.ports = {{.name = "tw0", .device = "net_null0"}, {.name = "tw1", .device = "net_null1"}},
	.n_workers = 1,
	.huge = PORT_HUGE_NEVER,
};
struct tap_settings settings;
struct port_table *ports;
struct tap_table *taps;
static struct stats_worker worker_stat;
char namespace_name[TAP_NAME_MAX];
uint32_t n_mbufs_free;

int run(const char *format, ...)
{
	char command[512];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return system(command);
}

uint32_t count_free(void)
{
	struct port_memory memory;

	port_memory(ports, &memory);
	return memory.n_mbufs_free;
}

#ifdef __SANITIZE_THREAD__
// Mbufs move between threads through mempools, whose ordering ThreadSanitizer cannot see inside
// DPDK's library, so it is annotated here.
void __tsan_acquire(void *address);
void __tsan_release(void *address);
static rte_mempool_enqueue_t give_back;
static rte_mempool_dequeue_t take_out;

static int tell_and_give_back(struct rte_mempool *pool, void *const *objects, unsigned n)
{
	__tsan_release(pool);
	return give_back(pool, objects, n);
}

static int take_out_and_tell(struct rte_mempool *pool, void **objects, unsigned n)
{
	int err = take_out(pool, objects, n);

	__tsan_acquire(pool);
	return err;
}

static void watch_pool(struct rte_mempool *pool)
{
	struct rte_mempool_ops *ops = rte_mempool_get_ops(pool->ops_index);

	give_back = ops->enqueue;
	take_out = ops->dequeue;
	ops->enqueue = tell_and_give_back;
	ops->dequeue = take_out_and_tell;
}
#else
static void watch_pool(struct rte_mempool *pool)
{
}
#endif

int open_ports(void **state)
{
	struct error error = {""};

	log_start("tap_test");
	tap_settings_default(&settings);
	port_settings.n_lent_mbufs = tap_n_mbufs(&settings);
	if (port_open(&ports, &port_settings, &error) || port_start(ports, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return -1;
	}
	watch_pool(port_pool(ports, 0));
	n_mbufs_free = count_free();
	return 0;
}

int close_ports(void **state)
{
	port_close(ports);
	return 0;
}

void open_module(void)
{
	struct error error = {""};

	if (tap_open(&taps, &settings, ports, &error) != 0 || tap_start(taps, &error) != 0)
		fail_msg("%s", error.text);
}

void close_module(void)
{
	tap_close(taps);
	taps = NULL;
}

// A namespace, a holder and settings for each test.
int begin(void **state)
{
	static unsigned n;

	tap_settings_default(&settings);
	memset(&worker_stat, 0, sizeof(worker_stat));
	snprintf(namespace_name, sizeof(namespace_name), "tap-test-%d-%u", getpid(), n++);
	strcpy(settings.own_namespace, namespace_name);
	snprintf(settings.hold_socket, sizeof(settings.hold_socket), "/run/%s.hold",
		namespace_name);
	settings.keep = false;
	for (unsigned c = 0; c < N_CLASSES; c++)
		settings.class[c].rate = HIGH_RATE;
	return 0;
}

int end(void **state)
{
	if (taps) {
		for (unsigned p = 0; p < taps->n_taps; p++)
			taps_release(taps, p);
		close_module();
	}
	run("ip netns del %s 2>/dev/null", namespace_name);
	return 0;
}

struct netdev read_tap(unsigned port)
{
	struct netdev found = {0};

	assert_int_equal(netdev_read(&taps->sockets, port_settings.ports[port].name, &found), 0);
	return found;
}

struct wanted_socket {
	int index;
};

static int open_packet_socket(void *arg)
{
	const struct wanted_socket *wanted = arg;
	struct timeval patience = {.tv_sec = 2};
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = wanted->index};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

int listen_to_tap(unsigned port)
{
	return tap_run_in_netns(taps, open_packet_socket,
		&(struct wanted_socket){tap_ifindex(taps, port)}, NULL);
}

void fill_frame(uint8_t *bytes, unsigned mark)
{
	static const uint8_t header[14] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5};

	memset(bytes, 0x5a, FRAME_BYTES);
	memcpy(bytes, header, sizeof(header));
	memcpy(bytes + MARK_AT, &mark, sizeof(mark));
}

unsigned mark_of(const uint8_t *bytes)
{
	return load32(bytes + MARK_AT);
}

bool has_mark(const uint8_t *bytes)
{
	return load16(bytes + 12) == htons(0x88b5);
}

bool punt(unsigned port, enum verdict verdict, unsigned mark)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(port_pool(ports, port));

	assert_non_null(mbuf);
	fill_frame(rte_pktmbuf_mtod(mbuf, uint8_t *), mark);
	mbuf->data_len = mbuf->pkt_len = FRAME_BYTES;
	if (tap_punt(tap_worker(taps, 0), &worker_stat, mbuf, verdict | port << TAP_PORT_SHIFT))
		return true;
	rte_pktmbuf_free(mbuf);
	return false;
}

unsigned receive_mark(int fd)
{
	uint8_t bytes[2048];

	for (;;) {
		ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

		if (n < 0)
			fail_msg("no frame came: %s", strerror(errno));
		if (n == FRAME_BYTES && has_mark(bytes))
			return mark_of(bytes);
	}
}

uint64_t sum_tap(enum verdict what)
{
	struct stats_account account = {0};

	stats_add_tap(&account, tap_stats(taps));
	return what == VERDICT_FORWARD ? account.punted : account.verdict[what];
}

uint64_t settled(void)
{
	return sum_tap(VERDICT_FORWARD) + sum_tap(VERDICT_PUNT_OVER_LIMIT) +
	       sum_tap(VERDICT_TAP_REFUSED);
}

static uint64_t count_handed(void)
{
	uint64_t n = 0;

	for (unsigned v = 0; v < N_VERDICTS; v++)
		n += worker_stat.handed[v];
	return n;
}

void settle(void)
{
	uint64_t start_ns = clock_now_ns();
	struct rte_mbuf *mbufs[32];

	while (settled() < count_handed() && clock_now_ns() - start_ns < wait_ns) {
		rte_pktmbuf_free_bulk(mbufs, tap_take(tap_worker(taps, 0), mbufs, 32));
		usleep(100);
	}
	assert_int_equal(settled(), count_handed());
}

// Linux drops frames to a TAP interface until it has seen the carrier, which takes it a moment.
static void wait_until_up(const char *name)
{
	uint64_t start_ns = clock_now_ns();

	while (run("ip -n %s link show dev %s | grep -q 'state UP'", namespace_name, name) != 0) {
		assert_true(clock_now_ns() - start_ns < wait_ns);
		usleep(1000);
	}
}

void bring_carrier(void)
{
	port_poll(ports);
	tap_poll(taps);
	wait_until_up("tw0");
}
