// Mirrors kernel state over netlink: netlink messages -> decoded events -> fib updates. Runs on the
// control thread. netlink_poll does a bounded amount of work per call. netlink_open,
// netlink_explain and netlink_unsupported query the kernel synchronously, which normally takes less
// than a millisecond and at most about a second per query; netlink_verify blocks longer.
#pragma once

#include "acl/acl.h"
#include "base/error.h"
#include "fib/fib.h"
#include "mac/mac.h"
#include "port/port.h"
#include "tap/tap.h"

#include <stdbool.h>
#include <stdint.h>

// The objects that the mirror (the copy of kernel state built from netlink) works on; the caller
// keeps them valid until netlink_close. While the mirror is open, it is the only writer of `fib`.
struct netlink_ctx {
	struct fib *fib;
	struct port_table *ports;
	struct tap_table *taps;
	unsigned n_ports;
	// Whether something else, such as flows, has the number of a VRF, which is no other VRF's
	// then. NULL: nothing. Control thread.
	bool (*is_vrf_used)(void *arg, uint16_t vrf);
	// The name for which something else, such as flows, has the number of an interface: another
	// interface does not get it, and one of this name does. NULL: nothing has it. The function
	// may be NULL. Control thread.
	const char *(*iface_kept)(void *arg, uint16_t iface);
	// An interface has this name; called before workers know it, and again without a change. /
	// NULL: workers no longer know it. The function may be NULL. Control thread.
	void (*iface_named)(void *arg, uint16_t iface, const char *name);
	// tc filters have changed: merges lists and uses with those that workers have
	// (acl_set_merge), which judge by them when it returns 0. -errno with `error` set: nothing
	// has changed. NULL: workers judge by none. Control thread.
	int (*filters)(void *arg, const struct acl_set *change, struct error *error);
	// Workers are to shape what leaves by some interfaces as Linux would by a qdisc of the
	// interface of this name: `profile` is one of subscribers, without the name; NULL: not any
	// more. 0, -EBUSY: try again later, or -errno with `error` set: nothing has changed. /
	// What leaves by this interface is shaped so; NULL: it is not. Control thread. NULL:
	// workers shape nothing.
	int (*shape)(void *arg, const char *name, const char *profile, struct error *error);
	void (*shape_iface)(void *arg, uint16_t iface, const char *name);
	struct mac_table *macs; // gets the bridges of Linux; NULL: workers forward for none
	// Limits of storm control for frames from a port, in frames/s, 0: none. NULL: none. Control
	// thread.
	void (*storm)(void *arg, unsigned port, uint32_t pps[MAC_STORMS]);
	const struct acl_live *acls; // lists that may judge frames of these; NULL: none does
	void *arg;
};

struct netlink;

// Checks whether this kernel is supported (next-hop objects are required). Call before anything is
// opened or created. -errno with `error` set.
int netlink_check(struct error *error);
// Opens the sockets in the namespace of the TAP interfaces, subscribes and starts a dump. In dl3d's
// own namespace it also enables forwarding and sets rp_filter to 0, the multipath hash policy and
// the ICMP limits. -errno with `error` set.
int netlink_open(struct netlink **out, const struct netlink_ctx *ctx, struct error *error);
// Clears NTF_EXT_MANAGED on the neighbours on which dl3d had set it. TAP interfaces and all other
// kernel state stay as they are.
void netlink_close(struct netlink *netlink);

// A port was added, with its TAP interface, / is being removed: its TAP interface is gone or goes.
// Kernel state follows as for any interface. Control thread.
void netlink_port_added(struct netlink *netlink, unsigned port);
void netlink_port_removed(struct netlink *netlink, unsigned port);

// Becomes readable when netlink_poll has work to do. Do not close it.
int netlink_fd(const struct netlink *netlink);
// A bounded amount of work, usually up to 10 ms: processes messages (for up to 5 ms), updates the
// fib, resynchronises (dumps all tables) after ENOBUFS, removes stale entries, refreshes
// neighbours, and runs the background check. Returns true if there is more work to do now.
bool netlink_poll(struct netlink *netlink);

enum netlink_state {
	NETLINK_DUMPING,
	NETLINK_FOLLOWING,
	NETLINK_INCOMPLETE, // something is missing: Linux could not dump it, or there was no memory
	                    // for it; all tables will be dumped again
};
struct netlink_info {
	uint8_t state;
	bool is_synced;                  // workers have had all routes; see fib_set_synced
	uint64_t messages;               // processed
	uint64_t ignored;                // message types or interfaces not relevant to dl3d
	uint64_t malformed;              // truncated, oversized or not from the kernel; no effect
	uint64_t overruns;               // ENOBUFS
	uint64_t dumps, dumps_restarted; // completed; restarted (NLM_F_DUMP_INTR, overrun)
	uint64_t dumps_partial;          // finished, but the kernel returned only part of a table
	uint64_t last_dump_ns;           // duration of the latest dump
	uint64_t routes4, routes6, neighbours, ifaces, nexthops; // kernel objects stored in the
	                                                         // mirror
	uint64_t control_bytes;                                  // memory used by the mirror
	uint64_t audited, drifted; // routes checked in the background; mismatches found
	uint64_t drift_lasting;    // of these, those that outlasted the last dump of all tables
	uint64_t managed;          // neighbours with NTF_EXT_MANAGED set by dl3d
	uint32_t receive_buffer;   // bytes
};
void netlink_info(const struct netlink *netlink, struct netlink_info *out);

