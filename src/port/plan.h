// Settings and facts in, a plan out: which worker runs on which core and polls which queues. Pure.
// Made twice: before EAL from what files and device strings tell (that fixes the cores), then again
// on those cores from what the devices themselves say.
#pragma once

#include "base/error.h"
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
	                   // worker (it hashes)
	bool hashes;       // spreads frames over its receive queues by itself, or its peer does
	bool rx_power_of_two; // the driver takes no other number of receive queues
	bool tx_like_rx;      // as many transmit queues as receive queues, or frames are lost
};

struct plan_facts {
	unsigned n_cores;
	struct plan_core cores[PLAN_MAX_CORES];
	struct plan_device devices[PORT_MAX];
};

struct plan_worker {
	int core, numa;
	unsigned lcore; // EAL's number for it; stays when workers before it are dropped
	unsigned n_queues;
	struct {
		uint8_t port;
		uint16_t queue;
	} queues[PORT_WORKER_QUEUES];
};

struct plan_port {
	uint16_t n_rx, n_tx;
	int numa;       // where its mbufs live: the device's node, else the first polling worker's
	int xconnect;   // port index, -1: routed
	bool shared_tx; // fewer transmit queues than workers
};

struct plan {
	unsigned n_workers;
	struct plan_worker workers[STATS_MAX_WORKERS];
	struct plan_port ports[PORT_MAX];
	unsigned n_warnings;
	struct error warnings[PLAN_MAX_WARNINGS];
};

// The cores of the workers, in order of workers; queues are still open. -errno with `error` set.
int plan_workers(const struct port_table_settings *settings, const struct plan_facts *facts,
	struct plan *plan, struct error *error);

// Gives every queue to a worker of `plan` (made by plan_workers). Workers that were chosen by us
// and got no queue are dropped. May be called again with better facts. -errno with `error` set.
int plan_queues(const struct port_table_settings *settings, const struct plan_facts *facts,
	struct plan *plan, struct error *error);

// Names, modes, sizes: what needs no facts. -errno with `error` set.
int plan_check_ports(const struct port_table_settings *settings, struct error *error);

// "ports[1] (name)" in `text` (at least 48 bytes); returned.
const char *plan_port_label(const struct port_table_settings *settings, unsigned port, char *text);
// Index of the port of this name, or -1.
int plan_find_port(const struct port_table_settings *settings, const char *name);
