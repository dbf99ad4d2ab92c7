// The rpc methods of dl3d: status, ports, workers, drops, routes, reload. Control thread.
#pragma once

#include "acl/acl.h"
#include "capture/capture.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "fib/fib.h"
#include "fib/fib_fast.h"
#include "netlink/netlink.h"
#include "port/port.h"
#include "qos/qos.h"
#include "rcu/rcu.h"
#include "rpc/rpc.h"
#include "tap/tap.h"

#include <stdbool.h>
#include <stdint.h>

// Counters of ports and queues when the port was added; 0 for those of the start.
struct api_baseline {
	struct stats_port port[PORT_MAX];
	uint64_t punted[PORT_MAX];
	struct stats_queue queue[STATS_MAX_WORKERS][STATS_MAX_QUEUES]; // by worker and place
};

// A long turn of the control loop, without the time for which it slept.
struct api_turn {
	uint64_t end_ns, ns, cpu_ns; // CLOCK_MONOTONIC; its length; for which the thread had a core
};

// Number i of the long turns, from 0 on, is in slot i mod API_TURNS.
enum { API_TURNS = 256 };
struct api_turns {
	uint64_t n, n_long;
	uint64_t cpu_ns;      // of the thread, at the end of the latest turn
	struct api_turn most; // the one with most cpu_ns since the start
	struct api_turn slot[API_TURNS];
};

// Context of the methods; owned by dl3d.c.
struct api_ctx {
	struct config *config; // replaced by a reload
	struct port_table *ports;
	struct fib *fib; // the live table, replaced by a reload
	struct rcu *rcu;
	struct fib_live live; // what workers read
	struct path *path;
	struct tap_table *taps;  // NULL: Linux is not the control plane
	struct netlink *netlink; // same; NULL until api_follow
	int wake;                // readable if the control loop has work to do
	bool is_busy;            // netlink or the flow table has more work to do now
	struct flows *flows;     // NULL: no key `flow`
	struct acl_table *acls;
	struct acl_table *filters; // tc filters of Linux; NULL: Linux is not the control plane
	struct capture *capture;
	struct bridges *bridges;
	struct qos *qos;                         // NULL: no key `qos`
	struct subscribers_job *subscribers_job; // same
	uint64_t acls_refreshed_ns;
	bool acls_are_stale; // an interface is gone, and its name is still bound
	uint64_t started_ns, polled_ns;
	uint64_t started_ms;    // since 1970, the same moment
	uint64_t ready_ns;      // when the tables were complete for the first time; 0: not yet
	struct clock_pair born; // approximate start time
	int silent_worker;      // already logged; -1: none
	struct api_rounds {     // of each worker: its loops, and when their number last grew
		uint64_t loops, grew_ns;
	} rounds[STATS_MAX_WORKERS];
	bool stop; // set by the method stop
	unsigned n_reloads;
	struct api_baseline baseline;
	struct api_turns turns;
};

const struct rpc_method *api_table(size_t *n);

// For struct rpc_methods: a capture that has been started takes its connection over.
bool api_takes_over(void *ctx);
void api_take_over(void *ctx, int fd);

// Builds a table from a configuration; workers do not use it yet. It is complete unless Linux is
// the control plane. `states` contains the MAC addresses of the devices; NULL before they are open.
// 0, or -errno with `error` set. Owner: caller.
int api_build(const struct config *config, const struct port_state states[], struct fib **out,
	struct error *error);

// For --check, without running workers: warns of next hops in `fib` that can never be resolved
// because they have no neighbour entry, and of those in no connected network of their port.
void api_warn_of_hops(const struct api_ctx *ctx);
// For --check: warns of rules of access lists that never match, and of lists that are used where no
// port is.
void api_warn_of_acls(const struct api_ctx *ctx);

// Opens the flow table, if the configuration has one, and sets ctx->flows; before datapath_open,
// with ctx->rcu. `hz`: of the TSC. -errno with `error` set: there is not enough memory, or the file
// of ended flows cannot be opened. / For --check: whether it would if no other program took memory;
// warns if that is short now. / Sets what workers need. / Closes it, when workers have ended;
// before ctx->rcu and ctx->fib.
int api_open_flows(struct api_ctx *ctx, uint64_t hz, struct error *error);
int api_check_flows(const struct config *config, unsigned n_workers, struct error *error);
void api_set_flow_tables(const struct api_ctx *ctx, struct datapath_tables *tables);
void api_close_flows(struct api_ctx *ctx);

// Opens the access lists of the configuration and sets ctx->acls, and ctx->filters if there are TAP
// interfaces; before datapath_open, with ctx->rcu. -errno with `error` set: a list cannot be built.
// / Closes them, when workers have ended; before ctx->rcu.
int api_open_acls(struct api_ctx *ctx, struct error *error);
void api_close_acls(struct api_ctx *ctx);

// Opens the MAC table and the bridges of the configuration, sets ctx->bridges, and has ports join
// them; before datapath_open, with ctx->rcu and ctx->ports. `hz`: of the TSC. -errno with `error`
// set: there is not enough memory. / What workers need of it. / Closes it, when workers have ended;
// before ctx->rcu.
int api_open_bridges(struct api_ctx *ctx, uint64_t hz, struct error *error);
const struct mac_live *api_mac_live(const struct api_ctx *ctx);
void api_close_bridges(struct api_ctx *ctx);

// Opens the subscribers of the configuration, if it has the key `qos`, and sets ctx->qos; before
// datapath_open, with ctx->rcu. `hz`: of the TSC. -errno with `error` set. / For --check: whether
// the file's could be opened. / What workers need, NULL: nothing. / Closes it, when workers have
// ended; before ctx->rcu.
int api_open_subscribers(struct api_ctx *ctx, uint64_t hz, struct error *error);
int api_check_subscribers(const struct config *config, struct error *error);
const struct qos_live *api_qos_live(const struct api_ctx *ctx);
void api_close_subscribers(struct api_ctx *ctx);

// Makes workers use `fib`, and starts counting its next hops. Returns the old table, which is no
// longer read by any worker, to be passed to fib_destroy.
struct fib *api_swap(struct api_ctx *ctx, struct fib *fib);

// Reads the file again and applies what can change at run time; on failure nothing changes. Also
// used for SIGHUP.
int api_reload(struct api_ctx *ctx, struct error *error);

// If ports have TAP interfaces: starts moving their frames and mirroring kernel state. Workers must
// be running.
int api_follow(struct api_ctx *ctx, struct error *error);
// Stops mirroring, while Linux continues to forward; and, once workers have ended, stops moving
// frames.
void api_unfollow(struct api_ctx *ctx);

// Whether the tables of workers have become complete since the last call. True once: at once with
// static tables, after the first dump of Linux's tables otherwise.
bool api_has_become_ready(struct api_ctx *ctx);

// Handles received signals: SIGHUP reloads the file, others stop the program.
void api_handle_signals(struct api_ctx *ctx, int signals);

// The periodic work of the control loop: mirrors kernel state, checks link states, follows devices
// that vanish and return, frees what workers no longer use, logs a silent worker. -errno with
// `error` set if a worker has ended by itself.
int api_poll(struct api_ctx *ctx, struct error *error);

// Ends a turn of the control loop that began to work at `woke_ns` (clock_now_ns()). Long turns are
// kept for the method turns.
void api_note_turn(struct api_ctx *ctx, uint64_t woke_ns);

// How long the control loop may wait for events before it calls api_poll again.
int api_wait_ms(const struct api_ctx *ctx);

// At exit: logs packets received, sent and dropped by reason, in a few lines.
void api_log_account(const struct api_ctx *ctx);
