// Ports and lanes that exist on paper only, for the tests of verbs. Test.
#pragma once

#include "verbs/verbs.h"

// What the test sets and reads.
struct fake {
	int refuse_change_of; // port whose port_change fails; -1: none
	unsigned mtu[PORT_MAX];
	unsigned n_changes, n_tended;
	bool lane_has_ended, device_is_gone;
	// Linux
	struct stat_tap taps;
	unsigned n_twins_tended, n_restored, n_steps; // n_steps: calls of sync_tend
	bool sync_has_more, is_dumping, refuse_restore, refuse_start;
	struct tap_class_settings class[N_CLASSES];
	struct sync_opinion opinion;
	unsigned n_differences, n_unsupported;
	uint32_t sample; // that sync_verify was asked for
	char calls[64];  // a letter for each room that was opened or closed
};
extern struct fake fake;

void fake_reset(void);
struct stat_lane *fake_stat(unsigned lane);
// Twins and a mirror on paper: links 0 and 1 are the ports; VRF 3 is "blue".
struct tap_room *fake_twins(void);
struct sync *fake_sync(void);
