// Synchronous request to the kernel. Internal to listen. Control thread.
#pragma once

#include "netlink/listen.h"

// Opens a socket for requests in a namespace. Returns the descriptor or -errno.
int ask_open(int namespace);
// Waits at most one second for each part of the reply. Returns 0 or the kernel's -errno.
int ask(int fd, uint32_t sequence, const struct listen_request *request);
