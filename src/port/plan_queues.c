// Assigns the receive queues of all ports to the workers of a plan.
#include "port/plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ALL_PORTS = -1 };

// State of the assignment; `owner` is the worker of each queue plus one, 0: none yet.
struct deal {
	const struct port_table_settings *settings;
	const struct plan_facts *facts;
	struct plan *plan;
	struct error *error;
	uint8_t owner[PORT_MAX][PORT_MAX_QUEUES];
};

void plan_warn(struct plan *plan, const char *format, ...)
{
	char text[ERROR_MAX];
	va_list args;

	if (plan->n_warnings == PLAN_MAX_WARNINGS)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	error_set(&plan->warnings[plan->n_warnings++], 0, "%s", text);
}

static bool worker_names_queues(const struct deal *deal, unsigned worker)
{
	return deal->settings->n_workers && deal->settings->workers[worker].n_queues;
}

static bool is_near(const struct deal *deal, unsigned worker, unsigned port)
{
	int numa = deal->facts->devices[port].numa;

	return numa < 0 || numa == deal->plan->workers[worker].numa;
}

// Whether the worker takes a share of the port's queues: those without a queue list do, unless they
// are handed packets; of automatically chosen workers, those near the port if there are any.
static bool takes_share(const struct deal *deal, unsigned worker, unsigned port)
{
	if (deal->settings->n_workers)
		return !worker_names_queues(deal, worker) &&
		       !deal->plan->workers[worker].is_handed &&
		       !deal->settings->workers[worker].receives_nothing;
	if (is_near(deal, worker, port))
		return true;
	for (unsigned i = 0; i < deal->plan->n_workers; i++)
		if (is_near(deal, i, port))
			return false;
	return true;
}

static unsigned count_takers(const struct deal *deal, unsigned port)
{
	unsigned n = 0;

	for (unsigned i = 0; i < deal->plan->n_workers; i++)
		n += takes_share(deal, i, port);
	return n;
}

// The highest queue named by workers in the file, plus one.
static unsigned count_named_queues(const struct deal *deal, unsigned port)
{
	const struct port_table_settings *s = deal->settings;
	unsigned n = 0;

	for (unsigned i = 0; i < s->n_workers; i++)
		for (unsigned k = 0; k < s->workers[i].n_queues; k++)
			if (strcmp(s->workers[i].queues[k].port, s->ports[port].name) == 0)
				n = MAX_OF(n, s->workers[i].queues[k].queue + 1u);
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
		return error_set(deal->error, -ERANGE,
			"%s: workers refer to queue %u, but the port has %u queues (0 to %u); set "
			"queues: %u or use another",
			label, named - 1, n, n - 1, named);
	if (device->n_rx_most && n > device->n_rx_most)
		return error_set(deal->error, -ERANGE,
			"%s: %u queues, but the device supports %u; use at most %u", label, n,
			device->n_rx_most, device->n_rx_most);
	if (asked && device->n_rx_own && asked < device->n_rx_own)
		plan_warn(deal->plan,
			"%s: the device has %u queues, but only %u are polled: frames on the "
			"others are lost; set queues: %u",
			label, device->n_rx_own, n, device->n_rx_own);
	if (n > 1 && device->n_rx_most && !device->hashes && n > device->n_rx_own)
		plan_warn(deal->plan,
			"%s: the device does not distribute frames over queues; all but the first "
			"may stay empty",
			label);
	deal->plan->ports[port].n_rx = n;
	return 0;
}

// The first place that a removed port has left, or one at the end.
static unsigned find_place(const struct plan_worker *l)
{
	unsigned place = 0;

	while (place < l->n_queues && l->queues[place].port != PORT_NONE)
		place++;
	return place;
}

static int give_queue(struct deal *deal, unsigned worker, unsigned port, unsigned queue)
{
	struct plan_worker *l = &deal->plan->workers[worker];
	unsigned place = find_place(l);

	if (place == PORT_WORKER_QUEUES)
		return error_set(deal->error, -E2BIG,
			"workers[%u]: more than %d queues on one worker; add workers", worker,
			PORT_WORKER_QUEUES);
	l->queues[place].port = port;
	l->queues[place].queue = queue;
	l->n_queues = MAX_OF(l->n_queues, place + 1);
	deal->owner[port][queue] = worker + 1;
	return 0;
}

