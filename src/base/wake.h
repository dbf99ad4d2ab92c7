// Several descriptors that one loop waits for, as one. Control thread.
#pragma once

#include "base/complaint.h"

// A descriptor that is readable while any of those added to it is; -errno with a complaint. Owner:
// caller, close.
int wake_open(struct complaint *why);
int wake_add(int wake, int fd, struct complaint *why);
