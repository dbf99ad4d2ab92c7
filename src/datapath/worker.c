// The polling loop of one worker, and the order in which the steps process each burst. Worker.
#include "datapath/steps.h"

#include "datapath/cost.h"
#include "datapath/variant.h"

#include <rte_cpuflags.h>
#include <rte_cycles.h>
#include <rte_power_intrinsics.h>

// BURSTS_PER_TIMING: untimed bursts for each timed one. POOL_CHECK_INTERVAL: empty loop iterations
// between checks of the mempools for free mbufs. LONG_GAPS_PER_BURST: a timing sample that exceeds
// the expected cost of its burst by this many long gaps is discarded; its packets are forwarded.
enum { BURSTS_PER_TIMING = 64, POOL_CHECK_INTERVAL = 64, LONG_GAPS_PER_BURST = 10 };
// Calls of rte_power_pause per IDLE_SPIN_US, i.e. 0.5 us each.
enum { PAUSES_PER_SPIN = 100 };

// Adds the cycles since `since` to a counter if the burst is timed. Returns the current TSC; 0 if
// not timed.
static inline uint64_t add_elapsed(bool is_timed, uint64_t *cycles, uint64_t since)
{
	if (!is_timed)
		return 0;
	uint64_t now = rte_rdtsc();

	stats_add(cycles, now - since);
	return now;
}

// The same for a phase that the driver runs as a whole.
static inline uint64_t end_phase(struct worker *w, enum phase phase, bool is_timed, uint64_t t)
{
	return add_elapsed(is_timed, &w->step_cycles[w->step_of_phase[phase]], t);
}

// Runs the steps of a phase that the burst needs.
static inline uint64_t run_steps(struct worker *w, enum phase phase, struct burst *b, bool is_timed,
	uint64_t t)
{
	const struct enabled_steps *steps = &w->steps[b->is_ip6];
	const struct enabled_step *step = &steps->step[steps->first[phase]];
	const struct enabled_step *end = &steps->step[steps->first[phase + 1]];

	for (; step < end; step++) {
		if (!(b->has & step->has))
			continue;
		step->run(w, b);
		t = add_elapsed(is_timed, &w->step_cycles[step->id], t);
	}
	return t;
}

static inline uint64_t run_phase(struct worker *w, enum phase phase, bool is_timed, uint64_t t)
{
	if (w->poll->ip4.n)
		t = run_steps(w, phase, &w->poll->ip4, is_timed, t);
	if (w->poll->ip6.n)
		t = run_steps(w, phase, &w->poll->ip6, is_timed, t);
	return t;
}

// Returns how many frames of those that the queue had go on, and writes that into r, too.
static inline uint16_t receive(struct worker *w, struct received *r)
{
	const struct port_queue *from = r->from;

	r->n = port_rx(from, r->mbuf, w->io->burst);
	r->has_offloads = false;
	if (!r->n)
		return 0;
	stats_add(&w->stat->port[from->port].rx_packets, r->n);
	stats_add(&w->stat->queue[from - w->io->queues].rx_packets, r->n);
	stats_add(&w->stat->bursts, 1);
	if (unlikely(w->states[from->port].has_offloads))
		offload_receive(w, r);
	if (unlikely(w->capture != NULL))
		worker_capture_received(w, from->port, r->mbuf, r->n);
	return r->n;
}

// Consecutive polls of one queue whose lookups are pipelined. The frames of the first poll have
// already been received.
struct batch {
	const struct fib_view *main;
	struct received newest;
	unsigned n; // number of polls; an upper bound as long as the batch is receiving
	bool is_timed;
	uint64_t t;
};

static inline struct poll *poll_slot(struct worker *w, unsigned number)
{
	return &w->polls[number % PIPELINE_DEPTH];
}

// A poll that returned less than a full burst is the last one of its batch.
static inline void parse_poll(struct worker *w, struct batch *batch, unsigned number)
{
	w->poll = poll_slot(w, number);
	datapath_parse(w, batch->main, &batch->newest);
	if (batch->newest.n < w->io->burst)
		batch->n = number + 1;
	batch->t = end_phase(w, PHASE_PARSE, batch->is_timed, batch->t);
	batch->t = run_phase(w, PHASE_BEFORE, batch->is_timed, batch->t);
}

