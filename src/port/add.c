// Adds and removes ports while workers forward on the others. Control thread.
#include "port/table.h"

#include "base/log.h"
#include "port/check.h"
#include "port/eal.h"
#include "port/facts.h"
#include "port/wait.h"

#include <errno.h>
#include <rte_eal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GRACE_NAP_NS = 50000 };

// EAL scans only the buses that it needs at start.
static int check_bus(const struct port_table *ports, unsigned port, struct error *error)
{
	char label[48];
	struct kind kind;

	kind_read(ports->settings->ports[port].device, &kind);
	if (kind.bus == KIND_VIRTUAL || rte_eal_has_pci())
		return 0;
	return error_set(error, -ENOTSUP,
		"%s: DPDK was started without PCI devices and cannot attach %s; add the port to "
		"the configuration file and restart",
		plan_port_label(ports->settings, port, label), kind.name);
}

static int check(const struct port_table *ports, unsigned port, struct error *error)
{
	int err = plan_check_port(ports->settings, port, error);

	if (!err)
		err = check_bus(ports, port, error);
	return err ? err : check_added(ports->settings, port, error);
}

static int plan(struct port_table *ports, unsigned port, struct error *error)
{
	return plan_add(ports->settings, &ports->facts, &ports->plan, port, error);
}

// The device reports how many queues it has once it is attached.
static int plan_again(struct port_table *ports, unsigned port, struct error *error)
{
	plan_remove(&ports->plan, port);
	return plan(ports, port, error);
}

static int set_up(struct port_table *ports, unsigned port, struct error *error)
{
	int err = added_pools_take(ports, port, error);

	if (err)
		return err;
	port_state_fill(ports, port);
	err = device_set_up(ports, port, error);
	if (err)
		return err;
	workers_add(ports, port);
	wait_add(ports, port);
	return device_start(ports, port, error);
}

static void forget(struct port_table *ports, unsigned port)
{
	struct port_device *device = &ports->devices[port];

	wait_remove(ports, port);
	workers_remove(ports, port);
	plan_remove(&ports->plan, port);
	added_pools_leave(ports, port);
	free(device->locks);
	*device = (struct port_device){.phase = DEVICE_GONE};
}

static int open_device(struct port_table *ports, unsigned port, struct error *error)
{
	facts_read_device(&ports->facts.devices[port], ports->settings->ports[port].device);
	kind_read(ports->settings->ports[port].device, &ports->devices[port].kind);
	int err = plan(ports, port, error);
	if (err)
		return err;
	eal_hush();
	err = hotplug_probe(ports, port, error);
	if (!err) {
		err = device_find(ports, port, error);
		if (!err)
			err = plan_again(ports, port, error);
		if (!err) {
			device_adjust_rings(ports, port);
			err = set_up(ports, port, error);
		}
		if (err)
			hotplug_detach(ports, port);
	}
	eal_speak();
	if (err)
		forget(ports, port);
	return err;
}

int port_add(struct port_table *ports, unsigned port, const struct port_settings *settings,
	struct error *error)
{
	struct port_table_settings *own = &ports->own;
	const struct port_settings before = own->ports[port];
	const unsigned n_before = own->n_ports;

	for (unsigned i = n_before; i < port; i++)
		own->ports[i].is_removed = true;
	own->n_ports = MAX_OF(own->n_ports, port + 1);
	own->ports[port] = *settings;
	own->ports[port].is_removed = false;
	ports->devices[port] = (struct port_device){.phase = DEVICE_PRESENT};
	int err = check(ports, port, error);
	if (!err)
		err = open_device(ports, port, error);
	if (!err)
		return 0;
	own->ports[port] = before;
	own->ports[port].is_removed = true;
	own->n_ports = n_before;
	return err;
}

void port_begin(struct port_table *ports, unsigned port)
{
	struct port_device *device = &ports->devices[port];

	for (unsigned i = 0; i < ports->plan.n_warnings; i++)
		log_warn("%s", ports->plan.warnings[i].text);
	hotplug_note(ports, port);
	workers_open(ports, port);
	wait_return(ports, port);
	below_warn_of_merging(ports, port);
	port_set_carrier(ports, port, port_read_carrier(ports, device));
}

// Workers report every few microseconds, except one whose core is occupied: it is waited for.
static void wait_until_passed(const struct port_table *ports, uint64_t token)
{
	const struct timespec nap = {.tv_nsec = GRACE_NAP_NS};

	while (ports->grace.has_passed && !ports->grace.has_passed(ports->grace.arg, token))
		nanosleep(&nap, NULL);
}

void port_wait_for_workers(const struct port_table *ports)
{
	if (ports->grace.start)
		wait_until_passed(ports, ports->grace.start(ports->grace.arg));
}

void port_remove(struct port_table *ports, unsigned port)
{
	struct port_device *device = &ports->devices[port];

	if (device->phase == DEVICE_PRESENT)
		hotplug_withdraw(ports, port);
	if (device->phase != DEVICE_GONE) {
		wait_until_passed(ports, device->token);
		hotplug_detach(ports, port);
	}
	forget(ports, port);
	ports->own.ports[port].is_removed = true;
	while (ports->own.ports[ports->own.n_ports - 1].is_removed)
		ports->own.n_ports--;
}
