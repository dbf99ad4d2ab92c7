// Netlink sockets, multicast groups and dumps; two states, DUMPING and FOLLOWING. Reads bytes and
// passes events to the listen_ops. Subscribes before dumping; ENOBUFS, a gap or a truncated message
// leads back to DUMPING. Control thread.
#pragma once

#include "base/error.h"
#include "netlink/event.h"
#include "netlink/netlink.h"

#include <stdbool.h>
#include <stdint.h>

// Callbacks. All are called from listen_poll, on the control thread.
struct listen_ops {
	void (*event)(void *arg, const struct event *event);
	void (*dump_begins)(void *arg); // mark: all known state is now in doubt
	// During a dump: the kernel cannot dump this kind completely; the dump goes on with the
	// others.
	void (*dump_lacks)(void *arg, enum event_kind kind);
	// Sweep: remove what the dump did not contain, except the kinds (event_kinds_have) that
	// could not be dumped completely: repeated NLM_F_DUMP_INTR, or an error. In that case
	// everything is dumped again after 1, 2, 4, up to 64 seconds.
	void (*dump_ends)(void *arg, uint32_t partial);
	// The end of listen_dump_filters, `whole` if all filters were among its events.
	void (*filters_end)(void *arg, bool whole);
	void *arg;
};

struct listen;

// Checks that the kernel supports everything required, in particular next-hop objects. Queries the
// network namespace of the calling thread and changes nothing. -errno with `error` set.
int listen_check(struct error *error);
// Opens the sockets in the network namespace of the calling thread. `receive_buffer` is in bytes
// (64 MiB; SO_RCVBUFFORCE, otherwise as much as allowed, with a warning). -errno with `error` set.
int listen_open(struct listen **out, const struct listen_ops *ops, uint32_t receive_buffer,
	struct error *error);
void listen_close(struct listen *listen);
int listen_fd(const struct listen *listen); // an epoll descriptor for all sockets

// Reads and delivers messages for up to `budget_ns`. Returns true if there is more work to do now.
bool listen_poll(struct listen *listen, uint64_t budget_ns);
// Requests a full dump as soon as possible (the mirror has detected inconsistent state). Dumps
// interfaces, addresses, neighbours, next hops, routes, netconf, rules and foreign objects, in an
// order in which each kind finds what it refers to.
void listen_dump_again(struct listen *listen);
// Dumps the tc filters of one side (enum event_side) of an interface, a part in each step. False:
// another dump is running; try again later. Ends by filters_end, without success if messages are
// lost meanwhile.
bool listen_dump_filters(struct listen *listen, int ifindex, uint8_t side);
// There was no memory for an object of this kind: everything is dumped again after 1, 2, 4, up to
// 64 seconds, until a dump has passed without such a loss. Logged once until then.
void listen_lost(struct listen *listen, enum event_kind kind);
bool listen_is_dumping(const struct listen *listen);

struct listen_info {
	uint64_t messages, ignored, malformed, overruns, last_dump_ns;
	uint64_t dumps, dumps_restarted, dumps_partial;
	uint32_t receive_buffer;
	bool is_incomplete; // something is missing: since the last dump, or in it
};
void listen_info(const struct listen *listen, struct listen_info *out);
// See netlink_bursts.
unsigned listen_bursts(const struct listen *listen, struct netlink_burst *out);

// A request on its own socket, answered synchronously (waits at most one second). The events of the
// reply are passed to `take`. Returns 0 or the kernel's -errno.
struct listen_request {
	const void *message; // struct nlmsghdr and its payload; seq and pid are filled in in a copy
	uint32_t bytes;
	void (*take)(void *arg, const struct event *event);
	void *arg;
};
int listen_ask(struct listen *listen, const struct listen_request *request);
// Sends messages to the kernel, which has handled each when the function returns, and may have to
// wait for its lock (rtnl) for each; its answers are thrown away.
void listen_tell(struct listen *listen, const void *messages, uint32_t bytes);
// The request for all next-hop objects.
struct listen_request listen_all_nexthops(void (*take)(void *arg, const struct event *event),
	void *arg);
