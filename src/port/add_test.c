// Ports that come and go while workers poll: net_null devices, workers on the first two cores, and
// grace periods of the workers' own quiescent states.
#include "port/port.h"

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <rte_rcu_qsbr.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEADY, ADDED, ROUNDS = 50, N_WORKERS = 2, BURST = 32 };

struct poller {
	struct port_worker *worker;
	unsigned id;
	bool has_ended; // atomic: ThreadSanitizer does not see how DPDK joins its threads
	uint64_t n_received[PORT_MAX];
};

static struct port_table_settings settings = {
	.n_ports = 1,
	.ports = {{.name = "steady", .device = "net_null0"}},
	.huge = PORT_HUGE_NEVER,
	.may_grow = true,
};
static struct port_table *ports;
static struct poller pollers[N_WORKERS];
static uint8_t qsbr_room[1024] LINE_ALIGNED;
static struct rte_rcu_qsbr *const qsbr = (struct rte_rcu_qsbr *)qsbr_room;
static bool stop;

// Receives from each queue, sends on the same port, and reports a quiescent state.
static int poll_queues(void *arg)
{
	struct poller *poller = arg;
	struct rte_mbuf *mbuf[BURST];

	rte_rcu_qsbr_thread_online(qsbr, poller->id);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		for (unsigned q = 0, n = port_n_queues(poller->worker); q < n; q++) {
			const struct port_queue *queue = &poller->worker->queues[q];

			if (port_is_closed(queue))
				continue;
			unsigned port = queue->port;
			uint16_t got = port_rx(queue, mbuf, BURST), sent = 0;

			if (port_is_up(&port_states(ports)[port]))
				sent = port_tx(&poller->worker->out[port], mbuf, got);
			rte_pktmbuf_free_bulk(mbuf + sent, got - sent);
			stats_add(&poller->n_received[port], got);
		}
		rte_rcu_qsbr_quiescent(qsbr, poller->id);
	}
	rte_rcu_qsbr_thread_offline(qsbr, poller->id);
	__atomic_store_n(&poller->has_ended, true, __ATOMIC_RELEASE);
	return 0;
}

static uint64_t count_received(unsigned port)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < port_n_workers(ports); i++)
		n += stats_read(&pollers[i].n_received[port]);
	return n;
}

static void wait_for_more(unsigned port)
{
	uint64_t before = count_received(port);

	while (count_received(port) == before)
		usleep(100);
}

static uint64_t start_grace(void *arg)
{
	return rte_rcu_qsbr_start(qsbr);
}

static bool has_passed(void *arg, uint64_t token)
{
	return rte_rcu_qsbr_check(qsbr, token, false) == 1;
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

static void watch_pools(const struct rte_mempool *pool)
{
	struct rte_mempool_ops *ops = rte_mempool_get_ops(pool->ops_index);

	give_back = ops->enqueue;
	take_out = ops->dequeue;
	ops->enqueue = tell_and_give_back;
	ops->dequeue = take_out_and_tell;
}
#else
static void watch_pools(const struct rte_mempool *pool)
{
}
#endif

static void choose_cores(void)
{
	cpu_set_t allowed;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int core = 0; core < CPU_SETSIZE && settings.n_workers < N_WORKERS; core++)
		if (CPU_ISSET(core, &allowed))
			settings.workers[settings.n_workers++].core = core;
}

static int open_ports(void **state)
{
	void *args[N_WORKERS];
	struct error error = {""};

	log_start("add_test");
	choose_cores();
	if (port_open(&ports, &settings, &error) || port_start(ports, &error))
		fail_msg("%s", error.text);
	watch_pools(port_pool(ports, STEADY));
	assert_true(rte_rcu_qsbr_get_memsize(N_WORKERS) <= sizeof(qsbr_room));
	assert_int_equal(rte_rcu_qsbr_init(qsbr, N_WORKERS), 0);
	for (unsigned i = 0; i < port_n_workers(ports); i++) {
		rte_rcu_qsbr_thread_register(qsbr, i);
		pollers[i] = (struct poller){.worker = port_worker(ports, i), .id = i};
		args[i] = &pollers[i];
	}
	port_set_grace(ports, &(struct port_grace){start_grace, has_passed, NULL});
	if (port_workers_launch(ports, poll_queues, args, &error))
		fail_msg("%s", error.text);
	wait_for_more(STEADY);
	return 0;
}

static int close_ports(void **state)
{
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	port_workers_join(ports);
	for (unsigned i = 0; i < port_n_workers(ports); i++)
		assert_true(__atomic_load_n(&pollers[i].has_ended, __ATOMIC_ACQUIRE));
	port_close(ports);
	return 0;
}

static void add(unsigned port, const char *name, const char *device)
{
	struct port_settings added = {.n_rx_descriptors = 256, .n_tx_descriptors = 256};
	struct error error = {""};

	snprintf(added.name, sizeof(added.name), "%s", name);
	snprintf(added.device, sizeof(added.device), "%s", device);
	if (port_add(ports, port, &added, &error))
		fail_msg("%s", error.text);
	port_begin(ports, port);
}

