// Computes from settings and facts which worker runs on which core and polls which queues. Pure.
// Done twice: before EAL starts, from files and device strings (which determines the cores), and
// again on those cores with what the devices report.
#pragma once

#include "base/error.h"
#include "port/port.h"

#include <stdbool.h>
#include <stdint.h>

enum { PLAN_MAX_CORES = 1024, PLAN_MAX_WARNINGS = 32, PLAN_MAX_NODES = 8 };

struct plan_core {
	bool exists, online, allowed;
	int8_t numa; // 0 if unknown
};

// What is known of a port's device.
struct plan_device {
	int numa;           // -1: none or unknown
	uint16_t n_rx_most; // maximum number of receive queues; 0: not known yet
	uint16_t n_tx_most;
	uint16_t n_rx_own; // queues to poll if the file does not say; 0: one for each near worker
	                   // (it hashes)
	bool hashes;       // it or its peer distributes frames over its receive queues
	bool rx_power_of_two; // the driver supports no other number of receive queues
	bool is_steered;      // its peer may disable transmit queues: workers then share the others
	bool tx_like_rx; // needs as many transmit queues as receive queues, otherwise frames are
	                 // lost
};

struct plan_facts {
	unsigned n_cores;
	struct plan_core cores[PLAN_MAX_CORES];
	struct plan_device devices[PORT_MAX];
};

struct plan_worker {
	int core, numa;
	unsigned lcore; // EAL's number for it; unchanged when workers before it are dropped
	unsigned n_queues;
	struct {
		uint16_t port; // PORT_NONE: that of a removed port, to be used by the next one
		uint16_t queue;
	} queues[PORT_WORKER_QUEUES];
	unsigned n_hands_to; // workers to which it hands what it receives
	uint8_t hands_to[PORT_MAX_HANDS];
	bool is_handed; // another worker hands packets to it
};

struct plan_port {
	uint16_t n_rx, n_tx;
	int numa;       // node of its mbufs: the device's, otherwise the first polling worker's
	int xconnect;   // port index, -1: routed
	bool shared_tx; // workers may share transmit queues
};

struct plan {
	unsigned n_workers;
	struct plan_worker workers[STATS_MAX_WORKERS];
	struct plan_port ports[PORT_MAX];
	unsigned n_warnings;
	struct error warnings[PLAN_MAX_WARNINGS];
};

// Assigns cores to workers, in order of workers; queues are not assigned yet. -errno with `error`
// set.
int plan_workers(const struct port_table_settings *settings, const struct plan_facts *facts,
	struct plan *plan, struct error *error);

// Assigns every queue to a worker of `plan` (made by plan_workers). Automatically chosen workers
// without a queue are dropped. May be called again with better facts. -errno with `error` set.
int plan_queues(const struct port_table_settings *settings, const struct plan_facts *facts,
	struct plan *plan, struct error *error);

// Assigns the queues of one more port to the workers, whose other queues stay where they are. On
// error the plan is as before. May be called again with better facts, after plan_remove.
int plan_add(const struct port_table_settings *settings, const struct plan_facts *facts,
	struct plan *plan, unsigned port, struct error *error);
// Takes the queues of a port out of the plan.
void plan_remove(struct plan *plan, unsigned port);

// plan_hands.c: finds the workers that others hand packets to, part of plan_workers. / Whether all
// workers have something to do, part of plan_queues. -errno with `error` set.
int plan_hands(const struct port_table_settings *settings, struct plan *plan, struct error *error);
int plan_check_hands(const struct port_table_settings *settings, const struct plan *plan,
	struct error *error);
// Adds a warning to the plan, unless it has too many.
void plan_warn(struct plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Checks names, modes and sizes, which need no facts. -errno with `error` set.
int plan_check_ports(const struct port_table_settings *settings, struct error *error);
// The same for one port, beside the others.
int plan_check_port(const struct port_table_settings *settings, unsigned port, struct error *error);

// Writes "ports[1] (name)" to `text` (at least 48 bytes) and returns it.
const char *plan_port_label(const struct port_table_settings *settings, unsigned port, char *text);
// Index of the port with this name, or -1.
int plan_find_port(const struct port_table_settings *settings, const char *name);
