// Creates, starts and stops the workers. Control thread.
#include "datapath/datapath.h"

#include "base/pages.h"
#include "datapath/shape.h"
#include "datapath/trace.h"
#include "datapath/variant.h"
#include "rcu/rcu.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdlib.h>
#include <time.h>

enum { DRAIN_NAP_NS = 50000 };
_Static_assert((int)DATAPATH_SLOTS == (int)HANDOVER_SLOTS, "slots of a table");

struct path {
	struct port_table *ports;
	unsigned n_workers;
	bool stop; // atomic, relaxed; workers read it once per loop
	struct worker *worker[STATS_MAX_WORKERS];
	struct stats_worker *stat[STATS_MAX_WORKERS];
	struct handover_out *out[STATS_MAX_WORKERS]; // by worker
	struct handover_in *in[STATS_MAX_WORKERS];
	struct shape_worker *shape[STATS_MAX_WORKERS];
};

static int add_worker(struct path *path, const struct datapath_tables *tables,
	struct tap_table *taps, struct error *error)
{
	unsigned worker = path->n_workers;
	struct worker *w = pages_alloc(sizeof(*w));
	struct stats_worker *stat = pages_alloc(sizeof(*stat));

	path->worker[worker] = w;
	path->stat[worker] = stat;
	path->n_workers++;
	if (!w || !stat)
		return error_set(error, -ENOMEM,
			"not enough memory for worker %u; use fewer workers", worker);
	pages_keep_small(stat, offsetof(struct stats_worker, hop[STATS_FEW_HOPS]));
	w->io = port_worker(path->ports, worker);
	w->states = port_states(path->ports);
	w->rcu = rcu_readers(tables->live->rcu);
	w->live = tables->live;
	w->flows = tables->flows;
	w->learn = tables->learn;
	w->acls = tables->acls;
	w->filters = tables->filters;
	w->macs = tables->macs;
	w->qos = tables->qos;
	w->drops_missing = tables->drops_missing;
	w->captures = tables->captures;
	w->stat = stat;
	w->tap = taps ? tap_worker(taps, worker) : NULL;
	w->stop = &path->stop;
	w->handover_out = path->out[worker];
	w->handover_in = path->in[worker];
	w->shape = path->shape[worker];
	w->variant = datapath_choose_variant();
	w->poll = w->polls;
	w->poisons = BURST_POISONS;
	w->tsc_hz = rte_get_tsc_hz();
	w->long_gap = w->tsc_hz / 1000000 * STALLS_LEAST_US;
	return 0;
}

static uint64_t start_grace(void *rcu)
{
	return rcu_start_grace(rcu);
}

static bool has_passed(void *rcu, uint64_t token)
{
	return rcu_has_passed(rcu, token);
}

static int make_handover(struct path *path, struct error *error)
{
	const struct port_worker *io[STATS_MAX_WORKERS];
	const unsigned n = port_n_workers(path->ports);

	for (unsigned i = 0; i < n; i++)
		io[i] = port_worker(path->ports, i);
	return handover_make(n, io, path->out, path->in, error);
}

static int make_shaping(struct path *path, const struct qos_live *qos, struct error *error)
{
	struct port_wait *wait[STATS_MAX_WORKERS];
	const unsigned n = port_n_workers(path->ports);

	if (!qos || !qos->shapers)
		return 0;
	for (unsigned i = 0; i < n; i++)
		wait[i] = port_worker(path->ports, i)->wait;
	return shape_workers_make(path->shape, n, wait, qos->shapers, error);
}

int datapath_open(struct path **out, struct port_table *ports, const struct datapath_tables *tables,
	struct tap_table *taps, struct error *error)
{
	struct path *path = calloc(1, sizeof(*path));

	if (!path)
		return error_set(error, -ENOMEM, "not enough memory for the datapath");
	path->ports = ports;
	port_set_grace(ports, &(struct port_grace){start_grace, has_passed, tables->live->rcu});
	int err = make_handover(path, error);

	if (!err)
		err = make_shaping(path, tables->qos, error);
	if (err) {
		datapath_close(path);
		return err;
	}
	while (path->n_workers < port_n_workers(ports)) {
		err = add_worker(path, tables, taps, error);
		if (err) {
			datapath_close(path);
			return err;
		}
	}
	*out = path;
	return 0;
}

int datapath_start(struct path *path, struct error *error)
{
	__atomic_store_n(&path->stop, false, __ATOMIC_RELAXED);
	int err = port_workers_launch(path->ports, worker_run, (void **)path->worker, error);
	if (err)
		datapath_stop(path); // stop the workers already launched
	return err;
}

