// Time and size of the most recent bursts of kernel messages. Control thread.
#pragma once

#include "netlink/netlink.h"

#include <stdint.h>

// Messages closer together than this belong to the same burst.
enum { BURSTS_APART_NS = 1000000 };

struct bursts {
	uint64_t n; // total so far; burst i is in slot i mod NETLINK_BURSTS
	struct netlink_burst slot[NETLINK_BURSTS];
};

// Records `messages` received from `begin_ns` to `end_ns` (clock_now_ns). No-op if `messages` is 0.
void bursts_note(struct bursts *bursts, uint64_t begin_ns, uint64_t end_ns, uint64_t messages);
// Copies the most recent bursts, oldest first; returns how many.
unsigned bursts_read(const struct bursts *bursts, struct netlink_burst out[NETLINK_BURSTS]);
