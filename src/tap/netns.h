// Network namespaces by name, as `ip netns` keeps them. Control thread.
#pragma once

#include "base/error.h"

#include <stdbool.h>

// The namespace as an open file. -ENOENT (with `error` set, as always): there is none of that name.
int netns_open(const char *name, struct error *error);
// Makes it as `ip netns add` does, with `lo` up and router advertisements not heeded; opened.
int netns_make(const char *name, struct error *error);
// Whether other programs see those that are made: not where dl3d runs among mounts of its own.
bool netns_is_seen_by_others(void);
// Whether `netns` is still what the name stands for.
bool netns_is_named(int netns, const char *name);
// Takes the name away, and with it the namespace, where no process and no interface of others is in
// it.
void netns_remove(int netns, const char *name);
// Runs `call(arg)` with the calling thread, and no other, in the namespace; its result. -errno when
// it cannot be entered. A call within a call costs nothing in the same namespace.
int netns_inside(int netns, int (*call)(void *arg), void *arg);
