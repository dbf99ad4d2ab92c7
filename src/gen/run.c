// Creates a run, starts it, and reports its progress. Control thread.
#include "gen/workers.h"

#include "base/pages.h"
#include "gen/expect.h"
#include "wire/stamp.h"

#include <errno.h>
#include <math.h>
#include <rte_cycles.h>
#include <stdlib.h>
#include <string.h>

// A port has one receive queue, and the worker that polls it is the only one that sends on the
// port: no lock is needed, and it uses the first transmit queue, whose other end on a ring device
// is the queue that is polled.
static int add_sender(struct run *run, const struct run_terms *terms, unsigned i,
	struct error *error)
{
	const struct gen_stream *stream = &run->streams.stream[i];
	unsigned worker = terms->worker_of[stream->from];
	struct run_part *part = &run->part[worker];
	struct port_info info;

	if (stream->is_receive_only)
		return 0;
	port_info(terms->ports, stream->from, &info);
	run->out[i] = port_worker(terms->ports, worker)->out[stream->from];
	run->out[i].queue = 0;
	run->out[i].shared = NULL;
	const struct sender_terms wanted = {
		.stream = stream,
		.out = &run->out[i],
		.pool = port_pool(terms->ports, stream->from),
		.has_backpressure = info.has_backpressure,
		.tsc_hz = run->hz,
		.run = run->number & STAMP_RUN_MASK,
		.timeline = &run->lines[worker]->sent,
	};
	int err = sender_create(&run->sender[i], &wanted, error);

	if (!err)
		part->live[part->n_live++] = run->sender[i];
	return err;
}

// A stream's counters have one writer.
static int check_workers(const struct run_terms *terms, const struct gen_stream *stream,
	struct error *error)
{
	for (unsigned i = 0; i < stream->expect.n_ports; i++) {
		uint8_t port = stream->expect.port[i];
		struct port_info to, other;

		if (terms->worker_of[port] == terms->worker_of[stream->to])
			continue;
		port_info(terms->ports, stream->to, &to);
		port_info(terms->ports, port, &other);
		return error_set(error, -EINVAL,
			"stream %s: its frames are expected on ports %s and %s, which are polled "
			"by workers %u and %u; let one worker poll both",
			stream->name, to.name, other.name, terms->worker_of[stream->to],
			terms->worker_of[port]);
	}
	return 0;
}

static int add_sink(struct run *run, unsigned i, unsigned worker, struct error *error)
{
	const struct gen_stream *stream = &run->streams.stream[i];
	int err = sink_stream_create(&run->received[i], stream, error);

	if (err)
		return err;
	run->sink.by_id[stream->id] = run->received[i];
	run->sink.expects |= stream->expect.n_ports > 0;
	if (!stream->is_receive_only)
		run->received[i]->timeline = &run->lines[worker]->received;
	return 0;
}

static int add_lines(struct run *run, unsigned worker, struct error *error)
{
	if (run->lines[worker])
		return 0;
	run->lines[worker] = pages_alloc(sizeof(*run->lines[worker]));
	if (!run->lines[worker])
		return error_set(error, -ENOMEM, "not enough memory for the timeline of a run");
	// Touched here, so that no worker takes the page faults.
	memset(run->lines[worker], 0, sizeof(*run->lines[worker]));
	return 0;
}

static void add_pair(struct run *run, unsigned sender, unsigned answerer)
{
	for (unsigned i = 0; i < run->n_pairs; i++)
		if ((run->pair[i].sender == sender && run->pair[i].answerer == answerer) ||
			(run->pair[i].sender == answerer && run->pair[i].answerer == sender))
			return;
	run->pair[run->n_pairs].sender = sender;
	run->pair[run->n_pairs++].answerer = answerer;
}

static int add_stream(struct run *run, const struct run_terms *terms, unsigned i,
	struct error *error)
{
	const struct gen_stream *stream = &run->streams.stream[i];
	unsigned to = terms->worker_of[stream->to];
	unsigned from = stream->is_receive_only ? to : terms->worker_of[stream->from];
	int err = check_workers(terms, stream, error);

	if (!err)
		err = add_lines(run, from, error);
	if (!err)
		err = add_lines(run, to, error);
	if (!err)
		err = add_sender(run, terms, i, error);
	if (!err)
		err = add_sink(run, i, to, error);
	run->part[to].waits |= stream->is_receive_only;
	if (from != to)
		add_pair(run, from, to);
	return err;
}

