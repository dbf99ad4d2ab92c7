// The control thread's operations on a worker's rings, in addition to tap_worker_make.
#pragma once

#include "tap/tap.h"

#include <rte_mempool.h>

enum {
	RINGS_BULK = 32,     // frames dequeued by the tap thread at once
	RINGS_USED = 1024,   // mbufs waiting to be freed by the worker
	RINGS_INJECT = 1024, // buffers lent for frames from Linux, including filled ones
};

// Sets the worker's share of the limit of class redirect.
void rings_limit_redirects(struct tap_worker *worker, const struct tap_class_settings *class,
	unsigned n_workers);
// Lends the first buffers from this pool. Call before the worker starts.
void rings_lend(struct tap_worker *worker, struct rte_mempool *pool);
