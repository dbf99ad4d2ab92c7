// A question to the kernel and its answer, at once. Inside listen. Control thread.
#pragma once

#include "netlink/listen.h"

// A socket for questions in a namespace; -errno.
int ask_open(int namespace);
// Waits for at most a second for each piece of the answer. 0, or what the kernel said: -errno.
int ask(int fd, uint32_t sequence, const struct listen_request *request);
