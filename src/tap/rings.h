// What the control thread does with a lane's rings beside tap_lane_make.
#pragma once

#include "tap/tap.h"

#include <rte_mempool.h>

enum {
	RINGS_BULK = 32,     // frames that the twins' thread takes at once
	RINGS_USED = 1024,   // mbufs that wait for the lane to free them
	RINGS_INJECT = 1024, // buffers lent to it for frames from Linux, filled ones included
};

// The lane's share of class redirect.
void rings_limit_redirects(struct tap_lane *lane, const struct tap_class_settings *class,
	unsigned n_lanes);
// Lends the first buffers of this pool. Before the lane runs.
void rings_lend(struct tap_lane *lane, struct rte_mempool *pool);