// Those of one port, or those of ALL_PORTS.
static int give_named_queues(struct deal *deal, unsigned worker, int only)
{
	const struct port_worker_settings *l = &deal->settings->workers[worker];

	for (unsigned k = 0; k < l->n_queues; k++) {
		int port = plan_find_port(deal->settings, l->queues[k].port);
		unsigned queue = l->queues[k].queue;

		if (only != ALL_PORTS && port != only)
			continue;

		if (port < 0)
			return error_set(deal->error, -ENOENT,
				"workers[%u]: port \"%s\" is not in ports", worker,
				l->queues[k].port);
		if (deal->owner[port][queue])
			return error_set(deal->error, -EEXIST,
				"workers[%u]: queue %u of port %s is already bound to workers[%u]; "
				"bind each queue to one worker",
				worker, queue, l->queues[k].port, deal->owner[port][queue] - 1);
		int err = give_queue(deal, worker, port, queue);
		if (err)
			return err;
	}
	return 0;
}

static unsigned count_load(const struct plan_worker *worker)
{
	unsigned n = 0;

	for (unsigned q = 0; q < worker->n_queues; q++)
		n += worker->queues[q].port != PORT_NONE;
	return n;
}

// The worker with the fewest queues among those that take a share; -1: there is none.
static int find_taker(const struct deal *deal, unsigned port)
{
	int best = -1;

	for (unsigned i = 0; i < deal->plan->n_workers; i++) {
		if (!takes_share(deal, i, port))
			continue;
		if (best < 0 || count_load(&deal->plan->workers[i]) <
					count_load(&deal->plan->workers[best]))
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
		int worker = find_taker(deal, port);

		if (worker < 0)
			return error_set(deal->error, -EINVAL,
				"%s: queue %u is not bound to any worker; add it to a worker's "
				"queues",
				plan_port_label(deal->settings, port, label), queue);
		int err = give_queue(deal, worker, port, queue);
		if (err)
			return err;
	}
	return 0;
}

// One transmit queue for each worker if the device has enough.
static int count_transmit_queues(struct deal *deal, unsigned port)
{
	const struct plan_device *device = &deal->facts->devices[port];
	struct plan_port *p = &deal->plan->ports[port];
	unsigned n = deal->plan->n_workers;
	char label[48];

	if (device->n_tx_most)
		n = MIN_OF(n, device->n_tx_most);
	if (device->tx_like_rx)
		n = p->n_rx;
	if (device->n_tx_most && n > device->n_tx_most)
		return error_set(deal->error, -ERANGE,
			"%s: the device has %u transmit queues; set queues: %u",
			plan_port_label(deal->settings, port, label), device->n_tx_most,
			device->n_tx_most);
	p->n_tx = n;
	p->shared_tx =
		n < deal->plan->n_workers || (device->is_steered && deal->plan->n_workers > 1);
	return 0;
}

// Workers to which the port's packets are handed.
static void warn_of_far_hands(struct deal *deal, unsigned worker, unsigned port)
{
	const struct plan_worker *l = &deal->plan->workers[worker];
	const int numa = deal->facts->devices[port].numa;
	char label[48];

	for (unsigned i = 0; i < l->n_hands_to; i++) {
		const unsigned to = l->hands_to[i];

		if (is_near(deal, to, port))
			continue;
		plan_warn(deal->plan,
			"workers[%u]: core %d is on NUMA node %d, and is handed packets of %s on "
			"node %d: each packet crosses nodes; choose a core on node %d",
			to, deal->plan->workers[to].core, deal->plan->workers[to].numa,
			plan_port_label(deal->settings, port, label), numa, numa);
	}
}

