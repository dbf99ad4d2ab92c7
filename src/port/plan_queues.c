// Deals the receive queues of all ports out to the lanes of a plan.
#include "port/plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// What the dealing works on; `owner` is the lane of each queue plus one, 0: nobody yet.
struct deal {
	const struct port_room_settings *settings;
	const struct plan_facts *facts;
	struct plan *plan;
	struct complaint *why;
	uint8_t owner[PORT_MAX][PORT_MAX_QUEUES];
};

__attribute__((format(printf, 2, 3))) static void warn(struct deal *deal, const char *format, ...)
{
	struct plan *plan = deal->plan;
	char text[COMPLAINT_MAX];
	va_list args;

	if (plan->n_warnings == PLAN_MAX_WARNINGS)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	complain(&plan->warnings[plan->n_warnings++], 0, "%s", text);
}

static bool lane_names_queues(const struct deal *deal, unsigned lane)
{
	return deal->settings->n_lanes && deal->settings->lanes[lane].n_queues;
}

static bool is_near(const struct deal *deal, unsigned lane, unsigned port)
{
	int numa = deal->facts->devices[port].numa;

	return numa < 0 || numa == deal->plan->lanes[lane].numa;
}

// Lanes that take a share of the port's queues: those without a list of their own; of lanes that we
// chose, those near the port if there are any.
static bool takes_share(const struct deal *deal, unsigned lane, unsigned port)
{
	if (deal->settings->n_lanes)
		return !lane_names_queues(deal, lane);
	if (is_near(deal, lane, port))
		return true;
	for (unsigned i = 0; i < deal->plan->n_lanes; i++)
		if (is_near(deal, i, port))
			return false;
	return true;
}

static unsigned count_takers(const struct deal *deal, unsigned port)
{
	unsigned n = 0;

	for (unsigned i = 0; i < deal->plan->n_lanes; i++)
		n += takes_share(deal, i, port);
	return n;
}

// The highest queue that the lanes of the file name, plus one.
static unsigned count_named_queues(const struct deal *deal, unsigned port)
{
	const struct port_room_settings *s = deal->settings;
	unsigned n = 0;

	for (unsigned i = 0; i < s->n_lanes; i++)
		for (unsigned k = 0; k < s->lanes[i].n_queues; k++)
			if (strcmp(s->lanes[i].queues[k].port, s->ports[port].name) == 0)
				n = MAX_OF(n, s->lanes[i].queues[k].queue + 1u);
	return n;
}

static unsigned choose_n_rx(const struct deal *deal, unsigned port)
{
	const struct plan_device *device = &deal->facts->devices[port];
	unsigned named = count_named_queues(deal, port), n = device->n_rx_own;

	if (!n) {
		n = named ? named : MAX_OF(1u, count_takers(deal, port));
		n = device->n_rx_most ? MIN_OF(n, device->n_rx_most) : n;
		while (device->rx_power_of_two && n & (n - 1))
			n &= n - 1;
	}
	return MIN_OF(MAX_OF(n, named), (unsigned)PORT_MAX_QUEUES);
}

static int count_queues(struct deal *deal, unsigned port)
{
	const struct plan_device *device = &deal->facts->devices[port];
	unsigned asked = deal->settings->ports[port].n_queues,
		 named = count_named_queues(deal, port);
	unsigned n = asked ? asked : choose_n_rx(deal, port);
	char label[48];

	plan_port_label(deal->settings, port, label);
	if (named > n)
		return complain(deal->why, -ERANGE,
			"%s: lanes name queue %u, but the port has %u queues (0 to %u); set "
			"queues: %u or name another",
			label, named - 1, n, n - 1, named);
	if (device->n_rx_most && n > device->n_rx_most)
		return complain(deal->why, -ERANGE,
			"%s: %u queues are more than the %u that its device has; use at most %u",
			label, n, device->n_rx_most, device->n_rx_most);
	if (asked && device->n_rx_own && asked < device->n_rx_own)
		warn(deal,
			"%s: its device has %u queues and only %u are polled: frames on the others "
			"are lost; set "
			"queues: %u",
			label, device->n_rx_own, n, device->n_rx_own);
	if (n > 1 && device->n_rx_most && !device->hashes && n > device->n_rx_own)
		warn(deal,
			"%s: its device does not spread frames over queues; all but the first may "
			"stay empty",
			label);
	deal->plan->ports[port].n_rx = n;
	return 0;
}

static int give_queue(struct deal *deal, unsigned lane, unsigned port, unsigned queue)
{
	struct plan_lane *l = &deal->plan->lanes[lane];

	if (l->n_queues == PORT_LANE_QUEUES)
		return complain(deal->why, -E2BIG,
			"lanes[%u]: more than %d queues on one lane; name more lanes", lane,
			PORT_LANE_QUEUES);
	l->queues[l->n_queues].port = port;
	l->queues[l->n_queues++].queue = queue;
	deal->owner[port][queue] = lane + 1;
	return 0;
}

