// When Linux said much at once, and how much: its newest bursts of messages. Control thread.
#pragma once

#include "netlink/netlink.h"

#include <stdint.h>

// Messages that come within so long of those before them are of the same burst.
enum { BURSTS_APART_NS = 1000000 };

struct bursts {
	uint64_t n; // so far; number i lies in slot i mod NETLINK_BURSTS
	struct netlink_burst slot[NETLINK_BURSTS];
};

// `messages` were taken in from `begin_ns` to `end_ns`, by clock_now_ns; none change nothing.
void bursts_note(struct bursts *bursts, uint64_t begin_ns, uint64_t end_ns, uint64_t messages);
// The newest ones, oldest first; returns how many.
unsigned bursts_read(const struct bursts *bursts, struct netlink_burst out[NETLINK_BURSTS]);
