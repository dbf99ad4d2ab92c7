// Ports on virtual devices: one EAL, workers on the first two cores, frames that go from a file
// through a ring into another file while a net_null keeps its worker busy.
#include "port/port.h"

#include "base/bits.h"
#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	FILE_PORT,
	RING_PORT,
	NULL_PORT,
	N_PORTS,
	N_FRAMES = 100,
	FRAME_BYTES = 100,
	RUN_NS_MAX = 2000000000
};

struct mover {
	struct port_worker *worker;
	const bool *stop;
	uint64_t n_received[N_PORTS], n_sent[N_PORTS];
	int core_seen;
};

static struct port_table_settings settings;
static struct port_table *port_table;
static struct mover movers[STATS_MAX_WORKERS];
static bool stop;
static char folder[] = "/tmp/port_test_XXXXXX";

static void write_frames(const char *path)
{
	static const uint32_t header[6] = {0xa1b2c3d4, 4 << 16 | 2, 0, 0, 65535, 1};
	static const uint32_t record[4] = {0, 0, FRAME_BYTES, FRAME_BYTES};
	uint8_t frame[FRAME_BYTES] = {0};
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fwrite(header, sizeof(header), 1, file);
	for (unsigned i = 0; i < N_FRAMES; i++) {
		frame[20] = i;
		fwrite(record, sizeof(record), 1, file);
		fwrite(frame, sizeof(frame), 1, file);
	}
	fclose(file);
}

static void add_port(const char *name, const char *format, ...)
{
	struct port_settings *port = &settings.ports[settings.n_ports++];
	va_list args;

	va_start(args, format);
	vsnprintf(port->device, sizeof(port->device), format, args);
	va_end(args);
	snprintf(port->name, sizeof(port->name), "%s", name);
	port->n_rx_descriptors = port->n_tx_descriptors = 256;
}

static void fill_settings(void)
{
	cpu_set_t allowed;

	add_port("file", "net_pcap0,rx_pcap=%s/in.pcap,tx_pcap=%s/out.pcap", folder, folder);
	add_port("ring", "net_ring0");
	add_port("null", "net_null0,size=64");
	settings.huge = PORT_HUGE_NEVER;
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int core = 0; core < CPU_SETSIZE && settings.n_workers < 2; core++)
		if (CPU_ISSET(core, &allowed))
			settings.workers[settings.n_workers++].core = core;
}

// file -> ring -> file, null -> null.
static int move(void *arg)
{
	static const uint8_t out_of[N_PORTS] = {RING_PORT, FILE_PORT, NULL_PORT};
	struct mover *m = arg;
	struct rte_mbuf *mbuf[64];

	m->core_seen = sched_getcpu();
	while (!__atomic_load_n(m->stop, __ATOMIC_RELAXED)) {
		for (unsigned q = 0; q < m->worker->n_queues; q++) {
			const struct port_queue *queue = &m->worker->queues[q];
			unsigned out = out_of[queue->port];
			uint16_t n = port_rx(queue, mbuf, m->worker->burst);
			uint16_t sent = port_tx(&m->worker->out[out], mbuf, n);

			stats_add(&m->n_received[queue->port], n);
			stats_add(&m->n_sent[out], sent);
			rte_pktmbuf_free_bulk(mbuf + sent, n - sent);
		}
	}
	return 0;
}

static uint64_t count_sent(unsigned port)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < port_n_workers(port_table); i++)
		n += stats_read(&movers[i].n_sent[port]);
	return n;
}

static void run_workers(void)
{
	void *args[STATS_MAX_WORKERS];
	struct error error = {0};
	uint64_t start_ns = clock_now_ns();

	for (unsigned i = 0; i < port_n_workers(port_table); i++) {
		movers[i] = (struct mover){.worker = port_worker(port_table, i), .stop = &stop};
		args[i] = &movers[i];
	}
	assert_int_equal(port_start(port_table, &error), 0);
	if (port_workers_launch(port_table, move, args, &error) != 0)
		fail_msg("%s", error.text);
	assert_int_equal(port_workers_launch(port_table, move, args, &error), -EBUSY);
	while (clock_now_ns() - start_ns < RUN_NS_MAX &&
		(count_sent(FILE_PORT) < N_FRAMES || !count_sent(NULL_PORT)))
		usleep(10000);
	port_poll(port_table);
	assert_true(port_workers_alive(port_table));
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	port_workers_join(port_table);
	assert_false(port_workers_alive(port_table));
}

static int open_module(void **state)
{
	char path[64];
	struct error error = {0};

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/in.pcap", folder);
	write_frames(path);
	fill_settings();
	if (port_open(&port_table, &settings, &error) != 0)
		fail_msg("%s", error.text);
	run_workers();
	return 0;
}

static int remove_files(void **state)
{
	char path[64];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s.pcap", folder, i ? "out" : "in");
		unlink(path);
	}
	return rmdir(folder);
}

static void carries_every_frame_through_ring_and_workers(void **state)
{
	assert_int_equal(count_sent(RING_PORT), N_FRAMES);
	assert_int_equal(count_sent(FILE_PORT), N_FRAMES);
	assert_true(count_sent(NULL_PORT) > 0);
}

static void runs_each_worker_on_its_core(void **state)
{
	assert_int_equal(port_n_workers(port_table), settings.n_workers);
	for (unsigned i = 0; i < port_n_workers(port_table); i++) {
		assert_int_equal(movers[i].core_seen, settings.workers[i].core);
		assert_int_equal(movers[i].worker->core, settings.workers[i].core);
	}
}

