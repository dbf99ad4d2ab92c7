// The module's state, private to its files.
#pragma once

#include "port/eal_args.h"
#include "port/kind.h"
#include "port/offload.h"
#include "port/plan.h"
#include "port/pools.h"
#include "port/port.h"
#include "port/segments.h"
#include "port/vhost.h"

#include <rte_mempool.h>
#include <sys/types.h>

// A device can vanish while its port runs. LEAVING: the queues are closed, but workers may still be
// in them; the device remains open. GONE: it is closed. RESETTING: as LEAVING, but the device is
// still there and is to be reset.
enum device_phase { DEVICE_PRESENT, DEVICE_LEAVING, DEVICE_GONE, DEVICE_RESETTING };

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
	bool mac_is_own;     // it is the device's own: neither the file nor Linux has set it
	uint16_t mtu;        // the MTU that we enforce; the device may not know it; 0: not set yet
	struct wire_mac mac;
	struct rss rss;
	struct rte_eth_dev_info info;
	// Said by its driver; written by EAL's interrupt thread; atomic, relaxed.
	bool is_gone, wants_reset;
	enum device_phase phase;
	bool was_on_bus;             // visible in /sys when it was opened
	int netdev_index;            // of the Linux interface of a virtual device; 0: none
	unsigned n_sockets;          // packet sockets that its driver bound to that interface
	uint64_t token;              // of the grace period, while LEAVING or RESETTING
	uint64_t tried_ns;           // last attempt to open it, while DEVICE_GONE; 0: none
	struct error refusal;        // logged after an attempt that failed
	struct device_errors errors; // counted before the device vanished
	unsigned n_losses, n_resets, n_own_macs;
	struct port_tx_lock *locks; // one per transmit queue; NULL: each worker has its own queue
	struct vhost *vhost;        // net_vhost only, while the device is open; otherwise NULL
};

// What a worker's thread runs.
struct worker_start {
	int (*loop)(void *arg);
	void *arg;
	pid_t tid; // once it runs; atomic, relaxed
};

// Buffers allocated for a port that was added at run time.
struct added_pool {
	struct rte_mempool *pool;
	int numa;
	uint16_t port; // PORT_NONE: it was removed
};

struct port_table {
	struct port_state states[PORT_MAX];
	struct port_worker workers[STATS_MAX_WORKERS];
	struct port_table_settings own;
	const struct port_table_settings *settings; // the above
	struct plan_facts facts;
	struct plan plan;
	struct pools_plan pools;
	struct pools_rings rings[PORT_MAX];
	struct rte_mempool *pool[PLAN_MAX_NODES];
	struct added_pool added[PORT_MAX];
	unsigned n_added;
	bool has_added_heap;
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
// Resets a device that is stopped, or that asked for it, and starts it again. No worker uses it.
int device_reset(struct port_table *ports, unsigned port, struct error *error);
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

// added_pools.c: gives a port that is being added a pool for its queues: one that a removed port
// has left, or a new one. -ENOMEM or -EBUSY with `error` set.
int added_pools_take(struct port_table *ports, unsigned port, struct error *error);
void added_pools_leave(struct port_table *ports, unsigned port);
// That of the port; NULL: it uses the pool of its NUMA node.
struct rte_mempool *added_pools_find(const struct port_table *ports, unsigned port);

// hotplug.c: remembers how a device that was just started can be recognised.
void hotplug_note(struct port_table *ports, unsigned port);
// If the device has vanished, or has come back, does the next step; returns whether it is present.
bool hotplug_follow(struct port_table *ports, unsigned port);
// Attaches the port's device to DPDK. / Closes it and detaches it.
int hotplug_probe(struct port_table *ports, unsigned port, struct error *error);
void hotplug_detach(struct port_table *ports, unsigned port);
// Takes the link and the queues from the port, and starts a grace period.
void hotplug_withdraw(struct port_table *ports, unsigned port);

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
// Gives the workers the queues of a port that is being added, still closed.
void workers_add(struct port_table *ports, unsigned port);
// Frees the places of its queues, after a grace period since they were closed.
void workers_remove(struct port_table *ports, unsigned port);
// vhost_steer.call with the port_table: sends on transmit queues that the port's peer receives
// from, and leaves to it what it takes. Thread of DPDK's vhost-user library.
void workers_steer(void *ports, unsigned port, uint64_t live, uint8_t takes);
// Closes the queues of a port.
void workers_close(struct port_table *ports, unsigned port);
// Opens them on its device, after a grace period since they were closed.
void workers_open(struct port_table *ports, unsigned port);