void datapath_stop(struct path *path)
{
	__atomic_store_n(&path->stop, true, __ATOMIC_RELAXED);
	port_workers_join(path->ports);
}

void datapath_close(struct path *path)
{
	if (!path)
		return;
	handover_free(STATS_MAX_WORKERS, path->out, path->in);
	shape_workers_free(path->shape, STATS_MAX_WORKERS);
	for (unsigned i = 0; i < path->n_workers; i++) {
		pages_free(path->worker[i], sizeof(struct worker));
		pages_free(path->stat[i], sizeof(struct stats_worker));
	}
	free(path);
}

struct stats_worker *const *datapath_stats(const struct path *path, unsigned *n_workers)
{
	*n_workers = path->n_workers;
	return path->stat;
}

// What workers still have in their hands has a ring that is not empty until they are done with it.
static bool has_drained(const struct handover_out *out, const uint64_t put[])
{
	for (unsigned i = 0; i < out->n; i++)
		if (__atomic_load_n(&out->ring[i]->done, __ATOMIC_ACQUIRE) < put[i])
			return false;
	return true;
}

static void drain(const struct handover_out *out)
{
	const struct timespec nap = {.tv_nsec = DRAIN_NAP_NS};
	uint64_t put[PORT_MAX_HANDS];

	while (__atomic_load_n(&out->is_moving, __ATOMIC_ACQUIRE))
		nanosleep(&nap, NULL);
	for (unsigned i = 0; i < out->n; i++)
		put[i] = __atomic_load_n(&out->ring[i]->put, __ATOMIC_ACQUIRE);
	while (!has_drained(out, put))
		nanosleep(&nap, NULL);
}

void datapath_drain(const struct path *path)
{
	for (unsigned i = 0; i < path->n_workers; i++)
		if (path->out[i])
			drain(path->out[i]);
}

bool datapath_hand(const struct path *path, unsigned worker, unsigned i, struct datapath_hand *out)
{
	const struct handover_out *from = path->out[worker];

	if (!from || i >= from->n)
		return false;
	*out = (struct datapath_hand){.worker = path->worker[worker]->io->hands_to[i],
		.processed = __atomic_load_n(&from->ring[i]->done, __ATOMIC_ACQUIRE),
		.handed = __atomic_load_n(&from->ring[i]->put, __ATOMIC_ACQUIRE)};
	for (unsigned slot = 0; slot < HANDOVER_SLOTS; slot++) {
		out->slots[slot] = handover_slot(from, slot) == i;
		out->n_came[slot] = stats_read(&from->n_came[slot]);
	}
	return true;
}

int datapath_move(const struct path *path, unsigned worker, const bool slots[DATAPATH_SLOTS],
	unsigned to, struct error *error)
{
	struct datapath_hand hand;

	for (unsigned i = 0; datapath_hand(path, worker, i, &hand); i++)
		if (hand.worker == to) {
			handover_move(path->out[worker], slots, i);
			port_wake(path->worker[worker]->io->wait);
			return 0;
		}
	return error_set(error, -ENOENT,
		"worker %u hands no packets to worker %u; expected one of its hands_to", worker,
		to);
}

bool datapath_has_moved(const struct path *path, unsigned worker)
{
	return !path->out[worker] || handover_has_moved(path->out[worker]);
}

// A worker that polls a port, and the pool into which it receives.
static const struct worker *find_poller(const struct path *path, unsigned port,
	const struct rte_mempool **pool)
{
	for (unsigned i = 0; i < path->n_workers; i++) {
		const struct port_worker *io = path->worker[i]->io;

		for (unsigned q = 0; q < port_n_queues(io); q++)
			if (io->queues[q].port == port && !port_is_closed(&io->queues[q])) {
				*pool = io->queues[q].pool;
				return path->worker[i];
			}
	}
	return NULL;
}

int datapath_trace(const struct path *path, unsigned port, const uint8_t *frame, size_t n,
	struct trace *out, struct error *error)
{
	const struct rte_mempool *pool;
	const struct worker *like = find_poller(path, port, &pool);

	if (!like)
		return error_set(error, -ENODEV,
			"no worker receives on this port now; 'dl3 show ports' tells its state");
	const uint16_t room = rte_pktmbuf_data_room_size((struct rte_mempool *)(uintptr_t)pool);

	return trace_run(&(struct trace_input){.like = like,
				 .port = port,
				 .room = room,
				 .frame = frame,
				 .n = n},
		out, error);
}