static void numbers_devices_in_the_order_of_the_file(void **state)
{
	static const char *const drivers[] = {"net_pcap", "net_ring", "net_null"};
	struct port_info info;

	for (unsigned i = 0; i < N_PORTS; i++) {
		port_info(port_table, i, &info);
		assert_int_equal(info.device_id, i);
		assert_string_equal(info.driver, drivers[i]);
		assert_string_equal(info.name, settings.ports[i].name);
		assert_int_equal(info.mtu, PORT_DEFAULT_MTU);
	}
}

static void counts_devices_without_a_link_as_up(void **state)
{
	for (unsigned i = 0; i < N_PORTS; i++)
		assert_true(port_states(port_table)[i].up);
}

static void lays_buffers_at_an_odd_number_of_cache_lines(void **state)
{
	struct port_memory memory;

	port_memory(port_table, &memory);
	assert_false(memory.huge);
	assert_int_equal(memory.mbuf_bytes, 2368);
	assert_true(memory.n_mbufs_free <= memory.n_mbufs);
	assert_true(memory.planned_mib > 0);
}

static void changes_what_may_change_while_running(void **state)
{
	struct port_settings next = settings.ports[NULL_PORT];
	const struct port_state *port_state = &port_states(port_table)[NULL_PORT];
	struct port_info info;
	struct error error;

	next.mtu = 1400;
	next.pass_martians = next.has_peer = true;
	next.peer = (struct wire_mac){{2, 1, 2, 3, 4, 5}};
	assert_int_equal(port_change(port_table, NULL_PORT, &next, &error), 0);
	port_info(port_table, NULL_PORT, &info);
	assert_int_equal(info.mtu, 1400);
	assert_true(port_state->pass_martians && port_state->has_peer);
	assert_memory_equal(port_state->peer, next.peer.bytes, 6);
	next.mtu = 9000;
	assert_true(port_change(port_table, NULL_PORT, &next, &error) < 0);
	assert_non_null(strstr(error.text, "restart to apply it"));
	port_info(port_table, NULL_PORT, &info);
	assert_int_equal(info.mtu, 1400);
}

static void is_down_where_it_was_set_down_whatever_its_link(void **state)
{
	static const unsigned ports[] = {RING_PORT, NULL_PORT};
	struct error error;

	for (unsigned i = 0; i < ARRAY_LEN(ports); i++) {
		const struct port_state *port_state = &port_states(port_table)[ports[i]];

		assert_int_equal(port_set_admin(port_table, ports[i], false, &error), 0);
		assert_false(port_state->up);
		port_poll(port_table);
		assert_false(port_state->up);
		assert_int_equal(port_set_admin(port_table, ports[i], true, &error), 0);
		port_poll(port_table);
		assert_true(port_state->up && port_has_carrier(port_table, ports[i]));
	}
}

static void takes_a_new_mac_address_and_leaves_its_neighbours_in_the_word(void **state)
{
	static const struct wire_mac mac = {{2, 6, 6, 6, 6, 6}}, group = {{1, 6, 6, 6, 6, 6}};
	const struct port_state *port_state = &port_states(port_table)[NULL_PORT];
	bool up = port_state->up, pass_martians = port_state->pass_martians;
	struct port_info info;
	struct error error;

	assert_int_equal(port_set_mac(port_table, NULL_PORT, &mac, &error), 0);
	assert_true(port_set_mac(port_table, NULL_PORT, &group, &error) < 0);
	assert_non_null(strstr(error.text, "01:06:06:06:06:06"));
	port_info(port_table, NULL_PORT, &info);
	assert_true(wire_mac_equal(&info.mac, &mac));
	assert_memory_equal(port_state->mac, mac.bytes, sizeof(port_state->mac));
	assert_true(port_state->up == up && port_state->pass_martians == pass_martians);
}

static void takes_an_mtu_that_fits_its_buffers(void **state)
{
	struct port_info info;
	struct error error;

	assert_int_equal(port_set_mtu(port_table, NULL_PORT, 1280, &error), 0);
	assert_true(port_set_mtu(port_table, NULL_PORT, 9000, &error) < 0);
	assert_non_null(strstr(error.text, "mtu 9000"));
	port_info(port_table, NULL_PORT, &info);
	assert_int_equal(info.mtu, 1280);
}

// Would take a minute without the wakeup.
static void is_woken_by_who_put_something_down(void **state)
{
	struct port_wait *wait = port_worker(port_table, 0)->wait;
	uint64_t before_ns = clock_now_ns();

	assert_true(port_wait_begin(wait));
	port_wake(wait);
	port_wait_for(wait, 60000000000ull);
	port_wait_end(wait);
	assert_true(clock_now_ns() - before_ns < 30000000000ull);
}

// Must be last: EAL can be started only once per process.
static void leaves_nothing_behind(void **state)
{
	char path[64];
	struct stat st;

	port_close(port_table);
	snprintf(path, sizeof(path), "/run/dpdk/dl3d-%d", getpid());
	assert_int_not_equal(stat(path, &st), 0);
	snprintf(path, sizeof(path), "%s/out.pcap", folder);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 24 + N_FRAMES * (16 + FRAME_BYTES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(carries_every_frame_through_ring_and_workers),
		cmocka_unit_test(runs_each_worker_on_its_core),
		cmocka_unit_test(numbers_devices_in_the_order_of_the_file),
		cmocka_unit_test(counts_devices_without_a_link_as_up),
		cmocka_unit_test(lays_buffers_at_an_odd_number_of_cache_lines),
		cmocka_unit_test(changes_what_may_change_while_running),
		cmocka_unit_test(is_down_where_it_was_set_down_whatever_its_link),
		cmocka_unit_test(takes_a_new_mac_address_and_leaves_its_neighbours_in_the_word),
		cmocka_unit_test(takes_an_mtu_that_fits_its_buffers),
		cmocka_unit_test(is_woken_by_who_put_something_down),
		cmocka_unit_test(leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, open_module, remove_files);
}
