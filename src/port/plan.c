// Assigns workers to cores. Queues are assigned in plan_queues.c.
#include "port/plan.h"

#include "base/bits.h"
#include "port/kind.h"

#include <errno.h>
#include <rte_config.h>
#include <stdio.h>
#include <string.h>

enum { MTU_MIN = 68, MTU_MAX = 9600, BURST_MAX = 64, WORKERS_MOST = RTE_MAX_LCORE - 1 };

const char *plan_port_label(const struct port_table_settings *settings, unsigned port, char *text)
{
	snprintf(text, 48, "ports[%u] (%s)", port, settings->ports[port].name);
	return text;
}

int plan_find_port(const struct port_table_settings *settings, const char *name)
{
	for (unsigned i = port_next(settings, 0); i < settings->n_ports;
		i = port_next(settings, i + 1))
		if (strcmp(settings->ports[i].name, name) == 0)
			return i;
	return -1;
}

// Compares names and devices with those of the first `n` ports.
static int check_unique(const struct port_table_settings *settings, unsigned port, unsigned n,
	struct error *error)
{
	struct kind mine, other;
	char label[48];

	kind_read(settings->ports[port].device, &mine);
	for (unsigned i = port_next(settings, 0); i < n; i = port_next(settings, i + 1)) {
		if (i == port)
			continue;
		kind_read(settings->ports[i].device, &other);
		plan_port_label(settings, port, label);
		if (strcmp(settings->ports[i].name, settings->ports[port].name) == 0)
			return error_set(error, -EEXIST,
				"%s: ports[%u] already has this name; give each port its own",
				label, i);
		if (strcmp(mine.name, other.name) == 0)
			return error_set(error, -EEXIST,
				"%s: device %s is already ports[%u] (%s); give each port its own "
				"device",
				label, mine.name, i, settings->ports[i].name);
		if (mine.is_vhost && other.is_vhost && strcmp(mine.socket, other.socket) == 0)
			return error_set(error, -EEXIST,
				"%s: ports[%u] (%s) already has the socket %s; give each port its "
				"own",
				label, i, settings->ports[i].name, mine.socket);
	}
	return 0;
}

static int check_xconnect(const struct port_table_settings *settings, unsigned port,
	struct error *error)
{
	const struct port_settings *p = &settings->ports[port];
	char label[48];
	int out = plan_find_port(settings, p->xconnect);

	plan_port_label(settings, port, label);
	if (p->mode != PORT_XCONNECT)
		return 0;
	if (out < 0)
		return error_set(error, -ENOENT,
			"%s: xconnect names port \"%s\", which is not in ports", label,
			p->xconnect);
	return 0;
}

static int check_beside(const struct port_table_settings *settings, unsigned port, unsigned n,
	struct error *error)
{
	const struct port_settings *p = &settings->ports[port];
	struct kind kind;
	char label[48];

	plan_port_label(settings, port, label);
	kind_read(p->device, &kind);
	if (kind.bus == KIND_UNKNOWN)
		return error_set(error, -EINVAL,
			"%s: device \"%s\" is neither a PCI address (0000:03:00.0) nor a device "
			"string such as net_memif0; for an interface of Linux write "
			"\"net_af_packet%u,iface=%s\"",
			label, p->device, port, p->device);
	if (p->mtu && (p->mtu < MTU_MIN || p->mtu > MTU_MAX))
		return error_set(error, -ERANGE, "%s: mtu %u is out of range; expected %d to %d",
			label, p->mtu, MTU_MIN, MTU_MAX);
	unsigned n_queues = MAX_OF(p->n_queues, kind.is_vhost ? kind.n_rx : (uint16_t)0);
	if (n_queues > PORT_MAX_QUEUES)
		return error_set(error, -ERANGE, "%s: %u queues; a port can have at most %d", label,
			n_queues, PORT_MAX_QUEUES);
	if (check_unique(settings, port, n, error))
		return -EEXIST;
	return check_xconnect(settings, port, error);
}

static unsigned count_ports(const struct port_table_settings *settings)
{
	unsigned n = 0;

	for (unsigned i = port_next(settings, 0); i < settings->n_ports;
		i = port_next(settings, i + 1))
		n++;
	return n;
}

static int check_number(const struct port_table_settings *settings, struct error *error)
{
	unsigned n = count_ports(settings);

	if (n == 0)
		return error_set(error, -EINVAL, "ports: none configured; add at least one");
	if (n > RTE_MAX_ETHPORTS)
		return error_set(error, -ERANGE,
			"ports: %u configured, but DPDK was built for at most %d; remove some, or "
			"use a DPDK built with -Dmax_ethports=%u and rebuild dl3d with it",
			n, RTE_MAX_ETHPORTS, n);
	return 0;
}

int plan_check_port(const struct port_table_settings *settings, unsigned port, struct error *error)
{
	char label[48];
	unsigned n = count_ports(settings);

	if (n > RTE_MAX_ETHPORTS)
		return error_set(error, -ERANGE,
			"%s: DPDK was built for at most %d ports, and all are in use; remove one "
			"first (a reload opens new ports before it closes others), or use a DPDK "
			"built with -Dmax_ethports=%u and rebuild dl3d with it",
			plan_port_label(settings, port, label), RTE_MAX_ETHPORTS, n);
	return check_beside(settings, port, settings->n_ports, error);
}