// What was in tunnels goes through all phases, once: a tunnel in it is not opened.
static __attribute__((noinline)) uint64_t route_inner(struct worker *w, bool is_timed, uint64_t t)
{
	struct poll *outer = w->poll;

	w->poll = &w->polls[INNER_POLL];
	w->is_in_tunnel = true;
	datapath_parse_tunnelled(w, fib_live_view(w->live));
	w->tunnelled.n = 0;
	t = end_phase(w, PHASE_DECAP, is_timed, t);
	t = run_phase(w, PHASE_BEFORE, is_timed, t);
	t = run_phase(w, PHASE_LOOKUP, is_timed, t);
	t = run_phase(w, PHASE_AFTER, is_timed, t);
	w->is_in_tunnel = false;
	w->poll = outer;
	return t;
}

static inline void finish_poll(struct worker *w, struct batch *batch, unsigned number)
{
	w->poll = poll_slot(w, number);
	batch->t = run_phase(w, PHASE_AFTER, batch->is_timed, batch->t);
	if (unlikely(w->tunnelled.n))
		batch->t = route_inner(w, batch->is_timed, batch->t);
	burst_free_dropped(w);
	batch->t = end_phase(w, PHASE_FREE, batch->is_timed, batch->t);
}

// Returns the number of frames received. If there are none, the batch ends with the previous poll.
static inline uint16_t receive_next(struct worker *w, struct batch *batch, unsigned number)
{
	struct received *r = &batch->newest;

	if (!(unlikely(r->ring != NULL) ? handover_take(w, r) : receive(w, r)))
		batch->n = number;
	batch->t = end_phase(w, PHASE_RX, batch->is_timed, batch->t);
	return r->n;
}

// Iterations between the parsing of a poll and its last stages.
enum { FINISH_DELAY = PIPELINE_DEPTH - 1 };

// Pipelines the lookups of consecutive polls of one queue. Used if lookups are likely to miss the
// cache and the first poll returned a full burst: such a queue usually has more packets. While one
// poll's lookup waits for memory, other polls are received, parsed and finished. The lookup of a
// poll is completed before the next one is started, and only then is the poll finished: check loads
// hop[] as vectors, and scalar stores immediately before would cause store-forwarding stalls. Adds
// the frames of further polls to r->n.
static __attribute__((noinline)) void route_batch(struct worker *w, struct received *r,
	bool is_timed, uint64_t t)
{
	struct batch batch = {fib_live_view(w->live), *r, BATCH_POLLS, is_timed, t};

	for (unsigned i = 0; i < batch.n + FINISH_DELAY; i++) {
		if (i < batch.n)
			parse_poll(w, &batch, i);
		if (i >= FINISH_DELAY)
			datapath_lookup_end(w, poll_slot(w, i - FINISH_DELAY));
		if (i >= 1 && i - 1 < batch.n)
			datapath_lookup_begin(w, poll_slot(w, i - 1));
		batch.t = end_phase(w, PHASE_LOOKUP, is_timed, batch.t);
		if (i >= FINISH_DELAY)
			finish_poll(w, &batch, i - FINISH_DELAY);
		if (i >= 1 && i - 1 < batch.n)
			datapath_lookup_continue(w, poll_slot(w, i - 1));
		batch.t = end_phase(w, PHASE_LOOKUP, is_timed, batch.t);
		if (i + 1 < batch.n)
			r->n += receive_next(w, &batch, i + 1);
	}
	w->poll = w->polls;
}

// `is_timed` is a constant, so the compiler generates two copies, and the untimed one has no timing
// code.
static inline __attribute__((always_inline)) uint64_t route_parsed(struct worker *w, bool is_timed,
	uint64_t t)
{
	t = end_phase(w, PHASE_PARSE, is_timed, t);
	t = run_phase(w, PHASE_BEFORE, is_timed, t);
	t = run_phase(w, PHASE_LOOKUP, is_timed, t);
	t = run_phase(w, PHASE_AFTER, is_timed, t);
	return likely(!w->tunnelled.n) ? t : route_inner(w, is_timed, t);
}

