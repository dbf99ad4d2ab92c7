// The generator as a whole: opening, running, closing, and the states of a run. Control thread.
#include "gen/inside.h"

#include "base/clock.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OFFSET_TRIES = 5, QUIET_MS = 20, NOISE_MS = 500, POLL_MS = 50, POLL_OFTEN_MS = 2 };

// Port names, addresses and line rates for the stream parser. `ports` NULL: from the settings only.
static void describe_ports(struct gen_port out[PORT_MAX],
	const struct port_table_settings *settings, const struct port_table *ports)
{
	for (unsigned i = 0; i < settings->n_ports; i++) {
		const struct port_settings *port = &settings->ports[i];
		struct port_info info;

		out[i] = (struct gen_port){.name = port->name,
			.mac = port->mac,
			.line_bps = ports || port->line_bps > 0 ? port->line_bps : -1,
			.mtu = port->mtu ? port->mtu : PORT_DEFAULT_MTU};
		if (!ports)
			continue;
		port_info(ports, i, &info);
		out[i].mac = info.mac;
		out[i].line_bps = info.line_bps;
	}
}

int gen_check(const struct port_table_settings *settings, const json_t *streams,
	struct error *error)
{
	struct gen_port ports[PORT_MAX];

	if (!streams)
		return 0;
	struct gen_streams *read = malloc(sizeof(*read));
	if (!read)
		return error_set(error, -ENOMEM, "not enough memory to read the streams");
	describe_ports(ports, settings, NULL);
	int err = gen_read_streams(read, streams, ports, settings->n_ports, error);
	if (!err)
		err = neighbours_check(settings, read, error);
	free(read);
	return err;
}

static void take_workers(struct gen *gen)
{
	gen->n_workers = port_n_workers(gen->ports);
	gen->patience_s = HAND_PATIENCE_S;
	for (unsigned i = 0; i < gen->n_workers; i++) {
		struct gen_worker *worker = &gen->worker[i];

		worker->io = port_worker(gen->ports, i);
		worker->current = &gen->current;
		worker->stop = &gen->stop;
		worker->n_posted = &gen->neighbours.n_posted;
		worker->hz = gen->hz;
		worker->long_gap = gen->hz / 1000000 * STALLS_LEAST_US;
		for (unsigned q = 0; q < worker->io->n_queues; q++)
			gen->worker_of[worker->io->queues[q].port] = i;
	}
}

static int make_run(struct gen *gen, struct run **run, const struct gen_streams *streams,
	struct error *error)
{
	const struct run_terms terms = {
		.ports = gen->ports,
		.n_ports = gen->settings->n_ports,
		.worker_of = gen->worker_of,
		.streams = streams,
		.posts = gen->neighbours.post,
		.number = gen->current ? gen->current->number + 1 : 0,
		.hz = gen->hz,
	};

	return run_create(run, &terms, error);
}

int gen_open(struct gen **out, struct port_table *ports, const struct port_table_settings *settings,
	const json_t *streams, struct error *error)
{
	struct gen *gen = aligned_alloc(_Alignof(struct gen), sizeof(*gen));

	if (!gen)
		return error_set(error, -ENOMEM, "not enough memory for the generator");
	memset(gen, 0, sizeof(*gen));
	gen->ports = ports;
	gen->settings = settings;
	gen->streams = streams;
	gen->hz = rte_get_tsc_hz();
	take_workers(gen);
	const struct neighbours_terms terms = {ports, settings, gen->worker_of};
	int err = neighbours_make(&gen->neighbours, &terms, error);
	if (!err)
		err = make_run(gen, &gen->current, NULL, error);
	if (err)
		gen_close(gen);
	else
		*out = gen;
	return err;
}

int gen_start(struct gen *gen, struct error *error)
{
	void *args[STATS_MAX_WORKERS];

	for (unsigned i = 0; i < gen->n_workers; i++)
		args[i] = &gen->worker[i];
	int err = port_workers_launch(gen->ports, worker_run, args, error);
	if (err)
		gen_stop(gen); // those that are already running
	return err;
}

void gen_stop(struct gen *gen)
{
	__atomic_store_n(&gen->stop, true, __ATOMIC_RELAXED);
	port_workers_join(gen->ports);
}

void gen_close(struct gen *gen)
{
	if (!gen)
		return;
	while (gen->current) {
		struct run *run = gen->current;

		gen->current = run->older;
		run_destroy(run);
	}
	neighbours_free(&gen->neighbours);
	free(gen);
}

// Waits for stragglers first, because workers do not poll while they measure. The wait is limited,
// because traffic may never stop.
static bool is_quiet(struct run *run)
{
	uint64_t n = 0, now = rte_rdtsc(), ms = run->hz / 1000;

	for (unsigned i = 0; i < run->n_ports; i++)
		n += stats_read(&run->port[i].counters.rx_packets);
	if (n != run->n_received || !run->heard_tsc) {
		run->n_received = n;
		run->heard_tsc = now;
	}
	return now - run->heard_tsc > ms * QUIET_MS || now - run_sent_tsc(run) > ms * NOISE_MS;
}

