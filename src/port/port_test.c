// The room at work on virtual devices: one EAL, two lanes, frames that go round between two ports.
#include "port/port.h"

#include <dirent.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct mover {
	struct port_lane *lane;
	const bool *stop;
	uint64_t n_received, n_sent;
	int core_seen;
};

static void settings_fill(struct port_room_settings *s)
{
	static const char *const devices[] = {"net_null0,size=64", "net_ring0", "net_null1,no-rx=1",
		"net_pcap0,rx_pcap=%s,tx_pcap=%s"};

	memset(s, 0, sizeof(*s));
	s->n_ports = 3;
	s->huge = PORT_HUGE_NEVER;
	for (unsigned i = 0; i < s->n_ports; i++) {
		snprintf(s->ports[i].name, sizeof(s->ports[i].name), "p%u", i);
		snprintf(s->ports[i].device, sizeof(s->ports[i].device), "%s", devices[i]);
		s->ports[i].n_rx_descriptors = s->ports[i].n_tx_descriptors = 256;
	}
}

// Every frame of p0 goes to p1 (a ring), every frame that comes out of the ring to p2.
static int move(void *arg)
{
	struct mover *m = arg;
	struct rte_mbuf *mbuf[64];

	m->core_seen = sched_getcpu();
	while (!__atomic_load_n(m->stop, __ATOMIC_RELAXED)) {
		for (unsigned q = 0; q < m->lane->n_queues; q++) {
			const struct port_queue *queue = &m->lane->queues[q];
			uint16_t n = port_rx(queue, mbuf, m->lane->burst);
			uint16_t sent = port_tx(&m->lane->out[queue->port == 0 ? 1 : 2], mbuf, n);

			m->n_received += n;
			m->n_sent += sent;
			rte_pktmbuf_free_bulk(mbuf + sent, n - sent);
		}
	}
	return 0;
}

// Files of this process that DPDK left in its runtime folder.
static unsigned count_leftovers(void)
{
	char name[32];
	unsigned n = 0;
	struct dirent *entry;
	DIR *folder = opendir("/run/dpdk");

	if (!folder)
		return 0;
	snprintf(name, sizeof(name), "dl3d-%d", getpid());
	while ((entry = readdir(folder)))
		n += strcmp(entry->d_name, name) == 0;
	closedir(folder);
	return n;
}

static void moves_frames_between_ports_on_lanes_and_leaves_nothing_behind(void **state)
{
	static struct port_room_settings s;
	struct mover movers[STAT_MAX_LANES] = {0};
	void *args[STAT_MAX_LANES];
	struct port_room *room;
	struct complaint why = {0};
	struct port_info info;
	struct port_memory memory;
	bool stop = false;

	settings_fill(&s);
	if (port_open(&room, &s, &why) != 0)
		fail_msg("%s", why.text);
	assert_true(port_n_lanes(room) >= 1);
	for (unsigned i = 0; i < port_n_lanes(room); i++) {
		movers[i] = (struct mover){.lane = port_lane(room, i), .stop = &stop};
		args[i] = &movers[i];
	}
	assert_int_equal(port_start(room, &why), 0);
	assert_int_equal(port_lanes_launch(room, move, args, &why), 0);
	usleep(100000);
	port_tend(room);
	assert_true(port_lanes_run(room));
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	port_lanes_join(room);

	port_memory(room, &memory);
	assert_false(memory.huge);
	assert_int_equal(memory.mbuf_bytes / 64 % 2, 1);
	for (unsigned i = 0; i < 3; i++) {
		port_info(room, i, &info);
		assert_true(info.link_up);
		assert_int_equal(info.device_id, i);
		print_message("%s %s %s mtu %u rx %u tx %u\n", info.name, info.device, info.driver,
			info.mtu, info.n_rx_queues, info.n_tx_queues);
	}
	for (unsigned i = 0; i < port_n_lanes(room); i++) {
		print_message("lane %u core %d: %lu received, %lu sent\n", i, movers[i].core_seen,
			movers[i].n_received, movers[i].n_sent);
		assert_int_equal(movers[i].core_seen, movers[i].lane->core);
		assert_true(movers[i].n_sent > 0);
	}
	port_close(room);
	assert_int_equal(count_leftovers(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves_frames_between_ports_on_lanes_and_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
