// The polling loop of one worker, and the order in which the steps process each burst. Worker.
#include "datapath/worker.h"

#include "datapath/price.h"
#include "datapath/variant.h"

#include <rte_cpuflags.h>
#include <rte_cycles.h>
#include <rte_power_intrinsics.h>

// BURSTS_PER_TIMING: untimed bursts for each timed one. EMPTY_LOOPS_PER_LOOK: empty loops between
// checks for free buffers. LONG_GAPS_PER_BURST: a timed burst that exceeds its expected cost by
// this many long gaps is discarded.
enum { BURSTS_PER_TIMING = 64, EMPTY_LOOPS_PER_LOOK = 64, LONG_GAPS_PER_BURST = 10 };
// Divides IDLE_SPIN_US: each pause lasts half a microsecond.
enum { PAUSES_PER_SPIN = 100 };

#define ADD_STEP(name, text) stats_add(&w->stat->step.name, w->step.name);

// Adds the cycles since `since` to a step's counter if the burst is timed. Returns the current TSC;
// 0 if not timed.
static inline uint64_t lap(bool is_timed, uint64_t *cycles, uint64_t since)
{
	if (!is_timed)
		return 0;
	uint64_t now = rte_rdtsc();

	stats_add(cycles, now - since);
	return now;
}

static inline uint64_t finish_ip4(struct worker *w, const struct fib_view *view, bool is_timed,
	uint64_t t)
{
	struct stats_step *step = &w->step;
	struct burst *b = &w->now->ip4;

	if (unlikely(b->suspects))
		datapath_source(w, view, b);
	datapath_check(w, view, b);
	t = lap(is_timed, &step->check, t);
	w->variant->rewrite4(w->stat, view, b);
	if (unlikely(b->has_tags))
		datapath_tag(w, view, b);
	t = lap(is_timed, &step->rewrite, t);
	datapath_send(w, b);
	return lap(is_timed, &step->send, t);
}

static inline uint64_t finish_ip6(struct worker *w, const struct fib_view *view, bool is_timed,
	uint64_t t)
{
	struct stats_step *step = &w->step;
	struct burst *b = &w->now->ip6;

	datapath_check(w, view, b);
	t = lap(is_timed, &step->check, t);
	w->variant->rewrite6(w->stat, view, b);
	if (unlikely(b->has_tags))
		datapath_tag(w, view, b);
	t = lap(is_timed, &step->rewrite, t);
	datapath_send(w, b);
	return lap(is_timed, &step->send, t);
}

static inline uint64_t look_up(struct worker *w, const struct fib_view *view, bool is_timed,
	uint64_t t)
{
	if (w->now->ip4.n)
		datapath_lookup4(view, &w->now->ip4);
	if (w->now->ip6.n)
		datapath_lookup6(view, &w->now->ip6);
	return lap(is_timed, &w->step.lookup, t);
}

static inline uint64_t finish(struct worker *w, const struct fib_view *view, bool is_timed,
	uint64_t t)
{
	if (w->now->ip4.n)
		t = finish_ip4(w, view, is_timed, t);
	if (w->now->ip6.n)
		t = finish_ip6(w, view, is_timed, t);
	return t;
}

// Forwards the deferred packets: those of VLANs with a table or flags of their own. Runs after the
// bursts that they arrived in.
static __attribute__((noinline)) void route_deferred(struct worker *w, const struct fib_view *main,
	bool is_timed, uint64_t t)
{
	while (w->deferred.n) {
		const struct fib_view *view = datapath_parse_deferred(w, main);

		t = lap(is_timed, &w->step.parse, t);
		t = look_up(w, view, is_timed, t);
		t = finish(w, view, is_timed, t);
	}
}

static inline uint16_t receive(struct worker *w, const struct port_queue *from,
	struct rte_mbuf *mbuf[])
{
	uint16_t n = port_rx(from, mbuf, w->io->burst);

