// Opens, changes and closes the room. Control thread.
#include "tap/tap.h"

#include "base/clock.h"
#include "base/log.h"
#include "tap/netns.h"
#include "tap/room.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

// The lane that takes what Linux sends on the port: that of its first queue.
static unsigned find_lane(struct port_room *ports, unsigned port)
{
	for (unsigned l = 0; l < port_n_lanes(ports); l++) {
		const struct port_lane *lane = port_lane(ports, l);

		for (unsigned q = 0; q < lane->n_queues; q++)
			if (lane->queues[q].port == port && lane->queues[q].queue == 0)
				return l;
	}
	return 0;
}

// Buffers for frames to all ports of a lane: the largest that one of them has.
static struct rte_mempool *choose_pool(struct tap_room *room, unsigned lane)
{
	struct rte_mempool *best = NULL;

	for (unsigned p = 0; p < port_n_ports(room->ports); p++) {
		struct rte_mempool *pool = port_pool(room->ports, p);

		if (room->twins[p].lane == lane &&
			(!best || rte_pktmbuf_data_room_size(pool) >
					  rte_pktmbuf_data_room_size(best)))
			best = pool;
	}
	return best;
}

static int make_lanes(struct tap_room *room)
{
	unsigned n = port_n_lanes(room->ports);

	room->lanes = aligned_alloc(_Alignof(struct tap_lane), n * sizeof(*room->lanes));
	for (unsigned l = 0; room->lanes && l < n; l++) {
		struct tap_lane *lane = &room->lanes[l];

		if (tap_lane_make(lane, room->class) != 0)
			return -ENOMEM;
		room->n_lanes++;
		lane->bell = &room->bell;
		lane->wait = port_lane(room->ports, l)->wait;
		rings_limit_redirects(lane, &room->class[CLASS_REDIRECT], n);
		struct rte_mempool *pool = choose_pool(room, l);
		if (pool)
			rings_lend(lane, pool);
	}
	return room->lanes ? 0 : -ENOMEM;
}

static int find_namespace(struct tap_room *room, struct complaint *why)
{
	const struct tap_settings *settings = room->settings;

	room->namespace_is_own = !settings->namespace_name[0];
	room->namespace_name =
		room->namespace_is_own ? settings->own_namespace : settings->namespace_name;
	room->netns = netns_open(room->namespace_name, why);
	if (room->netns != -ENOENT || !room->namespace_is_own)
		return room->netns < 0 ? room->netns : 0;
	room->netns = netns_make(room->namespace_name, why);
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
	struct tap_room *room;
	struct complaint *why;
};

static int make_inside(void *arg)
{
	struct call *call = arg;
	int err = iface_open(&call->room->sockets);

	if (err)
		return complain(call->why, err, "linux: no socket in namespace '%s': %s",
			call->room->namespace_name, strerror(-err));
	return twins_make(call->room, call->why);
}

static int restore_inside(void *arg)
{
	struct call *call = arg;

	return twins_restore(call->room, call->why);
}

// In order; tap_close undoes what has been done.
static int open_all(struct tap_room *room, struct complaint *why)
{
	struct call call = {room, why};
	int err = find_namespace(room, why);

	if (err)
		return err;
	for (unsigned p = 0; p < port_n_ports(room->ports); p++)
		room->twins[p].lane = find_lane(room->ports, p);
	err = make_lanes(room);
	if (err)
		return complain(why, err, "linux: no memory for the rings of the twins");
	room->bell.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (room->bell.fd < 0)
		return complain(why, -errno, "linux: no event file for the twins: %s",
			strerror(errno));
	err = netns_inside(room->netns, make_inside, &call);
	if (err)
		return err;
	room->blank = twin_open_blank();
	return room->blank < 0 ? complain(why, room->blank, "linux: no file for a twin: %s",
					 strerror(-room->blank))
	                       : twins_hold(room, why);
}

static void free_room(struct tap_room *room)
{
	int files[] = {room->blank, room->holder, room->netns, room->bell.fd};

	for (unsigned i = 0; i < ARRAY_LEN(files); i++)
		if (files[i] >= 0)
			close(files[i]);
	for (unsigned l = 0; l < room->n_lanes; l++) {
		rte_pktmbuf_free(room->spare[l]);
		tap_lane_free(&room->lanes[l]);
	}
	iface_close(&room->sockets);
	free(room->lanes);
	free(room);
}

int tap_open(struct tap_room **out, const struct tap_settings *settings, struct port_room *ports,
	struct complaint *why)
{
	struct tap_room *room = aligned_alloc(_Alignof(struct tap_room), sizeof(*room));

	if (!room)
		return complain(why, -ENOMEM, "linux: no memory for the twins");
	memset(room, 0, sizeof(*room));
	room->settings = settings;
	room->ports = ports;
	room->netns = room->blank = room->holder = room->bell.fd = -1;
	room->sockets = (struct iface_sockets){-1, -1};
	room->started_ns = clock_now_ns();
	memcpy(room->class, settings->class, sizeof(room->class));
	int err = open_all(room, why);
	if (!err) {
		*out = room;
		return 0;
	}
	twins_close(room, true);
	if (room->namespace_is_new)
		netns_remove(room->netns, room->namespace_name);
	free_room(room);
	return err;
}

int tap_start(struct tap_room *room, struct complaint *why)
{
	room->started_ns = clock_now_ns();
	return thread_start(room, why);
}

void tap_stop(struct tap_room *room)
{
	if (!room->thread_runs)
		return;
	thread_stop(room);
	move_rest(room);
}

void tap_close(struct tap_room *room)
{
	if (!room)
		return;
	tap_stop(room);
	twins_close(room, false);
	if (room->namespace_is_own && !room->settings->keep)
		netns_remove(room->netns, room->namespace_name);
	free_room(room);
}

void tap_change(struct tap_room *room, const struct tap_settings *settings)
{
	for (unsigned c = 0; c < N_CLASSES; c++) {
		struct tap_class_settings *at = &room->class[c];

		__atomic_store_n(&at->rate, settings->class[c].rate, __ATOMIC_RELAXED);
		__atomic_store_n(&at->burst, settings->class[c].burst, __ATOMIC_RELAXED);
		__atomic_store_n(&at->forwards, settings->class[c].forwards, __ATOMIC_RELAXED);
	}
	for (unsigned l = 0; l < room->n_lanes; l++)
		rings_limit_redirects(&room->lanes[l], &room->class[CLASS_REDIRECT],
			room -> n_lanes);
}

int tap_restore(struct tap_room *room, struct complaint *why)
{
	struct call call = {room, why};
	int err = netns_inside(room->netns, restore_inside, &call);

	// Outside: a holder that lived in the namespace would keep it for ever.
	return err ? err : twins_hold(room, why);
}

int tap_inside(const struct tap_room *room, int (*call)(void *arg), void *arg)
{
	return netns_inside(room->netns, call, arg);
}