static inline __attribute__((always_inline)) void route(struct worker *w, const struct received *r,
	bool is_timed, uint64_t t)
{
	datapath_parse(w, fib_live_view(w->live), r);
	route_parsed(w, is_timed, t);
}

static __attribute__((noinline)) void hand_over(struct worker *w, const struct received *r,
	bool is_timed, uint64_t t)
{
	datapath_handover(w, r);
	end_phase(w, PHASE_HANDOVER, is_timed, t);
}

static inline void xconnect(struct worker *w, const struct received *r, bool is_timed, uint64_t t)
{
	datapath_xconnect(w, r);
	end_phase(w, PHASE_XCONNECT, is_timed, t);
}

// What a bridge of Linux leaves; its interface has Linux get it.
static __attribute__((noinline)) void route_rest(struct worker *w, const struct received *r,
	bool is_timed, uint64_t t)
{
	route(w, r, is_timed, t);
}

// Frames to a bridge of Linux itself.
static __attribute__((noinline)) uint64_t route_own(struct worker *w,
	const struct received_on_bridge *own, bool is_timed, uint64_t t)
{
	datapath_parse_bridge(w, fib_live_view(w->live), own);
	return route_parsed(w, is_timed, t);
}

static inline void bridge(struct worker *w, struct received *r, bool is_timed, uint64_t t)
{
	const uint16_t n = r->n;
	struct received_on_bridge own;

	datapath_bridge(w, r, &own);
	t = end_phase(w, PHASE_BRIDGE, is_timed, t);
	if (own.frames.n)
		t = route_own(w, &own, is_timed, t);
	if (r->n)
		route_rest(w, r, is_timed, t);
	r->n = n;
}

static inline bool lookups_wait(const struct worker *w)
{
	return fib_waits4(fib_live_view(w->live)) || (w->flows && flow_waits(w->flows));
}

static inline __attribute__((always_inline)) void process_burst(struct worker *w,
	struct received *r, bool is_timed, uint64_t t)
{
	const struct port_state *from = &w->states[r->from->port];

	if (unlikely(w->handover_out != NULL) && !r->ring)
		hand_over(w, r, is_timed, t);
	else if (from->is_xconnect)
		xconnect(w, r, is_timed, t);
	else if (port_is_bridged(from))
		bridge(w, r, is_timed, t);
	else if (r->n == w->io->burst && lookups_wait(w))
		route_batch(w, r, is_timed, t);
	else
		route(w, r, is_timed, t);
	if (w->n_dropped) {
		t = is_timed ? rte_rdtsc() : 0;
		burst_free_dropped(w);
		end_phase(w, PHASE_FREE, is_timed, t);
	}
}

static __attribute__((noinline)) void process_burst_timed(struct worker *w, struct received *r,
	uint64_t before_rx)
{
	memset(w->step_cycles, 0, sizeof(w->step_cycles));
	uint64_t first = w->stat->bursts, now = end_phase(w, PHASE_RX, true, before_rx);

	process_burst(w, r, true, now);
	w->timed_from = w->stat->bursts + BURSTS_PER_TIMING * (w->stat->bursts - first + 1);
	uint64_t spent = rte_rdtsc() - before_rx, usual = r->n * w->cost_per_packet;

	w->cost_per_packet = cost_update(w->cost_per_packet, spent, r->n);
	if (spent > usual + LONG_GAPS_PER_BURST * w->long_gap)
		return; // the worker was preempted, so the sample is not usable
	stats_add(&w->stat->timed_packets, r->n);
	for (unsigned i = 0; i < STATS_MAX_STEPS; i++)
		stats_add(&w->stat->step_cycles[i], w->step_cycles[i]);
}

