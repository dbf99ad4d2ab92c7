// Combines several descriptors into one that a loop can wait for. Control thread.
#pragma once

#include "base/error.h"

// Creates a descriptor that is readable while any descriptor added to it is; -errno with `error`
// set. Owner: caller, close.
int wake_open(struct error *error);
int wake_add(int wake, int fd, struct error *error);