// Back-to-back kernel messages; times from CLOCK_MONOTONIC.
struct netlink_burst {
	uint64_t begin_ns, end_ns, messages;
};
enum { NETLINK_BURSTS = 256 };
// Copies the most recent bursts, oldest first; returns how many.
unsigned netlink_bursts(const struct netlink *netlink, struct netlink_burst out[NETLINK_BURSTS]);

// Kernel names of fib interfaces and VRFs, for display. NULL: unknown.
const char *netlink_iface_name(const struct netlink *netlink, uint16_t iface);
const char *netlink_vrf_name(const struct netlink *netlink, uint16_t vrf);
int netlink_vrf_find(const struct netlink *netlink,
	const char *name); // -ENOENT: no such VRF device

// One kernel object that the fast path cannot represent: what it is, where it is, and how its
// packets are handled.
struct netlink_unsupported {
	char what[64];  // e.g. "nftables forward hook"
	char where[64]; // e.g. "table inet filter chain forward", "10.0.0.0/8 dev wg0"
	char effect[2048];
	uint64_t n; // number of similar objects (routes are summarised by reason and interface)
};
// Linux is to learn that a host is behind a port of one of its bridges: workers have flooded a
// frame from it.
void netlink_learn(struct netlink *netlink, const struct mac_info *info);
// How many frames the guard has kept Linux from flooding (guard.h). False: there is none.
bool netlink_guarded(struct netlink *netlink, uint64_t *n);
// Calls `cb` for each object; iteration stops when it returns false.
void netlink_unsupported(struct netlink *netlink,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);

// The kernel's own route lookup for an address (RTM_GETROUTE), and whether it matches the fast
// path.
struct netlink_route_check {
	bool answered; // false: `error` is the kernel's error (-ENETUNREACH...)
	int error;
	struct wire_prefix prefix; // of the route selected by the kernel (fib match); family 0:
	                           // unknown, as table and metric are (IPv6, via an object)
	uint32_t table, metric;
	uint8_t type;         // RTN_UNICAST...: netlink_type_name
	struct wire_addr via; // family 0: on link
	int ifindex;
	char interface[16];
	bool agrees; // the fast path has the same route, whether it forwards or punts the packet
	char differs[120]; // if not: description of the mismatch
};
// -ETIMEDOUT or -ENOBUFS with `error` set if the kernel did not reply.
int netlink_explain(struct netlink *netlink, uint16_t vrf, const struct wire_addr *addr,
	struct netlink_route_check *out, struct error *error);
// The kernel's addresses on the TAP interface of a port, in no particular order, at most `max`;
// returns how many were written.
unsigned netlink_addresses(const struct netlink *netlink, unsigned port, struct wire_prefix out[],
	unsigned max);

// The protocol and metric of a kernel route. Returns false if there is no such route.
struct netlink_origin {
	uint8_t protocol; // RTPROT_KERNEL...: netlink_protocol_name
	uint32_t metric;
};
bool netlink_route_origin(const struct netlink *netlink, uint16_t vrf,
	const struct wire_prefix *prefix, struct netlink_origin *out);
// Name of a routing protocol (RTPROT_*), as iproute2 prints it; NULL if unknown. Any thread.
const char *netlink_protocol_name(unsigned protocol);

// Name of a route type (RTN_*), as iproute2 prints it; NULL if unknown. Any thread.
const char *netlink_type_name(unsigned type);

// Compares the kernel's tables with what workers read: all routes (sample 0) or `sample` random
// ones, the MAC addresses of all neighbours that workers send to, and the VLANs and MAC addresses
// of the bridges that they serve. Each difference is passed to `cb` as one line of text. Blocks the
// control thread, about 1 s per million routes; pending messages are processed before each attempt.
// Returns the total number of differences, or -errno with `error` set (-EBUSY: a dump is running,
// or the tables changed during each of three attempts).
struct netlink_verification {
	uint32_t sample;
	uint64_t compared;                             // out: number of routes
	uint64_t macs;                                 // out: MAC addresses of bridges
	bool (*cb)(void *arg, const char *difference); // its result is ignored
	void *arg;
};
int netlink_verify(struct netlink *netlink, struct netlink_verification *how, struct error *error);
