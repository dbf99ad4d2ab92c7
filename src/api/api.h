// Fills the window's table from the rooms below: status, ports, workers, drops, routes, reload.
// Control thread.
#pragma once

#include "config/config.h"
#include "datapath/datapath.h"
#include "fib/fib.h"
#include "netlink/netlink.h"
#include "port/port.h"
#include "rpc/rpc.h"
#include "tap/tap.h"

#include <stdbool.h>
#include <stdint.h>

// What methods may touch; dl3d.c owns it.
struct api_ctx {
	struct config *config; // replaced by a reload
	struct port_table *ports;
	struct fib *fib; // the live table, replaced by a reload
	struct fib_rcu *rcu;
	struct path *path;
	struct tap_table *taps;  // NULL: Linux is not the control plane
	struct netlink *netlink; // the same, and until api_follow
	int wake;                // readable when the control loop has something to do
	bool is_busy;            // the mirror has more to do at once
	uint64_t started_ns, polled_ns;
	struct clock_pair born; // about when it started
	int silent_worker;      // named in the log already; -1: none
	bool stop;              // set by the method stop
	unsigned n_reloads;
};

const struct rpc_method *api_table(size_t *n);

// A complete table for a configuration; the workers do not know of it yet. `faces` tell the MACs of
// the devices; NULL before they are open. 0, or -errno with `error` set. Owner: caller.
int api_build(const struct config *config, const struct port_state states[], struct fib **out,
	struct error *error);

// For --check, where nothing runs: warns of next hops of `fib` that can never be resolved, since
// they have no neighbour entry, and of those that no connected network of
// their port contains.
void api_warn_of_hops(const struct api_ctx *ctx);

// Makes `fib` what workers read; its next hops are counted from here on. Returns the old one, which
// no worker reads any more, for fib_destroy.
struct fib *api_swap(struct api_ctx *ctx, struct fib *fib);

// Reads the file again and applies what can change while running; a failure leaves all as it was.
// Also on SIGHUP.
int api_reload(struct api_ctx *ctx, struct error *error);

// Where ports have TAP interfaces: lets their frames move and follows Linux from now on. Workers
// run. / Lets go of Linux, which forwards on; and, once workers have ended, of the TAP interfaces'
// frames.
int api_follow(struct api_ctx *ctx, struct error *error);
void api_unfollow(struct api_ctx *ctx);

// Does what the signals that have come ask for: SIGHUP reads the file again, others stop.
void api_handle_signals(struct api_ctx *ctx, int signals);

// What the control loop does besides serving: follows Linux, reads links, frees what workers have
// left behind, names a worker that is silent. -errno with `error` set when a worker has ended by
// itself or a device is gone.
int api_poll(struct api_ctx *ctx, struct error *error);

// At the end: what was received, sent and dropped by name, in a few log lines.
void api_log_account(const struct api_ctx *ctx);