	if (!n)
		return 0;
	stats_add(&w->stat->port[from->port].rx_packets, n);
	stats_add(&w->stat->queue[from - w->io->queues].rx_packets, n);
	stats_add(&w->stat->bursts, 1);
	return n;
}

// Consecutive polls of one queue whose lookups are pipelined. The first poll has already been
// received.
struct batch {
	const struct fib_view *main;
	struct received newest;
	unsigned n; // number of polls, or its upper bound while receiving
	bool is_timed;
	uint64_t t;
};

static inline struct sorted *poll_of(struct worker *w, unsigned number)
{
	return &w->sorted[number % UNDER_WAY];
}

// A poll that is not full, or that has deferred packets, is the last one.
static inline void parse_poll(struct worker *w, struct batch *batch, unsigned number)
{
	w->now = poll_of(w, number);
	w->now->view = datapath_parse(w, batch->main, &batch->newest);
	if (batch->newest.n < w->io->burst || unlikely(w->deferred.n))
		batch->n = number + 1;
	batch->t = lap(batch->is_timed, &w->step.parse, batch->t);
}

static inline void begin_lookup(struct sorted *s, const struct fib_view *main)
{
	s->has_begun = s->view == main && s->ip4.n;
	if (!s->has_begun)
		return;
	s->begun.n = s->ip4.n;
	fib_lookup4_begin(main, s->ip4.dst4, s->ip4.hop, &s->begun);
}

static inline void go_on_with_lookup(struct sorted *s)
{
	if (s->has_begun)
		fib_lookup4_continue(s->view, s->ip4.hop, &s->begun);
}

static inline void end_lookup(struct sorted *s)
{
	struct burst *b = &s->ip4;

	if (s->has_begun)
		fib_lookup4_end(s->view, b->dst4, b->hop, &s->begun);
	else if (b->n)
		datapath_lookup4(s->view, b);
	if (s->ip6.n)
		datapath_lookup6(s->view, &s->ip6);
}

static inline void finish_poll(struct worker *w, struct batch *batch, unsigned number)
{
	w->now = poll_of(w, number);
	batch->t = finish(w, w->now->view, batch->is_timed, batch->t);
	burst_free_dropped(w);
	batch->t = lap(batch->is_timed, &w->step.send, batch->t);
}

// Returns the number of frames received. If there are none, the previous poll was the last one.
static inline uint16_t receive_next(struct worker *w, struct batch *batch, unsigned number)
{
	struct received *r = &batch->newest;

	r->n = receive(w, r->from, r->mbuf);
	if (!r->n)
		batch->n = number;
	batch->t = lap(batch->is_timed, &w->step.rx, batch->t);
	return r->n;
}

// Pipelines the lookups of consecutive polls where lookups miss the cache: a queue that filled one
// burst usually fills more. While one poll's lookup waits for memory, other polls are received,
// parsed and finished. A lookup ends well before its burst is finished: check reads hops as
// vectors, and would stall on store forwarding if they had just been written one by one. Adds the
// frames of further polls to r->n.
enum { LAST = UNDER_WAY - 1 };
static __attribute__((noinline)) void route_batch(struct worker *w, struct received *r,
	bool is_timed, uint64_t t)
{
	struct batch batch = {fib_reader_view(w->rcu), *r, BATCH_POLLS, is_timed, t};

	for (unsigned i = 0; i < batch.n + LAST; i++) {
		if (i < batch.n)
			parse_poll(w, &batch, i);
		if (i >= LAST)
			end_lookup(poll_of(w, i - LAST));
		if (i >= 1 && i - 1 < batch.n)
			begin_lookup(poll_of(w, i - 1), batch.main);
		batch.t = lap(is_timed, &w->step.lookup, batch.t);
		if (i >= LAST)
			finish_poll(w, &batch, i - LAST);
		if (i >= 1 && i - 1 < batch.n)
			go_on_with_lookup(poll_of(w, i - 1));
		batch.t = lap(is_timed, &w->step.lookup, batch.t);
		if (i + 1 < batch.n)
			r->n += receive_next(w, &batch, i + 1);
	}
	w->now = w->sorted;
	if (unlikely(w->deferred.n))
		route_deferred(w, batch.main, is_timed, batch.t);
}

