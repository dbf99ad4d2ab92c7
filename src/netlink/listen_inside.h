// Shared by the files of the listener: sockets, requests, bursts and the sections of a dump.
// Control thread.
#pragma once

#include "netlink/event.h"
#include "netlink/listen.h"
#include "netlink/netlink.h"

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Netlink sockets: opened in a namespace, reading many datagrams at once.

// Opens a socket in the namespace given by the open file `namespace`, with strict checking and
// extended acks. Returns its descriptor or -errno (-EPROTONOSUPPORT: protocol not supported by this
// kernel).
int socket_open(int protocol, int namespace);
// Opens the namespace of the calling thread. Returns its descriptor or -errno.
int netlink_namespace(void);
// Sets the receive buffer to `bytes`: by force, otherwise as much as is allowed. Returns the
// resulting size.
uint32_t socket_make_space(int fd, uint32_t bytes);
int socket_join(int fd, const uint16_t groups[], unsigned n);

// Datagrams that were read and are waiting to be processed.
enum { NETLINK_SLOTS = 64, NETLINK_SLOT_BYTES = 32 << 10 };
struct socket_slot {
	uint32_t bytes;
	uint8_t protocol; // the protocol of the socket
	bool is_cut;      // longer than a slot
	bool is_foreign;
};
struct socket_buffer {
	uint8_t *bytes; // NETLINK_SLOTS of NETLINK_SLOT_BYTES
	unsigned n;
	struct socket_slot slot[NETLINK_SLOTS];
};
static inline const uint8_t *socket_slot(const struct socket_buffer *held, unsigned i)
{
	return held->bytes + (size_t)i * NETLINK_SLOT_BYTES;
}
// Reads available datagrams into the free slots without blocking. Returns how many were read, or
// -errno (-ENOBUFS: messages were lost).
int socket_buffer_open(int fd, uint8_t protocol, struct socket_buffer *held);

// Reads one datagram of at most `room` bytes. Returns its length; 0: nothing available (or not
// within the socket's timeout); -EBADMSG: truncated or not from the kernel; otherwise -errno.
int socket_read(int fd, void *bytes, size_t room);

// Iterates over the complete messages of one datagram. NULL: at the end, or (n is not 0) the rest
// is malformed.
struct socket_rest {
	const uint8_t *bytes;
	uint32_t n;
};
const struct nlmsghdr *socket_next(struct socket_rest *rest);

// Synchronous requests to the kernel.

// Opens a socket for requests in a namespace. Returns the descriptor or -errno.
int ask_open(int namespace);
// Waits at most one second for each part of the reply. Returns 0 or the kernel's -errno.
int ask(int fd, uint32_t sequence, const struct listen_request *request);

// Time and size of the most recent bursts of kernel messages.

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

// The sections of a dump, in an order in which each finds what it refers to.

enum protocol { PROTO_ROUTE, PROTO_NETFILTER, PROTO_XFRM, N_PROTOS };

enum section_flag {
	// An object deleted during the dump may hide one that still exists: the kernel resumes at a
	// position counted from the start.
	SECTION_FRAGILE = 1,
	SECTION_MAY_LACK = 2, // not supported by every kernel
	SECTION_ONE = 4,      // not a table: one reply, then an acknowledgement
	SECTION_LOCAL = 8,    // routes: of table local only
	SECTION_MPLS = 16,    // not asked without MPLS: other kernels return all routes instead
};

struct section {
	const char *name; // as in "Linux's NAME cannot be dumped"
	uint8_t protocol;
	uint8_t family;
	uint16_t type;   // of the request
	uint16_t header; // bytes after struct nlmsghdr
	uint8_t kind;    // enum event_kind of the replies
	uint8_t flags;   // enum section_flag
};

// Behind the n_sections of a dump: the filters of one side of an interface (listen_dump_filters).
extern const struct section sections[];
extern const unsigned n_sections;

// Builds the request for a section and returns its length.
enum { SECTION_REQUEST_BYTES = 128 };
size_t section_request(const struct section *section, uint32_t sequence,
	uint8_t out[SECTION_REQUEST_BYTES]);

enum { LISTEN_PIECE_BYTES = 256 << 10 };

enum stage {
	STAGE_FOLLOWING,
	STAGE_GAP,    // messages were lost: notifications are discarded until the buffer is empty
	STAGE_ASK,    // the next section is about to be requested
	STAGE_ANSWER, // receiving its parts
};

struct listen {
	struct listen_ops ops;
	int namespace, epoll, ask, tell;
	int news[N_PROTOS], dump[N_PROTOS]; // -1: not supported by this kernel
	struct socket_buffer held;
	uint8_t *piece; // of a dump or a reply
	uint8_t stage;  // enum stage
	unsigned section, pass;
	// State of the section being dumped: an object of it was deleted during the dump; it
	// changed during the dump; one of its messages was malformed.
	bool is_disturbed, is_interrupted, is_unsound;
	bool wants_dump;
	uint32_t partial;  // kinds that this dump could not return completely, or that have had no
	                   // memory since
	bool is_short;     // that was logged
	uint32_t failing;  // sections (1 << number) for which that was logged
	uint64_t retry_ns; // delay before a partial dump is repeated; 0: nothing is missing
	uint32_t sequence, asked; // of dumps; of requests, which may be sent during a dump
	int filters_ifindex;      // of the section of filters
	uint32_t filters_parent;
	uint64_t dump_since_ns, dump_end_ns, warned_ns;
	struct listen_info info;
	struct bursts bursts;
};

struct listen_protocol {
	int protocol;
	enum decode_result (*decode)(const void *message, size_t bytes, struct event *out);
	const uint16_t *groups;
	unsigned n_groups;
};
extern const struct listen_protocol listen_protocols[N_PROTOS];

// Whether the filters of one side are being dumped, and not all tables.
static inline bool listen_dumps_filters(const struct listen *listen)
{
	return (listen->stage == STAGE_ASK || listen->stage == STAGE_ANSWER) &&
	       listen->section == n_sections;
}

// A dump runs through all sections and then ends by itself.
bool dump_is_due(const struct listen *listen);
void dump_begin(struct listen *listen);
// The time until the next attempt, longer each time.
uint64_t dump_next_retry_ns(const struct listen *listen);
void dump_stop(struct listen *listen); // may be called in the middle of a section
// Requests the next section (STAGE_ASK). / Processes one part of it (STAGE_ANSWER).
void dump_ask(struct listen *listen);
void dump_take_piece(struct listen *listen);