void worker_process(struct worker *w, struct received *r)
{
	process_burst_timed(w, r, rte_rdtsc());
}

static uint16_t poll_queue(struct worker *w, unsigned queue)
{
	bool is_timed = w->stat->bursts >= w->timed_from;
	uint64_t before_rx = is_timed ? rte_rdtsc() : 0;
	struct rte_mbuf *mbuf[BURST_MAX] LINE_ALIGNED;
	struct received r = {.from = &w->io->queues[queue], .mbuf = mbuf};

	if (unlikely(port_is_closed(r.from)))
		return 0;
	if (!receive(w, &r))
		return 0;
	if (unlikely(is_timed))
		process_burst_timed(w, &r, before_rx);
	else
		process_burst(w, &r, false, 0);
	return r.n;
}

// What another worker has received.
static uint16_t poll_ring(struct worker *w, struct handover_ring *ring)
{
	bool is_timed = w->stat->bursts >= w->timed_from;
	uint64_t before_rx = is_timed ? rte_rdtsc() : 0;
	struct rte_mbuf *mbuf[BURST_MAX] LINE_ALIGNED;
	struct received r = {.from = &w->handover_in->from, .mbuf = mbuf, .ring = ring};

	if (!handover_take(w, &r))
		return 0;
	if (unlikely(is_timed))
		process_burst_timed(w, &r, before_rx);
	else
		process_burst(w, &r, false, 0);
	handover_done(ring);
	return r.n;
}

// Moves slots; processes what this worker is handed, and returns how much it was.
static __attribute__((noinline)) unsigned poll_workers(struct worker *w)
{
	const struct handover_in *in = w->handover_in;
	unsigned got = 0;

	if (w->handover_out)
		handover_follow(w);
	for (unsigned i = 0; in && i < in->n; i++)
		got += poll_ring(w, in->ring[i]);
	return got;
}

// All workers are told to stop at the same time; those that receive end first.
static void finish_handover(struct worker *w)
{
	while (w->handover_out && w->handover_out->is_moving)
		poll_workers(w);
	handover_close(w);
	while (w->handover_in && !handover_is_over(w->handover_in))
		poll_workers(w);
}

// Records a loop iteration that took longer than w->min_recorded_gap. It counts as a stall
// (preemption) if it exceeds the expected cost of its frames by more than w->long_gap.
static __attribute__((noinline)) void record_gap(struct worker *w, uint64_t gap, uint64_t now,
	unsigned n_frames)
{
	struct stats_worker *stat = w->stat;

	if (gap > w->long_gap) {
		unsigned times_log2 = 63 - __builtin_clzll(gap / MAX_OF(w->long_gap, 1u));

		stats_add(&stat->long_gaps[MIN_OF(times_log2, STATS_GAPS - 1u)], 1);
		stats_add(&stat->long_gap_cycles, gap);
	}
	if (gap > w->long_gap + n_frames * w->cost_per_packet)
		stalls_record(&stat->stalls, now, gap);
	if (gap > stat->longest_gap_cycles) {
		stats_set(&stat->longest_gap_cycles, gap);
		stats_set(&stat->longest_gap_at_cycles, now);
	}
	w->min_recorded_gap = MIN_OF(stat->longest_gap_cycles, w->long_gap);
}

// Measures the loop iteration that ends now, in which `n_frames` were received or injected.
// `expected_start`: when it started; after a sleep, when the sleep should have ended. Returns the
// current TSC.
static inline uint64_t measure_gap(struct worker *w, uint64_t expected_start, unsigned n_frames)
{
	uint64_t now = rte_rdtsc();

	if (unlikely(now - expected_start > w->min_recorded_gap))
		record_gap(w, now - expected_start, now, n_frames);
	return now;
}

// A device without free mbufs returns no frames, and not every PMD increments rx_nombuf in that
// case.
static __attribute__((noinline)) bool has_buffers(const struct worker *w)
{
	void *buffer;

	for (unsigned q = 0, n = port_n_queues(w->io); q < n; q++) {
		const struct port_queue *queue = &w->io->queues[q];

		if (port_is_closed(queue) || !queue->pool)
			continue;
		if (rte_mempool_get(queue->pool, &buffer))
			return false;
		rte_mempool_put(queue->pool, buffer);
	}
	return true;
}

