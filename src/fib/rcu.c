// RCU between workers and the writer: the pointer to the live table, and quiescent states. Control
// thread.
#include "fib/rcu.h"

#include "base/clock.h"
#include "base/log.h"
#include "fib/table.h"
#include "stats/stats.h"

#include <errno.h>
#include <stdlib.h>

static const uint64_t SILENT_NS = 1000000000;
static const uint64_t PROBE_NS = 100000000;
static const uint64_t SPIN_NS =
	50000; // workers report every few microseconds; sleeping pays only after that

struct fib_rcu {
	struct fib_rcu_fast fast;
	struct fib *attached;
	unsigned n_workers;
	uint64_t probe_token; // the grace period that detects silent workers
	uint64_t probe_start_ns;
};

struct fib_rcu *fib_rcu_create(unsigned n_workers, struct error *error)
{
	struct fib_rcu *rcu = NULL;

	if (!n_workers || n_workers > STATS_MAX_WORKERS) {
		error_set(error, -EINVAL, "%u workers: expected 1 to %u", n_workers,
			STATS_MAX_WORKERS);
		return NULL;
	}
	if (posix_memalign((void **)&rcu, CACHE_LINE_BYTES, sizeof(*rcu)))
		goto no_memory;
	*rcu = (struct fib_rcu){.n_workers = n_workers, .probe_start_ns = clock_now_ns()};
	if (posix_memalign((void **)&rcu->fast.qsbr, CACHE_LINE_BYTES,
		    rte_rcu_qsbr_get_memsize(n_workers)))
		goto no_memory;
	rte_rcu_qsbr_init(rcu->fast.qsbr, n_workers);
	for (unsigned worker = 0; worker < n_workers; worker++)
		rte_rcu_qsbr_thread_register(rcu->fast.qsbr, worker);
	rcu->probe_token = rte_rcu_qsbr_start(rcu->fast.qsbr);
	return rcu;
no_memory:
	free(rcu);
	error_set(error, -ENOMEM, "not enough memory for the RCU state of %u workers", n_workers);
	return NULL;
}

void fib_rcu_destroy(struct fib_rcu *rcu)
{
	if (!rcu)
		return;
	free(rcu->fast.qsbr);
	free(rcu);
}

struct fib_rcu_fast *fib_rcu_readers(struct fib_rcu *rcu)
{
	return &rcu->fast;
}

uint64_t fib_rcu_start_grace(struct fib_rcu *rcu)
{
	return rte_rcu_qsbr_start(rcu->fast.qsbr);
}

bool fib_rcu_has_passed(struct fib_rcu *rcu, uint64_t token)
{
	return rte_rcu_qsbr_check(rcu->fast.qsbr, token, false) == 1;
}

// A worker that is online and has not reported since `token`, else -1.
static int late_worker(const struct fib_rcu *rcu, uint64_t token)
{
	for (unsigned worker = 0; worker < rcu->n_workers; worker++) {
		uint64_t seen =
			__atomic_load_n(&rcu->fast.qsbr->qsbr_cnt[worker].cnt, __ATOMIC_ACQUIRE);
		if (seen != __RTE_QSBR_CNT_THR_OFFLINE && seen < token)
			return worker;
	}
	return -1;
}

void rcu_wait(struct fib_rcu *rcu, uint64_t token)
{
	const uint64_t start_ns = clock_now_ns();
	bool was_named = false;

	while (!fib_rcu_has_passed(rcu, token)) {
		uint64_t waited_ns = clock_now_ns() - start_ns;
		if (waited_ns > SPIN_NS)
			nanosleep(&(struct timespec){.tv_nsec = SPIN_NS}, NULL);
		if (waited_ns < SILENT_NS || was_named)
			continue;
		int late = late_worker(rcu, token);
		if (late < 0)
			continue; // it has just reported
		was_named = true;
		log_warn("worker %d has not reported a quiescent state for 1 s; table changes wait "
			 "for it",
			late);
	}
}

struct fib *fib_rcu_swap(struct fib_rcu *rcu, struct fib *fib)
{
	struct fib *old = rcu->attached;

	if (old == fib)
		return NULL;
	if (fib)
		fib->defer.rcu = rcu;
	rcu->attached = fib;
	__atomic_store_n(&rcu->fast.live, fib ? &fib->view : NULL, __ATOMIC_RELEASE);
	if (!old)
		return NULL;
	defer_drain(&old->defer);
	rcu_wait(rcu, fib_rcu_start_grace(rcu));
	old->defer.rcu = NULL;
	return old;
}

int fib_rcu_poll(struct fib_rcu *rcu)
{
	const uint64_t now_ns = clock_now_ns();

	if (rcu->attached) {
		defer_close(&rcu->attached->defer, true);
		defer_poll(&rcu->attached->defer);
	}
	if (now_ns - rcu->probe_start_ns < PROBE_NS)
		return -1;
	int late = late_worker(rcu, rcu->probe_token);
	if (late >= 0)
		return now_ns - rcu->probe_start_ns >= SILENT_NS ? late : -1;
	rcu->probe_token = fib_rcu_start_grace(rcu);
	rcu->probe_start_ns = now_ns;
	return -1;
}
