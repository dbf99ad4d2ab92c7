// The twins' thread: an ordinary one, on a core that it shares with whatever else runs there. It
// sleeps in poll on the twins, so that frames from Linux wake it; rings of lanes, which make no
// system calls, are looked at each time it wakes.
#include "tap/room.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	NAP_NS = 50000,        // while frames come
	LONG_NAP_NS = 250000,  // and lanes have no core to themselves
	DOZE_NS = 1000000,     // while none have come for
	AWAKE_NS = 2000000,    // so long
	SLEEP_NS = 5000000,    // and, where lanes have no core to themselves, for
	DROWSY_NS = 100000000, // so long: each wake-up takes some 20 us from the lane
	SHUN_NS = 100000000,   // before a twin that failed is tried again
	TIMER_SLACK_NS = 1000,
	NICE = -10,
};

// Of one round of the loop.
struct rounds {
	uint64_t now_ns, moved_ns; // moved: when a frame last was
	struct pollfd polled[PORT_MAX];
	uint64_t shunned_until_ns[PORT_MAX];
	uint32_t n_files[PORT_MAX]; // as they were when it was shunned
};

// Left out: twins that are gone (they would wake us for ever) and those whose lane has no buffer
// (Linux's own queue keeps their frames).
static bool is_asked(struct tap_room *room, unsigned port, struct rounds *r)
{
	uint32_t n_files = __atomic_load_n(&room->twins[port].n_files, __ATOMIC_RELAXED);

	if (n_files != r->n_files[port])
		r->shunned_until_ns[port] = 0;
	r->n_files[port] = n_files;
	return r->now_ns >= r->shunned_until_ns[port] && move_can_inject(room, port);
}

static int sleep_on_twins(struct tap_room *room, struct rounds *r, bool is_busy)
{
	struct timespec nap = {.tv_nsec = room->is_beside_lanes ? LONG_NAP_NS : NAP_NS};

	for (unsigned p = 0; p < room->n_twins; p++) {
		r->polled[p].fd = is_asked(room, p, r) ? room->twins[p].twin.fd : -1;
		r->polled[p].events = POLLIN;
	}
	if (is_busy)
		nap.tv_nsec = 0;
	else if (room->is_beside_lanes && r->now_ns - r->moved_ns > DROWSY_NS)
		nap.tv_nsec = SLEEP_NS;
	else if (r->now_ns - r->moved_ns > AWAKE_NS)
		nap.tv_nsec = DOZE_NS;
	return ppoll(r->polled, room->n_twins, &nap, NULL);
}

static unsigned inject(struct tap_room *room, struct rounds *r)
{
	unsigned n = 0;

	for (unsigned p = 0; p < room->n_twins; p++) {
		if (!r->polled[p].revents)
			continue;
		int err = r->polled[p].revents & POLLIN ? move_injected(room, p, &n) : -EBADFD;

		if (err && err != -EAGAIN && err != -ENOBUFS)
			r->shunned_until_ns[p] = r->now_ns + SHUN_NS;
	}
	return n;
}

static void *run(void *arg)
{
	struct tap_room *room = arg;
	struct rounds r = {.moved_ns = clock_now_ns()};

	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	setpriority(PRIO_PROCESS, gettid(), NICE); // as far as we may
	while (!__atomic_load_n(&room->stop, __ATOMIC_RELAXED)) {
		bool is_busy = move_punted(room);

		r.now_ns = clock_now_ns();
		if (sleep_on_twins(room, &r, is_busy) > 0)
			is_busy |= inject(room, &r) > 0;
		if (is_busy)
			r.moved_ns = r.now_ns;
	}
	return NULL;
}

static bool is_beside_lanes(const struct tap_room *room)
{
	cpu_set_t cores;
	bool found = false;

	if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
		return true;
	for (unsigned l = 0; l < room->n_lanes; l++)
		found |= CPU_ISSET(port_lane(room->ports, l)->core, &cores);
	return found;
}

// It inherits the control thread's cores: all that are no lane's, or else all.
int thread_start(struct tap_room *room, struct complaint *why)
{
	uint64_t now_ns = clock_now_ns();

	for (unsigned c = 0; c < N_CLASSES; c++)
		bucket_start(&room->buckets[c], room->class[c].burst, now_ns);
	room->stop = false;
	room->is_beside_lanes = is_beside_lanes(room);
	int err = -pthread_create(&room->thread, NULL, run, room);
	if (err)
		return complain(why, err, "linux: no thread for the twins: %s", strerror(-err));
	pthread_setname_np(room->thread, "dl3d-twins");
	room->thread_runs = true;
	return 0;
}

void thread_stop(struct tap_room *room)
{
	if (!room->thread_runs)
		return;
	__atomic_store_n(&room->stop, true, __ATOMIC_RELAXED);
	pthread_join(room->thread, NULL);
	room->thread_runs = false;
}
