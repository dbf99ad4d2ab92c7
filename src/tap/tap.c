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
static struct rte_mempool *choose_pool(struct tap_table *taps, unsigned worker)
{
	struct rte_mempool *best = NULL;

	for (unsigned p = 0; p < port_n_ports(taps->ports); p++) {
		struct rte_mempool *pool = port_pool(taps->ports, p);

		if (taps->taps[p].worker == worker &&
			(!best || rte_pktmbuf_data_room_size(pool) >
					  rte_pktmbuf_data_room_size(best)))
			best = pool;
	}
	return best ? best : port_pool(taps->ports, 0); // a port may be added
}

static int make_workers(struct tap_table *taps)
{
	unsigned n = port_n_workers(taps->ports);

	taps->workers = aligned_alloc(_Alignof(struct tap_worker), n * sizeof(*taps->workers));
	for (unsigned l = 0; taps->workers && l < n; l++) {
		struct tap_worker *worker = &taps->workers[l];

		if (tap_worker_make(worker, taps->class) != 0)
			return -ENOMEM;
		taps->n_workers++;
		worker->wakeup = &taps->wakeup;
		worker->wait = port_worker(taps->ports, l)->wait;
		rings_limit_redirects(worker, &taps->class[CLASS_REDIRECT], n);
		rings_lend(worker, choose_pool(taps, l));
	}
	return taps->workers ? 0 : -ENOMEM;
}

static int find_namespace(struct tap_table *taps, struct error *error)
{
	const struct tap_settings *settings = taps->settings;

	taps->namespace_is_own = !settings->namespace_name[0];
	taps->namespace_name =
		taps->namespace_is_own ? settings->own_namespace : settings->namespace_name;
	taps->netns = netns_open(taps->namespace_name, error);
	if (taps->netns != -ENOENT || !taps->namespace_is_own)
		return taps->netns < 0 ? taps->netns : 0;
	taps->netns = netns_make(taps->namespace_name, error);
	taps->namespace_is_new = taps->netns >= 0;
	if (taps->namespace_is_new && !netns_is_seen_by_others())
		log_warn("linux: network namespace '%s' is only visible to dl3d, which created it "
			 "with private mounts (under ip netns exec, or systemd's PrivateMounts or "
			 "ProtectSystem): create it before starting dl3d, outside of these (ip "
			 "netns add %s)",
			taps->namespace_name, taps->namespace_name);
	return taps->netns < 0 ? taps->netns : 0;
}

struct call {
	struct tap_table *taps;
	struct error *error;
	unsigned port;
};

static int make_inside(void *arg)
{
	struct call *call = arg;
	int err = netdev_open(&call->taps->sockets);

	if (!err)
		err = reject_open(&call->taps->reject);

	if (err)
		return error_set(call->error, err,
			"linux: cannot create a socket in namespace '%s': %s",
			call->taps->namespace_name, strerror(-err));
	return taps_make(call->taps, call->error);
}

static int restore_inside(void *arg)
{
	struct call *call = arg;

	return taps_restore(call->taps, call->error);
}

// Opens everything in order; on failure tap_close undoes the steps done so far.
static int open_all(struct tap_table *taps, struct error *error)
{
	struct call call = {.taps = taps, .error = error};
	int err = find_namespace(taps, error);

	if (err)
		return err;
	for (unsigned p = 0; p < port_n_ports(taps->ports); p++)
		taps->taps[p].worker = find_worker(taps->ports, p);
	err = make_workers(taps);
	if (err)
		return error_set(error, err,
			"linux: not enough memory for the rings of the TAP interfaces");
	taps->wakeup.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (taps->wakeup.fd < 0)
		return error_set(error, -errno,
			"linux: cannot create an eventfd for the TAP interfaces: %s",
			strerror(errno));
	err = netns_inside(taps->netns, make_inside, &call, error);
	if (err)
		return err;
	taps->blank = tap_device_open_blank();
	return taps->blank < 0 ? error_set(error, taps->blank,
					 "linux: cannot open a file for a TAP interface: %s",
					 strerror(-taps->blank))
	                       : taps_hold(taps, error);
}

static void free_room(struct tap_table *taps)
{
	int files[] = {taps->blank, taps->holder, taps->netns, taps->wakeup.fd};

	for (unsigned i = 0; i < ARRAY_LEN(files); i++)
		if (files[i] >= 0)
			close(files[i]);
	for (unsigned l = 0; l < taps->n_workers; l++) {
		rte_pktmbuf_free(taps->spare[l]);
		tap_worker_free(&taps->workers[l]);
	}
	netdev_close(&taps->sockets);
	reject_close(&taps->reject);
	free(taps->workers);
	free(taps);
}

