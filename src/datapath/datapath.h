// Creates, starts and stops the workers, and reads their counters. Control thread.
#pragma once

#include "acl/acl_fast.h"
#include "base/error.h"
#include "capture/capture.h"
#include "fib/fib.h"
#include "flow/flow_fast.h"
#include "mac/mac_fast.h"
#include "port/port.h"
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
