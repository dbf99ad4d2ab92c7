// Devices, queues, mempools, offloads and workers: from settings to a plan (pure), from the plan to
// running DPDK ports. The only caller of rte_ethdev (onecore aside). Control thread.
#pragma once

#include "base/error.h"
#include "port/port_fast.h"
#include "wire/addr.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	PORT_MAX = 64,        // ports of one forwarder
	PORT_MAX_QUEUES = 64, // receive queues of one port
	PORT_NAME_MAX = 16,   // with the final 0
	PORT_DEVICE_MAX = 256,
	PORT_MAX_PLUGINS = 16,
	PORT_MAX_EAL_ARGS = 64,
	PORT_MAX_ADDRESSES = 16,
	PORT_DEFAULT_DESCRIPTORS = 2048,
	PORT_DEFAULT_MTU = 1500,
	PORT_DEFAULT_BURST = 64,
};

enum port_mode { PORT_ROUTE, PORT_XCONNECT };
// While no frame comes.
enum port_idle { PORT_IDLE_SLEEP, PORT_IDLE_POLL };
enum port_huge { PORT_HUGE_AUTO, PORT_HUGE_REQUIRE, PORT_HUGE_NEVER };

// As in the file; 0 means "choose well".
struct port_settings {
	char name[PORT_NAME_MAX];
	char device[PORT_DEVICE_MAX]; // PCI address or device string, with its arguments
	struct wire_mac mac;          // has_mac: set this one on the device
	struct wire_mac peer;         // has_peer: MAC of the box at the other end
	bool has_mac, has_peer;
	bool pass_martians;           // `martians: pass`: do not check source addresses
	bool mac_update;              // xconnect only: rewrite MACs as l2fwd does
	uint8_t mode;                 // enum port_mode
	char xconnect[PORT_NAME_MAX]; // the port that frames leave on
	uint16_t mtu;                 // IP bytes, 68 to 9600; default 1500
	uint16_t n_queues;            // receive queues
	uint16_t n_rx_descriptors, n_tx_descriptors;
	double line_bps; // at layer 1; 0: what the device says of its link
	// Of the generator's ports: addresses with the lengths of their networks (host bits are
	// set), and whom streams go through, IPv4 and IPv6; family 0: nobody.
	unsigned n_addresses;
	struct wire_prefix addresses[PORT_MAX_ADDRESSES];
	struct wire_addr gateway[2];
	int line; // of the file, for errors
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
	unsigned n_workers; // 0: choose
	struct port_worker_settings workers[STATS_MAX_WORKERS];
	uint16_t burst;        // frames per rx_burst, 1 to 64; default 64
	uint8_t huge;          // enum port_huge
	uint8_t idle;          // enum port_idle, of workers that we choose
	unsigned memory_mib;   // 0: from the pool plan
	unsigned n_lent_mbufs; // that each worker may have lent out at once, beyond its bursts
	char plugins[PORT_MAX_PLUGINS][PORT_DEVICE_MAX];
	char eal_args[PORT_MAX_EAL_ARGS][PORT_DEVICE_MAX];
	unsigned n_plugins, n_eal_args;
};

struct port_table;

// Checks what can be checked without touching a device (names, cores, duplicate queues, devices on
// the bus). --check stops here. 0, or -errno with `error` set; warnings go to the log.
int port_check(const struct port_table_settings *settings, struct error *error);

// For --check: warns of virtual devices whose driver DPDK does not have. Touches no device.
void port_warn_of_drivers(const struct port_table_settings *settings);

// Starts EAL, makes pools, opens and configures all devices; nothing receives yet. On error
// everything made is undone and the error says what, where, what to do. `settings` is borrowed
// until port_close. Once per process (EAL's rule).
int port_open(struct port_table **out, const struct port_table_settings *settings,
	struct error *error);

// Starts the devices (packets flow once workers poll). / Stops and closes them, frees pools, ends
// EAL, removes its runtime files.
int port_start(struct port_table *room, struct error *error);
void port_close(struct port_table *room);

unsigned port_n_ports(const struct port_table *room);

// What each worker gets; valid until port_close. Workers are numbered from 0.
unsigned port_n_workers(const struct port_table *room);
struct port_worker *port_worker(struct port_table *room, unsigned worker);
// Runs `loop(arg[worker])` on each worker's core; returns at once. port_workers_join waits for all
// of them to return.
int port_workers_launch(struct port_table *room, int (*loop)(void *arg), void *args[],
	struct error *error);
void port_workers_join(struct port_table *room);
// True while every worker is in its loop: one that returned by itself has failed.
bool port_workers_run(const struct port_table *room);
// Reads the links into port_state.up; the control loop calls it every 100 ms or so. -ENODEV with a
// error when a device is gone for good.
int port_poll(struct port_table *room, struct error *error);

// What workers read of the ports; index is the place in the settings.
const struct port_state *port_states(const struct port_table *room);
// Applies a new MTU or new pass_martians/peer to a running port (others need a restart). Control
// thread.
int port_change(struct port_table *room, unsigned port, const struct port_settings *settings,
	struct error *error);

// What Linux's TAP interface may change of a running port. The device is told too where it can;
// workers go by the face in any case. A port set down forwards nothing and has no link. 0, or
// -errno with a error and nothing changed. Control thread.
int port_set_admin(struct port_table *room, unsigned port, bool up, struct error *error);
int port_set_mtu(struct port_table *room, unsigned port, uint16_t mtu, struct error *error);
int port_set_mac(struct port_table *room, unsigned port, const struct wire_mac *mac,
	struct error *error);
// Whether frames to all MAC addresses come in, or those to the port's own and to groups.
int port_set_promiscuous(struct port_table *room, unsigned port, bool promiscuous,
	struct error *error);
// The link as the wire has it, whatever the TAP interface's state: port_poll's last finding.
// Control thread.
bool port_has_carrier(const struct port_table *room, unsigned port);

// For people: one port as it stands, read fresh from the device.
struct port_info {
	const char *name, *device, *driver;
	uint16_t device_id, mtu, n_rx_queues, n_tx_queues, n_rx_descriptors, n_tx_descriptors;
	struct wire_mac mac;
	bool link_up, rss;
	uint32_t link_mbps; // 0: unknown
	double line_bps;    // layer 1: of the settings, else of the link; 0: unknown, as of virtual
	                    // devices
	bool has_backpressure;  // a frame is refused only because the peer's ring is full
	uint32_t rx_ring_slots; // frames that the receive ring really holds
	int numa;               // -1: unknown
	uint64_t rx_missed, rx_no_mbuf, rx_errors, tx_errors; // the wire's loss, beside the law
};
void port_info(const struct port_table *room, unsigned port, struct port_info *out);

// Where frames to be sent on a port are made: buffers of its NUMA node, borrowed. Workers may take
// from it.
struct rte_mempool *port_pool(const struct port_table *room, unsigned port);

struct port_memory {
	bool huge;
	unsigned planned_mib;
	uint32_t mbuf_bytes; // one mbuf with its header and data room
	uint32_t n_mbufs, n_mbufs_free;
};
void port_memory(const struct port_table *room, struct port_memory *out);
