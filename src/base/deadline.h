// A shutdown that cannot hang. Control thread.
#pragma once

#include <sys/types.h>

// Gives the program `seconds` to exit. If it has not by then, `last_words` (one line, borrowed) are
// written to stderr, and it exits with status 1 without closing anything. What counts is the CPU
// time of the watched thread and the time during which it is blocked, but not that during which it
// is ready to run and other programs have the core.
void deadline_start(unsigned seconds, const char *last_words);

// The thread that the program waits for from now on; at the start it is the caller. 0: one that has
// not run yet, for which nothing counts. What former ones took remains counted.
void deadline_watch(pid_t tid);
