// Network namespaces by name, compatible with `ip netns`. Control thread.
#pragma once

#include "base/error.h"

#include <stdbool.h>

// Opens the namespace. -ENOENT if there is none of that name; -errno with `error` set.
int netns_open(const char *name, struct error *error);
// Creates it as `ip netns add` does, with `lo` up and router advertisements ignored, and opens it.
int netns_make(const char *name, struct error *error);
// Whether other programs see the namespaces created here: false if dl3d runs in a private mount
// namespace.
bool netns_is_seen_by_others(void);
// Whether the name still refers to `netns`.
bool netns_is_named(int netns, const char *name);
// Removes the name, and with it the namespace, if it contains no process and no foreign interface.
void netns_remove(int netns, const char *name);
// Runs `call(arg)` in the namespace, affecting the calling thread only; returns its result. -errno
// with `error` (or NULL) set if the namespace cannot be entered. Nested calls for the same
// namespace cost nothing.
int netns_inside(int netns, int (*call)(void *arg), void *arg, struct error *error);
