// Linux's mind mirrored: netlink bytes -> events -> fib. Runs on the control thread, a bounded
// piece of work at a time; nothing here blocks for longer than a few milliseconds, except
// netlink_verify.
#pragma once

#include "base/error.h"
#include "fib/fib.h"
#include "port/port.h"
#include "tap/tap.h"

#include <stdbool.h>
#include <stdint.h>

// What the mirror works on; all borrowed. It is the only writer of `fib` while it lives.
struct netlink_ctx {
	struct fib *fib;
	struct port_table *ports;
	struct tap_table *taps;
	unsigned n_ports;
};

struct netlink;

// Whether this kernel can be mirrored at all (not without next-hop objects); before anything is
// opened or made. -errno with `error` set.
int netlink_check(struct error *error);
// Opens the sockets in the TAP interfaces' namespace, subscribes, begins to dump. In our own
// namespace also sets forwarding, rp_filter 0, the multipath hash policy and ICMP's limits. -errno
// with a error.
int netlink_open(struct netlink **out, const struct netlink_ctx *ctx, struct error *error);
// Neighbours that were made managed are given back. TAP interfaces and all else in Linux stay as
// they are.
void netlink_close(struct netlink *netlink);

// Becomes readable when netlink_poll has something to do. Borrowed.
int netlink_fd(const struct netlink *netlink);
// A bounded piece of work (about 10 ms): takes messages in, changes tables, dumps anew after an
// overrun, sweeps, keeps neighbours alive, audits. Returns true while there is more to do at once.
bool netlink_poll(struct netlink *netlink);

enum netlink_state { NETLINK_DUMPING, NETLINK_FOLLOWING };
struct netlink_info {
	uint8_t state;
	uint64_t messages;               // taken in
	uint64_t ignored;                // of kinds or about interfaces that do not concern us
	uint64_t malformed;              // truncated, oversized or foreign: changed nothing
	uint64_t overruns;               // ENOBUFS
	uint64_t dumps, dumps_restarted; // completed; begun anew (NLM_F_DUMP_INTR, overrun)
	uint64_t dumps_partial;          // ended without all that Linux has
	uint64_t last_dump_ns;           // how long the newest one took
	uint64_t routes4, routes6, neighbours, ifaces, nexthops; // of Linux, held by the mirror
	uint64_t control_bytes;                                  // memory of the mirror
	uint64_t audited, drifted; // routes looked at by the slow audit; found different
	uint64_t managed;          // neighbours that the kernel keeps alive for us
	uint32_t receive_buffer;   // bytes
};
void netlink_info(const struct netlink *netlink, struct netlink_info *out);

// Messages that Linux sent one upon the other, by CLOCK_MONOTONIC.
struct netlink_burst {
	uint64_t begin_ns, end_ns, messages;
};
enum { NETLINK_BURSTS = 256 };
// The newest ones, oldest first; returns how many.
unsigned netlink_bursts(const struct netlink *netlink, struct netlink_burst out[NETLINK_BURSTS]);

// The mirror's links and VRFs, for people: what a link id is called in Linux. NULL: unknown.
const char *netlink_iface_name(const struct netlink *netlink, uint16_t iface);
const char *netlink_vrf_name(const struct netlink *netlink, uint8_t vrf);
int netlink_vrf_find(const struct netlink *netlink,
	const char *name); // -ENOENT: no such VRF device

// One thing in Linux that workers cannot express: what, where, and what becomes of its packets.
struct netlink_unsupported {
	char what[64];  // "nftables forward hook", "route via an interface that is no port"
	char where[64]; // "table inet filter chain forward", "10.0.0.0/8 dev wg0"
	char effect[160];
	uint64_t n; // how many alike (routes are summed up by reason and interface)
};
// Calls `tell` for each; stops when it returns false.
void netlink_unsupported(struct netlink *netlink,
	bool (*tell)(void *arg, const struct netlink_unsupported *one), void *arg);

// What Linux itself answers for an address (RTM_GETROUTE), and whether workers would do the same.
struct netlink_opinion {
	bool answered; // false: error is what Linux said (-ENETUNREACH...)
	int error;
	struct wire_prefix prefix; // of the route that Linux takes (fib match)
	uint32_t table, metric;
	uint8_t type;         // RTN_UNICAST...: netlink_type_name
	struct wire_addr via; // family 0: on link
	int ifindex;
	char interface[16];
	bool agrees;       // with what workers do: the same way, or workers leave it to Linux
	char differs[120]; // how, when it does not agree
};
int netlink_explain(struct netlink *netlink, uint8_t vrf, const struct wire_addr *addr,
	struct netlink_opinion *out, struct error *error);
// Addresses that Linux has on the TAP interface of a port, in no order, at most `max` of them;
// returns how many were written.
unsigned netlink_addresses(const struct netlink *netlink, unsigned port, struct wire_prefix out[],
	unsigned max);

// Who installed a route that Linux has, and its metric. False: Linux has no such route.
struct netlink_origin {
	uint8_t protocol; // RTPROT_KERNEL...: netlink_protocol_name
	uint32_t metric;
};
bool netlink_route_origin(const struct netlink *netlink, uint8_t vrf,
	const struct wire_prefix *prefix, struct netlink_origin *out);
// RTPROT_KERNEL... as the tool ip prints it; NULL: it has no name. Any thread.
const char *netlink_protocol_name(unsigned protocol);

// RTN_UNICAST... as the tool ip names it; NULL: no word for it. Any thread.
const char *netlink_type_name(unsigned type);

// Compares Linux's tables with what workers read: all routes (sample 0) or so many at random, and
// the MAC addresses of all neighbours that workers send to. Differences are told one sentence each.
// Returns how many there are in all, or -errno with a error (still dumping, too busy: the tables
// changed three times while it looked).
struct netlink_verification {
	uint32_t sample;
	uint64_t compared; // out: routes
	bool (*tell)(void *arg, const char *difference);
	void *arg;
};
int netlink_verify(struct netlink *netlink, struct netlink_verification *how, struct error *error);
