// Linux's mind mirrored: netlink bytes -> events -> fib. Runs on the control thread, a bounded
// piece of work at a time; nothing here blocks for longer than a few milliseconds, except
// sync_verify.
#pragma once

#include "base/complaint.h"
#include "fib/fib.h"
#include "port/port.h"
#include "tap/tap.h"

#include <stdbool.h>
#include <stdint.h>

// What the mirror works on; all borrowed. It is the only writer of `fib` while it lives.
struct sync_house {
	struct fib *fib;
	struct port_room *ports;
	struct tap_room *twins;
	unsigned n_ports;
};

struct sync;

// Whether this kernel can be mirrored at all (not without next-hop objects); before anything is
// opened or made. -errno with a complaint.
int sync_check(struct complaint *why);
// Opens the sockets in the twins' namespace, subscribes, begins to dump. In our own namespace also
// sets forwarding, rp_filter 0, the multipath hash policy and ICMP's limits. -errno with a
// complaint.
int sync_open(struct sync **out, const struct sync_house *house, struct complaint *why);
// Neighbours that were made managed are given back. Twins and all else in Linux stay as they are.
void sync_close(struct sync *sync);

// Becomes readable when sync_tend has something to do. Borrowed.
int sync_fd(const struct sync *sync);
// A bounded piece of work (about 10 ms): takes messages in, changes tables, dumps anew after an
// overrun, sweeps, keeps neighbours alive, audits. Returns true while there is more to do at once.
bool sync_tend(struct sync *sync);

enum sync_state { SYNC_DUMPING, SYNC_FOLLOWING };
struct sync_info {
	uint8_t state;
	uint64_t messages;               // taken in
	uint64_t ignored;                // of kinds or about interfaces that do not concern us
	uint64_t malformed;              // truncated, oversized or foreign: changed nothing
	uint64_t overruns;               // ENOBUFS
	uint64_t dumps, dumps_restarted; // completed; begun anew (NLM_F_DUMP_INTR, overrun)
	uint64_t dumps_partial;          // ended without all that Linux has
	uint64_t last_dump_ns;           // how long the newest one took
	uint64_t routes4, routes6, neighbours, links, nexthops; // of Linux, held by the mirror
	uint64_t control_bytes;                                 // memory of the mirror
	uint64_t audited, drifted; // routes looked at by the slow audit; found different
	uint64_t managed;          // neighbours that the kernel keeps alive for us
	uint32_t receive_buffer;   // bytes
};
void sync_info(const struct sync *sync, struct sync_info *out);

// Messages that Linux sent one upon the other, by CLOCK_MONOTONIC.
struct sync_burst {
	uint64_t begin_ns, end_ns, messages;
};
enum { SYNC_BURSTS = 256 };
// The newest ones, oldest first; returns how many.
unsigned sync_bursts(const struct sync *sync, struct sync_burst out[SYNC_BURSTS]);

// The mirror's links and VRFs, for people: what a link id is called in Linux. NULL: unknown.
const char *sync_link_name(const struct sync *sync, uint16_t link);
const char *sync_vrf_name(const struct sync *sync, uint8_t vrf);
int sync_vrf_find(const struct sync *sync, const char *name); // -ENOENT: no such VRF device

// One thing in Linux that lanes cannot express: what, where, and what becomes of its packets.
struct sync_unsupported {
	char what[64];  // "nftables forward hook", "route via an interface that is no port"
	char where[64]; // "table inet filter chain forward", "10.0.0.0/8 dev wg0"
	char effect[160];
	uint64_t n; // how many alike (routes are summed up by reason and interface)
};
// Calls `tell` for each; stops when it returns false.
void sync_unsupported(struct sync *sync,
	bool (*tell)(void *arg, const struct sync_unsupported *one), void *arg);

// What Linux itself answers for an address (RTM_GETROUTE), and whether lanes would do the same.
struct sync_opinion {
	bool answered; // false: error is what Linux said (-ENETUNREACH...)
	int error;
	struct wire_prefix prefix; // of the route that Linux takes (fib match)
	uint32_t table, metric;
	uint8_t type;         // RTN_UNICAST...: sync_type_name
	struct wire_addr via; // family 0: on link
	int ifindex;
	char interface[16];
	bool agrees;       // with what lanes do: the same way, or lanes leave it to Linux
	char differs[120]; // how, when it does not agree
};
int sync_explain(struct sync *sync, uint8_t vrf, const struct wire_addr *addr,
	struct sync_opinion *out, struct complaint *why);
// RTN_UNICAST... as the tool ip names it; NULL: no word for it. Any thread.
const char *sync_type_name(unsigned type);

// Compares Linux's tables with what lanes read: all routes (sample 0) or so many at random, and the
// MAC addresses of all neighbours that lanes send to.
// Differences are told one sentence each. Returns how many there are in all, or -errno with a
// complaint (still dumping, too busy: the tables changed three times while it looked).
struct sync_verification {
	uint32_t sample;
	uint64_t compared; // out: routes
	bool (*tell)(void *arg, const char *difference);
	void *arg;
};
int sync_verify(struct sync *sync, struct sync_verification *how, struct complaint *why);
