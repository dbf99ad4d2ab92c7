// Fake ports and workers, for the tests of methods. Tests only.
#pragma once

#include "api/api.h"

// State set and read by the test.
struct fake {
	int refuse_change_of; // port whose port_change fails; -1: none
	unsigned mtu[PORT_MAX];
	unsigned n_changes, n_polled, n_ports_restored;
	bool worker_has_ended, device_is_gone;
	// Linux
	struct stats_tap taps;
	unsigned n_taps_polled, n_restored, n_steps; // n_steps: calls of netlink_poll
	bool netlink_has_more, is_dumping, refuse_restore, refuse_start;
	struct tap_class_settings class[N_CLASSES];
	struct netlink_route_check route_check;
	unsigned n_differences, n_unsupported;
	uint32_t sample; // last passed to netlink_verify
	char calls[64];  // one letter for each module opened or closed
};
extern struct fake fake;

void fake_reset(void);
struct stats_worker *fake_stat(unsigned worker);
// Fake TAP interfaces and netlink: interfaces 0 and 1 are the ports; VRF 3 is "blue".
struct tap_table *fake_taps(void);
struct netlink *fake_sync(void);
