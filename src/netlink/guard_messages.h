// What guard.c says to nftables and is answered, over nfnetlink. Control thread; each call waits
// for Linux, a second at most.
#pragma once

#include "netlink/guard.h"

#define GUARD_CHAIN "forward"
#define GUARD_COUNTER "floods"

struct mnl_socket;
struct nlmsghdr;

struct guard_messages {
	struct mnl_socket *socket; // NULL: not open
	uint32_t sequence;
};

// The sets, by the number that the functions below take: of those ports that get no frames to all
// from Linux, and of those that get none to other groups.
extern const char *const guard_sets[2];

// Begins a message at `at`.
struct nlmsghdr *guard_put_header(void *at, uint16_t type, uint16_t flags, uint8_t family);
// In the namespace of the calling thread. 0 or -errno.
int guard_messages_open(struct guard_messages *messages);
// The table goes, if it was made over this socket.
void guard_messages_close(struct guard_messages *messages);
// Puts these names into the sets in place of all others, in a new table or in the one that is
// there. 0, or -errno: nothing has changed.
int guard_messages_set(struct guard_messages *messages, bool is_new, const struct guard_port port[],
	unsigned n);
bool guard_messages_has_chain(struct guard_messages *messages);
// Calls `take` with each name in a set.
void guard_messages_names(struct guard_messages *messages, unsigned set,
	void (*take)(void *arg, const char *name), void *arg);
bool guard_messages_count(struct guard_messages *messages, uint64_t *n);
