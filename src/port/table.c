// Opens and closes the ports: settings -> plan -> EAL -> devices -> better plan -> pools -> queues
// -> workers. Control thread.
#include "port/table.h"

#include "base/log.h"
#include "base/pages.h"
#include "port/check.h"
#include "port/eal.h"
#include "port/facts.h"
#include "port/memory.h"
#include "port/wait.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Logs each warning once per process: port_check may have logged it before port_open does.
static void say_warnings(const struct plan *plan)
{
	static struct error said[PLAN_MAX_WARNINGS];
	static unsigned n_said;

	for (unsigned i = 0; i < plan->n_warnings; i++) {
		unsigned k = 0;

		while (k < n_said && strcmp(said[k].text, plan->warnings[i].text) != 0)
			k++;
		if (k < n_said || n_said == PLAN_MAX_WARNINGS)
			continue;
		said[n_said++] = plan->warnings[i];
		log_warn("%s", plan->warnings[i].text);
	}
}

static int check_memory(const struct port_table_settings *settings, struct error *error)
{
	struct facts_pages pages;
	struct facts_ram ram;

	facts_read_pages(&pages);
	facts_read_ram(&ram);
	return memory_check(settings->memory_mib, &ram, &pages, error);
}

// Everything before EAL: the cores are final after this, the queues preliminary.
static int make_first_plan(struct port_table *ports, struct error *error)
{
	int err = plan_check_ports(ports->settings, error);

	if (!err)
		err = check_files(ports->settings, error);
	if (!err)
		err = check_eal_args(ports->settings, error);
	if (!err)
		err = check_memory(ports->settings, error);
	if (err)
		return err;
	facts_read(&ports->facts, ports->settings);
	err = plan_workers(ports->settings, &ports->facts, &ports->plan, error);
	if (!err)
		err = plan_queues(ports->settings, &ports->facts, &ports->plan, error);
	return err;
}

static void size_pools(struct port_table *ports)
{
	for (unsigned i = 0; i < ports->settings->n_ports; i++)
		device_adjust_rings(ports, i);
	pools_plan(&ports->pools, ports->settings, &ports->plan, ports->rings);
}

static int choose_memory(struct port_table *ports, struct error *error)
{
	struct facts_pages pages;
	struct facts_ram ram;
	struct memory_choice choice;

	size_pools(ports);
	unsigned wanted = ports->settings->memory_mib;
	memcpy(ports->memory.node_mib, ports->pools.node_mib, sizeof(ports->memory.node_mib));
	facts_read_pages(&pages);
	facts_read_ram(&ram);
	int err = memory_choose(&choice, ports->settings->huge, wanted ? wanted : ports->pools.mib,
		&pages, error);
	if (err)
		return err;
	if (choice.warning.text[0])
		log_warn("%s", choice.warning.text);
	ports->memory.huge = choice.huge;
	ports->memory.mib = wanted        ? wanted
	                    : choice.huge ? ports->pools.mib
	                                  : ports->pools.small_pages_mib;
	return choice.huge ? 0 : memory_check_ordinary(ports->memory.mib, &ram, error);
}

static int make_pools(struct port_table *ports, struct error *error)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	for (unsigned i = 0; i < ports->pools.n_nodes; i++) {
		const struct pools_node *node = &ports->pools.nodes[i];
		int numa = ports->memory.huge && node->numa >= 0 ? node->numa : SOCKET_ID_ANY;

		snprintf(name, sizeof(name), "mbufs_%u", i);
		ports->pool[i] = rte_pktmbuf_pool_create(name, node->n_mbufs, node->cache, 0,
			node->data_room, numa);
		if (!ports->pool[i])
			return error_set(error, -rte_errno,
				"memory: cannot allocate %u buffers of %u bytes on NUMA node %d: "
				"%s; raise the memory (memory: {mib: %u}) or use fewer descriptors",
				node->n_mbufs, node->object_bytes, node->numa,
				rte_strerror(rte_errno), ports->memory.mib * 2);
	}
	return 0;
}