// The second round of the TSC offset measurement. Returns true once it is complete.
static bool measure_again(struct run *run)
{
	if (!run->n_pairs || run->is_measured_again)
		return true;
	if (!run_offset_is_known(run))
		return false;
	if (run->n_tries && (run_has_measured_since(run) || run->n_tries == OFFSET_TRIES)) {
		run->is_measured_again = true;
		return true;
	}
	if (run->n_tries || is_quiet(run)) {
		run->n_tries++;
		run_ask_offset(run);
	}
	return false;
}

enum gen_state gen_state(struct gen *gen)
{
	struct run *run = gen->current;

	if (!run->number)
		return GEN_IDLE;
	if (!run->start)
		return GEN_DONE; // no worker took part
	return run_is_sent(run) && measure_again(run) ? GEN_DONE : GEN_SENDING;
}

static int check_links(struct gen *gen, const struct gen_streams *streams, struct error *error)
{
	const struct port_state *states = port_states(gen->ports);

	port_poll(gen->ports);
	if (port_check_devices(gen->ports, error))
		return -ENODEV;
	for (unsigned i = 0; i < streams->n; i++) {
		const struct gen_stream *stream = &streams->stream[i];
		unsigned from = stream->is_receive_only ? stream->to : stream->from;
		unsigned down = states[from].up ? stream->to : from;

		for (unsigned k = 0; k < stream->expect.n_ports && states[down].up; k++)
			down = stream->expect.port[k];
		if (!states[down].up)
			return error_set(error, -ENETDOWN,
				"port %s of stream %s has no link; connect the cable, or start the "
				"program at the other end, then send again",
				gen->settings->ports[down].name, stream->name);
	}
	return 0;
}

// A run must end by itself.
static int check_end(const struct gen_streams *streams, double seconds, struct error *error)
{
	bool sends = false;

	for (unsigned i = 0; i < streams->n; i++) {
		const struct gen_stream *stream = &streams->stream[i];

		if (!(seconds > 0) && !stream->is_receive_only && !stream->n_frames)
			return error_set(error, -EINVAL,
				"stream %s would never end; specify seconds, or frames in the "
				"stream",
				stream->name);
		sends |= !stream->is_receive_only;
	}
	if (!(seconds > 0) && !sends)
		return error_set(error, -EINVAL,
			"all streams are only received, so the run would end at once; specify "
			"seconds");
	return 0;
}

static int read_order(struct gen *gen, const struct gen_order *order, struct gen_streams *streams,
	struct error *error)
{
	struct gen_port ports[PORT_MAX];
	const json_t *list = order->streams ? order->streams : gen->streams;

	if (!list)
		return error_set(error, -EINVAL,
			"no streams: the configuration file has none; add them there, or pass them "
			"to the method");
	describe_ports(ports, gen->settings, gen->ports);
	int err = gen_read_streams(streams, list, ports, gen->settings->n_ports, error);
	if (!err && !streams->n)
		err = error_set(error, -EINVAL,
			"the list of streams is empty; expected at least one");
	if (!err)
		err = check_end(streams, order->seconds, error);
	if (!err)
		err = check_links(gen, streams, error);
	return err ? err : neighbours_resolve(&gen->neighbours, streams, error);
}

// The first round of the TSC offset is requested by the run itself. If a worker cannot take part,
// frames are sent anyway; the results report it.
static void measure_before(struct run *run)
{
	uint64_t deadline_ns = clock_now_ns() + HAND_PATIENCE_S * 1000000000ull;

	while (run->n_pairs && clock_now_ns() < deadline_ns) {
		bool is_known = run_offset_is_known(run);

		if (is_known && run_has_measured_since(run))
			break;
		if (is_known)
			run_ask_offset(run);
		nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	}
	run->is_measured_before = run_has_measured_since(run);
	for (unsigned i = 0; i < run->n_pairs; i++)
		run->pair[i].n_before = stats_read(&run->pair[i].n_measured);
}

int gen_send(struct gen *gen, const struct gen_order *order, struct error *error)
{
	struct gen_streams *streams;
	struct run *run;

	if (gen_state(gen) == GEN_SENDING)
		return error_set(error, -EBUSY,
			"run %u is still sending; wait until it ends, or call the method halt",
			gen->current->number);
	int err = hand_await(gen, error);
	if (err)
		return err;
	streams = malloc(sizeof(*streams));
	if (!streams)
		return error_set(error, -ENOMEM, "not enough memory to read the streams");
	err = read_order(gen, order, streams, error);
	if (!err)
		err = make_run(gen, &run, streams, error);
	free(streams);
	if (err)
		return err;
	hand_over(gen, run);
	err = hand_await(gen, error);
	if (err)
		return err;
	measure_before(run);
	run_start(run, order->delay_s, order->seconds);
	return 0;
}

int gen_poll(struct gen_ctx *ctx, struct error *error)
{
	port_poll(ctx->ports);
	int err = port_check_devices(ctx->ports, error);

	if (err)
		return err;
	if (!port_workers_alive(ctx->ports))
		return error_set(error, -EIO, "a worker terminated unexpectedly; stopping");
	gen_state(ctx->gen);
	hand_poll(ctx->gen);
	neighbours_poll(&ctx->gen->neighbours, &ctx->gen->current->streams);
	return 0;
}

int gen_poll_ms(const struct gen *gen)
{
	for (unsigned i = 0; i < gen->settings->n_ports; i++)
		if (gen->neighbours.post[i])
			return POLL_OFTEN_MS;
	return POLL_MS;
}
