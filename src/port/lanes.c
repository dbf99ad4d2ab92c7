// Lanes: which queues they get, and their start and end on their cores. Control thread.
#include "port/room.h"

#include <rte_launch.h>
#include <rte_lcore.h>
#include <string.h>

static void fill_outputs(struct port_room *room, struct port_lane *lane)
{
	for (unsigned p = 0; p < room->settings->n_ports; p++) {
		struct port_device *device = &room->devices[p];
		uint16_t queue = lane->id % room->plan.ports[p].n_tx;

		lane->out[p].device = device->id;
		lane->out[p].queue = queue;
		lane->out[p].shared = device->locks ? &device->locks[queue].lock : NULL;
	}
}

void lanes_fill(struct port_room *room)
{
	for (unsigned i = 0; i < room->plan.n_lanes; i++) {
		const struct plan_lane *plan = &room->plan.lanes[i];
		struct port_lane *lane = &room->lanes[i];

		lane->id = i;
		lane->core = plan->core;
		lane->numa = plan->numa;
		lane->burst = room->settings->burst ? room->settings->burst : PORT_DEFAULT_BURST;
		lane->may_sleep =
			(room->settings->n_lanes ? room->settings->lanes[i].idle
						 : room->settings->idle) == PORT_IDLE_SLEEP;
		lane->n_queues = plan->n_queues;
		for (unsigned q = 0; q < plan->n_queues; q++) {
			lane->queues[q].port = plan->queues[q].port;
			lane->queues[q].queue = plan->queues[q].queue;
			lane->queues[q].device = room->devices[plan->queues[q].port].id;
		}
		fill_outputs(room, lane);
	}
}

unsigned port_n_ports(const struct port_room *room)
{
	return room->settings->n_ports;
}

unsigned port_n_lanes(const struct port_room *room)
{
	return room->plan.n_lanes;
}

struct port_lane *port_lane(struct port_room *room, unsigned lane)
{
	return &room->lanes[lane];
}

int port_lanes_launch(struct port_room *room, int (*loop)(void *arg), void *args[],
	struct complaint *why)
{
	for (unsigned i = 0; i < room->plan.n_lanes; i++) {
		unsigned lcore = room->plan.lanes[i].lcore;

		if (rte_eal_get_lcore_state(lcore) != WAIT)
			return complain(why, -EBUSY, "lanes[%u]: core %d is still busy", i,
				room->plan.lanes[i].core);
	}
	for (unsigned i = 0; i < room->plan.n_lanes; i++) {
		int err = rte_eal_remote_launch(loop, args[i], room->plan.lanes[i].lcore);

		if (err)
			return complain(why, err, "lanes[%u]: does not start on core %d: %s", i,
				room->plan.lanes[i].core, strerror(-err));
	}
	return 0;
}

bool port_lanes_run(const struct port_room *room)
{
	for (unsigned i = 0; i < room->plan.n_lanes; i++)
		if (rte_eal_get_lcore_state(room->plan.lanes[i].lcore) != RUNNING)
			return false;
	return true;
}

void port_lanes_join(struct port_room *room)
{
	for (unsigned i = 0; i < room->plan.n_lanes; i++)
		rte_eal_wait_lcore(room->plan.lanes[i].lcore);
}
