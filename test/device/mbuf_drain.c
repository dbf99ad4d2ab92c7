// A plugin for dl3d (EAL option -d), used only by tests: while the file MBUF_DRAIN exists it holds
// all buffers of the program's first pool, so that devices find none to receive into. A thread of
// ours empties the pool; what a worker keeps for itself is taken from it by a public Rx callback of
// its first port, in a poll that found nothing. MBUF_DRAIN is "mbuf_drain" in the folder
// RUNTIME_DIRECTORY.
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_mempool.h>

enum { LOOK_EVERY_US = 500, DATAPATH_BYTES = 256, MOST = 1 << 20 };

// One taker's buffers; the worker's are given back by the worker.
struct mbuf_drain {
	unsigned n;
	void *buffer[MOST];
};

static struct mbuf_drain common, own;
static struct rte_mempool *pool;
static bool is_wanted; // atomic
static char path[DATAPATH_BYTES];

static void take_or_give(struct mbuf_drain *mbuf_drain, bool is_wanted_now)
{
	while (is_wanted_now && mbuf_drain->n < MOST &&
		!rte_mempool_get(pool, &mbuf_drain->buffer[mbuf_drain->n]))
		mbuf_drain->n++;
	if (!is_wanted_now && mbuf_drain->n) {
		rte_mempool_put_bulk(pool, mbuf_drain->buffer, mbuf_drain->n);
		mbuf_drain->n = 0;
	}
}

// Of ethdev's type; runs on the worker.
static uint16_t after_poll(uint16_t port, uint16_t queue, struct rte_mbuf *packets[], uint16_t n,
	uint16_t most, void *arg)
{
	if (!n)
		take_or_give(&own, __atomic_load_n(&is_wanted, __ATOMIC_ACQUIRE));
	return n;
}

static void *mbuf_drain(void *arg)
{
	for (;; usleep(LOOK_EVERY_US)) {
		bool is_there = access(path, F_OK) == 0;

		if (is_there && !pool) { // EAL has started long ago, and workers poll
			pool = rte_mempool_lookup("mbufs_0");
			rte_eth_add_rx_callback(0, 0, after_poll, NULL);
		}
		if (pool)
			take_or_give(&common, is_there);
		__atomic_store_n(&is_wanted, is_there, __ATOMIC_RELEASE);
	}
	return arg;
}

__attribute__((constructor)) static void begin(void)
{
	const char *folder = getenv("RUNTIME_DIRECTORY");
	pthread_t thread;

	snprintf(path, sizeof(path), "%s/mbuf_drain", folder ? folder : "/nowhere");
	if (pthread_create(&thread, NULL, mbuf_drain, NULL))
		abort();
	pthread_detach(thread);
}
