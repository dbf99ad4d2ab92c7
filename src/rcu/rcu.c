// Quiescent states of workers and grace periods. Control thread.
#include "rcu/rcu.h"

#include "base/clock.h"
#include "base/log.h"
#include "rcu/rcu_fast.h"

#include <errno.h>
#include <stdlib.h>

static const uint64_t SILENT_NS = 1000000000;
static const uint64_t PROBE_NS = 100000000;
static const uint64_t SPIN_NS =
	50000; // workers report every few microseconds; sleeping pays only after that

struct rcu {
	struct rcu_readers readers;
	struct rcu_defer *attached; // list
	unsigned n_workers;
	uint64_t probe_token; // the grace period that detects silent workers
	uint64_t probe_start_ns;
};

struct rcu *rcu_create(unsigned n_workers, struct error *error)
{
	struct rcu *rcu = NULL;

	if (!n_workers || n_workers > RCU_MAX_WORKERS) {
		error_set(error, -EINVAL, "%u workers: expected 1 to %u", n_workers,
			RCU_MAX_WORKERS);
		return NULL;
	}
	if (posix_memalign((void **)&rcu, CACHE_LINE_BYTES, sizeof(*rcu)))
		goto no_memory;
	*rcu = (struct rcu){.n_workers = n_workers, .probe_start_ns = clock_now_ns()};
	if (posix_memalign((void **)&rcu->readers.qsbr, CACHE_LINE_BYTES,
		    rte_rcu_qsbr_get_memsize(n_workers)))
		goto no_memory;
	rte_rcu_qsbr_init(rcu->readers.qsbr, n_workers);
	for (unsigned worker = 0; worker < n_workers; worker++)
		rte_rcu_qsbr_thread_register(rcu->readers.qsbr, worker);
	rcu->probe_token = rte_rcu_qsbr_start(rcu->readers.qsbr);
	return rcu;
no_memory:
	free(rcu);
	error_set(error, -ENOMEM, "not enough memory for the RCU state of %u workers", n_workers);
	return NULL;
}

void rcu_destroy(struct rcu *rcu)
{
	if (!rcu)
		return;
	free(rcu->readers.qsbr);
	free(rcu);
}

const struct rcu_readers *rcu_readers(const struct rcu *rcu)
{
	return &rcu->readers;
}

uint64_t rcu_start_grace(struct rcu *rcu)
{
	return rte_rcu_qsbr_start(rcu->readers.qsbr);
}

bool rcu_has_passed(struct rcu *rcu, uint64_t token)
{
	return rte_rcu_qsbr_check(rcu->readers.qsbr, token, false) == 1;
}

// A worker that is online and has not reported since `token`, else -1.
static int late_worker(const struct rcu *rcu, uint64_t token)
{
	for (unsigned worker = 0; worker < rcu->n_workers; worker++) {
		uint64_t seen =
			__atomic_load_n(&rcu->readers.qsbr->qsbr_cnt[worker].cnt, __ATOMIC_ACQUIRE);
		if (seen != __RTE_QSBR_CNT_THR_OFFLINE && seen < token)
			return worker;
	}
	return -1;
}

void rcu_wait(struct rcu *rcu, uint64_t token)
{
	const uint64_t start_ns = clock_now_ns();
	bool was_named = false;

	while (!rcu_has_passed(rcu, token)) {
		uint64_t waited_ns = clock_now_ns() - start_ns;
		if (waited_ns > SPIN_NS)
			nanosleep(&(struct timespec){.tv_nsec = SPIN_NS}, NULL);
		if (waited_ns < SILENT_NS || was_named)
			continue;
		int late = late_worker(rcu, token);
		if (late < 0)
			continue; // it has just reported
		was_named = true;
		log_warn(
			"worker %d has not reported a quiescent state for 1 s; changes wait for it",
			late);
	}
}

void rcu_defer_attach(struct rcu_defer *defer, struct rcu *rcu)
{
	defer->rcu = rcu;
	defer->next = rcu->attached;
	rcu->attached = defer;
}

void rcu_defer_detach(struct rcu_defer *defer)
{
	struct rcu_defer **at = &defer->rcu->attached;

	rcu_defer_drain(defer);
	rcu_defer_wait(defer);
	while (*at != defer)
		at = &(*at)->next;
	*at = defer->next;
	defer->rcu = NULL;
}

int rcu_poll(struct rcu *rcu)
{
	const uint64_t now_ns = clock_now_ns();

	for (struct rcu_defer *defer = rcu->attached; defer; defer = defer->next) {
		rcu_defer_close(defer, true);
		rcu_defer_poll(defer);
	}
	if (now_ns - rcu->probe_start_ns < PROBE_NS)
		return -1;
	int late = late_worker(rcu, rcu->probe_token);
	if (late >= 0)
		return now_ns - rcu->probe_start_ns >= SILENT_NS ? late : -1;
	rcu->probe_token = rcu_start_grace(rcu);
	rcu->probe_start_ns = now_ns;
	return -1;
}
