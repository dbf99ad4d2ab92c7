// The room at work on virtual devices: one EAL, lanes on the first two cores, frames that go from a
// file through a ring into another file while a net_null keeps its lane busy.
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
	struct port_lane *lane;
	const bool *stop;
	uint64_t n_received[N_PORTS], n_sent[N_PORTS];
	int core_seen;
};

static struct port_room_settings settings;
static struct port_room *room;
static struct mover movers[STAT_MAX_LANES];
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
	for (int core = 0; core < CPU_SETSIZE && settings.n_lanes < 2; core++)
		if (CPU_ISSET(core, &allowed))
			settings.lanes[settings.n_lanes++].core = core;
}

// file -> ring -> file, null -> null.
static int move(void *arg)
{
	static const uint8_t out_of[N_PORTS] = {RING_PORT, FILE_PORT, NULL_PORT};
	struct mover *m = arg;
	struct rte_mbuf *mbuf[64];

	m->core_seen = sched_getcpu();
	while (!__atomic_load_n(m->stop, __ATOMIC_RELAXED)) {
		for (unsigned q = 0; q < m->lane->n_queues; q++) {
			const struct port_queue *queue = &m->lane->queues[q];
			unsigned out = out_of[queue->port];
			uint16_t n = port_rx(queue, mbuf, m->lane->burst);
			uint16_t sent = port_tx(&m->lane->out[out], mbuf, n);

			stat_add(&m->n_received[queue->port], n);
			stat_add(&m->n_sent[out], sent);
			rte_pktmbuf_free_bulk(mbuf + sent, n - sent);
		}
	}
	return 0;
}

static uint64_t count_sent(unsigned port)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < port_n_lanes(room); i++)
		n += stat_read(&movers[i].n_sent[port]);
	return n;
}

static void run_lanes(void)
{
	void *args[STAT_MAX_LANES];
	struct complaint why = {0};
	uint64_t start_ns = clock_now_ns();

	for (unsigned i = 0; i < port_n_lanes(room); i++) {
		movers[i] = (struct mover){.lane = port_lane(room, i), .stop = &stop};
		args[i] = &movers[i];
	}
	assert_int_equal(port_start(room, &why), 0);
	if (port_lanes_launch(room, move, args, &why) != 0)
		fail_msg("%s", why.text);
	assert_int_equal(port_lanes_launch(room, move, args, &why), -EBUSY);
	while (clock_now_ns() - start_ns < RUN_NS_MAX &&
		(count_sent(FILE_PORT) < N_FRAMES || !count_sent(NULL_PORT)))
		usleep(10000);
	assert_int_equal(port_tend(room, &why), 0);
	assert_true(port_lanes_run(room));
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	port_lanes_join(room);
	assert_false(port_lanes_run(room));
}