static int give_named_queues(struct deal *deal, unsigned lane)
{
	const struct port_lane_settings *l = &deal->settings->lanes[lane];

	for (unsigned k = 0; k < l->n_queues; k++) {
		int port = plan_find_port(deal->settings, l->queues[k].port);
		unsigned queue = l->queues[k].queue;

		if (port < 0)
			return complain(deal->why, -ENOENT,
				"lanes[%u]: port \"%s\" is not in ports", lane, l->queues[k].port);
		if (deal->owner[port][queue])
			return complain(deal->why, -EEXIST,
				"lanes[%u]: queue %u of port %s is already bound to lanes[%u]; "
				"bind each queue to one lane",
				lane, queue, l->queues[k].port, deal->owner[port][queue] - 1);
		int err = give_queue(deal, lane, port, queue);
		if (err)
			return err;
	}
	return 0;
}

// The lane with the fewest queues among those that take a share; -1: none does.
static int find_taker(const struct deal *deal, unsigned port)
{
	int best = -1;

	for (unsigned i = 0; i < deal->plan->n_lanes; i++) {
		if (!takes_share(deal, i, port))
			continue;
		if (best < 0 || deal->plan->lanes[i].n_queues < deal->plan->lanes[best].n_queues)
			best = i;
	}
	return best;
}

static int share_queues(struct deal *deal, unsigned port)
{
	char label[48];

	for (unsigned queue = 0; queue < deal->plan->ports[port].n_rx; queue++) {
		if (deal->owner[port][queue])
			continue;
		int lane = find_taker(deal, port);

		if (lane < 0)
			return complain(deal->why, -EINVAL,
				"%s: queue %u is bound to no lane; add it to a lane's queues",
				plan_port_label(deal->settings, port, label), queue);
		int err = give_queue(deal, lane, port, queue);
		if (err)
			return err;
	}
	return 0;
}

// One transmit queue a lane where the device gives them.
static int count_transmit_queues(struct deal *deal, unsigned port)
{
	const struct plan_device *device = &deal->facts->devices[port];
	struct plan_port *p = &deal->plan->ports[port];
	unsigned n = deal->plan->n_lanes;
	char label[48];

	if (device->n_tx_most)
		n = MIN_OF(n, device->n_tx_most);
	if (device->tx_like_rx)
		n = p->n_rx;
	if (device->n_tx_most && n > device->n_tx_most)
		return complain(deal->why, -ERANGE,
			"%s: its device has %u transmit queues; set queues: %u",
			plan_port_label(deal->settings, port, label), device->n_tx_most,
			device->n_tx_most);
	p->n_tx = n;
	p->shared_tx = n < deal->plan->n_lanes;
	return 0;
}

static void place_port(struct deal *deal, unsigned port)
{
	struct plan_port *p = &deal->plan->ports[port];
	char label[48];

	p->xconnect = deal->settings->ports[port].mode == PORT_XCONNECT
	                      ? plan_find_port(deal->settings, deal->settings->ports[port].xconnect)
	                      : -1;
	p->numa = deal->facts->devices[port].numa;
	for (unsigned queue = 0; queue < p->n_rx; queue++) {
		unsigned lane = deal->owner[port][queue] - 1;

		if (p->numa < 0)
			p->numa = deal->plan->lanes[lane].numa;
		if (!is_near(deal, lane, port))
			warn(deal,
				"lanes[%u]: core %d is on NUMA node %d, %s on node %d: each packet "
				"crosses between them; "
				"choose a core of node %d",
				lane, deal->plan->lanes[lane].core, deal->plan->lanes[lane].numa,
				plan_port_label(deal->settings, port, label), p->numa, p->numa);
	}
}

// Lanes without a queue would burn a core for nothing: those that we chose go (they are the last
// ones, or the order keeps).
static int drop_idle_lanes(struct deal *deal)
{
	struct plan *plan = deal->plan;
	unsigned n = 0;

	for (unsigned i = 0; i < plan->n_lanes; i++) {
		if (plan->lanes[i].n_queues || deal->settings->n_lanes) {
			if (!plan->lanes[i].n_queues)
				warn(deal,
					"lanes[%u]: there is no queue left for core %d; remove the "
					"lane or give a port more queues",
					i, plan->lanes[i].core);
			plan->lanes[n++] = plan->lanes[i];
		}
	}
	if (n == plan->n_lanes)
		return 0;
	plan->n_lanes = n;
	return -EAGAIN;
}

static int deal_all(struct deal *deal)
{
	const struct port_room_settings *s = deal->settings;
	int err = 0;

	memset(deal->owner, 0, sizeof(deal->owner));
	deal->plan->n_warnings = 0;
	for (unsigned i = 0; i < deal->plan->n_lanes; i++)
		deal->plan->lanes[i].n_queues = 0;
	for (unsigned i = 0; i < s->n_ports && !err; i++)
		err = count_queues(deal, i);
	for (unsigned i = 0; i < s->n_lanes && !err; i++)
		err = give_named_queues(deal, i);
	for (unsigned i = 0; i < s->n_ports && !err; i++)
		err = share_queues(deal, i);
	return err;
}

int plan_queues(const struct port_room_settings *settings, const struct plan_facts *facts,
	struct plan *plan, struct complaint *why)
{
	struct deal deal = {.settings = settings, .facts = facts, .plan = plan, .why = why};
	int err;

	do {
		err = deal_all(&deal);
		if (err)
			return err;
	} while (drop_idle_lanes(&deal) == -EAGAIN);
	for (unsigned i = 0; i < settings->n_ports && !err; i++) {
		err = count_transmit_queues(&deal, i);
		if (!err)
			place_port(&deal, i);
	}
	return err;
}