int tap_open(struct tap_table **out, const struct tap_settings *settings, struct port_table *ports,
	struct error *error)
{
	struct tap_table *taps = aligned_alloc(_Alignof(struct tap_table), sizeof(*taps));

	if (!taps)
		return error_set(error, -ENOMEM, "linux: not enough memory for the TAP interfaces");
	memset(taps, 0, sizeof(*taps));
	taps->settings = settings;
	taps->ports = ports;
	taps->netns = taps->blank = taps->holder = taps->wakeup.fd = -1;
	taps->sockets = (struct netdev_sockets){-1, -1};
	taps->reject = (struct reject){-1, -1};
	taps->started_ns = clock_now_ns();
	memcpy(taps->class, settings->class, sizeof(taps->class));
	int err = open_all(taps, error);
	if (!err) {
		*out = taps;
		return 0;
	}
	taps_close(taps, true);
	if (taps->namespace_is_new)
		netns_remove(taps->netns, taps->namespace_name);
	free_room(taps);
	return err;
}

static int make_one_inside(void *arg)
{
	struct call *call = arg;

	return taps_make_one(call->taps, call->port, call->error);
}

int tap_add(struct tap_table *taps, unsigned port, struct error *error)
{
	struct tap_entry *tap = &taps->taps[port];
	struct call call = {taps, error, port};
	struct port_info info;

	port_info(taps->ports, port, &info);
	int err = tap_device_check_name(info.name, error);
	if (!err)
		err = netns_inside(taps->netns, make_one_inside, &call, error);
	if (err)
		return err;
	if (taps->settings->keep)
		err = taps_hold_one(taps, port, error);
	if (err) {
		taps_remove_one(taps, port);
		return err;
	}
	tap->worker = find_worker(taps->ports, port);
	__atomic_store_n(&tap->is_absent, false, __ATOMIC_RELEASE);
	return 0;
}

void tap_remove(struct tap_table *taps, unsigned port)
{
	const struct tap_worker *worker = &taps->workers[taps->taps[port].worker];

	move_wait_punted(taps);
	taps_remove_one(taps, port);
	thread_wait(taps);
	move_wait_injected(worker);
	port_wait_for_workers(taps->ports);
}

void tap_set_captures(struct tap_table *taps, struct capture_live *captures)
{
	taps->captures = captures;
}

int tap_start(struct tap_table *taps, struct error *error)
{
	taps->started_ns = clock_now_ns();
	return thread_start(taps, error);
}

void tap_stop(struct tap_table *taps)
{
	if (!taps->thread_runs)
		return;
	thread_stop(taps);
	move_rest(taps);
}

void tap_close(struct tap_table *taps)
{
	if (!taps)
		return;
	tap_stop(taps);
	taps_close(taps, false);
	if (taps->namespace_is_own && !taps->settings->keep)
		netns_remove(taps->netns, taps->namespace_name);
	free_room(taps);
}

void tap_change(struct tap_table *taps, const struct tap_settings *settings)
{
	for (unsigned c = 0; c < N_CLASSES; c++) {
		struct tap_class_settings *at = &taps->class[c];

		__atomic_store_n(&at->rate, settings->class[c].rate, __ATOMIC_RELAXED);
		__atomic_store_n(&at->burst, settings->class[c].burst, __ATOMIC_RELAXED);
		__atomic_store_n(&at->forwards, settings->class[c].forwards, __ATOMIC_RELAXED);
	}
	for (unsigned l = 0; l < taps->n_workers; l++)
		rings_limit_redirects(&taps->workers[l], &taps->class[CLASS_REDIRECT],
			taps -> n_workers);
}

int tap_restore(struct tap_table *taps, struct error *error)
{
	struct call call = {.taps = taps, .error = error};
	int err = netns_inside(taps->netns, restore_inside, &call, error);

	// Outside the namespace: a holder inside would keep it alive forever.
	int held = taps_hold(taps, err ? NULL : error);

	return err ? err : held;
}

int tap_restore_mtu(struct tap_table *taps, unsigned port, unsigned refused, unsigned mtu)
{
	const char *name = taps->taps[port].tap.name;
	struct netdev found;
	int err = netdev_read(&taps->sockets, name, &found);

	if (err || found.mtu != refused)
		return err;
	return netdev_set_mtu(&taps->sockets, name, mtu);
}

int tap_run_in_netns(const struct tap_table *taps, int (*call)(void *arg), void *arg,
	struct error *error)
{
	return netns_inside(taps->netns, call, arg, error);
}
