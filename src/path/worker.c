// The packet's walk, once around for each burst. Lane.
#include "path/worker.h"

#include "path/price.h"
#include "path/variant.h"

#include <rte_cycles.h>

enum { BURSTS_PER_TIMING = 64, EMPTY_LOOPS_PER_LOOK = 64, LONG_GAPS_PER_BURST = 10 };

#define ADD_STEP(name, text) stat_add(&w->stat->step.name, w->step.name);

// Charges a step with the cycles since `since`, in bursts that are timed; returns the time now.
static inline uint64_t lap(bool is_timed, uint64_t *cycles, uint64_t since)
{
	if (!is_timed)
		return 0;
	uint64_t now = rte_rdtsc();

	stat_add(cycles, now - since);
	return now;
}

static inline uint64_t walk_ip4(struct worker *w, const struct fib_view *view, bool is_timed,
	uint64_t t)
{
	struct stat_step *step = &w->step;

	path_lookup4(view, &w->ip4);
	if (rarely(w->ip4.suspects))
		path_source(w, view, &w->ip4);
	t = lap(is_timed, &step->lookup, t);
	path_check(w, view, &w->ip4);
	t = lap(is_timed, &step->check, t);
	w->variant->rewrite4(w->stat, view, &w->ip4);
	if (rarely(w->ip4.has_tags))
		path_tag(w, view, &w->ip4);
	t = lap(is_timed, &step->rewrite, t);
	path_send(w, &w->ip4);
	return lap(is_timed, &step->send, t);
}

static inline uint64_t walk_ip6(struct worker *w, const struct fib_view *view, bool is_timed,
	uint64_t t)
{
	struct stat_step *step = &w->step;

	path_lookup6(view, &w->ip6);
	t = lap(is_timed, &step->lookup, t);
	path_check(w, view, &w->ip6);
	t = lap(is_timed, &step->check, t);
	w->variant->rewrite6(w->stat, view, &w->ip6);
	if (rarely(w->ip6.has_tags))
		path_tag(w, view, &w->ip6);
	t = lap(is_timed, &step->rewrite, t);
	path_send(w, &w->ip6);
	return lap(is_timed, &step->send, t);
}

static inline uint64_t walk_both(struct worker *w, const struct fib_view *view, bool is_timed,
	uint64_t t)
{
	t = lap(is_timed, &w->step.parse, t);
	if (w->ip4.n)
		t = walk_ip4(w, view, is_timed, t);
	if (w->ip6.n)
		t = walk_ip6(w, view, is_timed, t);
	return t;
}

// Packets of VLANs with a table or rules of their own, after the burst that they came in.
static __attribute__((noinline)) uint64_t route_aside(struct worker *w, const struct fib_view *main,
	bool is_timed, uint64_t t)
{
	while (w->aside.n)
		t = walk_both(w, path_parse_aside(w, main), is_timed, t);
	return t;
}

// A constant `is_timed` makes two functions of it; the one without clocks has no trace of them.
static inline __attribute__((always_inline)) uint64_t route(struct worker *w,
	const struct received *r, bool is_timed, uint64_t t)
{
	const struct fib_view *main = fib_lane_view(w->door);

	t = walk_both(w, path_parse(w, main, r), is_timed, t);
	if (rarely(w->aside.n))
		t = route_aside(w, main, is_timed, t);
	return t;
}

static inline uint64_t cross(struct worker *w, const struct received *r, bool is_timed, uint64_t t)
{
	path_xconnect(w, r);
	return lap(is_timed, &w->step.send, t);
}

static inline __attribute__((always_inline)) void walk(struct worker *w, const struct received *r,
	bool is_timed, uint64_t t)
{
	if (w->faces[r->from->port].is_xconnect)
		t = cross(w, r, is_timed, t);
	else
		t = route(w, r, is_timed, t);
	if (w->n_dropped) {
		burst_free_dropped(w);
		lap(is_timed, &w->step.send, t);
	}
}