// Whether the worker owns a queue of the port before this one.
static bool owns_earlier(const struct deal *deal, unsigned port, unsigned queue)
{
	for (unsigned i = 0; i < queue; i++)
		if (deal->owner[port][i] == deal->owner[port][queue])
			return true;
	return false;
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
		unsigned worker = deal->owner[port][queue] - 1;

		if (p->numa < 0)
			p->numa = deal->plan->workers[worker].numa;
		if (!is_near(deal, worker, port))
			plan_warn(deal->plan,
				"workers[%u]: core %d is on NUMA node %d, %s on node %d: each "
				"packet crosses nodes; choose a core on node %d",
				worker, deal->plan->workers[worker].core,
				deal->plan->workers[worker].numa,
				plan_port_label(deal->settings, port, label), p->numa, p->numa);
		if (!owns_earlier(deal, port, queue))
			warn_of_far_hands(deal, worker, port);
	}
}

// Workers without a queue would waste a core: automatically chosen ones are dropped; the order of
// the others does not change.
static int drop_idle_workers(struct deal *deal)
{
	struct plan *plan = deal->plan;
	unsigned n = 0;

	for (unsigned i = 0; i < plan->n_workers; i++) {
		if (plan->workers[i].n_queues || deal->settings->n_workers) {
			if (!plan->workers[i].n_queues && !plan->workers[i].is_handed)
				plan_warn(deal->plan,
					"workers[%u]: no queue is left for core %d; remove the "
					"worker or give a port more queues",
					i, plan->workers[i].core);
			plan->workers[n++] = plan->workers[i];
		}
	}
	if (n == plan->n_workers)
		return 0;
	plan->n_workers = n;
	return -EAGAIN;
}

static int deal_all(struct deal *deal)
{
	const struct port_table_settings *s = deal->settings;
	int err = 0;

	memset(deal->owner, 0, sizeof(deal->owner));
	deal->plan->n_warnings = 0;
	for (unsigned i = 0; i < deal->plan->n_workers; i++)
		deal->plan->workers[i].n_queues = 0;
	for (unsigned i = 0; i < s->n_ports && !err; i++)
		err = count_queues(deal, i);
	for (unsigned i = 0; i < s->n_workers && !err; i++)
		err = give_named_queues(deal, i, ALL_PORTS);
	for (unsigned i = 0; i < s->n_ports && !err; i++)
		err = share_queues(deal, i);
	return err;
}

int plan_queues(const struct port_table_settings *settings, const struct plan_facts *facts,
	struct plan *plan, struct error *error)
{
	struct deal deal = {.settings = settings, .facts = facts, .plan = plan, .error = error};
	int err;

	do {
		err = deal_all(&deal);
		if (err)
			return err;
	} while (drop_idle_workers(&deal) == -EAGAIN);
	err = plan_check_hands(settings, plan, error);
	for (unsigned i = 0; i < settings->n_ports && !err; i++) {
		err = count_transmit_queues(&deal, i);
		if (!err)
			place_port(&deal, i);
	}
	return err;
}

void plan_remove(struct plan *plan, unsigned port)
{
	for (unsigned i = 0; i < plan->n_workers; i++)
		for (unsigned q = 0; q < plan->workers[i].n_queues; q++)
			if (plan->workers[i].queues[q].port == port)
				plan->workers[i].queues[q].port = PORT_NONE;
}

static int add(struct deal *deal, unsigned port)
{
	int err = count_queues(deal, port);

	for (unsigned i = 0; i < deal->settings->n_workers && !err; i++)
		err = give_named_queues(deal, i, port);
	if (!err)
		err = share_queues(deal, port);
	return err ? err : count_transmit_queues(deal, port);
}

int plan_add(const struct port_table_settings *settings, const struct plan_facts *facts,
	struct plan *plan, unsigned port, struct error *error)
{
	struct deal deal = {.settings = settings, .facts = facts, .plan = plan, .error = error};

	plan->n_warnings = 0;
	int err = add(&deal, port);
	if (err)
		plan_remove(plan, port);
	else
		place_port(&deal, port);
	return err;
}