static int open_room(void **state)
{
	char path[64];
	struct complaint why = {0};

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/in.pcap", folder);
	write_frames(path);
	fill_settings();
	if (port_open(&room, &settings, &why) != 0)
		fail_msg("%s", why.text);
	run_lanes();
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

static void carries_every_frame_through_ring_and_lanes(void **state)
{
	assert_int_equal(count_sent(RING_PORT), N_FRAMES);
	assert_int_equal(count_sent(FILE_PORT), N_FRAMES);
	assert_true(count_sent(NULL_PORT) > 0);
}

static void runs_each_lane_on_its_core(void **state)
{
	assert_int_equal(port_n_lanes(room), settings.n_lanes);
	for (unsigned i = 0; i < port_n_lanes(room); i++) {
		assert_int_equal(movers[i].core_seen, settings.lanes[i].core);
		assert_int_equal(movers[i].lane->core, settings.lanes[i].core);
	}
}

static void numbers_devices_in_the_order_of_the_file(void **state)
{
	static const char *const drivers[] = {"net_pcap", "net_ring", "net_null"};
	struct port_info info;

	for (unsigned i = 0; i < N_PORTS; i++) {
		port_info(room, i, &info);
		assert_int_equal(info.device_id, i);
		assert_string_equal(info.driver, drivers[i]);
		assert_string_equal(info.name, settings.ports[i].name);
		assert_int_equal(info.mtu, PORT_DEFAULT_MTU);
	}
}

static void counts_devices_without_a_link_as_up(void **state)
{
	for (unsigned i = 0; i < N_PORTS; i++)
		assert_true(port_faces(room)[i].up);
}

static void lays_buffers_at_an_odd_number_of_cache_lines(void **state)
{
	struct port_memory memory;

	port_memory(room, &memory);
	assert_false(memory.huge);
	assert_int_equal(memory.mbuf_bytes, 2368);
	assert_true(memory.n_mbufs_free <= memory.n_mbufs);
	assert_true(memory.planned_mib > 0);
}

static void changes_what_may_change_while_running(void **state)
{
	struct port_settings next = settings.ports[NULL_PORT];
	const struct port_face *face = &port_faces(room)[NULL_PORT];
	struct port_info info;
	struct complaint why;

	next.mtu = 1400;
	next.pass_martians = next.has_peer = true;
	next.peer = (struct wire_mac){{2, 1, 2, 3, 4, 5}};
	assert_int_equal(port_change(room, NULL_PORT, &next, &why), 0);
	port_info(room, NULL_PORT, &info);
	assert_int_equal(info.mtu, 1400);
	assert_true(face->pass_martians && face->has_peer);
	assert_memory_equal(face->peer, next.peer.bytes, 6);
	next.mtu = 9000;
	assert_true(port_change(room, NULL_PORT, &next, &why) < 0);
	assert_non_null(strstr(why.text, "needs a restart"));
	port_info(room, NULL_PORT, &info);
	assert_int_equal(info.mtu, 1400);
}

static void is_down_where_it_was_set_down_whatever_its_link(void **state)
{
	static const unsigned ports[] = {RING_PORT, NULL_PORT};
	struct complaint why;

	for (unsigned i = 0; i < ARRAY_LEN(ports); i++) {
		const struct port_face *face = &port_faces(room)[ports[i]];

		assert_int_equal(port_set_admin(room, ports[i], false, &why), 0);
		assert_false(face->up);
		assert_int_equal(port_tend(room, &why), 0);
		assert_false(face->up);
		assert_int_equal(port_set_admin(room, ports[i], true, &why), 0);
		assert_int_equal(port_tend(room, &why), 0);
		assert_true(face->up && port_has_carrier(room, ports[i]));
	}
}

static void takes_a_new_mac_address_and_leaves_its_neighbours_in_the_word(void **state)
{
	static const struct wire_mac mac = {{2, 6, 6, 6, 6, 6}}, group = {{1, 6, 6, 6, 6, 6}};
	const struct port_face *face = &port_faces(room)[NULL_PORT];
	bool up = face->up, pass_martians = face->pass_martians;
	struct port_info info;
	struct complaint why;

	assert_int_equal(port_set_mac(room, NULL_PORT, &mac, &why), 0);
	assert_true(port_set_mac(room, NULL_PORT, &group, &why) < 0);
	assert_non_null(strstr(why.text, "01:06:06:06:06:06"));
	port_info(room, NULL_PORT, &info);
	assert_true(wire_mac_equal(&info.mac, &mac));
	assert_memory_equal(face->mac, mac.bytes, sizeof(face->mac));
	assert_true(face->up == up && face->pass_martians == pass_martians);
}

static void takes_an_mtu_that_fits_its_buffers(void **state)
{
	struct port_info info;
	struct complaint why;

	assert_int_equal(port_set_mtu(room, NULL_PORT, 1280, &why), 0);
	assert_true(port_set_mtu(room, NULL_PORT, 9000, &why) < 0);
	assert_non_null(strstr(why.text, "mtu 9000"));
	port_info(room, NULL_PORT, &info);
	assert_int_equal(info.mtu, 1280);
}

// It would take a minute, if nobody rang.
static void is_woken_by_who_put_something_down(void **state)
{
	struct port_wait *wait = port_lane(room, 0)->wait;
	uint64_t before_ns = clock_now_ns();

	assert_true(port_wait_begin(wait));
	port_wake(wait);
	port_wait_for(wait, 60000000000ull);
	port_wait_end(wait);
	assert_true(clock_now_ns() - before_ns < 30000000000ull);
}

// Last: EAL starts once per process.
static void leaves_nothing_behind(void **state)
{
	char path[64];
	struct stat st;

	port_close(room);
	snprintf(path, sizeof(path), "/run/dpdk/dl3d-%d", getpid());
	assert_int_not_equal(stat(path, &st), 0);
	snprintf(path, sizeof(path), "%s/out.pcap", folder);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 24 + N_FRAMES * (16 + FRAME_BYTES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(carries_every_frame_through_ring_and_lanes),
		cmocka_unit_test(runs_each_lane_on_its_core),
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

	return cmocka_run_group_tests(tests, open_room, remove_files);
}