static int open_devices(struct port_table *ports, struct error *error)
{
	int err = 0;

	for (unsigned i = 0; i < ports->settings->n_ports && !err; i++)
		err = device_find(ports, i, error);
	if (!err)
		err = plan_queues(ports->settings, &ports->facts, &ports->plan, error);
	if (err)
		return err;
	size_pools(ports);
	err = make_pools(ports, error);
	for (unsigned i = 0; i < ports->settings->n_ports && !err; i++) {
		port_state_fill(ports, i);
		err = device_set_up(ports, i, error);
	}
	if (err)
		return err;
	say_warnings(&ports->plan);
	workers_fill(ports);
	return wait_open(ports, error);
}

static struct port_table *make_room(const struct port_table_settings *settings)
{
	struct port_table *ports = pages_alloc(sizeof(*ports));

	if (!ports)
		return NULL;
	pages_keep_small(ports, sizeof(*ports)); // most is for ports that do not exist
	port_settings_copy(&ports->own, settings);
	ports->settings = &ports->own;
	ports->link_socket = -1;
	return ports;
}

int port_check(const struct port_table_settings *settings, struct error *error)
{
	struct port_table *ports = make_room(settings);
	int err = ports ? make_first_plan(ports, error)
	                : error_set(error, -ENOMEM, "not enough memory for the resource plan");

	if (!err)
		say_warnings(&ports->plan);
	pages_free(ports, sizeof(*ports));
	return err;
}

// EAL's message names only the device without a driver, not the port.
static int complain_of_driver(const struct port_table_settings *settings, int err,
	struct error *error)
{
	struct kind kind;
	char text[sizeof("parse device \"\"") + KIND_BUS_NAME_MAX], label[48];

	for (unsigned i = 0; i < settings->n_ports; i++) {
		kind_read(settings->ports[i].device, &kind);
		snprintf(text, sizeof(text), "parse device \"%s\"", kind.name);
		if (!strstr(error->text, text))
			continue;
		plan_port_label(settings, i, label);
		return error_set(error, err,
			"%s: DPDK has no driver for device \"%s\"; correct the name, or add the "
			"driver to eal: plugins",
			label, kind.name);
	}
	return err;
}

int port_open(struct port_table **out, const struct port_table_settings *settings,
	struct error *error)
{
	struct port_table *ports = make_room(settings);

	if (!ports)
		return error_set(error, -ENOMEM, "not enough memory for the resource plan");
	int err = make_first_plan(ports, error);

	if (!err)
		err = check_served(settings, error);
	if (!err)
		err = choose_memory(ports, error);
	if (!err) {
		eal_args_build(&ports->eal_args, settings, &ports->facts, &ports->plan,
			&ports->memory, getpid());
		err = eal_start(&ports->eal_args, error);
		ports->eal_runs = !err;
		if (err)
			err = complain_of_driver(settings, err, error);
	}
	if (!err)
		err = open_devices(ports, error);
	if (err) {
		port_close(ports);
		return err;
	}
	*out = ports;
	return 0;
}

int port_start(struct port_table *ports, struct error *error)
{
	for (unsigned i = 0; i < ports->settings->n_ports; i++) {
		int err = device_start(ports, i, error);
		if (err)
			return err;
	}
	wait_add_interrupts(ports);
	ports->link_socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	eal_speak();
	for (unsigned i = 0; i < ports->settings->n_ports; i++) {
		hotplug_note(ports, i);
		below_warn_of_merging(ports, i);
	}
	port_poll(ports);
	return 0;
}

static void close_port(struct port_table *ports, unsigned port)
{
	struct port_device *device = &ports->devices[port];

	device_close(ports, port);
	free(device->locks);
	device->locks = NULL;
}

void port_close(struct port_table *ports)
{
	if (!ports)
		return;
	wait_close(ports);
	for (unsigned i = 0; i < ports->settings->n_ports; i++)
		close_port(ports, i);
	for (unsigned i = 0; i < ports->pools.n_nodes; i++)
		rte_mempool_free(ports->pool[i]);
	for (unsigned i = 0; i < ports->n_added; i++)
		rte_mempool_free(ports->added[i].pool);
	segments_close(&ports->segments);
	if (ports->eal_runs)
		eal_stop();
	if (ports->link_socket >= 0)
		close(ports->link_socket);
	pages_free(ports, sizeof(*ports));
}
