// Devices, queues, mempools, offloads and workers: first computes a resource plan from the settings
// (no side effects), then configures and starts the DPDK ports. The only module that calls
// rte_ethdev (except onecore). Control thread.
#pragma once

#include "base/error.h"
#include "port/port_fast.h"
#include "wire/addr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	PORT_STORMS = 3,      // kinds of frames that storm control distinguishes
	PORT_MAX = 256,       // ports of one process: indices fit into a byte
	PORT_MAX_QUEUES = 64, // receive queues of one port
	PORT_NAME_MAX = 16,   // including the final 0
	PORT_DEVICE_MAX = 256,
	PORT_MAX_PLUGINS = 16,
	PORT_MAX_EAL_ARGS = 64,
	PORT_MAX_ADDRESSES = 16,
	PORT_DEFAULT_DESCRIPTORS = 2048,
	PORT_DEFAULT_MTU = 1500,
	PORT_DEFAULT_BURST = 64,
};

enum port_mode { PORT_ROUTE, PORT_XCONNECT };
// What a worker does while no frames arrive.
enum port_idle { PORT_IDLE_SLEEP, PORT_IDLE_POLL };
enum port_huge { PORT_HUGE_AUTO, PORT_HUGE_REQUIRE, PORT_HUGE_NEVER };

// Values as in the configuration file. 0 (key not given) means: mtu and numbers of
// descriptors: the default above; n_queues: chosen automatically; line_bps: the speed that the
// device reports.
struct port_settings {
	char name[PORT_NAME_MAX];
	char device[PORT_DEVICE_MAX]; // PCI address or device string with its arguments
	struct wire_mac mac;          // if has_mac: set this address on the device
	struct wire_mac peer; // if has_peer: MAC address of the directly connected (only) neighbour
	bool has_mac, has_peer;
	bool pass_martians; // key `martians: pass`: do not check source addresses
	uint8_t rpf6;       // key `rpf6`: reverse path filter for IPv6; 0 off, 1 strict, 2 loose
	bool mac_update;    // PORT_XCONNECT only: rewrite MAC addresses as l2fwd does
	uint8_t mode;       // enum port_mode; key `mode`, per port
	char xconnect[PORT_NAME_MAX]; // key `to`: name of the output port
	uint16_t mtu;                 // maximum IP packet in bytes, 68 to 9600; default 1500
	uint16_t n_queues;            // receive queues
	uint16_t n_rx_descriptors, n_tx_descriptors;
	// Storm control where the port is in a bridge, in frames/s: broadcast, multicast, unknown
	// addresses (enum mac_storm); 0: as the bridge says.
	uint32_t storm_pps[PORT_STORMS];
	double line_bps; // line rate in bit/s, including preamble and inter-frame gap
	// For the generator's ports: addresses with prefix lengths (host bits are set), and the
	// gateways of streams, IPv4 and IPv6; family 0: none.
	unsigned n_addresses;
	struct wire_prefix addresses[PORT_MAX_ADDRESSES];
	struct wire_addr gateway[2];
	int line; // in the configuration file, for errors
	// The port was removed at run time: its index is free, and routes may still refer to it.
	bool is_removed;
};

struct port_worker_settings {
	int core;          // CPU number
	uint8_t idle;      // enum port_idle
	unsigned n_queues; // 0: this worker takes its share of all queues
	struct {
		char port[PORT_NAME_MAX];
		uint16_t queue;
	} queues[PORT_MAX_QUEUES];
	bool receives_nothing;        // an empty list
	uint8_t shapes;               // 1: has queues of subscribers
	unsigned n_hands_to;          // 0: it processes itself what it receives
	int hands_to[PORT_MAX_HANDS]; // cores of other workers
	int line;
};

struct port_table_settings {
	unsigned n_ports; // including removed ones between others: see port_next
	struct port_settings ports[PORT_MAX];
	unsigned n_workers; // 0: choose automatically
	struct port_worker_settings workers[STATS_MAX_WORKERS];
	uint16_t burst;        // frames per rx_burst, 1 to 64; default 64
	uint8_t huge;          // enum port_huge
	uint8_t idle;          // enum port_idle, for automatically chosen workers
	unsigned memory_mib;   // 0: computed from the sizes of the mempools
	bool may_grow;         // port_add may be called: it allocates further mempools
	unsigned n_held_mbufs; // mbufs in queues of subscribers; added to each mempool
	unsigned n_lent_mbufs; // mbufs per worker in punt and inject rings; added to the mempool
	                       // size
	char plugins[PORT_MAX_PLUGINS][PORT_DEVICE_MAX];
	char eal_args[PORT_MAX_EAL_ARGS][PORT_DEVICE_MAX];
	unsigned n_plugins, n_eal_args;
};