// Sleeps until frames arrive or the allowed time has passed. Meanwhile the worker is offline in
// QSBR, so the control thread does not wait for it. Returns the intended sleep time in TSC cycles,
// including the usual wakeup latency (idle_intended); any further delay counts as a stall.
static __attribute__((noinline)) uint64_t idle_sleep(struct worker *w, uint64_t now)
{
	struct port_wait *wait = w->io->wait;

	// Without free buffers the device may hold frames without signalling an event.
	if (w->injection.n || !has_buffers(w) || !port_wait_begin(wait))
		return 0;
	if ((w->tap && !tap_is_quiet(w->tap)) || !handover_is_quiet(w) ||
		(w->shape && !datapath_shape_is_quiet(w))) {
		port_wait_end(wait);
		return 0;
	}
	uint64_t cycles = idle_length(&w->idle, now, port_wait_is_woken(wait));

	rcu_reader_offline(w->rcu, w->io->id);
	port_wait_for(wait, idle_ns(&w->idle, cycles));
	rcu_reader_online(w->rcu, w->io->id);
	port_wait_end(wait);
	stats_add(&w->stat->sleeps, 1);
	uint64_t slept = rte_rdtsc() - now;

	stats_add(&w->stat->slept_cycles, slept);
	return idle_intended(&w->idle, cycles, slept);
}

// Whether the CPU has TPAUSE or an equivalent instruction.
static bool cpu_can_pause(void)
{
	struct rte_cpu_intrinsics cpu;

	rte_cpu_get_intrinsics_support(&cpu);
	return cpu.power_pause;
}

// Pauses between polls before the first sleep, so that the core's sibling thread runs faster.
static inline void pause_briefly(const struct idle *idle, uint64_t now)
{
	if (now - idle->last_busy >= idle->spin / PAUSES_PER_SPIN)
		rte_power_pause(now + idle->spin / PAUSES_PER_SPIN);
}

int worker_run(void *arg)
{
	struct worker *w = arg;
	uint64_t now = rte_rdtsc(), expected_start = now;
	bool can_pause = w->io->may_sleep && cpu_can_pause();
	const bool hands_over = w->handover_out || w->handover_in;

	datapath_enable_steps(w);
	idle_start(&w->idle, w->io->may_sleep, w->tsc_hz, now);
	rcu_reader_online(w->rcu, w->io->id);
	handover_open(w);
	if (w->shape)
		datapath_shape_open(w);
	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		w->capture = capture_producer(w->captures, w->io->id);
		unsigned got = 0, n_injected = w->tap ? datapath_inject(w) : 0;

		for (unsigned q = 0, n = port_n_queues(w->io); q < n; q++)
			got += poll_queue(w, q);
		if (unlikely(hands_over))
			got += poll_workers(w);
		if (unlikely(w->shape != NULL))
			got += datapath_shape_poll(w);
		rcu_reader_report(w->rcu, w->io->id);
		now = measure_gap(w, expected_start, got + n_injected);
		expected_start = now;
		stats_add(&w->stat->loops, 1);
		if (got | n_injected)
			w->idle.last_busy = now;
		if (got)
			continue;
		stats_add(&w->stat->empty_loops, 1);
		if (unlikely(w->stat->empty_loops % POOL_CHECK_INTERVAL == 0) && !has_buffers(w))
			stats_add(&w->stat->starved_loops, 1);
		if (unlikely(idle_is_due(&w->idle, now)))
			expected_start = now + idle_sleep(w, now);
		else if (can_pause)
			pause_briefly(&w->idle, now);
	}
	finish_handover(w);
	if (w->shape)
		datapath_shape_close(w);
	w->capture = NULL;
	rcu_reader_offline(w->rcu, w->io->id);
	if (w->tap)
		datapath_inject_rest(w);
	return 0;
}