// `is_timed` is a constant, so the compiler generates two copies, and the untimed one has no timing
// code.
static inline __attribute__((always_inline)) void route(struct worker *w, const struct received *r,
	bool is_timed, uint64_t t)
{
	const struct fib_view *main = fib_reader_view(w->rcu), *view = datapath_parse(w, main, r);

	t = lap(is_timed, &w->step.parse, t);
	t = look_up(w, view, is_timed, t);
	t = finish(w, view, is_timed, t);
	if (unlikely(w->deferred.n))
		route_deferred(w, main, is_timed, t);
}

static inline void cross(struct worker *w, const struct received *r, bool is_timed, uint64_t t)
{
	datapath_xconnect(w, r);
	lap(is_timed, &w->step.send, t);
}

static inline __attribute__((always_inline)) void walk(struct worker *w, struct received *r,
	bool is_timed, uint64_t t)
{
	if (w->states[r->from->port].is_xconnect)
		cross(w, r, is_timed, t);
	else if (r->n == w->io->burst && fib_waits4(fib_reader_view(w->rcu)))
		route_batch(w, r, is_timed, t);
	else
		route(w, r, is_timed, t);
	if (w->n_dropped) {
		t = is_timed ? rte_rdtsc() : 0;
		burst_free_dropped(w);
		lap(is_timed, &w->step.send, t);
	}
}

static __attribute__((noinline)) void walk_timed(struct worker *w, struct received *r,
	uint64_t before_rx)
{
	w->step = (struct stats_step){.rx = 0};
	uint64_t first = w->stat->bursts, now = lap(true, &w->step.rx, before_rx);

	walk(w, r, true, now);
	w->timed_from = w->stat->bursts + BURSTS_PER_TIMING * (w->stat->bursts - first + 1);
	uint64_t spent = rte_rdtsc() - before_rx, usual = r->n * w->price;

	w->price = price_learn(w->price, spent, r->n);
	if (spent > usual + LONG_GAPS_PER_BURST * w->long_gap)
		return; // the core was preempted meanwhile: not a valid cost per packet
	stats_add(&w->stat->timed_packets, r->n);
	SCHEMA_STEP_COUNTERS(ADD_STEP)
}

static uint16_t poll_queue(struct worker *w, unsigned queue)
{
	bool is_timed = w->stat->bursts >= w->timed_from;
	uint64_t before_rx = is_timed ? rte_rdtsc() : 0;
	struct rte_mbuf *mbuf[BURST_MAX] LINE_ALIGNED;
	struct received r = {.from = &w->io->queues[queue], .mbuf = mbuf};

	r.n = receive(w, r.from, mbuf);
	if (!r.n)
		return 0;
	if (unlikely(is_timed))
		walk_timed(w, &r, before_rx);
	else
		walk(w, &r, false, 0);
	return r.n;
}

// Records a round longer than w->noteworthy_gap. Its excess over the expected cost of its frames
// decides whether it counts as a stall.
static __attribute__((noinline)) void note_gap(struct worker *w, uint64_t gap, uint64_t now,
	unsigned n_frames)
{
	struct stats_worker *stat = w->stat;

	if (gap > w->long_gap + n_frames * w->price)
		stalls_record(&stat->stalls, now, gap);
	if (gap > stat->longest_gap_cycles) {
		stats_set(&stat->longest_gap_cycles, gap);
		stats_set(&stat->longest_gap_at_cycles, now);
	}
	w->noteworthy_gap = MIN_OF(stat->longest_gap_cycles, w->long_gap);
}