static __attribute__((noinline)) void walk_timed(struct worker *w, const struct received *r,
	uint64_t before_rx)
{
	w->step = (struct stat_step){.rx = 0};
	uint64_t now = lap(true, &w->step.rx, before_rx);

	walk(w, r, true, now);
	uint64_t spent = rte_rdtsc() - before_rx, usual = r->n * w->price;

	w->price = price_learn(w->price, spent, r->n);
	if (spent > usual + LONG_GAPS_PER_BURST * w->long_gap)
		return; // the core was taken away meanwhile: that is no price of a packet
	stat_add(&w->stat->timed_packets, r->n);
	SCHEMA_STEP_COUNTERS(ADD_STEP)
}

static uint16_t poll_queue(struct worker *w, unsigned queue)
{
	const struct port_queue *from = &w->io->queues[queue];
	bool is_timed = w->stat->bursts % BURSTS_PER_TIMING == 0;
	uint64_t before_rx = is_timed ? rte_rdtsc() : 0;
	struct rte_mbuf *mbuf[BURST_MAX] LINE_ALIGNED;
	struct received r = {.from = from, .mbuf = mbuf, .n = port_rx(from, mbuf, w->io->burst)};

	if (!r.n)
		return 0;
	stat_add(&w->stat->port[from->port].rx_packets, r.n);
	stat_add(&w->stat->queue[queue].rx_packets, r.n);
	stat_add(&w->stat->bursts, 1);
	if (rarely(is_timed))
		walk_timed(w, &r, before_rx);
	else
		walk(w, &r, false, 0);
	return r.n;
}

// A round that is long, or the longest. It is a pause as far as its frames do not explain it.
static __attribute__((noinline)) void note_gap(struct worker *w, uint64_t gap, uint64_t now,
	unsigned n_frames)
{
	struct stat_lane *stat = w->stat;

	if (gap > w->long_gap + n_frames * w->price)
		pauses_note(&stat->pauses, now, gap);
	if (gap > stat->longest_gap_cycles) {
		stat_set(&stat->longest_gap_cycles, gap);
		stat_set(&stat->longest_gap_at_cycles, now);
	}
	w->noteworthy_gap = MIN_OF(stat->longest_gap_cycles, w->long_gap);
}

// Time since the round before, in which so many frames came or were injected.
static inline uint64_t watch_gap(struct worker *w, uint64_t last, unsigned n_frames)
{
	uint64_t now = rte_rdtsc();

	if (rarely(now - last > w->noteworthy_gap))
		note_gap(w, now - last, now, n_frames);
	return now;
}

// A device that finds no buffer returns no frame, and not every device counts that.
static __attribute__((noinline)) void look_for_buffers(struct worker *w)
{
	void *buffer;

	for (unsigned q = 0; q < w->io->n_queues; q++) {
		if (!w->pool[q])
			continue;
		if (rte_mempool_get(w->pool[q], &buffer)) {
			stat_add(&w->stat->starved_loops, 1);
			return;
		}
		rte_mempool_put(w->pool[q], buffer);
	}
}

int worker_run(void *arg)
{
	struct worker *w = arg;
	uint64_t last = rte_rdtsc();

	fib_lane_online(w->door, w->io->id);
	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		unsigned got = 0, n_injected = w->tap ? path_inject(w) : 0;

		for (unsigned q = 0; q < w->io->n_queues; q++)
			got += poll_queue(w, q);
		fib_lane_report(w->door, w->io->id);
		last = watch_gap(w, last, got + n_injected);
		stat_add(&w->stat->loops, 1);
		if (got)
			continue;
		stat_add(&w->stat->empty_loops, 1);
		if (rarely(w->stat->empty_loops % EMPTY_LOOPS_PER_LOOK == 0))
			look_for_buffers(w);
	}
	fib_lane_offline(w->door, w->io->id);
	if (w->tap)
		path_inject_rest(w);
	return 0;
}
