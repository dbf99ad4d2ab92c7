// The loop of a worker: take over the run, send what is due, process received frames. Worker.
#include "gen/workers.h"

#include <rte_cycles.h>

// RFC 2544, section 23: residual frames may arrive for two seconds after the last was sent.
enum { BURST_MAX = 64, BURSTS_LEAST = 2, SUSPECT_POLLS = 2, RESIDUAL_S = 2 };

static void measure_offsets(struct run *run, unsigned worker, struct run_part *part)
{
	for (unsigned i = 0; i < run->n_pairs; i++) {
		struct offset_pair *pair = &run->pair[i];

		if (pair->sender == worker)
			offset_ask(pair, part->n_measured + 1, run->hz);
		else if (pair->answerer == worker)
			offset_answer(pair, part->n_measured + 1, run->hz);
	}
	stats_add(&part->n_measured, 1);
}

// A measurement does not count as a stall in which frames could have been lost: none are in flight.
static void forget_polls(struct run *run, const struct port_worker *io, struct run_part *part)
{
	uint64_t now = rte_rdtsc();

	for (unsigned q = 0; q < io->n_queues; q++)
		run->port[io->queues[q].port].last_poll = now;
	part->last_look = now;
}

static void set_phase(struct run_part *part, unsigned phase)
{
	__atomic_store_n(&part->phase, phase, __ATOMIC_RELEASE);
}

static void begin(const struct run *run, struct run_part *part, uint64_t start)
{
	for (unsigned i = 0; i < part->n_live; i++)
		sender_begin(part->live[i], start, run->end);
	set_phase(part, PART_SENDS);
}

static void rest(struct run_part *part, uint64_t now)
{
	stats_set(&part->rested_tsc, now);
	set_phase(part, PART_RESTS);
}

// Checks of a worker that is not sending.
static void look_up(struct run *run, const struct port_worker *io, struct run_part *part)
{
	uint64_t start = __atomic_load_n(&run->start, __ATOMIC_ACQUIRE);

	if (part->n_measured < __atomic_load_n(&run->n_asked, __ATOMIC_RELAXED)) {
		measure_offsets(run, io->id, part);
		forget_polls(run, io, part);
	}
	if (part->phase == PART_WAITS && start)
		begin(run, part, start);
}

// Cycles since the first frame was due; 0: not yet.
static uint64_t since_start(const struct run *run, uint64_t now)
{
	uint64_t start = __atomic_load_n(&run->start, __ATOMIC_RELAXED);

	return start && now > start ? now - start : 0;
}

// Whether no frame of the run was in flight any more when a stall began: only stalls during the run
// are recorded.
static bool is_over(const struct run *run, uint64_t began)
{
	uint64_t sent = run_sent_tsc(run);

	return sent && began > sent && began - sent > run->hz / 10;
}

// Records a long or the longest gap of the run. In this time the worker did no more than send one
// burst, or account for one and receive the next.
static __attribute__((noinline)) void record_stall(const struct run *run, struct run_part *part,
	uint64_t gap, uint64_t now)
{
	struct gen_worker *worker = part->worker;

	if (gap > worker->long_gap && !is_over(run, now - gap))
		stalls_record(&worker->stalls, now, gap);
	if (!since_start(run, now))
		return;
	if (gap > part->longest_gap)
		stats_set(&part->longest_gap, gap);
	part->min_recorded_gap = MIN_OF(part->longest_gap, worker->long_gap);
}

// Called whenever the worker has read the clock.
static inline void look(const struct run *run, struct run_part *part, uint64_t now)
{
	uint64_t gap = now - part->last_look;

	part->last_look = now;
	if (unlikely(gap > part->min_recorded_gap))
		record_stall(run, part, gap, now);
}

// Returns true once nothing is left to be sent, or to be received from another program before the
// end.
static bool send_due(const struct run *run, struct run_part *part, uint64_t now)
{
	uint64_t turn = now;

	if (unlikely(__atomic_load_n(&run->is_halted, __ATOMIC_RELAXED)))
		return true;
	for (unsigned i = 0; i < part->n_live;) {
		if (sender_turn(part->live[i], turn))
			i++;
		else
			part->live[i] = part->live[--part->n_live];
		turn = rte_rdtsc();
		look(run, part, turn);
	}
	return !part->n_live && (!part->waits || now >= run->end);
}

// Cycles until the ring is full at the run's rate, or otherwise at the rate received so far. Not
// used in the fast path, because it divides.
static uint64_t count_ring_cycles(const struct run_port *port, uint64_t since)
{
	uint64_t n = port->counters.rx_packets;

	if (port->ring_cycles)
		return port->ring_cycles;
	return n ? (double)port->ring_slots * since / n : UINT64_MAX;
}

static __attribute__((noinline)) void record_gap(const struct run *run, struct run_port *port,
	uint64_t gap, uint64_t now)
{
	uint64_t since = since_start(run, now);

	if (!since)
		return;
	if (gap > port->counters.longest_gap)
		stats_set(&port->counters.longest_gap, gap);
	if (gap > count_ring_cycles(port, since))
		port->n_suspect = SUSPECT_POLLS;
	// If the rate is unknown, every gap above 10 us is checked.
	port->min_recorded_gap = MIN_OF(port->counters.longest_gap,
		port->ring_cycles ? port->ring_cycles : run->hz / 100000);
}

