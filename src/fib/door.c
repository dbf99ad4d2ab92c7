// Where lanes and the writer meet: the live table's address, and quiescent states in between.
// Control thread, but for fib_lane_*.
#include "fib/door.h"

#include "base/clock.h"
#include "base/log.h"
#include "fib/table.h"
#include "stat/stat.h"

#include <errno.h>
#include <stdlib.h>

static const uint64_t SILENT_NS = 1000000000;
static const uint64_t PROBE_NS = 100000000;
static const uint64_t SPIN_NS =
	50000; // lanes report every few microseconds; only then is sleeping worth it

struct fib_door {
	struct fib_door_fast fast;
	struct fib *attached;
	unsigned n_lanes;
	uint64_t probe_token; // the grace period that lanes are timed by
	uint64_t probe_start_ns;
};

struct fib_door *fib_door_create(unsigned n_lanes, struct complaint *why)
{
	struct fib_door *door = NULL;

	if (!n_lanes || n_lanes > STAT_MAX_LANES) {
		complain(why, -EINVAL, "%u lanes: wanted 1 to %u", n_lanes, STAT_MAX_LANES);
		return NULL;
	}
	if (posix_memalign((void **)&door, CACHE_LINE_BYTES, sizeof(*door)))
		goto no_memory;
	*door = (struct fib_door){.n_lanes = n_lanes, .probe_start_ns = clock_now_ns()};
	if (posix_memalign((void **)&door->fast.qsbr, CACHE_LINE_BYTES,
		    rte_rcu_qsbr_get_memsize(n_lanes)))
		goto no_memory;
	rte_rcu_qsbr_init(door->fast.qsbr, n_lanes);
	for (unsigned lane = 0; lane < n_lanes; lane++)
		rte_rcu_qsbr_thread_register(door->fast.qsbr, lane);
	door->probe_token = rte_rcu_qsbr_start(door->fast.qsbr);
	return door;
no_memory:
	free(door);
	complain(why, -ENOMEM, "no memory for the door of %u lanes", n_lanes);
	return NULL;
}

void fib_door_destroy(struct fib_door *door)
{
	if (!door)
		return;
	free(door->fast.qsbr);
	free(door);
}

struct fib_door_fast *fib_door_lanes(struct fib_door *door)
{
	return &door->fast;
}

uint64_t door_token(struct fib_door *door)
{
	return rte_rcu_qsbr_start(door->fast.qsbr);
}

bool door_has_passed(struct fib_door *door, uint64_t token)
{
	return rte_rcu_qsbr_check(door->fast.qsbr, token, false) == 1;
}

// A lane that is online and has not reported since `token`, else -1.
static int late_lane(const struct fib_door *door, uint64_t token)
{
	for (unsigned lane = 0; lane < door->n_lanes; lane++) {
		uint64_t seen =
			__atomic_load_n(&door->fast.qsbr->qsbr_cnt[lane].cnt, __ATOMIC_ACQUIRE);
		if (seen != __RTE_QSBR_CNT_THR_OFFLINE && seen < token)
			return lane;
	}
	return -1;
}

void door_wait(struct fib_door *door, uint64_t token)
{
	const uint64_t start_ns = clock_now_ns();
	bool was_named = false;

	while (!door_has_passed(door, token)) {
		uint64_t waited_ns = clock_now_ns() - start_ns;
		if (waited_ns > SPIN_NS)
			nanosleep(&(struct timespec){.tv_nsec = SPIN_NS}, NULL);
		if (waited_ns < SILENT_NS || was_named)
			continue;
		int late = late_lane(door, token);
		if (late < 0)
			continue; // it has just come round
		was_named = true;
		log_warn(
			"lane %d has not come round for a second; changes of the table wait for it",
			late);
	}
}

struct fib *fib_door_swap(struct fib_door *door, struct fib *fib)
{
	struct fib *old = door->attached;

	if (old == fib)
		return NULL;
	if (fib)
		fib->retire.door = door;
	door->attached = fib;
	__atomic_store_n(&door->fast.live, fib ? &fib->view : NULL, __ATOMIC_RELEASE);
	if (!old)
		return NULL;
	retire_drain(&old->retire);
	door_wait(door, door_token(door));
	old->retire.door = NULL;
	return old;
}

int fib_door_tend(struct fib_door *door)
{
	const uint64_t now_ns = clock_now_ns();

	if (door->attached) {
		retire_close(&door->attached->retire, true);
		retire_tend(&door->attached->retire);
	}
	if (now_ns - door->probe_start_ns < PROBE_NS)
		return -1;
	int late = late_lane(door, door->probe_token);
	if (late >= 0)
		return now_ns - door->probe_start_ns >= SILENT_NS ? late : -1;
	door->probe_token = door_token(door);
	door->probe_start_ns = now_ns;
	return -1;
}
