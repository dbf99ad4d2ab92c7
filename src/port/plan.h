// Settings and facts in, a plan out: which lane runs on which core and polls which queues. Pure.
// Made twice: before EAL from what files and device strings tell (that fixes the cores), then again
// on those cores from what the devices themselves say.
#pragma once

#include "base/complaint.h"
#include "port/port.h"

#include <stdbool.h>
#include <stdint.h>

enum { PLAN_MAX_CORES = 1024, PLAN_MAX_WARNINGS = 32, PLAN_MAX_NODES = 8 };

struct plan_core {
	bool exists, online, allowed;
	int8_t numa; // 0 where the machine does not say
};

// What is known of a port's device.
struct plan_device {
	int numa;           // -1: none or unknown
	uint16_t n_rx_most; // receive queues it has at most; 0: unknown yet
	uint16_t n_tx_most;
	uint16_t n_rx_own; // queues it wants polled if the file says nothing; 0: one for each near
	                   // lane (it hashes)
	bool hashes;       // spreads frames over its receive queues by itself, or its peer does
	bool rx_power_of_two; // the driver takes no other number of receive queues
	bool tx_like_rx;      // as many transmit queues as receive queues, or frames are lost
};

struct plan_facts {
	unsigned n_cores;
	struct plan_core cores[PLAN_MAX_CORES];
	struct plan_device devices[PORT_MAX];
};

struct plan_lane {
	int core, numa;
	unsigned lcore; // EAL's number for it; stays when lanes before it are dropped
	unsigned n_queues;
	struct {
		uint8_t port;
		uint16_t queue;
	} queues[PORT_LANE_QUEUES];
};

struct plan_port {
	uint16_t n_rx, n_tx;
	int numa;       // where its mbufs live: the device's node, else the first polling lane's
	int xconnect;   // port index, -1: routed
	bool shared_tx; // fewer transmit queues than lanes
};

struct plan {
	unsigned n_lanes;
	struct plan_lane lanes[STAT_MAX_LANES];
	struct plan_port ports[PORT_MAX];
	unsigned n_warnings;
	struct complaint warnings[PLAN_MAX_WARNINGS];
};

// The cores of the lanes, in order of lanes; queues are still open. -errno with a complaint.
int plan_lanes(const struct port_room_settings *settings, const struct plan_facts *facts,
	struct plan *plan, struct complaint *why);

// Gives every queue to a lane of `plan` (made by plan_lanes). Lanes that were chosen by us and got
// no queue are dropped. May be called again with better facts. -errno with a complaint.
int plan_queues(const struct port_room_settings *settings, const struct plan_facts *facts,
	struct plan *plan, struct complaint *why);

// Names, modes, sizes: what needs no facts. -errno with a complaint.
int plan_check_ports(const struct port_room_settings *settings, struct complaint *why);

// "ports[1] (name)" in `text` (at least 48 bytes); returned.
const char *plan_port_label(const struct port_room_settings *settings, unsigned port, char *text);
// Index of the port of this name, or -1.
int plan_find_port(const struct port_room_settings *settings, const char *name);