// Copies all settings, but of ports only those with an index below n_ports, so that memory for the
// others is not touched. `to` is zeroed or has settings.
static inline void port_settings_copy(struct port_table_settings *to,
	const struct port_table_settings *from)
{
	const size_t rest = offsetof(struct port_table_settings, n_workers);

	to->n_ports = from->n_ports;
	memcpy(to->ports, from->ports, from->n_ports * sizeof(from->ports[0]));
	memcpy((char *)to + rest, (const char *)from + rest, sizeof(*from) - rest);
}

// Whether there is a port with this index.
static inline bool port_is_configured(const struct port_table_settings *settings, unsigned port)
{
	return port < settings->n_ports && !settings->ports[port].is_removed;
}

// The first port whose index is at least `from`, or n_ports: the indices of removed ports are left
// out.
static inline unsigned port_next(const struct port_table_settings *settings, unsigned from)
{
	while (from < settings->n_ports && settings->ports[from].is_removed)
		from++;
	return from;
}

struct port_table;

// Checks everything that can be checked without opening a device (names, cores, duplicate queues,
// devices on the bus). --check ends after this. 0, or -errno with `error` set; warnings go to the
// log.
int port_check(const struct port_table_settings *settings, struct error *error);

// For --check: warns about virtual devices without an installed PMD. Touches no device.
void port_warn_of_drivers(const struct port_table_settings *settings);

// Starts EAL, creates the mempools, opens and configures all devices; nothing is received yet. On
// failure everything is undone, and `error` describes what failed, where, and what to do. Copies
// `settings`. May be called only once per process, because EAL cannot be initialised again.
int port_open(struct port_table **out, const struct port_table_settings *settings,
	struct error *error);

// Starts the devices; packets are received once the workers poll. 0, or -errno with `error` set.
int port_start(struct port_table *ports, struct error *error);
// Stops and closes the devices, frees the mempools, cleans up EAL and removes its runtime files.
void port_close(struct port_table *ports);

// Ports are added and removed while workers run; the others are not disturbed. port_add opens a
// device for port number `port`, which must not be in use, and allocates buffers for its queues;
// its MTU must fit the buffers allocated at start. Workers poll and use it from port_begin on. 0,
// or -errno with `error` set and nothing changed. Control thread.
int port_add(struct port_table *ports, unsigned port, const struct port_settings *settings,
	struct error *error);
void port_begin(struct port_table *ports, unsigned port);
// Takes the port's queues away from the workers, waits for a grace period, and closes the device.
// Its buffers are kept for the next port that is added. Control thread.
void port_remove(struct port_table *ports, unsigned port);

// Waits for a grace period: what workers could not find any more at its start, they do not use any
// more at its end. Control thread.
void port_wait_for_workers(const struct port_table *ports);

// The settings in use, and the ports among them.
const struct port_table_settings *port_settings_of(const struct port_table *ports);
unsigned port_n_ports(const struct port_table *ports);

// Each worker's queues; valid until port_close. Workers are numbered from 0. A queue whose `port`
// is PORT_NONE is not in use.
unsigned port_n_workers(const struct port_table *ports);
struct port_worker *port_worker(struct port_table *ports, unsigned worker);
// Runs `loop(args[worker])` on each worker's core; returns at once. port_workers_join waits until
// all have returned; a deadline (base/deadline.h) counts their CPU time meanwhile.
int port_workers_launch(struct port_table *ports, int (*loop)(void *arg), void *args[],
	struct error *error);
void port_workers_join(struct port_table *ports);
// True if all workers are still in their loop; one that returned without being stopped has failed.
bool port_workers_alive(const struct port_table *ports);

// The workers' grace periods: `start` returns the token of a new one, and `has_passed` whether all
// workers have since left the queues that were closed before it.
struct port_grace {
	uint64_t (*start)(void *arg);
	bool (*has_passed)(void *arg, uint64_t token);
	void *arg;
};
// `grace` is copied; it must be valid as long as port_poll is called. Without it a device that
// vanishes is closed only by port_close, so it does not return. Control thread.
void port_set_grace(struct port_table *ports, const struct port_grace *grace);

// Reads the link states into port_state.up, and follows devices that vanish, return or need a
// reset; the control thread calls it about every 50 ms. A port whose device has vanished is down,
// and its queues are closed. The device itself is closed after a grace period, and opened again
// once it exists, with the MAC address, MTU and filters of the port; what happens is logged. A
// device that asks for a reset is stopped after a grace period, configured and started again; if
// the port has the device's own MAC address, it is read again (port_info.n_own_macs counts how
// often it changed).
void port_poll(struct port_table *ports);
// Tries at once to open the devices that have vanished, including those that only return this way:
// those whose interface in Linux is made by DPDK (net_tap). Logs those that cannot be opened.
void port_restore(struct port_table *ports);
// -ENODEV with `error` set if a device has vanished.
int port_check_devices(const struct port_table *ports, struct error *error);

