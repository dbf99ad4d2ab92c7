// The generator as a whole: opens, runs, closes; what a run has to go through. Control thread.
#include "load/inside.h"

#include "base/clock.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OFFSET_TRIES = 5, QUIET_MS = 20, NOISE_MS = 500, TEND_MS = 50, TEND_OFTEN_MS = 2 };

// Port names, addresses and lines as the reader of streams wants them. `room` NULL: from the
// settings alone.
static void describe_ports(struct load_port out[PORT_MAX],
	const struct port_room_settings *settings, const struct port_room *room)
{
	for (unsigned i = 0; i < settings->n_ports; i++) {
		const struct port_settings *port = &settings->ports[i];
		struct port_info info;

		out[i] = (struct load_port){.name = port->name,
			.mac = port->mac,
			.line_bps = room || port->line_bps > 0 ? port->line_bps : -1,
			.mtu = port->mtu ? port->mtu : PORT_DEFAULT_MTU};
		if (!room)
			continue;
		port_info(room, i, &info);
		out[i].mac = info.mac;
		out[i].line_bps = info.line_bps;
	}
}

int load_check(const struct port_room_settings *settings, const json_t *streams,
	struct complaint *why)
{
	struct load_port ports[PORT_MAX];

	if (!streams)
		return 0;
	struct load_streams *read = malloc(sizeof(*read));
	if (!read)
		return complain(why, -ENOMEM, "no memory to read the streams");
	describe_ports(ports, settings, NULL);
	int err = load_read_streams(read, streams, ports, settings->n_ports, why);
	if (!err)
		err = neighbours_check(settings, read, why);
	free(read);
	return err;
}

static void take_lanes(struct load *load)
{
	load->n_lanes = port_n_lanes(load->ports);
	load->patience_s = HAND_PATIENCE_S;
	for (unsigned i = 0; i < load->n_lanes; i++) {
		struct load_lane *lane = &load->lane[i];

		lane->io = port_lane(load->ports, i);
		lane->current = &load->current;
		lane->stop = &load->stop;
		lane->n_posted = &load->neighbours.n_posted;
		lane->hz = load->hz;
		lane->long_gap = load->hz / 1000000 * PAUSES_LEAST_US;
		for (unsigned q = 0; q < lane->io->n_queues; q++)
			load->lane_of[lane->io->queues[q].port] = i;
	}
}

static int make_run(struct load *load, struct run **run, const struct load_streams *streams,
	struct complaint *why)
{
	const struct run_terms terms = {
		.ports = load->ports,
		.n_ports = load->settings->n_ports,
		.lane_of = load->lane_of,
		.streams = streams,
		.posts = load->neighbours.post,
		.number = load->current ? load->current->number + 1 : 0,
		.hz = load->hz,
	};

	return run_create(run, &terms, why);
}

int load_open(struct load **out, struct port_room *ports, const struct port_room_settings *settings,
	const json_t *streams, struct complaint *why)
{
	struct load *load = aligned_alloc(_Alignof(struct load), sizeof(*load));

	if (!load)
		return complain(why, -ENOMEM, "no memory for the generator");
	memset(load, 0, sizeof(*load));
	load->ports = ports;
	load->settings = settings;
	load->streams = streams;
	load->hz = rte_get_tsc_hz();
	take_lanes(load);
	const struct neighbours_terms terms = {ports, settings, load->lane_of};
	int err = neighbours_make(&load->neighbours, &terms, why);
	if (!err)
		err = make_run(load, &load->current, NULL, why);
	if (err)
		load_close(load);
	else
		*out = load;
	return err;
}

int load_start(struct load *load, struct complaint *why)
{
	void *args[STAT_MAX_LANES];

	for (unsigned i = 0; i < load->n_lanes; i++)
		args[i] = &load->lane[i];
	int err = port_lanes_launch(load->ports, lane_run, args, why);
	if (err)
		load_stop(load); // those that run already
	return err;
}

void load_stop(struct load *load)
{
	__atomic_store_n(&load->stop, true, __ATOMIC_RELAXED);
	port_lanes_join(load->ports);
}

void load_close(struct load *load)
{
	if (!load)
		return;
	while (load->current) {
		struct run *run = load->current;

		load->current = run->older;
		run_destroy(run);
	}
	neighbours_free(&load->neighbours);
	free(load);
}

