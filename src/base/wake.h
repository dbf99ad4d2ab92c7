// Several descriptors that one loop waits for, as one. Control thread.
#pragma once

#include "base/error.h"

// A descriptor that is readable while any of those added to it is; -errno with `error` set. Owner:
// caller, close.
int wake_open(struct error *error);
int wake_add(int wake, int fd, struct error *error);
