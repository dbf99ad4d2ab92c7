// The packet's walk, once around for each burst. Lane.
#include "path/worker.h"

#include "path/steps.h"

static void walk_ip4(struct worker *w, const struct fib_view *view)
{
	path_lookup4(view, &w->ip4);
	path_check(w, view, &w->ip4);
	path_rewrite4(view, &w->ip4);
	path_send(w, &w->ip4);
}

static void walk_ip6(struct worker *w, const struct fib_view *view)
{
	path_lookup6(view, &w->ip6);
	path_check(w, view, &w->ip6);
	path_rewrite6(view, &w->ip6);
	path_send(w, &w->ip6);
}

static void walk(struct worker *w, const struct port_queue *from, struct rte_mbuf *mbuf[],
	uint16_t n)
{
	const struct fib_view *view = fib_lane_view(w->door);

	path_parse(w, from, mbuf, n);
	if (w->ip4.n)
		walk_ip4(w, view);
	if (w->ip6.n)
		walk_ip6(w, view);
}

static uint16_t poll_queue(struct worker *w, const struct port_queue *from)
{
	struct rte_mbuf *mbuf[BURST_MAX] LINE_ALIGNED;
	uint16_t n = port_rx(from, mbuf, w->io->burst);

	if (!n)
		return 0;
	stat_add(&w->stat->port[from->port].rx_packets, n);
	stat_add(&w->stat->bursts, 1);
	if (w->faces[from->port].is_xconnect)
		path_xconnect(w, from, mbuf, n);
	else
		walk(w, from, mbuf, n);
	if (w->n_dropped) {
		rte_pktmbuf_free_bulk(w->dropped, w->n_dropped);
		w->n_dropped = 0;
	}
	return n;
}

int worker_run(void *arg)
{
	struct worker *w = arg;

	fib_lane_online(w->door, w->io->id);
	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		unsigned got = 0;

		for (unsigned q = 0; q < w->io->n_queues; q++)
			got += poll_queue(w, &w->io->queues[q]);
		fib_lane_report(w->door, w->io->id);
		stat_add(&w->stat->loops, 1);
		if (!got)
			stat_add(&w->stat->empty_loops, 1);
	}
	fib_lane_offline(w->door, w->io->id);
	return 0;
}
