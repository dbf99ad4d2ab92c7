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
	bool has_carrier;    // port_tend's last finding
	bool is_set_down;    // by port_set_admin
	bool has_interrupts; // that its driver agreed to give
	bool takes_all;      // promiscuous whatever is asked: it does not know its MAC address
	uint16_t mtu;        // what we forward; the device may not know
	struct wire_mac mac;
	struct rss rss;
	struct rte_eth_dev_info info;
	bool is_gone;            // written by EAL's thread of events; atomic, relaxed
	struct room_lock *locks; // one for each transmit queue, NULL: each lane has its own
};

struct room_lock {
	rte_spinlock_t lock;
} LINE_ALIGNED;

struct port_room {
	struct port_face faces[PORT_MAX];
	struct port_lane lanes[STAT_MAX_LANES];
	const struct port_room_settings *settings;
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
int device_find(struct port_room *room, unsigned port, struct complaint *why);
// Descriptors as the device wants them, into rings[port].
void device_adjust_rings(struct port_room *room, unsigned port);
// Configures device and queues from plan and pools. / Starts it. / Stops and closes it, whatever
// state it is in.
int device_set_up(struct port_room *room, unsigned port, struct complaint *why);
int device_start(struct port_room *room, unsigned port, struct complaint *why);
void device_close(struct port_room *room, unsigned port);

// address.c: MAC address, MTU and filters of a configured device; the face's MAC.
int address_set_up(struct port_room *room, unsigned port, struct complaint *why);
int address_set_mtu(struct port_room *room, unsigned port, uint16_t mtu, struct complaint *why);

// faces.c: what lanes read of the port, from settings and plan. / Its MAC address, in one store
// with its neighbours in the word.
void faces_set_mac(struct port_face *face, const struct wire_mac *mac);
void faces_fill(struct port_room *room, unsigned port);

// below.c: warns where Linux merges frames before the device sees them. Needs link_socket. / Makes
// the interface below, where there is one, carry packets of `mtu` bytes; else a negative errno.
void below_warn_of_merging(const struct port_room *room, unsigned port);
int below_carry_mtu(const struct kind *kind, uint16_t mtu);

// lanes.c: fills lanes[] from the plan.
void lanes_fill(struct port_room *room);
