// The module's state, private to its files.
#pragma once

#include "port/eal_args.h"
#include "port/kind.h"
#include "port/offload.h"
#include "port/plan.h"
#include "port/pools.h"
#include "port/port.h"
#include "port/segments.h"

#include <rte_mempool.h>

// A device that EAL has probed.
struct port_device {
	struct kind kind;
	uint16_t id; // DPDK port id
	bool is_found, is_set_up, is_started, has_been_up;
	bool has_carrier;    // as last read by port_poll
	bool is_set_down;    // by port_set_admin
	bool has_interrupts; // its driver has accepted them
	bool takes_all;      // always promiscuous, since the device does not know its MAC address
	uint16_t mtu;        // the MTU that we enforce; the device may not know it
	struct wire_mac mac;
	struct rss rss;
	struct rte_eth_dev_info info;
	bool is_gone;          // written by EAL's interrupt thread; atomic, relaxed
	struct tx_lock *locks; // one per transmit queue; NULL: each worker has its own queue
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
	struct segments segments; // used if a device shares our buffers
	bool eal_runs;
	int link_socket; // for interface state from Linux; -1: none
} LINE_ALIGNED;

// device.c: finds the port's device in DPDK and completes facts.devices[port].
int device_find(struct port_table *ports, unsigned port, struct error *error);
// Adjusts the numbers of descriptors to the device, into rings[port].
void device_adjust_rings(struct port_table *ports, unsigned port);
// Configures device and queues from plan and pools.
int device_set_up(struct port_table *ports, unsigned port, struct error *error);
// Starts the device.
int device_start(struct port_table *ports, unsigned port, struct error *error);
// Stops and closes the device, in any state.
void device_close(struct port_table *ports, unsigned port);

// address.c: MAC address, MTU and filters of a configured device, and the MAC in port_state.
int address_set_up(struct port_table *ports, unsigned port, struct error *error);
int address_set_mtu(struct port_table *ports, unsigned port, uint16_t mtu, struct error *error);

// state.c: sets the MAC address in port_state with one store of the word that contains it.
void port_state_set_mac(struct port_state *port_state, const struct wire_mac *mac);
// Fills port_state from settings and plan.
void port_state_fill(struct port_table *ports, unsigned port);

// below.c: warns if Linux merges frames before the device receives them. Needs link_socket.
void below_warn_of_merging(const struct port_table *ports, unsigned port);
// Lets the underlying interface, if there is one, carry packets of `mtu` bytes; 0 or -errno.
int below_carry_mtu(const struct kind *kind, uint16_t mtu);

// workers.c: fills workers[] from the plan.
void workers_fill(struct port_table *ports);