// Stragglers first: while lanes measure they do not poll. On a wire that is never quiet they are
// waited for so long and no longer.
static bool is_quiet(struct run *run)
{
	uint64_t n = 0, now = rte_rdtsc(), ms = run->hz / 1000;

	for (unsigned i = 0; i < run->n_ports; i++)
		n += stat_read(&run->port[i].counters.rx_packets);
	if (n != run->n_heard || !run->heard_tsc) {
		run->n_heard = n;
		run->heard_tsc = now;
	}
	return now - run->heard_tsc > ms * QUIET_MS || now - run_sent_tsc(run) > ms * NOISE_MS;
}

// The second round of the TSC offset. True once it is over.
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

enum load_state load_state(struct load *load)
{
	struct run *run = load->current;

	if (!run->number)
		return LOAD_IDLE;
	if (!run->start)
		return LOAD_DONE; // no lane came
	return run_is_sent(run) && measure_again(run) ? LOAD_DONE : LOAD_SENDING;
}

static int check_links(struct load *load, const struct load_streams *streams, struct complaint *why)
{
	const struct port_face *faces = port_faces(load->ports);

	if (port_tend(load->ports, why))
		return -ENODEV;
	for (unsigned i = 0; i < streams->n; i++) {
		const struct load_stream *stream = &streams->stream[i];
		unsigned from = stream->is_receive_only ? stream->to : stream->from;
		unsigned down = faces[from].up ? stream->to : from;

		if (!faces[down].up)
			return complain(why, -ENETDOWN,
				"port %s of stream %s has no link; plug in its cable or start the "
				"program at its other end, then send again",
				load->settings->ports[down].name, stream->name);
	}
	return 0;
}

// A run has to end by itself.
static int check_end(const struct load_streams *streams, double seconds, struct complaint *why)
{
	bool sends = false;

	for (unsigned i = 0; i < streams->n; i++) {
		const struct load_stream *stream = &streams->stream[i];

		if (!(seconds > 0) && !stream->is_receive_only && !stream->n_frames)
			return complain(why, -EINVAL,
				"stream %s would never end; give seconds, or frames in the stream",
				stream->name);
		sends |= !stream->is_receive_only;
	}
	if (!(seconds > 0) && !sends)
		return complain(why, -EINVAL,
			"all streams are only received, so the run would end at once; give "
			"seconds");
	return 0;
}

static int read_order(struct load *load, const struct load_order *order,
	struct load_streams *streams, struct complaint *why)
{
	struct load_port ports[PORT_MAX];
	const json_t *list = order->streams ? order->streams : load->streams;

	if (!list)
		return complain(why, -EINVAL,
			"no streams: the file has none; give them with the verb or write them into "
			"the file");
	describe_ports(ports, load->settings, load->ports);
	int err = load_read_streams(streams, list, ports, load->settings->n_ports, why);
	if (!err && !streams->n)
		err = complain(why, -EINVAL, "the list of streams is empty; give at least one");
	if (!err)
		err = check_end(streams, order->seconds, why);
	if (!err)
		err = check_links(load, streams, why);
	return err ? err : neighbours_resolve(&load->neighbours, streams, why);
}

// The first round of the TSC offset is asked for by the run itself. A lane that is kept from it is
// no reason not to send: the results say so.
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
		run->pair[i].n_before = stat_read(&run->pair[i].n_measured);
}

int load_send(struct load *load, const struct load_order *order, struct complaint *why)
{
	struct load_streams *streams;
	struct run *run;

	if (load_state(load) == LOAD_SENDING)
		return complain(why, -EBUSY,
			"run %u still sends; wait for its end or call the verb halt",
			load->current->number);
	int err = hand_await(load, why);
	if (err)
		return err;
	streams = malloc(sizeof(*streams));
	if (!streams)
		return complain(why, -ENOMEM, "no memory to read the streams");
	err = read_order(load, order, streams, why);
	if (!err)
		err = make_run(load, &run, streams, why);
	free(streams);
	if (err)
		return err;
	hand_over(load, run);
	err = hand_await(load, why);
	if (err)
		return err;
	measure_before(run);
	run_start(run, order->delay_s, order->seconds);
	return 0;
}

int load_tend(struct load_house *house, struct complaint *why)
{
	int err = port_tend(house->ports, why);

	if (err)
		return err;
	if (!port_lanes_run(house->ports))
		return complain(why, -EIO, "a lane has ended by itself; all stop");
	load_state(house->load);
	hand_tend(house->load);
	neighbours_tend(&house->load->neighbours, &house->load->current->streams);
	return 0;
}

int load_tend_ms(const struct load *load)
{
	for (unsigned i = 0; i < load->settings->n_ports; i++)
		if (load->neighbours.post[i])
			return TEND_OFTEN_MS;
	return TEND_MS;
}
