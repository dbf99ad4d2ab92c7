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
#include <sys/types.h>

// A device can vanish while its port runs. LEAVING: the queues are closed, but workers may still be
// in them; the device remains open. GONE: it is closed.
enum device_phase { DEVICE_PRESENT, DEVICE_LEAVING, DEVICE_GONE };

// Losses counted by a device.
struct device_errors {
	uint64_t rx_missed, rx_no_mbuf, rx_errors, tx_errors;
};

// A device that EAL has probed.
struct port_device {
	struct kind kind;
	uint16_t id; // DPDK port id
	bool is_found, is_set_up, is_started, has_been_up;
	bool has_carrier;    // as last read by port_poll
	bool is_set_down;    // by port_set_admin
	bool has_interrupts; // its driver has accepted them
	bool takes_all;      // always promiscuous, since the device does not know its MAC address
	bool is_promiscuous; // by port_set_promiscuous
	bool has_mac;        // `mac` is known
	uint16_t mtu;        // the MTU that we enforce; the device may not know it; 0: not set yet
	struct wire_mac mac;
	struct rss rss;
	struct rte_eth_dev_info info;
	bool is_gone; // its driver says so; written by EAL's interrupt thread; atomic, relaxed
	enum device_phase phase;
	bool was_on_bus;             // visible in /sys when it was opened
	int netdev_index;            // of the Linux interface of a virtual device; 0: none
	unsigned n_sockets;          // packet sockets that its driver bound to that interface
	uint64_t token;              // of the grace period, while DEVICE_LEAVING
	uint64_t tried_ns;           // last attempt to open it, while DEVICE_GONE; 0: none
	struct error refusal;        // logged after an attempt that failed
	struct device_errors errors; // counted before the device vanished
	unsigned n_losses;
	struct tx_lock *locks; // one per transmit queue; NULL: each worker has its own queue
};

struct tx_lock {
	rte_spinlock_t lock;
} LINE_ALIGNED;

// What a worker's thread runs.
struct worker_start {
	int (*loop)(void *arg);
	void *arg;
	pid_t tid; // once it runs; atomic, relaxed
};

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
	struct worker_start starts[STATS_MAX_WORKERS];
	struct eal_args eal_args;
	struct eal_memory memory;
	struct segments segments; // used if a device shares our buffers
	bool eal_runs;
	int link_socket; // for interface state from Linux; -1: none
	struct port_grace grace;
} LINE_ALIGNED;

// device.c: finds the port's device in DPDK and completes facts.devices[port].
int device_find(struct port_table *ports, unsigned port, struct error *error);
// Adjusts the numbers of descriptors to the device, into rings[port].
void device_adjust_rings(struct port_table *ports, unsigned port);
// Configures device and queues from plan and pools.
int device_set_up(struct port_table *ports, unsigned port, struct error *error);
// Starts the device.
int device_start(struct port_table *ports, unsigned port, struct error *error);
// Stops and closes the device, in any state; its locks remain.
void device_close(struct port_table *ports, unsigned port);

// The name of the kernel driver bound to a PCI device, "none" if there is none.
void device_kernel_driver(const char *address, char *driver, size_t size);
// Adds what the device has counted; false: nothing can be read.
bool device_add_errors(const struct port_device *device, struct device_errors *errors);

// address.c: MAC address, MTU and filters of a configured device, and the MAC in port_state. Those
// of a device that has vanished are kept for the one that returns.
int address_set_up(struct port_table *ports, unsigned port, struct error *error);

// state.c: sets the MAC address in port_state with one store of the word that contains it.
void port_state_set_mac(struct port_state *port_state, const struct wire_mac *mac);
// Fills port_state from settings and plan.
void port_state_fill(struct port_table *ports, unsigned port);

// Reads the link of a device, which must be started.
bool port_read_carrier(const struct port_table *ports, struct port_device *device);
// Sets the carrier and port_state.up; logs changes.
void port_set_carrier(struct port_table *ports, unsigned port, bool has_carrier);

// hotplug.c: remembers how a device that was just started can be recognised.
void hotplug_note(struct port_table *ports, unsigned port);
// If the device has vanished, or has come back, does the next step; returns whether it is present.
bool hotplug_follow(struct port_table *ports, unsigned port);

// below.c: warns if Linux merges frames before the device receives them. Needs link_socket.
void below_warn_of_merging(const struct port_table *ports, unsigned port);
// Lets the underlying interface, if there is one, carry packets of `mtu` bytes; 0 or -errno.
int below_carry_mtu(const struct kind *kind, uint16_t mtu);
// Number of packet sockets bound to the interface.
unsigned below_count_sockets(int index);
// Reads whether it is up and running; -ENODEV if it does not exist, or another error.
int below_runs(int socket, int index);

// workers.c: fills workers[] from the plan.
void workers_fill(struct port_table *ports);
// Closes the queues of a port.
void workers_close(struct port_table *ports, unsigned port);
// Opens them on its device, after a grace period since they were closed.
void workers_open(struct port_table *ports, unsigned port);
