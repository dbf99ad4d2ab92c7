// Makes, starts and stops the workers. Control thread.
#include "path/path.h"

#include "base/pages.h"
#include "path/variant.h"
#include "path/worker.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdlib.h>

struct path {
	struct port_room *ports;
	unsigned n_lanes;
	bool stop; // atomic, relaxed; the lanes read it once per loop
	struct worker *worker[STAT_MAX_LANES];
	struct stat_lane *stat[STAT_MAX_LANES];
};

static int add_worker(struct path *path, struct fib_door *door, struct tap_room *twins,
	struct complaint *why)
{
	unsigned lane = path->n_lanes;
	struct worker *w = pages_alloc(sizeof(*w));
	struct stat_lane *stat = pages_alloc(sizeof(*stat));

	path->worker[lane] = w;
	path->stat[lane] = stat;
	path->n_lanes++;
	if (!w || !stat)
		return complain(why, -ENOMEM, "no memory for lane %u; use fewer lanes", lane);
	w->io = port_lane(path->ports, lane);
	w->faces = port_faces(path->ports);
	w->door = fib_door_lanes(door);
	w->stat = stat;
	w->tap = twins ? tap_lane(twins, lane) : NULL;
	w->stop = &path->stop;
	w->variant = path_choose_variant();
	w->now = w->sorted;
	w->tsc_hz = rte_get_tsc_hz();
	w->long_gap = w->tsc_hz / 1000000 * PAUSES_LEAST_US;
	for (unsigned q = 0; q < w->io->n_queues; q++)
		w->pool[q] = port_pool(path->ports, w->io->queues[q].port);
	return 0;
}

int path_open(struct path **out, struct port_room *ports, struct fib_door *door,
	struct tap_room *twins, struct complaint *why)
{
	struct path *path = calloc(1, sizeof(*path));

	if (!path)
		return complain(why, -ENOMEM, "no memory for the walk");
	path->ports = ports;
	while (path->n_lanes < port_n_lanes(ports)) {
		int err = add_worker(path, door, twins, why);
		if (err) {
			path_close(path);
			return err;
		}
	}
	*out = path;
	return 0;
}

int path_start(struct path *path, struct complaint *why)
{
	__atomic_store_n(&path->stop, false, __ATOMIC_RELAXED);
	int err = port_lanes_launch(path->ports, worker_run, (void **)path->worker, why);
	if (err)
		path_stop(path); // those that run already
	return err;
}

void path_stop(struct path *path)
{
	__atomic_store_n(&path->stop, true, __ATOMIC_RELAXED);
	port_lanes_join(path->ports);
}

void path_close(struct path *path)
{
	if (!path)
		return;
	for (unsigned i = 0; i < path->n_lanes; i++) {
		pages_free(path->worker[i], sizeof(struct worker));
		pages_free(path->stat[i], sizeof(struct stat_lane));
	}
	free(path);
}

struct stat_lane *const *path_stats(const struct path *path, unsigned *n_lanes)
{
	*n_lanes = path->n_lanes;
	return path->stat;
}