// Measures the time since the end of the previous round. `n_frames` were received or injected in
// it. Returns the current TSC.
static inline uint64_t watch_gap(struct worker *w, uint64_t last, unsigned n_frames)
{
	uint64_t now = rte_rdtsc();

	if (unlikely(now - last > w->noteworthy_gap))
		note_gap(w, now - last, now, n_frames);
	return now;
}

// A device without free buffers returns no frames, and not every device counts that.
static __attribute__((noinline)) bool has_buffers(const struct worker *w)
{
	void *buffer;

	for (unsigned q = 0; q < w->io->n_queues; q++) {
		if (!w->pool[q])
			continue;
		if (rte_mempool_get(w->pool[q], &buffer))
			return false;
		rte_mempool_put(w->pool[q], buffer);
	}
	return true;
}

// Sleeps until frames arrive or the allowed time has passed. The worker is offline for RCU
// meanwhile, so the writer does not wait for it. Returns the intended delay of the next round in
// TSC cycles; any further delay counts as a stall.
static __attribute__((noinline)) uint64_t sleep_awhile(struct worker *w, uint64_t now)
{
	struct port_wait *wait = w->io->wait;

	// Without free buffers, frames may be waiting in the device without raising an event.
	if (w->injection.n || !has_buffers(w) || !port_wait_begin(wait))
		return 0;
	if (w->tap && !tap_is_quiet(w->tap)) {
		port_wait_end(wait);
		return 0;
	}
	uint64_t cycles = idle_length(&w->idle, now, port_wait_is_woken(wait));

	fib_reader_offline(w->rcu, w->io->id);
	port_wait_for(wait, idle_ns(&w->idle, cycles));
	port_wait_end(wait);
	fib_reader_online(w->rcu, w->io->id);
	stats_add(&w->stat->sleeps, 1);
	uint64_t slept = rte_rdtsc() - now;

	stats_add(&w->stat->slept_cycles, slept);
	return idle_meant(&w->idle, cycles, slept);
}

// Checks for tpause or an equivalent instruction.
static bool cpu_can_pause(void)
{
	struct rte_cpu_intrinsics cpu;

	rte_cpu_get_intrinsics_support(&cpu);
	return cpu.power_pause;
}

// Pauses between polls before the first sleep, so that the core's sibling thread runs faster.
static inline void pause_briefly(const struct idle *idle, uint64_t now)
{
	if (now - idle->worked >= idle->spin / PAUSES_PER_SPIN)
		rte_power_pause(now + idle->spin / PAUSES_PER_SPIN);
}

int worker_run(void *arg)
{
	struct worker *w = arg;
	uint64_t last = rte_rdtsc();
	bool can_pause = w->io->may_sleep && cpu_can_pause();

	idle_start(&w->idle, w->io->may_sleep, w->tsc_hz, last);
	fib_reader_online(w->rcu, w->io->id);
	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		unsigned got = 0, n_injected = w->tap ? datapath_inject(w) : 0;

		for (unsigned q = 0; q < w->io->n_queues; q++)
			got += poll_queue(w, q);
		fib_reader_report(w->rcu, w->io->id);
		last = watch_gap(w, last, got + n_injected);
		stats_add(&w->stat->loops, 1);
		if (got | n_injected)
			w->idle.worked = last;
		if (got)
			continue;
		stats_add(&w->stat->empty_loops, 1);
		if (unlikely(w->stat->empty_loops % EMPTY_LOOPS_PER_LOOK == 0) && !has_buffers(w))
			stats_add(&w->stat->starved_loops, 1);
		if (unlikely(idle_is_due(&w->idle, last)))
			last += sleep_awhile(w, last);
		else if (can_pause)
			pause_briefly(&w->idle, last);
	}
	fib_reader_offline(w->rcu, w->io->id);
	if (w->tap)
		datapath_inject_rest(w);
	return 0;
}
