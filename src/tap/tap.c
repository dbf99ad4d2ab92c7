// Opens, changes and closes the TAP interfaces. Control thread.
#include "tap/tap.h"

#include "base/clock.h"
#include "base/log.h"
#include "tap/netns.h"
#include "tap/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

// The worker that transmits what Linux sends on the port: that of its first queue.
static unsigned find_worker(struct port_table *ports, unsigned port)
{
	for (unsigned l = 0; l < port_n_workers(ports); l++) {
		const struct port_worker *worker = port_worker(ports, l);

		for (unsigned q = 0; q < worker->n_queues; q++)
			if (worker->queues[q].port == port && worker->queues[q].queue == 0)
				return l;
	}
	return 0;
}

// Buffers for frames to all ports of a worker: from the pool with the largest buffers among them.
static struct rte_mempool *choose_pool(struct tap_table *room, unsigned worker)
{
	struct rte_mempool *best = NULL;

	for (unsigned p = 0; p < port_n_ports(room->ports); p++) {
		struct rte_mempool *pool = port_pool(room->ports, p);

		if (room->taps[p].worker == worker &&
			(!best || rte_pktmbuf_data_room_size(pool) >
					  rte_pktmbuf_data_room_size(best)))
			best = pool;
	}
	return best;
}

static int make_workers(struct tap_table *room)
{
	unsigned n = port_n_workers(room->ports);

	room->workers = aligned_alloc(_Alignof(struct tap_worker), n * sizeof(*room->workers));
	for (unsigned l = 0; room->workers && l < n; l++) {
		struct tap_worker *worker = &room->workers[l];

		if (tap_worker_make(worker, room->class) != 0)
			return -ENOMEM;
		room->n_workers++;
		worker->wakeup = &room->wakeup;
		worker->wait = port_worker(room->ports, l)->wait;
		rings_limit_redirects(worker, &room->class[CLASS_REDIRECT], n);
		struct rte_mempool *pool = choose_pool(room, l);
		if (pool)
			rings_lend(worker, pool);
	}
	return room->workers ? 0 : -ENOMEM;
}

static int find_namespace(struct tap_table *room, struct error *error)
{
	const struct tap_settings *settings = room->settings;

	room->namespace_is_own = !settings->namespace_name[0];
	room->namespace_name =
		room->namespace_is_own ? settings->own_namespace : settings->namespace_name;
	room->netns = netns_open(room->namespace_name, error);
	if (room->netns != -ENOENT || !room->namespace_is_own)
		return room->netns < 0 ? room->netns : 0;
	room->netns = netns_make(room->namespace_name, error);
	room->namespace_is_new = room->netns >= 0;
	if (room->namespace_is_new && !netns_is_seen_by_others())
		log_warn("linux: only dl3d sees the network namespace '%s' that it made, because "
			 "it runs among mounts of its own (as by ip netns exec, or systemd's "
			 "PrivateMounts and ProtectSystem): make it outside before the start (ip "
			 "netns add %s)",
			room->namespace_name, room->namespace_name);
	return room->netns < 0 ? room->netns : 0;
}

struct call {
	struct tap_table *room;
	struct error *error;
};

static int make_inside(void *arg)
{
	struct call *call = arg;
	int err = netdev_open(&call->room->sockets);

	if (err)
		return error_set(call->error, err, "linux: no socket in namespace '%s': %s",
			call->room->namespace_name, strerror(-err));
	return taps_make(call->room, call->error);
}

static int restore_inside(void *arg)
{
	struct call *call = arg;

	return taps_restore(call->room, call->error);
}

// Opens everything in order; on failure tap_close undoes the steps done so far.
static int open_all(struct tap_table *room, struct error *error)
{
	struct call call = {room, error};
	int err = find_namespace(room, error);

	if (err)
		return err;
	for (unsigned p = 0; p < port_n_ports(room->ports); p++)
		room->taps[p].worker = find_worker(room->ports, p);
	err = make_workers(room);
	if (err)
		return error_set(error, err,
			"linux: no memory for the rings of the TAP interfaces");
	room->wakeup.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (room->wakeup.fd < 0)
		return error_set(error, -errno, "linux: no event file for the TAP interfaces: %s",
			strerror(errno));
	err = netns_inside(room->netns, make_inside, &call);
	if (err)
		return err;
	room->blank = tap_device_open_blank();
	return room->blank < 0
	               ? error_set(error, room->blank, "linux: no file for a TAP interface: %s",
				 strerror(-room->blank))
	               : taps_hold(room, error);
}

static void free_room(struct tap_table *room)
{
	int files[] = {room->blank, room->holder, room->netns, room->wakeup.fd};

	for (unsigned i = 0; i < ARRAY_LEN(files); i++)
		if (files[i] >= 0)
			close(files[i]);
	for (unsigned l = 0; l < room->n_workers; l++) {
		rte_pktmbuf_free(room->spare[l]);
		tap_worker_free(&room->workers[l]);
	}
	netdev_close(&room->sockets);
	free(room->workers);
	free(room);
}

int tap_open(struct tap_table **out, const struct tap_settings *settings, struct port_table *ports,
	struct error *error)
{
	struct tap_table *room = aligned_alloc(_Alignof(struct tap_table), sizeof(*room));

	if (!room)
		return error_set(error, -ENOMEM, "linux: no memory for the TAP interfaces");
	memset(room, 0, sizeof(*room));
	room->settings = settings;
	room->ports = ports;
	room->netns = room->blank = room->holder = room->wakeup.fd = -1;
	room->sockets = (struct netdev_sockets){-1, -1};
	room->started_ns = clock_now_ns();
	memcpy(room->class, settings->class, sizeof(room->class));
	int err = open_all(room, error);
	if (!err) {
		*out = room;
		return 0;
	}
	taps_close(room, true);
	if (room->namespace_is_new)
		netns_remove(room->netns, room->namespace_name);
	free_room(room);
	return err;
}

int tap_start(struct tap_table *room, struct error *error)
{
	room->started_ns = clock_now_ns();
	return thread_start(room, error);
}

void tap_stop(struct tap_table *room)
{
	if (!room->thread_runs)
		return;
	thread_stop(room);
	move_rest(room);
}

void tap_close(struct tap_table *room)
{
	if (!room)
		return;
	tap_stop(room);
	taps_close(room, false);
	if (room->namespace_is_own && !room->settings->keep)
		netns_remove(room->netns, room->namespace_name);
	free_room(room);
}

void tap_change(struct tap_table *room, const struct tap_settings *settings)
{
	for (unsigned c = 0; c < N_CLASSES; c++) {
		struct tap_class_settings *at = &room->class[c];

		__atomic_store_n(&at->rate, settings->class[c].rate, __ATOMIC_RELAXED);
		__atomic_store_n(&at->burst, settings->class[c].burst, __ATOMIC_RELAXED);
		__atomic_store_n(&at->forwards, settings->class[c].forwards, __ATOMIC_RELAXED);
	}
	for (unsigned l = 0; l < room->n_workers; l++)
		rings_limit_redirects(&room->workers[l], &room->class[CLASS_REDIRECT],
			room -> n_workers);
}

int tap_restore(struct tap_table *room, struct error *error)
{
	struct call call = {room, error};
	int err = netns_inside(room->netns, restore_inside, &call);

	// Outside the namespace: a holder inside would keep it alive forever.
	return err ? err : taps_hold(room, error);
}

int tap_inside(const struct tap_table *room, int (*call)(void *arg), void *arg)
{
	return netns_inside(room->netns, call, arg);
}
