// The reader side of RCU. No function here allocates, locks or makes system calls. Worker.
#pragma once

#include "base/bits.h"

#include <rte_rcu_qsbr.h>

struct rcu_readers {
	struct rte_rcu_qsbr *qsbr;
} LINE_ALIGNED;

// Called by a worker when it starts and ends, and around sleeps.
static inline void rcu_reader_online(const struct rcu_readers *readers, unsigned worker)
{
	rte_rcu_qsbr_thread_online(readers->qsbr, worker);
}

static inline void rcu_reader_offline(const struct rcu_readers *readers, unsigned worker)
{
	rte_rcu_qsbr_thread_offline(readers->qsbr, worker);
}

// Reports a quiescent state: the worker holds no pointer to anything that is freed after a grace
// period. Called once per loop.
static inline void rcu_reader_report(const struct rcu_readers *readers, unsigned worker)
{
	rte_rcu_qsbr_quiescent(readers->qsbr, worker);
}
