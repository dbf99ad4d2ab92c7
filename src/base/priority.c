// Priority of a thread that handles packets for others on a shared core. Each thread for itself.
#include "base/priority.h"

#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { NICE = -10, NAP_NS = 50000, LOWEST = 1 };

// The thread with real-time priority; 0: none. Written by it and by the signal handler.
static pid_t real_time_thread;

static uint64_t cpu_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static int set_policy(pid_t thread, int policy, int level)
{
	struct sched_param param = {.sched_priority = level};

	return sched_setscheduler(thread, policy | SCHED_RESET_ON_FORK, &param) ? -errno : 0;
}

// Any thread: Linux sends the signal to the process. Only async-signal-safe calls.
static void on_runaway(int number)
{
	pid_t thread = __atomic_exchange_n(&real_time_thread, 0, __ATOMIC_RELAXED);

	(void)number;
	if (thread)
		set_policy(thread, SCHED_OTHER, 0);
}

static void limit_runaway(void)
{
	struct sigaction action = {.sa_handler = on_runaway, .sa_flags = SA_RESTART};
	struct rlimit limit;

	sigaction(SIGXCPU, &action, NULL);
	getrlimit(RLIMIT_RTTIME, &limit);
	limit.rlim_cur = PRIORITY_RUNAWAY_NS / 1000;
	if (limit.rlim_max >= limit.rlim_cur)
		setrlimit(RLIMIT_RTTIME, &limit);
}

void priority_raise(void)
{
	setpriority(PRIO_PROCESS, gettid(), NICE);
}

int priority_real_time(struct priority *priority, struct error *error)
{
	*priority = (struct priority){.window_ns = clock_now_ns(), .cpu_ns = cpu_now_ns()};
	priority_raise();
	limit_runaway();
	__atomic_store_n(&real_time_thread, gettid(), __ATOMIC_RELAXED);
	int err = set_policy(0, SCHED_RR, LOWEST);

	priority->is_real_time = priority->may_be_real_time = !err;
	return err ? error_set(error, err,
			     "Linux refuses real-time priority (%s): it requires CAP_SYS_NICE and, "
			     "in a control group, cpu.rt_runtime_us; nice %d is used instead",
			     strerror(-err), getpriority(PRIO_PROCESS, gettid()))
	           : 0;
}

// The nap restarts the kernel's count for RLIMIT_RTTIME, which would otherwise add up over windows.
static void step_back(struct priority *priority)
{
	struct timespec nap = {.tv_nsec = NAP_NS};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	set_policy(0, SCHED_OTHER, 0);
	priority->is_real_time = false;
}

void priority_check(struct priority *priority)
{
	if (!priority->may_be_real_time)
		return;
	uint64_t now_ns = clock_now_ns(), cpu_ns = cpu_now_ns();

	if (now_ns - priority->window_ns >= PRIORITY_WINDOW_NS) {
		priority->window_ns = now_ns;
		priority->cpu_ns = cpu_ns;
		if (!priority->is_real_time &&
			__atomic_load_n(&real_time_thread, __ATOMIC_RELAXED) == gettid())
			priority->is_real_time = set_policy(0, SCHED_RR, LOWEST) == 0;
	} else if (priority->is_real_time && cpu_ns - priority->cpu_ns > PRIORITY_BUDGET_NS) {
		step_back(priority);
	}
}
