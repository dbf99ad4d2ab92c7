// Creates, starts and stops the workers, and reads their counters. Control thread.
#pragma once

#include "acl/acl_fast.h"
#include "base/error.h"
#include "capture/capture.h"
#include "fib/fib.h"
#include "fib/fib_fast.h"
#include "flow/flow_fast.h"
#include "mac/mac_fast.h"
#include "port/port.h"
#include "qos/qos_fast.h"
#include "stats/stats.h"
#include "tap/tap.h"

struct path;

// What workers look packets up in.
struct datapath_tables {
	const struct fib_live *live;    // its `rcu` is set
	const struct flow_view *flows;  // NULL: none
	const bool *drops_missing;      // packets without a flow; atomic, relaxed; only with flows
	const struct acl_live *acls;    // NULL: none
	const struct acl_live *filters; // tc filters of Linux; NULL: none; only with acls and taps
	const struct mac_live *macs;    // NULL: no port is ever in a bridge
	const struct qos_live *qos;     // NULL: there are never any subscribers
	const struct flow_learn *learn; // flows are learnt through it; NULL: none are
	const struct capture_live *captures; // NULL: none are made
};

// Creates one worker for each worker of the plan of `ports`; none is started. `taps` receives
// punted packets; NULL: ports have no TAP interfaces. `ports`, what `tables` points to and `taps`
// are borrowed; `ports` closes devices that vanish after grace periods.
// Returns 0, or -errno with `error` set.
int datapath_open(struct path **out, struct port_table *ports, const struct datapath_tables *tables,
	struct tap_table *taps, struct error *error);
// Launches the workers.
int datapath_start(struct path *path, struct error *error);
// Tells the workers to stop, and waits until they have finished their packets; no packet is in
// flight afterwards.
void datapath_stop(struct path *path);
void datapath_close(struct path *path);

// Name of a step, by its index in the counters of workers; NULL: there are no more. Any thread.
const char *datapath_step_name(unsigned step);

// Counters by worker. They may be read while workers run, and are valid until datapath_close.
struct stats_worker *const *datapath_stats(const struct path *path, unsigned *n_workers);

// --- Packets that workers hand to each other. Control thread.

enum { DATAPATH_SLOTS = 256 };

// What one worker hands to another: packets since the start, and how many of them the other one has
// processed; the slots (flows by a hash of their innermost headers) that it has, and the packets
// that came for each of them since the start, whichever worker got them or whether they were
// dropped.
struct datapath_hand {
	unsigned worker;
	uint64_t handed, processed;
	bool slots[DATAPATH_SLOTS];
	uint64_t n_came[DATAPATH_SLOTS];
};
// The i-th worker to which this one hands packets. False: there are no more.
bool datapath_hand(const struct path *path, unsigned worker, unsigned i, struct datapath_hand *out);
// Has `worker` hand the packets of these slots to another one from now on, as soon as those on
// their way are processed. -ENOENT with `error` set: it hands nothing to that one. / Whether this
// is done.
int datapath_move(const struct path *path, unsigned worker, const bool slots[DATAPATH_SLOTS],
	unsigned to, struct error *error);
bool datapath_has_moved(const struct path *path, unsigned worker);
// Waits until what is on its way between workers now is processed.
void datapath_drain(const struct path *path);

// --- What would happen to one packet.

enum {
	TRACE_FRAME_MAX = 9216, // bytes of a frame, without FCS
	TRACE_STEPS = 2 * STATS_MAX_STEPS,
	TRACE_RULES = 16,
	TRACE_ENDS = 512,
	TRACE_KEEP_DSCP = 64,
};

// A rule of an access list that judged the packet.
struct trace_rule {
	const struct acl_list *list;
	uint32_t rule;     // its number; 0: none matched
	uint8_t direction; // enum acl_direction
	bool is_tc;        // a tc filter of Linux
	bool is_local;     // only rules for the router itself were asked
	bool is_red;       // its policer has not enough tokens now
	uint8_t step;
};

// Where the packet, a copy or a fragment of it goes.
enum trace_kind { TRACE_SENT, TRACE_PUNTED, TRACE_DROPPED };
struct trace_end {
	uint8_t kind; // enum trace_kind
	uint8_t step;
	uint8_t verdict; // enum verdict
	uint8_t class;   // of punted packets, else CLASS_NONE
	uint16_t port;   // output port; of dropped and punted packets the input port
	uint32_t n_bytes;
	uint8_t *bytes;
};

// A port behind which the destination of a bridged frame is.
enum trace_bridge { TRACE_NOT_BRIDGED, TRACE_KNOWN, TRACE_FLOODED };

// What the first steps found about a packet that was in a tunnel: about the one that carried it.
struct trace_outer {
	bool is_ip6;
	uint8_t ttl;
	uint16_t iif, vrf;
	uint32_t dst4;
	struct fib_key6 dst6;
};

// What the steps did. Steps are indices as of datapath_step_name.
struct trace {
	uint16_t port;
	uint32_t n_received; // bytes of the frame; fewer than given: the device cuts longer ones
	uint8_t step[TRACE_STEPS];
	unsigned n_steps, n_rules, n_ends;
	bool is_cut;              // there were more ends, or not enough memory for them
	uint8_t bridge;           // enum trace_bridge
	uint16_t bridge_port;     // of TRACE_KNOWN
	bool was_in_tunnel;       // the steps since decap, and the rest, are of what was in it
	struct trace_outer outer; // with was_in_tunnel
	// The rest only of a valid IP packet.
	bool is_parsed, is_ip6;
	bool for_linux; // Linux forwards what comes in on this interface
	bool has_hop;   // the steps since lookup ran
	bool flow_gives_hop, is_fragmented;
	uint8_t ttl;       // as received
	uint8_t dscp;      // to be set, or TRACE_KEEP_DSCP
	uint16_t iif, vrf; // interface on which it was received, and its VRF
	uint16_t mirror;   // interface that gets a copy, or IFACE_NONE
	uint32_t dst4;     // host order
	struct fib_key6 dst6;
	uint32_t first_hop, hop; // by the lookup or the flow; then by ECMP
	uint32_t flow, action;   // FLOW_NONE: it has no flow
	struct trace_rule rule[TRACE_RULES];
	struct trace_end end[TRACE_ENDS];
	struct stats_account account; // what the worker would have counted; `punted`: handed over
};

// Has the steps of a worker process a frame of `n` bytes, at least one and at most TRACE_FRAME_MAX,
// as if it had come in by this port, on the live tables. Nothing is sent, passed to Linux or
// counted, and no table changes: no address or flow is learnt, no token is taken. Devices are taken
// to accept what is sent, and rings to Linux to have space. 0; -ENOMEM, or -ENODEV if no worker
// polls the port, with `error` set. Owner: caller, datapath_trace_free.
int datapath_trace(const struct path *path, unsigned port, const uint8_t *frame, size_t n,
	struct trace *out, struct error *error);
void datapath_trace_free(struct trace *trace);
