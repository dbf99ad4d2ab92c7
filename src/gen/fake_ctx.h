// Two ports on two workers that exist on paper only, workers that are plain threads, senders that
// only count: for the tests of runs and methods. Test.
#pragma once

#include "gen/inside.h"

enum { FAKE_WORKERS = 2, FAKE_HZ = 1000000000 };

// What a test sets and reads.
struct fake {
	bool is_down[FAKE_WORKERS]; // the link of port i
	bool device_is_gone, worker_has_ended;
	uint64_t missed;      // by each port's device
	uint64_t turn_cycles; // that a sender's turn takes in which it sends
	int n_senders;        // that live now; atomic
	int n_wrong;          // turns of a sender that was destroyed, or early; atomic
};
extern struct fake fake;

// Port names are left and right; worker 0 polls left, worker 1 right. The workers poll no queue.
extern const struct port_table_settings fake_settings;

// CPUs that this process may use.
unsigned fake_cpus(void);

// A generator on them; its workers do not run. Owner: caller, gen_close.
struct gen *fake_load(const json_t *streams);