static void workers_poll_a_port_until_it_is_removed(void **state)
{
	struct port_info info;

	add(ADDED, "extra", "net_null1");
	port_info(ports, ADDED, &info);
	assert_string_equal(info.name, "extra");
	assert_true(info.device_present && info.link_up);
	wait_for_more(ADDED);
	port_remove(ports, ADDED);
	uint64_t n = count_received(ADDED);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_null1", &(uint16_t){0}), -ENODEV);
	wait_for_more(STEADY);
	assert_int_equal(count_received(ADDED), n);
	assert_false(port_is_up(&port_states(ports)[ADDED]));
}

// A place in a worker's list, the index, the pool and the name are used again.
static void comes_and_goes_often_beside_a_port_that_loses_nothing(void **state)
{
	struct port_memory first, last;

	for (unsigned round = 0; round < ROUNDS; round++) {
		add(ADDED, "extra", "net_null1");
		wait_for_more(ADDED);
		port_poll(ports);
		port_memory(ports, round ? &last : &first);
		port_remove(ports, ADDED);
		wait_for_more(STEADY);
	}
	assert_int_equal(last.n_mbufs, first.n_mbufs);
	for (unsigned i = 0; i < port_n_workers(ports); i++)
		assert_true(port_n_queues(port_worker(ports, i)) <= 2);
}

static void indices_between_others_may_be_free(void **state)
{
	add(1, "one", "net_null1");
	add(2, "two", "net_null2");
	port_remove(ports, 1);
	port_poll(ports);
	wait_for_more(2);
	assert_int_equal(port_next(port_settings_of(ports), 1), 2);
	add(1, "three", "net_null3");
	wait_for_more(1);
	port_remove(ports, 2);
	port_remove(ports, 1);
}

struct refusal {
	const char *name, *device;
	uint16_t mtu, n_queues;
	const char *words;
};

// Each leaves the other ports and the plan as they were.
static void refuses_in_one_sentence_and_changes_nothing(void **state)
{
	static const struct refusal rows[] = {
		{"steady", "net_null1", 0, 0,
			"ports[1] (steady): ports[0] already has this name; give each port its "
			"own"},
		{"extra", "net_null0", 0, 0,
			"ports[1] (extra): device net_null0 is already ports[0] (steady); give "
			"each port its own device"},
		{"extra", "eth0", 0, 0, "neither a PCI address"},
		{"extra", "net_nothing1", 0, 0, "DPDK cannot attach its device net_nothing1"},
		{"extra", "net_af_packet1,iface=no-such0", 0, 0,
			"ports[1] (extra): interface no-such0 does not exist in this network "
			"namespace; `ip link` lists those that do"},
		{"extra", "ffff:1f:1f.7", 0, 0, "DPDK was started without PCI devices"},
		{"extra", "net_null1", 67, 0,
			"ports[1] (extra): mtu 67 is out of range; expected 68 to 9600"},
		{"extra", "net_null1", 9000, 0,
			"ports[1] (extra): mtu 9000 exceeds the buffers allocated at start (mtu "
			"at most "},
		{"extra", "net_null1", 0, 65, "65 queues; a port can have at most 64"},
	};
	struct error error;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct port_settings added = {.mtu = rows[i].mtu, .n_queues = rows[i].n_queues};

		snprintf(added.name, sizeof(added.name), "%s", rows[i].name);
		snprintf(added.device, sizeof(added.device), "%s", rows[i].device);
		assert_true(port_add(ports, ADDED, &added, &error) < 0);
		if (!strstr(error.text, rows[i].words))
			fail_msg("%s: %s", rows[i].words, error.text);
		assert_false(port_is_configured(port_settings_of(ports), ADDED));
		assert_int_equal(rte_eth_dev_get_port_by_name("net_null1", &(uint16_t){0}),
			-ENODEV);
	}
	add(ADDED, "extra", "net_null1");
	wait_for_more(ADDED);
	port_remove(ports, ADDED);
}

// net_null has up to 1024 queues in DPDK, but the file's limit for a port is 64.
static void refuses_more_queues_than_workers_can_poll(void **state)
{
	struct port_settings added = {.n_queues = 64, .n_rx_descriptors = 64};
	unsigned n = 0;
	int err = 0;
	struct error error = {""};

	for (unsigned port = 1; !err; port++) {
		snprintf(added.name, sizeof(added.name), "many%u", port);
		snprintf(added.device, sizeof(added.device), "net_null%u", port);
		err = port_add(ports, port, &added, &error);
		n += !err;
	}
	assert_int_equal(err, -E2BIG);
	assert_non_null(strstr(error.text, "more than 256 queues on one worker; add workers"));
	assert_int_equal(n, (PORT_WORKER_QUEUES * port_n_workers(ports) - 1) / 64);
	for (unsigned port = 1; port <= n; port++)
		port_remove(ports, port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_poll_a_port_until_it_is_removed),
		cmocka_unit_test(comes_and_goes_often_beside_a_port_that_loses_nothing),
		cmocka_unit_test(indices_between_others_may_be_free),
		cmocka_unit_test(refuses_in_one_sentence_and_changes_nothing),
		cmocka_unit_test(refuses_more_queues_than_workers_can_poll),
	};

	return cmocka_run_group_tests(tests, open_ports, close_ports);
}
