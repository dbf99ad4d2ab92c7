// Ports and lanes that exist on paper only, for the tests of verbs. Test.
#pragma once

#include "verbs/verbs.h"

// What the test sets and reads.
struct fake {
	int refuse_change_of; // port whose port_change fails; -1: none
	unsigned mtu[PORT_MAX];
	unsigned n_changes, n_tended;
	bool lane_has_ended, device_is_gone;
};
extern struct fake fake;

void fake_reset(void);
struct stat_lane *fake_stat(unsigned lane);
