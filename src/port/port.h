// Devices, queues, mempools, offloads and workers: from settings to a plan (pure), and from the
// plan to running DPDK ports. The only caller of rte_ethdev (except onecore). Control thread.
#pragma once

#include "base/error.h"
#include "port/port_fast.h"
#include "wire/addr.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	PORT_MAX = 64,        // ports of one forwarder
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
// Behaviour while no frames arrive.
enum port_idle { PORT_IDLE_SLEEP, PORT_IDLE_POLL };
enum port_huge { PORT_HUGE_AUTO, PORT_HUGE_REQUIRE, PORT_HUGE_NEVER };

// Values as in the file; 0 means "choose automatically".
struct port_settings {
	char name[PORT_NAME_MAX];
	char device[PORT_DEVICE_MAX]; // PCI address or device string with its arguments
	struct wire_mac mac;          // if has_mac: set this address on the device
	struct wire_mac peer;         // if has_peer: MAC address of the neighbour device
	bool has_mac, has_peer;
	bool pass_martians;           // `martians: pass`: do not check source addresses
	bool mac_update;              // xconnect only: rewrite MACs as l2fwd does
	uint8_t mode;                 // enum port_mode
	char xconnect[PORT_NAME_MAX]; // the output port
	uint16_t mtu;                 // of the IP packet in bytes, 68 to 9600; default 1500
	uint16_t n_queues;            // receive queues
	uint16_t n_rx_descriptors, n_tx_descriptors;
	double line_bps; // layer 1; 0: the link speed that the device reports
	// For the generator's ports: addresses with prefix lengths (host bits are set), and the
	// gateways of streams, IPv4 and IPv6; family 0: none.
	unsigned n_addresses;
	struct wire_prefix addresses[PORT_MAX_ADDRESSES];
	struct wire_addr gateway[2];
	int line; // in the file, for errors
};

struct port_worker_settings {
	int core;          // CPU number
	uint8_t idle;      // enum port_idle
	unsigned n_queues; // 0: this worker takes its share of all queues
	struct {
		char port[PORT_NAME_MAX];
		uint16_t queue;
	} queues[PORT_MAX_QUEUES];
	int line;
};

struct port_table_settings {
	unsigned n_ports;
	struct port_settings ports[PORT_MAX];
	unsigned n_workers; // 0: choose automatically
	struct port_worker_settings workers[STATS_MAX_WORKERS];
	uint16_t burst;        // frames per rx_burst, 1 to 64; default 64
	uint8_t huge;          // enum port_huge
	uint8_t idle;          // enum port_idle, for automatically chosen workers
	unsigned memory_mib;   // 0: from the pool plan
	unsigned n_lent_mbufs; // mbufs that each worker may hold outside of its bursts
	char plugins[PORT_MAX_PLUGINS][PORT_DEVICE_MAX];
	char eal_args[PORT_MAX_EAL_ARGS][PORT_DEVICE_MAX];
	unsigned n_plugins, n_eal_args;
};

struct port_table;

// Checks everything that can be checked without touching a device (names, cores, duplicate queues,
// devices on the bus). --check stops here. 0, or -errno with `error` set; warnings go to the log.
int port_check(const struct port_table_settings *settings, struct error *error);

// For --check: warns of virtual devices for which DPDK has no driver. Touches no device.
void port_warn_of_drivers(const struct port_table_settings *settings);

// Starts EAL, creates pools, opens and configures all devices; nothing is received yet. If it
// fails, everything is undone, and `error` says what failed, where, and what to do. `settings` is
// borrowed until port_close. Once per process (a restriction of EAL).
int port_open(struct port_table **out, const struct port_table_settings *settings,
	struct error *error);

// Starts the devices (packets flow once workers poll). / Stops and closes them, frees pools, ends
// EAL, removes its runtime files.
int port_start(struct port_table *room, struct error *error);
void port_close(struct port_table *room);

unsigned port_n_ports(const struct port_table *room);

// Each worker's queues; valid until port_close. Workers are numbered from 0.
unsigned port_n_workers(const struct port_table *room);
struct port_worker *port_worker(struct port_table *room, unsigned worker);
// Runs `loop(args[worker])` on each worker's core; returns at once. port_workers_join waits until
// all have returned.
int port_workers_launch(struct port_table *room, int (*loop)(void *arg), void *args[],
	struct error *error);
void port_workers_join(struct port_table *room);
// True while every worker runs its loop: one that returned by itself has failed.
bool port_workers_run(const struct port_table *room);
// Reads the link states into port_state.up; the control loop calls it about every 100 ms. -ENODEV
// with `error` set if a device has been removed.
int port_poll(struct port_table *room, struct error *error);

// Port state read by workers; same index as in the settings.
const struct port_state *port_states(const struct port_table *room);
// Applies a new MTU, pass_martians or peer to a running port (other settings need a restart).
// Control thread.
int port_change(struct port_table *room, unsigned port, const struct port_settings *settings,
	struct error *error);

// Applies changes of the port's TAP interface to a running port. The device is changed too if it
// supports that; workers use port_state in any case. A port that is set down forwards nothing and
// has no link. 0, or -errno with `error` set and nothing changed. Control thread.
int port_set_admin(struct port_table *room, unsigned port, bool up, struct error *error);
int port_set_mtu(struct port_table *room, unsigned port, uint16_t mtu, struct error *error);
int port_set_mac(struct port_table *room, unsigned port, const struct wire_mac *mac,
	struct error *error);
// Selects whether frames to all MAC addresses are received, or only those to the port's own and to
// groups.
int port_set_promiscuous(struct port_table *room, unsigned port, bool promiscuous,
	struct error *error);
// The carrier of the device, whatever the TAP interface's state, as last read by port_poll. Control
// thread.
bool port_has_carrier(const struct port_table *room, unsigned port);

// Information about one port for display, read from the device.
struct port_info {
	const char *name, *device, *driver;
	uint16_t device_id, mtu, n_rx_queues, n_tx_queues, n_rx_descriptors, n_tx_descriptors;
	struct wire_mac mac;
	bool link_up, rss;
	uint32_t link_mbps; // 0: unknown
	double line_bps; // layer 1: from the settings, or of the link; 0: unknown, as for virtual
	                 // devices
	bool has_backpressure;  // a frame is refused only because the peer's ring is full
	uint32_t rx_ring_slots; // actual capacity of the receive ring in frames
	int numa;               // -1: unknown
	uint64_t rx_missed, rx_no_mbuf, rx_errors, tx_errors; // losses outside our accounting
};
void port_info(const struct port_table *room, unsigned port, struct port_info *out);

// The pool for frames that are created to be sent on a port: buffers of its NUMA node, borrowed.
// Workers may allocate from it.
struct rte_mempool *port_pool(const struct port_table *room, unsigned port);

struct port_memory {
	bool huge;
	unsigned planned_mib;
	uint32_t mbuf_bytes; // one mbuf with its header and data room
	uint32_t n_mbufs, n_mbufs_free;
};
void port_memory(const struct port_table *room, struct port_memory *out);
