// Sockets, groups, dumps; two states, DUMPING and FOLLOWING. Bytes in, events out: the one that
// takes them is handed in. Subscribed before the dump; ENOBUFS, a gap or a truncated message =
// DUMPING again. Control thread.
#pragma once

#include "base/error.h"
#include "netlink/event.h"
#include "netlink/netlink.h"

#include <stdbool.h>
#include <stdint.h>

// Those who take what is heard. All are called from listen_poll, on the control thread.
struct listen_ops {
	void (*event)(void *arg, const struct event *event);
	void (*dump_begins)(void *arg); // mark: all that is known is now in doubt
	// In the middle of a dump: Linux cannot tell a kind whole, the dump goes on with others.
	void (*dump_lacks)(void *arg, enum event_kind kind);
	// Sweep: what the dump did not name is gone, unless it is of the kinds (event_kinds_have)
	// that Linux could not tell whole: NLM_F_DUMP_INTR time and again, or an error. All is
	// dumped again then, after a second, two, four, up to 64.
	void (*dump_ends)(void *arg, uint32_t partial);
	void *arg;
};

struct listen;

// Whether the kernel has all that is listened to: it needs next-hop objects. Asks in the network
// namespace of the calling thread, and changes nothing. -errno with `error` set.
int listen_check(struct error *error);
// Opens the sockets in the network namespace of the calling thread. `min_receive_buffer` in bytes
// (64 MiB; SO_RCVBUFFORCE, else what is allowed, with a warning). -errno with `error` set.
int listen_open(struct listen **out, const struct listen_ops *ops, uint32_t receive_buffer,
	struct error *error);
void listen_close(struct listen *listen);
int listen_fd(const struct listen *listen); // an epoll of all sockets

// Reads and hands on up to `budget_ns` worth of messages. True: there is more at once.
bool listen_poll(struct listen *listen, uint64_t budget_ns);
// A dump of everything begins as soon as possible (the mirror has seen that it cannot be right).
// Dumps of links, addresses, neighbours, next hops, routes, netconf, rules, and the foreign ones,
// in an order in which each finds what it refers to.
void listen_dump_again(struct listen *listen);
bool listen_is_dumping(const struct listen *listen);

struct listen_info {
	uint64_t messages, ignored, malformed, overruns, last_dump_ns;
	uint64_t dumps, dumps_restarted, dumps_partial;
	uint32_t receive_buffer;
};
void listen_info(const struct listen *listen, struct listen_info *out);
// See netlink_bursts.
unsigned listen_bursts(const struct listen *listen, struct netlink_burst *out);

// A request on a socket of its own, answered at once (waits for at most a second). The answer's
// events go to `take`. 0, or what the kernel said: -errno.
struct listen_request {
	const void
		*message; // struct nlmsghdr and what follows; its seq and pid are filled in a copy
	uint32_t bytes;
	void (*take)(void *arg, const struct event *event);
	void *arg;
};
int listen_ask(struct listen *listen, const struct listen_request *request);
