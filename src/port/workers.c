// Workers: which queues they poll, and starting and stopping them on their cores. Control thread.
#include "port/table.h"

#include "base/deadline.h"

#include <rte_launch.h>
#include <rte_lcore.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { JOIN_PAUSE_NS = 1000000 };

static void fill_output(struct port_table *ports, struct port_worker *worker, unsigned port)
{
	const struct port_device *device = &ports->devices[port];

	worker->out[port].device = device->id;
	worker->out[port].shared = device->locks;
	if (!device->vhost) // otherwise workers_steer does it, which knows what the peer has
	                    // enabled
		worker->out[port].queue = worker->id % ports->plan.ports[port].n_tx;
}

void workers_steer(void *ports_, unsigned port, uint64_t live, uint8_t takes)
{
	struct port_table *ports = ports_;
	unsigned n = ports->plan.ports[port].n_tx;

	__atomic_store_n(&ports->states[port].takes, takes, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < ports->plan.n_workers; i++)
		__atomic_store_n(&ports->workers[i].out[port].queue, vhost_choose_queue(i, n, live),
			__ATOMIC_RELAXED);
}

// `is_closed` remains as it is.
static void fill_queue(struct port_table *ports, unsigned worker, unsigned place)
{
	struct port_queue *queue = &ports->workers[worker].queues[place];

	queue->port = ports->plan.workers[worker].queues[place].port;
	queue->queue = ports->plan.workers[worker].queues[place].queue;
	queue->device = ports->devices[queue->port].id;
	queue->pool = port_pool(ports, queue->port);
}

void workers_fill(struct port_table *ports)
{
	for (unsigned i = 0; i < ports->plan.n_workers; i++) {
		const struct plan_worker *plan = &ports->plan.workers[i];
		struct port_worker *worker = &ports->workers[i];

		worker->id = i;
		worker->core = plan->core;
		worker->numa = plan->numa;
		worker->burst =
			ports->settings->burst ? ports->settings->burst : PORT_DEFAULT_BURST;
		worker->may_sleep =
			(ports->settings->n_workers ? ports->settings->workers[i].idle
						    : ports->settings->idle) == PORT_IDLE_SLEEP;
		worker->n_queues = plan->n_queues;
		worker->n_hands_to = plan->n_hands_to;
		memcpy(worker->hands_to, plan->hands_to, sizeof(worker->hands_to));
		for (unsigned q = 0; q < plan->n_queues; q++)
			fill_queue(ports, i, q);
		for (unsigned port = 0; port < ports->settings->n_ports; port++)
			fill_output(ports, worker, port);
	}
}

// A place at the end becomes visible with the new n_queues, and may be read from then on.
void workers_add(struct port_table *ports, unsigned port)
{
	for (unsigned i = 0; i < ports->plan.n_workers; i++) {
		const struct plan_worker *plan = &ports->plan.workers[i];
		struct port_worker *worker = &ports->workers[i];

		fill_output(ports, worker, port);
		for (unsigned q = 0; q < plan->n_queues; q++) {
			if (plan->queues[q].port != port)
				continue;
			fill_queue(ports, i, q);
			__atomic_store_n(&worker->queues[q].is_closed, true, __ATOMIC_RELAXED);
		}
		__atomic_store_n(&worker->n_queues, plan->n_queues, __ATOMIC_RELEASE);
	}
}

void workers_remove(struct port_table *ports, unsigned port)
{
	for (unsigned i = 0; i < ports->plan.n_workers; i++)
		for (unsigned q = 0; q < ports->workers[i].n_queues; q++)
			if (ports->workers[i].queues[q].port == port)
				ports->workers[i].queues[q].port = PORT_NONE;
}

void workers_close(struct port_table *ports, unsigned port)
{
	for (unsigned i = 0; i < ports->plan.n_workers; i++)
		for (unsigned q = 0; q < ports->workers[i].n_queues; q++)
			if (ports->workers[i].queues[q].port == port)
				__atomic_store_n(&ports->workers[i].queues[q].is_closed, true,
					__ATOMIC_RELAXED);
}

// What a worker reads of a queue or an output it reads after it has seen the queue open, or the
// port up, which is set later.
void workers_open(struct port_table *ports, unsigned port)
{
	uint16_t id = ports->devices[port].id;

	for (unsigned i = 0; i < ports->plan.n_workers; i++) {
		struct port_worker *worker = &ports->workers[i];

		worker->out[port].device = id;
		for (unsigned q = 0; q < worker->n_queues; q++) {
			if (worker->queues[q].port != port)
				continue;
			worker->queues[q].device = id;
			__atomic_store_n(&worker->queues[q].is_closed, false, __ATOMIC_RELEASE);
		}
		port_wake(worker->wait);
	}
}

const struct port_table_settings *port_settings_of(const struct port_table *ports)
{
	return ports->settings;
}

unsigned port_n_ports(const struct port_table *ports)
{
	return ports->settings->n_ports;
}

unsigned port_n_workers(const struct port_table *ports)
{
	return ports->plan.n_workers;
}

struct port_worker *port_worker(struct port_table *ports, unsigned worker)
{
	return &ports->workers[worker];
}

static int run_worker(void *arg)
{
	struct worker_start *start = arg;

	__atomic_store_n(&start->tid, gettid(), __ATOMIC_RELAXED);
	return start->loop(start->arg);
}

int port_workers_launch(struct port_table *ports, int (*loop)(void *arg), void *args[],
	struct error *error)
{
	for (unsigned i = 0; i < ports->plan.n_workers; i++) {
		unsigned lcore = ports->plan.workers[i].lcore;

		if (rte_eal_get_lcore_state(lcore) != WAIT)
			return error_set(error, -EBUSY, "workers[%u]: core %d is still busy", i,
				ports->plan.workers[i].core);
	}
	for (unsigned i = 0; i < ports->plan.n_workers; i++) {
		struct worker_start *start = &ports->starts[i];

		*start = (struct worker_start){loop, args[i], 0};
		int err = rte_eal_remote_launch(run_worker, start, ports->plan.workers[i].lcore);

		if (err)
			return error_set(error, err, "workers[%u]: cannot start on core %d: %s", i,
				ports->plan.workers[i].core, strerror(-err));
	}
	return 0;
}

bool port_workers_alive(const struct port_table *ports)
{
	for (unsigned i = 0; i < ports->plan.n_workers; i++)
		if (rte_eal_get_lcore_state(ports->plan.workers[i].lcore) != RUNNING)
			return false;
	return true;
}

// rte_eal_wait_lcore alone would take the CPU time that the worker may need to end.
static void join_worker(struct port_table *ports, unsigned worker)
{
	const struct timespec pause = {.tv_nsec = JOIN_PAUSE_NS};
	unsigned lcore = ports->plan.workers[worker].lcore;

	while (rte_eal_get_lcore_state(lcore) == RUNNING) {
		deadline_watch(__atomic_load_n(&ports->starts[worker].tid, __ATOMIC_RELAXED));
		nanosleep(&pause, NULL);
	}
	rte_eal_wait_lcore(lcore);
}

void port_workers_join(struct port_table *ports)
{
	for (unsigned i = 0; i < ports->plan.n_workers; i++)
		join_worker(ports, i);
	deadline_watch(gettid());
}