// How long a port's ring lasts at the rate sent to it; 0: unknown.
static uint64_t count_ring_cycles(const struct run *run, unsigned port)
{
	double pps = 0;

	for (unsigned i = 0; i < run->streams.n; i++) {
		const struct gen_stream *stream = &run->streams.stream[i];

		if (!expect_ends_on(stream, port))
			continue;
		if (stream->is_receive_only || !(stream->pps > 0))
			return 0;
		pps += stream->pps;
	}
	return pps > 0 ? MAX_OF(1, run->port[port].ring_slots * (run->hz / pps)) : 0;
}

static void fill_port(struct run *run, const struct run_terms *terms, unsigned i)
{
	struct run_port *port = &run->port[i];
	struct port_info info;

	port_info(terms->ports, i, &info);
	port->ring_slots = info.rx_ring_slots;
	port->ring_cycles = count_ring_cycles(run, i);
	port->missed_before = info.rx_missed;
}

int run_create(struct run **out, const struct run_terms *terms, struct error *error)
{
	struct run *run = aligned_alloc(_Alignof(struct run), sizeof(*run));
	int err = 0;

	if (!run)
		return error_set(error, -ENOMEM, "not enough memory for a run; use fewer streams");
	memset(run, 0, sizeof(*run));
	run->hz = terms->hz;
	run->number = terms->number;
	run->sink.run = run->number & STAMP_RUN_MASK;
	run->n_workers = port_n_workers(terms->ports);
	run->n_ports = terms->n_ports;
	if (terms->streams)
		run->streams = *terms->streams;
	for (unsigned i = 0; i < run->streams.n && !err; i++)
		err = add_stream(run, terms, i, error);
	if (err) {
		run_destroy(run);
		return err;
	}
	for (unsigned i = 0; i < run->n_ports; i++)
		fill_port(run, terms, i);
	if (terms->posts)
		memcpy(run->sink.post, terms->posts, run->n_ports * sizeof(run->sink.post[0]));
	run->n_asked = run->n_pairs > 0;
	*out = run;
	return 0;
}

void run_destroy(struct run *run)
{
	if (!run)
		return;
	for (unsigned i = 0; i < run->streams.n; i++) {
		if (run->sender[i])
			sender_destroy(run->sender[i]);
		if (run->received[i])
			sink_stream_destroy(run->received[i]);
	}
	for (unsigned i = 0; i < run->n_workers; i++)
		if (run->lines[i])
			pages_free(run->lines[i], sizeof(*run->lines[i]));
	free(run);
}

void run_start(struct run *run, double delay_s, double seconds)
{
	uint64_t start = rte_rdtsc() + (uint64_t)llround(delay_s * run->hz);

	// Rounded down, consistent with due times: the frame that starts another second is not due
	// in this one.
	run->end = seconds > 0 ? start + (uint64_t)(seconds * run->hz) : 0;
	for (unsigned i = 0; i < run->n_workers; i++) {
		if (!run->lines[i])
			continue;
		timeline_begin(&run->lines[i]->sent, start, run->end ? run->end - start : 0);
		timeline_begin(&run->lines[i]->received, start, run->end ? run->end - start : 0);
	}
	__atomic_store_n(&run->start, start, __ATOMIC_RELEASE);
}

bool run_is_sent(const struct run *run)
{
	for (unsigned i = 0; i < run->n_workers; i++)
		if (__atomic_load_n(&run->part[i].phase, __ATOMIC_ACQUIRE) != PART_RESTS)
			return false;
	return true;
}

uint64_t run_sent_tsc(const struct run *run)
{
	uint64_t last = 0;

	if (!run_is_sent(run))
		return 0;
	for (unsigned i = 0; i < run->n_workers; i++)
		last = MAX_OF(last, stats_read(&run->part[i].rested_tsc));
	return run->end && last > run->end ? run->end : last;
}

void run_ask_offset(struct run *run)
{
	__atomic_store_n(&run->n_asked, run->n_asked + 1, __ATOMIC_RELAXED);
}

bool run_offset_is_known(const struct run *run)
{
	for (unsigned i = 0; i < run->n_workers; i++)
		if (stats_read(&run->part[i].n_measured) < run->n_asked)
			return false;
	return true;
}

bool run_has_measured_since(const struct run *run)
{
	for (unsigned i = 0; i < run->n_pairs; i++)
		if (stats_read(&run->pair[i].n_measured) <= run->pair[i].n_before)
			return false;
	return true;
}
