// The room's state, private to its files.
#pragma once

#include "port/eal_args.h"
#include "port/kind.h"
#include "port/plan.h"
#include "port/pools.h"
#include "port/port.h"
#include "port/rss.h"
#include "port/segments.h"

#include <rte_mempool.h>

// A device that EAL found.
struct port_device {
	struct kind kind;
	uint16_t id; // DPDK port id
	bool is_found, is_set_up, is_started, has_been_up;
	bool has_carrier;    // port_poll's last finding
	bool is_set_down;    // by port_set_admin
	bool has_interrupts; // that its driver agreed to give
	bool takes_all;      // promiscuous whatever is asked: it does not know its MAC address
	uint16_t mtu;        // what we forward; the device may not know
	struct wire_mac mac;
	struct rss rss;
	struct rte_eth_dev_info info;
	bool is_gone;          // written by EAL's thread of events; atomic, relaxed
	struct tx_lock *locks; // one for each transmit queue, NULL: each worker has its own
};

struct tx_lock {
	rte_spinlock_t lock;
} LINE_ALIGNED;

struct port_table {
	struct port_state states[PORT_MAX];
	struct port_worker workers[STATS_MAX_WORKERS];
	const struct port_table_settings *settings;
	struct plan_facts facts;
	struct plan plan;
	struct pools_plan pools;
	struct pools_rings rings[PORT_MAX];
	struct rte_mempool *pool[PLAN_MAX_NODES];
	struct port_device devices[PORT_MAX];
	struct eal_args eal_args;
	struct eal_memory memory;
	struct segments segments; // where a device hands out our buffers
	bool eal_runs;
	int link_socket; // asks Linux for the state of interfaces; -1: none
} LINE_ALIGNED;

// device.c: finds the port's device among DPDK's and completes facts.devices[port].
int device_find(struct port_table *room, unsigned port, struct error *error);
// Descriptors as the device wants them, into rings[port].
void device_adjust_rings(struct port_table *room, unsigned port);
// Configures device and queues from plan and pools. / Starts it. / Stops and closes it, whatever
// state it is in.
int device_set_up(struct port_table *room, unsigned port, struct error *error);
int device_start(struct port_table *room, unsigned port, struct error *error);
void device_close(struct port_table *room, unsigned port);

// address.c: MAC address, MTU and filters of a configured device; the face's MAC.
int address_set_up(struct port_table *room, unsigned port, struct error *error);
int address_set_mtu(struct port_table *room, unsigned port, uint16_t mtu, struct error *error);

// faces.c: what workers read of the port, from settings and plan. / Its MAC address, in one store
// with its neighbours in the word.
void port_state_set_mac(struct port_state *port_state, const struct wire_mac *mac);
void port_state_fill(struct port_table *room, unsigned port);

// below.c: warns where Linux merges frames before the device sees them. Needs link_socket. / Makes
// the interface below, where there is one, carry packets of `mtu` bytes; else a negative errno.
void below_warn_of_merging(const struct port_table *room, unsigned port);
int below_carry_mtu(const struct kind *kind, uint16_t mtu);

// workers.c: fills workers[] from the plan.
void workers_fill(struct port_table *room);