int plan_check_ports(const struct port_table_settings *settings, struct error *error)
{
	int err = check_number(settings, error);

	if (err)
		return err;
	if (settings->burst > BURST_MAX)
		return error_set(error, -ERANGE, "burst %u is out of range; expected 1 to %d",
			settings->burst, BURST_MAX);
	for (unsigned i = 0; i < settings->n_ports && !err; i++)
		err = check_beside(settings, i, i, error);
	return err;
}

static int check_core(unsigned worker, int core, const struct plan_facts *facts,
	struct error *error)
{
	bool is_known = core >= 0 && core < (int)facts->n_cores;
	const struct plan_core *c = &facts->cores[is_known ? core : 0];

	if (!is_known || !c->exists)
		return error_set(error, -ENOENT,
			"workers[%u]: core %d does not exist; expected 0 to %u", worker, core,
			facts->n_cores - 1);
	if (!c->online)
		return error_set(error, -ENODEV,
			"workers[%u]: core %d is offline; put it online (echo 1 > "
			"/sys/devices/system/cpu/cpu%d/online) or name another",
			worker, core, core);
	if (!c->allowed)
		return error_set(error, -EPERM,
			"workers[%u]: this process may not use core %d; widen its CPU set "
			"(taskset, cgroup) or "
			"name another core",
			worker, core);
	return 0;
}

static int take_workers(const struct port_table_settings *settings, const struct plan_facts *facts,
	struct plan *plan, struct error *error)
{
	if (settings->n_workers > WORKERS_MOST)
		return error_set(error, -ERANGE,
			"workers: %u configured, but this build of DPDK supports %d",
			settings->n_workers, WORKERS_MOST);
	for (unsigned i = 0; i < settings->n_workers; i++) {
		int core = settings->workers[i].core, err = check_core(i, core, facts, error);

		if (err)
			return err;
		for (unsigned k = 0; k < i; k++)
			if (plan->workers[k].core == core)
				return error_set(error, -EEXIST,
					"workers[%u]: core %d already runs workers[%u]; give each "
					"worker "
					"a core of its own",
					i, core, k);
		plan->workers[i].core = core;
		plan->workers[i].lcore = i + 1;
		plan->workers[i].numa = facts->cores[core].numa;
	}
	plan->n_workers = settings->n_workers;
	return plan_hands(settings, plan, error);
}

// The number of queues that could be polled in parallel; a device that hashes could use every core.
static unsigned count_useful_workers(const struct port_table_settings *settings,
	const struct plan_facts *facts, unsigned n_cores)
{
	unsigned n = 0;

	for (unsigned i = 0; i < settings->n_ports; i++) {
		const struct plan_device *device = &facts->devices[i];
		unsigned queues = settings->ports[i].n_queues;

		if (!queues)
			queues = device->n_rx_own ? device->n_rx_own : n_cores;
		n += device->n_rx_most ? MIN_OF(queues, device->n_rx_most) : queues;
	}
	return MIN_OF(n, n_cores);
}

// True if some port is on this node or on no known node.
static bool is_near_a_port(const struct port_table_settings *settings,
	const struct plan_facts *facts, int numa)
{
	for (unsigned i = 0; i < settings->n_ports; i++)
		if (facts->devices[i].numa < 0 || facts->devices[i].numa == numa)
			return true;
	return false;
}

// Lists free cores in the order in which workers should use them, those near a port first. The
// first allowed core is left to the control thread if there is another one.
static unsigned rank_cores(const struct port_table_settings *settings,
	const struct plan_facts *facts, int cores[])
{
	unsigned n = 0, n_allowed = 0;
	int first = -1;

	for (unsigned c = 0; c < facts->n_cores; c++) {
		if (!facts->cores[c].online || !facts->cores[c].allowed)
			continue;
		first = first < 0 ? (int)c : first;
		n_allowed++;
	}
	for (int near = 1; near >= 0; near--)
		for (unsigned c = 0; c < facts->n_cores; c++) {
			if (!facts->cores[c].online || !facts->cores[c].allowed ||
				(n_allowed > 1 && (int)c == first))
				continue;
			if (is_near_a_port(settings, facts, facts->cores[c].numa) == near)
				cores[n++] = c;
		}
	return n;
}

static int choose_workers(const struct port_table_settings *settings,
	const struct plan_facts *facts, struct plan *plan, struct error *error)
{
	int cores[PLAN_MAX_CORES];
	unsigned n_cores = MIN_OF(rank_cores(settings, facts, cores), (unsigned)WORKERS_MOST);

	if (n_cores == 0)
		return error_set(error, -ENODEV,
			"workers: this process may not use any core that is online");
	plan->n_workers = count_useful_workers(settings, facts, n_cores);
	for (unsigned i = 0; i < plan->n_workers; i++) {
		plan->workers[i].core = cores[i];
		plan->workers[i].lcore = i + 1;
		plan->workers[i].numa = facts->cores[cores[i]].numa;
	}
	return 0;
}

int plan_workers(const struct port_table_settings *settings, const struct plan_facts *facts,
	struct plan *plan, struct error *error)
{
	memset(plan, 0, sizeof(*plan));
	if (settings->n_workers)
		return take_workers(settings, facts, plan, error);
	return choose_workers(settings, facts, plan, error);
}