// If frames were lost in a stall, the ring is full after it. The stall may have been before the
// poll that shows it, or after that poll's frames: then the next poll finds the ring full.
static __attribute__((noinline)) void look_for_full_ring(struct run_port *port, bool is_full)
{
	port->n_suspect--;
	if (!is_full)
		return;
	stats_add(&port->counters.late_polls, 1);
	port->n_suspect = 0;
}

// Returns the number of frames received.
static unsigned receive(struct run *run, struct run_part *part, const struct port_queue *queue,
	uint16_t burst)
{
	unsigned tries = part->n_live + BURSTS_LEAST;
	struct run_port *port = &run->port[queue->port];
	struct rte_mbuf *mbuf[BURST_MAX] LINE_ALIGNED;
	unsigned got = 0;
	uint16_t n;

	do {
		n = port_rx(queue, mbuf, burst);
		uint64_t now = rte_rdtsc(), gap = now - port->last_poll;

		port->last_poll = now;
		look(run, part, now);
		if (unlikely(gap > port->min_recorded_gap))
			record_gap(run, port, gap, now);
		if (unlikely(port->n_suspect))
			look_for_full_ring(port, n >= MIN_OF(burst, port->ring_slots));
		if (!n)
			return got;
		got += n;
		sink_take(&run->sink, &port->counters, mbuf, n, queue->port, now);
	} while (n == burst && --tries);
	return got;
}

static struct run_part *take_up(struct gen_worker *worker, struct run *run)
{
	struct run_part *part = &run->part[worker->io->id];

	part->worker = worker;
	for (unsigned i = 0; i < part->n_live; i++)
		sender_prepare(part->live[i]);
	forget_polls(run, worker->io, part);
	__atomic_store_n(&worker->held, run, __ATOMIC_RELEASE);
	return part;
}

// Whether frames of the run are still to be sent or may still arrive.
static bool is_under_way(const struct run *run, const struct run_part *part, uint64_t now)
{
	if (part->phase == PART_SENDS)
		return true;
	if (!__atomic_load_n(&run->start, __ATOMIC_RELAXED))
		return false;
	uint64_t sent = run_sent_tsc(run);

	return !sent || now < sent + RESIDUAL_S * run->hz;
}

// Between runs a worker may sleep. Oversleeping is recorded as a stall.
static __attribute__((noinline)) void idle_sleep(struct gen_worker *worker, struct run *run,
	struct run_part *part, uint64_t now)
{
	struct port_wait *wait = worker->io->wait;
	uint64_t before = rte_rdtsc();

	if (is_under_way(run, part, now)) {
		worker->idle.last_busy = now;
		return;
	}
	if (!port_wait_begin(wait))
		return;
	uint64_t cycles = idle_length(&worker->idle, now, port_wait_is_woken(wait));

	port_wait_for(wait, idle_ns(&worker->idle, cycles));
	port_wait_end(wait);
	stats_add(&worker->n_sleeps, 1);
	uint64_t intended = idle_intended(&worker->idle, cycles, rte_rdtsc() - before);

	part->last_look += intended;
	for (unsigned q = 0; q < worker->io->n_queues; q++)
		run->port[worker->io->queues[q].port].last_poll += intended;
}

int worker_run(void *arg)
{
	struct gen_worker *worker = arg;
	const struct port_worker *io = worker->io;
	struct run_part *part = NULL;
	struct run *run = NULL;
	uint64_t n_delivered = 0;

	idle_start(&worker->idle, io->may_sleep, worker->hz, rte_rdtsc());

	while (!__atomic_load_n(worker->stop, __ATOMIC_RELAXED)) {
		struct run *wanted = __atomic_load_n(worker->current, __ATOMIC_ACQUIRE);

		if (unlikely(wanted != run)) {
			run = wanted;
			part = take_up(worker, run);
			worker->idle.last_busy = part->last_look;
		}
		uint64_t now = rte_rdtsc();
		look(run, part, now);
		stats_add(&part->rounds, 1);
		if (part->phase != PART_SENDS)
			look_up(run, io, part);
		else if (unlikely(send_due(run, part, now)))
			rest(part, now);
		unsigned got = 0;

		for (unsigned q = 0; q < io->n_queues; q++)
			got += receive(run, part, &io->queues[q], io->burst);
		if (got)
			worker->idle.last_busy = now;
		uint64_t n_posted = __atomic_load_n(worker->n_posted, __ATOMIC_ACQUIRE);
		if (unlikely(n_posted != n_delivered) && post_deliver(run, io))
			n_delivered = n_posted;
		if (unlikely(idle_is_due(&worker->idle, now)))
			idle_sleep(worker, run, part, now);
	}
	__atomic_store_n(&worker->held, NULL, __ATOMIC_RELEASE);
	return 0;
}
