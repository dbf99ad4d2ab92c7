// Priority of a thread that handles packets for others on a shared core. Each thread for itself.
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

// A thread's real-time priority. It is limited: a thread that has run for PRIORITY_BUDGET_NS within
// PRIORITY_WINDOW_NS continues at the ordinary priority for the rest of the window.
enum { PRIORITY_WINDOW_NS = 100000000, PRIORITY_BUDGET_NS = 20000000 };
struct priority {
	bool may_be_real_time; // the system permits it
	bool is_real_time;
	uint64_t window_ns, cpu_ns; // start of the window, and the thread's CPU time then
};

// Gives the calling thread more weight than others have (nice -10), as far as permitted.
void priority_raise(void);

// Gives the calling thread SCHED_RR, so that it runs as soon as it wakes, also beside a thread that
// never sleeps. If the system refuses (no CAP_SYS_NICE, or a control group without real-time
// runtime): -errno with `error` set, and the thread has the weight of priority_raise. At most one
// thread of a process: if it runs for PRIORITY_RUNAWAY_NS without sleeping, as only a fault can
// make it, the kernel sends SIGXCPU (RLIMIT_RTTIME), and the handler takes the priority away for
// good.
enum { PRIORITY_RUNAWAY_NS = 200000000 };
int priority_real_time(struct priority *priority, struct error *error);
// Applies the limit; call it at least every few milliseconds of work. Same thread.
void priority_check(struct priority *priority);
