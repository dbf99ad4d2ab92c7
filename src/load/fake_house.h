// Two ports on two lanes that exist on paper only, lanes that are plain threads, senders that only
// count: for the tests of runs and verbs. Test.
#pragma once

#include "load/inside.h"

enum { FAKE_LANES = 2, FAKE_HZ = 1000000000 };

// What a test sets and reads.
struct fake {
	bool is_down[FAKE_LANES]; // the link of port i
	bool device_is_gone, lane_has_ended;
	uint64_t missed;      // by each port's device
	uint64_t turn_cycles; // that a sender's turn takes in which it sends
	int n_senders;        // that live now; atomic
	int n_wrong;          // turns of a sender that was destroyed, or early; atomic
};
extern struct fake fake;

// Port names are left and right; lane 0 polls left, lane 1 right. The lanes poll no queue.
extern const struct port_room_settings fake_settings;

// CPUs that this process may use.
unsigned fake_cpus(void);

// A generator on them; its lanes do not run. Owner: caller, load_close.
struct load *fake_load(const json_t *streams);
