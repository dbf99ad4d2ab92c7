// Opens and closes the ports: settings -> plan -> EAL -> devices -> better plan -> pools -> queues
// -> workers. Control thread.
#include "port/table.h"

#include "base/log.h"
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
static int make_first_plan(struct port_table *room, struct error *error)
{
	int err = plan_check_ports(room->settings, error);

	if (!err)
		err = check_files(room->settings, error);
	if (!err)
		err = check_eal_args(room->settings, error);
	if (!err)
		err = check_memory(room->settings, error);
	if (err)
		return err;
	facts_read(&room->facts, room->settings);
	err = plan_workers(room->settings, &room->facts, &room->plan, error);
	if (!err)
		err = plan_queues(room->settings, &room->facts, &room->plan, error);
	return err;
}

static void size_pools(struct port_table *room)
{
	for (unsigned i = 0; i < room->settings->n_ports; i++)
		device_adjust_rings(room, i);
	pools_plan(&room->pools, room->settings, &room->plan, room->rings);
}

static int choose_memory(struct port_table *room, struct error *error)
{
	struct facts_pages pages;
	struct facts_ram ram;
	struct memory_choice choice;

	size_pools(room);
	unsigned wanted = room->settings->memory_mib;
	memcpy(room->memory.node_mib, room->pools.node_mib, sizeof(room->memory.node_mib));
	facts_read_pages(&pages);
	facts_read_ram(&ram);
	int err = memory_choose(&choice, room->settings->huge, wanted ? wanted : room->pools.mib,
		&pages, error);
	if (err)
		return err;
	if (choice.warning.text[0])
		log_warn("%s", choice.warning.text);
	room->memory.huge = choice.huge;
	room->memory.mib = wanted        ? wanted
	                   : choice.huge ? room->pools.mib
	                                 : room->pools.small_pages_mib;
	return choice.huge ? 0 : memory_check_ordinary(room->memory.mib, &ram, error);
}

static int make_pools(struct port_table *room, struct error *error)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	for (unsigned i = 0; i < room->pools.n_nodes; i++) {
		const struct pools_node *node = &room->pools.nodes[i];
		int numa = room->memory.huge && node->numa >= 0 ? node->numa : SOCKET_ID_ANY;

		snprintf(name, sizeof(name), "mbufs_%u", i);
		room->pool[i] = rte_pktmbuf_pool_create(name, node->n_mbufs, node->cache, 0,
			node->data_room, numa);
		if (!room->pool[i])
			return error_set(error, -rte_errno,
				"memory: %u buffers of %u bytes on NUMA node %d do not fit: %s; "
				"give more memory (memory: {mib: "
				"%u}) or fewer descriptors",
				node->n_mbufs, node->object_bytes, node->numa,
				rte_strerror(rte_errno), room->memory.mib * 2);
	}
	return 0;
}

static int open_devices(struct port_table *room, struct error *error)
{
	int err = 0;

	for (unsigned i = 0; i < room->settings->n_ports && !err; i++)
		err = device_find(room, i, error);
	if (!err)
		err = plan_queues(room->settings, &room->facts, &room->plan, error);
	if (err)
		return err;
	size_pools(room);
	err = make_pools(room, error);
	for (unsigned i = 0; i < room->settings->n_ports && !err; i++) {
		port_state_fill(room, i);
		err = device_set_up(room, i, error);
	}
	if (err)
		return err;
	say_warnings(&room->plan);
	workers_fill(room);
	return wait_open(room, error);
}

static struct port_table *make_room(const struct port_table_settings *settings)
{
	struct port_table *room = aligned_alloc(_Alignof(struct port_table), sizeof(*room));

	if (!room)
		return NULL;
	memset(room, 0, sizeof(*room));
	room->settings = settings;
	room->link_socket = -1;
	return room;
}

int port_check(const struct port_table_settings *settings, struct error *error)
{
	struct port_table *room = make_room(settings);
	int err = room ? make_first_plan(room, error)
	               : error_set(error, -ENOMEM, "no memory for the plan of the ports");

	if (!err)
		say_warnings(&room->plan);
	free(room);
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
			"%s: DPDK has no driver for device \"%s\": correct its name, or name its "
			"driver under eal: plugins",
			label, kind.name);
	}
	return err;
}

int port_open(struct port_table **out, const struct port_table_settings *settings,
	struct error *error)
{
	struct port_table *room = make_room(settings);

	if (!room)
		return error_set(error, -ENOMEM, "no memory for the plan of the ports");
	int err = make_first_plan(room, error);

	if (!err)
		err = check_served(settings, error);
	if (!err)
		err = choose_memory(room, error);
	if (!err) {
		const struct eal_request request = {settings, &room->facts, &room->plan,
			room->memory, getpid()};

		eal_args_build(&room->eal_args, &request);
		err = eal_start(&room->eal_args, error);
		room->eal_runs = !err;
		if (err)
			err = complain_of_driver(settings, err, error);
	}
	if (!err)
		err = open_devices(room, error);
	if (err) {
		port_close(room);
		return err;
	}
	*out = room;
	return 0;
}

int port_start(struct port_table *room, struct error *error)
{
	for (unsigned i = 0; i < room->settings->n_ports; i++) {
		int err = device_start(room, i, error);
		if (err)
			return err;
	}
	wait_add_interrupts(room);
	room->link_socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	eal_speak();
	for (unsigned i = 0; i < room->settings->n_ports; i++)
		below_warn_of_merging(room, i);
	return port_poll(room, error);
}

void port_close(struct port_table *room)
{
	if (!room)
		return;
	wait_close(room);
	for (unsigned i = 0; i < room->settings->n_ports; i++)
		device_close(room, i);
	for (unsigned i = 0; i < room->pools.n_nodes; i++)
		rte_mempool_free(room->pool[i]);
	segments_close(&room->segments);
	if (room->eal_runs)
		eal_stop();
	if (room->link_socket >= 0)
		close(room->link_socket);
	free(room);
}
