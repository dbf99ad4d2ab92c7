// What the control thread does with a worker's rings beside tap_worker_make.
#pragma once

#include "tap/tap.h"

#include <rte_mempool.h>

enum {
	RINGS_BULK = 32,     // frames that the TAP interfaces' thread takes at once
	RINGS_USED = 1024,   // mbufs that wait for the worker to free them
	RINGS_INJECT = 1024, // buffers lent to it for frames from Linux, filled ones included
};

// The worker's share of class redirect.
void rings_limit_redirects(struct tap_worker *worker, const struct tap_class_settings *class,
	unsigned n_workers);
// Lends the first buffers of this pool. Before the worker runs.
void rings_lend(struct tap_worker *worker, struct rte_mempool *pool);