// Port state read by workers; same index as in the settings.
const struct port_state *port_states(const struct port_table *ports);
// Applies a new MTU, pass_martians, rpf6 or peer to a running port (other settings need a restart).
// Control thread.
int port_change(struct port_table *ports, unsigned port, const struct port_settings *settings,
	struct error *error);

// Sets whether the port's frames go to the bridge of the port, not to the router. The caller has
// the device receive frames to all addresses (port_set_promiscuous). Control thread.
void port_set_bridged(struct port_table *ports, unsigned port, bool is_bridged);

// Applies changes of the port's TAP interface to a running port. The device is changed too if it
// supports that; workers use port_state in any case. While a port is admin-down, its link is
// reported down and workers transmit nothing on it; frames that the device still receives are
// dropped because of IFACE_DOWN. 0, or -errno with `error` set and nothing changed. Control
// thread.
int port_set_admin(struct port_table *ports, unsigned port, bool up, struct error *error);
int port_set_mtu(struct port_table *ports, unsigned port, uint16_t mtu, struct error *error);
int port_set_mac(struct port_table *ports, unsigned port, const struct wire_mac *mac,
	struct error *error);
// Selects whether all frames are received, or only frames to the port's MAC address and
// multicast/broadcast.
int port_set_promiscuous(struct port_table *ports, unsigned port, bool promiscuous,
	struct error *error);
// The carrier of the device as last read by port_poll, regardless of the admin state of the TAP
// interface. Control thread.
bool port_has_carrier(const struct port_table *ports, unsigned port);

// What a device may lose and count.
enum port_loss {
	PORT_RX_MISSED = 1, // no free descriptor: the worker did not poll in time
	PORT_RX_NO_MBUF = 2,
	PORT_RX_ERRORS = 4,
	PORT_TX_ERRORS = 8,
};

// Information about one port for display, read from the device.
struct port_info {
	const char *name, *device, *driver;
	uint16_t device_id, mtu, n_rx_queues, n_tx_queues, n_rx_descriptors, n_tx_descriptors;
	struct wire_mac mac;
	bool link_up, rss;
	bool device_present; // false: the device has vanished
	unsigned n_losses;   // times that it has vanished
	unsigned n_resets;   // times that it was reset
	unsigned n_own_macs; // times that a reset has changed the MAC address
	uint32_t link_mbps;  // 0: unknown
	double line_bps; // line rate: from the settings, or of the link; 0: unknown, as for virtual
	                 // devices
	bool has_backpressure;  // tx_burst returns fewer frames only if the peer's ring is full
	uint32_t rx_ring_slots; // actual capacity of the receive ring in frames
	int numa;               // -1: unknown
	uint64_t rx_missed, rx_no_mbuf, rx_errors,
		tx_errors; // counted by the device, not part of the packet accounting
	uint8_t uncounted; // enum port_loss: 0 in their fields means that the driver does not
	                   // count them
};
void port_info(const struct port_table *ports, unsigned port, struct port_info *out);

// The mempool for locally generated frames sent on a port, on the port's NUMA node. Owner:
// port_table, until port_close. Workers may allocate from it.
struct rte_mempool *port_pool(const struct port_table *ports, unsigned port);

// A device of DPDK's net_vhost, and its peer: a guest, or a program with virtio-user.
enum port_vhost_state {
	PORT_VHOST_WAITING,  // for its peer
	PORT_VHOST_STARTING, // the peer is connected, but its driver has not set up its rings
	PORT_VHOST_CONNECTED,
};
struct port_vhost {
	char socket[108];
	bool is_server; // creates the socket; otherwise connects to it
	enum port_vhost_state state;
	unsigned n_connections; // since the port was opened
	uint64_t features;      // that were negotiated, bits of the virtio specification; 0: none
	unsigned n_queues;
	struct {
		bool receives, sends;        // the peer's driver has enabled this direction
		uint16_t rx_slots, tx_slots; // of the peer's rings; 0: not set up yet
	} queues[PORT_MAX_QUEUES];
	const char *remark; // what the user has to know or do; static; NULL: nothing
};
// False: the port has another device, or it is not open. Control thread.
bool port_vhost(const struct port_table *ports, unsigned port, struct port_vhost *out);

struct port_memory {
	bool huge;
	unsigned planned_mib;
	uint32_t mbuf_bytes; // one mbuf with its header and data room
	uint32_t n_mbufs, n_mbufs_free;
};
void port_memory(const struct port_table *ports, struct port_memory *out);
