// The tap thread: on a core shared with others, with real-time priority as far as permitted. It
// sleeps in poll on the TAP interfaces and the eventfd, so that frames from Linux and the first
// frame punted by a worker wake it. After a frame it polls the workers' rings by itself for a
// while.
#include "tap/table.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "base/priority.h"

#include <errno.h>
#include <poll.h>
#include <rte_atomic.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
	NAP_NS = 50000,       // while frames arrive
	LONG_NAP_NS = 250000, // and workers share its cores: each wakeup takes about 20 us
	AWAKE_NS = 2000000,   // maximum age of the last frame for the state "frames arrive"
	DOZE_NS = 5000000,    // no frames, but a TAP interface or a ring has to be checked again
	SLEEP_NS = 50000000,  // no frames
	SHUN_NS = 100000000,  // before a failed TAP interface is tried again
	TIMER_SLACK_NS = 1000,
};

// State of the loop.
struct rounds {
	uint64_t now_ns, moved_ns;          // moved: time of the last moved frame
	struct pollfd polled[PORT_MAX + 1]; // TAP interfaces, then the eventfd
	uint64_t shunned_until_ns[PORT_MAX];
	unsigned n_taps;
	uint32_t n_files[PORT_MAX]; // as they were when the TAP interface failed
};

// Skips absent and deleted TAP interfaces (poll would return at once) and those whose worker has
// lent no buffer (Linux keeps their frames in its own queue).
static bool is_asked(struct tap_table *taps, unsigned port, struct rounds *r)
{
	uint32_t n_files = __atomic_load_n(&taps->taps[port].n_files, __ATOMIC_RELAXED);

	if (n_files != r->n_files[port])
		r->shunned_until_ns[port] = 0;
	r->n_files[port] = n_files;
	return r->now_ns >= r->shunned_until_ns[port] && move_can_inject(taps, port);
}

static int sleep_on_taps(struct tap_table *taps, struct rounds *r, bool is_busy, bool is_quiet)
{
	struct timespec nap = {.tv_nsec = taps->is_beside_workers ? LONG_NAP_NS : NAP_NS};
	bool are_all_asked = true;

	r->n_taps = __atomic_load_n(&taps->n_taps, __ATOMIC_ACQUIRE);
	for (unsigned p = 0; p < r->n_taps; p++) {
		bool is_absent = tap_is_absent(&taps->taps[p]);
		bool is_one = !is_absent && is_asked(taps, p, r);

		r->polled[p] = (struct pollfd){is_one ? taps->taps[p].tap.fd : -1, POLLIN, 0};
		are_all_asked &= is_one || is_absent;
	}
	// A wakeup that arrived while the thread was already awake must not keep it awake.
	r->polled[r->n_taps] = (struct pollfd){is_quiet ? taps->wakeup.fd : -1, POLLIN, 0};
	if (is_busy)
		nap.tv_nsec = 0;
	else if (is_quiet)
		nap.tv_nsec = are_all_asked && !move_has_punted(taps) ? SLEEP_NS : DOZE_NS;
	return ppoll(r->polled, r->n_taps + 1, &nap, NULL);
}

// From now on a waker wakes us; frames punted before are seen at the next check of the rings.
static void lie_down(struct tap_wakeup *wakeup)
{
	__atomic_store_n(&wakeup->is_asleep, true, __ATOMIC_RELAXED);
	rte_smp_mb();
}

static void get_up(struct tap_wakeup *wakeup)
{
	uint64_t n_rung;

	__atomic_store_n(&wakeup->is_asleep, false, __ATOMIC_RELAXED);
	ssize_t n = read(wakeup->fd, &n_rung, sizeof(n_rung));

	(void)n; // no wakeup is pending
}

static unsigned inject(struct tap_table *taps, struct rounds *r)
{
	unsigned n = 0;

	for (unsigned p = 0; p < r->n_taps; p++) {
		if (!r->polled[p].revents)
			continue;
		int err = r->polled[p].revents & POLLIN ? move_injected(taps, p, &n) : -EBADFD;

		if (err && err != -EAGAIN && err != -ENOBUFS)
			r->shunned_until_ns[p] = r->now_ns + SHUN_NS;
	}
	return n;
}

static void *run(void *arg)
{
	struct tap_table *taps = arg;
	struct rounds r = {.moved_ns = clock_now_ns()};
	struct priority priority;
	struct error error;

	__atomic_store_n(&taps->tid, gettid(), __ATOMIC_RELAXED);
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	// BFD sessions count on it, whatever else runs on the core.
	if (priority_real_time(&priority, &error))
		log_warn("linux: TAP thread: %s", error.text);
	while (!__atomic_load_n(&taps->stop, __ATOMIC_RELAXED)) {
		__atomic_store_n(&taps->n_rounds, taps->n_rounds + 1, __ATOMIC_RELEASE);
		priority_check(&priority);
		bool is_quiet = clock_now_ns() - r.moved_ns > AWAKE_NS;

		if (is_quiet)
			lie_down(&taps->wakeup);
		bool is_busy = move_punted(taps);
		r.now_ns = clock_now_ns();
		if (sleep_on_taps(taps, &r, is_busy, is_quiet) > 0)
			is_busy |= inject(taps, &r) > 0 || r.polled[r.n_taps].revents;
		if (is_quiet)
			get_up(&taps->wakeup);
		if (is_busy)
			r.moved_ns = clock_now_ns();
	}
	return NULL;
}

static bool is_beside_workers(const struct tap_table *taps)
{
	cpu_set_t cores;
	bool found = false;

	if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
		return true;
	for (unsigned l = 0; l < taps->n_workers; l++)
		found |= CPU_ISSET(port_worker(taps->ports, l)->core, &cores);
	return found;
}

// It inherits the control thread's cores: all that are not used by workers, or else all.
int thread_start(struct tap_table *taps, struct error *error)
{
	uint64_t now_ns = clock_now_ns();

	for (unsigned c = 0; c < N_CLASSES; c++)
		bucket_start(&taps->buckets[c], taps->class[c].burst, now_ns);
	taps->stop = false;
	taps->is_beside_workers = is_beside_workers(taps);
	int err = -pthread_create(&taps->thread, NULL, run, taps);
	if (err)
		return error_set(error, err, "linux: cannot create the TAP thread: %s",
			strerror(-err));
	pthread_setname_np(taps->thread, "dl3d-taps");
	taps->thread_runs = true;
	return 0;
}

void thread_stop(struct tap_table *taps)
{
	if (!taps->thread_runs)
		return;
	uint64_t one = 1;

	__atomic_store_n(&taps->stop, true, __ATOMIC_RELAXED);
	if (write(taps->wakeup.fd, &one, sizeof(one)) < 0)
		log_warn("linux: cannot wake the TAP thread: %s", strerror(errno));
	deadline_watch(__atomic_load_n(&taps->tid, __ATOMIC_RELAXED));
	pthread_join(taps->thread, NULL);
	deadline_watch(gettid());
	taps->thread_runs = false;
}

static void wake(struct tap_table *taps)
{
	uint64_t one = 1;
	ssize_t n = write(taps->wakeup.fd, &one, sizeof(one));

	(void)n; // it wakes by itself after a while
}

void thread_wait(struct tap_table *taps)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	uint32_t before = __atomic_load_n(&taps->n_rounds, __ATOMIC_ACQUIRE);

	while (taps->thread_runs &&
		__atomic_load_n(&taps->n_rounds, __ATOMIC_ACQUIRE) - before < 2) {
		wake(taps);
		nanosleep(&nap, NULL);
	}
}
