// What rte_sched does with the load of shape_bench: 64,000 active subscribers (pipes), 1,000 in
// each of 64 subports below one port, with four packets each in a best-effort queue; what leaves
// comes in again. sched_bench EAL-ARGUMENTS: until SIGINT, and writes samples. rte_sched runs in
// real time, so the rates are so high that every pipe is always due. One thread.
#include "base/pages.h"
#include "stats/samples.h"

#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_sched.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	SUBPORTS = 64,
	PIPES = 1024, // of a subport: a power of two
	ACTIVE = 1000,
	EACH = 4,
	BYTES = 1000,
	BURST = 64,
	ROUNDS = 256, // after which a sample may be taken
	QUEUE = 64,   // packets
	MTU = 1518,
	PERIOD_MS = 10,
};
#define RATE 50000000000ull    // of the port, bytes per second
#define PIPE_RATE 100000000ull // of a subscriber
#define PIPE_BURST 1000000ull  // bytes

static struct rte_sched_pipe_params pipe_profile = {.tb_rate = PIPE_RATE,
	.tb_size = PIPE_BURST,
	.tc_period = PERIOD_MS,
	.tc_ov_weight = 1,
	.wrr_weights = {1, 1, 1, 1}};
static struct rte_sched_subport_profile_params subport_profile = {.tb_rate = RATE,
	.tb_size = 100 * PIPE_BURST,
	.tc_period = PERIOD_MS};

static struct rte_sched_port *open_port(void)
{
	struct rte_sched_port_params params = {.name = "bench",
		.rate = RATE,
		.mtu = MTU,
		.frame_overhead = RTE_SCHED_FRAME_OVERHEAD_DEFAULT,
		.n_subports_per_port = SUBPORTS,
		.subport_profiles = &subport_profile,
		.n_subport_profiles = 1,
		.n_max_subport_profiles = 1,
		.n_pipes_per_subport = PIPES};
	struct rte_sched_subport_params subport = {.n_pipes_per_subport_enabled = PIPES,
		.pipe_profiles = &pipe_profile,
		.n_pipe_profiles = 1,
		.n_max_pipe_profiles = 1};

	// The classes that shape_bench has: a strict one, and the four queues that share the rest.
	for (unsigned i = 0; i < RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE; i++) {
		const bool is_used = !i || i == RTE_SCHED_TRAFFIC_CLASS_BE;

		subport.qsize[i] = is_used ? QUEUE : 0;
		pipe_profile.tc_rate[i] = is_used ? PIPE_RATE : 0;
		subport_profile.tc_rate[i] = RATE;
	}
	struct rte_sched_port *port = rte_sched_port_config(&params);

	for (unsigned i = 0; i < SUBPORTS && port; i++) {
		int err = rte_sched_subport_config(port, i, &subport, 0);

		for (unsigned pipe = 0; pipe < PIPES && !err; pipe++)
			err = rte_sched_pipe_config(port, i, pipe, 0);
		if (err)
			return NULL;
	}
	return port;
}

static void fill(struct rte_sched_port *port, struct rte_mbuf *mbufs)
{
	for (uint32_t i = 0; i < SUBPORTS * ACTIVE * EACH; i++) {
		struct rte_mbuf *m = &mbufs[i];
		const uint32_t subscriber = (uint64_t)i * 2654435761u % (SUBPORTS * ACTIVE);

		m->pkt_len = BYTES;
		m->data_len = BYTES;
		rte_mbuf_refcnt_set(m, 1);
		rte_sched_port_pkt_write(port, m, subscriber % SUBPORTS, subscriber / SUBPORTS,
			RTE_SCHED_TRAFFIC_CLASS_BE, 0, RTE_COLOR_GREEN);
		if (rte_sched_port_enqueue(port, &m, 1) != 1)
			abort();
	}
}

// What leaves comes in again; nothing is dropped, as no queue is ever full.
static uint64_t run(struct rte_sched_port *port)
{
	struct rte_mbuf *sent[BURST];
	uint64_t n_sent = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		const int n = rte_sched_port_dequeue(port, sent, BURST);

		if (n > 0 && rte_sched_port_enqueue(port, sent, n) != n)
			abort();
		n_sent += MAX_OF(n, 0);
	}
	return n_sent;
}

int main(int argc, char **argv)
{
	static struct samples samples;
	const size_t bytes = (size_t)SUBPORTS * ACTIVE * EACH * sizeof(struct rte_mbuf);
	struct rte_mbuf *mbufs = pages_alloc(bytes);

	if (!mbufs || rte_eal_init(argc, argv) < 0)
		return 1;
	struct rte_sched_port *port = open_port();
	if (!port || samples_start(&samples)) {
		fprintf(stderr, "rte_sched cannot be set up; it needs 512 MiB of EAL memory\n");
		return 1;
	}
	fill(port, mbufs);
	while (!__atomic_load_n(&samples_stop, __ATOMIC_RELAXED)) {
		const uint64_t n = run(port);

		stats_add(&samples.done, n);
	}
	samples_end(&samples);
	return 0;
}
