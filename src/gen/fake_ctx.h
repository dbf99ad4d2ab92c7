// Two fake ports on two workers, workers that are plain threads, and senders that only count: for
// the tests of runs and methods. Tests only.
#pragma once

#include "gen/inside.h"

enum { FAKE_WORKERS = 2, FAKE_HZ = 1000000000 };

// State set and read by a test.
struct fake {
	bool is_down[FAKE_WORKERS]; // link of port i
	bool device_is_gone, worker_has_ended;
	uint64_t missed;      // reported by each port's device
	uint64_t turn_cycles; // duration of a sender_turn that sends
	int n_senders;        // currently existing; atomic
	int n_wrong;          // turns of a destroyed sender, or before its start; atomic
};
extern struct fake fake;

// Port names are left and right; worker 0 polls left, worker 1 right. The workers poll no queues.
extern const struct port_table_settings fake_settings;

// Number of CPUs available to this process.
unsigned fake_cpus(void);

// A generator on these ports; its workers are not started. Owner: caller, gen_close.
struct gen *fake_load(const json_t *streams);
